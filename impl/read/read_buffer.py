"""Buffers of reads: windows on the mapping of a log file, without a copy.

A buffer is valid until it is released or the store takes it back, which `close()` and the deletion of its file do.
After that its methods raise BufferReleased. Python ensures the rest: a view taken from a buffer exports the mapping,
and an exported mapping cannot be unmapped. Such views are counted as leaks, and the mapping ends with the last of them.

All buffers of one answer in one file share a lease, which is one reference on that file (`MappedFile.hold`). Source:
`SelectMappedBufferResult`, `ReferenceResource`.
"""

import logging
import struct
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, overload

from tornpage.impl.errors import BufferReleased
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.codec import copied_record, decoder_of
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.message.properties_text import PropertiesParser, parse_pairs

__all__ = ["BufferLease", "ReadBuffer", "ReadBuffers", "RecordBuffer", "RecordBuffers", "RecordWindow"]

_LOG = logging.getLogger("tornpage.store")
_PLACE = struct.Struct(">qi8x")
"""Physical offset and size in a unit of a queue."""
assert _PLACE.size == UNIT_BYTES


class ReadBuffer:
    """Bytes `[offset, offset + size_bytes)` of the log.

    Usable from several threads; `release` is idempotent.
    """

    __slots__ = ("_lease", "_position", "_released", "offset", "size_bytes")

    def __init__(self, lease: "BufferLease", position: int, size_bytes: int) -> None:
        self.offset = lease.base_offset + position
        self.size_bytes = size_bytes
        self._lease = lease
        self._position = position
        self._released = False

    @property
    def released(self) -> bool:
        """Whether the buffer was released by its reader or taken back by the store."""
        return self._released or self._lease.ended

    @property
    def view(self) -> memoryview:
        """The bytes, read-only, without a copy. Raises BufferReleased after a release.

        The view outlives the release of the buffer and keeps the whole file mapped: drop it soon.
        """
        if not self._released:
            try:
                return self._lease.view[self._position : self._position + self.size_bytes]
            except ValueError:  # taken back by the store
                pass
        raise BufferReleased(self.offset)

    def __bytes__(self) -> bytes:
        """Return a copy of the bytes. Raises BufferReleased after a release."""
        return bytes(self.view)

    def __len__(self) -> int:
        return self.size_bytes

    def release(self) -> None:
        """Release the buffer. Idempotent."""
        self._lease.give_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        state = ", released" if self.released else ""
        return f"{type(self).__name__}(offset={self.offset}, size_bytes={self.size_bytes}{state})"


class RecordBuffer(ReadBuffer):
    """One whole record, checked when it was read.

    `queue_offset` is its number in the queue it was read from. For a queue that a multi-dispatched message names, this
    differs from the number in the record.
    """

    __slots__ = ("queue_offset",)

    def __init__(self, lease: "BufferLease", position: int, size_bytes: int, queue_offset: int) -> None:
        self.offset = lease.base_offset + position  # as the base class, without a call of it
        self.size_bytes = size_bytes
        self._lease = lease
        self._position = position
        self._released = False
        self.queue_offset = queue_offset

    def message(self) -> StoredMessage:
        """Decode the record: a copy, valid after a release. Raises BufferReleased after a release."""
        if not self._released:
            lease = self._lease
            try:
                return copied_record(lease.view, self._position, self.size_bytes, lease.decode)
            except ValueError:  # taken back by the store
                pass
        raise BufferReleased(self.offset)


class RecordWindow(Sequence[RecordBuffer]):
    """The records of consecutive units of a queue in one log file.

    Buffers are created when they are looked at. `size_bytes` is the sum of their sizes. The window holds one reference
    of the lease for each record.
    """

    __slots__ = ("_count", "_lease", "_made", "_number", "_released", "_units", "size_bytes")

    def __init__(self, lease: "BufferLease", units: bytes, count: int, number: int, size_bytes: int) -> None:
        self._lease = lease
        self._units = units
        self._count = count
        self._number = number
        self._made: dict[int, RecordBuffer] = {}
        self._released = False
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> RecordBuffer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordBuffer]: ...
    def __getitem__(self, index: int | slice) -> RecordBuffer | Sequence[RecordBuffer]:
        places = range(self._count)[index]
        if isinstance(places, int):
            return self._buffers((places,))[0]
        return tuple(self._buffers(places))

    def __iter__(self) -> Iterator[RecordBuffer]:
        if self._made or self._released:
            return iter(self._buffers(range(self._count)))
        lease = self._lease
        base_offset, units = lease.base_offset, self._units[: self._count * UNIT_BYTES]
        buffers = [
            RecordBuffer(lease, place[0] - base_offset, place[1], number)
            for number, place in enumerate(_PLACE.iter_unpack(units), self._number)
        ]
        with lease.guard:
            if not self._made and not self._released:
                self._made = dict(enumerate(buffers))
                return iter(buffers)
        return iter(self._buffers(range(self._count)))  # another thread was faster

    def _buffers(self, places: Sequence[int]) -> list[RecordBuffer]:
        """Return the buffers of some records, and create those that do not exist yet."""
        lease, units = self._lease, self._units
        found = []
        with lease.guard:
            made = self._made  # read here, since an iteration replaces it
            for place in places:
                buffer = made.get(place)
                if buffer is None:
                    offset, size_bytes = _PLACE.unpack_from(units, place * UNIT_BYTES)
                    buffer = RecordBuffer(lease, offset - lease.base_offset, size_bytes, self._number + place)
                    buffer._released = self._released
                    made[place] = buffer
                found.append(buffer)
        return found

    def release(self) -> None:
        """Release all buffers. Idempotent."""
        lease = self._lease
        with lease.guard:
            if self._released:
                return
            self._released = True
            count = self._count
            for buffer in self._made.values():
                count -= buffer._released
                buffer._released = True
            last = lease.drop(count)
        if last:
            lease.end()


class RecordBuffers:
    """An answer with several messages. Release it, or use it in a `with` statement."""

    __slots__ = ()
    messages: Sequence[RecordBuffer]

    def release(self) -> None:
        """Release all buffers. Idempotent."""
        messages = self.messages
        if type(messages) is RecordWindow:  # `isinstance` of an abstract class takes half a microsecond
            messages.release()
        else:
            for message in messages:
                message.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class BufferLease:
    """One reference on a log file for the buffers of one answer.

    `view` shows the whole file, read-only. It ends when its creator and all its buffers have released it, when the
    store takes it back, or when it is garbage collected. A finaliser may run anywhere, even inside a lock. It therefore
    takes no lock, and leaves the reference for the next caller to release.
    """

    __slots__ = (
        "__weakref__", "_count", "_file", "_owner", "base_offset", "decode", "ended", "guard", "mapped", "view",
    )  # fmt: skip

    def __init__(self, owner: "ReadBuffers", file: MappedFile) -> None:
        self._owner = owner
        self.guard = owner.guard
        self.decode = owner.decode
        self._file: MappedFile | None = file
        self._count = 1
        self.mapped = file
        self.base_offset = file.base_offset
        self.view = file.view.toreadonly()
        self.ended = False

    def buffer(self, position: int, size_bytes: int) -> ReadBuffer:
        """Return a buffer of some bytes.

        Only the creator of the lease may call this, before it releases the lease.
        """
        self._count += 1
        return ReadBuffer(self, position, size_bytes)

    def record(self, position: int, size_bytes: int, queue_offset: int) -> RecordBuffer:
        """Return a buffer of a checked record; as `buffer`."""
        self._count += 1
        return RecordBuffer(self, position, size_bytes, queue_offset)

    def window(self, units: bytes, count: int, number: int, size_bytes: int) -> RecordWindow:
        """Return a window of the checked records of leading units; as `buffer`.

        The first unit has number `number`. The records have `size_bytes` in all.
        """
        self._count += count
        return RecordWindow(self, units, count, number, size_bytes)

    def drop(self, count: int) -> bool:
        """Drop some references under the guard; return whether none is left."""
        self._count -= count
        return self._count == 0

    @property
    def buffer_count(self) -> int:
        """The number of buffers not released, including the creator's own reference."""
        return self._count

    def give_back(self, buffer: ReadBuffer | None = None) -> None:
        """Count a buffer as released, or, without one, the creator's reference."""
        with self.guard:
            if buffer is not None:
                if buffer._released:
                    return
                buffer._released = True
            self._count -= 1
            if self._count:
                return
            file, self._file = self._file, None
        self._finish(file)

    def end(self) -> bool:
        """Take all buffers back and release the reference; return False if that was done before."""
        with self.guard:
            file, self._file = self._file, None
        return self._finish(file)

    def _finish(self, file: MappedFile | None) -> bool:
        """Release the reference on the file; return False if another thread has taken it."""
        if file is None:
            return False
        self.ended = True
        self._owner.forget(self)
        self.view.release()
        file.release()
        return True

    def __del__(self) -> None:
        file = getattr(self, "_file", None)  # none if its creation was interrupted
        if file is not None:
            self._file = None
            self._owner.forget(self)
            self._owner.forgotten.append(file)


class ReadBuffers:
    """All buffers of one store that readers hold. While `is_shut`, there are none.

    `parse` is the rule for properties.
    """

    def __init__(self, *, parse: PropertiesParser = parse_pairs, guard: MakeGuard = threading.Lock) -> None:
        self.guard = guard()
        self.parse = parse
        self.decode = decoder_of(parse)
        self.forgotten: deque[MappedFile] = deque()
        self._leases: dict[int, weakref.ref[BufferLease]] = {}
        self._lent: set[MappedFile] = set()
        self.is_shut = False

    def lease(self, file: MappedFile) -> BufferLease | None:
        """Take a reference on a file for buffers; None if the file or the store is being closed."""
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
        """Drop a lease from the table; a single atomic step, so that it needs no lock."""
        self._leases.pop(id(lease), None)

    def settle(self) -> None:
        """Release the references of buffers that were dropped without a release."""
        while self.forgotten:
            try:
                file = self.forgotten.popleft()
            except IndexError:  # another thread was faster
                return
            file.release()

    @property
    def held(self) -> int:
        """The number of buffers that readers hold."""
        return sum(lease.buffer_count for lease in self._live())

    def _live(self) -> list[BufferLease]:
        self.settle()
        with self.guard:
            found = [reference() for reference in self._leases.copy().values()]
        return [lease for lease in found if lease is not None]

    def revoke(self, file: MappedFile) -> int:
        """End the leases on one file, for its forced deletion; return how many there were."""
        return sum(lease.end() for lease in self._live() if lease.mapped is file)

    def shut(self) -> int:
        """End all leases and create no new ones; return how many were still held. Idempotent."""
        with self.guard:
            self.is_shut = True
        ended = sum(lease.end() for lease in self._live())
        if ended:
            _LOG.warning("read_buffers_taken_back answers=%d remedy='release what a read returns'", ended)
        return ended

    @property
    def leaked(self) -> int:
        """The number of closed log files that are still mapped.

        A view of a buffer that a caller keeps holds such a mapping. Reading this tries to unmap them again.
        """
        with self.guard:
            lent = list(self._lent)
        gone = {file for file in lent if file.unmap_if_unused()}
        with self.guard:
            self._lent -= gone
        return sum(file.is_unreferenced for file in lent if file not in gone)

    def log_leaks(self) -> int:
        """Log how many files cannot be unmapped, and return that.

        Call it after the files were closed.
        """
        leaked = self.leaked
        if leaked:
            _LOG.warning("read_views_leaked files=%d remedy='drop the views taken from buffers of reads'", leaked)
        return leaked
