"""Certificates: the journal entries and barriers that explain each name, size and page.

Entries are numbered by their place in the journal. A *barrier* is a sync that returned successfully. Entries after the
last barrier before the crash are in flight, and the image may have them or not. A certificate only makes claims.
properties/disk/legality.py decides from the journal alone whether the claims are permitted and whether the image
matches them.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tornpage.model.operations import Choice
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.certificate_text import sentences_of
from tornpage.properties.disk.directory_tree import DirectoryOperation, DirectoryTree, is_move
from tornpage.properties.disk.disk import DiskState, Image, apply_operation, directory_of, sizes_left_out
from tornpage.properties.disk.images import Choices, compose, disk_state, kept_sources, surviving_operations, untorn
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    SECTORS,
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    DirectorySynced,
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
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.rules import DISK_RULES
from tornpage.properties.program.case import Disk

__all__ = ["Certificate", "FileClaim", "OperationClaim", "Origin", "PageClaim", "assert_legal", "certify"]

_MOVES = frozenset({DirectoryRenamed, DirectoryRemoved, FileRenamed})
_OBJECTIONS_SHOWN_MAX = 5

Origin = int | Literal["base"]
"""A journal entry, or "base": the disk's content before the first entry, which is nothing for a new file."""


@dataclass(frozen=True, slots=True)
class PageClaim:
    """A page that was in flight at the crash has one version, or a tear of two versions.

    In a tear, sector s is from the second version if bit s of `mask` is set. `dropped_by` is the failed sync since
    which the page counts as clean, so that later syncs skip it.
    """

    page: int
    versions: tuple[Origin, ...]
    mask: int | None = None
    dropped_by: int | None = None


@dataclass(frozen=True, slots=True)
class FileClaim:
    """One file of the image, with its last sync before the crash and its first one after it.

    The syncs are `barrier_before` and `barrier_after`, None if there is none. `pages` are the in-flight pages inside
    the file, in order; all other pages have the version last written before the barrier.
    """

    path: str
    inode: int
    named_by: Origin
    size_bytes: int
    sized_by: Origin
    barrier_before: int | None
    barrier_after: int | None
    pages: tuple[PageClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationClaim:
    """A directory operation that survived.

    It is durable since the barrier `durable_since`, or survived by chance if that is None.

    `barrier_before` and `barrier_after` are the syncs of its directory around the crash. If `keeps_source`, the file of
    a rename is at its old name too.
    """

    entry: int
    directory: str
    durable_since: int | None
    barrier_before: int | None
    barrier_after: int | None
    keeps_source: bool = False


@dataclass(frozen=True, slots=True)
class Certificate:
    """All claims about the image of a crash after `position` entries.

    Files are sorted by path.
    """

    position: int
    disk: Disk
    files: tuple[FileClaim, ...]
    operations: tuple[OperationClaim, ...]

    def document(self) -> dict[str, Any]:
        """Return the certificate as JSON values, with its sentences."""
        document: dict[str, Any] = json.loads(json.dumps({**asdict(self), "sentences": self.sentences()}))
        return document

    def sentences(self) -> list[str]:
        """Return one sentence per operation, size and in-flight page."""
        return sentences_of(self)


def assert_legal(
    base: Image, journal: Sequence[Entry], position: int, choices: Choices, image: Image, *, disk: Disk
) -> None:
    """Raise HarnessError if a crash at `position` with these choices cannot leave `image`."""
    found = objections(base, journal, image, certify(base, journal, position, choices, disk=disk))
    if found:
        more = f"; and {len(found) - _OBJECTIONS_SHOWN_MAX} more" if len(found) > _OBJECTIONS_SHOWN_MAX else ""
        shown = "; ".join(found[:_OBJECTIONS_SHOWN_MAX])
        raise HarnessError(f"illegal crash image at journal position {position} (disk {disk}): {shown}{more}")


# ---- deriving the claims ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Trace:
    """The entries of one inode: first the durable one, then those in flight.

    A choice is an index into these lists.
    """

    sizes: list[tuple[Origin, int]] = field(default_factory=lambda: [("base", 0)])
    versions: dict[int, list[Origin]] = field(default_factory=dict)
    barrier: int | None = None
    dropped: dict[int, int] = field(default_factory=dict)
    passed_by: dict[int, int] = field(default_factory=dict)
    freed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def free(self, number: int, page: int) -> None:
        """Have a page hold zeros because of a cut, whose size comes next."""
        self.write(number, page)
        self.freed.setdefault(page, []).append((len(self.versions[page]) - 1, len(self.sizes)))

    def write(self, number: int, page: int) -> None:
        """Add a version of a page, which is dirty now."""
        self.versions.setdefault(page, ["base"]).append(number)
        self.dropped.pop(page, None)

    def drop(self, number: int) -> None:
        """Count each dirty page as clean after a failed sync."""
        dirty = (page for page, versions in self.versions.items() if len(versions) > 1)
        self.dropped = {**dict.fromkeys(dirty, number), **self.dropped}

    def sync(self, number: int) -> None:
        """Make the newest versions durable, except those of pages that count as clean."""
        self.barrier = number
        del self.sizes[:-1]
        self.freed.clear()
        for page, versions in self.versions.items():
            if page in self.dropped:
                self.passed_by[page] = self.dropped[page]
            else:
                self.passed_by.pop(page, None)
                del versions[:-1]

    def sync_extent(self, extent: tuple[int, int], *, cuts: bool) -> None:
        """Make the pages with some bytes durable, and a size with which they are reached."""
        end = min(extent[1], self.sizes[-1][1])
        if extent[0] >= end:
            return
        hidden = sizes_left_out([size_bytes for _, size_bytes in self.sizes], end, cuts=cuts)
        del self.sizes[:hidden]
        for page in [page for page in self.versions if extent[0] // PAGE_BYTES <= page < -(-end // PAGE_BYTES)]:
            if page in self.dropped:
                self.passed_by[page] = self.dropped[page]
            else:
                self.passed_by.pop(page, None)
                del self.versions[page][:-1]
                self.freed.pop(page, None)
        for page, freed in self.freed.items():
            self.freed[page] = [(zeros, cut - hidden) for zeros, cut in freed]


class _JournalWalk:
    """Walks a journal and keeps entry numbers.

    Pending operations and names of inodes come from the disk state itself.
    """

    def __init__(self, base: Image, journal: Sequence[Entry], position: int, *, disk: Disk) -> None:
        hollow = Image(base.directories, dict.fromkeys(base.files, b""))  # contents are not needed here
        self.state: DiskState = disk_state(hollow, (), 0, disk=disk)
        self.traces = {number: _Trace([("base", len(base.files[path]))]) for path, number in self.state.names.items()}
        for path, inode in self.state.names.items():
            self.state.start_size(inode, len(base.files[path]))
        self.operations: list[tuple[int, DirectoryOperation]] = []
        self.durable_since: dict[int, int] = {}
        for number in range(position):
            self._take(number, journal[number])

    def _take(self, number: int, entry: Entry) -> None:
        match entry:
            case PageFreed(inode, page, _):
                self.traces[inode].free(number, page)
            case PageWritten(inode, page, _):
                self.traces[inode].write(number, page)
            case PagesDropped(inode):
                self.traces[inode].drop(number)
            case Resized(inode, size_bytes):
                self.traces[inode].sizes.append((number, size_bytes))
                self.state.note_resized(entry)
            case FileMade(inode):
                self.traces[inode] = _Trace()
                self.state.apply(entry)
            case (
                FileCreated()
                | FileLinked()
                | DirectoryMade()
                | DirectoryRenamed()
                | DirectoryRemoved()
                | FileRenamed()
                | FileUnlinked()
            ):
                self.operations.append((number, entry))
                if isinstance(entry, FileCreated):
                    self.traces[entry.inode] = _Trace()
                self.state.apply(entry)
            case FileSynced(inode, True, _, extent):
                if extent is None or self.state.rules.syncs_whole_file:
                    self.traces[inode].sync(number)
                else:
                    self.traces[inode].sync_extent(extent, cuts=self.state.rules.cuts_whole)
                self._apply_barrier(number, entry, is_whole_size=len(self.traces[inode].sizes) == 1)
            case DirectorySynced():
                self._apply_barrier(number, entry)

    def _apply_barrier(self, number: int, entry: FileSynced | DirectorySynced, *, is_whole_size: bool = True) -> None:
        before = len(self.state.pending)
        if isinstance(entry, FileSynced) and entry.extent is not None:  # the state does not know the sizes
            self.state.names_synced(entry.inode, data_only=entry.data_only, is_whole_size=is_whole_size)
        else:
            self.state.apply(entry)
        if len(self.state.pending) != before:
            pending = {id(operation) for operation in self.state.pending}
            for done, operation in self.operations:
                if id(operation) not in pending:
                    self.durable_since.setdefault(done, number)

    def surviving(self, choices: Choices) -> list[tuple[int, DirectoryOperation]]:
        """Return the directory operations that survived, in order."""
        chosen = {id(operation) for operation in surviving_operations(self.state, choices)}
        return [(n, done) for n, done in self.operations if n in self.durable_since or id(done) in chosen]


class _Directories:
    """Follow the directories along a whole journal, with the syncs of each.

    The syncs are the last one before the crash and the first one after it.
    """

    def __init__(self, base: Image, journal: Sequence[Entry], position: int) -> None:
        names = {path: number for number, path in enumerate(sorted(base.files))}
        has_moves = any(type(entry) in _MOVES and is_move(entry) for entry in journal)  # type: ignore[arg-type]
        self.tree = DirectoryTree(base.directories, names) if has_moves else None
        self._before: dict[str, int] = {}
        self._after: dict[str, int] = {}
        for number, entry in enumerate(journal):
            if isinstance(entry, DirectorySynced):
                directory = entry.path if self.tree is None else self.tree.at(entry.path)
                if number < position:
                    self._before[directory] = number
                else:
                    self._after.setdefault(directory, number)
            elif self.tree is not None and isinstance(entry, DirectoryOperation):
                self.tree.note(entry)

    def barriers(self, operation: DirectoryOperation) -> tuple[int | None, int | None]:
        """Return the syncs around the crash of the directories of an operation."""
        places = (directory_of(operation),) if self.tree is None else self.tree.places(operation)
        before = [self._before[place] for place in places if place in self._before]
        after = [self._after[place] for place in places if place in self._after]
        return max(before, default=None), min(after, default=None)


def certify(base: Image, journal: Sequence[Entry], position: int, choices: Choices, *, disk: Disk) -> Certificate:
    """Return the certificate of the image that `compose` makes of these choices.

    Unknown in-flight writes and invalid choices count as 0. Cost: linear in the journal; no content is copied.
    """
    walk = _JournalWalk(base, journal, position, disk=disk)
    directories = _Directories(base, journal, position)
    file_after: dict[int, int] = {}
    for number in range(position, len(journal)):
        match journal[number]:
            case FileSynced(inode, True, _, extent) if extent is None or walk.state.rules.syncs_whole_file:
                file_after.setdefault(inode, number)
    survived, kept = walk.surviving(choices), kept_sources(walk.state, choices)
    operations = tuple(
        OperationClaim(
            number,
            directory_of(operation),
            walk.durable_since.get(number),
            *directories.barriers(operation),
            keeps_source=id(operation) in kept,
        )
        for number, operation in survived
    )
    reached = compose(walk.state, choices).files
    files = [
        _file_claim(walk, path, inode, named_by, choices, barrier_after=file_after.get(inode))
        for path, inode, named_by in _named_files(base, survived, reached, directories.tree, kept)
    ]
    return Certificate(position, disk, tuple(files), operations)


def _named_files(
    base: Image,
    survived: Sequence[tuple[int, DirectoryOperation]],
    reached: Collection[str],
    tree: DirectoryTree | None,
    kept: Collection[int],
) -> list[tuple[str, int, Origin]]:
    """Return path, inode and naming entry of each reachable file, sorted by path."""
    if tree is not None:
        numbers = {id(operation): number for number, operation in survived}
        there, _ = tree.names(numbers.keys(), kept)
        return [
            (path, inode, "base" if operation is None else numbers[id(operation)])
            for path, (inode, operation) in sorted(there.items())
        ]
    names, directories = {path: number for number, path in enumerate(sorted(base.files))}, set(base.directories)
    named_by: dict[str, Origin] = {}
    for number, operation in survived:
        apply_operation(names, directories, operation)
        if isinstance(operation, FileCreated | FileLinked | FileRenamed):
            named_by[operation.target if isinstance(operation, FileRenamed) else operation.path] = number
    return [(path, inode, named_by.get(path, "base")) for path, inode in sorted(names.items()) if path in reached]


def _file_claim(
    walk: _JournalWalk, path: str, inode: int, named_by: Origin, choices: Choices, *, barrier_after: int | None
) -> FileClaim:
    trace, known_as, disk = walk.traces[inode], walk.state.inodes[inode].name, walk.state.disk
    choice = choices.get(f"size {known_as}", 0) if disk != "kill" else len(trace.sizes) - 1
    size = choice if isinstance(choice, int) and 0 <= choice < len(trace.sizes) else 0
    sized_by, size_bytes = trace.sizes[size]
    open_choices = {page: choices.get(f"page {known_as} {page}", 0) for page in trace.versions}
    if not DISK_RULES[disk].tears:
        open_choices = {page: untorn(choice) for page, choice in open_choices.items()}
    if DISK_RULES[disk].cuts_whole:
        for page, cuts in trace.freed.items():
            chosen = open_choices[page]
            newest = chosen if isinstance(chosen, int) else max(chosen[:2])
            if any(newest >= zeros and size < cut for zeros, cut in cuts):
                open_choices[page] = 0
    pages = tuple(
        replace(
            _page_claim(page, versions, open_choices[page], disk=disk),
            dropped_by=trace.passed_by.get(page),
        )
        for page, versions in sorted(trace.versions.items())
        if len(versions) > 1 and page * PAGE_BYTES < size_bytes
    )
    return FileClaim(path, inode, named_by, size_bytes, sized_by, trace.barrier, barrier_after, pages)


def _page_claim(page: int, versions: Sequence[Origin], choice: Choice, *, disk: Disk) -> PageClaim:
    if disk == "kill":
        return PageClaim(page, (versions[-1],))
    first, second, mask = choice if isinstance(choice, tuple) else (choice, choice, 0)
    if not (0 <= first < len(versions) and 0 <= second < len(versions)):
        return PageClaim(page, (versions[0],))
    mask &= (1 << SECTORS) - 1
    if first == second or mask == 0:
        return PageClaim(page, (versions[first],))
    if mask == (1 << SECTORS) - 1:
        return PageClaim(page, (versions[second],))
    return PageClaim(page, (versions[first], versions[second]), mask)
