"""One file of the commit log or of a queue: a mapping, its watermarks, and its references.

Always `flushed_position <= committed_position <= written_position <= size_bytes`. None of them decreases while the file
is open. Positions are bytes from the start of the file. Bytes past `committed_position` are zero in the mapping.

With a buffer of the transient store pool, appends go to the buffer, and a commit writes them to the file. Readers and
flushes see the file only. Source: `MappedFile`, `ReferenceResource`.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.io.warm_up import warm_up
from tornpage.impl.io.zeros import CHUNK_BYTES, first_nonzero
from tornpage.impl.message.codec import BLANK_BYTES, encode_blank

__all__ = ["MappedFile"]

Answer = TypeVar("Answer")


class MappedFile:
    """Owns one mapping. One thread at a time appends (put lock); any thread reads and flushes.

    `mark` is the label of an append in the crash lab. A file that is not `kept_open` is closed after it is mapped, and
    opened for each sync, since a store has thousands of queues and a process has few descriptors. It takes no buffer.
    """

    def __init__(
        self,
        files: Files,
        file: OpenFile,
        *,
        base_offset: int,
        written_position: int,
        mark: str = "record",
        kept_open: bool = True,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._files = files
        self._file = file
        self._mark = mark
        self._kept_open = kept_open
        self._mapping = files.map(file)
        self.view = self._mapping.view
        self.target = self.view
        self.base_offset = base_offset
        self.size_bytes = len(self.view)
        self.written_position = written_position
        self.flushed_position = 0
        self.failure: OSError | None = None
        self.blank_position: int | None = None
        self.marks: ReadMarks | None = None
        self._buffer: memoryview | None = None
        self._committed_position = 0
        self._ask_for_pages: Callable[[], object] | None = None
        self._ask_position = self.size_bytes
        self._is_locked = False
        self._is_mapped = True
        self._references = 1
        self._closed = False
        self._guard = guard()
        if not kept_open:
            files.close(file)

    @property
    def committed_position(self) -> int:
        """Position up to which readers may read; without a buffer everything written is committed."""
        return self.written_position if self._buffer is None else self._committed_position

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    @property
    def end_offset(self) -> int:
        """Physical offset after this file."""
        return self.base_offset + self.size_bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be appended."""
        return self.written_position == self.size_bytes

    def holds(self, offset: int) -> bool:
        """Return whether a physical offset lies in this file."""
        return self.base_offset <= offset < self.end_offset

    def may_hold_record(self, position: int) -> bool:
        """Return whether a record may begin at a position.

        Old bytes may lie in the blank and after it.
        """
        return self.blank_position is None or position < self.blank_position

    def append(self, record: bytearray) -> None:
        """Copy a record or other data, which must fit, to the written position."""
        start = self.written_position
        end = start + len(record)
        if end > self._ask_position:
            self._ask()
        self.target[start:end] = record
        self._files.mark(self._mark)
        self.written_position = end  # last, so that readers below it see whole records only

    def warm_up(self, policy: AllocationPolicy, flush_disk_type: FlushDiskType) -> None:
        """Populate and lock all pages by the policy.

        They are unlocked once the whole file is on disk. Call it before the first append. RocketMQ unlocks six seconds
        after the roll, durable or not.
        """
        self._is_locked = warm_up(
            self._files, self._file, self._mapping, policy=policy, flush_disk_type=flush_disk_type
        )

    def ask_for_pages(self, ask: Callable[[], object], *, beyond: int) -> None:
        """Call `ask` once from the append that passes a position; it must neither raise nor wait."""
        self._ask_for_pages, self._ask_position = ask, beyond

    def _ask(self) -> None:
        self._ask_position = self.size_bytes  # before the call, which may set the next position at once
        if self._ask_for_pages is not None:
            self._ask_for_pages()

    def populate(self, start: int, end: int) -> None:
        """Populate pages before they are written.

        They are dirty zeros: a flush in between writes them twice.
        """
        self._files.populate(self._mapping, start, end - start)

    def append_blank(self) -> None:
        """Declare the rest of the file empty; the file is full afterwards."""
        start = self.written_position
        blank = encode_blank(self.size_bytes - start)
        self.target[start : start + len(blank)] = blank
        self._files.mark("blank")
        self.blank_position = start
        self.written_position = self.size_bytes

    def erase_failed_append(self, size_bytes: int) -> None:
        """Zero the bytes that a failed append may have left past the written position."""
        start = self.written_position
        end = min(start + size_bytes, self.size_bytes)
        self.target[start:end] = bytes(end - start)

    @property
    def has_buffer(self) -> bool:
        """Whether appends go to a buffer."""
        return self._buffer is not None

    def use_buffer(self, buffer: memoryview) -> None:
        """Append to a buffer of the file's size from here on; call it before the first append.

        Bytes of an earlier file in the buffer are never written: a commit ends at this file's own bytes.
        """
        self._buffer = self.target = buffer

    def commit(self) -> None:
        """Write the uncommitted bytes of the buffer to the file, then advance the watermark.

        Raises OSError if the write fails. The bytes stay in the buffer, and the next commit writes them again.
        """
        if self._buffer is None:
            return
        written = self.written_position  # read before the write, which covers no later records
        end = written if self.blank_position is None else self.blank_position + BLANK_BYTES
        self._files.pwrite(self._file, self._buffer[self._committed_position : end], self._committed_position)
        self._committed_position = written

    def take_buffer(self) -> memoryview | None:
        """Remove the buffer and return it, or None without one; uncommitted bytes are lost."""
        buffer, self._buffer = self._buffer, None
        self.target = self.view
        return buffer

    def flush(self) -> None:
        """Make everything committed durable, then advance the watermark.

        A failed sync advances nothing and makes the file unusable for later flushes. The kernel may have dropped the
        pages, so a later success would prove nothing (contract 9). Raises the OSError of the sync, then and at every
        later call.
        """
        if self.failure is not None:
            raise self.failure
        committed = self.committed_position  # read before the sync, which covers no later records
        if committed == self.flushed_position:
            return
        try:
            self._with_file(self._files.sync)
        except OSError as error:
            self.failure = error
            raise
        self.flushed_position = committed
        if self._is_locked and committed == self.size_bytes:
            self._files.unlock_memory(self._mapping)
            self._is_locked = False

    def zero(self, position: int, size_bytes: int) -> None:
        """Overwrite a range with zeros, durable after the next successful sync."""
        self._with_file(self._files.zero, position, size_bytes)

    def first_nonzero(self, position: int) -> int | None:
        """Return the position of the first nonzero byte from `position` on, None if there is none.

        Holes of the file are not read, since a log file may have a GiB of them.
        """
        if self.size_bytes - position <= CHUNK_BYTES:
            return first_nonzero(self.view, position)
        stretches = self._with_file(self._stretches, position)
        found = (first_nonzero(self.view[:end], start) for start, end in stretches)
        return next((at for at in found if at is not None), None)

    def _stretches(self, file: OpenFile, position: int) -> list[tuple[int, int]]:
        """Return the ranges that may hold data from a position on.

        All of them are determined before any is read, since readahead makes holes look written.
        """
        stretches = []
        while (stretch := self._files.next_data(file, position)) is not None:
            stretches.append(stretch)
            position = stretch[1]
        return stretches

    def rewrite(self, start: int, end: int) -> None:
        """Write a range again with equal bytes.

        The next sync then writes it even if an earlier sync failed. After a failed sync the kernel counts the pages as
        clean, whether they are on disk or not. Holes are left alone.
        """
        self._with_file(self._rewrite_in, start, end)

    def _rewrite_in(self, file: OpenFile, position: int, end: int) -> None:
        while position < end and (stretch := self._files.next_data(file, position)) is not None:
            stop = min(stretch[1], end)
            for at in range(max(position, stretch[0]), stop, CHUNK_BYTES):
                self._files.pwrite(file, bytes(self.view[at : min(at + CHUNK_BYTES, stop)]), at)
            position = stretch[1]

    def sync(self) -> None:
        """Sync the whole file, whatever the watermarks are. Raises OSError."""
        self._with_file(self._files.sync)

    def _with_file(self, do: Callable[..., Answer], *arguments: int) -> Answer:
        """Call a function with the file open; open it for the call if it is not kept open.

        A write-back error that no sync has reported yet raises OSError here too.
        """
        if self._kept_open:
            return do(self._file, *arguments)
        file = self._files.open(self.path, writable=True)
        try:
            return do(file, *arguments)
        finally:
            self._files.close(file)

    def hold(self) -> bool:
        """Take a reference; return False if the file is being closed."""
        with self._guard:
            if self._closed:
                return False
            self._references += 1
            return True

    def release(self) -> None:
        """Release a reference; the last one unmaps the file."""
        with self._guard:
            self._references -= 1
            last = self._references == 0
        if last:
            self.unmap_if_unused()
            if self._kept_open:
                self._files.close(self._file)

    @property
    def is_unreferenced(self) -> bool:
        """Whether no reference is held; views taken from the file may still keep it mapped."""
        return not self._references

    def unmap_if_unused(self) -> bool:
        """Unmap a file without references; return whether the mapping is gone.

        A view that a reader still has keeps the file mapped: nothing is unmapped under a reader. A later call tries
        again.
        """
        with self._guard:
            if self._is_mapped and not self._references:
                try:
                    self.view.release()
                    self._files.unmap(self._mapping)
                except BufferError:
                    return False
                self._is_mapped = False
            return not self._is_mapped

    def close(self) -> None:
        """Release the owner's reference, once.

        No new reference can be taken; the last reader unmaps the file.
        """
        with self._guard:
            closed, self._closed = self._closed, True
        if not closed:
            self.release()

    def check(self) -> None:
        """Assert the order of the watermarks."""
        assert 0 <= self.flushed_position <= self.committed_position <= self.written_position <= self.size_bytes
