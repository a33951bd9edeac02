"""Test which pulls are held, and the answers of held ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.support import layout_of, message_of, put_all
from tornpage.model import holding
from tornpage.model.commitlog import CommitLog
from tornpage.model.holding import Fate, Holding
from tornpage.model.queues import dispatch
from tornpage.model.reading import get_message
from tornpage.model.retention import delete_topics

LAYOUT = layout_of(file_bytes=1 << 20)
DEADLINE_MS = 1_000


def tagged(*tags: str) -> CommitLog:
    return dispatch(put_all(*(message_of(properties={"TAGS": tag}) for tag in tags), layout=LAYOUT)[0])


def fate(
    log: CommitLog, offset: int, tags: tuple[str, ...] | None = None, *, topic: str = "T", now_ms: int = 0
) -> Fate:
    return holding.fate(log, LAYOUT, Holding((topic, 0), offset, 32, tags, DEADLINE_MS), now_ms=now_ms)


@pytest.mark.parametrize(
    ("topic", "offset", "tags", "expected"),
    [
        ("T", 0, None, False),
        ("T", 2, None, True),
        ("T", 3, None, False),
        ("T", -1, None, False),
        ("T", 0, ("C",), False),
        ("U", 0, None, True),
        ("U", 1, None, False),
    ],
)
def test_who_could_find_something_later_is_held(
    topic: str, offset: int, tags: tuple[str, ...] | None, expected: bool
) -> None:
    pulled = get_message(tagged("A", "B"), LAYOUT, topic, 0, offset, 32, tags)
    assert holding.is_held(pulled, offset) == expected


def test_who_comes_to_what_nobody_may_read_yet_is_held() -> None:
    log = tagged("A", "B")
    poisoned = log.changed(poisoned=True, flushed_offset=log.records[0].end_offset)
    assert holding.is_held(get_message(poisoned, LAYOUT, "T", 0, 1), 1)
    assert fate(poisoned, 1) == "stays"
    assert fate(poisoned, 0) == "ends"


def test_a_wanted_message_ends_it_and_another_one_does_not() -> None:
    assert fate(tagged("A"), 1) == "stays"
    assert fate(tagged("A", "B"), 1) == "ends"
    assert fate(tagged("A", "B"), 1, ("A",)) == "stays"
    assert fate(tagged("A", "B", "B", "A"), 1, ("A",)) == "ends"
    assert fate(tagged("A", "Aa"), 1, ("BB",)) == "ends"  # their hashes are equal


def test_a_message_that_was_not_dispatched_ends_nothing() -> None:
    log = put_all(message_of(), layout=LAYOUT)[0]
    assert fate(log, 0) == "stays"
    assert fate(dispatch(log), 0) == "ends"


def test_a_message_behind_all_that_one_pull_looks_at_ends_it() -> None:
    few = replace(LAYOUT, pull_units_max=2)
    log = tagged("B", "B", "B", "B", "A")
    held = Holding(("T", 0), 0, 1, ("A",), DEADLINE_MS)
    assert holding.fate(log, few, held, now_ms=0) == "ends"
    assert get_message(log, few, "T", 0, 0, 1, ("A",)).next_begin_offset == 2


def test_its_deadline_ends_it_and_not_a_moment_before() -> None:
    assert fate(tagged(), 0, now_ms=DEADLINE_MS - 1) == "stays"
    assert fate(tagged(), 0, now_ms=DEADLINE_MS) == "ends"


def test_a_deleted_queue_ends_who_was_further_on_than_its_begin() -> None:
    log, _ = delete_topics(tagged("A", "A"), layout=LAYOUT, in_use=())
    assert fate(log, 2) == "ends"
    assert fate(log, 0) == "stays"


def test_expired_messages_may_end_it_or_not() -> None:
    log = tagged("A", "B", "B")
    gone = log.changed(min_offset=log.records[2].offset)
    assert fate(gone, 1, ("A",)) == "may end"
    assert fate(gone, 2, ("A",)) == "stays"


@given(st.lists(st.sampled_from("AB"), max_size=6), st.integers(-1, 7), st.sampled_from((None, ("A",), ("C",))))
def test_whoever_stays_would_be_answered_with_nothing(
    tags: list[str], offset: int, wanted: tuple[str, ...] | None
) -> None:
    log = tagged(*tags)
    if fate(log, offset, wanted) == "stays":
        assert not get_message(log, LAYOUT, "T", 0, offset, 32, wanted).records
