"""Planted bugs: the store with one part replaced by a broken one, switched on by id.

The tester is under test too: every machine and campaign must catch these. A planted bug is a subclass of one part of
the store and a sentence; forks, spawned processes and other machines agree on it because it travels as its id.
"""

from dataclasses import dataclass

from impl.components import Components
from properties.planted import (
    acknowledging,
    allocating,
    batching,
    believing,
    creating,
    delaying,
    dispatched,
    dispatching,
    extending,
    flushing,
    indexing,
    loading,
    polling,
    pooling,
    prefilling,
    progressing,
    proving,
    pulling,
    putting,
    querying,
    queueing,
    racing,
    reading,
    rebuilding,
    recovering,
    reindexing,
    retaining,
)

__all__ = ["PLANTED", "PlantedBug", "UnknownBug", "components_of"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One bug: what is wrong, which contract number it breaks, and the parts that make it."""

    id: str
    sentence: str
    contract: int
    components: Components


PLANTED: dict[str, PlantedBug] = {
    bug_id: PlantedBug(bug_id, sentence, contract, components)
    for bug_id, sentence, contract, components in (
        *acknowledging.BUGS,
        *putting.BUGS,
        *batching.BUGS,
        *dispatching.BUGS,
        *creating.BUGS,
        *loading.BUGS,
        *flushing.BUGS,
        *pooling.BUGS,
        *allocating.BUGS,
        *reading.BUGS,
        *recovering.BUGS,
        *proving.BUGS,
        *pulling.BUGS,
        *querying.BUGS,
        *indexing.BUGS,
        *queueing.BUGS,
        *dispatched.BUGS,
        *extending.BUGS,
        *believing.BUGS,
        *rebuilding.BUGS,
        *prefilling.BUGS,
        *reindexing.BUGS,
        *retaining.BUGS,
        *delaying.BUGS,
        *racing.BUGS,
        *progressing.BUGS,
        *polling.BUGS,
    )
}


class UnknownBug(ValueError):
    """No planted bug has this id."""

    def __init__(self, bug_id: str) -> None:
        super().__init__(f"no planted bug {bug_id!r}; there are: {', '.join(PLANTED)}")


def components_of(bug_id: str) -> Components:
    """Return the parts of the store for a bug id; the empty id is the store as it is. Raises UnknownBug."""
    if not bug_id:
        return Components()
    if bug_id not in PLANTED:
        raise UnknownBug(bug_id)
    return PLANTED[bug_id].components
