"""Define the planted bugs. Each is the store with a few parts replaced by broken ones.

A bug is selected by id. The tester itself is under test: every machine and campaign must catch these bugs. A bug is
passed as its id, so that forked and spawned processes and other machines build the same broken store.
"""

from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.planted.registry import (
    CLUSTER_REPRODUCERS,
    GROUP_REPRODUCERS,
    GROUPS,
    PLANTED,
    RAFT_REPRODUCERS,
    REPRODUCERS,
    UnknownBug,
    bug_of,
    bugs_named,
    parts_of,
)

__all__ = [
    "CLUSTER_REPRODUCERS",
    "GROUPS",
    "GROUP_REPRODUCERS",
    "PLANTED",
    "RAFT_REPRODUCERS",
    "REPRODUCERS",
    "Origin",
    "PlantedBug",
    "UnknownBug",
    "bug_of",
    "bugs_named",
    "parts_of",
]
