"""The history of one file before a crash, read from the journal for the legality checker.

It uses the entry types of the journal and nothing else of this project, as properties/disk/legality.py does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tornpage.properties.disk.journal import (
    Entry,
    FileCreated,
    FileLinked,
    FileMade,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageFreed,
    PagesDropped,
    PageWritten,
    Resized,
)

if TYPE_CHECKING:
    from tornpage.properties.disk.disk import Image

__all__ = [
    "PAGE_BYTES",
    "FileHistory",
    "SizeChange",
    "around",
    "file_histories",
    "pages_to_check",
    "size_changes",
    "unusable",
]

PAGE_BYTES = 4096
_ABOUT_FILES = (PageWritten, PagesDropped, Resized, FileSynced, FileLinked, FileRenamed, FileUnlinked)


@dataclass
class FileHistory:
    """One file: its first content, its changes before the crash, and all barriers.

    Changes are (entry number, value). `parts` are the syncs before the crash that cover some bytes: the entry
    number, the first byte and the byte after the last one, which is inside the file.

    `drops` are the failed syncs before the crash after which its dirty pages counted as clean. `freed` has the entries
    that freed a page by a cut.
    """

    first: bytes = b""
    sizes: list[tuple[int, int]] = field(default_factory=list)
    versions: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    syncs: list[int] = field(default_factory=list)
    parts: list[tuple[int, int, int]] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    freed: dict[int, list[int]] = field(default_factory=dict)

    def last_size(self) -> int:
        return self.sizes[-1][1] if self.sizes else len(self.first)

    def cut_before(self, page: int, version: int) -> int | None:
        """Return the size entry of the last cut that freed a page, up to a version of it."""
        frees = [n for n in self.freed.get(page, []) if n <= version]
        return next((n for n, _ in self.sizes if n > frees[-1]), None) if frees else None

    def permitted_sizes(self, position: int, *, syncs_cuts: bool) -> list[tuple[int | str, int]]:
        """Return the sizes that a power loss may leave, each with its entry.

        A sync of the whole file leaves the last size before it. A sync of some bytes leaves out each size up to the
        last one before it with which not all of them are inside the file. With `syncs_cuts` it leaves out each size
        before the last cut.
        """
        permitted: list[tuple[int | str, int]] = [("base", len(self.first))]
        for number, end in sorted([*((n, None) for n in self.syncs), *((n, end) for n, _, end in self.parts)]):
            if number < position:
                before: list[tuple[int | str, int]] = [("base", len(self.first))]
                before += [each for each in self.sizes if each[0] < number]
                short = [n for n, (_, size) in enumerate(before) if end is not None and size < end]
                if syncs_cuts:
                    short += [n - 1 for n in range(1, len(before)) if before[n][1] < before[n - 1][1]]
                first = len(before) - 1 if end is None else max(short, default=-1) + 1
                at = before.index(permitted[0])  # earlier syncs have left out those before it
                permitted = before[max(first, at) :]
        last = max((entry for entry, _ in permitted if isinstance(entry, int)), default=-1)
        return [*permitted, *(each for each in self.sizes if each[0] > last)]

    def page_barrier(self, page: int, position: int) -> tuple[int | None, int | None]:
        """Return the last sync that covered a page, and the drop that kept later syncs from it.

        Both are before the crash. A write is covered by the next sync of its file, or by none if a drop comes first.
        """
        written = [n for n, _ in self.versions.get(page, [])]
        dropped: int | None = None
        parts = [n for n, first, end in self.parts if first < (page + 1) * PAGE_BYTES and page * PAGE_BYTES < end]
        syncs = {*self.syncs, *parts}
        for sync in sorted((n for n in syncs if n < position), reverse=True):
            before = [n for n in written if n < sync]
            fates = sorted(n for n in (*syncs, *self.drops) if before and n > before[-1])
            if not before or fates[0] in syncs:
                return sync, dropped
            dropped = fates[0] if dropped is None else dropped
        return None, dropped


def unusable(base: Image, journal: Sequence[Entry]) -> Iterator[str]:
    """Yield violations of the preconditions of all rules."""
    sizes = {inode: len(base.files[path]) for inode, path in enumerate(sorted(base.files))}
    for number, entry in enumerate(journal):
        if isinstance(entry, FileCreated | FileMade):
            if entry.inode in sizes:
                yield f"entry {number} creates inode {entry.inode} a second time"
            sizes[entry.inode] = 0
        elif isinstance(entry, _ABOUT_FILES):
            if entry.inode not in sizes:
                yield f"entry {number} is about inode {entry.inode}, which does not exist"
            elif isinstance(entry, Resized):
                if entry.size_bytes < sizes[entry.inode] and _cuts_something(base, journal, number, entry):
                    yield f"entry {number} shrinks inode {entry.inode} over bytes that were not zeroed first"
                sizes[entry.inode] = entry.size_bytes
            elif isinstance(entry, PageWritten):
                end = entry.page * PAGE_BYTES + len(entry.content)
                if entry.page < 0 or len(entry.content) > PAGE_BYTES or end > sizes[entry.inode]:
                    yield f"entry {number} writes outside inode {entry.inode}"


def _cuts_something(base: Image, journal: Sequence[Entry], number: int, cut: Resized) -> bool:
    """Whether a file shrinks over bytes that are not zero in its last versions."""
    paths = sorted(base.files)
    pages = dict(_held_pages(base.files[paths[cut.inode]] if cut.inode < len(paths) else b""))
    pages |= {e.page: e.content for e in journal[:number] if isinstance(e, PageWritten) and e.inode == cut.inode}
    return any(any(held[max(0, cut.size_bytes - page * PAGE_BYTES) :]) for page, held in pages.items())


def _held_pages(content: bytes) -> Mapping[int, bytes]:
    """The pages of a file. A large file has only those that are not zero."""
    sparse: Mapping[int, bytes] | None = getattr(content, "pages", None)
    if sparse is not None:
        return sparse
    held = bytes(content)
    return {start // PAGE_BYTES: held[start : start + PAGE_BYTES] for start in range(0, len(held), PAGE_BYTES)}


def pages_to_check(first: bytes, content: bytes, others: Collection[int]) -> Collection[int]:
    """The pages of a file that may differ from its first content, in order.

    Of two large files these are the pages that differ, and `others`; of small ones all pages.
    """
    count = (len(content) + PAGE_BYTES - 1) // PAGE_BYTES
    after: Mapping[int, bytes] | None = getattr(content, "pages", None)
    if after is None:
        return range(count)
    known = {number: page.ljust(PAGE_BYTES, b"\0") for number, page in _held_pages(first).items()}
    differ = {number for number in known.keys() | after.keys() if known.get(number) != after.get(number)}
    return sorted(number for number in differ | set(others) if 0 <= number < count)


def file_histories(
    base: Image, journal: Sequence[Entry], position: int, *, syncs_whole_file: bool
) -> dict[int, FileHistory]:
    contents = [base.files[path] for path in sorted(base.files)]
    inodes = {n: FileHistory(held if hasattr(held, "pages") else bytes(held)) for n, held in enumerate(contents)}
    for number, entry in enumerate(journal):
        is_whole = isinstance(entry, FileSynced) and (syncs_whole_file or entry.extent is None)
        if isinstance(entry, FileSynced) and entry.succeeded and entry.inode in inodes and is_whole:
            inodes[entry.inode].syncs.append(number)  # also those after the crash
        elif number >= position:
            continue
        elif isinstance(entry, FileCreated | FileMade):
            inodes[entry.inode] = FileHistory()
        elif isinstance(entry, FileSynced) and entry.succeeded and entry.extent is not None:
            end = min(entry.extent[1], inodes[entry.inode].last_size())
            if entry.extent[0] < end:
                inodes[entry.inode].parts.append((number, entry.extent[0], end))
        elif isinstance(entry, PagesDropped):
            inodes[entry.inode].drops.append(number)
        elif isinstance(entry, Resized):
            inodes[entry.inode].sizes.append((number, entry.size_bytes))
        elif isinstance(entry, PageWritten):
            inodes[entry.inode].versions.setdefault(entry.page, []).append((number, entry.content))
            if isinstance(entry, PageFreed):
                inodes[entry.inode].freed.setdefault(entry.page, []).append(number)
    return inodes


@dataclass(frozen=True)
class SizeChange:
    """A change of the size of a file.

    `in_inode`: the size in the inode on the disk is certainly another one at the next sync than before the change.
    """

    entry: int
    in_inode: bool


def size_changes(base: Image, journal: Sequence[Entry]) -> dict[int, list[SizeChange]]:
    """Return for each successful sync the changes of the size of its file before it.

    They are those since the sync before.
    """
    synced = {inode: len(base.files[path]) for inode, path in enumerate(sorted(base.files))}
    since: dict[int, list[tuple[int, int]]] = {}
    found: dict[int, list[SizeChange]] = {}
    for number, entry in enumerate(journal):
        if isinstance(entry, Resized):
            since.setdefault(entry.inode, []).append((number, entry.size_bytes))
        elif isinstance(entry, FileSynced) and entry.succeeded and entry.inode in since:
            history = [(-1, synced.get(entry.inode, 0)), *since[entry.inode]]
            if entry.extent is not None and not _leaves_one_size(entry.extent, [size for _, size in history]):
                continue
            del since[entry.inode]
            synced[entry.inode] = history[-1][1]
            found[number] = [SizeChange(history[n][0], _in_inode(history, n)) for n in range(1, len(history))]
    return found


def _leaves_one_size(extent: tuple[int, int], sizes: Sequence[int]) -> bool:
    """Whether the file certainly has its last size after a sync of some bytes.

    The sync commits cuts.
    """
    end = min(extent[1], sizes[-1])
    return extent[0] < end and (sizes[-2] < end or sizes[-1] < sizes[-2])


def _in_inode(history: Sequence[tuple[int, int]], changed: int) -> bool:
    """Whether the inode has, after a change, a size that it could not have before it.

    Before it the inode has any size since the last cut. It takes the size of each cut, and at the end the last size.
    """
    sizes = [size for _, size in history]
    cuts = [n for n in range(1, len(sizes)) if sizes[n] < sizes[n - 1]]
    possible = sizes[max([0, *(n for n in cuts if n < changed)]) : changed]
    certain = [sizes[n] for n in cuts if n >= changed] + sizes[-1:]
    return certain[0] not in possible


def around(syncs: Sequence[int], position: int) -> tuple[int | None, int | None]:
    before, after = [n for n in syncs if n < position], [n for n in syncs if n >= position]
    return (before[-1] if before else None), (after[0] if after else None)
