"""Define the known defects (holes) of RocketMQ 4.9.3 around crashes and restarts.

A hole loses, invents or mixes up messages in a crash, or keeps the store from starting after one. They were found by
reading and running RocketMQ's store. Each hole that the design of tornpage's store could have is a planted bug
(properties/planted), searched for by machines and campaigns. The others give the reason why they cannot occur.
docs/holes.md has the table of a run.
"""

from tornpage.properties.score.holes import index, log, queues, starting
from tornpage.properties.score.holes.hole import Hole

__all__ = ["HOLES", "Hole", "UnknownHole", "holes_named"]

HOLES: dict[str, Hole] = {
    hole.id: hole for hole in (*log.HOLES, *queues.HOLES, *index.HOLES, *starting.HOLES)
}  # fmt: skip


class UnknownHole(ValueError):
    """Raise this if no hole has the given id."""

    def __init__(self, hole_id: str) -> None:
        super().__init__(f"no hole {hole_id!r}; there are: {', '.join(HOLES)}")


def holes_named(ids: str) -> tuple[Hole, ...]:
    """Return the holes in a comma-separated list of ids, or all for an empty list.

    Raises UnknownHole.
    """
    wanted = [each.strip().upper() for each in ids.split(",") if each.strip()]
    for each in wanted:
        if each not in HOLES:
            raise UnknownHole(each)
    return tuple(HOLES[each] for each in wanted) or tuple(HOLES.values())
