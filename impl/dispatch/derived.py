"""What is derived from the log: consume queues with their extension, the index, and how far both have come.

1. Everything here is a function of the log and the configuration. `reconcile` proves that at each writable open: what
   is stored and right stays, the rest is written anew. Neither the kind of the last exit nor any time is believed.
2. `reput_from_offset` goes on after queues and index have taken a whole batch. A batch that failed half-way is given to
   them again; both know what they have.
3. The bounds of a batch are those of its log file and `DispatchRules.batch_bytes_max`.

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
from tornpage.impl.queue.consume_queue import TOLD_BY_THE_LOG
from tornpage.impl.queue.consume_queues import ConsumeQueues

__all__ = ["Derived", "Progress"]

_LOG = logging.getLogger("tornpage.store")
_I64 = struct.Struct(">q")
_MAGIC = struct.Struct(">i")
_NOTHING = Dispatched(0, 0, (), NO_INDEX_PUTS, 0, None)


class Derived:
    """Owns queues, index and cursor; `index` is None when the configuration has none.

    `progress` is replaced as a whole once queues and index have a whole batch. `error` is a sentence once dispatch has
    met what cannot be there: it goes no further then. `named_queues` are those that records name besides their own,
    with the offset of the first such record, or one in front of it. Dispatched to by one thread at a time.
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
        self._rulings = Rulings()

    def tell_of_runs(self, follower: Callable[[Sequence[QueueRun]], object]) -> None:
        """Have somebody told of the units of each batch once they can be read; he must neither raise nor wait.

        This costs no look at the records, as the listeners of the store do, and goes for every role.
        """
        self._followers.append(follower)

    @property
    def reput_from_offset(self) -> int:
        """Where the next record to be dispatched begins."""
        return self.progress.offset

    @property
    def store_timestamp(self) -> int:
        """The newest store time that was dispatched, in milliseconds."""
        return self.progress.store_timestamp

    # ---- open ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read what is there. Raises OSError."""
        self.queues.load()
        if self.index is not None:
            self.index.load()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in queues and index, now and since the store was opened."""
        in_index = self.index.findings if self.index is not None else ()
        return (*self._rulings.findings, *self.queues.findings, *in_index)

    @property
    def is_provable(self) -> bool:
        """Whether checksums can tell later what the log would: not of bit maps, nor of what no queue can hold."""
        findings = (*self._rulings.findings, *self.queues.findings)
        return not self._rules.ext and not any(finding.code in TOLD_BY_THE_LOG for finding in findings)

    def leave_alone(self, log: MappedFileQueue) -> None:
        """Dispatch nothing of a log that may not be changed: what is in queues and index is there."""
        self._move_to(log.max_offset)

    def reconcile(
        self, log: MappedFileQueue, table: QueueOffsetTable, *, index_timestamp: int, proof: DerivedProof | None
    ) -> None:
        """Make queues and index what the log says, and teach the table of queue offsets.

        `index_timestamp` is the store time up to which the index is said to be durable. With a proof that is still true
        the log is asked from there on. When the disk refuses what is missing, as a full one does, the rest is left to
        the service: the store can be opened. Raises OSError when it refuses to erase what is wrong.
        """
        offset, end_offset, refused = log.min_offset, log.max_offset, False
        if proof is not None:
            offset = proof.offset
            self.queues.believe(proof.queue_files, log.min_offset)
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
            batch = batch._replace(given=batch.given._replace(runs=joined(batch.given.runs)))  # nobody reads meanwhile
            for run in batch.given.runs:
                table.learn(run)
            try:
                if not refused:
                    self._reconcile(batch.given)
                    self._took(batch)
            except OSError as error:
                _LOG.warning("reconcile_refused offset=%d error=%s", offset, error)
                refused = True
            if refused:
                self.queues.heard_of(batch.given.runs)
            self.error = batch.error
            offset = batch.next_offset
        self._end_reconcile(log.min_offset)
        self._move_to(self.reput_from_offset, self.store_timestamp)  # the index is mended only now
        for queue in self.queues.all():
            table.learn_maximum(queue.key, queue.max_offset)

    def _numbers_of(self, log: MappedFileQueue, offset: int, end_offset: int) -> Rulings:
        """Return what is decided about records whose numbers do not fit. Cost: one walk over the log without index."""
        numbers = QueueNumbers(self.queues, log_min=log.min_offset)
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
        """Dispatch one batch; return whether there was one. Raises the OSError of a file that cannot be written."""
        offset = max(self.progress.offset, log.min_offset)  # what is gone will never be dispatched (RMQ-B04)
        if offset >= readable_end or self.error is not None:
            return False
        batch = self._read(log, offset, readable_end)
        for run in batch.given.runs:
            self.queues.of(run.key).append(run)
        if self.index is not None:
            self.index.put(batch.given.index)
        tell(self._listeners, batch.arrivals)
        self._took(batch)
        for follower in self._followers:
            follower(batch.given.runs)
        return True

    def _took(self, batch: "_Batch") -> None:
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
        """Read what may be dispatched at once from `offset` on, which is below the end.

        `rules` are given by a walk that only asks what the records say of their numbers.
        """
        is_walk, rules = rules is not None, rules or self._rules
        file = log.find(offset)
        if file is None or not file.hold():
            return _Batch(_NOTHING, offset, (), _stopped(offset, "no_file"))
        try:
            position = offset - file.base_offset
            if not _says_position(file.view, position, offset):
                return _Batch(_NOTHING, offset, (), _stopped(offset, "bad_position"))
            given = self._dispatch(file.view, position, min(end_offset - file.base_offset, file.size_bytes), rules)
            listens = bool(self._listeners) and not is_walk
            arrivals = arrivals_in(file.view, position, given.end_position, rules) if listens else ()
        finally:
            file.release()
        if self._deleted is not None and self._deleted.offsets:
            given = self._deleted.without_deleted(given)
        if not is_walk:
            given = given._replace(runs=self._rulings.applied(given.runs))
        if given.reason == BLANK:
            return _Batch(given, file.end_offset, arrivals, None)
        next_offset = file.base_offset + given.end_position
        error = None if given.reason is None else _stopped(next_offset, given.reason)
        return _Batch(given, next_offset, arrivals, error)

    # ---- flush and close -----------------------------------------------------------------------------------------

    def flushables(self) -> Iterator[Flushable]:
        """Yield what can be made durable: every queue, then the index."""
        yield from self.queues.all()
        if self.index is not None:
            yield self.index

    def flush(self) -> None:
        """Make everything durable. Raises OSError."""
        for each in self.flushables():
            each.flush()

    def close(self) -> None:
        """Give everything up; nothing is synced here."""
        self.queues.close()
        if self.index is not None:
            self.index.close()


class Progress(NamedTuple):
    """Where dispatch goes on, the newest store time (milliseconds) before, and how far the index was then."""

    offset: int
    store_timestamp: int
    index_file: IndexFile | None
    index_header: IndexHeader
    index_times: Times


class _Batch(NamedTuple):
    """What was read at once: where the next batch begins, what listeners hear, why there is no next one or None."""

    given: Dispatched
    next_offset: int
    arrivals: Sequence[Arrival]
    error: str | None


def _stopped(offset: int, reason: str) -> str:
    return f"dispatch stopped at offset {offset}: {reason}"


def _says_position(view: memoryview, position: int, offset: int) -> bool:
    """Return whether a record at `position` says that it was written there; a blank says nothing."""
    if position + SMALLEST_RECORD_BYTES > len(view) or _MAGIC.unpack_from(view, position + 4)[0] != MESSAGE_MAGIC:
        return True
    return bool(_I64.unpack_from(view, position + 28)[0] == offset)
