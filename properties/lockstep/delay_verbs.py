"""The verbs of delayed messages, compared with the model as they return: rounds of delivery, saves, clocks.

A round puts several copies, and a crash may fall between any two of them. What is on disk of its progress is looked at
after each disaster (properties/judge/delay_judges.py).
"""

from model import schedule
from model.operations import ClockStep, ServiceName, Step
from model.pending import is_full
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.progress_ledger import DELAY_OFFSETS, said_by
from properties.lockstep.progress_verbs import ProgressVerbs

__all__ = ["DelayVerbs"]

_LOOKS_AFTER_MS_MAX = 1_000
"""A clock that is set forward is noticed within a second (docs/statuses.md)."""


class DelayVerbs(ProgressVerbs):
    """Delayed delivery of a trial. `set_forward_ms` is how far the clock was set forward since delivery last looked."""

    set_forward_ms = 0

    # ---- delivery ------------------------------------------------------------------------------------------------

    def deliver(self, step: Step) -> None:
        """Let time pass and the schedule service make a round; nothing happens in a store that is closed, or a slave,
        nor while a disk has broken dispatch off.
        """
        first, after = len(self.files.events), self.log
        self.now_ms += step.after_ms
        if not self.closed and step.service in self.services and not self.is_partly_dispatched:
            after = self._delivered()
        self.end_verb(first, after)
        self.compare_watermarks()

    def _delivered(self) -> CommitLog:
        """Contract 12: a round puts the copies that are due, in order, and none that is not."""
        self.set_forward_ms = 0
        self.files.failing_syncs = 0  # which of the round's files it would hit is not worth a model
        after, outcome = schedule.deliver_round(
            self.log,
            layout=self.layout,
            now_ms=self.clock_ms,
            timer_ms=self.now_ms,
            conditions=self.conditions(),
        )
        after = self.by_own_time(after)
        service, entries = self.surroundings.service("schedule"), len(self.files.journal)
        found = None if service is None else observed("step", service.step)
        if found is None:
            raise GuaranteeBroken(16, "the store lacks a service, or has stopped it", "schedule", "none")
        self._goes_on("schedule", found, worked=len(self.files.journal) > entries)
        if self.store.max_offset != after.end_offset:
            expected, ended = f"a log that ends at {after.end_offset}", f"one that ends at {self.store.max_offset}"
            raise GuaranteeBroken(12, "a round delivers other messages than the model", expected, ended)
        progress = tuple(observed("delay_offsets", self.store.delay_offsets).items())
        if progress != after.delays:
            raise GuaranteeBroken(12, "a round leads elsewhere than the model", str(after.delays), str(progress))
        due_ms = None if outcome.due_ms is None else outcome.due_ms - self.clock_ahead_ms
        if found.due_ms != due_ms:
            raise GuaranteeBroken(16, "the next round is not when it has to be", str(due_ms), str(found.due_ms))
        self.appended(outcome.records, end_after=after.end_offset)
        self.happened("delayed_delivered", len(outcome.records))
        self.happened("delayed_delivered_in_a_row", len(outcome.records) > 1)
        self.happened("delayed_skipped", outcome.skipped)
        self.happened("delivery_refused", outcome.refused)
        self.happened("delayed_not_yet", outcome.due_ms is not None and not outcome.refused)
        self.happened("copies_awaited", len(after.pending))
        self.happened("copies_answered", len(self.log.pending) and len(self.log.pending) > len(after.pending))
        self.happened("line_full", any(is_full(after, pending.level, layout=self.layout) for pending in after.pending))
        return after

    def everybody_is_waited_for(self) -> None:
        """Contract 16: while a delayed message waits, the schedule service will take a step; and who has to answer for
        a copy will.
        """
        super().everybody_is_waited_for()
        if self.closed or self.is_partly_dispatched or self.log.poisoned or "schedule" not in self.services:
            return
        if schedule.has_work(self.log, self.layout):
            self.require_will_step("schedule", by_ms=None)
        open_waits = [pending.waits for pending in self.log.pending if pending.waits and pending.waits.answer is None]
        if open_waits:
            self.require_will_step("time-outs", by_ms=min(waits.deadline_ms for waits in open_waits))
        if any(waits.disk is None for waits in open_waits):
            self.require_will_step("group-commit")

    def step(self, step: Step) -> None:
        """Contract 16: dispatch wakes the schedule service for a message that is due before it would look."""
        service = self.surroundings.service("schedule")
        before_ms = schedule.earliest_due(self.log, self.layout)
        super().step(step)
        if self.closed or service is None or step.service != "reput" or self.is_partly_dispatched or self.log.poisoned:
            return
        due_ms = schedule.earliest_due(self.log, self.layout)
        if due_ms is not None and due_ms != before_ms:
            self.require_will_step("schedule", by_ms=self._seen_by(due_ms - self.clock_ahead_ms))

    def _seen_by(self, due_ms: int) -> int:
        """Return by when somebody looks at what is due then: a second later if the clock was set forward meanwhile."""
        return max(due_ms, min(due_ms + self.set_forward_ms, self.now_ms + _LOOKS_AFTER_MS_MAX))

    # ---- saves ---------------------------------------------------------------------------------------------------

    def _stepped(self, name: ServiceName) -> CommitLog:
        """Step a service; that of progress comes to delayed messages last, and makes their copies durable first."""
        others = self.consumers
        comes = others.is_changed and not self.log.poisoned and not (others.due_ms and self.now_ms < others.due_ms)
        sync_fails, write_fails = bool(self.files.failing_syncs) and not comes, bool(self.files.failing_writes)
        before = super()._stepped(name)
        if name != "progress" or self.layout.role == "SLAVE":
            return before
        after, is_saved = schedule.save_round(
            before, now_ms=self.now_ms, sync_fails=sync_fails, write_fails=write_fails
        )
        self.happened("delay_offsets_saved", after.saved_delays != before.saved_delays)
        self.happened("delay_offsets_not_saved", not is_saved)
        return after

    def close(self) -> None:
        """Contract 12: after a clean exit the progress on disk is exact."""
        was_closed = self.closed
        super().close()
        if was_closed or self.store.read_only_reason is not None or self.layout.role == "SLAVE":
            return
        saved = said_by(self.durable(self.files).files, (DELAY_OFFSETS,))[DELAY_OFFSETS]
        if saved != self.log.delays:
            sentence = "a clean exit has not saved which delayed messages were delivered"
            raise GuaranteeBroken(12, sentence, str(self.log.delays), str(saved))

    # ---- clocks --------------------------------------------------------------------------------------------------

    def set_clock(self, operation: ClockStep) -> None:
        """Set the clock; nobody is told."""
        self.clock_ahead_ms += operation.by_ms
        self.set_forward_ms += max(0, operation.by_ms)
        self.was_harmed |= operation.by_ms < 0  # the checkpoint's times say nothing of what comes after it then
