"""Test how the version matrix explains an index that a release dropped after a kill."""

from dataclasses import replace

import pytest

from tornpage.impl.log.loading import Finding
from tornpage.peers.matrix.answers import Answers, Difference
from tornpage.peers.matrix.held import Held, Run, changed_entries, dropped_records
from tornpage.peers.matrix.known import OURS, Opening, Reading, dropped_by, known_finding, reason_of
from tornpage.peers.matrix.workload import SETTINGS

FILE = SETTINGS["mappedFileSizeCommitLog"]
FILES = 12
OFFSETS = [number * FILE // 2 for number in range(2 * FILES)]
START = 3 * FILE
"""The begin of the recovery of 5.4.0, which reads the last ten log files, one of them made ahead."""
WHOLE = tuple(Run(offset, (offset % 97, offset % 89), ("1", "1")) for offset in OFFSETS)
LEFT = tuple(replace(run, file_names=("2", "2")) for run in WHOLE if run.offset >= START)
EXPECTED = Answers(
    end=OFFSETS[-1] + 100,
    fields={str(at): {"stored": 5_000 + number, "properties": {"KEYS": "k"}} for number, at in enumerate(OFFSETS)},
)
DROPPED = frozenset(offset for offset in OFFSETS if offset < START)
COVERED = Held(WHOLE, covered_ms=EXPECTED.fields[str(START)]["stored"] + 3000)  # type: ignore[index]
FINDING = Finding("note", "index_rebuilt", "store/index/2", 0, "")
AGAIN = Reading(OURS, "killed", "5.4.0", is_stock=True, again=True)
FIRST = Reading(OURS, "killed", "5.4.0", is_stock=True, dropped=DROPPED)


def test_records_before_a_log_file_are_dropped() -> None:
    assert dropped_records(OFFSETS, OFFSETS) == frozenset()
    assert dropped_records([run.offset for run in LEFT], OFFSETS) == DROPPED
    between = [offset for offset in OFFSETS if not FILE <= offset < START]
    assert dropped_records(between, OFFSETS) == {offset for offset in DROPPED if offset >= FILE}


@pytest.mark.parametrize(
    "missing",
    [OFFSETS[:3], OFFSETS[-2:], [OFFSETS[0], OFFSETS[4]], OFFSETS],
    ids=["up to the middle of a file", "at the end", "two parts", "all"],
)
def test_other_missing_records_are_not_dropped(missing: list[int]) -> None:
    indexed = [offset for offset in OFFSETS if offset not in missing]
    assert dropped_records(indexed, OFFSETS) == frozenset()
    runs = [run for run in WHOLE if run.offset not in missing]
    assert changed_entries(runs, WHOLE, lambda offset: None) is None


def test_a_release_drops_what_its_recovery_does_not_read() -> None:
    written, left = Held(WHOLE), Held(LEFT)
    assert dropped_by("5.4.0", written, left, EXPECTED) == DROPPED
    assert dropped_by("5.3.3", written, left, EXPECTED) == frozenset()
    assert dropped_by("5.3.3", COVERED, left, EXPECTED) == DROPPED
    assert dropped_by("5.3.3", replace(COVERED, covered_ms=COVERED.covered_ms - 1), left, EXPECTED) == frozenset()
    shorter = Held(tuple(run for run in LEFT if run.offset >= START + 2 * FILE))
    assert dropped_by("5.4.0", written, shorter, EXPECTED) == frozenset()


ROWS = [[START, "b"], [START - FILE // 2, "a"]]


def test_keys_of_dropped_records_find_nothing() -> None:
    for found in (ROWS[:1], [*ROWS[:1], *ROWS[:1]]):
        assert reason_of(FIRST, Difference("query", "T k", ROWS, found), EXPECTED) == "keys-dropped"
        assert reason_of(replace(FIRST, dropped=frozenset()), Difference("query", "T k", ROWS, found), EXPECTED) is None
    for found in ([], ROWS[1:]):
        assert reason_of(FIRST, Difference("query", "T k", ROWS, found), EXPECTED) is None
    assert reason_of(FIRST, Difference("message", "T/0 1", ROWS, ROWS[:1]), EXPECTED) is None


def test_our_store_rebuilds_a_dropped_index_for_a_reason() -> None:
    opening = Opening(Held(WHOLE), Held(LEFT), Held(WHOLE))
    assert known_finding(AGAIN, FINDING, opening, EXPECTED) == ("index-dropped",)
    old = replace(AGAIN, reader="4.9.3")
    assert known_finding(old, FINDING, opening, EXPECTED) == ()
    assert known_finding(old, FINDING, replace(opening, written=COVERED), EXPECTED) == ("index-dropped",)
    assert known_finding(replace(AGAIN, ending="closed"), FINDING, opening, EXPECTED) == ()
    assert known_finding(replace(AGAIN, again=False), FINDING, opening, EXPECTED) == ()
    assert known_finding(AGAIN, replace(FINDING, file="store/index/1"), opening, EXPECTED) == ()
    assert known_finding(AGAIN, FINDING, replace(opening, before=Held(LEFT[1:])), EXPECTED) == ()
    assert known_finding(AGAIN, FINDING, replace(opening, after=Held(WHOLE[1:])), EXPECTED) == ()
