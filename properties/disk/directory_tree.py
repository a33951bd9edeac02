"""Follow directories through renames and removals, and apply surviving operations.

A path names different directories at different times, so an operation belongs to a directory and not to a path. A file
created in `/tmp` before `/tmp` was renamed to `/data` is in `/tmp` if the rename is lost. A sync of `/data` covers it.

A disk without renamed or removed directories does not need this. A path there always names the same directory.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileUnlinked,
)

__all__ = ["DirectoryOperation", "DirectoryTree", "directories_of", "is_move"]

DirectoryOperation = (
    FileCreated | FileLinked | FileRenamed | FileUnlinked | DirectoryMade | DirectoryRenamed | DirectoryRemoved
)

_Slot = tuple[str, str]
"""The directory that an entry is in, by its first path, and the name of the entry."""
_Slots = dict[_Slot, tuple[int | str, DirectoryOperation | None]]


def directories_of(operation: DirectoryOperation) -> tuple[str, ...]:
    """Return the directories whose syncs cover an operation.

    A rename between two directories is one operation. A sync of either makes it durable.
    """
    if isinstance(operation, FileRenamed | DirectoryRenamed):
        return tuple(dict.fromkeys((_above(operation.target), _above(operation.source))))
    return (_above(operation.path),)


def is_move(operation: DirectoryOperation) -> bool:
    """Return whether an operation changes a directory's path, or lies in two directories."""
    return isinstance(operation, DirectoryRenamed | DirectoryRemoved) or (
        isinstance(operation, FileRenamed) and len(directories_of(operation)) > 1
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operation, the directories that it was in, and its directory or inode."""

    operation: DirectoryOperation
    directories: tuple[str, ...]
    subject: int | str
    gone: _Slot | None
    new: _Slot | None


class DirectoryTree:
    """Hold the directories and names of a disk, and the operations noted since, in order."""

    def __init__(self, directories: Iterable[str], names: Mapping[str, int]) -> None:
        self._ids = {path: path for path in directories}
        self._used = set(self._ids)
        self._base = dict(self._ids)
        self._names = dict(names)
        self._placed: dict[int, _Placed] = {}

    def at(self, path: str) -> str:
        """Return the directory that a path names now."""
        return self._ids.get(path, path)

    def places(self, operation: DirectoryOperation) -> tuple[str, ...]:
        """Return the directories whose syncs cover an operation that was noted."""
        return self._placed[id(operation)].directories

    def is_covered(self, operation: DirectoryOperation, directory: str, *, its_own: bool) -> bool:
        """Return whether a sync of a directory covers an operation.

        With `its_own` it also covers the creation and the renames of the directory itself.
        """
        placed = self._placed[id(operation)]
        is_own = its_own and isinstance(operation, DirectoryMade | DirectoryRenamed) and placed.subject == directory
        return directory in placed.directories or is_own

    def note(self, operation: DirectoryOperation) -> None:
        """Add an operation. The caller keeps the object, which identifies the operation."""
        subject: int | str
        gone = new = None
        directories = tuple(self.at(path) for path in directories_of(operation))
        match operation:
            case FileCreated(inode, path) | FileLinked(inode, path):
                subject, new = inode, self._slot(path)
            case FileUnlinked(inode, path):
                subject, gone = inode, self._slot(path)
            case FileRenamed(inode, source, target):
                subject, gone, new = inode, self._slot(source), self._slot(target)
            case DirectoryMade(path):
                subject = path if path not in self._used else f"{path}\0{len(self._used)}"
                new = self._slot(path)
                self._used.add(subject)
                self._ids[path] = subject
            case DirectoryRemoved(path):
                subject, gone = self.at(path), self._slot(path)
                self._ids.pop(path, None)
            case DirectoryRenamed(source, target):
                subject, gone, new = self.at(source), self._slot(source), self._slot(target)
                self._move(source, target)
        self._placed[id(operation)] = _Placed(operation, directories, subject, gone, new)

    def _slot(self, path: str) -> _Slot:
        return self.at(_above(path)), path.rpartition("/")[2]

    def _move(self, source: str, target: str) -> None:
        inside = {path: there for path, there in self._ids.items() if path == source or path.startswith(f"{source}/")}
        for path in inside:
            del self._ids[path]
        self._ids.update({target + path[len(source) :]: there for path, there in inside.items()})

    def needed(
        self, operations: Sequence[DirectoryOperation], covered: Collection[int], durable: Collection[int]
    ) -> list[int]:
        """Return the covered operations and the earlier ones that they depend on, in order.

        `covered` are numbers of `operations`, and `durable` the `id` of each committed operation. An operation depends
        on the earlier ones of its file or directory, on those of the file or directory that durably has its name, and
        on the creation of the directory that it is in. A removed directory was empty, so its removal depends on the
        operations that emptied it. A removal of a name does not depend on the other links of the file.
        """
        slots = self._slots(durable)
        found = set(covered)
        subjects, above, emptied = set[int | str](), set[str](), set[str]()
        removed: dict[int | str, set[_Slot]] = {}
        for number in range(max(found, default=-1), -1, -1):
            operation = operations[number]
            placed = self._placed[id(operation)]
            is_above = isinstance(operation, DirectoryMade) and placed.subject in above
            empties = placed.gone is not None and placed.gone[0] in emptied
            is_same = placed.subject in subjects
            if not is_same and placed.subject in removed:
                is_same = not isinstance(operation, FileLinked) or placed.new in removed[placed.subject]
            if number not in found and not is_same and not is_above and not empties:
                continue
            found.add(number)
            above.update(placed.directories)
            holders = {slots[slot][0] for slot in (placed.gone, placed.new) if slot in slots}
            subjects.update(holders - {placed.subject})
            if isinstance(operation, FileUnlinked) and placed.gone is not None:
                removed.setdefault(placed.subject, set()).add(placed.gone)
            else:
                subjects.add(placed.subject)
            if isinstance(operation, DirectoryRemoved) and isinstance(placed.subject, str):
                emptied.add(placed.subject)
        return sorted(found)

    def below(self, operations: Sequence[DirectoryOperation], directory: str) -> list[int]:
        """Return the numbers of the operations on a directory, in it and in new ones below it.

        A directory is new if its creation is one of the operations.
        """
        made = {self._placed[id(o)].subject for o in operations if isinstance(o, DirectoryMade)}
        found = {n for n, operation in enumerate(operations) if self._placed[id(operation)].subject == directory}
        reached, is_growing = {directory}, True
        while is_growing:
            is_growing = False
            for number, operation in enumerate(operations):
                placed = self._placed[id(operation)]
                if number not in found and not reached.isdisjoint(placed.directories):
                    found.add(number)
                    is_growing = True
                    if isinstance(placed.subject, str) and placed.subject in made:
                        reached.add(placed.subject)
        return sorted(found)

    def source(self, operation: DirectoryOperation) -> str | None:
        """Return the directory that an operation removed an entry from, or None."""
        gone = self._placed[id(operation)].gone
        return None if gone is None else gone[0]

    def names(
        self, survived: Collection[int], kept: Collection[int] = ()
    ) -> tuple[dict[str, tuple[int, DirectoryOperation | None]], dict[str, str]]:
        """Return what is reached if these operations survived: names and directories.

        Operations are given by their `id`. Those in `kept` keep the entry that they remove. A name comes with its
        inode and the operation that gave the name, or None.
        """
        slots = self._slots(survived, kept)
        inside: dict[str, list[tuple[str, int | str, DirectoryOperation | None]]] = {}
        for (directory, name), (subject, operation) in slots.items():
            inside.setdefault(directory, []).append((name, subject, operation))
        names: dict[str, tuple[int, DirectoryOperation | None]] = {}
        reached, left = {"/": "/"}, ["/"]
        while left:
            above = left.pop()
            for name, subject, operation in inside.get(reached[above], ()):
                path = f"{above.rstrip('/')}/{name}"
                if isinstance(subject, int):
                    names[path] = (subject, operation)
                else:
                    reached[path] = subject
                    left.append(path)
        return names, reached

    def _slots(self, survived: Collection[int], kept: Collection[int] = ()) -> _Slots:
        """Return the entries of all directories if these operations survived."""
        slots: _Slots = {}
        for path, directory in self._base.items():
            if path != "/":
                slots[self._base.get(_above(path), _above(path)), path.rpartition("/")[2]] = (directory, None)
        for path, inode in self._names.items():
            slots[self._base.get(_above(path), _above(path)), path.rpartition("/")[2]] = (inode, None)
        for number, placed in self._placed.items():
            if number in survived:
                _apply(slots, placed, removes=number not in kept)
        return slots


def _apply(slots: _Slots, placed: _Placed, *, removes: bool) -> None:
    if removes and placed.gone is not None and slots.get(placed.gone, (None,))[0] == placed.subject:
        del slots[placed.gone]
    if placed.new is not None:
        if isinstance(placed.subject, str):  # a directory has one name
            for slot in [slot for slot, (subject, _) in slots.items() if subject == placed.subject]:
                del slots[slot]
        slots[placed.new] = (placed.subject, placed.operation)


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"
