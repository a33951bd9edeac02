"""The verbs that put, each compared with the model as it returns, and what may stand in their way."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from impl.components import Components
from impl.message import Message as StoreMessage
from impl.message import MessageBatch, PutResult
from impl.running_flags import RunningFlag
from model import commitlog
from model.commitlog import Appended, PutOutcome
from model.message import Batch, Message, PutStatus
from model.state import BLANK_BYTES, CommitLog, Conditions, Record
from properties.answers import expected_answer, found_answer
from properties.case import (
    Concurrent,
    Put,
    PutBatch,
    Settings,
)
from properties.concurrent import explained
from properties.recorder.dirty import DirtyTracker
from properties.translation import (
    CLEAN_RESOURCE_INTERVAL_MS,
    born_at,
    given_of,
    store_batch,
    store_message,
)
from properties.trial_state import TrialState, observed
from properties.verdict import GuaranteeBroken

__all__ = ["PutVerbs"]

DISK_FULL_ABOVE_PERCENT = 90
"""`rocketmq.broker.diskSpaceWarningLevelRatio`."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A put that waits for its answer, and the conditions under which it was appended."""

    answer: Future[PutResult]
    appended: Appended
    conditions: Conditions


class PutVerbs(TrialState):
    """Puts of a trial: messages and batches, at once, later, and by two producers at the same time."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Components | None = None) -> None:
        self._waiting: list[_Waiting] = []
        super().__init__(settings, tracker=tracker, components=components)

    def put(self, put: Put | PutBatch) -> None:
        """Put a message or a batch; a closed store answers SERVICE_NOT_AVAILABLE."""
        first = len(self.files.events)
        self.now_ms += put.advance_ms
        given = born_at(put, given_of(put), self.now_ms)
        conditions = self.conditions()
        if self.closed:
            after, appended = self.log, Appended(PutStatus.SERVICE_NOT_AVAILABLE)
        else:
            after, appended = commitlog.append(
                self.log, given, layout=self.layout, store_timestamp=self.now_ms, conditions=conditions
            )
        if put.later:
            after = self._put_later(put, given, after, appended, conditions)
        else:
            after, outcome = commitlog.settle(after, appended, layout=self.layout, conditions=conditions)
            self._compare_answers(self.call_put(put, given), outcome)
        if appended.records:
            self.effects["batches_stored"] += isinstance(put, PutBatch)
            self.effects["least_room_left"] += -after.end_offset % self.layout.file_bytes == BLANK_BYTES
        self._note(appended.records, end_after=after.end_offset)
        self.end_verb(first, after)
        self.compare_watermarks()

    @property
    def waits_for_answers(self) -> bool:
        """Whether a put has not been answered yet."""
        return bool(self._waiting)

    def conditions(self) -> Conditions:
        """Return what the surroundings will do to the next put."""
        return Conditions(
            sync_fails=bool(self.files.failing_syncs),
            append_fails=self.surroundings.append_fails,
            replica=self.surroundings.replica,
        )

    def call_put(self, put: Put | PutBatch, given: Message | Batch) -> PutResult:
        """Put into the store and return its answer."""
        message = _for_store(put, given)
        if isinstance(message, MessageBatch):
            return observed("put_batch", lambda: self.store.put_batch(message))
        return observed("put", lambda: self.store.put(message))

    def _put_later(
        self, put: Put | PutBatch, given: Message | Batch, after: CommitLog, appended: Appended, conditions: Conditions
    ) -> CommitLog:
        """Put with `put_async`: who waits for the disk is answered by a step, everybody else at once."""
        message = _for_store(put, given)
        answer = observed("put_async", lambda: self.store.put_async(message))
        if appended.records and appended.waits and self.layout.sync_flush:
            if answer.done():
                raise GuaranteeBroken(2, "a put is answered before its flush", "no answer yet", str(answer.result()))
            self._waiting.append(_Waiting(answer, appended, conditions))
            return after
        after, outcome = commitlog.settle(after, appended, layout=self.layout, conditions=conditions)
        self._compare_later(answer, outcome)
        return after

    def _compare_later(self, answer: Future[PutResult], outcome: PutOutcome) -> None:
        if not answer.done():
            raise GuaranteeBroken(16, "a put is not answered", outcome.status.value, "no answer")
        self._compare_answers(observed("put_async", answer.result), outcome)

    def _compare_answers(self, result: PutResult, outcome: PutOutcome) -> None:
        expected, found = expected_answer(outcome), found_answer(result)
        if expected != found:
            raise GuaranteeBroken(8, "a put answers otherwise than the model", str(expected), str(found))
        self.effects[f"answered_{outcome.status.value}"] += 1

    def _note(self, records: Sequence[Record], *, end_after: int) -> None:
        """Take what a put wrote into the judges' memory: its records, or only the blank before a refused append."""
        end_before = self.log.end_offset
        for record in records:
            self.ledger.note(record, end_before=end_before, peek=self.peek)
            end_before = record.end_offset
        if end_after > end_before:
            self.ledger.note_blank(end_before, self.peek)

    def step(self) -> None:
        """Let group commit take a step: all that wait are answered."""
        first, after = len(self.files.events), self.log
        sync_fails = bool(self.files.failing_syncs)
        observed("step", self.surroundings.step)
        self.end_verb(first, self.answer_waiting(after, sync_fails=sync_fails))
        self.compare_watermarks()

    def answer_waiting(self, log: CommitLog, *, sync_fails: bool) -> CommitLog:
        """Compare the answers of all puts that waited; one flush serves them."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            log, _ = commitlog.flush(log, sync_fails=sync_fails)
        self.effects["answered_by_group_commit"] += len(waiting)
        for put in waiting:
            conditions = replace(put.conditions, sync_fails=False)
            log, outcome = commitlog.settle(log, put.appended, layout=self.layout, conditions=conditions)
            self._compare_later(put.answer, outcome)
        return log

    def put_concurrently(self, operation: Concurrent) -> None:
        """Two producers put at once; some order of their puts explains all answers."""
        if self.closed:
            return
        first = len(self.files.events)
        self.files.failing_syncs = 0
        after = explained(self, operation)
        self._note(after.records[len(self.log.records) :], end_after=after.end_offset)
        self.end_verb(first, after)
        self.compare_watermarks()

    def switch_flag(self, bit: int, *, on: bool) -> None:
        """Set or clear a running flag of the open store."""
        if not self.closed:
            flags = self.store.running_flags
            flags.set(RunningFlag(bit)) if on else flags.clear(RunningFlag(bit))
            self._flag(bit, on=on)

    def fill_disk(self, percent: int) -> None:
        """Use the disk to so many percent and let the store look at it."""
        if not self.closed:
            self.surroundings.use_disk(self.files, percent)
            self.now_ms += CLEAN_RESOURCE_INTERVAL_MS + 1
            self._flag(RunningFlag.DISK_FULL, on=percent > DISK_FULL_ABOVE_PERCENT)

    def _flag(self, bit: int, *, on: bool) -> None:
        self.log = replace(self.log, flags=self.log.flags | bit if on else self.log.flags & ~bit)


def _for_store(put: Put | PutBatch, given: Message | Batch) -> StoreMessage | MessageBatch:
    """Return what the store is given: everything the model is, but for a born time that is left to its clock."""
    message = store_batch(given) if isinstance(given, Batch) else store_message(given)
    return replace(message, born_timestamp=None) if put.born_now else message
