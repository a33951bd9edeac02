"""Shared parts of dirty-page trackers: protocol, errors, and the shadow copy."""

from __future__ import annotations

import abc
import mmap
from collections.abc import Iterable
from typing import Protocol, Self

from tornpage.properties.disk.journal import PAGE_BYTES

__all__ = [
    "Closing",
    "DirtyTracker",
    "Shadow",
    "Tracked",
    "TrackerForked",
    "TrackerUnavailable",
    "close_all",
    "require_open",
]

_CHUNK_PAGES = 4  # larger chunks compare an idle 64 MiB a fifth faster, but search longer for one changed page
_CHUNK_BYTES = _CHUNK_PAGES * PAGE_BYTES
_ZERO_CHUNK = bytearray(_CHUNK_BYTES)  # the shadow of every chunk that is all zero; never written to


class TrackerUnavailable(RuntimeError):
    """This machine does not support the requested tracking; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"write-protect tracking is not available: {reason}")


class TrackerForked(RuntimeError):
    """A forked child used its parent's registration, which the kernel does not inherit."""

    def __init__(self, *, owner_pid: int, pid: int) -> None:
        self.owner_pid, self.pid = owner_pid, pid
        super().__init__(f"this tracker belongs to process {owner_pid}; process {pid} must create its own after fork")


class Tracked(Protocol):
    """One watched buffer.

    It belongs to the tracker: write into it, but do not close or resize it.
    """

    buffer: bytearray | mmap.mmap
    leaked_exports: int
    """1 if a view of the buffer existed at `close()`, else 0."""

    small: tuple[list[bytearray], memoryview] | None
    """For a small buffer that is compared: `small[0][0] == small[1]` if nothing changed since the last look.

    A caller with many files checks this first, because most of them have not changed.
    """

    def changed(self) -> list[int]:
        """Return the sorted numbers of the pages that changed, and start a new look."""

    def close(self) -> None:
        """Release the buffer and its content. Never raises, and may be called again."""


class DirtyTracker(Protocol):
    """A way to find changed pages.

    It creates watched buffers, and closes the open ones when it is closed.
    """

    name: str

    @property
    def leaked_exports(self) -> int:
        """Number of buffers that were closed while a view of them existed."""

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Allocate a buffer with this content and watch it; any size, also 0."""

    def close(self) -> None:
        """Close every watched buffer and the tracker's descriptors.

        Never raises, and may be called again.
        """

    def __enter__(self) -> Self:
        """Use the tracker for the length of a `with`."""

    def __exit__(self, *_: object) -> None:
        """Close the tracker."""


class Closing(abc.ABC):
    """A context manager that closes."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release what is held; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Shadow:
    """The content of a buffer at the last look, in chunks.

    Each chunk comes with a view of the live buffer.

    While the views exist, the buffer can be neither resized nor closed. All chunks that were always zero share one
    shadow, so that a preallocated file costs no second copy.
    """

    def __init__(self, buffer: bytearray | mmap.mmap, content: bytes | bytearray) -> None:
        self._pin = memoryview(buffer)  # also pins an empty buffer, which has no chunks
        with memoryview(content) as initial:
            starts = range(0, len(content), _CHUNK_BYTES)
            self.live = [self._pin[start : start + _CHUNK_BYTES] for start in starts]
            self.chunks = [_copy_unless_zero(initial[start : start + _CHUNK_BYTES]) for start in starts]
            for chunk, view in zip(self.chunks, self.live, strict=True):
                if chunk is not _ZERO_CHUNK:  # untouched memory is zero and stays unallocated
                    view[:] = chunk

    def refresh_all(self) -> list[int]:
        """Compare everything; return the pages that differ and copy their content."""
        changed: list[int] = []
        for number, view in enumerate(self.live):
            if self.chunks[number] != view:  # bytearray on the left: memcmp; two memoryviews would compare item by item
                first = number * _CHUNK_PAGES
                changed += self.refresh(range(first, first + -(-len(view) // PAGE_BYTES)))
        return changed

    def refresh(self, pages: Iterable[int]) -> list[int]:
        """Compare these pages; return those that differ and copy their content."""
        changed: list[int] = []
        chunks, live = self.chunks, self.live
        for page in pages:
            number = page // _CHUNK_PAGES
            start = page % _CHUNK_PAGES * PAGE_BYTES
            end = start + PAGE_BYTES
            now = live[number][start:end]
            if chunks[number][start:end] != now:
                if chunks[number] is _ZERO_CHUNK:
                    chunks[number] = bytearray(_CHUNK_BYTES)
                chunks[number][start:end] = now
                changed.append(page)
        return changed

    def release(self) -> None:
        """Release the buffer and the copy."""
        for view in self.live:
            view.release()
        self._pin.release()
        self.live.clear()
        self.chunks.clear()


def _copy_unless_zero(chunk: memoryview) -> bytearray:
    zero = _ZERO_CHUNK == chunk  # noqa: SIM300 - in this order it is one memcmp
    return _ZERO_CHUNK if zero else bytearray(chunk)


def close_all(tracked: Iterable[Tracked]) -> None:
    for each in list(tracked):
        each.close()


def require_open(closed: bool) -> None:
    if closed:
        raise ValueError("the tracker or its buffer is closed")
