"""Read the directory operations of a journal for the legality checker.

Each operation comes with the directory entries that it changed. A directory is identified by its making, because a
rename changes its path. It uses the entry types of the journal and
nothing else of this project, as properties/disk/legality.py does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileUnlinked,
)

if TYPE_CHECKING:
    from tornpage.properties.disk.disk import Image

__all__ = [
    "Change",
    "Changes",
    "Directory",
    "Entered",
    "Subject",
    "ancestors",
    "directory_above",
    "entries_after",
    "names_after",
    "read_changes",
]

Directory = tuple[str, str | int]
"""("base", path) or ("made", entry)."""
File = tuple[str, int]
"""("inode", number)."""
Subject = Directory | File
Entered = tuple[Directory, str]
"""A directory and a name in it."""
_NAMING = (FileCreated, FileLinked, FileRenamed)


@dataclass(frozen=True)
class Change:
    """One directory operation: its subject, the entry that it removed, and the one it set."""

    subject: Directory | File
    removed: Entered | None
    added: Entered | None
    place: str
    names_file: bool
    is_rename: bool

    @property
    def entries(self) -> list[Entered]:
        """The directory entries that the operation changed."""
        return [entered for entered in (self.removed, self.added) if entered is not None]

    def is_in(self, directory: Directory) -> bool:
        """Whether the operation changed an entry of a directory."""
        return any(entered[0] == directory for entered in self.entries)


@dataclass(frozen=True)
class Changes:
    """Directory operations, and the directories of directory syncs, by journal entry."""

    operations: dict[int, Change]
    syncs: dict[int, Directory]

    def places(self, n: int) -> list[Directory]:
        """Return the directory of each changed entry, that of a removed entry first."""
        return [directory for directory, _ in self.operations[n].entries]


def directory_above(path: str) -> str:
    return path[: path.rindex("/")] or "/"


def ancestors(path: str) -> set[str]:
    parts = path.split("/")[1:-1]
    return {"/", *("/" + "/".join(parts[: n + 1]) for n in range(len(parts)))}


def read_changes(base: Image, journal: Sequence[Entry]) -> Changes:
    """Read the directory operations of a journal while following which directory a path names."""
    seen: dict[str, Directory] = {path: ("base", path) for path in base.directories}
    operations: dict[int, Change] = {}
    syncs: dict[int, Directory] = {}

    def place(path: str) -> Entered:
        above = directory_above(path)
        return seen.get(above, ("base", above)), path[path.rindex("/") + 1 :]

    def directory(path: str) -> Directory:
        return seen.get(path, ("base", path))

    for n, entry in enumerate(journal):
        if isinstance(entry, DirectorySynced):
            syncs[n] = directory(entry.path)
        elif isinstance(entry, FileCreated | FileLinked):
            operations[n] = _change(("inode", entry.inode), None, place(entry.path), entry, entry.path)
        elif isinstance(entry, FileUnlinked):
            operations[n] = _change(("inode", entry.inode), place(entry.path), None, entry, entry.path)
        elif isinstance(entry, FileRenamed):
            gone, new = place(entry.source), place(entry.target)
            operations[n] = _change(("inode", entry.inode), gone, new, entry, entry.target)
        elif isinstance(entry, DirectoryMade):
            seen[entry.path] = ("made", n)
            operations[n] = _change(("made", n), None, place(entry.path), entry, entry.path)
        elif isinstance(entry, DirectoryRemoved):
            operations[n] = _change(directory(entry.path), place(entry.path), None, entry, entry.path)
            seen.pop(entry.path, None)
        elif isinstance(entry, DirectoryRenamed):
            gone, new = place(entry.source), place(entry.target)
            operations[n] = _change(directory(entry.source), gone, new, entry, entry.target)
            below = [path for path in seen if path == entry.source or entry.source in ancestors(path)]
            moved = {entry.target + path.removeprefix(entry.source): seen.pop(path) for path in below}
            seen |= moved
    return Changes(operations, syncs)


def _change(
    subject: Directory | File, removed: Entered | None, added: Entered | None, entry: Entry, path: str
) -> Change:
    is_rename = isinstance(entry, DirectoryRenamed)
    return Change(subject, removed, added, directory_above(path), isinstance(entry, _NAMING), is_rename)


def names_after(
    base: Image, changes: Changes, survived: Iterable[int], twice: Collection[int] = ()
) -> tuple[dict[str, tuple[int, int | str]], set[str]]:
    """Return the files and directories that are reached from the root.

    A file comes with its inode and the entry that named it. A later operation on an entry replaces an earlier one. A
    directory has one entry, the last one that it was given. The files of the renames in `twice` keep their old entry.
    """
    held = entries_after(base, changes, survived, twice)
    children: dict[Directory, list[tuple[str, Directory | File, int | str]]] = {}
    for (above, name), (subject, origin) in held.items():
        children.setdefault(above, []).append((name, subject, origin))
    files: dict[str, tuple[int, int | str]] = {}
    reached: dict[str, Directory] = {}
    found: list[tuple[str, Directory]] = [("/", ("base", "/"))]
    for path, directory in found:  # grows while it is walked
        reached[path] = directory
        for name, subject, origin in children.get(directory, []):
            below = f"{path if path != '/' else ''}/{name}"
            if subject[0] == "inode":
                files[below] = (int(subject[1]), origin)
            else:
                found.append((below, subject))
    return files, set(reached)


def entries_after(
    base: Image, changes: Changes, survived: Iterable[int], twice: Collection[int] = ()
) -> dict[Entered, tuple[Directory | File, int | str]]:
    """Return the subject of each directory entry, and the journal entry that set it."""
    held: dict[Entered, tuple[Directory | File, int | str]] = {}
    numbers = {path: n for n, path in enumerate(sorted(base.files))}
    for path in base.directories - {"/"}:
        held[("base", directory_above(path)), path[path.rindex("/") + 1 :]] = (("base", path), "base")
    for path, inode in numbers.items():
        held[("base", directory_above(path)), path[path.rindex("/") + 1 :]] = (("inode", inode), "base")
    for n in survived:
        change = changes.operations[n]
        if n not in twice and change.removed in held and held[change.removed][0] == change.subject:
            del held[change.removed]
        if change.added is not None:
            if change.subject[0] != "inode":
                held = {entered: there for entered, there in held.items() if there[0] != change.subject}
            held[change.added] = (change.subject, n)
    return held
