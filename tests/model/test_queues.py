"""Test consume queues in the model: members, numbers, tags codes, progress of dispatch."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.support import batch_of, layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, put
from tornpage.model.crash import crash, reopened
from tornpage.model.flushing import close, flush
from tornpage.model.queues import (
    Unit,
    dispatch,
    dispatched,
    empty_queues,
    failed_dispatch,
    java_hash,
    queue_of,
    queues_of,
    tags_code,
)
from tornpage.model.state import DELAYS_MS, Layout

LAYOUT = layout_of(file_bytes=1 << 16, multi_dispatch=True, light_queues=True)
SMALL = layout_of()
"""Two records of 92 bytes to a file of 256: records at 0, 92, 256, 348, 512."""


def numbers(log: CommitLog, layout: Layout = LAYOUT) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return (number, offset of the record in the log) of each unit of each queue."""
    return {
        queue: [(unit.queue_offset, log.records.index(unit.record)) for unit in units]
        for queue, units in queues_of(log, layout).items()
    }


def dispatched_log(*given_: Any, layout: Layout = LAYOUT) -> CommitLog:
    return dispatch(put_all(*given_, layout=layout)[0])


def code_of(topic: str, properties: Any, layout: Layout = LAYOUT, **fields: Any) -> int:
    """Return the tags code of a message that was stored at time 1."""
    log = dispatched_log(message_of(topic, properties=properties, **fields), layout=layout)
    return tags_code(log.records[0], layout)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("TagA", 2_598_919),
        ("TAG-NEG", -831_219_555),
        ("中文", 646_394),
        ("\U0001f600", 1_772_899),
        ("polygenelubricants", -(2**31)),
        ("TopicTest#k1", 2_746_024),
        ("Aa", 2_112),
        ("BB", 2_112),
    ],
)
def test_hash_of_a_java_string(text: str, code: int) -> None:
    assert java_hash(text) == code


@given(st.text(), st.text(max_size=1))
def test_hash_grows_by_one_code_unit_at_a_time(text: str, last: str) -> None:
    units = last.encode("utf-16-be")
    expected = java_hash(text)
    for start in range(0, len(units), 2):
        expected = 31 * expected + int.from_bytes(units[start : start + 2], "big")
    assert java_hash(text + last) == (expected + 2**31) % 2**32 - 2**31


def test_units_of_several_queues() -> None:
    log = dispatched_log(
        message_of("A"), message_of("B"), message_of("A", queue_id=1), message_of("A"), batch_of(b"", b"", topic="B")
    )
    assert numbers(log) == {("A", 0): [(0, 0), (1, 3)], ("B", 0): [(0, 1), (1, 4), (2, 5)], ("A", 1): [(0, 2)]}
    assert queue_of(log, LAYOUT, ("A", 0)) == (Unit(0, log.records[0], 0), Unit(1, log.records[3], 0))
    assert queue_of(log, LAYOUT, ("C", 0)) == ()


@pytest.mark.parametrize(("sys_flag", "counts"), [(0, True), (4, False), (8, True), (12, False), (0x33, True)])
def test_prepared_and_rolled_back_transactions_are_in_no_queue(sys_flag: int, counts: bool) -> None:
    naming = {"INNER_MULTI_DISPATCH": "a"}
    log = dispatched_log(message_of(sys_flag=sys_flag, properties=naming), message_of())
    expected = {("T", 0): [(0, 0), (1, 1)], ("a", 0): [(0, 0)]} if counts else {("T", 0): [(0, 1)]}
    assert numbers(log) == expected


def test_named_queues_hold_the_record_at_the_offset_noted_in_it() -> None:
    named = [{"INNER_MULTI_DISPATCH": names} for names in ("%LMQ%a,b", "b,%LMQ%a", "b")]
    log = dispatched_log(*(message_of(queue_id=3, properties=names) for names in named))
    assert numbers(log) == {
        ("T", 3): [(0, 0), (1, 1), (2, 2)],
        ("%LMQ%a", 0): [(0, 0), (1, 1)],
        ("b", 3): [(0, 0), (1, 1), (2, 2)],
    }
    assert queues_of(log, replace(LAYOUT, multi_dispatch=False)).keys() == {("T", 3)}


def test_a_queue_named_twice_or_besides_holds_a_record_once() -> None:
    log = dispatched_log(message_of(properties={"INNER_MULTI_DISPATCH": "T,a,a"}), message_of("a"))
    assert numbers(log) == {("T", 0): [(0, 0)], ("a", 0): [(0, 0), (1, 1)]}


@pytest.mark.parametrize(
    ("properties", "tag"),
    [
        ("", ""),
        ("TAGS\x01TagA", "TagA"),
        ({"TAGS": "TagA"}, "TagA"),
        ({"TAGS": ""}, ""),
        ("TAGS\x01a\x02TAGS\x01b", "b"),
        ("TAGS\x01a || b", "a || b"),
        ("tags\x01a", ""),
        ("DELAY\x010\x02TAGS\x01a", "a"),
        ("DELAY\x01-1\x02TAGS\x01a", "a"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("topic", ["T", "SCHEDULE_TOPIC_XXXX"])
def test_tags_code_is_the_hash_of_the_tag(properties: Any, tag: str, topic: str) -> None:
    assert code_of(topic, properties) == java_hash(tag)


@pytest.mark.parametrize(
    ("level", "delays_ms", "levels", "due_ms"),
    [
        ("1", (7, 9), 2, 8),
        ("2", (7, 9), 2, 10),
        ("3", (7, 9), 2, 10),
        ("2147483647", (7, 9), 2, 10),
        ("+2", (7, 9), 2, 10),
        ("3", (7, 9), 3, 1001),
        ("3", DELAYS_MS, 18, 10_001),
        ("18", DELAYS_MS, 18, 7_200_001),
    ],
)
def test_tags_code_of_a_delayed_message_is_when_it_is_due(
    level: str, delays_ms: tuple[int, ...], levels: int, due_ms: int
) -> None:
    layout = replace(LAYOUT, delays_ms=delays_ms, delay_levels=levels)
    assert code_of("T", {"DELAY": level, "TAGS": "a"}, layout) == due_ms


def test_delays_are_those_of_rocketmq() -> None:
    """1s 5s 10s 30s, 1m to 10m, 20m 30m 1h 2h."""
    minutes = [60_000 * count for count in (*range(1, 11), 20, 30, 60, 120)]
    assert [*DELAYS_MS] == [1_000, 5_000, 10_000, 30_000, *minutes]


def test_what_is_not_delayed_has_its_tag_although_it_names_a_level() -> None:
    properties = "DELAY\x011\x02TAGS\x01a"
    assert code_of("RMQ_SYS_TRANS_HALF_TOPIC", properties) == java_hash("a")
    log, _ = put_all(message_of(sys_flag=4, properties=properties), layout=LAYOUT)
    assert tags_code(log.records[0], LAYOUT) == java_hash("a")


def test_nothing_is_in_a_queue_before_it_is_dispatched() -> None:
    log, _ = put_all(message_of(), layout=LAYOUT)
    assert queues_of(log, LAYOUT) == {}
    log = dispatch(log)
    assert log.dispatched_offset == 92
    later, _ = put_all(message_of(), layout=LAYOUT, log=log)
    assert numbers(later) == {("T", 0): [(0, 0)]}
    assert dispatch(later) == dispatch(dispatch(later))


def test_dispatch_waits_for_the_commit() -> None:
    layout = layout_of(pool_buffers=1)
    log = dispatched_log(message_of(), layout=layout)
    assert (log.dispatched_offset, queues_of(log, layout)) == (0, {})
    log = dispatch(flush(log)[0])
    assert numbers(log, layout) == {("T", 0): [(0, 0)]}


def test_a_failed_sync_takes_nothing_out_of_a_queue_and_lets_nothing_in() -> None:
    log = dispatch(put_all(message_of(), layout=SMALL)[0])
    log, _ = put_all(message_of(), layout=SMALL, log=log)
    poisoned = dispatch(flush(log, sync_fails=True)[0])
    assert (poisoned.readable_end, poisoned.dispatched_offset) == (0, 92)
    assert numbers(poisoned, SMALL) == {("T", 0): [(0, 0)]}


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_whoever_opens_finds_exactly_the_survivors_dispatched(puts: int, flushed: int, seen: int) -> None:
    log = CommitLog()
    for number in range(puts):
        log, _ = put(log, message_of(queue_id=number % 2), layout=SMALL, store_timestamp=number)
        log = flush(log)[0] if number < flushed else log
        log = dispatch(log) if number < seen else log
    whole = queues_of(dispatch(log), SMALL)
    for found in (
        *crash(log, log, "power loss", layout=SMALL),
        *crash(log, log, "process kill", layout=SMALL),
        reopened(log),
    ):
        assert tuple(dispatched(found)) == found.records
        assert dispatch(found) == found
        for queue, units in whole.items():
            left = queue_of(found, SMALL, queue)
            assert left == units[: len(left)]
            assert all(unit.record not in found.records for unit in units[len(left) :])


def test_close_dispatches_what_can_be_read() -> None:
    layout = layout_of(pool_buffers=1)
    log, _ = put_all(message_of(), layout=layout)
    closed, clean = close(log)
    assert (clean, closed.dispatched_offset) == (True, 92)
    closed, clean = close(log, write_fails=True)
    assert (clean, closed.dispatched_offset) == (False, 0)
    log, _ = put_all(message_of(), layout=SMALL)
    closed, clean = close(log, sync_fails=True)
    assert (clean, closed.dispatched_offset) == (False, 92), "dispatched before the flush that failed"


def states(log: CommitLog, layout: Layout = SMALL) -> list[tuple[int, int]]:
    """Return (dispatched offset, units in queues) of each log that a failed step may leave."""
    found = failed_dispatch(log, layout)
    return [(each.dispatched_offset, sum(map(len, queues_of(each, layout).values()))) for each in found]


def test_a_step_that_the_disk_refuses_has_done_a_part() -> None:
    log, _ = put_all(*[message_of()] * 5, layout=SMALL)
    assert states(log) == [(0, 0), (0, 1), (0, 2), (256, 2), (256, 3), (256, 4), (512, 4), (512, 5)]
    assert states(dispatch(log)) == [(604, 5)]
    one = dispatch(put_all(message_of(), layout=SMALL)[0])
    assert states(put_all(message_of(), layout=SMALL, log=one)[0]) == [(92, 1), (92, 2)]


def test_the_next_step_doubles_and_loses_nothing() -> None:
    named = message_of(properties={"INNER_MULTI_DISPATCH": "a,%LMQ%b"})
    log, _ = put_all(named, message_of(), named, layout=LAYOUT)
    once = list(failed_dispatch(log, LAYOUT))
    assert [each.queued for each in once] == [*range(8)]
    for left in once:
        assert queues_of(dispatch(left), LAYOUT) == queues_of(dispatch(log), LAYOUT)
        assert [each.queued for each in failed_dispatch(left, LAYOUT)] == [*range(left.queued, 8)]
        poisoned = flush(left, sync_fails=True)[0]
        for again in (dispatch(poisoned), *failed_dispatch(poisoned, LAYOUT)):
            assert queues_of(again, LAYOUT) == queues_of(left, LAYOUT)
        for found in crash(left, left, "process kill", layout=LAYOUT):
            assert queues_of(found, LAYOUT) == queues_of(dispatch(log), LAYOUT)


def test_a_queue_may_be_known_after_its_records_were_cut() -> None:
    log = dispatched_log(message_of("A"), message_of("B"), message_of("A"))
    left = {len(each.records): each for each in crash(log, log, "power loss", layout=LAYOUT)}
    assert [empty_queues(left[count], LAYOUT) for count in range(4)] == [
        {("A", 0), ("B", 0)},
        {("B", 0)},
        frozenset(),
        frozenset(),
    ]
    assert empty_queues(reopened(left[1]), LAYOUT) == {("B", 0)}
    again, _ = put_all(message_of("B"), layout=LAYOUT, log=left[1])
    assert empty_queues(dispatch(again), LAYOUT) == frozenset()


def test_a_queue_may_be_known_whose_first_unit_was_refused() -> None:
    log, _ = put_all(message_of("A"), message_of("B"), layout=LAYOUT)
    assert empty_queues(log, LAYOUT) == {("A", 0)}
    assert [empty_queues(each, LAYOUT) for each in failed_dispatch(log, LAYOUT)] == [
        {("A", 0)},
        {("B", 0)},
        frozenset(),
    ]
    assert empty_queues(CommitLog(), LAYOUT) == frozenset()


def test_a_flag_that_forbids_writing_forbids_no_dispatch() -> None:
    log, _ = put_all(message_of(), layout=SMALL)
    assert dispatch(log.changed(flags=16)).dispatched_offset == 92
