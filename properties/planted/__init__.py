"""Planted bugs: the store with one part replaced by a broken one, switched on by id.

The tester is under test too: every machine and campaign must catch these. A planted bug is a subclass of one part of
the store and a sentence; forks, spawned processes and other machines agree on it because it travels as its id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from impl.parts import Parts
from properties.planted import (
    acknowledging,
    allocating,
    awaiting,
    batching,
    believing,
    creating,
    delaying,
    dispatched,
    dispatching,
    distrusting,
    durability,
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
    small_files,
)

__all__ = ["GROUPS", "PLANTED", "PlantedBug", "UnknownBug", "bug_of", "bugs_named", "components_of", "nearest_bugs"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One bug: what is wrong, which contract number it breaks, and the parts that make it.

    `group` is that of a named set of mistakes, `kind` is which of them this is.
    """

    id: str
    sentence: str
    contract: int
    parts: Parts
    group: str = ""
    kind: str = ""


_KINDS = {bug_id: kind for kind, bug_ids in durability.DURABILITY.items() for bug_id in bug_ids}

PLANTED: dict[str, PlantedBug] = {
    bug_id: PlantedBug(
        bug_id,
        sentence,
        contract,
        parts,
        group=durability.GROUP if bug_id in _KINDS else "",
        kind=_KINDS.get(bug_id, ""),
    )
    for bug_id, sentence, contract, parts in (
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
        *small_files.BUGS,
        *rebuilding.BUGS,
        *prefilling.BUGS,
        *reindexing.BUGS,
        *retaining.BUGS,
        *delaying.BUGS,
        *awaiting.BUGS,
        *racing.BUGS,
        *progressing.BUGS,
        *polling.BUGS,
        *distrusting.BUGS,
    )
}


GROUPS = (durability.GROUP,)
"""The named sets of bugs."""


class UnknownBug(ValueError):
    """No planted bug has this id."""

    def __init__(self, bug_id: str) -> None:
        near = nearest_bugs(bug_id)
        nearest = f"the nearest are: {', '.join(near)}" if near else "no other is like it"
        super().__init__(f"no planted bug {bug_id!r}; {nearest} (`tornpage bugs list` has all {len(PLANTED)})")


def nearest_bugs(bug_id: str) -> list[str]:
    """Return the ids that look most like one that does not exist, in the order of likeness."""
    by_lower = {known.lower(): known for known in PLANTED}
    wanted = bug_id.lower()
    within = [known for known in by_lower if wanted and wanted in known]
    near = dict.fromkeys([*within, *get_close_matches(wanted, by_lower, n=5, cutoff=0.5)])
    return [by_lower[known] for known in near][:5]


def components_of(bug_id: str) -> Parts:
    """Return the parts of the store for a bug id; the empty id is the store as it is. Raises UnknownBug."""
    return bug_of(bug_id).parts if bug_id else Parts()


def bug_of(bug_id: str) -> PlantedBug:
    """Return the bug of an id. Raises UnknownBug."""
    if bug_id not in PLANTED:
        raise UnknownBug(bug_id)
    return PLANTED[bug_id]


def bugs_named(bug_ids: Sequence[str], group: str = "") -> tuple[str, ...]:
    """Return these ids and those of a group, each once; all there are if neither is given. Raises UnknownBug."""
    wanted = [bug_of(bug_id).id for bug_id in bug_ids]
    wanted += [bug.id for bug in PLANTED.values() if group and bug.group == group]
    return tuple(dict.fromkeys(wanted)) or tuple(PLANTED)
