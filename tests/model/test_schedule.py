"""Test delivery in the model: copies, times, and saved progress."""

from dataclasses import replace

import pytest

from tests.model.support import layout_of, message_of
from tornpage.model.commitlog import put
from tornpage.model.crash import crash, opened_without_queues, reopened
from tornpage.model.delay import copy_of, copy_refusal
from tornpage.model.flushing import close, flush
from tornpage.model.message import Message, PutStatus
from tornpage.model.queues import dispatch
from tornpage.model.schedule import (
    deliver_round,
    earliest_due,
    left_out,
    loaded,
    opened,
    passed_by,
    save_round,
)
from tornpage.model.state import CommitLog, Conditions, Delivery, Layout

LAYOUT = layout_of(file_bytes=4096, delays_ms=(1000, 2000), delay_levels=2)


def waiting(*levels: int, layout: Layout = LAYOUT) -> CommitLog:
    """Return a log with one message of each level, stored at time 0, dispatched."""
    log = CommitLog()
    for level in levels:
        message = message_of(properties=f"DELAY\x01{level}")
        log, outcome = put(log, message, layout=layout, store_timestamp=0)
        assert outcome.records
    return dispatch(log)


def delivered(log: CommitLog, now_ms: int) -> CommitLog:
    return deliver_round(log, layout=LAYOUT, now_ms=now_ms)[0]


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_a_copy_has_neither_delay_nor_wait_and_goes_where_its_message_was_for() -> None:
    stored = message_of(
        "SCHEDULE_TOPIC_XXXX",
        properties="WAIT\x01true\x02DELAY\x012\x02TAGS\x01a\x02REAL_TOPIC\x01T\x02REAL_QID\x017",
        prepared_transaction_offset=5,
    )
    copy = copy_of(stored)
    assert copy == replace(
        stored, topic="T", queue_id=7, properties="TAGS\x01a\x02REAL_TOPIC\x01T\x02REAL_QID\x017",
        prepared_transaction_offset=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "REAL_TOPIC\x01T\x02REAL_QID\x010",
        "DELAY\x010\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
        "DELAY\x01x\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
        "DELAY\x011\x02REAL_QID\x010",
        "DELAY\x011\x02REAL_TOPIC\x01T",
        "DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01-1",
        "DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x012147483648",
        "DELAY\x011\x02REAL_TOPIC\x01a/b\x02REAL_QID\x010",
        "DELAY\x011\x02REAL_TOPIC\x01RMQ_SYS_TRANS_HALF_TOPIC\x02REAL_QID\x010",
        "DELAY\x011\x02REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_QID\x010",
    ],
)
def test_what_is_no_delayed_message_has_no_copy(properties: str) -> None:
    assert copy_of(message_of("SCHEDULE_TOPIC_XXXX", properties=properties)) is None


def test_a_message_is_refused_for_its_copy() -> None:
    def refused(given: Message, **fields: int) -> PutStatus | None:
        layout = layout_of(file_bytes=4096, multi_dispatch=True, light_queues=True, **fields)
        log, outcome = put(CommitLog(), given, layout=layout, store_timestamp=0)
        assert bool(outcome.records) is (outcome.status is PutStatus.PUT_OK)
        assert log.records == outcome.records
        return None if outcome.records else outcome.status

    long = message_of("t" * 127, properties="DELAY\x011")
    stored_bytes, copy_bytes = 92 + 18 + 7 + 139 + 11, 91 + 127 + 138 + 11
    assert stored_bytes < copy_bytes
    assert refused(long, record_bytes_max=copy_bytes) is None
    assert refused(long, record_bytes_max=copy_bytes - 1) is PutStatus.MESSAGE_ILLEGAL
    assert refused(message_of("a\x02b", properties="DELAY\x011")) is PutStatus.MESSAGE_ILLEGAL
    named = "INNER_MULTI_DISPATCH\x01a/b\x02DELAY\x011"
    assert refused(message_of(properties=named)) is PutStatus.MESSAGE_ILLEGAL


def test_rocketmq_asks_for_no_copy() -> None:
    given = message_of("a\x02b", properties="DELAY\x011")
    stored = message_of("SCHEDULE_TOPIC_XXXX", properties="DELAY\x011\x02REAL_TOPIC\x01a")
    assert copy_refusal(given, stored, layout=LAYOUT) is PutStatus.MESSAGE_ILLEGAL
    assert copy_refusal(given, stored, layout=replace(LAYOUT, java_delays=True)) is None


# ---- rounds ----------------------------------------------------------------------------------------------------------


def test_nothing_comes_before_it_is_due_and_everything_when_it_is() -> None:
    log = waiting(1, 1, 2)
    assert earliest_due(log, LAYOUT) == 1000
    same, outcome = deliver_round(log, layout=LAYOUT, now_ms=999)
    assert (same, outcome.due_ms) == (log, 1000)
    log, outcome = deliver_round(log, layout=LAYOUT, now_ms=1000)
    assert [record.message.topic for record in outcome.records] == ["T", "T"]
    assert (log.delays, outcome.due_ms) == (((1, 2),), 2000)
    log, outcome = deliver_round(log, layout=LAYOUT, now_ms=2000)
    assert (log.delays, outcome.due_ms) == (((1, 2), (2, 1)), None)


def test_a_round_looks_again_after_a_second_and_delivers_so_many() -> None:
    layout = replace(LAYOUT, file_bytes=1 << 16, delays_ms=(5000, 9000))
    log, outcome = deliver_round(waiting(1, layout=layout), layout=layout, now_ms=0)
    assert outcome.due_ms == 1000
    log, outcome = deliver_round(waiting(*(1,) * 65, layout=layout), layout=layout, now_ms=5000)
    assert (log.delays, outcome.due_ms, len(outcome.records)) == (((1, 64),), 5000, 64)


def test_a_clock_that_goes_back_makes_nothing_due() -> None:
    log = waiting(1)
    assert deliver_round(log, layout=LAYOUT, now_ms=-10_000)[0] == log


def test_a_copy_that_is_refused_for_now_is_tried_again_and_holds_up_no_other_level() -> None:
    log, outcome = deliver_round(waiting(1, 2), layout=LAYOUT, now_ms=2000, conditions=Conditions(append_fails=True))
    assert (log.delays, outcome.refused, outcome.due_ms) == (((2, 1),), 1, 2100)
    assert delivered(log, 2100).delays == ((1, 1), (2, 1))


def test_what_is_no_waiting_message_is_passed_by() -> None:
    log, _ = put(CommitLog(), message_of("SCHEDULE_TOPIC_XXXX"), layout=LAYOUT, store_timestamp=0)
    log, outcome = deliver_round(dispatch(log), layout=LAYOUT, now_ms=0)
    assert (log.delays, outcome.skipped, outcome.records) == (((1, 1),), 1, ())


def test_what_has_expired_is_not_waited_for() -> None:
    log = waiting(1, 1)
    log = log.changed(min_offset=log.records[1].offset, delays=((1, 0),))
    assert delivered(log, 1000).delays == ((1, 2),)


# ---- saved offsets -------------------------------------------------------------------------------------------------


def test_a_save_makes_the_copies_durable_first_or_saves_nothing() -> None:
    log = delivered(waiting(1), 1000)
    saved, is_saved = save_round(log, now_ms=0)
    assert is_saved
    assert (saved.saved_delays, saved.flushed_offset) == (((1, 1),), log.end_offset)
    failed, is_saved = save_round(log, now_ms=0, sync_fails=True)
    assert not is_saved
    assert (failed.saved_delays, failed.poisoned) == ((), True)
    assert save_round(saved, now_ms=9_999)[0] == saved


def test_a_power_loss_leaves_no_saved_progress_without_its_copy() -> None:
    log = delivered(waiting(1, 1), 1000)
    saved, _ = save_round(log, now_ms=0)
    for before in (log, saved):
        for left in crash(before, saved, "power loss", layout=LAYOUT):
            table = left.changed(saved_delays=before.saved_delays)
            assert left_out(opened(table, layout=LAYOUT), layout=LAYOUT) == []
    cut = next(crash(log, log, "power loss", layout=LAYOUT))
    assert cut.delivered == ()
    assert loaded(cut, ((1, 2), (7, 3)), layout=LAYOUT) == ((1, 0), (7, 0))


def test_after_a_clean_exit_nothing_is_delivered_twice() -> None:
    log, clean = close(delivered(waiting(1, 2), 1000))
    assert clean
    assert log.saved_delays == log.delays == ((1, 1),)
    assert deliver_round(reopened(log), layout=LAYOUT, now_ms=1000)[1].records == ()


def test_progress_that_somebody_else_has_written_is_brought_back_to_the_queue() -> None:
    log = flush(waiting(1, 1))[0]
    there = opened(log.changed(saved_delays=((1, 5),)), layout=LAYOUT)
    assert there.delays == there.saved_delays == ((1, 2),)
    assert left_out(there, layout=LAYOUT) == [(1, 0), (1, 1)]
    assert left_out(passed_by(there, layout=LAYOUT), layout=LAYOUT) == []
    slave = replace(LAYOUT, role="SLAVE")
    assert opened(log.changed(saved_delays=((1, 5),)), layout=slave).saved_delays == ((1, 5),)


def test_a_delivery_is_known_by_the_end_of_its_copy() -> None:
    log = delivered(waiting(1), 1000)
    assert log.delivered == (Delivery(1, 0, log.end_offset),)


@pytest.mark.parametrize(("number", "is_legal"), [(0, False), (1, True), (2, True), (3, False)])
def test_progress_of_a_queue_that_came_late_is_between_the_saved_and_the_first_number(
    number: int, is_legal: bool
) -> None:
    log = waiting(1, 1, 1, 1)
    expired = log.changed(min_offset=log.records[2].offset, saved_delays=((1, 1),))
    assert opened(expired, layout=LAYOUT).delays == ((1, 2),)
    found = opened_without_queues(expired, ((1, number),), layout=LAYOUT)
    assert found.delays == (((1, number),) if is_legal else ((1, 2),))
    other = opened_without_queues(expired, ((2, number),), layout=LAYOUT)
    assert other.delays == ((1, 2),)
