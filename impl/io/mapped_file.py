"""One file of the commit log: a mapping, its watermarks, and who still holds it.

Always `flushed_position <= committed_position <= written_position <= size_bytes`; none ever goes down while the file
is open. Positions are bytes from the start of the file. Bytes beyond `committed_position` are zero in the mapping.

With a buffer of the transient store pool, appends go to the buffer, and a commit writes them to the file; readers and
flushes see the file only. Source: `MappedFile`, `ReferenceResource`.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.warm_up import warm_up
from tornpage.impl.io.zeros import CHUNK_BYTES, first_nonzero
from tornpage.impl.message.codec import BLANK_BYTES, encode_blank

__all__ = ["MappedFile"]

Answer = TypeVar("Answer")


class MappedFile:
    """Owns one mapping. Appends come from one thread at a time (the put lock); reads and flushes from any.

    `mark` is what an append is called in the crash lab. A file that is not `kept_open` is closed once it is mapped, and
    opened again for each sync: a store has thousands of queues, and a process few descriptors.
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
        """End of what readers may see; without a buffer everything written is committed."""
        return self.written_position if self._buffer is None else self._committed_position

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    @property
    def end_offset(self) -> int:
        """Physical offset just behind this file."""
        return self.base_offset + self.size_bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be appended."""
        return self.written_position == self.size_bytes

    def holds(self, offset: int) -> bool:
        """Whether a physical offset lies in this file."""
        return self.base_offset <= offset < self.end_offset

    def may_hold_record(self, position: int) -> bool:
        """Whether a record may begin at a position: not in or behind the blank, where old bytes may lie."""
        return self.blank_position is None or position < self.blank_position

    def append(self, record: bytearray) -> None:
        """Copy a record, or what else the file is made of, that fits behind the written position."""
        start = self.written_position
        end = start + len(record)
        if end > self._ask_position:
            self._ask()
        self.target[start:end] = record
        self._files.mark(self._mark)
        self.written_position = end  # last: whoever reads below it sees whole records only

    def warm_up(self, policy: AllocationPolicy, flush_disk_type: FlushDiskType) -> None:
        """Have all pages ready and locked, as the policy says; they are unlocked once the whole file is on disk.

        Called before the first append. RocketMQ unlocks six seconds after the roll, durable or not.
        """
        self._is_locked = warm_up(
            self._files, self._file, self._mapping, policy=policy, flush_disk_type=flush_disk_type
        )

    def ask_for_pages(self, ask: Callable[[], object], *, beyond: int) -> None:
        """Have `ask` called by the append that goes beyond a position, once; it must neither raise nor wait."""
        self._ask_for_pages, self._ask_position = ask, beyond

    def _ask(self) -> None:
        self._ask_position = self.size_bytes  # before: whoever is asked may name the next position at once
        if self._ask_for_pages is not None:
            self._ask_for_pages()

    def populate(self, start: int, end: int) -> None:
        """Have pages ready before they are written. They become dirty zeros: a flush in between writes them twice."""
        self._files.populate(self._mapping, start, end - start)

    def append_blank(self) -> None:
        """Declare the rest of the file empty; the file is full afterwards."""
        start = self.written_position
        blank = encode_blank(self.size_bytes - start)
        self.target[start : start + len(blank)] = blank
        self._files.mark("blank")
        self.blank_position = start
        self.written_position = self.size_bytes

    def take_back(self, size_bytes: int) -> None:
        """Erase what a refused append of so many bytes may have left behind the written position."""
        start = self.written_position
        end = min(start + size_bytes, self.size_bytes)
        self.target[start:end] = bytes(end - start)

    @property
    def has_buffer(self) -> bool:
        """Whether appends go to a buffer."""
        return self._buffer is not None

    def use_buffer(self, buffer: memoryview) -> None:
        """Append to a buffer of the file's size from here on; called before the first append.

        What an earlier file left in it is never written: a commit ends where this file's own bytes end.
        """
        self._buffer = self.target = buffer

    def commit(self) -> None:
        """Write what the buffer holds to the file, then move the watermark.

        Raises OSError when the disk takes less; the bytes stay in the buffer, and the next commit writes them again.
        """
        if self._buffer is None:
            return
        written = self.written_position  # before the write: later records are not part of it
        end = written if self.blank_position is None else self.blank_position + BLANK_BYTES
        self._files.pwrite(self._file, self._buffer[self._committed_position : end], self._committed_position)
        self._committed_position = written

    def take_buffer(self) -> memoryview | None:
        """Return the buffer, if there is one, to whom it belongs; what was not committed is lost."""
        buffer, self._buffer = self._buffer, None
        self.target = self.view
        return buffer

    def flush(self) -> None:
        """Make everything committed durable, then move the watermark.

        A failed sync moves nothing and poisons the file: the kernel may have dropped the pages, so a later success
        would prove nothing (contract 9). Raises the OSError of the sync, then and at every later call.
        """
        if self.failure is not None:
            raise self.failure
        committed = self.committed_position  # before the call: later records are not covered by it
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
        """Overwrite a range with zeros; durable after the next successful sync."""
        self._with_file(self._files.zero, position, size_bytes)

    def first_nonzero(self, position: int) -> int | None:
        """Return the position of the first byte other than zero from `position` on, None without one.

        What the disk never wrote is not read: a log file may have a GiB of it.
        """
        if self.size_bytes - position <= CHUNK_BYTES:
            return first_nonzero(self.view, position)
        stretches = self._with_file(self._stretches, position)
        found = (first_nonzero(self.view[:end], start) for start, end in stretches)
        return next((at for at in found if at is not None), None)

    def _stretches(self, file: OpenFile, position: int) -> list[tuple[int, int]]:
        """Return what may hold something from a position on: all of it before any is read, since reading ahead makes
        holes look written.
        """
        stretches = []
        while (stretch := self._files.next_data(file, position)) is not None:
            stretches.append(stretch)
            position = stretch[1]
        return stretches

    def rewrite(self, start: int, end: int) -> None:
        """Write a range once more as it is: a sync writes it then, even if one of another process has failed before.

        A kernel whose sync fails counts the pages as clean, whether they are on the disk or not. What the disk never
        wrote is left alone.
        """
        self._with_file(self._rewrite_in, start, end)

    def _rewrite_in(self, file: OpenFile, position: int, end: int) -> None:
        while position < end and (stretch := self._files.next_data(file, position)) is not None:
            behind = min(stretch[1], end)
            for at in range(max(position, stretch[0]), behind, CHUNK_BYTES):
                self._files.pwrite(file, bytes(self.view[at : min(at + CHUNK_BYTES, behind)]), at)
            position = stretch[1]

    def sync(self) -> None:
        """Make the file as it is durable, whatever the watermarks say."""
        self._with_file(self._files.sync)

    def _with_file(self, do: Callable[..., Answer], *arguments: int) -> Answer:
        """Do something with the file open for a moment, unless it is open; a write-back that failed unseen is an error
        here too.
        """
        if self._kept_open:
            return do(self._file, *arguments)
        file = self._files.open(self.path, writable=True)
        try:
            return do(file, *arguments)
        finally:
            self._files.close(file)

    def hold(self) -> bool:
        """Take a reference; False once the file is being closed."""
        with self._guard:
            if self._closed:
                return False
            self._references += 1
            return True

    def release(self) -> None:
        """Give a reference back; the last one lets the mapping go."""
        with self._guard:
            self._references -= 1
            last = self._references == 0
        if last:
            self.let_go()
            if self._kept_open:
                self._files.close(self._file)

    @property
    def is_let_go(self) -> bool:
        """Whether nobody holds the file any more; views taken from it may still keep it mapped."""
        return not self._references

    def let_go(self) -> bool:
        """Unmap a file that nobody holds any more; return whether the mapping is gone.

        Whoever still has a view of it keeps it mapped: nothing is unmapped under a reader. A later call tries again.
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
        """Drop the owner's reference, once: no new holds; the mapping goes with the last reader."""
        with self._guard:
            closed, self._closed = self._closed, True
        if not closed:
            self.release()

    def check(self) -> None:
        """Assert the order of the watermarks."""
        assert 0 <= self.flushed_position <= self.committed_position <= self.written_position <= self.size_bytes
