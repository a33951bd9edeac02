"""Test the transient store pool in the model: lending, commits, and visible bytes."""

import pytest

from tests.model.support import layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, Conditions, GetStatus, flush, get, put
from tornpage.model.crash import crash
from tornpage.model.message import PutStatus
from tornpage.model.pool import commit, commit_round
from tornpage.model.state import Buffer, Layout

POOL = layout_of(pool_buffers=2)
"""Two buffers; two records of 92 bytes to a file of 256: records at 0, 92, 256, 348, 512."""

WIDE = layout_of(pool_buffers=2, file_bytes=65_536, least_pages=2)


def log_of(puts: int, *, layout: Layout = POOL, body: bytes = b"") -> CommitLog:
    """Return a log of this many puts, none of them committed."""
    log, _ = put_all(*[message_of(body=body)] * puts, layout=layout)
    return log


def bases(log: CommitLog) -> list[int]:
    return [buffer.base_offset for buffer in log.buffers]


@pytest.mark.parametrize("fields", [{"sync_flush": True}, {"role": "SLAVE"}, {"pool_buffers": 0}])
def test_only_an_asynchronous_master_has_a_pool(fields: dict[str, object]) -> None:
    layout = layout_of(**({"pool_buffers": 2} | fields))
    assert not layout.has_pool
    log, _ = put_all(message_of(), layout=layout)
    assert log.buffers == ()


def test_files_borrow_until_none_is_left_and_go_on_without() -> None:
    log = log_of(7)
    assert (log.files, bases(log)) == (4, [0, 256])
    assert (log.committed_offset, log.readable_end, log.end_offset) == (0, 0, 860)


def test_fast_fail_refuses_the_file_and_changes_nothing() -> None:
    layout = layout_of(pool_buffers=2, fast_fail=True, files_ahead=1)
    log = log_of(4, layout=layout)
    after, outcome = put(log, message_of(), layout=layout, store_timestamp=9)
    assert (outcome.status, after) == (PutStatus.CREATE_MAPEDFILE_FAILED, log)
    committed, _ = commit(log)
    after, outcome = put(committed, message_of(), layout=layout, store_timestamp=9)
    assert (outcome.status, bases(after)) == (PutStatus.PUT_OK, [256, 512])


def test_what_is_in_a_buffer_is_not_seen() -> None:
    log = log_of(1)
    assert get(log, 0)[0] is GetStatus.OFFSET_OVERFLOW_ONE
    assert get(log, 92)[0] is GetStatus.OFFSET_OVERFLOW_BADLY
    log, done = commit(log)
    assert (done.moved, done.failed, log.committed_offset) == (True, False, 92)
    assert get(log, 0)[0] is GetStatus.FOUND


def test_a_commit_goes_front_to_back_and_gives_full_files_their_buffers_back() -> None:
    log, _ = commit(log_of(7))
    assert (log.buffers, log.committed_offset) == ((), 860), "both are full; the others were plain"
    log, _ = commit(log_of(3))
    assert (log.buffers, log.committed_offset) == ((Buffer(256, 512, 348),), 348)


def test_a_file_without_a_buffer_waits_for_the_ones_before_it() -> None:
    log = log_of(5)
    flushed, durable = flush(log, write_fails=True)
    assert (durable, flushed.poisoned, flushed.flushed_offset, flushed.committed_offset) == (False, False, 0, 0)
    assert flush(flushed) == (flushed.changed(buffers=(), flushed_offset=604), True)


def test_a_write_that_fails_moves_nothing_and_the_next_commit_writes_all() -> None:
    log = log_of(3)
    after, done = commit(log, write_fails=True)
    assert (after, done.failed, done.moved) == (log, True, False)
    assert commit(after)[0].committed_offset == 348
    empty, done = commit(CommitLog(), write_fails=True)
    assert (empty, done.failed) == (CommitLog(), False), "nothing to write, nothing to fail"


def test_the_first_round_is_thorough_and_the_next_go_by_the_page_rule_for_a_while() -> None:
    log = log_of(1, layout=WIDE)
    log, first = commit_round(log, layout=WIDE, now_ms=1_000)
    assert (first.thorough, first.moved, log.committed_ms) == (True, True, 1_000)
    log, _ = put_all(message_of(), layout=WIDE, log=log)
    log, soon = commit_round(log, layout=WIDE, now_ms=1_199)
    assert (soon.thorough, soon.moved, log.committed_ms) == (False, False, 1_000)
    log, _ = put_all(message_of(body=bytes(8_100)), layout=WIDE, log=log)
    log, pages = commit_round(log, layout=WIDE, now_ms=1_199)
    assert (pages.thorough, pages.moved, log.committed_ms) == (False, True, 1_199), "a round that moved something"
    log, idle = commit_round(log, layout=WIDE, now_ms=1_399)
    assert (idle.thorough, idle.moved, log.committed_ms) == (True, False, 1_399)


def test_a_full_file_is_committed_whatever_the_page_rule() -> None:
    log, done = commit(log_of(3), least_pages=4)
    assert (done.moved, log.committed_offset, bases(log)) == (True, 256, [256])


def test_a_kill_keeps_what_was_committed_and_a_power_loss_what_was_flushed() -> None:
    log, _ = flush(log_of(1))
    log, _ = commit(put_all(message_of(), layout=POOL, log=log)[0])
    log, _ = put_all(message_of(), layout=POOL, log=log)
    assert [len(found.records) for found in crash(log, log, "process kill", layout=POOL)] == [2, 2, 3]
    assert [len(found.records) for found in crash(log, log, "power loss", layout=POOL)] == [1, 2, 2, 3]
    assert all(found.buffers == () for found in crash(log, log, "process kill", layout=POOL))


def test_bytes_refused_by_a_buffer_leave_it_in_use() -> None:
    log, outcome = put(
        CommitLog(), message_of(), layout=POOL, store_timestamp=1, conditions=Conditions(append_fails=True)
    )
    assert (outcome.status, log.files, bases(log)) == (PutStatus.UNKNOWN_ERROR, 1, [0])
