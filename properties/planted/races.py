"""Define bugs that need several threads: early visibility, double reads, missing locks.

Their own lines are yield points of interleavings (explore/interleavings/parts.py), like those of the store.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.message import GetResult, GetStatus, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.message_query import MessageQuery, QueryMessageResult
from tornpage.impl.read.queue_pull import GetMessageResult, Pull
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.retention.topic_cleaning import TopicCleaning
from tornpage.properties.planted.record import Origin, PlantedBug

__all__ = ["BUGS"]


class _LookedUpTwice(MappedFileQueue):
    """Compute the index of a file from one state of the file list (RMQ-B24).

    It is used on a later state of the list.
    """

    def find(self, offset: int) -> MappedFile | None:
        if not self.mapped:
            return None
        number = (offset - self.mapped[0].base_offset) // self.file_bytes
        files = self.mapped
        return files[number] if 0 <= number < len(files) else None


class _DeletedBesideDispatch(TopicCleaning):
    """Unmap a queue while dispatch may be about to write into it without a hold (RMQ-B40)."""

    def __init__(self, *args: Any, without_dispatch: Callable[[], Any], **options: Any) -> None:
        super().__init__(*args, without_dispatch=contextlib.nullcontext, **options)


class _WrittenBeforeBytes(MappedFile):
    """Move the written position before copying the bytes."""

    def append(self, record: bytearray) -> None:
        start = self.written_position
        end = start + len(record)
        if end > self._ask_position:
            self._ask()
        self.written_position = end
        self.target[start:end] = record
        self._files.mark(self._mark)


class _CommittedBeforeBytes(MappedFile):
    """Move the committed position before writing the buffer to the file."""

    def commit(self) -> None:
        buffer, start, written = self._buffer, self._committed_position, self.written_position
        if buffer is None:
            return
        self._committed_position = written
        self._files.pwrite(self._file, buffer[start:written], start)


class _FlushedReadAfter(MappedFile):
    """Count bytes committed after a sync as covered by that sync."""

    def flush(self) -> None:
        super().flush()
        self.flushed_position = self.committed_position


class _MaximumBeforeUnits(ConsumeQueue):
    """Raise the maximum of a queue before writing its units."""

    def _write(self, run: QueueRun) -> None:
        self.max_offset += len(run.units) // UNIT_BYTES
        self._files.append(run.units)
        self.max_physic_offset = run.end_offset


class _SleepsUnseen(ReputMessages):
    """Check for work a last time before noting that dispatch sleeps.

    Work that arrives in between wakes nothing.
    """

    def drain(self) -> None:
        with self._guard:
            self._sleeps = False
            while self.error is None and self._derived.dispatch(self._log, self._log.readable_end):
                pass
            self._sleeps = True
            self._tell_of_error()


class _JoinsTheSync(GroupCommit):
    """Answer a put that arrives during a sync with that sync."""

    def _serve(self) -> None:
        try:
            self._flush()
        finally:
            with self._guard:
                served, self._waiting = self._waiting, []
            for request in served:
                request.answer(PutStatus.PUT_OK)


class _Frozen(LogReader):
    """Freeze the readable end at the time of construction."""

    def __init__(self, reader: LogReader) -> None:
        super().__init__(reader.log, check=reader.check, buffers=reader.buffers)
        self._end = reader.readable_end

    @property
    def readable_end(self) -> int:
        return self._end


class _EndReadFirst(QueueReads):
    """Read the readable end before the maximum of the queue, and do not check it again."""

    def _get_from(self, queue: Any, offset: int, **options: Any) -> Any:
        frozen = _Frozen(self._reader)
        early = QueueReads(self._queues, frozen, records=self._records, limits=self._limits)
        return QueueReads._get_from(early, queue, offset, **options)


class _PastMaximum(Pull):
    """Return messages past the maximum that the pull reports."""

    def run(self, max_msg_nums: int) -> None:
        self._end_number = 1 << 62
        super().run(max_msg_nums)


class _LookedAtOnce(QueueReads):
    """Answer a pull that a deletion overtook with what it had found before."""

    def get_message(self, topic: str, queue_id: int, offset: int, **options: Any) -> GetMessageResult:
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return super().get_message(topic, queue_id, offset, **options)
        return self._get_from(queue, offset, **options)


class _DeletedFileIsEmpty(CommitLog):
    """Answer a get whose file is deleted meanwhile as if no record had begun there."""

    def get(self, offset: int, *, readable_end: int) -> GetResult:
        before = self.log.min_offset
        found = super().get(offset, readable_end=readable_end)
        if found.status is GetStatus.OFFSET_TOO_SMALL and offset >= before:
            return GetResult(GetStatus.OFFSET_FOUND_NULL)
        return found


class _Unguarded(IndexFile):
    """Read an index slot while entries are put. It may point past the count in the header."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"guard": contextlib.nullcontext})


class _ForgottenTooEarly(ConsumerOffsets):
    """Remove committed offsets before the queues are deleted.

    A commit in between keeps an old number for the new queue.
    """

    @contextlib.contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        with self._guard:
            self._forget(is_selected)
        yield lambda: None


class _QueriedOnce(MessageQuery):
    """Do not repeat a query that a clean-up overtook. It misses records that moved meanwhile."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        assert self._index is not None
        return self._found(self._index, topic, key, min(max_num, self._batch_max), begin_ms, end_ms)


class _DeletedBesidePuts(TopicCleaning):
    """Allow puts while the numbers of a topic are removed."""

    def __init__(self, *args: Any, without_puts: Callable[..., Any], **options: Any) -> None:
        super().__init__(*args, without_puts=lambda deed: deed(), **options)


class _CountedAsSaved(ConsumerOffsets):
    """Count the commits of a save's time as saved."""

    def save(self) -> None:
        with self._save_guard:
            with self._guard:
                document, is_changed = self._document(self._table), self._changes != self._saved_changes
            if is_changed:
                self._file.save(document)
                self._saved_changes = self._changes


class _TimedAfterTheSync(CommitLog):
    """Read the time of the newest record after the sync, which does not cover that record."""

    def flush(self, least_pages: int = 0) -> None:
        super().flush(least_pages)
        if not least_pages:
            self.flushed_store_timestamp = max(self.flushed_store_timestamp, self._last_store_timestamp)


class _StoppedBesideAPut(CommitLog):
    """Refuse later puts without a wait for the one under way."""

    def stop(self) -> None:
        self._stopped = True


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

BUGS = (
    PlantedBug("RMQ-B24", "a log file is looked up by an index computed before the first file was deleted", 17,
        Parts({MappedFileQueue: _LookedUpTwice}),
        origin=Origin("RMQ-B24", "Segment lookup returns a neighbour after the head was deleted", "4.3.0", "no"),
        needs_threads=True),
    PlantedBug("RMQ-B40", "a queue is deleted while dispatch may be writing into it", 11,
        Parts({TopicCleaning: _DeletedBesideDispatch}),
        origin=Origin("RMQ-B40", "Queue append writes into an unmapped segment", "5.3.1 avoids the map by default",
            "yes"), needs_threads=True),
    PlantedBug("written-before-bytes", "the written position moves before the bytes are copied", 17,
        Parts({MappedFile: _WrittenBeforeBytes}), needs_threads=True),
    PlantedBug("committed-before-bytes", "the committed position moves before the buffer is written to the file", 17,
        Parts({MappedFile: _CommittedBeforeBytes}), needs_threads=True),
    PlantedBug("flushed-read-behind", "a flush counts bytes as flushed that were committed during its sync", 2,
        Parts({MappedFile: _FlushedReadAfter}), needs_threads=True),
    PlantedBug("maximum-before-units", "the maximum of a queue rises before its units are written", 17,
        Parts({ConsumeQueue: _MaximumBeforeUnits}), needs_threads=True),
    PlantedBug("sleeps-unseen", "dispatch goes to sleep without seeing work that arrives at that moment", 16,
        Parts({ReputMessages: _SleepsUnseen}), needs_threads=True),
    PlantedBug("joins-the-sync", "a put that arrives during a sync is acknowledged by that sync", 2,
        Parts({GroupCommit: _JoinsTheSync}), needs_threads=True),
    PlantedBug("end-read-first", "a pull reads the readable end of the log before the maximum of its queue", 17,
        Parts({QueueReads: _EndReadFirst}), needs_threads=True),
    PlantedBug("beyond-its-maximum", "a pull returns messages past the maximum that it reports", 17,
        Parts({QueueReads: partial(QueueReads, pull=_PastMaximum)}), needs_threads=True),
    PlantedBug("looked-at-once", "a pull overtaken by a deletion answers with stale results", 17,
        Parts({QueueReads: _LookedAtOnce}), needs_threads=True),
    PlantedBug("gone-is-nothing", "a get whose log file is deleted meanwhile answers that no record is there", 17,
        Parts({CommitLog: _DeletedFileIsEmpty}), needs_threads=True),
    PlantedBug("index-unguarded", "a query reads an index slot while it is being written", 17,
        Parts({IndexFile: _Unguarded}), needs_threads=True),
    PlantedBug("forgotten-too-early",
        "a commit during a topic deletion leaves an old offset for the recreated queue", 17,
        Parts({ConsumerOffsets: _ForgottenTooEarly}), needs_threads=True),
    PlantedBug("queried-once", "a query overtaken by a clean-up misses records deleted and added meanwhile", 17,
        Parts({MessageQuery: _QueriedOnce}), needs_threads=True),
    PlantedBug("deleted-beside-puts", "a topic is deleted while messages are put to it", 17,
        Parts({TopicCleaning: _DeletedBesidePuts}), needs_threads=True),
    PlantedBug("counted-as-saved", "a commit during a save of progress is never saved", 13,
        Parts({ConsumerOffsets: _CountedAsSaved}), needs_threads=True),
    PlantedBug("timed-after-the-sync", "the checkpoint has the time of a record that was put during the sync", 9,
        Parts({CommitLog: _TimedAfterTheSync}), needs_threads=True),
    PlantedBug("stopped-beside-a-put", "a close does not wait for a put that is under way", 17,
        Parts({CommitLog: _StoppedBesideAPut}), needs_threads=True),
)  # fmt: skip
