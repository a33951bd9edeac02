"""Record the directory of a foreign process as a disk: its writes and syncs, in order.

The tracer calls `look` while the process is stopped at a system call, and reports which syncs returned. Each look
compares what the calls since the last look may have changed: names, some pages of a file, and files that are mapped.
The differences become entries of the same journal that the crash lab's own recorded disks use
(properties/disk/journal.py). Crash states of foreign stores are therefore made, and proved legal, by the same code. A
page in a crash state holds a version that the page had at some look, no older than its last sync.

Two things are simplified. Versions between two looks are missed, which gives fewer crash states but no wrong ones. What
is written in a page during a synchronous write or an msync of it counts as synced, which makes the disk more reliable
than a real one but never wrong.

After the end of a process the whole directory is compared. A change that no traced call shows has been made by another
process. Then it is not known what is durable.

What cannot be recorded is named in `unsupported`, and no power loss is made from such a recording: symbolic links,
names that are exchanged, requests to the kernel that are not system calls (io_uring, aio), and more changed bytes than
BYTES_MAX.
"""

import os
import stat
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.journal import (
    DirectorySynced,
    Entry,
    FileMade,
    FileSynced,
    PageFreed,
    PageWritten,
    ProcessKilled,
    Resized,
)
from tornpage.properties.disk.sparse import pages_of
from tornpage.properties.foreign.held_file import Extent, HeldFile
from tornpage.properties.foreign.name_changes import FileId, Names, UnclearNames, name_changes

__all__ = ["BYTES_MAX", "EMPTY", "FileId", "Recorded", "WatchedDirectory", "write_directory"]

EMPTY = Image(frozenset({"/"}), {})
BYTES_MAX = 256 << 20
"""The bytes of changed pages that one recording may hold."""
_PAGE_BYTES = 4096
_STRANGER = "a process that is neither the store's nor a child of it writes in its directory"
_SEARCHED_BYTES = 1 << 20


def write_directory(image: Image, root: Path, names: Mapping[str, int] | None = None) -> None:
    """Write an image into an empty directory.

    Paths with the same number in `names` become one file.
    """
    for path in sorted(image.directories - {"/"}):
        (root / path[1:]).mkdir()
    first: dict[int, str] = {}
    for path, content in image.files.items():
        number = None if names is None else names[path]
        if number is not None and number in first:
            os.link(f"{root}{first[number]}", f"{root}{path}")
            continue
        if number is not None:
            first[number] = path
        file = os.open(f"{root}{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            if len(content) <= _SEARCHED_BYTES:
                os.write(file, content)
            else:
                os.ftruncate(file, len(content))
                for page, held in pages_of(content).items():
                    os.pwrite(file, held[: len(content) - page * _PAGE_BYTES], page * _PAGE_BYTES)
        finally:
            os.close(file)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Hold the recording of a directory up to some event.

    The process may have continued since.
    """

    base: Image
    journal: Sequence[Entry]
    events: Sequence[int]
    unsupported: str


class WatchedDirectory:
    """Record the disk of one directory.

    `base` is durable, `journal` is what happened since, and `events` are the positions in it where a crash may happen.
    The recording starts with the present directory, which must equal what `base` and `journal` give.

    A tracer names what may have changed (`touch`, `touch_names`, `note_mapped`) and sets `before_look`, which names
    what the calls in progress may change. Without a tracer each look compares everything.
    """

    def __init__(self, root: Path, base: Image = EMPTY, journal: tuple[Entry, ...] = ()) -> None:
        self.root, self.base = root, base
        self.journal: list[Entry] = list(journal)
        self.events: list[int] = []
        self.unsupported = ""
        self._supported_events: int | None = None
        self.before_look: Callable[[], None] | None = None
        state = DiskState(base, disk="kill")
        state.apply_all(journal)
        names, _ = state.visible()
        self._next = max(state.inodes, default=-1) + 1
        self._numbers: dict[FileId, int] = {}
        self._held: dict[int, HeldFile] = {}
        self._made_unnamed: dict[FileId, int] = {}
        self._unlinked: dict[FileId, int] = {}
        self._unnamed_open: list[int] = []
        weakref.finalize(self, _close_all, self._unnamed_open)
        self._touched: dict[FileId, list[Extent] | None] = {}
        self._mapped: set[FileId] = set()
        self._names_touched = False
        self._bytes = 0
        self._sizes: dict[FileId, int] = {}
        self._names = self._scan()
        for path, number in names.items():
            if path in self._names.files:
                self._numbers[self._names.files[path]] = number
                if number not in self._held:
                    self._held[number] = HeldFile(_frozen(state.inodes[number].latest()))

    # ---- looking -------------------------------------------------------------------------------------------------

    def touch(self, place: FileId, extent: Extent | None = None) -> None:
        """Note that a file may have changed, in an extent or anywhere."""
        extents = self._touched.setdefault(place, [])
        if extent is None:
            self._touched[place] = None
        elif extents is not None:
            extents.append(extent)

    def touch_names(self) -> None:
        """Note that names or sizes may have changed."""
        self._names_touched = True

    def note_mapped(self, place: FileId) -> None:
        """Note that a file may change at any time, because it is mapped."""
        self._mapped.add(place)

    def look(self, *, everything: bool = False) -> None:
        """Record what has changed since the last look. A crash may happen here."""
        everything = everything or self.before_look is None
        if self.before_look is not None:
            self.before_look()
        if not self.unsupported:
            if everything or self._names_touched:
                self._names_touched = False
                self._note_names(self._scan())
            touched, self._touched = self._touched, {}
            if not self.unsupported:
                self._note_contents(dict.fromkeys(self._numbers) if everything else touched)
        is_first_unsupported = self._supported_events == len(self.events)
        if not self.events or self.events[-1] != len(self.journal) or is_first_unsupported:
            self.events.append(len(self.journal))

    def mark(self) -> int:
        """Look, and begin an event at which an answer has come; return its number."""
        self.look()
        self.events.append(len(self.journal))
        return len(self.events) - 1

    def look_after_answer(self) -> None:
        """Look, and check that names and sizes changed only by calls of the traced process."""
        self.look()
        if self.unsupported or self.before_look is None:
            return
        self.before_look()
        if self._names_touched:
            return
        now, sizes = self._scan(), self._sizes
        self._sizes = {}
        resized = [
            place
            for place, size_bytes in sizes.items()
            if place in self._numbers and size_bytes != self._held[self._numbers[place]].size_bytes
        ]
        if now != self._names or set(resized) - self._touched.keys() - self._mapped:
            self.refuse(_STRANGER, always=True)

    def refuse(self, reason: str, *, always: bool = False) -> None:
        """Record why from now on it is not known what is durable, or why it never was."""
        self.unsupported = self.unsupported or reason
        if self._supported_events is None or always:
            self._supported_events = 0 if always else len(self.events)

    def supports(self, event: int) -> bool:
        """Return whether it is known what was durable at an event."""
        return self._supported_events is None or event < self._supported_events

    def _scan(self) -> Names:
        """Return files and directories by path, each with its device and inode."""
        files: dict[str, FileId] = {}
        directories = {"/": _place(os.stat(self.root))}
        sizes: dict[FileId, int] = {}
        left = ["/"]
        while left:
            above = left.pop()
            for name in _listed(f"{self.root}{above}"):
                path = f"{above.rstrip('/')}/{name}"
                try:
                    found = os.lstat(f"{self.root}{path}")
                except OSError:  # it was removed meanwhile
                    continue
                if stat.S_ISDIR(found.st_mode):
                    directories[path] = _place(found)
                    left.append(path)
                elif stat.S_ISREG(found.st_mode):
                    files[path] = place = _place(found)
                    sizes[place] = found.st_size
                elif stat.S_ISLNK(found.st_mode):
                    self.refuse(f"{path} is a symbolic link")
        self._sizes = sizes
        return Names(files, directories)

    def _note_names(self, now: Names) -> None:
        if now.files == self._names.files and now.directories == self._names.directories:
            return
        known = self._numbers | self._made_unnamed
        try:
            changes = name_changes(self._names, now, known, self._new_number)
        except UnclearNames as error:
            self.refuse(f"{error}, which is not one change after the other")
            return
        self.journal += changes
        there = set(now.files.values())
        for place in there:
            self._numbers[place] = known[place]
            self._held.setdefault(known[place], HeldFile())
            self._made_unnamed.pop(place, None)
            self._unlinked.pop(place, None)
        for place in self._numbers.keys() - there:
            self._unlinked[place] = self._numbers.pop(place)
        self._names = now

    def _new_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _note_contents(self, touched: dict[FileId, list[Extent] | None]) -> None:
        resized = {
            place: None
            for place, size_bytes in self._sizes.items()
            if place in self._numbers and size_bytes != self._held[self._numbers[place]].size_bytes
        }
        for place, extents in (touched | dict.fromkeys(self._mapped) | resized).items():
            if place in self._numbers:
                self._note_content(place, self._numbers[place], extents)
        self._sizes = {}

    def _note_content(self, place: FileId, number: int, extents: list[Extent] | None) -> None:
        path = next(path for path, there in self._names.files.items() if there == place)
        try:
            file = os.open(f"{self.root}{path}", os.O_RDONLY)
        except FileNotFoundError:
            self.touch(place)  # a call in progress has renamed or removed it
            return
        except OSError as error:
            self.refuse(f"{path} cannot be read: {error.strerror}")
            return
        try:
            self._take(self._held[number].refresh(number, file, extents))
        except OSError as error:
            self.refuse(f"{path} cannot be read: {error.strerror}")
        finally:
            os.close(file)

    def _take(self, entries: list[Entry]) -> None:
        self.journal += entries
        self._bytes += sum(len(entry.content) for entry in entries if isinstance(entry, PageWritten))
        if self._bytes > BYTES_MAX:
            self.refuse(f"it changes more than {BYTES_MAX >> 20} MiB in one session; configure smaller files")

    # ---- barriers ------------------------------------------------------------------------------------------------

    def synced(
        self,
        place: FileId,
        *,
        succeeded: bool = True,
        opened: str = "",
        data_only: bool = False,
        extent: Extent | None = None,
        began: int | None = None,
    ) -> None:
        """Record that a sync of a file or directory has returned. Others are ignored.

        `opened` is a path that leads to the file, by which a file without a name is read. `data_only`: it was no fsync,
        so it need not commit a rename of the file. With `extent` it was a sync of these bytes. `began` is the length of
        the journal when the sync began: what other calls wrote since then stays in flight.
        """
        self.look()
        if place in self._numbers:
            number = self._numbers[place]
            self.journal += self._as_of(began, FileSynced(number, succeeded, data_only, extent))
        elif paths := [path for path, found in self._names.directories.items() if found == place]:
            if succeeded:
                self.journal += [DirectorySynced(path) for path in paths]
        elif opened and not self.unsupported:
            self._unnamed_synced(place, opened, succeeded=succeeded, data_only=data_only, extent=extent)
        self.look()

    def _as_of(self, began: int | None, sync: FileSynced) -> list[Entry]:
        """Return the entries for a sync of a whole file that began at a position of the journal.

        Pages that were written during the sync get their earlier content before it, and the later one after it. There
        is no event between these entries. The sync covers the bytes of the earlier size.
        """
        during = [] if began is None or sync.extent is not None else self.journal[began:]
        written = {e.page: e.content for e in during if isinstance(e, PageWritten) and e.inode == sync.inode}
        sizes = [e.size_bytes for e in during if isinstance(e, Resized) and e.inode == sync.inode]
        if not written or not sync.succeeded or any(isinstance(e, PageFreed) for e in during):
            return [sync]
        size_bytes, before = self._before(began or 0, sync.inode, written)
        now = sizes[-1] if sizes else size_bytes
        if min([size_bytes, *sizes]) < size_bytes or any(page * _PAGE_BYTES >= now for page in written):
            return [sync]  # the file was cut
        earlier: list[Entry] = [
            PageWritten(sync.inode, page, content.ljust(_PAGE_BYTES, b"\0")[: now - page * _PAGE_BYTES])
            for page, content in sorted(before.items())
        ]
        later: list[Entry] = [PageWritten(sync.inode, page, content) for page, content in sorted(written.items())]
        return [*earlier, replace(sync, extent=(0, size_bytes) if sizes else None), *later]

    def _before(self, position: int, number: int, pages: Iterable[int]) -> tuple[int, dict[int, bytes]]:
        """Return the size of a file and some of its pages at a position of the journal."""
        left, size_bytes, found = set(pages), -1, dict[int, bytes]()
        first = dict(enumerate(sorted(self.base.files))).get(number, "")
        for entry in reversed(self.journal[:position]):
            if isinstance(entry, Resized) and entry.inode == number and size_bytes < 0:
                size_bytes = entry.size_bytes
            elif isinstance(entry, PageWritten) and entry.inode == number and entry.page in left:
                found[entry.page] = entry.content
                left.discard(entry.page)
            if size_bytes >= 0 and not left:
                break
        content = self.base.files.get(first, b"")
        for page in left:
            found[page] = bytes(content[page * _PAGE_BYTES : (page + 1) * _PAGE_BYTES])
        return (size_bytes if size_bytes >= 0 else len(content)), found

    def _unnamed_synced(
        self, place: FileId, opened: str, *, succeeded: bool, data_only: bool, extent: Extent | None
    ) -> None:
        """Record the sync of a file that has no name now.

        It may get one, or the removal of its name may be lost.
        """
        with suppress(OSError):
            file = os.open(opened, os.O_RDONLY)
            self._unnamed_open.append(file)  # while it is open no other file has its inode number
            found = os.fstat(file)
            if found.st_nlink or not stat.S_ISREG(found.st_mode) or found.st_dev != self._names.directories["/"][0]:
                return
            if place not in self._unlinked and place not in self._made_unnamed:
                self._made_unnamed[place] = number = self._new_number()
                self._held[number] = HeldFile()
                self.journal.append(FileMade(number))
            number = self._unlinked[place] if place in self._unlinked else self._made_unnamed[place]
            self._take(self._held[number].refresh(number, file, None))
            self.journal.append(FileSynced(number, succeeded, data_only, extent))

    def all_synced(self) -> None:
        """Record that a sync of everything has returned."""
        self.look()
        self.journal += [FileSynced(number, True) for number in self._live()]
        self.journal += [DirectorySynced(path) for path in sorted(self._names.directories)]
        self.look()

    # ---- what was recorded ---------------------------------------------------------------------------------------

    def process_died(self) -> None:
        """Record that another process continues in the directory. All writes are there."""
        self.look()
        self.journal.append(ProcessKilled())
        self.events.clear()
        self._supported_events = 0 if self.unsupported else None
        self._made_unnamed.clear()
        self._unlinked.clear()
        self._mapped.clear()
        _close_all(self._unnamed_open)

    def until(self, event: int) -> "Recorded":
        """Return the recording up to an event, including it."""
        unsupported = "" if self.supports(event) else self.unsupported
        return Recorded(self.base, self.journal[: self.events[event]], self.events[: event + 1], unsupported)

    def proves_itself(self) -> None:
        """Check that the journal matches the directory, when no process works in it any more.

        A change that no traced call shows ends the recording. Raises HarnessError if the journal is wrong.
        """
        if self.unsupported:
            return
        recorded = len(self.journal)
        self.look(everything=True)
        if len(self.journal) != recorded and self.before_look is not None:
            del self.journal[recorded:]
            self.events[:] = [event for event in self.events if event <= recorded]
            self.refuse(_STRANGER, always=True)
            return
        self.proves_journal()

    def proves_journal(self) -> None:
        """Check that the journal leads to what was seen at the last look. Raises HarnessError."""
        if self.unsupported:
            return
        state = DiskState(self.base, disk="kill")
        state.apply_all(self.journal)
        names, _ = state.visible()
        told = {path: state.inodes[number].latest() for path, number in names.items()}
        seen = {path: self._held[self._numbers[place]].content() for path, place in self._names.files.items()}
        if told != seen:
            wrong = sorted(path for path in told.keys() | seen.keys() if told.get(path) != seen.get(path))
            raise HarnessError(f"the recording of {wrong[0]} does not match the file")

    def _live(self) -> Iterable[int]:
        return [self._numbers[place] for place in dict.fromkeys(self._names.files.values())]


def _frozen(content: bytes | bytearray) -> bytes:
    return bytes(content) if isinstance(content, bytearray) else content


def _close_all(files: list[int]) -> None:
    while files:
        with suppress(OSError):
            os.close(files.pop())


def _place(found: os.stat_result) -> FileId:
    return found.st_dev, found.st_ino


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
