"""The verbs that put, each compared with the model as it returns, and what may stand in their way."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from impl.message import Message as StoreMessage
from impl.message import MessageBatch, PutResult
from impl.parts import Parts
from impl.running_flags import RunningFlag
from model import commitlog, waiting
from model.commitlog import Appended, PutOutcome
from model.flushing import flush
from model.message import Batch, Message, PutStatus
from model.operations import Concurrent, Put, PutBatch, ServiceName
from model.payloads import born_at, given_of
from model.pending import answered
from model.state import BLANK_BYTES, CommitLog, Conditions
from model.waiting import Waiting
from properties.contract import GuaranteeBroken
from properties.disk.dirty import DirtyTracker
from properties.judge.answers import expected_answer, found_answer
from properties.lockstep.concurrent import explained
from properties.lockstep.trial_state import TrialState, observed
from properties.program.case import Settings
from properties.program.translation import CLEAN_RESOURCE_INTERVAL_MS, store_batch, store_message
from properties.program.zero_checksum import BODY_BYTES_MIN, sums_to_zero

__all__ = ["PutVerbs"]

DISK_FULL_ABOVE_PERCENT = 90
"""`rocketmq.broker.diskSpaceWarningLevelRatio`."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A put that has not been answered: what it waits for, by the model."""

    answer: Future[PutResult]
    appended: Appended
    waits: Waiting


class PutVerbs(TrialState):
    """Puts of a trial: messages and batches, at once, later, and by two producers at the same time."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Parts | None = None) -> None:
        self._open: list[_Open] = []
        super().__init__(settings, tracker=tracker, components=components)

    def put(self, put: Put | PutBatch) -> None:
        """Put a message or a batch; a closed store answers SERVICE_NOT_AVAILABLE."""
        first = len(self.files.events)
        self.let_pass(put.advance_ms)
        conditions = self.conditions()
        given = self._summed(put, born_at(put, given_of(put), self.clock_ms), conditions)
        if self.closed:
            after, appended = self.log, Appended(PutStatus.SERVICE_NOT_AVAILABLE)
        else:
            after, appended = commitlog.append(
                self.log, given, layout=self.layout, store_timestamp=self.clock_ms, conditions=conditions
            )
            after = self.by_own_time(after)
        if put.later:
            after = self._put_later(put, given, after, appended, conditions)
        else:
            after = self._put_now(put, given, after, appended, conditions)
        if appended.records:
            self.happened("batches_stored", isinstance(put, PutBatch))
            self.happened("least_room_left", -after.end_offset % self.layout.file_bytes == BLANK_BYTES)
        self.appended(appended.records, end_after=after.end_offset)
        self._count_files(after, appended)
        self.end_verb(first, after)
        self.compare_watermarks()

    def _summed(self, put: Put | PutBatch, given: Message | Batch, conditions: Conditions) -> Message | Batch:
        """Give a message that asks for it the body with which its record has the checksum 0, if there is one."""
        if self.closed or put.op != "put" or put.body_kind != "sums to zero" or not self.layout.trailer:
            return given
        _, appended = commitlog.append(
            self.log, given, layout=self.layout, store_timestamp=self.clock_ms, conditions=conditions
        )
        if not appended.records or put.body_bytes < BODY_BYTES_MIN:
            return given
        body = sums_to_zero(appended.records[0])
        self.happened("checksums_of_zero", body is not None)
        return given if body is None else replace(given, body=body)

    def by_own_time(self, after: CommitLog) -> CommitLog:
        """Return the log after puts at the clock's time, the service of new files being told another one."""
        if after.retry_ms in (0, self.log.retry_ms):
            return after
        return replace(after, retry_ms=after.retry_ms - self.clock_ahead_ms)

    def _count_files(self, after: CommitLog, appended: Appended) -> None:
        """Note how a put came to a new file, or did not."""
        before = self.log
        if after.files > before.files:
            self.happened("prepared_files_taken", before.prepared > after.prepared)
            self.happened("files_without_a_buffer", self.layout.has_pool and len(after.buffers) == len(before.buffers))
        refused = appended.status is PutStatus.CREATE_MAPEDFILE_FAILED
        self.happened(
            "fast_failed",
            (
                refused
                and self.layout.has_pool
                and self.layout.fast_fail
                and len(before.buffers) == self.layout.pool_buffers
            ),
        )

    @property
    def waits_for_answers(self) -> bool:
        """Whether a put has not been answered yet."""
        return bool(self._open)

    def conditions(self) -> Conditions:
        """Return what the surroundings will do to the next put, or to the next step of a service."""
        usage = self.files.scripted_usage
        return Conditions(
            sync_fails=bool(self.files.failing_syncs),
            no_room=usage is not None and usage.free_bytes < self.layout.file_bytes,
            append_fails=self.surroundings.append_fails,
            replica=self.surroundings.replica,
        )

    def call_put(self, put: Put | PutBatch, given: Message | Batch) -> PutResult:
        """Put into the store and return its answer."""
        message = _for_store(put, given)
        if isinstance(message, MessageBatch):
            return observed("put_batch", lambda: self.store.put_batch(message))
        return observed("put", lambda: self.store.put(message))

    def _put_now(
        self, put: Put | PutBatch, given: Message | Batch, after: CommitLog, appended: Appended, conditions: Conditions
    ) -> CommitLog:
        """Put and wait: who waits for the disk has group commit take a step, which answers all others as well."""
        result = self.call_put(put, given)
        if not appended.records:
            self._compare_answers(result, PutOutcome(appended.status))
            return after
        waits = commitlog.wait_for(appended, layout=self.layout, now_ms=self.now_ms, conditions=conditions)
        if waits.disk is None:
            after, _ = flush(after, sync_fails=conditions.sync_fails)
            waits = waiting.flushed(waits, after)
            after, ended = self.end_waits(after, lambda each: waiting.flushed(each, after))
            self.happened("answered_with_another", ended)
        self._compare_answers(result, _outcome(appended, waiting.given_up(waits)))
        return after

    def _put_later(
        self, put: Put | PutBatch, given: Message | Batch, after: CommitLog, appended: Appended, conditions: Conditions
    ) -> CommitLog:
        """Put with `put_async`: who waits for disk or replica is answered later, everybody else at once."""
        message = _for_store(put, given)
        answer = observed("put_async", lambda: self.store.put_async(message))
        if not appended.records:
            self._compare_later(answer, PutOutcome(appended.status))
            return after
        waits = commitlog.wait_for(appended, layout=self.layout, now_ms=self.now_ms, conditions=conditions)
        if waits.answer is not None:
            self._compare_later(answer, _outcome(appended, waits))
            return after
        if answer.done():
            raise GuaranteeBroken(2, "a put is answered before its flush", "no answer yet", str(answer.result()))
        if waits.disk is None:
            self.require_will_step("group-commit")
        self._open.append(_Open(answer, appended, waits))
        return after

    def require_will_step(self, name: ServiceName, *, by_ms: int | None = None) -> None:
        """Contract 16: a service that somebody waits for will take a step without being told again, and in time."""
        service = self.surroundings.service(name)
        if service is None or not service.will_step(by_ms):
            raise GuaranteeBroken(16, "nobody wakes a service that has work", name, "it sleeps")

    def end_waits(self, log: CommitLog, change: Callable[[Waiting], Waiting]) -> tuple[CommitLog, int]:
        """End waits as the model says, and compare what is answered then; return how many puts that were.

        Copies of delayed messages that wait are in the log.
        """
        after = [replace(each, waits=change(each.waits)) for each in self._open]
        for each in after:
            if each.waits.answer is not None:
                self._compare_later(each.answer, _outcome(each.appended, each.waits))
            elif each.answer.done():
                raise GuaranteeBroken(16, "a put is answered too early", "no answer yet", str(each.answer.result()))
        self._open = [each for each in after if each.waits.answer is None]
        return answered(log, change), len(after) - len(self._open)

    def _compare_later(self, answer: Future[PutResult], outcome: PutOutcome) -> None:
        if not answer.done():
            raise GuaranteeBroken(16, "a put is not answered", outcome.status.value, "no answer")
        self._compare_answers(observed("put_async", answer.result), outcome)

    def _compare_answers(self, result: PutResult, outcome: PutOutcome) -> None:
        expected, found = expected_answer(outcome), found_answer(result)
        if expected != found:
            raise GuaranteeBroken(8, "a put answers otherwise than the model", str(expected), str(found))
        self.happened(f"answered_{outcome.status.value}")

    def put_concurrently(self, operation: Concurrent) -> None:
        """Two producers put at once; some order of their puts explains all answers."""
        if self.closed:
            return
        first = len(self.files.events)
        self.files.failing_syncs = self.files.failing_writes = 0
        if operation.commits:
            self.now_ms += self.layout.commit_thorough_ms  # a round of the service goes by no page rule then
        after = explained(self, operation)
        if after.flushed_offset > self.log.flushed_offset:
            after, _ = self.end_waits(after, lambda each: waiting.flushed(each, after))
        self.appended(after.records[len(self.log.records) :], end_after=after.end_offset)
        self.end_verb(first, after)
        self.compare_watermarks()

    def switch_flag(self, bit: int, *, on: bool) -> None:
        """Set or clear a running flag of the open store."""
        if not self.closed:
            flags = self.store.running_flags
            flags.set(RunningFlag(bit)) if on else flags.clear(RunningFlag(bit))
            self._flag(bit, on=on)

    def fill_disk(self, percent: int) -> None:
        """Use the disk to so many percent and let the store look at it, also if the clock is then set back a little."""
        if not self.closed:
            self.surroundings.use_disk(self.files, percent)
            self.now_ms += 2 * CLEAN_RESOURCE_INTERVAL_MS + 1
            self._flag(RunningFlag.DISK_FULL, on=percent > DISK_FULL_ABOVE_PERCENT)

    def _flag(self, bit: int, *, on: bool) -> None:
        self.log = replace(self.log, flags=self.log.flags | bit if on else self.log.flags & ~bit)


def _outcome(appended: Appended, waits: Waiting) -> PutOutcome:
    assert waits.answer is not None
    return PutOutcome(waits.answer, appended.records)


def _for_store(put: Put | PutBatch, given: Message | Batch) -> StoreMessage | MessageBatch:
    """Return what the store is given: everything the model is, but for a born time that is left to its clock."""
    message = store_batch(given) if isinstance(given, Batch) else store_message(given)
    return replace(message, born_timestamp=None) if put.born_now else message
