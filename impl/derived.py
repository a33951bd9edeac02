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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from impl.arriving import Arrival, MessageArrivingListener, arrivals_in, tell
from impl.codec import MESSAGE_MAGIC, SMALLEST_RECORD_BYTES
from impl.consume_queues import ConsumeQueues
from impl.dispatching import BLANK, NO_INDEX_PUTS, Dispatched, Dispatcher, DispatchRules
from impl.index_service import IndexService
from impl.loading import Finding
from impl.mapped_file_queue import MappedFileQueue
from impl.queue_flush import Flushable
from impl.queue_offsets import QueueOffsetTable

__all__ = ["Derived"]

_LOG = logging.getLogger("tornpage.store")
_I64 = struct.Struct(">q")
_MAGIC = struct.Struct(">i")
_NOTHING = Dispatched(0, 0, (), NO_INDEX_PUTS, 0, None)


class Derived:
    """Owns queues, index and cursor; `index` is None when the configuration has none.

    `store_timestamp` is the newest of all dispatched records, in milliseconds. `error` is a sentence once dispatch has
    met what cannot be there: it goes no further then. Dispatched to by one thread at a time.
    """

    def __init__(
        self,
        queues: ConsumeQueues,
        index: IndexService | None,
        *,
        dispatch: Dispatcher,
        rules: DispatchRules,
        listeners: Sequence[MessageArrivingListener] = (),
    ) -> None:
        self.queues = queues
        self.index = index
        self.reput_from_offset = 0
        self.store_timestamp = 0
        self.error: str | None = None
        self._dispatch = dispatch
        self._rules = rules
        self._listeners = listeners

    # ---- open ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read what is there. Raises OSError."""
        self.queues.load()
        if self.index is not None:
            self.index.load()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in queues and index, now and since the store was opened."""
        return (*self.queues.findings, *(self.index.findings if self.index is not None else ()))

    def leave_alone(self, log: MappedFileQueue) -> None:
        """Dispatch nothing of a log that may not be changed: what is in queues and index is there."""
        self.reput_from_offset = log.max_offset

    def reconcile(self, log: MappedFileQueue, table: QueueOffsetTable, *, index_timestamp: int) -> None:
        """Make queues and index what the log says, and teach the table of queue offsets.

        `index_timestamp` is the store time up to which the index is said to be durable. When the disk refuses what is
        missing, as a full one does, the rest is left to the service: the store can be opened. Raises OSError when it
        refuses to erase what is wrong.
        """
        offset, end_offset, refused = log.min_offset, log.max_offset, False
        self.reput_from_offset = offset
        if self.index is not None:
            self.index.begin_reconcile(offset, durable_timestamp=index_timestamp)
        while offset < end_offset and self.error is None:
            batch = self._read(log, offset, end_offset)
            for run in batch.given.runs:
                table.learn(run)
            try:
                if not refused:
                    self._reconcile(batch.given)
                    self._took(batch)
            except OSError as error:
                _LOG.warning("reconcile_refused offset=%d error=%s", offset, error)
                refused = True
            self.error = batch.error
            offset = batch.next_offset
        self._end_reconcile(log.min_offset)
        for queue in self.queues.all():
            table.learn_maximum(queue.key, queue.max_offset)

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
        offset = self.reput_from_offset
        if offset >= readable_end or self.error is not None:
            return False
        batch = self._read(log, offset, readable_end)
        for run in batch.given.runs:
            self.queues.of(run.key).append(run)
        if self.index is not None:
            self.index.put(batch.given.index)
        tell(self._listeners, batch.arrivals)
        self._took(batch)
        return True

    def _took(self, batch: "_Batch") -> None:
        self.store_timestamp = max(self.store_timestamp, batch.given.store_timestamp)
        self.reput_from_offset = batch.next_offset
        self.error = batch.error

    def _read(self, log: MappedFileQueue, offset: int, end_offset: int) -> "_Batch":
        """Read what may be dispatched at once from `offset` on, which is below the end."""
        file = log.find(offset)
        if file is None or not file.hold():
            return _Batch(_NOTHING, offset, (), _stopped(offset, "no_file"))
        try:
            position = offset - file.base_offset
            if not _says_position(file.view, position, offset):
                return _Batch(_NOTHING, offset, (), _stopped(offset, "bad_position"))
            given = self._dispatch(
                file.view, position, min(end_offset - file.base_offset, file.size_bytes), self._rules
            )
            arrivals = arrivals_in(file.view, position, given.end_position, self._rules) if self._listeners else ()
        finally:
            file.release()
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
