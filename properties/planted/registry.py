"""Register all planted bugs by id, with the broken parts of each."""

from collections.abc import Sequence

from tornpage.impl.parts import Parts
from tornpage.properties.bug_ids import UnknownBug
from tornpage.properties.planted import (
    consumers,
    delay,
    doctor,
    groups,
    index,
    io,
    log,
    polling,
    put,
    queue,
    races,
    raft,
    read,
    recovery,
    replication,
    retention,
)
from tornpage.properties.planted.record import DURABILITY, PlantedBug

__all__ = [
    "CLUSTER_REPRODUCERS",
    "GROUPS",
    "GROUP_REPRODUCERS",
    "PLANTED",
    "RAFT_REPRODUCERS",
    "REPRODUCERS",
    "UnknownBug",
    "bug_of",
    "bugs_named",
    "parts_of",
]

PLANTED: dict[str, PlantedBug] = {
    bug.id: bug
    for module in (
        log,
        recovery,
        doctor,
        put,
        read,
        queue,
        index,
        delay,
        retention,
        groups,
        polling,
        races,
        io,
        replication,
        consumers,
        raft,
    )
    for bug in module.BUGS
}

REPRODUCERS = {bug.id: bug.reproducer for bug in PLANTED.values() if bug.reproducer is not None}
"""The minimal reproducers, with the bug in their settings."""

CLUSTER_REPRODUCERS = {bug.id: bug.cluster_reproducer for bug in PLANTED.values() if bug.cluster_reproducer is not None}
"""The minimal reproducers of bugs of replication."""

GROUP_REPRODUCERS = {bug.id: bug.group_reproducer for bug in PLANTED.values() if bug.group_reproducer is not None}
"""The minimal reproducers of bugs of consumers."""

RAFT_REPRODUCERS = {bug.id: bug.raft_reproducer for bug in PLANTED.values() if bug.raft_reproducer is not None}
"""The minimal reproducers of bugs of Raft groups."""

GROUPS = (DURABILITY,)
"""The named sets of bugs."""


def parts_of(bug_id: str) -> Parts:
    """Return the parts of the store with this bug; an empty id means no bug.

    Raises UnknownBug.
    """
    return bug_of(bug_id).parts if bug_id else Parts()


def bug_of(bug_id: str) -> PlantedBug:
    """Return the bug with this id. Raises UnknownBug."""
    if bug_id not in PLANTED:
        raise UnknownBug(bug_id)
    return PLANTED[bug_id]


def bugs_named(bug_ids: Sequence[str], group: str = "") -> tuple[str, ...]:
    """Return these ids and those of a group, each once, or all ids if neither is given.

    Raises UnknownBug.
    """
    wanted = [bug_of(bug_id).id for bug_id in bug_ids]
    wanted += [bug.id for bug in PLANTED.values() if group and bug.group == group]
    return tuple(dict.fromkeys(wanted)) or tuple(PLANTED)
