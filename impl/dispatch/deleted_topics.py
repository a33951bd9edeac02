"""Topics that were deleted, each with the physical offset below which its records are not dispatched any more.

The records of a deleted topic stay in the log until they expire. Whoever opens the store dispatches them again, and
RocketMQ then has the topic back, or two numberings in one queue (RMQ-B39, hole C14). So a topic is remembered, durably,
before a message can get a number of the new numbering; it is forgotten once the log begins behind its offset.

`config/deletedTopics` is written as a new file that takes the place of the old one (numbers big-endian):

    0 "TPDELTP1" (8)   8 count (i32)   then for each topic, ascending: offset (i64), length (i16), topic (bytes)
    and at the end the CRC-32 of everything before it (u32)
"""

import contextlib
import os
import struct
from collections.abc import Collection, Iterable, Sequence

from isal.isal_zlib import crc32

from tornpage.impl.io.files import Files
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.message.dispatching import UNIT_BYTES, Dispatched, QueueRun

__all__ = ["DeletedTopics"]

_HEAD = struct.Struct(">8si")
_ENTRY = struct.Struct(">qh")
_CRC = struct.Struct(">I")
_I64 = struct.Struct(">q")
_MAGIC = b"TPDELTP1"


class DeletedTopics:
    """Owns the file; its directory exists when something is written. Names are topics as bytes.

    `offsets` is replaced and never changed, so any thread may look while one adds.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.offsets: dict[bytes, int] = {}
        self.findings: tuple[Finding, ...] = ()
        self._is_doubtful = False

    # ---- the file ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read what is remembered. A file that cannot be read is named, and what it said is lost. Raises OSError."""
        stat = self._files.stat(self._path)
        if stat is None:
            return
        file = self._files.open(self._path, writable=False)
        try:
            data = self._files.read(file, 0, stat.size_bytes)
        finally:
            self._files.close(file)
        offsets = _read(data)
        if offsets is None:
            message = f"{self._path} is damaged: topics that were deleted may be back"
            self.findings = (Finding("note", "deleted_topics_unreadable", self._path, -1, message),)
        self.offsets = offsets or {}

    def _write(self, offsets: dict[bytes, int]) -> None:
        """Put them in the place of the old ones, durably; they count from then on.

        Raises OSError: the old ones count then, and the file says so again unless the disk refuses that too.
        """
        try:
            self._replace(offsets)
        except OSError:
            with contextlib.suppress(OSError):
                self.make_certain()
            raise
        self.offsets = offsets

    def make_certain(self) -> None:
        """Have the file say what counts, durably, where a disk may have taken what does not count. Raises OSError."""
        if self._is_doubtful:
            self._replace(self.offsets)

    def _replace(self, offsets: dict[bytes, int]) -> None:
        """Replace the file. Behind the rename nobody knows what is on the disk, until the directory is synced."""
        new = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):  # of an attempt that was broken off
            self._files.unlink(new)
        file = self._files.create(new)
        try:
            self._files.pwrite(file, _written(offsets), 0)
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._is_doubtful = True
        self._files.rename(new, self._path)
        self._files.sync_directory(directory_of(self._path))
        self._is_doubtful = False

    # ---- what is remembered --------------------------------------------------------------------------------------

    def add(self, topics: Collection[bytes], offset: int) -> None:
        """Remember that topics were deleted while the log ended at an offset. Raises OSError: nothing has changed then.

        No message is put meanwhile. A crash may find what was refused, until something else is remembered or
        `make_certain` has come through.
        """
        self._write({**self.offsets, **dict.fromkeys(topics, offset)})

    def settle(self, *, log_min: int, log_max: int) -> None:
        """Follow a log that was just recovered, its queues too, before it is appended to. Raises OSError.

        Where a crash cut it, what comes next belongs to no deleted topic.
        """
        settled = {topic: min(offset, log_max) for topic, offset in self.offsets.items() if offset > log_min}
        if settled != self.offsets:
            self._write(settled)

    def forget_expired(self, log_min: int) -> None:
        """Forget the topics of which the log has no record from before. Raises OSError."""
        left = {topic: offset for topic, offset in self.offsets.items() if offset > log_min}
        if left != self.offsets:
            self._write(left)

    def are_in(self, queue_files: Iterable[str]) -> bool:
        """Return whether one of these is a queue file of a topic that is remembered; paths below the store's own.

        It may be one of before: whatever was said of it then does not count.
        """
        return bool(self.offsets) and any(os.fsencode(path.split("/")[1]) in self.offsets for path in queue_files)

    # ---- what is dispatched --------------------------------------------------------------------------------------

    def without_deleted(self, given: Dispatched) -> Dispatched:
        """Return what a stretch of the log gives without the units of deleted messages; the index keeps their keys."""
        return given._replace(runs=tuple(self._left_of(given.runs)))

    def _left_of(self, runs: Sequence[QueueRun]) -> Iterable[QueueRun]:
        for run in runs:
            deleted_below = self.offsets.get(run.key[0], 0)
            count, units = 0, len(run.units) // UNIT_BYTES
            while count < units and _I64.unpack_from(run.units, count * UNIT_BYTES)[0] < deleted_below:
                count += 1
            if count < units:
                yield run if not count else _tail_of(run, count)


def _tail_of(run: QueueRun, count: int) -> QueueRun:
    units = run.units[count * UNIT_BYTES :]
    return run._replace(queue_offset=run.queue_offset + count, units=units, ext=run.ext[count:])


def _written(offsets: dict[bytes, int]) -> bytes:
    entries = [_ENTRY.pack(offset, len(topic)) + topic for topic, offset in sorted(offsets.items())]
    data = _HEAD.pack(_MAGIC, len(entries)) + b"".join(entries)
    return data + _CRC.pack(crc32(data))


def _read(data: bytes) -> dict[bytes, int] | None:
    body, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(data) < _HEAD.size + _CRC.size or _CRC.pack(crc32(body)) != crc:
        return None
    magic, count = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        return None
    offsets, position = {}, _HEAD.size
    for _ in range(count):
        offset, length = _ENTRY.unpack_from(body, position)
        position += _ENTRY.size + length
        offsets[body[position - length : position]] = offset
    return offsets
