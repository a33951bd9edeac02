"""Test the answers of disk and replica: each combination, and puts settled later."""

from typing import Any

import pytest

from tests.model.support import batch_of, layout_of, message_of, put_all
from tornpage.model.commitlog import Appended, CommitLog, Conditions, PutOutcome, append, flush, put, settle
from tornpage.model.message import PutStatus

OK, TIMEOUT = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT
NO_SLAVE, SLAVE_TIMEOUT = PutStatus.SLAVE_NOT_AVAILABLE, PutStatus.FLUSH_SLAVE_TIMEOUT


@pytest.mark.parametrize("given", [message_of(), batch_of(b"", properties={"WAIT": "TRUE"})], ids=["message", "batch"])
@pytest.mark.parametrize(
    ("role", "replica", "status"),
    [
        ("ASYNC_MASTER", "none", OK),
        ("ASYNC_MASTER", "silent", OK),
        ("ASYNC_MASTER", "behind", OK),
        ("SYNC_MASTER", "confirms", OK),
        ("SYNC_MASTER", "silent", SLAVE_TIMEOUT),
        ("SYNC_MASTER", "behind", NO_SLAVE),
        ("SYNC_MASTER", "none", NO_SLAVE),
    ],
)
@pytest.mark.parametrize(("sync_flush", "sync_fails"), [(False, False), (False, True), (True, False), (True, True)])
def test_disk_then_replica(
    given: Any, role: str, replica: Any, status: PutStatus, sync_flush: bool, sync_fails: bool
) -> None:
    """The replica's answer hides the disk's.

    The record is there in any case, and the log has the disk's result.
    """
    log, _ = put_all(message_of(), layout=layout_of())
    log, _ = flush(log)
    after, outcome = put(
        log,
        given,
        layout=layout_of(sync_flush=sync_flush, role=role),
        store_timestamp=2,
        conditions=Conditions(sync_fails=sync_fails, replica=replica),
    )
    disk_failed = sync_flush and sync_fails
    assert outcome.status is (TIMEOUT if disk_failed and status is OK else status)
    assert outcome.records == after.records[1:]
    assert after.poisoned is disk_failed
    assert after.flushed_offset == (after.end_offset if sync_flush and not sync_fails else 92)


@pytest.mark.parametrize("given", [message_of(properties="WAIT\x01no"), batch_of(b"", properties="WAIT\x01no")])
@pytest.mark.parametrize("replica", ["confirms", "silent", "behind", "none"])
def test_who_does_not_wait_hears_nothing_of_disk_and_replica(given: Any, replica: Any) -> None:
    layout = layout_of(sync_flush=True, role="SYNC_MASTER")
    log, _ = put_all(message_of(), layout=layout_of())
    conditions = Conditions(sync_fails=True, replica=replica)
    after, outcome = put(log, given, layout=layout, store_timestamp=1, conditions=conditions)
    assert outcome.status is OK
    assert (after.flushed_offset, after.poisoned) == (0, False)


@pytest.mark.parametrize(
    "status", [PutStatus.MESSAGE_ILLEGAL, PutStatus.UNKNOWN_ERROR, PutStatus.CREATE_MAPEDFILE_FAILED]
)
def test_a_refusal_is_final(status: PutStatus) -> None:
    layout = layout_of(sync_flush=True, role="SYNC_MASTER")
    log, _ = put_all(message_of(), layout=layout_of())
    conditions = Conditions(sync_fails=True)
    assert settle(log, Appended(status), layout=layout, conditions=conditions) == (log, PutOutcome(status))


def test_append_says_nothing_of_disk_and_replica() -> None:
    layout = layout_of(sync_flush=True, role="SYNC_MASTER")
    log, appended = append(CommitLog(), message_of(), layout=layout, store_timestamp=1)
    assert appended == Appended(OK, log.records, waits=True)
    assert log.flushed_offset == 0


def test_one_sync_settles_everything_appended_before() -> None:
    layout = layout_of(sync_flush=True)
    log, first = append(CommitLog(), message_of(), layout=layout, store_timestamp=1)
    log, second = append(log, message_of(), layout=layout, store_timestamp=2)
    log, outcome = settle(log, second, layout=layout)
    assert (outcome.status, log.flushed_offset) == (OK, 184)
    log, _ = append(log, message_of(), layout=layout, store_timestamp=3)
    after, outcome = settle(log, first, layout=layout, conditions=Conditions(sync_fails=True))
    assert outcome.status is OK, "nothing of it was left to sync"
    assert after == log


def test_a_failed_sync_fails_everything_that_waits_behind_it() -> None:
    layout = layout_of(sync_flush=True)
    log, first = append(CommitLog(), message_of(), layout=layout, store_timestamp=1)
    log, second = append(log, message_of(), layout=layout, store_timestamp=2)
    log, outcome = settle(log, first, layout=layout, conditions=Conditions(sync_fails=True))
    assert outcome.status is TIMEOUT
    log, outcome = settle(log, second, layout=layout)
    assert (outcome.status, outcome.records) == (TIMEOUT, second.records)
    assert (log.poisoned, log.flushed_offset) == (True, 0)
    assert append(log, message_of(), layout=layout, store_timestamp=3) == (
        log,
        Appended(PutStatus.SERVICE_NOT_AVAILABLE),
    )


def test_record_of_an_outcome() -> None:
    _, outcome = put(CommitLog(), batch_of(b"", b"x"), layout=layout_of(), store_timestamp=1)
    assert outcome.record == outcome.records[0]
    assert PutOutcome(PutStatus.MESSAGE_ILLEGAL).record is None
