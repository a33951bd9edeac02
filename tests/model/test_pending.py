"""Test the lines of pending deliveries per delay level in the model."""

from dataclasses import replace

from tests.model.support import layout_of, message_of
from tornpage.model import waiting
from tornpage.model.commitlog import put
from tornpage.model.crash import crash, reopened
from tornpage.model.flushing import close, flush
from tornpage.model.queues import dispatch
from tornpage.model.schedule import deliver_round, earliest_due, has_work, left_out, save_round
from tornpage.model.state import CommitLog, Conditions, Layout
from tornpage.model.waiting import answered

LAYOUT = layout_of(file_bytes=4096, delays_ms=(1000, 2000), delay_levels=2, sync_flush=True, pending_copies=2)


def delayed(*levels: int, layout: Layout = LAYOUT) -> CommitLog:
    """Return a log with one durable, dispatched message of each level, stored at time 0."""
    log = CommitLog()
    for level in levels:
        log, outcome = put(log, message_of(properties=f"DELAY\x01{level}"), layout=layout, store_timestamp=0)
        assert outcome.records
    return dispatch(flush(log)[0])


def a_round(log: CommitLog, now_ms: int = 1000) -> CommitLog:
    return deliver_round(log, layout=LAYOUT, now_ms=now_ms)[0]


def flushed(log: CommitLog) -> CommitLog:
    """Flush, and answer the waiting copies."""
    after, _ = flush(log)
    return answered(after, lambda each: waiting.flushed(each, after))


def test_a_level_goes_on_once_its_copies_are_answered() -> None:
    log = a_round(delayed(1, 1))
    assert (len(log.records), log.delays, len(log.pending)) == (4, (), 2)
    assert not has_work(log, LAYOUT)
    log = flushed(log)
    assert (log.delays, has_work(log, LAYOUT)) == ((), True)
    log = a_round(log)
    assert (log.delays, log.pending, len(log.records)) == (((1, 2),), (), 4)


def test_where_nobody_waits_a_round_ends_with_its_progress() -> None:
    layout = replace(LAYOUT, sync_flush=False)
    log, outcome = deliver_round(delayed(1, 1, layout=layout), layout=layout, now_ms=1000)
    assert (log.delays, log.pending, len(outcome.records)) == (((1, 2),), (), 2)


def test_a_full_line_holds_up_its_level_alone() -> None:
    log, outcome = deliver_round(delayed(1, 1, 1, 2), layout=LAYOUT, now_ms=2000)
    assert [record.message.topic for record in outcome.records] == ["T"] * 3
    assert [pending.level for pending in log.pending] == [1, 1, 2]
    assert (outcome.due_ms, earliest_due(log, LAYOUT)) == (None, None)
    log = a_round(flushed(log), now_ms=2000)
    assert (log.delays, [pending.number for pending in log.pending]) == (((1, 2), (2, 1)), [2])


def test_an_answer_behind_one_that_is_open_changes_nothing() -> None:
    log = a_round(delayed(1, 1))
    first, second = log.pending
    assert second.waits is not None
    log = a_round(log.changed(pending=(first, second._replace(waits=waiting.given_up(second.waits)))))
    assert (log.delays, len(log.pending)) == ((), 2)


def test_what_is_late_is_answered_too_and_not_put_again() -> None:
    log = a_round(delayed(1))
    log = answered(log, lambda each: waiting.late(each, now_ms=1000 + LAYOUT.sync_flush_timeout_ms))
    log = a_round(log)
    assert (log.delays, len(log.records)) == (((1, 1),), 2)


def test_a_refused_copy_is_tried_again_later_and_later_and_nothing_comes_before_it() -> None:
    refusing, pauses = Conditions(append_fails=True), []
    log = delayed(1, 1)
    for _ in range(3):
        log, outcome = deliver_round(log, layout=LAYOUT, now_ms=1000, conditions=refusing)
        pauses.append((outcome.due_ms or 0) - 1000)
        assert (len(log.records), log.pending) == (2, ())
    assert pauses == [100, 200, 300]
    for _ in range(600):
        log, outcome = deliver_round(log, layout=LAYOUT, now_ms=1000, conditions=refusing)
    assert outcome.due_ms == 61_000
    log = a_round(log)
    assert (log.refusals, len(log.pending)) == ((), 2)


def test_saved_progress_leaves_nothing_out_and_a_crash_delivers_again_what_was_not_answered() -> None:
    log, saved = save_round(a_round(delayed(1, 1)), now_ms=0)
    assert saved
    assert log.saved_delays == ()
    log, _ = save_round(a_round(flushed(log)), now_ms=20_000)
    assert log.saved_delays == ((1, 2),)
    for survivor in crash(log, log, "power loss", layout=LAYOUT):
        assert left_out(survivor.changed(delays=survivor.saved_delays), layout=LAYOUT) == []
        assert (survivor.pending, survivor.refusals) == ((), ())


def test_a_close_answers_all_and_nothing_comes_twice() -> None:
    log, clean = close(a_round(delayed(1, 1)))
    assert clean
    assert (log.saved_delays, log.pending) == (((1, 2),), ())
    assert len(a_round(reopened(log)).records) == 4
