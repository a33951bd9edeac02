"""Data derived from the log: consume queues, their extension, the index, the position.

1. Queues and index are functions of the log and the configuration. `reconcile` verifies that at each writable open:
   stored data that is right stays, the rest is rewritten. It trusts neither the kind of the last exit nor any time.
2. `reput_from_offset` advances after queues and index have taken a whole batch. A batch that failed in the middle is
   dispatched again; queues and index skip what they already have.
3. A batch ends at the end of its log file or at `DispatchRules.batch_bytes_max`.

Source: `DefaultMessageStore.ReputMessageService.doReput`, `recoverConsumeQueue`, `IndexService`.
"""

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tornpage.impl.dispatch.arriving import Arrival, MessageArrivingListener, arrivals_in, tell
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived_floor import DerivedProof
from tornpage.impl.dispatch.queue_flush import Flushable
from tornpage.impl.dispatch.queue_numbers import QueueNumbers, Rulings
from tornpage.impl.index.index_file import NO_TIMES, IndexFile, Times
from tornpage.impl.index.index_layout import IndexHeader
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.message.codec import MESSAGE_MAGIC, SMALLEST_RECORD_BYTES
from tornpage.impl.message.dispatching import (
    BLANK,
    NO_INDEX_PUTS,
    Dispatched,
    Dispatcher,
    DispatchRules,
    QueueRun,
    joined,
)
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue import LOG_INCONSISTENCY_CODES
from tornpage.impl.queue.consume_queues import ConsumeQueues

__all__ = ["Derived", "Progress"]

_LOG = logging.getLogger("tornpage.store")
_I64 = struct.Struct(">q")
_MAGIC = struct.Struct(">i")
_NOTHING = Dispatched(0, 0, (), NO_INDEX_PUTS, 0, None)


class Derived:
    """Owns queues, index and dispatch position.

    `index` is None if the configuration disables it. `progress` is replaced as a whole after queues and index have
    taken a whole batch. `error` is a sentence after dispatch has met bytes that cannot be a record; dispatch stops
    there. `named_queues` maps queues that records name besides their own to the offset of the first such record or an
    earlier offset. One thread at a time may dispatch.
    """

    def __init__(
        self,
        queues: ConsumeQueues,
        index: IndexService | None,
        *,
        dispatch: Dispatcher,
        rules: DispatchRules,
        listeners: Sequence[MessageArrivingListener] = (),
        deleted: DeletedTopics | None = None,
        numbers: type[QueueNumbers] = QueueNumbers,
    ) -> None:
        self.queues = queues
        self.index = index
        self.progress = Progress(0, 0, None, IndexHeader(), NO_TIMES)
        self.named_queues: dict[QueueKey, int] = {}
        self.error: str | None = None
        self._dispatch = dispatch
        self._rules = rules
        self._listeners = listeners
        self._followers: list[Callable[[Sequence[QueueRun]], object]] = []
        self._deleted = deleted
        self._numbers = numbers
        self._rulings = Rulings()

    def add_follower(self, follower: Callable[[Sequence[QueueRun]], object]) -> None:
        """Register a function to call with the runs of each batch once they are readable.

        It must neither raise nor wait. Unlike the listeners of the store it needs no look at the records, and it is
        called in every broker role.
        """
        self._followers.append(follower)

    @property
    def reput_from_offset(self) -> int:
        """The physical offset at which the next record to dispatch begins."""
        return self.progress.offset

    @property
    def store_timestamp(self) -> int:
        """The newest store time that was dispatched, in milliseconds."""
        return self.progress.store_timestamp

    # ---- open ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load queues and index from disk. Raises OSError."""
        self.queues.load()
        if self.index is not None:
            self.index.load()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about queues and index since the store was opened."""
        in_index = self.index.findings if self.index is not None else ()
        return (*self._rulings.findings, *self.queues.findings, *in_index)

    @property
    def is_provable(self) -> bool:
        """Whether checksums can later replace a walk of the log.

        They cannot with bit maps, nor if the log has records that no queue can hold.
        """
        findings = (*self._rulings.findings, *self.queues.findings)
        return not self._rules.ext and not any(finding.code in LOG_INCONSISTENCY_CODES for finding in findings)

    def skip_all(self, log: MappedFileQueue) -> None:
        """Mark the whole log as dispatched, without changing queues or index.

        Use it for a log that must not be changed. Units of messages before the deletion of their topic, which a torn
        queue file can bring back, are hidden.
        """
        deleted = {} if self._deleted is None else self._deleted.offsets
        for queue in self.queues.all():
            if queue.key[0] in deleted:
                queue.hide_before(deleted[queue.key[0]])
        self._move_to(log.max_offset)

    def reconcile(
        self, log: MappedFileQueue, table: QueueOffsetTable, *, index_timestamp: int, proof: DerivedProof | None
    ) -> None:
        """Make queues and index equal to the log, and load the table of queue offsets.

        `index_timestamp` is the store time in milliseconds up to which the checkpoint says the index is durable. With a
        valid `proof` the log is read from the offset of the proof on. If a missing unit or entry cannot be written, for
        example on a full disk, the rest is left to the dispatch service and the store still opens. Raises OSError if
        wrong data cannot be erased.
        """
        offset, end_offset, refused = log.min_offset, log.max_offset, False
        if proof is not None:
            offset = proof.offset
            self.queues.trust(proof.queue_files, log.min_offset)
            for name, queue_id in proof.named_queues:
                self.named_queues[bytes.fromhex(name), queue_id] = 0
                table.learn_named((bytes.fromhex(name), queue_id))
        if self._deleted is not None:
            self.queues.erase_deleted(self._deleted.offsets, log.min_offset)
        self._rulings = self._numbers_of(log, offset, end_offset)
        self._move_to(offset, 0 if proof is None else proof.store_timestamp)
        if self.index is not None:
            proofs = None if proof is None else proof.index_files
            self.index.begin_reconcile(offset, durable_timestamp=index_timestamp, proofs=proofs)
        while offset < end_offset and self.error is None:
            batch = self._read(log, offset, end_offset)
            batch = batch._replace(given=batch.given._replace(runs=joined(batch.given.runs)))  # no reader yet
            for run in batch.given.runs:
                table.learn(run)
            try:
                if not refused:
                    self._reconcile(batch.given)
                    self._advance(batch)
            except OSError as error:
                _LOG.warning("reconcile_refused offset=%d error=%s", offset, error)
                refused = True
            if refused:
                self.queues.note_unstored(batch.given.runs)
            self.error = batch.error
            offset = batch.next_offset
        self._end_reconcile(log.min_offset)
        self._move_to(self.reput_from_offset, self.store_timestamp)  # the index is complete only now
        for queue in self.queues.all():
            table.learn_maximum(queue.key, queue.max_offset)

    def _numbers_of(self, log: MappedFileQueue, offset: int, end_offset: int) -> Rulings:
        """Return the decisions about records whose numbers do not fit.

        Cost: one walk over the log without index.
        """
        numbers = self._numbers(self.queues, log_min=log.min_offset)
        rules = replace(self._rules, index=False, ext=False, bit_map_of=None)
        error: str | None = None
        while offset < end_offset and error is None:
            batch = self._read(log, offset, end_offset, rules)
            numbers.take(batch.given.runs)
            offset, error = batch.next_offset, batch.error
        return numbers.rulings()

    def _reconcile(self, given: Dispatched) -> None:
        for run in given.runs:
            self.queues.of(run.key).reconcile(run)
        if self.index is not None:
            self.index.reconcile(given.index)

    def _end_reconcile(self, log_min_offset: int) -> None:
        self.queues.end_reconcile(log_min_offset)
        if self.index is not None:
            self.index.end_reconcile()

    # ---- dispatch ------------------------------------------------------------------------------------------------

    def dispatch(self, log: MappedFileQueue, readable_end: int) -> bool:
        """Dispatch one batch; return whether there was one.

        Raises OSError if a queue or index file cannot be written.
        """
        offset = max(self.progress.offset, log.min_offset)  # expired records are never dispatched (RMQ-B04)
        if offset >= readable_end or self.error is not None:
            return False
        batch = self._read(log, offset, readable_end)
        for run in batch.given.runs:
            self.queues.of(run.key).append(run)
        if self.index is not None:
            self.index.put(batch.given.index)
        tell(self._listeners, batch.arrivals)
        self._advance(batch)
        for follower in self._followers:
            follower(batch.given.runs)
        return True

    def _advance(self, batch: "_Batch") -> None:
        for run in batch.given.runs:
            if run.named:
                self.named_queues.setdefault(run.key, self.reput_from_offset)
        self._move_to(batch.next_offset, max(self.store_timestamp, batch.given.store_timestamp))
        self.error = batch.error

    def _move_to(self, offset: int, store_timestamp: int = 0) -> None:
        index_files = self.index.index_files if self.index is not None else ()
        last = index_files[-1] if index_files else None
        header, times = (IndexHeader(), NO_TIMES) if last is None else (last.header, last.times)
        self.progress = Progress(offset, store_timestamp, last, header, times)

    def _read(self, log: MappedFileQueue, offset: int, end_offset: int, rules: DispatchRules | None = None) -> "_Batch":
        """Read the batch that begins at `offset`, which must be below `end_offset`.

        `rules` are given by a walk that only asks what the records say of their numbers.
        """
        is_walk, rules = rules is not None, rules or self._rules
        file = log.find(offset)
        if file is None or not file.hold():
            return _Batch(_NOTHING, offset, (), _stopped(offset, "no_file"))
        try:
            position = offset - file.base_offset
            if not _has_own_position(file.view, position, offset):
                return _Batch(_NOTHING, offset, (), _stopped(offset, "bad_position"))
            given = self._dispatch(file.view, position, min(end_offset - file.base_offset, file.size_bytes), rules)
            listens = bool(self._listeners) and not is_walk
            arrivals = arrivals_in(file.view, position, given.end_position, rules) if listens else ()
        finally:
            file.release()
        if self._deleted is not None and self._deleted.offsets:
            given = self._deleted.without_deleted(given)
        if not is_walk and not self._rulings.is_empty:
            given = given._replace(runs=tuple(self._rulings.applied(given.runs)))
        if given.reason == BLANK:
            return _Batch(given, file.end_offset, arrivals, None)
        next_offset = file.base_offset + given.end_position
        error = None if given.reason is None else _stopped(next_offset, given.reason)
        return _Batch(given, next_offset, arrivals, error)

    # ---- flush and close -----------------------------------------------------------------------------------------

    def flushables(self) -> Iterator[Flushable]:
        """Yield the parts that can be flushed: every queue, then the index."""
        yield from self.queues.all()
        if self.index is not None:
            yield self.index

    def flush(self) -> None:
        """Make queues and index durable. Raises OSError."""
        for each in self.flushables():
            each.flush()

    def close(self) -> None:
        """Close queues and index without a sync."""
        self.queues.close()
        if self.index is not None:
            self.index.close()


class Progress(NamedTuple):
    """The dispatch position and the state of the index there.

    `store_timestamp` is the newest store time before the position, in milliseconds.
    """

    offset: int
    store_timestamp: int
    index_file: IndexFile | None
    index_header: IndexHeader
    index_times: Times


class _Batch(NamedTuple):
    """One batch read from the log.

    `next_offset` is where the next batch begins, `arrivals` are for the listeners. `error` says why dispatch stops
    after this batch, or is None.
    """

    given: Dispatched
    next_offset: int
    arrivals: Sequence[Arrival]
    error: str | None


def _stopped(offset: int, reason: str) -> str:
    return f"dispatch stopped at offset {offset}: {reason}"


def _has_own_position(view: memoryview, position: int, offset: int) -> bool:
    """Return whether a record at `position` holds `offset` as its own physical offset.

    Returns True for a blank.
    """
    if position + SMALLEST_RECORD_BYTES > len(view) or _MAGIC.unpack_from(view, position + 4)[0] != MESSAGE_MAGIC:
        return True
    return bool(_I64.unpack_from(view, position + 28)[0] == offset)
