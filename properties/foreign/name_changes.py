"""Find the directory operations that changed a directory tree between two looks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tornpage.properties.disk.directory_tree import DirectoryOperation
from tornpage.properties.disk.disk import apply_operation
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileUnlinked,
)

__all__ = ["FileId", "Names", "UnclearNames", "name_changes"]

FileId = tuple[int, int]
"""Device and inode number, which identify a file or directory while it has a name or is open."""


@dataclass(frozen=True, slots=True)
class Names:
    """Files and directories by path."""

    files: Mapping[str, FileId]
    directories: Mapping[str, FileId]


class UnclearNames(Exception):
    """Raise this if no order of operations leads from the names before to those now."""


def name_changes(
    before: Names, now: Names, known: dict[FileId, int], new_number: Callable[[], int]
) -> list[DirectoryOperation]:
    """Return the operations that lead from the names before to those now.

    `known` has the numbers of all files that had a name, or that were synced without one; files that are new are added.
    Raises UnclearNames.
    """
    files, directories = dict(before.files), dict(before.directories)
    entries: list[DirectoryOperation] = _moved_directories(files, directories, now)
    removed = [path for path, place in directories.items() if now.directories.get(path) != place]
    made = [path for path, place in now.directories.items() if directories.get(path) != place]
    replaced = set(made) & set(removed)
    entries += [DirectoryRemoved(path) for path in sorted(replaced, reverse=True)]
    entries += [DirectoryMade(path) for path in sorted(made)]
    entries += _changed_files(files, now.files, known, new_number)
    entries += [DirectoryRemoved(path) for path in sorted(set(removed) - replaced, reverse=True)]
    _require_leads_there(before, now, entries, known)
    return entries


def _moved_directories(
    files: dict[str, FileId], directories: dict[str, FileId], now: Names
) -> list[DirectoryOperation]:
    """Return the renames of directories, parents first.

    They are carried out on the names before.
    """
    entries: list[DirectoryOperation] = []
    for path, place in sorted(now.directories.items()):
        source = next((old for old, there in directories.items() if there == place), path)
        if source == path:
            continue
        if directories.get(path) in now.directories.values():
            raise UnclearNames(f"{source} and {path} were exchanged")
        entries.append(DirectoryRenamed(source, path))
        for names in (files, directories):
            for old in [old for old in names if old == source or old.startswith(f"{source}/")]:
                names[path + old[len(source) :]] = names.pop(old)
    return entries


def _changed_files(
    before: Mapping[str, FileId], now: Mapping[str, FileId], known: dict[FileId, int], new_number: Callable[[], int]
) -> list[DirectoryOperation]:
    came = {path: place for path, place in now.items() if before.get(path) != place}
    gone = {path: place for path, place in before.items() if now.get(path) != place}
    free: dict[FileId, list[str]] = {}
    for path, place in sorted(gone.items(), reverse=True):
        free.setdefault(place, []).append(path)
    renamed = {path: free[place].pop() for path, place in sorted(came.items()) if free.get(place)}
    entries: list[DirectoryOperation] = []
    left = dict(renamed)
    while left:
        target = next((path for path in left if path not in left.values()), "")
        if not target:
            raise UnclearNames(f"{' and '.join(sorted(left))} were exchanged")
        entries.append(FileRenamed(known[came[target]], left.pop(target), target))
    sources = set(renamed.values())
    entries += [
        FileUnlinked(known[place], path)
        for path, place in sorted(gone.items())
        if path not in sources and path not in renamed
    ]
    for path, place in sorted(came.items()):
        if path in renamed:
            continue
        if place in known:
            entries.append(FileLinked(known[place], path))
        else:
            known[place] = new_number()
            entries.append(FileCreated(known[place], path))
    return entries


def _require_leads_there(
    before: Names, now: Names, entries: list[DirectoryOperation], known: Mapping[FileId, int]
) -> None:
    names, directories = {path: known[place] for path, place in before.files.items()}, set(before.directories)
    for entry in entries:
        apply_operation(names, directories, entry)
    if names != {path: known[place] for path, place in now.files.items()} or directories != set(now.directories):
        raise UnclearNames("several names changed at once")
