"""Test pulls and look-ups by time: all statuses, full batches, filters, unreadable ends."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.support import layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, GetStatus, put
from tornpage.model.crash import crash
from tornpage.model.flushing import flush
from tornpage.model.queues import dispatch, failed_dispatch, queue_of
from tornpage.model.reading import (
    Pulled,
    begins_in_disk,
    earliest_message_time,
    get_message,
    is_in_disk,
    legal_answers,
    max_offset,
    min_offset,
    offset_by_time,
    store_timestamp_in_queue,
    unit_at,
)
from tornpage.model.state import Layout, Record

LAYOUT = layout_of(file_bytes=1 << 20)
FOUND, NO_MATCH, NULL = GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE, GetStatus.OFFSET_FOUND_NULL
UNKNOWN, EMPTY = GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE


def log_of(count: int, layout: Layout = LAYOUT, **fields: Any) -> CommitLog:
    """Return a dispatched log of records of 92 bytes in one queue."""
    return dispatch(put_all(*[message_of(**fields)] * count, layout=layout)[0])


def tagged(*tags: str) -> CommitLog:
    return dispatch(put_all(*(message_of(properties={"TAGS": tag}) for tag in tags), layout=LAYOUT)[0])


def from_four_on(log: CommitLog) -> CommitLog:
    """Return a log whose first four records are gone."""
    return log.changed(records=log.records[4:])


def summary(pulled: Pulled) -> tuple[str, int, int, int, int]:
    return pulled.status.name, *pulled[1:4], len(pulled.records)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (-1, ("OFFSET_TOO_SMALL", 4, 4, 7, 0)),
        (0, ("OFFSET_TOO_SMALL", 4, 4, 7, 0)),
        (3, ("OFFSET_TOO_SMALL", 4, 4, 7, 0)),
        (4, ("FOUND", 7, 4, 7, 3)),
        (6, ("FOUND", 7, 4, 7, 1)),
        (7, ("OFFSET_OVERFLOW_ONE", 7, 4, 7, 0)),
        (8, ("OFFSET_OVERFLOW_BADLY", 7, 4, 7, 0)),
        (2**63 - 1, ("OFFSET_OVERFLOW_BADLY", 7, 4, 7, 0)),
    ],
)
def test_range_of_a_queue(offset: int, expected: tuple[Any, ...]) -> None:
    log = from_four_on(log_of(7))
    found = get_message(log, LAYOUT, "T", 0, offset)
    assert summary(found) == expected
    assert legal_answers(log, LAYOUT, "T", 0, offset) == (found,)
    assert (min_offset(log, LAYOUT, "T", 0), max_offset(log, LAYOUT, "T", 0)) == (4, 7)


@pytest.mark.parametrize("offset", [-1, 0, 5])
@pytest.mark.parametrize("place", [("T", 1), ("S", 0), ("", 0)])
def test_unknown_queue(offset: int, place: tuple[str, int]) -> None:
    log = log_of(1)
    assert legal_answers(log, LAYOUT, *place, offset) == (Pulled(UNKNOWN, 0, 0, 0),)
    assert (min_offset(log, LAYOUT, *place), max_offset(log, LAYOUT, *place)) == (0, 0)
    assert unit_at(log, LAYOUT, *place, 0) is None
    assert offset_by_time(log, LAYOUT, *place, 1) == {0}
    assert earliest_message_time(log, LAYOUT, place) is None


def test_a_queue_whose_records_were_cut_is_unknown_or_empty() -> None:
    log = log_of(1)
    for left in crash(log, log, "power loss", layout=LAYOUT):
        found = legal_answers(left, LAYOUT, "T", 0, 3)
        expected = [GetStatus.OFFSET_OVERFLOW_BADLY] if left.records else [UNKNOWN, EMPTY]
        assert [each.status for each in found] == expected
        assert [each.status for each in legal_answers(left, LAYOUT, "S", 0, 3)] == [UNKNOWN]


@pytest.mark.parametrize(
    ("offset", "place", "status"),
    [
        (3, ("T", 0), "OFFSET_TOO_SMALL"),
        (7, ("T", 0), "OFFSET_OVERFLOW_ONE"),
        (8, ("T", 0), "OFFSET_OVERFLOW_BADLY"),
        (8, ("S", 0), "NO_MATCHED_LOGIC_QUEUE"),
    ],
)
def test_a_slave_corrects_offsets_only_when_told_to(offset: int, place: tuple[str, int], status: str) -> None:
    log = from_four_on(log_of(7))
    slave = replace(LAYOUT, role="SLAVE")
    found = get_message(log, slave, *place, offset)
    assert (found.status.name, found.next_begin_offset) == (status, offset)
    checking = replace(slave, offset_check_in_slave=True)
    assert get_message(log, checking, *place, offset) == get_message(log, LAYOUT, *place, offset)
    assert get_message(log, slave, "T", 0, 4).next_begin_offset == 7


@pytest.mark.parametrize("wanted", [0, -1])
@pytest.mark.parametrize(("offset", "status"), [(0, NO_MATCH), (2, NO_MATCH), (3, GetStatus.OFFSET_OVERFLOW_ONE)])
def test_who_asks_for_no_message_gets_none(wanted: int, offset: int, status: GetStatus) -> None:
    assert get_message(log_of(3), LAYOUT, "T", 0, offset, wanted) == Pulled(status, offset, 0, 3)


@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (2, 2), (32, 32), (33, 32), (99, 32)])
def test_a_batch_is_full_by_count(wanted: int, count: int) -> None:
    log = log_of(40)
    found = get_message(log, LAYOUT, "T", 0, 1, wanted)
    last = log.records[1 + count]  # the one that found the batch full
    assert found == Pulled(FOUND, 1 + count, 0, 40, log.records[1 : 1 + count], False, log.end_offset - last.offset)


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (92, 1), (183, 1), (184, 2), (275, 2), (276, 3)])
def test_a_batch_is_full_by_bytes_but_takes_the_first_message(limit: int, count: int) -> None:
    layout = replace(LAYOUT, transfer_bytes_in_memory=limit)
    assert summary(get_message(log_of(9), layout, "T", 0, 0)) == ("FOUND", count, 0, 9, count)


def test_limits_are_those_of_rocketmq() -> None:
    log = dispatch(put_all(*[message_of(body=bytes(32_676))] * 12, layout=LAYOUT)[0])
    assert {record.size_bytes for record in log.records} == {32_768}
    assert summary(get_message(log, LAYOUT, "T", 0, 0)) == ("FOUND", 8, 0, 12, 8)
    far = replace(LAYOUT, memory_bytes=0)
    assert summary(get_message(log, far, "T", 0, 0)) == ("FOUND", 2, 0, 12, 2)
    assert summary(get_message(log_of(40), far, "T", 0, 0)) == ("FOUND", 8, 0, 40, 8)


@pytest.mark.parametrize(
    ("memory_bytes", "ratio", "count"),
    [(828, 100, 10), (827, 100, 1), (2_070, 40, 10), (2_069, 40, 1), (1 << 40, 0, 1)],
)
def test_what_has_left_the_memory_comes_in_smaller_batches(memory_bytes: int, ratio: int, count: int) -> None:
    """The second record begins 828 bytes before the end. The last unit that was read counts."""
    layout = replace(LAYOUT, memory_bytes=memory_bytes, memory_ratio=ratio, transfer_count_in_disk=1)
    found = get_message(log_of(10), layout, "T", 0, 0)
    assert summary(found) == ("FOUND", count, 0, 10, count)
    assert found.suggest_pulling_from_slave is (count == 1)
    assert get_message(log_of(10), layout, "T", 0, 10).suggest_pulling_from_slave is False


@pytest.mark.parametrize(("limit", "count"), [(183, 1), (184, 2), (276, 3)])
def test_bytes_of_a_batch_that_has_left_the_memory(limit: int, count: int) -> None:
    layout = replace(LAYOUT, memory_bytes=0, transfer_bytes_in_disk=limit)
    assert summary(get_message(log_of(9), layout, "T", 0, 0)) == ("FOUND", count, 0, 9, count)


@pytest.mark.parametrize(
    ("tags", "places", "status"),
    [
        (None, [0, 1, 2, 3, 4], FOUND),
        (("a",), [0, 2], FOUND),
        (("a", "b"), [0, 1, 2], FOUND),
        (("Aa",), [3, 4], FOUND),
        (("BB",), [3, 4], FOUND),
        (("c",), [], NO_MATCH),
        ((), [], NO_MATCH),
    ],
)
def test_filter_looks_at_hashes(tags: tuple[str, ...] | None, places: list[int], status: GetStatus) -> None:
    log = tagged("a", "b", "a", "Aa", "BB")
    records = tuple(log.records[place] for place in places)
    behind_bytes = log.end_offset - log.records[-1].offset
    assert get_message(log, LAYOUT, "T", 0, 0, 32, tags) == Pulled(status, 5, 0, 5, records, False, behind_bytes)


def test_filter_looks_at_the_lower_half_of_a_time() -> None:
    """A delayed message passes if the lower 32 bits of its due time equal the hash of a tag."""
    layout = replace(LAYOUT, delays_ms=(2**32 + 97 - 1,), delay_levels=1)
    log = dispatch(put_all(message_of(properties={"DELAY": "1"}), layout=layout)[0])
    assert get_message(log, layout, "SCHEDULE_TOPIC_XXXX", 0, 0, 32, ("a",)).status is FOUND
    assert get_message(log, layout, "SCHEDULE_TOPIC_XXXX", 0, 0, 32, ("b",)).status is NO_MATCH


def test_a_full_batch_ends_before_what_the_filter_would_pass_over() -> None:
    log = tagged("a", "b", "b", "a", "b")
    found = get_message(log, LAYOUT, "T", 0, 0, 2, ("a",))
    assert (found.next_begin_offset, found.records) == (4, (log.records[0], log.records[3]))
    behind_bytes = log.records[-1].size_bytes
    assert get_message(log, LAYOUT, "T", 0, 4, 2, ("a",)) == Pulled(NO_MATCH, 5, 0, 5, (), False, behind_bytes)


@pytest.mark.parametrize(("units_max", "wanted", "looked_at"), [(3, 1, 3), (3, 5, 5), (8, 1, 6)])
def test_a_pull_looks_at_so_many_units(units_max: int, wanted: int, looked_at: int) -> None:
    layout = replace(LAYOUT, pull_units_max=units_max)
    log = tagged("b", "b", "b", "b", "b", "b")
    behind_bytes = log.end_offset - log.records[looked_at - 1].offset
    expected = Pulled(NO_MATCH, looked_at, 0, 6, (), False, behind_bytes)
    assert get_message(log, layout, "T", 0, 0, wanted, ("a",)) == expected


@pytest.mark.parametrize(("memory_bytes", "far"), [(0, 4), (92, 3), (183, 3), (184, 2), (368, 0), (1 << 40, 0)])
def test_a_message_is_in_disk_past_the_memory(memory_bytes: int, far: int) -> None:
    layout, log = replace(LAYOUT, memory_bytes=memory_bytes, memory_ratio=100), log_of(4)
    assert [is_in_disk(log, layout, record) for record in log.records] == [number < far for number in range(4)]
    assert begins_in_disk(log, layout, "T", 0) is (far > 0)
    assert begins_in_disk(log, layout, "T", 1) is False
    found = get_message(log, layout, "T", 0, 0, 1)
    assert (found.suggest_pulling_from_slave, found.behind_bytes) == (far > 1, 276)


def poisoned_log(readable: int, seen: int) -> CommitLog:
    """Return a log of `seen` dispatched records, some of which are readable.

    Their tags are a, b, a and so on.
    """
    log = CommitLog()
    for number in range(seen):
        message = message_of(properties={"TAGS": "ab"[number % 2]})
        log, _ = put(log, message, layout=LAYOUT, store_timestamp=number)
        log = flush(log)[0] if number + 1 == readable else log
    return flush(dispatch(log), sync_fails=True)[0]


@pytest.mark.parametrize(
    ("offset", "tags", "expected"),
    [
        (0, None, ("FOUND", 3, 0, 5, 3)),
        (3, None, ("OFFSET_FOUND_NULL", 3, 0, 5, 0)),
        (4, None, ("OFFSET_FOUND_NULL", 4, 0, 5, 0)),
        (5, None, ("OFFSET_OVERFLOW_ONE", 5, 0, 5, 0)),
        (1, ("b",), ("FOUND", 3, 0, 5, 1)),
        (2, ("b",), ("OFFSET_FOUND_NULL", 3, 0, 5, 0)),
    ],
)
def test_nobody_is_led_past_what_is_not_readable(
    offset: int, tags: tuple[str, ...] | None, expected: tuple[Any, ...]
) -> None:
    assert summary(get_message(poisoned_log(3, 5), LAYOUT, "T", 0, offset, 32, tags)) == expected


def test_what_a_poisoned_log_says_of_its_queue() -> None:
    log = poisoned_log(1, 3)
    assert (min_offset(log, LAYOUT, "T", 0), max_offset(log, LAYOUT, "T", 0)) == (0, 3)
    assert [store_timestamp_in_queue(log, LAYOUT, "T", 0, number) for number in (-1, 0, 1, 3)] == [None, 0, None, None]
    assert unit_at(log, LAYOUT, "T", 0, 2) == queue_of(log, LAYOUT, ("T", 0))[2]
    assert [offset_by_time(log, LAYOUT, "T", 0, time) for time in (0, 1, 2, 9)] == [{0}, {1}, {1}, {1}]
    assert earliest_message_time(log, LAYOUT) == earliest_message_time(log, LAYOUT, ("T", 0)) == 0
    nothing = poisoned_log(0, 2)
    assert earliest_message_time(nothing, LAYOUT) is earliest_message_time(nothing, LAYOUT, ("T", 0)) is None


def test_a_step_that_failed_shows_a_part_of_a_queue() -> None:
    log, _ = put_all(*[message_of()] * 2, layout=LAYOUT)
    found = [get_message(each, LAYOUT, "T", 0, 0) for each in failed_dispatch(log, LAYOUT)]
    assert [len(each.records) for each in found] == [0, 1, 2]
    assert [each.status for each in legal_answers(log, LAYOUT, "T", 0, 0)] == [UNKNOWN, EMPTY]


@given(st.integers(0, 12), st.integers(1, 5), st.lists(st.sampled_from("ab"), max_size=12), st.integers(1, 4))
def test_following_the_next_offset_brings_everything_once(start: int, wanted: int, tags: list[str], most: int) -> None:
    log, layout = tagged(*tags), replace(LAYOUT, pull_units_max=most)
    brought: list[Record] = []
    offset = min(start, len(tags))
    while offset < len(tags):
        pulled = get_message(log, layout, "T", 0, offset, wanted, ("a",))
        assert pulled.next_begin_offset > offset
        assert len(pulled.records) <= wanted
        brought += pulled.records
        offset = pulled.next_begin_offset
    expected = [record for record, tag in zip(log.records, tags, strict=True) if tag == "a"]
    assert brought == [record for record in expected if record.queue_offset >= start]


def log_at(*times: int) -> CommitLog:
    log = CommitLog()
    for time in times:
        log, _ = put(log, message_of(), layout=LAYOUT, store_timestamp=time)
    return dispatch(log)


@pytest.mark.parametrize(
    ("time", "offset"), [(-1, 0), (0, 0), (10, 0), (11, 1), (20, 1), (21, 4), (30, 4), (31, 5), (99, 5)]
)
def test_offset_of_a_time(time: int, offset: int) -> None:
    log = log_at(10, 20, 20, 20, 30)
    assert offset_by_time(log, LAYOUT, "T", 0, time) == {offset}
    assert offset_by_time(from_four_on(log), LAYOUT, "T", 0, time) == {5 if time > 30 else 4}


def test_offset_of_a_time_where_times_go_back() -> None:
    log = log_at(10, 30, 20, 40)
    assert offset_by_time(log, LAYOUT, "T", 0, 25) == {1, 3}
    assert offset_by_time(log, LAYOUT, "T", 0, 30) == {1, 3}
    assert offset_by_time(log, LAYOUT, "T", 0, 15) == {1}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(-1, 6))
def test_offset_of_a_time_is_there_and_one_if_times_are_in_order(times: list[int], time: int) -> None:
    assert offset_by_time(log_at(*times), LAYOUT, "T", 0, time)
    ordered = sorted(times)
    assert offset_by_time(log_at(*ordered), LAYOUT, "T", 0, time) == {sum(each < time for each in ordered)}


def test_single_units_and_times() -> None:
    log = log_at(10, 20)
    unit = unit_at(log, LAYOUT, "T", 0, 1)
    assert unit is not None
    assert (unit.queue_offset, unit.record) == (1, log.records[1])
    assert unit_at(log, LAYOUT, "T", 0, 2) is None
    assert [store_timestamp_in_queue(log, LAYOUT, "T", 0, number) for number in (-1, 0, 1, 2)] == [None, 10, 20, None]
    assert earliest_message_time(log, LAYOUT) == 10
    assert earliest_message_time(CommitLog(), LAYOUT) is None
