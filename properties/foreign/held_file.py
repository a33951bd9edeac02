"""Hold the content of a watched file at the last look, and find its changes."""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tornpage.properties.disk.journal import PAGE_BYTES, Entry, PageFreed, PageWritten, Resized
from tornpage.properties.disk.sparse import large_content, pages_of

__all__ = ["Extent", "HeldFile"]

Extent = tuple[int, int]
"""The first byte and the byte after the last one."""

_ZEROS = bytes(PAGE_BYTES)
_CHUNK_BYTES = 1 << 20
_SIZES_MAX = 16
_WHOLE_BYTES = 64 << 10
"""Up to this size a file is read as a whole, without a search for its holes."""


class HeldFile:
    """Hold the size of a file and its pages that are not zero, each of 4096 bytes."""

    def __init__(self, content: bytes = b"") -> None:
        self.size_bytes = len(content)
        self.pages = dict(pages_of(content))

    def content(self) -> bytes:
        """Return the content as an image holds it."""
        return large_content(b"", self.size_bytes, self.pages.items())

    def refresh(self, number: int, file: int, extents: Sequence[Extent] | None) -> list[Entry]:
        """Read an open file; return the entries for its changes. Raises OSError.

        With `extents` only pages in these are read, unless the file has another size.
        """
        size_bytes = os.fstat(file).st_size
        if extents is None or size_bytes < self.size_bytes:
            extents = [(0, size_bytes)]
        elif size_bytes > self.size_bytes:
            extents = [*extents, (self.size_bytes, size_bytes)]
        changed = dict(self._changed(file, size_bytes, extents))
        entries: list[Entry] = list(self._cut(number, size_bytes)) if size_bytes < self.size_bytes else []
        if size_bytes != self.size_bytes:
            entries += [Resized(number, end) for end in _sizes_between(self.size_bytes, size_bytes, changed)]
            entries.append(Resized(number, size_bytes))
            self.size_bytes = size_bytes
        for page, content in sorted(changed.items()):
            if content != self.pages.get(page, _ZEROS):
                entries.append(PageWritten(number, page, content[: size_bytes - page * PAGE_BYTES]))
                self._hold(page, content)
        return entries

    def _hold(self, page: int, content: bytes) -> None:
        if content == _ZEROS:
            self.pages.pop(page, None)
        else:
            self.pages[page] = content

    def _cut(self, number: int, size_bytes: int) -> Iterator[Entry]:
        """Yield what a cut does to the pages of the file.

        Bytes after the new size are zeros when the file is extended again. A cut frees the pages after its end, and
        zeroes the rest of the page that it ends in.
        """
        for page, before in sorted(self.pages.items()):
            start = page * PAGE_BYTES
            if start + PAGE_BYTES <= size_bytes:
                continue
            content = before[: max(0, size_bytes - start)].ljust(PAGE_BYTES, b"\0")
            if content != before:
                kind = PageWritten if start < size_bytes else PageFreed
                yield kind(number, page, content[: self.size_bytes - start])
                self._hold(page, content)

    def _changed(self, file: int, size_bytes: int, extents: Iterable[Extent]) -> Iterator[tuple[int, bytes]]:
        """Yield the pages in some extents that differ from those held."""
        for first, last in extents:
            start, end = first - first % PAGE_BYTES, min(last, size_bytes)
            data = _data_in(file, start, end) if end - start > _WHOLE_BYTES else [(start, end)]
            read: set[int] = set()
            for found_start, found_end in data:
                for chunk in range(found_start - found_start % PAGE_BYTES, found_end, _CHUNK_BYTES):
                    count = min(_CHUNK_BYTES, -(-(found_end - chunk) // PAGE_BYTES) * PAGE_BYTES)
                    content = os.pread(file, min(count, size_bytes - chunk), chunk)  # another call may extend the file
                    for page in range(chunk // PAGE_BYTES, (chunk + count) // PAGE_BYTES):
                        at = page * PAGE_BYTES - chunk
                        now = content[at : at + PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
                        read.add(page)
                        if now != self.pages.get(page, _ZEROS):
                            yield page, now
            if len(data) != 1 or data[0] != (start, end):
                pages = range(start // PAGE_BYTES, -(-end // PAGE_BYTES))
                yield from ((page, _ZEROS) for page in self.pages if page in pages and page not in read)


def _sizes_between(before_bytes: int, size_bytes: int, changed: Mapping[int, bytes]) -> list[int]:
    """Return sizes that a file may have while a write extends it.

    The kernel writes page by page, so the file may end at each page boundary past a page that was written. A page of
    zeros counts as not written, because a truncation that extends a file is one operation. Of many such sizes some are
    returned, spread evenly.
    """
    ends = [
        (page + 1) * PAGE_BYTES
        for page, content in sorted(changed.items())
        if before_bytes < (page + 1) * PAGE_BYTES < size_bytes
        and any(content[max(0, before_bytes - page * PAGE_BYTES) :])
    ]
    return ends[:: -(-len(ends) // _SIZES_MAX)] if ends else []


def _data_in(file: int, start: int, end: int) -> list[Extent]:
    """Return the extents with data; all others are holes. Raises OSError."""
    found: list[Extent] = []
    while start < end:
        try:
            data = os.lseek(file, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        if data >= end:
            break
        start = min(os.lseek(file, data, os.SEEK_HOLE), end)
        found.append((data, start))
    return found
