"""Test files made ahead in the model: requests, makers, failures, and files left at close."""

from dataclasses import replace

from tests.model.support import layout_of, message_of
from tornpage.model.commitlog import CommitLog, Conditions, allocate_round, put
from tornpage.model.flushing import close
from tornpage.model.message import PutStatus
from tornpage.model.state import Layout

AHEAD = layout_of(files_ahead=1)
SYNC_FAILS = Conditions(sync_fails=True)
LARGE = message_of(body=bytes(100))


def put_one(
    log: CommitLog, *, layout: Layout = AHEAD, conditions: Conditions = SYNC_FAILS, now_ms: int = 0
) -> tuple[CommitLog, PutStatus]:
    """Put a message that needs a new file, on a disk where making it fails."""
    log, outcome = put(log, LARGE, layout=layout, store_timestamp=now_ms, conditions=conditions)
    return log, outcome.status


def state(log: CommitLog) -> tuple[int, int, int]:
    return log.files, log.prepared, log.asked


def test_a_put_makes_its_own_file_and_asks_for_the_next() -> None:
    log, status = put_one(CommitLog(), conditions=Conditions())
    assert (status, state(log)) == (PutStatus.PUT_OK, (1, 0, 1))
    log, made = allocate_round(log, layout=AHEAD, now_ms=0)
    assert (made, state(log)) == (True, (1, 1, 1))
    assert allocate_round(log, layout=AHEAD, now_ms=0) == (log, False)


def test_a_prepared_file_needs_no_sync_and_no_room() -> None:
    log, _ = put_one(CommitLog(), conditions=Conditions())
    log, _ = allocate_round(log, layout=AHEAD, now_ms=0)
    full = replace(AHEAD, files_max=2)
    after, status = put_one(log, layout=full)
    assert (status, state(after), after.end_offset) == (PutStatus.PUT_OK, (2, 0, 1), 256 + 192)


def test_without_files_ahead_nothing_is_asked_for() -> None:
    layout = layout_of()
    log, _ = put_one(CommitLog(), layout=layout, conditions=Conditions())
    assert state(log) == (1, 0, 0)
    failed, status = put_one(log, layout=layout)
    assert (status, failed) == (PutStatus.CREATE_MAPEDFILE_FAILED, log)
    assert allocate_round(failed, layout=layout, now_ms=9_999) == (failed, False)


def test_a_failure_costs_the_put_that_waits_and_is_tried_again_by_the_next_one_at_once() -> None:
    failed, status = put_one(CommitLog(), now_ms=50)
    assert (status, state(failed), failed.retry_ms, failed.end_offset) == (
        PutStatus.CREATE_MAPEDFILE_FAILED, (0, 0, 2), 1_050, 0
    )  # fmt: skip
    log, status = put_one(failed, conditions=Conditions(), now_ms=51)
    assert (status, state(log)) == (PutStatus.PUT_OK, (1, 0, 1))


def test_the_service_tries_again_after_a_second() -> None:
    log, _ = put_one(CommitLog(), conditions=Conditions())
    for trouble in (SYNC_FAILS, Conditions(no_room=True)):
        failed, made = allocate_round(log, layout=AHEAD, now_ms=100, conditions=trouble)
        assert (made, state(failed), failed.retry_ms) == (False, (1, 0, 1), 1_100)
        assert allocate_round(failed, layout=AHEAD, now_ms=1_099) == (failed, False)
        again, made = allocate_round(failed, layout=AHEAD, now_ms=1_100)
        assert (made, state(again)) == (True, (1, 1, 1))


def test_prepared_files_count_as_room_that_is_gone() -> None:
    layout = layout_of(files_ahead=2, files_max=3)
    log, _ = put_one(CommitLog(), layout=layout, conditions=Conditions())
    for expected in ((1, 1, 2), (1, 2, 2), (1, 2, 2)):
        log, _ = allocate_round(log, layout=layout, now_ms=0)
        assert state(log) == expected
    log, status = put_one(log, layout=layout)
    assert (status, state(log)) == (PutStatus.PUT_OK, (2, 1, 2))
    log, made = allocate_round(log, layout=layout, now_ms=0)
    assert not made


def test_a_close_removes_what_was_not_used() -> None:
    log, _ = put_one(CommitLog(), conditions=Conditions())
    log, _ = allocate_round(log, layout=AHEAD, now_ms=0)
    after, clean = close(log)
    assert (clean, state(after)) == (True, (1, 0, 0))
