"""The services of a store, stepped by hand: each round is compared with the model's, and none may spin or fall asleep.

A round that says the next one is due at once must have had work (contract 16; RMQ-B30): a thread would run it for ever.
A timed service that says nothing would never run again.
"""

from model import waiting
from model.allocation import allocate_round
from model.flushing import (
    checkpoint_times,
    flush,
    flush_round,
    index_checkpoint_times,
    note_round,
    queue_checkpoint_times,
)
from model.operations import ServiceName, Step
from model.pool import commit_round
from model.progress import save_round
from model.queues import dispatch
from model.state import CommitLog
from model.step import services_of
from properties.contract import GuaranteeBroken
from properties.judge.judges import physic_timestamp
from properties.judge.queue_judges import checkpoint_times as derived_checkpoint_times
from properties.lockstep.put_verbs import PutVerbs
from properties.lockstep.trial_state import observed
from properties.program.hand_driven import Round

__all__ = ["ServiceVerbs"]

_INTERVALS_MS: dict[ServiceName, int] = {"flush": 500, "commit": 200, "flush-queues": 1_000, "progress": 5_000}
"""The timed services, and how long they sleep at most; a step whose disk fails may rest a second."""


class ServiceVerbs(PutVerbs):
    """Steps of the services of a trial."""

    @property
    def services(self) -> tuple[ServiceName, ...]:
        """The services that the store has to have."""
        return services_of(self.layout)

    def step(self, step: Step) -> None:
        """Let time pass and a service take a step; nothing happens in a store that is closed or has no such service."""
        first = len(self.files.events)
        self.now_ms += step.after_ms
        after = self.log
        if not self.closed and step.service in self.services:
            after = self._stepped(step.service)
        self.end_verb(first, after)
        self.compare_watermarks()

    def _stepped(self, name: ServiceName) -> CommitLog:
        """Step a service of the store and of the model, compare what is answered, and return the log."""
        service, entries = self.surroundings.service(name), len(self.files.journal)
        if service is None:
            raise GuaranteeBroken(16, "the store lacks a service", name, "none of that name")
        before, conditions = self.log, self.conditions()
        write_fails, refused_before = bool(self.files.failing_writes), self.files.refused_files
        found = observed("step", service.step)
        if found is None:
            raise GuaranteeBroken(16, "a service of an open store was stopped", name, "stopped")
        self._goes_on(name, found, worked=len(self.files.journal) > entries)
        if name == "group-commit":
            after, _ = flush(before, sync_fails=conditions.sync_fails)
            after, ended = self.end_waits(after, lambda each: waiting.flushed(each, after))
            self.happened("answered_by_group_commit", ended)
        elif name == "time-outs":
            after, ended = self.end_waits(before, lambda each: waiting.late(each, now_ms=self.now_ms))
            self.happened("timed_out", ended)
        elif name == "flush":
            after, flushed = flush_round(
                before, layout=self.layout, now_ms=self.now_ms, sync_fails=conditions.sync_fails
            )
            self.happened("flushed_by_the_timer", flushed.moved)
            self.happened("flushed_by_the_page_rule", flushed.moved and not flushed.thorough)
            self.happened("left_alone_by_the_page_rule", flushed.left_alone)
        elif name == "commit":
            after, committed = commit_round(before, layout=self.layout, now_ms=self.now_ms, write_fails=write_fails)
            self.happened("committed", committed.moved)
            self.happened("commits_failed", committed.failed)
            self.happened("committed_by_the_page_rule", committed.moved and not committed.thorough)
        elif name == "allocate":
            after, made = allocate_round(before, layout=self.layout, now_ms=self.now_ms, conditions=conditions)
            self.happened("files_prepared", made)
            self.happened("preparations_failed", after.retry_ms > before.retry_ms)
        elif name == "progress":
            after = before
            fails, saved = conditions.sync_fails, self.consumers.saved
            self.consumers = save_round(self.consumers, now_ms=self.now_ms, poisoned=before.poisoned, sync_fails=fails)
            self.happened("progress_saved", self.consumers.saved != saved)
        elif name == "reput":
            if found.failed and self.files.refused_files == refused_before:
                raise GuaranteeBroken(16, "dispatch fails on a disk that refuses nothing")
            after = before if found.failed else dispatch(before)
            self.is_partly_dispatched = found.failed
            self.happened("dispatched", after.dispatched_offset > before.dispatched_offset)
            self.happened("dispatch_failed", found.failed)
        else:
            after, thorough = note_round(before, layout=self.layout, now_ms=self.now_ms)
            if found.failed:
                after, self.queue_sync_failed = before, True
            self.happened("checkpoints_written", thorough and not found.failed)
            if thorough and not found.failed:
                self.checkpoint_is_right(after)
        self.happened(f"sync_failed_under_{name}", after.poisoned and not before.poisoned)
        return after

    def checkpoint_is_right(self, log: CommitLog) -> None:
        """Contract 9: a checkpoint just written says how far log, queues and index are durable, neither too much nor
        too little. A round of dispatch that failed may have come to the file that was refused, or not have begun."""
        durable = self.durable(self.files)
        queues_ms, index_ms = derived_checkpoint_times(durable)
        furthest = dispatch(log) if self.is_partly_dispatched else log
        queues = queue_checkpoint_times(log)[0], queue_checkpoint_times(furthest)[1]
        index = (
            index_checkpoint_times(log, layout=self.layout)[0],
            index_checkpoint_times(furthest, layout=self.layout)[1],
        )
        for what, found, (earliest, latest) in (
            ("the log", physic_timestamp(durable), checkpoint_times(log)),
            ("the queues", queues_ms, queues),
            ("the index", index_ms, index),
        ):
            if not earliest <= found <= latest:
                sentence = f"the checkpoint on disk is wrong about {what}"
                raise GuaranteeBroken(9, sentence, f"{earliest} to {latest}", str(found))

    def _goes_on(self, name: ServiceName, found: Round, *, worked: bool) -> None:
        """Contract 16: a service neither spins nor sleeps for ever."""
        due_ms, now_ms = found.due_ms, found.now_ms
        if due_ms is not None and due_ms <= now_ms and not worked:
            raise GuaranteeBroken(16, f"the service {name} spins", f"later than {now_ms}", f"due at {due_ms}")
        if name in _INTERVALS_MS and not found.failed and (due_ms is None or due_ms > now_ms + _INTERVALS_MS[name]):
            latest = now_ms + _INTERVALS_MS[name]
            raise GuaranteeBroken(16, f"the service {name} sleeps for too long", f"{latest} at the latest", str(due_ms))

    def everybody_is_waited_for(self) -> None:
        """Contract 16: whatever is left to a service, that service will take a step, and in time."""
        if self.closed:
            return
        for name in _INTERVALS_MS:
            if name in self.services:
                self.require_will_step(name, by_ms=None)
        deadlines = [each.waits.deadline_ms for each in self._open]
        if deadlines:
            self.require_will_step("time-outs", by_ms=min(deadlines))
        if self.log.prepared < self.log.asked:
            self.require_will_step("allocate", by_ms=None)
        if self.log.dispatched_offset < self.log.readable_end:
            self.require_will_step("reput", by_ms=None)

    def answer_all(self, log: CommitLog) -> None:
        """Compare the answers that a close gives: the disk's by what is durable then, a replica's that it was late."""
        _, ended = self.end_waits(log, lambda each: waiting.given_up(waiting.flushed(each, log)))
        self.happened("answered_by_close", ended)
