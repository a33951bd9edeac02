"""Test the log in the model: every answer, queue offsets, roll-over, failed syncs."""

from typing import Any

import pytest

from tests.model.support import batch_of, layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, Conditions, GetStatus, PutOutcome, flush, get, put
from tornpage.model.crash import reopened
from tornpage.model.message import PutStatus

SYNC_FAILS = Conditions(sync_fails=True)
APPEND_FAILS = Conditions(append_fails=True)


def test_records_stand_one_behind_the_other() -> None:
    layout = layout_of()
    log, outcomes = put_all(*[message_of()] * 5, layout=layout)
    assert [outcome.status for outcome in outcomes] == [PutStatus.PUT_OK] * 5
    assert [record.offset for record in log.records] == [0, 92, 256, 348, 512]
    assert [record.queue_offset for record in log.records] == [0, 1, 2, 3, 4]
    assert [record.store_timestamp for record in log.records] == [1, 2, 3, 4, 5]
    assert (log.end_offset, log.flushed_offset, log.files) == (604, 0, 3)


@pytest.mark.parametrize("left", [*range(8, 24), 92, 99, 100, 101, 164])
def test_roll_over_with_every_rest(left: int) -> None:
    """With `left` bytes free, the next record of 92 stays if 8 more are free after it.

    Otherwise its file is closed.
    """
    layout = layout_of()
    log, _ = put_all(message_of(body=b"x" * (256 - left - 92)), message_of(), layout=layout)
    first, second = log.records
    assert first.end_offset == 256 - left
    assert second.offset == (256 - left if left >= 100 else 256)
    assert log.files == (1 if left >= 100 else 2)


@pytest.mark.parametrize("left", range(8))
def test_fewer_than_eight_bytes_are_never_left(left: int) -> None:
    log, outcomes = put_all(message_of(body=b"x" * (256 - left - 92)), layout=layout_of())
    assert outcomes == [PutOutcome(PutStatus.MESSAGE_ILLEGAL)]
    assert log == CommitLog()


def test_queue_offsets_are_counted_by_topic_and_queue() -> None:
    names = ("A0", "A1", "B0", "A0", "B0", "A1", "A0")
    messages = [message_of(name[0], queue_id=int(name[1])) for name in names]
    log, _ = put_all(*messages, layout=layout_of())
    assert [record.queue_offset for record in log.records] == [0, 0, 0, 1, 1, 1, 2]


def test_transactions_take_no_queue_offset() -> None:
    log, _ = put_all(*[message_of(sys_flag=flag) for flag in (0, 4, 0, 12, 8)], layout=layout_of())
    assert [record.queue_offset for record in log.records] == [0, 0, 1, 0, 2]


@pytest.mark.parametrize(
    ("fields", "layout_fields", "status"),
    [
        ({"topic": ""}, {}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "x" * 32_768}, {}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"body": b"x" * 9}, {"record_bytes_max": 100}, PutStatus.MESSAGE_ILLEGAL),
        ({"body": b"x" * 157}, {}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"trailer": True, "record_bytes_max": 111}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"files_max": 1}, PutStatus.CREATE_MAPEDFILE_FAILED),
    ],
)
def test_refused_put_changes_nothing(fields: dict[str, Any], layout_fields: dict[str, Any], status: PutStatus) -> None:
    log, _ = put_all(message_of(), message_of(), layout=layout_of())
    assert put(log, message_of(**fields), layout=layout_of(**layout_fields), store_timestamp=9) == (
        log,
        PutOutcome(status),
    )


@pytest.mark.parametrize(
    ("fields", "layout_fields"),
    [({"body": b"x" * 8}, {"record_bytes_max": 100}), ({"body": b"x" * 156}, {}), ({}, {"files_max": 2})],
)
def test_put_at_the_limit_is_taken(fields: dict[str, Any], layout_fields: dict[str, Any]) -> None:
    log, _ = put_all(message_of(), message_of(), layout=layout_of())
    _, outcome = put(log, message_of(**fields), layout=layout_of(**layout_fields), store_timestamp=9)
    assert outcome.status is PutStatus.PUT_OK


def test_no_room_for_a_file_leaves_the_rest_of_the_last_one() -> None:
    layout = layout_of(files_max=1)
    log, _ = put_all(message_of(), layout=layout)
    log, refused = put(log, message_of(body=b"x" * 100), layout=layout, store_timestamp=2)
    assert refused.status is PutStatus.CREATE_MAPEDFILE_FAILED
    log, taken = put(log, message_of(), layout=layout, store_timestamp=3)
    assert taken.record is not None
    assert taken.record.offset == 92


@pytest.mark.parametrize(
    ("sync_flush", "properties", "flushed"),
    [(False, "", 0), (True, "", 92), (True, "WAIT\x01false", 0), (True, "WAIT\x01true", 101)],
)
def test_how_far_a_put_promises_the_disk(sync_flush: bool, properties: str, flushed: int) -> None:
    log, outcomes = put_all(message_of(properties=properties), layout=layout_of(sync_flush=sync_flush))
    assert outcomes[0].status is PutStatus.PUT_OK
    assert log.flushed_offset == flushed


def test_failed_sync_is_a_time_out_then_no_service() -> None:
    layout = layout_of(sync_flush=True)
    log, _ = put_all(message_of(), layout=layout)
    log, outcome = put(log, message_of(), layout=layout, store_timestamp=2, conditions=SYNC_FAILS)
    assert outcome.status is PutStatus.FLUSH_DISK_TIMEOUT
    assert outcome.record is not None
    assert (log.poisoned, log.flushed_offset, log.end_offset, log.readable_end) == (True, 92, 184, 92)
    assert put(log, message_of(), layout=layout, store_timestamp=3) == (
        log,
        PutOutcome(PutStatus.SERVICE_NOT_AVAILABLE),
    )
    assert flush(log) == (log, False)
    assert get(log, 0)[0] is GetStatus.FOUND
    assert get(log, 92)[0] is GetStatus.OFFSET_OVERFLOW_ONE
    assert get(log, 93)[0] is GetStatus.OFFSET_OVERFLOW_BADLY


def test_refusal_comes_after_no_service() -> None:
    log = CommitLog(poisoned=True)
    assert put(log, message_of(""), layout=layout_of(), store_timestamp=1)[1].status is (
        PutStatus.SERVICE_NOT_AVAILABLE
    )


@pytest.mark.parametrize("puts", [0, 2])
def test_failed_sync_of_a_new_file_refuses_the_put_and_poisons_nothing(puts: int) -> None:
    layout = layout_of(sync_flush=True)
    log, _ = put_all(*[message_of()] * puts, layout=layout)
    assert put(log, message_of(), layout=layout, store_timestamp=9, conditions=SYNC_FAILS) == (
        log,
        PutOutcome(PutStatus.CREATE_MAPEDFILE_FAILED),
    )


def test_a_sync_that_would_fail_is_not_met_by_an_async_put() -> None:
    layout = layout_of()
    log, _ = put_all(message_of(), layout=layout)
    log, outcome = put(log, message_of(), layout=layout, store_timestamp=2, conditions=SYNC_FAILS)
    assert outcome.status is PutStatus.PUT_OK
    assert not log.poisoned


def test_flush_covers_everything_appended() -> None:
    log, _ = put_all(*[message_of()] * 3, layout=layout_of())
    flushed, durable = flush(log)
    assert durable
    assert flushed.flushed_offset == flushed.end_offset == 348
    assert flush(flushed, sync_fails=True) == (flushed, True), "nothing to sync, nothing to fail"
    poisoned, durable = flush(log, sync_fails=True)
    assert (poisoned.poisoned, durable, poisoned.flushed_offset) == (True, False, 0)


@pytest.mark.parametrize(
    ("offset", "status"),
    [
        (-1, GetStatus.OFFSET_TOO_SMALL),
        (0, GetStatus.FOUND),
        (1, GetStatus.OFFSET_FOUND_NULL),
        (92, GetStatus.FOUND),
        (184, GetStatus.OFFSET_FOUND_NULL),
        (256, GetStatus.FOUND),
        (348, GetStatus.OFFSET_OVERFLOW_ONE),
        (349, GetStatus.OFFSET_OVERFLOW_BADLY),
    ],
)
def test_get(offset: int, status: GetStatus) -> None:
    log, _ = put_all(*[message_of()] * 3, layout=layout_of())
    found, record = get(log, offset)
    assert found is status
    assert (record is not None) is (status is GetStatus.FOUND)
    assert record is None or record.offset == offset


def test_get_from_an_empty_log() -> None:
    assert get(CommitLog(), 0) == (GetStatus.OFFSET_OVERFLOW_ONE, None)


def test_reopen_makes_everything_durable_and_keeps_it() -> None:
    log, _ = put_all(*[message_of()] * 3, layout=layout_of())
    again = reopened(log)
    assert (again.records, again.flushed_offset, again.dispatched_offset) == (log.records, 348, 348)


def test_a_step_never_changes_its_input() -> None:
    log, _ = put_all(*[message_of()] * 3, layout=layout_of())
    before = (log.records, log.end_offset, log.flushed_offset, log.files, log.poisoned)
    put(log, message_of(), layout=layout_of(sync_flush=True), store_timestamp=9)
    flush(log)
    get(log, 0)
    reopened(log)
    assert before == (log.records, log.end_offset, log.flushed_offset, log.files, log.poisoned)


def test_body_none_is_stored_empty() -> None:
    log, _ = put_all(message_of(body=None), layout=layout_of())
    assert [(record.message.body, record.size_bytes) for record in log.records] == [(b"", 92)]


def test_bytes_refused_by_the_file_in_use_change_nothing() -> None:
    layout = layout_of(sync_flush=True)
    log, _ = put_all(message_of(), layout=layout)
    assert put(log, message_of(), layout=layout, store_timestamp=2, conditions=APPEND_FAILS) == (
        log,
        PutOutcome(PutStatus.UNKNOWN_ERROR),
    )


@pytest.mark.parametrize(("puts", "end_offset", "files"), [(0, 0, 1), (2, 256, 2), (4, 512, 3)])
@pytest.mark.parametrize("given", [message_of(), batch_of(b"", b"")], ids=["message", "batch"])
def test_bytes_refused_by_a_new_file_leave_the_file(puts: int, end_offset: int, files: int, given: Any) -> None:
    layout = layout_of()
    log, _ = put_all(*[message_of()] * puts, layout=layout)
    after, outcome = put(log, given, layout=layout, store_timestamp=9, conditions=APPEND_FAILS)
    assert outcome == PutOutcome(PutStatus.UNKNOWN_ERROR)
    assert (after.records, after.end_offset, after.files) == (log.records, end_offset, files)
    again, outcome = put(after, given, layout=layout, store_timestamp=9)
    assert outcome.status is PutStatus.PUT_OK
    assert outcome.record is not None
    assert (outcome.record.offset, outcome.record.queue_offset, again.files) == (end_offset, puts, files)


def test_a_file_that_cannot_be_made_refuses_no_bytes() -> None:
    """Without the file no call can refuse them."""
    log, _ = put_all(message_of(), message_of(), layout=layout_of())
    for layout, sync_fails in ((layout_of(files_max=1), False), (layout_of(), True)):
        conditions = Conditions(sync_fails=sync_fails, append_fails=True)
        assert put(log, message_of(), layout=layout, store_timestamp=9, conditions=conditions) == (
            log,
            PutOutcome(PutStatus.CREATE_MAPEDFILE_FAILED),
        )


def test_refused_bytes_are_no_failed_sync() -> None:
    layout = layout_of(sync_flush=True)
    log, _ = put_all(message_of(), layout=layout)
    conditions = Conditions(sync_fails=True, append_fails=True)
    assert put(log, message_of(), layout=layout, store_timestamp=2, conditions=conditions) == (
        log,
        PutOutcome(PutStatus.UNKNOWN_ERROR),
    )


def test_flags_end_with_the_process() -> None:
    assert reopened(CommitLog(flags=16)) == CommitLog()


def test_every_status_of_the_model_is_known_here() -> None:
    """The tables of these tests name each status; a new one needs a row."""
    assert {status.name for status in PutStatus} == {
        "PUT_OK",
        "FLUSH_DISK_TIMEOUT",
        "FLUSH_SLAVE_TIMEOUT",
        "SLAVE_NOT_AVAILABLE",
        "SERVICE_NOT_AVAILABLE",
        "CREATE_MAPEDFILE_FAILED",
        "MESSAGE_ILLEGAL",
        "PROPERTIES_SIZE_EXCEEDED",
        "OS_PAGECACHE_BUSY",
        "UNKNOWN_ERROR",
        "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
    }
