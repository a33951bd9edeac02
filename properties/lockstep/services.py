"""The services of a store, stepped by hand: each round is compared with the model's, and none may spin or fall asleep.

A round that says the next one is due at once must have had work (contract 16; RMQ-B30): a thread would run it for ever.
A timed service that says nothing would never run again.

A round of delivery puts several copies, and a crash may fall between any two of them.
"""

from collections.abc import Callable

from model import schedule, waiting
from model.allocation import allocate_round
from model.flushing import flush, flush_round, note_round
from model.operations import ServiceName, Step
from model.pending import is_full
from model.pool import commit_round
from model.progress import save_round
from model.queues import dispatch
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.lockstep.compare import checkpoint_is_right, compare_watermarks, require_will_step
from properties.lockstep.consumers import PULL_HOLD, look_at_pulls, pulls_are_closed, pulls_are_held
from properties.lockstep.execute import service_named
from properties.lockstep.pair import Pair
from properties.lockstep.puts import end_waits
from properties.program.hand_driven import Round

__all__ = ["answer_all", "services_will_step", "step"]

_INTERVALS_MS: dict[ServiceName, int] = {"flush": 500, "commit": 200, "flush-queues": 1_000, "progress": 5_000}
"""The timed services, and how long they sleep at most; a step whose disk fails may rest a second."""
_LOOKS_AFTER_MS_MAX = 1_000
"""A clock that is set forward is noticed within a second (docs/statuses.md)."""


def step(pair: Pair, step: Step) -> None:
    """Let time pass and a service take a step; one that is closed, or that the store does not have, takes none.

    Contract 16: dispatch wakes the schedule service for a message that is due before that service would look.
    """
    if step.service == "schedule":
        _end_step(pair, step, _deliver)
        return
    schedule_service = pair.environment.service("schedule")
    before_ms = schedule.earliest_due(pair.log, pair.layout)
    _end_step(pair, step, _look_at_pulls if step.service == PULL_HOLD else _step_service)
    if pair.closed or schedule_service is None or step.service != "reput":
        return
    if pair.is_partly_dispatched or pair.log.poisoned:
        return
    due_ms = schedule.earliest_due(pair.log, pair.layout)
    if due_ms is not None and due_ms != before_ms:
        require_will_step(pair, "schedule", by_ms=_seen_by(pair, due_ms - pair.environment.clock_ahead_ms))


def _end_step(pair: Pair, step: Step, take: Callable[[Pair, Step], CommitLog]) -> None:
    first = len(pair.files.events)
    pair.environment.now_ms += step.after_ms
    pair.end_operation(first, pair.log if pair.closed else take(pair, step))
    compare_watermarks(pair)


def _look_at_pulls(pair: Pair, step: Step) -> CommitLog:
    if not pair.is_partly_dispatched:
        look_at_pulls(pair)
    return pair.log


def _step_service(pair: Pair, step: Step) -> CommitLog:
    """Step a service; that of progress saves delayed messages last, and makes their copies durable first."""
    name = step.service
    if name not in pair.services:
        return pair.log
    others, now_ms = pair.consumers, pair.environment.now_ms
    comes = others.is_changed and not pair.log.poisoned and not (others.due_ms and now_ms < others.due_ms)
    sync_fails, write_fails = bool(pair.files.failing_syncs) and not comes, bool(pair.files.failing_writes)
    before = _stepped(pair, name)
    if name != "progress" or pair.layout.role == "SLAVE":
        return before
    after, is_saved = schedule.save_round(before, now_ms=now_ms, sync_fails=sync_fails, write_fails=write_fails)
    pair.cover("delay_offsets_saved", after.saved_delays != before.saved_delays)
    pair.cover("delay_offsets_not_saved", not is_saved)
    return after


def _stepped(pair: Pair, name: ServiceName) -> CommitLog:
    """Step a service of the store and of the model, compare the answers, and return the log."""
    service, entries = service_named(pair, name), len(pair.files.journal)
    before, conditions, now_ms = pair.log, pair.conditions(), pair.environment.now_ms
    write_fails, refused_before = bool(pair.files.failing_writes), pair.files.refused_files
    found = observed("step", service.step)
    if found is None:
        raise GuaranteeBroken(16, "a service of an open store was stopped", name, "stopped")
    _goes_on(pair, name, found, worked=len(pair.files.journal) > entries)
    if name == "group-commit":
        after, _ = flush(before, sync_fails=conditions.sync_fails)
        after, ended = end_waits(pair, after, lambda each: waiting.flushed(each, after))
        pair.cover("answered_by_group_commit", ended)
    elif name == "time-outs":
        after, ended = end_waits(pair, before, lambda each: waiting.late(each, now_ms=pair.environment.now_ms))
        pair.cover("timed_out", ended)
    elif name == "flush":
        after, flushed = flush_round(
            before, layout=pair.layout, now_ms=pair.environment.now_ms, sync_fails=conditions.sync_fails
        )
        pair.cover("flushed_by_the_timer", flushed.moved)
        pair.cover("flushed_by_the_page_rule", flushed.moved and not flushed.thorough)
        pair.cover("left_alone_by_the_page_rule", flushed.left_alone)
    elif name == "commit":
        after, committed = commit_round(before, layout=pair.layout, now_ms=now_ms, write_fails=write_fails)
        pair.cover("committed", committed.moved)
        pair.cover("commits_failed", committed.failed)
        pair.cover("committed_by_the_page_rule", committed.moved and not committed.thorough)
    elif name == "allocate":
        after, made = allocate_round(before, layout=pair.layout, now_ms=pair.environment.now_ms, conditions=conditions)
        pair.cover("files_prepared", made)
        pair.cover("preparations_failed", after.retry_ms > before.retry_ms)
    elif name == "progress":
        after = before
        fails, saved = conditions.sync_fails, pair.consumers.saved
        pair.consumers = save_round(
            pair.consumers, now_ms=pair.environment.now_ms, poisoned=before.poisoned, sync_fails=fails
        )
        pair.cover("progress_saved", pair.consumers.saved != saved)
    elif name == "reput":
        if found.failed and pair.files.refused_files == refused_before:
            raise GuaranteeBroken(16, "dispatch fails on a disk that refuses nothing")
        after = before if found.failed else dispatch(before)
        pair.is_partly_dispatched = found.failed
        pair.cover("dispatched", after.dispatched_offset > before.dispatched_offset)
        pair.cover("dispatch_failed", found.failed)
    else:
        after, thorough = note_round(before, layout=pair.layout, now_ms=pair.environment.now_ms)
        if found.failed:
            after, pair.queue_sync_failed = before, True
        pair.cover("checkpoints_written", thorough and not found.failed)
        if thorough and not found.failed:
            checkpoint_is_right(pair, after)
    pair.cover(f"sync_failed_under_{name}", after.poisoned and not before.poisoned)
    return after


def _goes_on(pair: Pair, name: ServiceName, found: Round, *, worked: bool) -> None:
    """Contract 16: a service neither spins nor sleeps for ever."""
    due_ms, now_ms = found.due_ms, found.now_ms
    if due_ms is not None and due_ms <= now_ms and not worked:
        raise GuaranteeBroken(16, f"the service {name} spins", f"later than {now_ms}", f"due at {due_ms}")
    if name in _INTERVALS_MS and not found.failed and (due_ms is None or due_ms > now_ms + _INTERVALS_MS[name]):
        latest = now_ms + _INTERVALS_MS[name]
        raise GuaranteeBroken(16, f"the service {name} sleeps for too long", f"{latest} at the latest", str(due_ms))


# ---- delivery --------------------------------------------------------------------------------------------------------


def _deliver(pair: Pair, step: Step) -> CommitLog:
    """Contract 12: a round puts the copies that are due, in order, and none that is not."""
    if step.service not in pair.services or pair.is_partly_dispatched:
        return pair.log
    pair.environment.set_forward_ms = 0
    pair.files.failing_syncs = 0  # which of the round's files it would hit is not worth a model
    after, outcome = schedule.deliver_round(
        pair.log,
        layout=pair.layout,
        now_ms=pair.environment.clock_ms,
        timer_ms=pair.environment.now_ms,
        conditions=pair.conditions(),
    )
    after = pair.by_monotonic_time(after)
    service, entries = pair.environment.service("schedule"), len(pair.files.journal)
    found = None if service is None else observed("step", service.step)
    if found is None:
        raise GuaranteeBroken(16, "the store lacks a service, or has stopped it", "schedule", "none")
    _goes_on(pair, "schedule", found, worked=len(pair.files.journal) > entries)
    if pair.store.max_offset != after.end_offset:
        expected, ended = f"a log that ends at {after.end_offset}", f"one that ends at {pair.store.max_offset}"
        raise GuaranteeBroken(12, "a round delivers other messages than the model", expected, ended)
    progress = tuple(observed("delay_offsets", pair.store.delay_offsets).items())
    if progress != after.delays:
        raise GuaranteeBroken(12, "a round leads elsewhere than the model", str(after.delays), str(progress))
    due_ms = None if outcome.due_ms is None else outcome.due_ms - pair.environment.clock_ahead_ms
    if found.due_ms != due_ms:
        raise GuaranteeBroken(16, "the next round is not when it has to be", str(due_ms), str(found.due_ms))
    pair.append(outcome.records, end_after=after.end_offset)
    pair.cover("delayed_delivered", len(outcome.records))
    pair.cover("delayed_delivered_in_a_row", len(outcome.records) > 1)
    pair.cover("delayed_skipped", outcome.skipped)
    pair.cover("delivery_refused", outcome.refused)
    pair.cover("delayed_not_yet", outcome.due_ms is not None and not outcome.refused)
    pair.cover("copies_awaited", len(after.pending))
    pair.cover("copies_answered", len(pair.log.pending) and len(pair.log.pending) > len(after.pending))
    pair.cover("line_full", any(is_full(after, pending.level, layout=pair.layout) for pending in after.pending))
    return after


def _seen_by(pair: Pair, due_ms: int) -> int:
    """Return by when the service looks at what is due then: a second later if the clock was set forward meanwhile."""
    return max(due_ms, min(due_ms + pair.environment.set_forward_ms, pair.environment.now_ms + _LOOKS_AFTER_MS_MAX))


# ---- after every operation, and at a close ---------------------------------------------------------------------------


def services_will_step(pair: Pair) -> None:
    """Contract 16: a service with work left will take a step, and in time; every held pull waits for one."""
    if pair.closed:
        return
    for name in _INTERVALS_MS:
        if name in pair.services:
            require_will_step(pair, name, by_ms=None)
    deadlines = [each.waits.deadline_ms for each in pair.clients.puts]
    if deadlines:
        require_will_step(pair, "time-outs", by_ms=min(deadlines))
    if pair.log.prepared < pair.log.asked:
        require_will_step(pair, "allocate", by_ms=None)
    if pair.log.dispatched_offset < pair.log.readable_end:
        require_will_step(pair, "reput", by_ms=None)
    pulls_are_held(pair)
    require_will_step(pair, "clean", by_ms=None)
    if not pair.is_partly_dispatched and not pair.log.poisoned and "schedule" in pair.services:
        _delivery_will_step(pair)


def _delivery_will_step(pair: Pair) -> None:
    """While a delayed message waits the schedule service will step, and so will a service that answers a copy."""
    if schedule.has_work(pair.log, pair.layout):
        require_will_step(pair, "schedule", by_ms=None)
    open_waits = [pending.waits for pending in pair.log.pending if pending.waits and pending.waits.answer is None]
    if open_waits:
        require_will_step(pair, "time-outs", by_ms=min(waits.deadline_ms for waits in open_waits))
    if any(waits.disk is None for waits in open_waits):
        require_will_step(pair, "group-commit")


def answer_all(pair: Pair, log: CommitLog) -> None:
    """Compare the answers that a close gives: the disk's by what is durable then, a replica's that it was late."""
    _, ended = end_waits(pair, log, lambda each: waiting.given_up(waiting.flushed(each, log)))
    pair.cover("answered_by_close", ended)
    pulls_are_closed(pair)
