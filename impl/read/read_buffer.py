"""Buffers of reads: windows on the mapping of a log file, without a copy, never a crash.

A buffer is valid until it is released, or until the store takes it back: `close()` does, and whoever deletes a file.
After that its methods raise BufferReleased. Python itself sees to the rest: a view that a caller took from a buffer
exports the mapping, and an exported mapping cannot be unmapped. Such views are counted as leaks, and the mapping goes
with the last of them.

All buffers that one answer has in one file share a lease, which is one reference on that file (`MappedFile.hold`).
Source: `SelectMappedBufferResult`, `ReferenceResource`.
"""

import logging
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import Self

from tornpage.impl.errors import BufferReleased
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message import codec
from tornpage.impl.message.message import StoredMessage

__all__ = ["BufferLease", "ReadBuffer", "ReadBuffers", "RecordBuffer", "RecordBuffers"]

_LOG = logging.getLogger("tornpage.store")


class ReadBuffer:
    """Bytes `[offset, offset + size_bytes)` of the log. Usable from several threads; `release` may come twice."""

    __slots__ = ("_lease", "_position", "_released", "offset", "size_bytes")

    def __init__(self, lease: "BufferLease", position: int, size_bytes: int) -> None:
        self.offset = lease.base_offset + position
        self.size_bytes = size_bytes
        self._lease = lease
        self._position = position
        self._released = False

    @property
    def released(self) -> bool:
        """Whether the buffer was released, by whom ever."""
        return self._released or self._lease.ended

    @property
    def view(self) -> memoryview:
        """The bytes, read-only, without a copy.

        The view outlives the release of the buffer and keeps the whole file mapped: drop it soon.
        """
        if not self._released:
            try:
                return self._lease.view[self._position : self._position + self.size_bytes]
            except ValueError:  # taken back, now or earlier
                pass
        raise BufferReleased(self.offset)

    def __bytes__(self) -> bytes:
        """Return a copy."""
        return bytes(self.view)

    def __len__(self) -> int:
        return self.size_bytes

    def release(self) -> None:
        """Give the buffer back. Idempotent."""
        self._lease.give_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        state = ", released" if self.released else ""
        return f"{type(self).__name__}(offset={self.offset}, size_bytes={self.size_bytes}{state})"


class RecordBuffer(ReadBuffer):
    """One whole record, checked when it was read; `queue_offset` is its number in the queue it was read from.

    In a queue that a multi-dispatched message names that is not the number the record itself says.
    """

    __slots__ = ("queue_offset",)

    def __init__(self, lease: "BufferLease", position: int, size_bytes: int, queue_offset: int) -> None:
        super().__init__(lease, position, size_bytes)
        self.queue_offset = queue_offset

    def message(self) -> StoredMessage:
        """Decode it: a copy, which is not touched by a release."""
        return codec.decode_record(self.view, 0)


class RecordBuffers:
    """An answer with several messages. Release it, or use it in a `with` statement."""

    __slots__ = ()
    messages: tuple[RecordBuffer, ...]

    def release(self) -> None:
        """Give all buffers back. Idempotent."""
        for message in self.messages:
            message.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class BufferLease:
    """One reference on a log file for the buffers of one answer; `view` shows the whole file, read-only.

    It ends when who made it and all its buffers have given it back, when it is taken back, or when nobody knows it any
    more. A finaliser runs wherever the interpreter likes, also inside a lock, so it takes none and leaves the reference
    for the next caller.
    """

    __slots__ = ("__weakref__", "_count", "_file", "_owner", "base_offset", "end_offset", "ended", "mapped", "view")

    def __init__(self, owner: "ReadBuffers", file: MappedFile) -> None:
        self._owner = owner
        self._file: MappedFile | None = file
        self._count = 1
        self.mapped = file
        self.base_offset = file.base_offset
        self.end_offset = file.end_offset
        self.view = file.view.toreadonly()
        self.ended = False

    def buffer(self, position: int, size_bytes: int) -> ReadBuffer:
        """Return a buffer of some bytes; only for who made the lease, before it gives it back."""
        self._count += 1
        return ReadBuffer(self, position, size_bytes)

    def record(self, position: int, size_bytes: int, queue_offset: int) -> RecordBuffer:
        """Return a buffer of a record that was checked; as `buffer`."""
        self._count += 1
        return RecordBuffer(self, position, size_bytes, queue_offset)

    @property
    def buffer_count(self) -> int:
        """How many buffers were not given back."""
        return self._count

    def give_back(self, buffer: ReadBuffer | None = None) -> None:
        """Count a buffer as released, or, without one, the making of buffers as done."""
        with self._owner.guard:
            if buffer is not None:
                if buffer._released:
                    return
                buffer._released = True
            self._count -= 1
            last = self._count == 0
        if last:
            self.end()

    def end(self) -> bool:
        """Take all buffers back and give up the reference; return whether that was still to be done."""
        with self._owner.guard:
            file, self._file = self._file, None
        if file is None:
            return False
        self.ended = True
        self._owner.forget(self)
        self.view.release()
        file.release()
        return True

    def __del__(self) -> None:
        file = self._file
        if file is not None:
            self._file = None
            self._owner.forget(self)
            self._owner.forgotten.append(file)


class ReadBuffers:
    """All buffers of one store that readers hold. Once `is_shut`, there are none any more."""

    def __init__(self, *, guard: MakeGuard = threading.Lock) -> None:
        self.guard = guard()
        self.forgotten: deque[MappedFile] = deque()
        self._leases: dict[int, weakref.ref[BufferLease]] = {}
        self._lent: set[MappedFile] = set()
        self.is_shut = False

    def lease(self, file: MappedFile) -> BufferLease | None:
        """Take a reference on a file for buffers, or None: the file is being closed, or the store is."""
        if self.forgotten:
            self.settle()
        with self.guard:
            if self.is_shut or not file.hold():
                return None
            lease = BufferLease(self, file)
            self._leases[id(lease)] = weakref.ref(lease)
            self._lent.add(file)
        return lease

    def forget(self, lease: BufferLease) -> None:
        """Know a lease no more; one step, so that it needs no lock."""
        self._leases.pop(id(lease), None)

    def settle(self) -> None:
        """Give back the references of buffers that were dropped without a release."""
        while self.forgotten:
            try:
                file = self.forgotten.popleft()
            except IndexError:  # another thread was faster
                return
            file.release()

    @property
    def held(self) -> int:
        """How many buffers readers hold."""
        return sum(lease.buffer_count for lease in self._live())

    def _live(self) -> list[BufferLease]:
        self.settle()
        with self.guard:
            found = [reference() for reference in self._leases.copy().values()]
        return [lease for lease in found if lease is not None]

    def take_back(self, file: MappedFile) -> int:
        """End the leases on one file, whoever holds them; return how many. For a file that is deleted by force."""
        return sum(lease.end() for lease in self._live() if lease.mapped is file)

    def shut(self) -> int:
        """End all leases and make no new ones; return how many were still held. Idempotent."""
        with self.guard:
            self.is_shut = True
        ended = sum(lease.end() for lease in self._live())
        if ended:
            _LOG.warning("read_buffers_taken_back answers=%d remedy='release what a read returns'", ended)
        return ended

    @property
    def leaked(self) -> int:
        """How many log files are closed and still mapped, because somebody keeps a view of a buffer.

        Looking tries to unmap them once more.
        """
        with self.guard:
            lent = list(self._lent)
        gone = {file for file in lent if file.let_go()}
        with self.guard:
            self._lent -= gone
        return sum(file.is_let_go for file in lent if file not in gone)

    def log_leaks(self) -> int:
        """Say in the log how many files cannot be unmapped; return it. Called when the files were closed."""
        leaked = self.leaked
        if leaked:
            _LOG.warning("read_views_leaked files=%d remedy='drop the views taken from buffers of reads'", leaked)
        return leaked
