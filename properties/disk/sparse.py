"""The content of a large file, held as the pages that are not zero.

A sparse file of 1 GiB has few such pages. Only files of more than LARGE_BYTES are held in this way.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from tornpage.properties.disk.journal import PAGE_BYTES

__all__ = ["LARGE_BYTES", "SparseContent", "large_content", "pages_of"]

LARGE_BYTES = 4 << 20
_ZEROS = bytes(PAGE_BYTES)


class SparseContent:
    """Immutable content with the length, the slices and the comparisons of `bytes`."""

    __slots__ = ("pages", "size_bytes")

    def __init__(self, size_bytes: int, pages: Mapping[int, bytes]) -> None:
        self.size_bytes = size_bytes
        self.pages = pages

    def __len__(self) -> int:
        return self.size_bytes

    def __getitem__(self, extent: slice) -> bytes:
        start, stop, _ = extent.indices(self.size_bytes)
        first, last = start // PAGE_BYTES, -(-stop // PAGE_BYTES)
        if last - first <= 1:
            return self.pages.get(first, _ZEROS)[start - first * PAGE_BYTES : stop - first * PAGE_BYTES]
        whole = b"".join(self.pages.get(number, _ZEROS) for number in range(first, last))
        return whole[start - first * PAGE_BYTES : stop - first * PAGE_BYTES]

    def __bytes__(self) -> bytes:
        return self[0 : self.size_bytes]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SparseContent):
            return self.size_bytes == other.size_bytes and self.pages == other.pages
        return isinstance(other, bytes) and len(other) == self.size_bytes and bytes(self) == other

    def __hash__(self) -> int:
        return hash((self.size_bytes, len(self.pages)))


def large_content(before: bytes, size_bytes: int, pages: Iterable[tuple[int, bytes]]) -> bytes:
    """Return content with another size and with some pages replaced.

    Bytes that it gains are zero. Bytes after the size are left out. More than LARGE_BYTES are a SparseContent, which is
    typed as the `bytes` that it
    stands for.
    """
    held = dict(pages_of(before))
    last, rest = divmod(size_bytes, PAGE_BYTES)
    cut: list[tuple[int, bytes]] = []
    if size_bytes < len(before):
        cut = [(last, held[last])] if last in held else []
        held = {number: page for number, page in held.items() if number < last}
    for number, page in (*cut, *pages):
        if number > last or (number == last and not rest):
            continue
        content = (page[:rest] if number == last else page).ljust(PAGE_BYTES, b"\0")
        if content == _ZEROS:
            held.pop(number, None)
        else:
            held[number] = content
    found = SparseContent(size_bytes, held)
    return cast("bytes", found) if size_bytes > LARGE_BYTES else bytes(found)


def pages_of(content: bytes) -> Mapping[int, bytes]:
    """Return the pages of a content that are not zero, each of 4096 bytes."""
    sparse: Mapping[int, bytes] | None = getattr(content, "pages", None)
    if sparse is not None:
        return sparse
    pages = {
        start // PAGE_BYTES: content[start : start + PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
        for start in range(0, len(content), PAGE_BYTES)
    }
    return {number: page for number, page in pages.items() if page != _ZEROS}
