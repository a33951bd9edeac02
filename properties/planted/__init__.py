"""Planted bugs: the store with one part or a few replaced by broken ones, switched on by id.

The tester is under test too: every machine and campaign must catch these. A bug travels as its id, so that forks,
spawned processes and other machines agree on it.
"""

from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.planted.registry import (
    GROUPS,
    PLANTED,
    REPRODUCERS,
    UnknownBug,
    bug_of,
    bugs_named,
    nearest_bugs,
    parts_of,
)

__all__ = [
    "GROUPS",
    "PLANTED",
    "REPRODUCERS",
    "Origin",
    "PlantedBug",
    "UnknownBug",
    "bug_of",
    "bugs_named",
    "nearest_bugs",
    "parts_of",
]
