"""Test durability mutants: each is killed in every run within a fixed number of states.

The seeds are fixed too.
"""

from collections import Counter

import pytest

from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import GROUPS, PLANTED
from tornpage.properties.program.case import Settings
from tornpage.properties.score.holes.search import Search

MUTANTS = [bug.id for bug in PLANTED.values() if bug.group == "durability"]

COUNT_MAX = 3_000
"""Number of crash states, or of operations of a machine, within which each has to be killed."""

_EXPLORE, _LOG, _QUEUE = Search(), Search("commit-log"), Search("queue")
_FLAT = {"file_bytes": 8192, "sync_flush": False, "pool_buffers": 0, "index": False, "queue_ext": False}

CHEAP: dict[str, tuple[Search, int]] = {
    "early-acknowledgement": (Search(fixed={"sync_flush": True}), 0),
    "unlink-not-synced": (Search(fixed={**_FLAT, "file_bytes": 2048}), 0),
    "saved-before-its-copies": (Search("delay", fixed={"index": False, "queue_ext": False, "sync_flush": False}), 3),
    "checkpoint-before-flush": (_QUEUE, 1),
    "checkpoint-ahead": (Search("flush"), 0),
    "no-crc": (Search(fixed={**_FLAT, "multi_dispatch": False}), 0),
    "RMQ-B13": (_LOG, 1),
    "position-not-checked": (_LOG, 0),
    "queue-names-not-synced": (_QUEUE, 1),
    "index-names-not-synced": (_QUEUE, 0),
    "progress-name-not-synced": (Search("consumer"), 0),
    "checkpoint-believed": (Search("commit-log", fixed={"file_bytes": 4096}), 1),
    "derived-floor-believed": (_QUEUE, 1),
}
"""The engine, the settings and the seed that kill a mutant cheaply; the others are explored with seed 0."""


def test_every_kind_has_its_mutants_and_they_are_a_group_of_the_planted_bugs() -> None:
    assert Counter(PLANTED[bug].kind for bug in MUTANTS) == {
        "drop a flush": 2,
        "reorder flushes": 2,
        "round a flush": 2,
        "swap flush and checkpoint": 2,
        "skip the checksum": 2,
        "skip the position check": 1,
        "skip the erase": 2,
        "skip a directory sync": 5,
        "acknowledge early": 2,
        "trust the checkpoint": 2,
    }
    assert GROUPS == ("durability",)
    assert set(CHEAP) <= set(MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize("bug", MUTANTS)
def test_a_mutant_is_killed(bug: str, tracker: DirtyTracker) -> None:
    hunt, seed = CHEAP.get(bug, (_EXPLORE, 0))
    counted = 0

    def is_over() -> bool:
        nonlocal counted
        counted += 1  # a machine asks once per operation and yields only operations that it met
        return counted > COUNT_MAX

    for count, sighting in hunt.strategy.seek(Settings(bug=bug), seed=seed, tracker=tracker, is_over=is_over):
        assert count <= COUNT_MAX, f"{bug} lives after {count} {hunt.strategy.counts}"
        if sighting is not None and sighting.needs_its_bug(tracker):
            return
    pytest.fail(f"{bug} lives after {counted} {hunt.strategy.counts}")
