"""The holes of RocketMQ 4.9.3: ways to lose, invent or mix up messages in a crash, or not to start after one.

Found by reading and running its store. Each is a planted bug of ours where our design can have it
(properties/planted), hunted by machines and campaigns; the others say why not. docs/holes.md has the table of a run.
"""

from tornpage.properties.score.holes import index, log, queues, starting
from tornpage.properties.score.holes.hole import Hole

__all__ = ["HOLES", "Hole", "UnknownHole", "holes_named"]

HOLES: dict[str, Hole] = {
    hole.id: hole for hole in (*log.HOLES, *queues.HOLES, *index.HOLES, *starting.HOLES)
}  # fmt: skip


class UnknownHole(ValueError):
    """There is no hole of this id."""

    def __init__(self, hole_id: str) -> None:
        super().__init__(f"no hole {hole_id!r}; there are: {', '.join(HOLES)}")


def holes_named(ids: str) -> tuple[Hole, ...]:
    """Return the holes that a list of ids with commas between names, all for an empty one. Raises UnknownHole."""
    wanted = [each.strip().upper() for each in ids.split(",") if each.strip()]
    for each in wanted:
        if each not in HOLES:
            raise UnknownHole(each)
    return tuple(HOLES[each] for each in wanted) or tuple(HOLES.values())
