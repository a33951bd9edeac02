"""Raising the derived floor after flushes of consume queues and index.

A sample of the progress of dispatch is taken before queues and index are flushed. The checksums of the sampled bytes
are computed after the flush. The floor covers only records that are durable in the log, so a sample waits until the
log is flushed past it. A later flush of the queues replaces a waiting sample. If the log has records that no queue
can hold, no floor is written: each open then walks the whole log and reports those records again.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isal.isal_zlib import crc32

from tornpage.impl.dispatch.derived import Derived, Progress
from tornpage.impl.dispatch.derived_floor import DerivedFloor, DerivedProof
from tornpage.impl.index.index_layout import IndexFileProof
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import QueueFileProof

__all__ = ["RaiseDerivedFloor"]

_LOG = logging.getLogger("tornpage.store")

_CHUNK_BYTES = 1 << 20

_Sum = tuple[int, int, int]
"""Begin and end of the summed bytes of a file, and their CRC-32."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """The progress of dispatch, and the end of each queue at that time, in bytes."""

    progress: Progress
    ends: Mapping[str, int]


class RaiseDerivedFloor:
    """Writes the derived floor after queues and index were flushed.

    One thread at a time may call it. `root` is the directory of the store.
    """

    def __init__(self, floor: DerivedFloor, derived: Derived, log: MappedFileQueue, *, root: str) -> None:
        self._floor = floor
        self._derived = derived
        self._log = log
        self._root = root
        self._sums: dict[str, _Sum] = {}
        self._sample: _Sample | None = None
        self._written: tuple[Progress, int] | None = None

    def sample(self) -> None:
        """Record how far the following flush will make queues and index durable."""
        progress = self._derived.progress
        if (
            (progress, self._count_files()) == self._written
            or progress.offset == self._log.min_offset
            or not self._derived.is_provable
        ):
            self._sample = None
            return
        ends = {queue.directory: _end_of(queue, progress.offset) * UNIT_BYTES for queue in self._derived.queues.all()}
        self._sample = _Sample(progress, ends)

    def raise_floor(self) -> None:
        """Write the sampled floor if the log is durable that far.

        Call it after a flush that succeeded. If the write fails, the previous floor stays and the next call tries
        again.
        """
        sample = self._sample
        if sample is None or sample.progress.offset > self._log.flushed_where:
            return
        sums = self._sums
        self._sums = {}  # drops the sums of removed files
        queue_files = tuple(self._queue_files(sample, sums))
        index_files = tuple(self._index_files(sample.progress, sums))
        blanks = tuple(
            (file.base_offset, file.blank_position)
            for file in self._log.mapped
            if file.blank_position is not None and file.end_offset <= sample.progress.offset
        )
        named = tuple(
            (name.hex(), queue_id)
            for (name, queue_id), offset in tuple(self._derived.named_queues.items())
            if offset < sample.progress.offset
        )
        proof = DerivedProof(
            offset=sample.progress.offset,
            store_timestamp=sample.progress.store_timestamp,
            blanks=blanks,
            named_queues=named,
            queue_files=queue_files,
            index_files=index_files,
        )
        try:
            self._floor.write(proof)
        except OSError as error:
            _LOG.warning("derived_floor_not_written offset=%d error=%s", proof.offset, error)
            return
        self._sample, self._written = None, (sample.progress, len(queue_files) + len(index_files))

    def _count_files(self) -> int:
        """Return the number of files that a floor would name; retention lowers it."""
        index_files = self._derived.index.index_files if self._derived.index is not None else ()
        return sum(len(queue.mapped) for queue in self._derived.queues.all()) + len(index_files)

    def _queue_files(self, sample: _Sample, sums: Mapping[str, _Sum]) -> Iterable[QueueFileProof]:
        for queue in self._derived.queues.all():
            end = sample.ends.get(queue.directory, 0)
            for mapped in queue.mapped:
                if mapped.base_offset >= end:
                    break
                size_bytes = min(end - mapped.base_offset, mapped.size_bytes)
                yield QueueFileProof(self._path(mapped), size_bytes, self._sum(mapped, 0, size_bytes, sums))

    def _index_files(self, progress: Progress, sums: Mapping[str, _Sum]) -> Iterable[IndexFileProof]:
        index = self._derived.index
        for index_file in index.index_files if index is not None and progress.index_file is not None else ():
            is_last = index_file is progress.index_file
            header = progress.index_header if is_last else index_file.header
            times = progress.index_times if is_last else index_file.times
            start, end = (index_file.layout.position_of(number) for number in (1, header.next_number))
            crc = self._sum(index_file.mapped, start, end, sums)
            yield IndexFileProof(self._path(index_file.mapped), header, times, crc)
            if is_last:
                return

    def _path(self, mapped: MappedFile) -> str:
        return mapped.path.removeprefix(f"{self._root}/")

    def _sum(self, mapped: MappedFile, start: int, end: int, sums: Mapping[str, _Sum]) -> int:
        """Return the checksum of a part of a file, reading only bytes not summed before."""
        begin, position, crc = sums.get(mapped.path, (start, start, 0))
        if begin != start or position > end:
            position, crc = start, 0
        if mapped.hold():  # the checksum of a file removed meanwhile is wrong: the next open finds that
            try:
                while position < end:
                    following = min(end, position + _CHUNK_BYTES)
                    crc = crc32(mapped.view[position:following], crc)
                    position = following
            finally:
                mapped.release()
        self._sums[mapped.path] = (start, position, crc)
        return crc


def _end_of(queue: ConsumeQueue, offset: int) -> int:
    """Return the number after the last unit whose record begins before an offset."""
    numbers = range(queue.first_number, queue.max_offset)
    if not numbers or queue.offset_at(numbers[-1]) < offset:
        return numbers.stop
    return numbers.start + bisect_left(numbers, offset, key=queue.offset_at)
