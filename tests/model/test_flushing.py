"""Test flushes in the model: of everything, by the timer, at close; and the checkpoint.

Waiting puts are answered.
"""

from dataclasses import replace

import pytest

from tests.model.support import layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, Conditions, wait_for
from tornpage.model.commitlog import append as append_to
from tornpage.model.crash import reopened
from tornpage.model.flushing import (
    checkpoint_times,
    close,
    flush,
    flush_round,
    index_checkpoint_times,
    note_round,
    queue_checkpoint_times,
)
from tornpage.model.message import PutStatus
from tornpage.model.queues import dispatch
from tornpage.model.state import Layout
from tornpage.model.waiting import Waiting, flushed, given_up, late

PAGES = layout_of(file_bytes=16_384, least_pages=2)
SYNC_MASTER = layout_of(sync_flush=True, role="SYNC_MASTER")


def log_of(*bodies_bytes: int, layout: Layout = PAGES, log: CommitLog | None = None) -> CommitLog:
    """Return a log of records, each of 92 bytes plus its body."""
    return put_all(*[message_of(body=bytes(size)) for size in bodies_bytes], layout=layout, log=log)[0]


# ---- the timer -------------------------------------------------------------------------------------------------------


def test_the_first_round_is_thorough_then_one_in_ten_seconds() -> None:
    log, first = flush_round(log_of(0), layout=PAGES, now_ms=100)
    assert (first.thorough, first.moved, log.flushed_offset, log.flushed_ms) == (True, True, 92, 100)
    log, soon = flush_round(log_of(0, log=log), layout=PAGES, now_ms=10_099)
    assert (soon.thorough, soon.moved, soon.left_alone, log.flushed_offset) == (False, False, True, 92)
    log, later = flush_round(log, layout=PAGES, now_ms=10_100)
    assert (later.thorough, later.moved, log.flushed_offset, log.flushed_ms) == (True, True, 184, 10_100)
    _, idle = flush_round(log, layout=PAGES, now_ms=10_600)
    assert (idle.moved, idle.left_alone) == (False, False)


@pytest.mark.parametrize(
    ("before", "more", "flushed_offset"),
    [
        (0, 8_192 - 184, 8_192),
        (0, 8_192 - 185, 92),
        (4_096 - 92, 8_192 - 92, 12_288 + 92 - 92),
        (4_095 - 92, 4_097 + 4_096 - 93, 4_095 + 4_097 + 4_096 - 1),
    ],
)
def test_the_page_rule_counts_the_boundaries_that_were_crossed(before: int, more: int, flushed_offset: int) -> None:
    log, _ = flush_round(log_of(before), layout=PAGES, now_ms=0)
    log, done = flush_round(log_of(more, log=log), layout=PAGES, now_ms=500)
    assert not done.thorough
    assert log.flushed_offset == flushed_offset


def test_a_full_file_never_waits_and_the_file_behind_it_goes_by_the_rule() -> None:
    log, _ = flush_round(log_of(0), layout=PAGES, now_ms=0)
    log, done = flush_round(log_of(12_000, 5_000, log=log), layout=PAGES, now_ms=500)
    assert (done.thorough, done.moved, done.left_alone, log.flushed_offset) == (False, True, True, 16_384)
    log, done = flush_round(log_of(4_000, log=log), layout=PAGES, now_ms=1_000)
    assert log.flushed_offset == log.end_offset


def test_least_pages_of_zero_make_every_round_thorough() -> None:
    layout = replace(PAGES, least_pages=0)
    log, _ = flush_round(log_of(0), layout=layout, now_ms=0)
    log, done = flush_round(log_of(0, log=log), layout=layout, now_ms=1)
    assert (done.thorough, log.flushed_offset) == (True, 184)


def test_the_timer_flushes_no_more_than_is_committed() -> None:
    layout = replace(PAGES, pool_buffers=1)
    log, done = flush_round(log_of(0, layout=layout), layout=layout, now_ms=0)
    assert (done.moved, done.left_alone, log.flushed_offset) == (False, False, 0)


def test_a_sync_that_fails_under_the_timer_poisons() -> None:
    log, done = flush_round(log_of(0), layout=PAGES, now_ms=0, sync_fails=True)
    assert (done.moved, log.poisoned, log.flushed_offset, log.readable_end) == (False, True, 0, 0)
    assert flush_round(log, layout=PAGES, now_ms=60_000)[0] == log
    assert flush_round(CommitLog(), layout=PAGES, now_ms=0, sync_fails=True)[0].poisoned is False


# ---- flush and close -------------------------------------------------------------------------------------------------


def test_a_flush_commits_first_and_says_so_when_it_could_not() -> None:
    layout = replace(PAGES, pool_buffers=1)
    log = log_of(0, 0, layout=layout)
    failed, durable = flush(log, write_fails=True)
    assert (failed, durable) == (log, False)
    done, durable = flush(failed)
    assert (done.flushed_offset, done.committed_offset, durable) == (184, 184, True)


def test_a_poisoned_log_still_commits() -> None:
    layout = replace(PAGES, pool_buffers=1)
    log, durable = flush(log_of(0, layout=layout).changed(poisoned=True))
    assert (durable, log.committed_offset, log.flushed_offset, log.readable_end) == (False, 92, 0, 0)


@pytest.mark.parametrize(
    ("faults", "clean", "poisoned", "flushed_offset"),
    [
        ({}, True, False, 92),
        ({"sync_fails": True}, False, True, 0),
        ({"write_fails": True}, False, False, 0),
        ({"sync_fails": True, "write_fails": True}, False, False, 0),
    ],
)
def test_a_close_is_clean_when_all_is_durable(
    faults: dict[str, bool], clean: bool, poisoned: bool, flushed_offset: int
) -> None:
    layout = replace(PAGES, pool_buffers=1)
    log = log_of(0, layout=layout).changed(prepared=1, asked=2)
    after, was_clean = close(log, **faults)
    assert (was_clean, after.poisoned, after.flushed_offset) == (clean, poisoned, flushed_offset)
    assert (after.prepared, after.asked) == (0, 0)


# ---- checkpoint ------------------------------------------------------------------------------------------------------


def test_the_checkpoint_is_written_first_and_then_once_a_minute() -> None:
    log, first = note_round(CommitLog(), layout=PAGES, now_ms=5)
    _, soon = note_round(log, layout=PAGES, now_ms=60_004)
    _, later = note_round(log, layout=PAGES, now_ms=60_005)
    assert (first, soon, later) == (True, False, True)


def test_the_checkpoint_never_says_too_much_and_is_exact_when_all_is_durable() -> None:
    log = log_of(0, 0)
    assert checkpoint_times(log) == (0, 0)
    assert checkpoint_times(log.changed(flushed_offset=92)) == (0, 1)
    assert checkpoint_times(flush(log)[0]) == (2, 2)
    assert checkpoint_times(flush(log)[0].changed(appended_in_this_life=0)) == (0, 2)


def test_times_of_queues_and_index_are_those_of_what_was_dispatched() -> None:
    keyed = {"KEYS": "k"}
    log, _ = put_all(message_of(properties=keyed), message_of(), message_of(properties=keyed, sys_flag=4), layout=PAGES)
    log, _ = put_all(message_of(sys_flag=12), layout=PAGES, log=log)
    assert (queue_checkpoint_times(log), index_checkpoint_times(log, layout=PAGES)) == ((0, 0), (0, 0))
    seen = dispatch(log)
    assert (queue_checkpoint_times(seen), index_checkpoint_times(seen, layout=PAGES)) == ((2, 4), (3, 4))
    first = log.changed(dispatched_offset=log.records[1].offset)
    assert (queue_checkpoint_times(first), index_checkpoint_times(first, layout=PAGES)) == ((1, 1), (1, 1))
    assert index_checkpoint_times(seen, layout=replace(PAGES, index=False)) == (0, 4)


def test_times_of_queues_may_say_less_of_what_an_earlier_life_dispatched() -> None:
    log = dispatch(put_all(message_of(), message_of(), layout=PAGES)[0])
    assert queue_checkpoint_times(log.changed(appended_in_this_life=1)) == (2, 2)
    assert queue_checkpoint_times(log.changed(appended_in_this_life=0)) == (0, 2)
    assert queue_checkpoint_times(reopened(log)) == (0, 2)


def test_the_newest_time_counts_where_times_go_back() -> None:
    log = dispatch(put_all(message_of(), message_of(), layout=PAGES)[0])
    older = replace(log.records[1], store_timestamp=0)
    assert queue_checkpoint_times(log.changed(records=(log.records[0], older))) == (1, 1)


# ---- waiting puts --------------------------------------------------------------------------------------------------


def waiting_for(replica: str, *, layout: Layout = SYNC_MASTER) -> tuple[CommitLog, Waiting]:
    conditions = Conditions(replica=replica)  # type: ignore[arg-type]
    log, appended = append_to(CommitLog(), message_of(), layout=layout, store_timestamp=1, conditions=conditions)
    return log, wait_for(appended, layout=layout, now_ms=100, conditions=conditions)


def test_a_flush_answers_by_what_is_durable_then() -> None:
    log, wait = waiting_for("confirms")
    assert wait.answer is None
    assert flushed(wait, log).answer is PutStatus.FLUSH_DISK_TIMEOUT
    assert flushed(wait, flush(log)[0]).answer is PutStatus.PUT_OK


def test_a_deadline_ends_a_wait_and_a_late_flush_changes_nothing() -> None:
    log, wait = waiting_for("confirms")
    assert wait.deadline_ms == 5_100
    assert late(wait, now_ms=5_099) == wait
    ended = late(wait, now_ms=5_100)
    assert ended.answer is PutStatus.FLUSH_DISK_TIMEOUT
    assert flushed(ended, flush(log)[0]) == ended


def test_disk_and_replica_have_a_deadline_each_and_the_replica_hides_the_disk() -> None:
    log, wait = waiting_for("hangs")
    assert wait.deadline_ms == 3_100
    half = late(wait, now_ms=3_100)
    assert (half.answer, half.deadline_ms) == (None, 5_100)
    assert flushed(half, flush(log)[0]).answer is PutStatus.FLUSH_SLAVE_TIMEOUT
    assert given_up(wait).answer is PutStatus.FLUSH_SLAVE_TIMEOUT
    asynchronous = waiting_for("hangs", layout=replace(SYNC_MASTER, sync_flush=False))[1]
    assert (asynchronous.disk, asynchronous.deadline_ms) == (PutStatus.PUT_OK, 3_100)


def test_who_does_not_wait_is_answered() -> None:
    _, appended = append_to(CommitLog(), message_of(properties="WAIT\x01false"), layout=SYNC_MASTER, store_timestamp=1)
    assert wait_for(appended, layout=SYNC_MASTER, now_ms=0).answer is PutStatus.PUT_OK
