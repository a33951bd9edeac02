"""Step the services of a store by hand, and compare each round with the model's.

A round that says that the next one is due at once must have had work (contract 16; RMQ-B30), because a thread would run
it forever. A timed service that names no next round would never run again.

A round of delivery puts several copies, and a crash may fall between any two of them.
"""

from typing import Any

from tornpage.model import schedule
from tornpage.model.answers import Answer, NextRound
from tornpage.model.operations import ServiceName, Step
from tornpage.model.state import State
from tornpage.model.step import applies
from tornpage.model.waiting import is_full
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.compare import (
    checkpoint_is_right,
    compare_watermarks,
    legal_outcome,
    marks_found,
    require_will_step,
)
from tornpage.properties.lockstep.consumers import PULL_HOLD, look_at_pulls, pulls_are_held
from tornpage.properties.lockstep.execute import answered_puts, service_named
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.lockstep.puts import note_answers
from tornpage.properties.program.hand_driven import Round

__all__ = ["services_will_step", "step"]

_INTERVALS_MS: dict[ServiceName, int] = {"flush": 500, "commit": 200, "flush-queues": 1_000, "progress": 5_000}
"""The timed services and their longest sleep. After a failed disk call a step may rest for a second."""
_STEADY: tuple[ServiceName, ...] = ("flush", "commit", "flush-queues")
"""The services with the same pause after each round that succeeds."""
_WOKEN_ONLY: tuple[ServiceName, ...] = ("reput", "group-commit")
"""The services that run after a wake-up or a failure only."""
_LOOKS_AFTER_MS_MAX = 1_000
"""A clock that is set forward is noticed within a second (docs/statuses.md)."""


def step(pair: Pair, operation: Step) -> None:
    """Let time pass and step a service; a closed or missing service takes no step.

    Contract 16: dispatch wakes the schedule service for a message that is due before that service would look again.
    """
    first, schedule_service = len(pair.files.events), pair.environment.service("schedule")
    before_ms = schedule.earliest_due(pair.log, pair.layout) if operation.service == "reput" else None
    before = pair.begin(operation)
    after = pair.model
    if applies(before, operation, pair.layout):
        after = look_at_pulls(pair, before) if operation.service == PULL_HOLD else _stepped(pair, before, operation)
    pair.end_operation(first, after)
    compare_watermarks(pair)
    if pair.closed or schedule_service is None or operation.service != "reput":
        return
    if pair.is_partly_dispatched or pair.log.poisoned:
        return
    due_ms = schedule.earliest_due(pair.log, pair.layout)
    if due_ms is not None and due_ms != before_ms:
        require_will_step(pair, "schedule", by_ms=_seen_by(pair, due_ms - pair.environment.clock_ahead_ms))


def _stepped(pair: Pair, before: State, operation: Step) -> State:
    """Step a service of the store, compare its answer, and return the resulting state."""
    name = operation.service
    if name == "schedule":
        pair.environment.set_forward_ms = 0
    found = _round_of(pair, name)
    left = pair.faults_left()
    answer = Answer(faults=left)
    if name in ("group-commit", "time-outs"):
        answer = Answer(ended=answered_puts(pair), faults=left)
    elif name in ("reput", "flush-queues"):
        answer = Answer(failed=found.failed, faults=left)
    elif name == "schedule":
        delays = tuple(observed("delay_offsets", pair.store.delay_offsets).items())
        answer = Answer(delays=delays, next_round=NextRound(found.due_ms), marks=marks_found(pair), faults=left)
    after, expected = legal_outcome(pair, before, operation, answer)
    ended = note_answers(pair, expected)
    _count(pair, name, before, after, expected.note)
    pair.cover("answered_by_group_commit", ended if name == "group-commit" else 0)
    pair.cover("timed_out", ended if name == "time-outs" else 0)
    pair.cover("dispatch_failed", name == "reput" and found.failed)
    if name == "flush-queues" and expected.note:
        checkpoint_is_right(pair, after)
    if name == "schedule":
        pair.append(after.log.records[len(before.log.records) :], end_after=after.log.end_offset)
    return after


def _round_of(pair: Pair, name: ServiceName) -> Round:
    """Run a round of a service of the store. Contract 16: it exists and continues."""
    if name == "schedule":
        service, entries = pair.environment.service(name), len(pair.files.journal)
        found = None if service is None else observed("step", service.step)
        if found is None:
            raise GuaranteeBroken(16, "the store lacks a service, or has stopped it", name, "none")
    else:
        service, entries = service_named(pair, name), len(pair.files.journal)
        found = observed("step", service.step)
        if found is None:
            raise GuaranteeBroken(16, "a service of an open store was stopped", name, "stopped")
    _goes_on(pair, name, found, worked=len(pair.files.journal) > entries)
    return found


def _count(pair: Pair, name: ServiceName, before: State, after: State, note: Any) -> None:
    """Count the result of a step; `note` is the model's detail of it."""
    old, new = before.log, after.log
    match name:
        case "flush":
            pair.cover("flushed_by_the_timer", note.moved)
            pair.cover("flushed_by_the_page_rule", note.moved and not note.thorough)
            pair.cover("left_alone_by_the_page_rule", note.left_alone)
        case "commit":
            pair.cover("committed", note.moved)
            pair.cover("commits_failed", note.failed)
            pair.cover("committed_by_the_page_rule", note.moved and not note.thorough)
        case "allocate":
            pair.cover("files_prepared", note)
            pair.cover("preparations_failed", new.retry_ms > old.retry_ms)
        case "progress":
            pair.cover("progress_saved", after.consumers.saved != before.consumers.saved)
            pair.cover("delay_offsets_saved", new.saved_delays != old.saved_delays)
            pair.cover("delay_offsets_not_saved", pair.layout.role != "SLAVE" and not note)
        case "reput":
            pair.cover("dispatched", new.dispatched_offset > old.dispatched_offset)
        case "flush-queues":
            pair.cover("checkpoints_written", bool(note))
        case "schedule":
            pair.cover("delayed_delivered", len(note.records))
            pair.cover("delayed_delivered_in_a_row", len(note.records) > 1)
            pair.cover("delayed_skipped", note.skipped)
            pair.cover("delivery_refused", note.refused)
            pair.cover("delayed_not_yet", note.due_ms is not None and not note.refused)
            pair.cover("copies_awaited", len(new.pending))
            pair.cover("copies_answered", len(old.pending) and len(old.pending) > len(new.pending))
            pair.cover("line_full", any(is_full(new, each.level, layout=pair.layout) for each in new.pending))
    pair.cover(f"sync_failed_under_{name}", name not in ("schedule", "progress") and new.poisoned and not old.poisoned)


def _goes_on(pair: Pair, name: ServiceName, found: Round, *, worked: bool) -> None:
    """Contract 16: a service neither spins nor sleeps forever."""
    due_ms, now_ms = found.due_ms, found.now_ms
    if due_ms is not None and due_ms <= now_ms and not worked:
        raise GuaranteeBroken(16, f"the service {name} spins", f"later than {now_ms}", f"due at {due_ms}")
    if found.failed:
        return
    if name in _WOKEN_ONLY and due_ms is not None:
        raise GuaranteeBroken(16, f"the service {name} plans a round although it has no work", "none", str(due_ms))
    if name in _INTERVALS_MS and (due_ms is None or due_ms > now_ms + _INTERVALS_MS[name]):
        latest = now_ms + _INTERVALS_MS[name]
        raise GuaranteeBroken(16, f"the service {name} sleeps for too long", f"{latest} at the latest", str(due_ms))
    if name in _STEADY and due_ms != now_ms + _INTERVALS_MS[name]:
        on_time = str(now_ms + _INTERVALS_MS[name])
        raise GuaranteeBroken(16, f"the next round of the service {name} comes too early", on_time, str(due_ms))


def _seen_by(pair: Pair, due_ms: int) -> int:
    """Return the time by which the service notices what is due.

    That may be a second later if the clock was set forward.
    """
    return max(due_ms, min(due_ms + pair.environment.set_forward_ms, pair.environment.now_ms + _LOOKS_AFTER_MS_MAX))


# ---- after every operation -------------------------------------------------------------------------------------------


def services_will_step(pair: Pair) -> None:
    """Contract 16: services with work left, and those of held pulls, will step in time."""
    if pair.closed:
        return
    for name in _INTERVALS_MS:
        if name in pair.services:
            require_will_step(pair, name, by_ms=None)
    deadlines = [each.waits.deadline_ms for each in pair.model.puts]
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
    """Check that delivery steps while a message waits.

    A service that answers its copies has to step too.
    """
    if schedule.has_work(pair.log, pair.layout):
        require_will_step(pair, "schedule", by_ms=None)
    open_waits = [pending.waits for pending in pair.log.pending if pending.waits and pending.waits.answer is None]
    if open_waits:
        require_will_step(pair, "time-outs", by_ms=min(waits.deadline_ms for waits in open_waits))
    if any(waits.disk is None for waits in open_waits):
        require_will_step(pair, "group-commit")
