"""Deleted topics, each with the offset below which its records are not dispatched.

The records of a deleted topic stay in the log until they expire. The next open dispatches the log again. RocketMQ then
has the topic back, or two numberings in one queue (RMQ-B39, hole C14). Here the deletion is recorded durably before a
message can get a number of the new numbering. It is forgotten once the log begins past the recorded offset.

`config/deletedTopics` is replaced as a whole by renaming a new file (numbers big-endian):

    0 "TPDELTP1" (8)   8 count (i32)   then for each topic, ascending: offset (i64), length (i16), topic (bytes)
    and at the end the CRC-32 of everything before it (u32)
"""

import contextlib
import os
import struct
from collections.abc import Collection, Iterable, Sequence

from isal.isal_zlib import crc32

from tornpage.impl.io.files import Files
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.message.dispatching import UNIT_BYTES, Dispatched, QueueRun

__all__ = ["DeletedTopics"]

_HEAD = struct.Struct(">8si")
_ENTRY = struct.Struct(">qh")
_CRC = struct.Struct(">I")
_I64 = struct.Struct(">q")
_MAGIC = b"TPDELTP1"


class DeletedTopics:
    """Owns the file of deleted topics. Topic names are bytes.

    The directory must exist before a write. `offsets` maps topics to physical offsets. It is replaced and never changed
    in place, so any thread may read it.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.offsets: dict[bytes, int] = {}
        self.findings: tuple[Finding, ...] = ()
        self._is_doubtful = False

    # ---- the file ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the file. An unreadable file gives a finding, and its deletions are lost.

        Raises OSError.
        """
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
            self.findings = (Finding("note", "deleted_topics_unreadable", self._path, NO_OFFSET, message),)
        self.offsets = offsets or {}

    def _write(self, offsets: dict[bytes, int]) -> None:
        """Replace the recorded offsets durably; they are valid from then on.

        Raises OSError if that fails. The old offsets then stay valid. They are written back if that is possible.
        """
        try:
            self._replace(offsets)
        except OSError:
            with contextlib.suppress(OSError):
                self.write_if_doubtful()
            raise
        self.offsets = offsets

    def write_if_doubtful(self) -> None:
        """Write the valid offsets durably if a failed write left the file in doubt.

        Raises OSError.
        """
        if self._is_doubtful:
            self._replace(self.offsets)

    def _replace(self, offsets: dict[bytes, int]) -> None:
        """Replace the file.

        Between the rename and the directory sync either version may be on disk. Raises OSError.
        """
        new = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):  # left by an interrupted attempt
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

    # ---- the recorded deletions----------------------------------------------------------------------------------

    def add(self, topics: Collection[bytes], offset: int) -> None:
        """Record topics as deleted below a physical offset, the end of the log.

        No put may run meanwhile. Raises OSError, and nothing has changed in memory. After a crash the refused change
        may still take effect, unless a later write or `write_if_doubtful` succeeded.
        """
        self._write({**self.offsets, **dict.fromkeys(topics, offset)})

    def settle(self, *, log_min: int, log_max: int) -> None:
        """Adjust the recorded offsets to the recovered log, before the first append.

        An offset past the end of a log that recovery has cut is lowered to that end, so that new messages are
        dispatched. Raises OSError.
        """
        settled = {topic: min(offset, log_max) for topic, offset in self.offsets.items() if offset > log_min}
        if settled != self.offsets:
            self._write(settled)

    def forget_expired(self, log_min: int) -> None:
        """Drop topics whose records below their offset have all left the log. Raises OSError."""
        left = {topic: offset for topic, offset in self.offsets.items() if offset > log_min}
        if left != self.offsets:
            self._write(left)

    def any_deleted(self, queue_files: Iterable[str]) -> bool:
        """Return whether a queue file of a deleted topic is among these.

        Paths are relative to the store directory. Such a file may date from before the deletion, so its checksum proves
        nothing.
        """
        return bool(self.offsets) and any(os.fsencode(path.split("/")[1]) in self.offsets for path in queue_files)

    # ---- filtering dispatch -----------------------------------------------------------------------------------

    def without_deleted(self, given: Dispatched) -> Dispatched:
        """Return dispatched records without the units of deleted messages.

        The index keeps their keys.
        """
        if self.offsets.keys().isdisjoint([run.key[0] for run in given.runs]):
            return given  # the usual case, without a copy
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
