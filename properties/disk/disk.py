"""The state of a recorded disk: durable content, and in-flight writes.

This is a pure reducer over the journal. In-flight writes reach the disk independently until a barrier covers them
(docs/contract.md, "Crash model"): the content of each page (any version since the last sync), the size of each file,
and each name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tornpage.properties.disk.directory_tree import DirectoryOperation, DirectoryTree, is_move
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
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
    ProcessKilled,
    Resized,
)
from tornpage.properties.disk.resizes import Resizes
from tornpage.properties.disk.rules import DISK_RULES, DiskRules
from tornpage.properties.disk.sparse import LARGE_BYTES, large_content
from tornpage.properties.program.case import Disk

__all__ = [
    "DirectoryOperation",
    "DiskState",
    "Image",
    "InodeState",
    "apply_operation",
    "parent_of",
    "put_page",
    "sizes_left_out",
]


@dataclass(frozen=True, slots=True)
class Image:
    """Content of a disk: its directories, and the content of every file by absolute path."""

    directories: frozenset[str]
    files: Mapping[str, bytes]


@dataclass(slots=True)
class InodeState:
    """One file. `name` identifies it in choices and reports.

    `durable` survives for certain (if the name does). `sizes` are the sizes since the last sync, oldest first, and
    `versions` the contents of each page since then. A sync skips the pages in `dropped`. `freed` has, for each page
    that a cut has freed, the numbers of its version of zeros and of the smaller size. Durable content is replaced and
    never changed, because images share it.
    """

    name: str
    durable: bytes = b""
    sizes: list[int] = field(default_factory=list)
    versions: dict[int, list[bytes]] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    freed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def may_hold(self, page: int, version: int, size: int) -> bool:
        """Return whether a journaling disk may show a version of a page with a size.

        Both are choices: 0 is what is durable.
        """
        return not any(version >= zeros and size < cut for zeros, cut in self.freed.get(page, ()))

    @property
    def size_bytes(self) -> int:
        """The size that the process sees."""
        return self.sizes[-1] if self.sizes else len(self.durable)

    def page(self, number: int) -> bytes:
        """Return the durable content of a page."""
        return self.durable[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]

    def own_latest(self) -> bytearray:
        """Return the content that the process sees, as a copy that may be changed."""
        latest = self.latest()
        return latest if isinstance(latest, bytearray) else bytearray(bytes(latest))  # large content is no sequence

    def latest(self) -> bytes | bytearray:
        """Return the content that the process sees."""
        if not self.sizes and not self.versions:
            return self.durable
        if max(self.size_bytes, len(self.durable)) > LARGE_BYTES:
            return large_content(self.durable, self.size_bytes, [(n, all_[-1]) for n, all_ in self.versions.items()])
        content = bytearray(self.durable[: self.size_bytes])
        content.extend(bytes(self.size_bytes - len(content)))
        for number, versions in self.versions.items():
            put_page(content, number, versions[-1])
        return content


def put_page(content: bytearray, number: int, page: bytes) -> None:
    """Overwrite a page as far as it lies inside `content`; a short page is padded with zeros."""
    start = number * PAGE_BYTES
    room = len(content) - start
    if room > 0:
        if len(page) < PAGE_BYTES and len(page) < room:  # the file was shorter at that time than in this image
            page = page.ljust(PAGE_BYTES, b"\0")
        content[start : start + min(len(page), room)] = page if len(page) <= room else page[:room]


@lru_cache(maxsize=1 << 14)
def parent_of(path: str) -> str:
    """Return the parent directory of a path."""
    return path.rpartition("/")[0] or "/"


_WITHOUT_NAME = "(a file without a name)"


class DiskState:
    """The reducer: starts from a durable image and applies journal entries.

    `names` and `directories` are durable. `pending` are the directory operations that no sync has certainly committed.
    A sync may have committed those in `optional`. The files of the moves in `halved` may be at their old name too.
    `unfolded` are the pending ones and the committed ones after them, which take effect in their order.
    """

    def __init__(self, base: Image, *, disk: Disk, rules: DiskRules | None = None) -> None:
        """Start from a durable image. `rules` replaces those of the disk, for planted wrong rules."""
        self.disk = disk
        self.rules = DISK_RULES[disk] if rules is None else rules
        self.inodes: dict[int, InodeState] = {}
        self.directories: set[str] = set(base.directories)
        self.names: dict[str, int] = {}
        self.pending: list[DirectoryOperation] = []
        self.tree: DirectoryTree | None = None
        """The directories since the first move of one; `names` and `directories` are those before it."""
        self._durable: set[int] = set()
        self.optional: list[DirectoryOperation] = []
        self.halved: list[FileRenamed] = []
        self.unfolded: list[DirectoryOperation] = []
        self._synced_before: set[int | str] = set()
        self._resizes: dict[int, Resizes] = {}
        self._taken: dict[str, int] = dict.fromkeys(base.files, 1)
        for number, path in enumerate(sorted(base.files)):
            self.inodes[number] = InodeState(path, base.files[path])
            self.names[path] = number
            self.start_size(number, len(base.files[path]))

    def start_size(self, number: int, size_bytes: int) -> None:
        """Set the size of a file before the first entry, if the image has no content."""
        if self.rules.resize_commits:
            self._resizes[number] = Resizes(size_bytes)

    def _inode_name(self, path: str) -> str:
        self._taken[path] = count = self._taken.get(path, 0) + 1
        return path if count == 1 else f"{path}#{count}"

    def apply_all(self, entries: Iterable[Entry]) -> None:
        """Apply entries in order."""
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Apply one entry."""
        _APPLIED[type(entry)](self, entry)

    def _page_written(self, entry: PageWritten) -> None:
        written = self.inodes[entry.inode]
        written.versions.setdefault(entry.page, []).append(entry.content)
        if written.dropped:
            written.dropped.discard(entry.page)

    def _page_freed(self, entry: PageFreed) -> None:
        self._page_written(entry)
        inode = self.inodes[entry.inode]
        inode.freed.setdefault(entry.page, []).append((len(inode.versions[entry.page]), len(inode.sizes) + 1))

    def _file_synced(self, entry: FileSynced) -> None:
        if entry.succeeded and entry.extent is not None and not self.rules.syncs_whole_file:
            self._extent_synced(entry.inode, entry.extent, data_only=entry.data_only)
        elif entry.succeeded:
            synced = self.inodes[entry.inode]
            passed_by = {page: synced.versions.pop(page) for page in sorted(synced.dropped)}
            content = _frozen(synced.latest()) if synced.sizes or synced.versions else synced.durable
            self.synced(entry.inode, content, data_only=entry.data_only)
            synced.versions = passed_by  # they count as clean, so their versions stay in flight

    def _extent_synced(self, number: int, extent: tuple[int, int], *, data_only: bool) -> None:
        """Make the pages with some bytes durable, and a size with which they are reached."""
        inode = self.inodes[number]
        end = min(extent[1], inode.size_bytes)
        sizes = [len(inode.durable), *inode.sizes]
        gone = 0
        if extent[0] < end:
            gone = sizes_left_out(sizes, end, cuts=self.rules.cuts_whole)
            covered = range(extent[0] // PAGE_BYTES, -(-end // PAGE_BYTES))
            pages = {
                page: inode.versions.pop(page)[-1]
                for page in sorted(inode.versions)
                if page in covered and page not in inode.dropped
            }
            inode.durable = _with_pages(inode.durable, sizes[gone], pages)
            inode.sizes = inode.sizes[gone:]
            inode.freed = {
                page: later
                for page, cuts in inode.freed.items()
                if page not in pages and (later := [(zeros, cut - gone) for zeros, cut in cuts if cut > gone])
            }
        self.names_synced(number, data_only=data_only, is_whole_size=not inode.sizes)

    def _pages_dropped(self, entry: PagesDropped) -> None:
        self.inodes[entry.inode].dropped.update(self.inodes[entry.inode].versions)

    def _resized(self, entry: Resized) -> None:
        self.inodes[entry.inode].sizes.append(entry.size_bytes)
        self.note_resized(entry)

    def note_resized(self, entry: Resized) -> None:
        """Note which directory operations came before a change of a size."""
        if self.rules.resize_commits:
            resizes = self._resizes.setdefault(entry.inode, Resizes(0))
            resizes.add(entry.size_bytes, self.pending[-1] if self.pending else None)

    def _created(self, entry: FileCreated) -> None:
        self.inodes[entry.inode] = InodeState(self._inode_name(entry.path))
        self._directory_changed(entry)

    def _made(self, entry: FileMade) -> None:
        self.inodes[entry.inode] = InodeState(self._inode_name(_WITHOUT_NAME))

    def _linked(self, entry: FileLinked) -> None:
        inode = self.inodes[entry.inode]
        if inode.name.startswith(_WITHOUT_NAME):
            inode.name = self._inode_name(entry.path)
        self._directory_changed(entry)

    def _directory_changed(self, entry: DirectoryOperation) -> None:
        if self.tree is not None:
            self.tree.note(entry)
        self.pending.append(entry)
        self.unfolded.append(entry)

    def _directory_moved(self, entry: DirectoryRenamed | DirectoryRemoved | FileRenamed) -> None:
        if self.tree is None and is_move(entry):
            self.tree = DirectoryTree(self.directories, self.names)
            waiting = {id(operation) for operation in self.pending}
            self._durable = {id(operation) for operation in self.unfolded} - waiting
            for operation in self.unfolded:
                self.tree.note(operation)
        self._directory_changed(entry)
        if not self.rules.is_ordered:
            self._halve([entry])

    def _halve(self, operations: Iterable[DirectoryOperation]) -> None:
        """Note moves of files to another directory."""
        if self.tree is not None and self.rules.splits_moves:
            known = {id(operation) for operation in self.halved}
            moves = [o for o in operations if isinstance(o, FileRenamed) and is_move(o) and id(o) not in known]
            self.halved += moves

    def _directory_synced(self, entry: DirectorySynced) -> None:
        self._sync_directory(entry.path)

    def _process_killed(self, entry: ProcessKilled) -> None:
        """The page cache stays as it is."""

    def synced(self, number: int, content: bytes, *, data_only: bool = False) -> None:
        """Note that a sync of a file made all of its content durable."""
        inode = self.inodes[number]
        inode.durable = content
        inode.sizes.clear()
        inode.versions.clear()
        inode.freed.clear()
        self.names_synced(number, data_only=data_only)

    def names_synced(self, number: int, *, data_only: bool, is_whole_size: bool = True) -> None:
        """Commit the directory operations that a sync of a file commits.

        A sync that leaves a size in flight commits nothing because of a change of the size.
        """
        self._may_commit_logged(number)
        keeps_rename = self.rules.data_syncs_rename or not data_only
        resizes = self._resizes.get(number) if is_whole_size else None
        resized_after = None if resizes is None else resizes.sync(counts_each=keeps_rename)
        if self.rules.commits != "directory" and self.pending:
            covered = [n for n, operation in enumerate(self.pending) if operation is resized_after]
            for n, operation in enumerate(self.pending):
                if isinstance(operation, FileCreated | FileLinked | FileRenamed) and operation.inode == number:
                    if isinstance(operation, FileLinked | FileRenamed) and self.rules.may_commit_more:
                        for directory in self._directories_with(operation):
                            self._may_commit_below(directory)
                    if keeps_rename or isinstance(operation, FileCreated):
                        covered.append(n)
                    elif self.rules.may_commit_more:
                        self._note_optional([n])
            self._commit(sorted(covered))
        if self.halved and self.rules.commits != "directory" and keeps_rename:
            self.halved = [operation for operation in self.halved if operation.inode != number]

    def _sync_directory(self, path: str) -> None:
        tree, has_journal = self.tree, self.rules.commits != "directory"
        here = path if tree is None else tree.at(path)
        self._may_commit_logged(here)
        self._may_commit_below(here)
        if tree is not None:
            self._commit([n for n, o in enumerate(self.pending) if tree.is_covered(o, here, its_own=has_journal)])
            self.halved = [operation for operation in self.halved if tree.source(operation) != here]
            return
        if not self.pending:
            return
        covered = {number for number, operation in enumerate(self.pending) if directory_of(operation) == path}
        if has_journal:
            covered |= {number for number, operation in enumerate(self.pending) if operation == DirectoryMade(path)}
        self._commit(sorted(covered))

    def _directories_of(self, operation: DirectoryOperation) -> tuple[str, ...]:
        return (directory_of(operation),) if self.tree is None else self.tree.places(operation)

    def _directories_with(self, operation: FileLinked | FileRenamed) -> set[str]:
        """Return the directories of an operation, and those of all names of its file."""
        names, _ = self.visible()
        above = {parent_of(path) for path, inode in names.items() if inode == operation.inode}
        return {*self._directories_of(operation), *(above if self.tree is None else map(self.tree.at, above))}

    def _may_commit_below(self, directory: str) -> None:
        """Note the pending operations in a directory, and in new directories below it.

        The links and renames of a file that has a new name there count too.
        """
        if not self.rules.may_commit_more or not self.pending:
            return
        below = self._below(directory)
        named = {o.inode for n in below if isinstance(o := self.pending[n], FileCreated | FileLinked | FileRenamed)}
        links = [n for n, o in enumerate(self.pending) if isinstance(o, FileLinked | FileRenamed) and o.inode in named]
        self._note_optional(sorted({*below, *links}))

    def _below(self, directory: str) -> list[int]:
        if self.tree is not None:
            return self.tree.below(self.pending, directory)
        new, below = {directory}, list[int]()
        for number, operation in enumerate(self.pending):
            if directory_of(operation) in new:
                below.append(number)
                if isinstance(operation, DirectoryMade):
                    new.add(operation.path)
        return below

    def _may_commit_logged(self, synced: int | str) -> None:
        """Note renames and removals of what earlier syncs covered.

        `synced` is the file or directory that is synced now.
        """
        if self.rules.may_commit_more:
            logged = self._synced_before
            self._note_optional([n for n, operation in enumerate(self.pending) if self._is_logged(operation)])
            logged.add(synced)

    def _is_logged(self, operation: DirectoryOperation) -> bool:
        """Return whether an operation changes the name of something that was synced before."""
        logged = self._synced_before
        if isinstance(operation, FileLinked | FileRenamed | FileUnlinked) and operation.inode in logged:
            return True
        if isinstance(operation, FileCreated | FileLinked | DirectoryMade):
            return False
        return not logged.isdisjoint(self._directories_of(operation))

    def _note_optional(self, numbers: Sequence[int]) -> None:
        optional = self._with_dependencies(numbers) if numbers else ()
        known = {id(operation) for operation in self.optional}
        self.optional += [operation for n in optional if id(operation := self.pending[n]) not in known]
        self._halve(self.pending[n] for n in optional)

    def _with_dependencies(self, numbers: Sequence[int]) -> list[int]:
        if self.tree is not None:
            return self.tree.needed(self.pending, numbers, self._durable)
        return with_dependencies(self.pending, numbers, self._committed_names())

    def _committed_names(self) -> dict[str, int]:
        """Return the names that survive if no pending operation does."""
        if len(self.unfolded) == len(self.pending):
            return self.names
        names, waiting = dict(self.names), {id(operation) for operation in self.pending}
        for operation in self.unfolded:
            if id(operation) not in waiting:
                apply_operation(names, set(), operation)
        return names

    def _commit(self, covered: list[int]) -> None:
        """Commit the covered operations, and those that the disk commits with them."""
        if not covered:
            return
        if self.rules.commits == "before":
            covered = list(range(covered[-1] + 1))
        elif self.rules.commits == "dependencies":
            covered = self._with_dependencies(covered)
            self._halve(self.pending[number] for number in covered)
        elif self.tree is None:
            self._fold([self.pending[number] for number in covered])
        committed = set(covered)
        if self.tree is not None:
            self._durable |= {id(self.pending[number]) for number in covered}
        self.pending = [operation for number, operation in enumerate(self.pending) if number not in committed]
        if self.optional:
            waiting = {id(operation) for operation in self.pending}
            self.optional = [operation for operation in self.optional if id(operation) in waiting]
        if self.tree is None:
            left = next((n for n, o in enumerate(self.unfolded) if self.pending and o is self.pending[0]), None)
            self._fold(self.unfolded[:left])

    def _fold(self, operations: Sequence[DirectoryOperation]) -> None:
        """Apply operations to the durable names."""
        done = {id(operation) for operation in operations}
        for operation in operations:
            apply_operation(self.names, self.directories, operation)
        self.unfolded = [operation for operation in self.unfolded if id(operation) not in done]

    def surviving_names(
        self, survived: Iterable[DirectoryOperation], kept: Collection[int] = ()
    ) -> tuple[dict[str, int], set[str]]:
        """Return the names and directories that are reached with some pending operations.

        The moves in `kept`, by their `id`, keep the old name too. The disk has a `tree`.
        """
        assert self.tree is not None
        names, directories = self.tree.names(self._durable | {id(operation) for operation in survived}, kept)
        return {path: inode for path, (inode, _) in names.items()}, set(directories)

    def visible(self) -> tuple[dict[str, int], set[str]]:
        """Return names and directories as the process sees them."""
        names, directories = dict(self.names), set(self.directories)
        for operation in self.unfolded:
            apply_operation(names, directories, operation)
        return names, directories


_APPLIED: Mapping[type, Callable[[DiskState, Any], None]] = {
    PageWritten: DiskState._page_written,
    PageFreed: DiskState._page_freed,
    FileSynced: DiskState._file_synced,
    PagesDropped: DiskState._pages_dropped,
    Resized: DiskState._resized,
    FileCreated: DiskState._created,
    FileMade: DiskState._made,
    FileLinked: DiskState._linked,
    DirectoryMade: DiskState._directory_changed,
    DirectoryRenamed: DiskState._directory_moved,
    DirectoryRemoved: DiskState._directory_moved,
    FileRenamed: DiskState._directory_moved,
    FileUnlinked: DiskState._directory_changed,
    DirectorySynced: DiskState._directory_synced,
    ProcessKilled: DiskState._process_killed,
}
"""The method for each kind of entry; a table, because journals are replayed very often."""


def _frozen(content: bytes | bytearray) -> bytes:
    return bytes(content) if isinstance(content, bytearray) else content


def sizes_left_out(sizes: Sequence[int], end: int, *, cuts: bool) -> int:
    """Return how many of the first sizes a sync of the bytes up to `end` leaves out.

    These are the sizes up to the last one below `end`. With `cuts` the last cut is committed too.
    """
    short = [n for n, size_bytes in enumerate(sizes, 1) if size_bytes < end]
    before_cuts = [n for n in range(1, len(sizes)) if cuts and sizes[n] < sizes[n - 1]]
    return max([0, *short, *before_cuts])


def _with_pages(durable: bytes, size_bytes: int, pages: Mapping[int, bytes]) -> bytes:
    """Return content with another size and some other pages."""
    if max(size_bytes, len(durable)) > LARGE_BYTES:
        return large_content(durable, size_bytes, list(pages.items()))
    content = bytearray(durable[:size_bytes]).ljust(size_bytes, b"\0")
    for page, held in pages.items():
        put_page(content, page, held)
    return bytes(content)


def directory_of(operation: DirectoryOperation) -> str:
    """Return the directory that an operation is in, for a rename that of its target."""
    return parent_of(operation.target if isinstance(operation, FileRenamed | DirectoryRenamed) else operation.path)


def with_dependencies(
    operations: Sequence[DirectoryOperation], covered: Sequence[int], names: Mapping[str, int]
) -> list[int]:
    """Return the covered operations and the earlier ones that they depend on, in order.

    An operation depends on the earlier ones of its file, on those of the file that has its name in `names`, and on the
    creation of the directories above it. A removal of a name does not depend on the other links of the file.
    """
    found, inodes, above = set(covered), set[int](), set[str]()
    removed: dict[int, set[str]] = {}
    for number in range(max(covered, default=-1), -1, -1):
        operation = operations[number]
        if isinstance(operation, FileRenamed | DirectoryRenamed):
            own = {operation.source, operation.target}
        else:
            own = {operation.path}
        inode = None if isinstance(operation, DirectoryMade | DirectoryRenamed | DirectoryRemoved) else operation.inode
        is_needed = inode in inodes or (isinstance(operation, DirectoryMade) and operation.path in above)
        if inode is not None and inode in removed:
            is_needed |= not isinstance(operation, FileLinked) or operation.path in removed[inode]
        if number in found or is_needed:
            found.add(number)
            inodes |= {names[path] for path in own if path in names and names[path] != inode}
            if isinstance(operation, FileUnlinked):
                removed.setdefault(operation.inode, set()).add(operation.path)
            elif inode is not None:
                inodes.add(inode)
            for path in own:
                while path != "/":
                    path = parent_of(path)
                    above.add(path)
    return sorted(found)


def apply_operation(names: dict[str, int], directories: set[str], operation: DirectoryOperation) -> None:
    """Apply one directory operation to names and directories."""
    match operation:
        case FileCreated(inode, path) | FileLinked(inode, path):
            names[path] = inode
        case DirectoryMade(path):
            directories.add(path)
            names.pop(path, None)  # the removal of a file of this name may be lost
        case FileUnlinked(inode, path):
            if names.get(path) == inode:
                del names[path]
        case FileRenamed(inode, source, target):
            if names.get(source) == inode:
                del names[source]
            names[target] = inode
        case DirectoryRemoved(path):
            directories.discard(path)
        case DirectoryRenamed(source, target):
            for path in [path for path in directories if _is_at_or_in(path, source)]:
                directories.discard(path)
                directories.add(target + path[len(source) :])
            for path in [path for path in names if _is_at_or_in(path, source)]:
                names[target + path[len(source) :]] = names.pop(path)


def _is_at_or_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
