"""Record the directory of a foreign process as a disk: its writes and syncs, in order.

The tracer calls `look` while the process is stopped at a system call, and reports which syncs returned. Each look
compares all files with the previous look. The differences become entries of the same journal that the crash lab's own
recorded disks use (properties/disk/journal.py). Crash states of foreign stores are therefore made, and proved legal, by
the same code. A page in a crash state holds a version that the page had at some look, no older than its last sync.

Two things are simplified. Versions between two looks are missed, which gives fewer crash states but no wrong ones. A
sync of a part of a file counts for the whole file, and pages written during a sync count as synced, which makes the
disk more reliable than a real one but never wrong.

What cannot be recorded at all is named in `unsupported`, and no power loss is made from such a recording: hard and
symbolic links, renamed or removed directories, files moved between directories, files without a name, requests to the
kernel that are not system calls (io_uring, aio), and more bytes than a look can compare.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.disk import DiskState, Image, parent_of
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageFreed,
    PageWritten,
    ProcessKilled,
    Resized,
)

__all__ = ["EMPTY", "Recorded", "WatchedDirectory", "write_directory"]

EMPTY = Image(frozenset({"/"}), {})
_BYTES_MAX = 64 << 20

FileId = tuple[int, int]
"""Device and inode number, which identify a file while it has a name."""


def write_directory(image: Image, root: Path) -> None:
    """Write an image into an empty directory."""
    for path in sorted(image.directories - {"/"}):
        (root / path[1:]).mkdir()
    for path, content in image.files.items():
        (root / path[1:]).write_bytes(content)


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
    """

    def __init__(self, root: Path, base: Image = EMPTY, journal: tuple[Entry, ...] = ()) -> None:
        self.root, self.base = root, base
        self.journal: list[Entry] = list(journal)
        self.events: list[int] = []
        self.unsupported = ""
        self.names_may_change = True
        """Whether the traced process has requested a change of names since this was last cleared."""
        state = DiskState(base, disk="kill")
        state.apply_all(journal)
        names, _ = state.visible()
        self._next = max(state.inodes, default=-1) + 1
        self._numbers: dict[FileId, int] = {}
        self._content: dict[int, bytes] = {}
        self._files, self._directories = self._scan()
        for path, number in names.items():
            if path in self._files:
                self._numbers[self._files[path]] = number
                self._content[number] = self._read(path)

    # ---- looking -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Record what has changed since the last look. A crash may happen here."""
        if not self.unsupported:
            files, directories = self._scan()
            self._note_names(files, directories)
            self._files, self._directories = files, directories
            self._note_contents()
        if not self.events or self.events[-1] != len(self.journal):
            self.events.append(len(self.journal))

    def refuse(self, reason: str) -> None:
        """Record why from now on it is not known what is durable."""
        self.unsupported = self.unsupported or reason

    def _scan(self) -> tuple[dict[str, FileId], dict[str, FileId]]:
        """Return files and directories by path, each with its device and inode."""
        files: dict[str, FileId] = {}
        directories = {"/": _place(os.stat(self.root))}
        left = ["/"]
        total_bytes = 0
        while left:
            above = left.pop()
            for name in _listed(self._real(above)):
                path = f"{above.rstrip('/')}/{name}"
                try:
                    found = os.lstat(self._real(path))
                except OSError:  # it was removed meanwhile
                    continue
                if stat.S_ISDIR(found.st_mode):
                    directories[path] = _place(found)
                    left.append(path)
                elif stat.S_ISREG(found.st_mode):
                    files[path] = _place(found)
                    total_bytes += found.st_size
                    if found.st_nlink > 1:
                        self.refuse(f"{path} has several names")
                elif stat.S_ISLNK(found.st_mode):
                    self.refuse(f"{path} is a symbolic link")
        if total_bytes > _BYTES_MAX:
            self.refuse(f"its files have more than {_BYTES_MAX >> 20} MiB; configure smaller files")
        return files, directories

    def _real(self, path: str) -> str:
        return f"{self.root}{path}"

    def _note_names(self, files: dict[str, FileId], directories: dict[str, FileId]) -> None:
        if not self.names_may_change and (files != self._files or directories != self._directories):
            self.refuse("a process that is neither the store's nor a child of it writes in its directory")
        for path in sorted(self._directories.keys() - directories.keys()):
            self.refuse(f"the directory {path} was renamed or removed")
        self.journal += [DirectoryMade(path) for path in sorted(directories.keys() - self._directories.keys())]
        before = {place: path for path, place in self._files.items()}
        came = {path: place for path, place in files.items() if self._files.get(path) != place}
        renamed = {before[place]: path for path, place in sorted(came.items()) if place in before}
        for source, target in renamed.items():
            self._note_rename(source, target, files)
        gone = self._files.keys() - files.keys() - renamed.keys()
        replaced = {path for path in came if path in self._files and came[path] not in before}
        for path in sorted(gone | replaced):
            self.journal.append(FileUnlinked(self._numbers.pop(self._files[path]), path))
        for path, place in sorted(came.items()):
            if place not in before:
                self._numbers[place] = number = self._next
                self._next += 1
                self._content[number] = b""
                self.journal.append(FileCreated(number, path))

    def _note_rename(self, source: str, target: str, files: dict[str, FileId]) -> None:
        if source in files or parent_of(source) != parent_of(target):
            self.refuse(f"{source} was moved to {target}, into another directory or in exchange")
            return
        self.journal.append(FileRenamed(self._numbers[self._files[source]], source, target))
        if target in self._files:
            self._numbers.pop(self._files[target], None)

    def _note_contents(self) -> None:
        if self.unsupported:
            return
        for path, place in self._files.items():
            number = self._numbers[place]
            self._note_content(number, self._content[number], self._read(path))

    def _note_content(self, number: int, before: bytes, now: bytes) -> None:
        if now == before:
            return
        if len(now) < len(before):  # cut bytes are zeros when the file is extended again
            zeroed = before[: len(now)].ljust(len(before), b"\0")
            self._note_pages(number, before, zeroed, cut_at=len(now))
            before = zeroed
        if len(now) != len(before):
            self.journal += [Resized(number, size_bytes) for size_bytes in _sizes_between(len(before), now)]
            self.journal.append(Resized(number, len(now)))
        self._note_pages(number, before[: len(now)].ljust(len(now), b"\0"), now)
        self._content[number] = now

    def _note_pages(self, number: int, before: bytes, now: bytes, *, cut_at: int | None = None) -> None:
        """Note the pages that differ.

        A cut frees the pages after its end. It zeroes the rest of the page that it ends in.
        """
        for start in range(0, len(now), PAGE_BYTES):
            content = now[start : start + PAGE_BYTES]
            if content != before[start : start + PAGE_BYTES]:
                kind = PageWritten if cut_at is None or start < cut_at else PageFreed
                self.journal.append(kind(number, start // PAGE_BYTES, content))

    def _read(self, path: str) -> bytes:
        try:
            return Path(self._real(path)).read_bytes()
        except OSError as error:
            self.refuse(f"{path} cannot be read: {error.strerror}")
            return b""

    # ---- barriers ------------------------------------------------------------------------------------------------

    def synced(self, place: FileId, *, succeeded: bool = True, data_only: bool = False) -> None:
        """Record that a sync of a file or directory has returned. Others are ignored.

        `data_only`: it was no fsync, so it need not commit a rename of the file.
        """
        self.look()
        if place in self._numbers:
            self.journal.append(FileSynced(self._numbers[place], succeeded, data_only))
        elif succeeded:
            self.journal += [DirectorySynced(path) for path, found in self._directories.items() if found == place]
        self.look()

    def all_synced(self) -> None:
        """Record that a sync of everything has returned."""
        self.look()
        self.journal += [FileSynced(number, True) for number in self._live()]
        self.journal += [DirectorySynced(path) for path in sorted(self._directories)]
        self.look()

    # ---- what was recorded ---------------------------------------------------------------------------------------

    def process_died(self) -> None:
        """Record that another process continues in the directory. All writes are there."""
        self.look()
        self.journal.append(ProcessKilled())
        self.events.clear()

    def until(self, event: int) -> "Recorded":
        """Return the recording up to an event, including it."""
        return Recorded(self.base, self.journal[: self.events[event]], self.events[: event + 1], self.unsupported)

    def proves_itself(self) -> None:
        """Check that the journal matches the directory. Raises HarnessError."""
        state = DiskState(self.base, disk="kill")
        state.apply_all(self.journal)
        names, _ = state.visible()
        told = {path: bytes(state.inodes[number].latest()) for path, number in names.items()}
        seen = {path: self._content[self._numbers[place]] for path, place in self._files.items()}
        if told != seen and not self.unsupported:
            wrong = sorted(path for path in told.keys() | seen.keys() if told.get(path) != seen.get(path))
            raise HarnessError(f"the recording of {wrong[0]} does not match the file")

    def _live(self) -> Iterable[int]:
        return [self._numbers[place] for place in self._files.values()]


def _sizes_between(before_bytes: int, now: bytes) -> list[int]:
    """Return the sizes that a file may have while a write extends it.

    The kernel writes page by page, so the file may end at each page boundary past a page that was written. A page of
    zeros counts as not written, because a truncation that extends a file is one operation.
    """
    first = before_bytes // PAGE_BYTES + 1
    ends = (page * PAGE_BYTES for page in range(first, (len(now) - 1) // PAGE_BYTES + 1))
    return [end for end in ends if any(now[max(before_bytes, end - PAGE_BYTES) : end])]


def _place(found: os.stat_result) -> FileId:
    return found.st_dev, found.st_ino


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []
