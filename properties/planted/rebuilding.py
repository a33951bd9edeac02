"""Bugs in how queues are proved when a store opens, and in what speaks for them (holes of 4.9.3)."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from impl.background import Background
from impl.consume_queue import ConsumeQueue
from impl.consume_queues import ConsumeQueues
from impl.derived import Derived
from impl.dispatching import UNIT_BYTES, Dispatched, QueueRun
from impl.index_file import IndexFile
from impl.index_layout import IndexHeader
from impl.loading import Finding
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts
from impl.queue_files import QueueFiles
from impl.zeros import first_nonzero

__all__ = ["BUGS"]

_FILES_COMPARED = 3


class _ZeroUnitCounts(ConsumeQueue):
    """The first unit of a newest file of zeros counts, although no message has its number (hole C7)."""

    _new_number = -1

    def _end_of_units(self) -> int:
        newest = self._files.mapped[-1] if self._files.mapped else None
        if newest is not None and first_nonzero(newest.view, 0) is None:
            self._new_number = newest.base_offset // UNIT_BYTES
        return super()._end_of_units()

    def end_reconcile(self, log_min: int) -> bool:
        erased = super().end_reconcile(log_min)
        if self.max_offset == self._new_number and not self.is_empty:
            self._write(QueueRun(self.key, self.max_offset, bytes(UNIT_BYTES), self.max_physic_offset))
        return erased


class _ThreeFilesCompared(ConsumeQueue):
    """Only units in the last three files of a queue are compared with the log (hole C16)."""

    def _equal(self, run: QueueRun, count: int) -> int:
        compared_from = self._files.end_position - _FILES_COMPARED * self._files.file_bytes
        believed = min(count, max(0, compared_from // UNIT_BYTES - self._proved))
        if not believed:
            return super()._equal(run, count)
        return believed


class _LostQueueFromTheLastFile(Derived):
    """A queue of which nothing is left gets the units of the newest log file, and no others (hole C13)."""

    _start = 0

    def load(self) -> None:
        super().load()
        self._found = {queue.key for queue in self.queues.all()}

    def reconcile(self, log: MappedFileQueue, *args: Any, **kwargs: Any) -> None:
        self._start = log.mapped[-1].base_offset if log.mapped else 0
        super().reconcile(log, *args, **kwargs)

    def _reconcile(self, given: Dispatched) -> None:
        runs = [run for run in given.runs if run.key in self._found or run.end_offset > self._start]
        super()._reconcile(given._replace(runs=runs))


class _BehindTheEnd(Derived):
    """Dispatch goes on behind the furthest unit there was, even behind the end of the log (hole C8)."""

    _furthest = 0

    def load(self) -> None:
        super().load()
        self._furthest = max((queue.max_physic_offset for queue in self.queues.all()), default=0)

    def reconcile(self, *args: Any, **kwargs: Any) -> None:
        super().reconcile(*args, **kwargs)
        if self._furthest > self.reput_from_offset:
            self._move_to(self._furthest, self.store_timestamp)


class _CheckpointByTheIndex(Background):
    """When an index file is full the checkpoint is written, and speaks for queues that nobody flushed (hole C3)."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        checkpoint, derived = parts["checkpoint"], parts["derived"]
        if (index := derived.index) is None:
            return
        make = index._make

        def make_and_note(header: IndexHeader) -> IndexFile:
            if index.index_files:
                checkpoint.note_dispatched(header.end_timestamp)
                with contextlib.suppress(OSError):
                    index.index_files[-1].flush(0)
                    checkpoint.flush()
            return make(header)  # type: ignore[no-any-return]

        index._make = make_and_note


class _CheckpointFirst(Background):
    """The checkpoint is written before the flush of what it speaks of."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        checkpoint, derived = parts["checkpoint"], parts["derived"]
        flushables = derived.flushables

        def checkpoint_first() -> Iterator[Any]:
            checkpoint.note_dispatched(derived.store_timestamp)
            checkpoint.flush()
            yield from flushables()

        derived.flushables = checkpoint_first
        super().__init__(*args, **parts)


class _StrayFileBlocks(QueueFiles):
    """A file that is none of the queue's keeps the store from starting (hole G2)."""

    def _queue_file_names(self) -> tuple[dict[int, int], list[Finding]]:
        names, findings = super()._queue_file_names()
        if findings:
            raise OSError(f"{findings[0].file} is no consume queue file")
        return names, findings


BUGS = (
    ("zero-unit-counts", "the first unit of a new queue file counts before it is there", 17,
     Parts({ConsumeQueue: _ZeroUnitCounts})),
    ("three-files-compared", "only the last three files of a queue are compared with the log", 4,
     Parts({ConsumeQueue: _ThreeFilesCompared})),
    ("lost-queue-from-the-last-file", "a lost queue gets the units of the newest log file only", 4,
     Parts({Derived: _LostQueueFromTheLastFile})),
    ("begins-behind-the-end", "dispatch goes on behind the end of the log", 16, Parts({Derived: _BehindTheEnd})),
    ("checkpoint-by-the-index", "a full index file has the checkpoint speak for queues that are not flushed", 9,
     Parts({Background: _CheckpointByTheIndex})),
    ("checkpoint-before-flush", "the checkpoint is written before queues and index are flushed", 9,
     Parts({Background: _CheckpointFirst})),
    ("stray-file-blocks", "a stray file beside those of a queue keeps the store from starting", 7,
     Parts({ConsumeQueues: partial(ConsumeQueues, queue_files=_StrayFileBlocks)})),
)  # fmt: skip
