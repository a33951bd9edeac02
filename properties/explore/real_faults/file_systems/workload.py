"""Draw small workloads: lists of file operations with syncs in between.

A workload starts with the files and directories of `BASE`, which are durable. Two operations do nothing that a program
could rely on, as a kernel may do them at any time: `background` writes everything back, and `write_range` writes a part
of a file back.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["BASE", "BASE_DIRECTORIES", "KINDS", "Operation", "content", "draw_workload", "operation_of"]

BASE_DIRECTORIES = ("/d", "/f")
BASE: Mapping[str, int] = {"/a": 9000, "/b": 4096, "/d/a": 6000}
"""Size of each file at the start. Its bytes are `content(0, ...)`."""

NAMES = ("a", "b", "c", "e")
DIRECTORY_NAMES = ("d", "f", "m", "n")
"""No file and directory have one name, so that a path has the same kind in each crash state."""
DIRECTORIES_MAX = 5
PAGE_BYTES = 4096
FILE_BYTES_MAX = 5 * PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a file or directory.

    `target` is the new name of a rename or link. A write puts `size_bytes` bytes of `content(tag, ...)` at `position`.
    For `truncate`, `size_bytes` is the new size. `allocate` reserves the space up to `size_bytes` (fallocate), and a
    smaller file grows. `write_synced` writes through a descriptor with `O_DSYNC`, and `msync_range` syncs the pages of
    a map with these bytes. `link_nameless` opens a file without a name (O_TMPFILE), writes `size_bytes` bytes and links
    it; `link_synced` syncs it before the link.
    """

    kind: str
    path: str = ""
    target: str = ""
    position: int = 0
    size_bytes: int = 0
    tag: int = 0

    def document(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {name: value for name, value in asdict(self).items() if value}


def operation_of(document: Mapping[str, Any]) -> Operation:
    """Return the operation of a document."""
    return Operation(**document)


def content(tag: int, position: int, size_bytes: int) -> bytes:
    """Return the bytes that a write puts at a position.

    Writes of different tags differ in each byte.
    """
    return bytes([1 + tag]) * size_bytes


class _Tree:
    """What a workload sees: the file of each name, the size of each file, and the directories."""

    def __init__(self) -> None:
        self.names = {path: number for number, path in enumerate(BASE)}
        self.sizes = dict(enumerate(BASE.values()))
        self.directories = ["/", *BASE_DIRECTORIES]

    def free_name(self, rng: random.Random) -> str:
        above = rng.choice(self.directories).rstrip("/")
        free = [path for name in NAMES if (path := f"{above}/{name}") not in self.names]
        return rng.choice(free) if free else ""

    def free_directory(self, rng: random.Random, above: Sequence[str]) -> str:
        """Return a free path for a directory in one of these."""
        inside = rng.choice(above).rstrip("/")
        free = [path for name in DIRECTORY_NAMES if (path := f"{inside}/{name}") not in self.directories]
        return rng.choice(free) if free else ""

    def add(self, path: str, size_bytes: int) -> None:
        """Add a new file."""
        self.names[path] = number = len(self.sizes)
        self.sizes[number] = size_bytes

    def size(self, path: str) -> int:
        return self.sizes[self.names[path]]

    def resize(self, path: str, size_bytes: int) -> None:
        self.sizes[self.names[path]] = size_bytes

    def filled(self) -> list[str]:
        return sorted(path for path, number in self.names.items() if self.sizes[number])

    def is_empty(self, directory: str) -> bool:
        return not any(path.startswith(f"{directory}/") for path in (*self.names, *self.directories))


Draw = Callable[[_Tree, random.Random, int], Operation | None]


def _create(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not (path := tree.free_name(rng)):
        return None
    tree.add(path, 0)
    return Operation("create", path)


def _link(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.names or not (target := tree.free_name(rng)):
        return None
    path = rng.choice(sorted(tree.names))
    tree.names[target] = tree.names[path]
    return Operation("link", path, target)


def _link_nameless(kind: str) -> Draw:
    def draw(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
        if not (path := tree.free_name(rng)):
            return None
        size_bytes = rng.choice((0, 100, PAGE_BYTES, 6000))
        tree.add(path, size_bytes)
        return Operation(kind, path, size_bytes=size_bytes, tag=tag if size_bytes else 0)

    return draw


def _write(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    size = tree.size(path)
    position = rng.choice((0, size, size, rng.randrange(size + 1), size // PAGE_BYTES * PAGE_BYTES))
    length = rng.choice((100, 700, PAGE_BYTES, 2 * PAGE_BYTES, rng.randrange(1, 3 * PAGE_BYTES)))
    length = min(length, FILE_BYTES_MAX - position)
    if length <= 0:
        return None
    tree.resize(path, max(size, position + length))
    return Operation("write", path, position=position, size_bytes=length, tag=tag)


def _write_synced(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
    operation = _write(tree, rng, tag)
    return None if operation is None else replace(operation, kind="write_synced")


def _msync_range(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not (filled := tree.filled()):
        return None
    path = rng.choice(filled)
    position = rng.randrange(tree.size(path)) // PAGE_BYTES * PAGE_BYTES
    size_bytes = min(rng.choice((PAGE_BYTES, 2 * PAGE_BYTES)), tree.size(path) - position)
    return Operation("msync_range", path, position=position, size_bytes=size_bytes)


def _map(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
    if not (filled := tree.filled()):
        return None
    path = rng.choice(filled)
    position = rng.randrange(tree.size(path))
    length = min(rng.choice((300, PAGE_BYTES, 2 * PAGE_BYTES)), tree.size(path) - position)
    return Operation("map", path, position=position, size_bytes=length, tag=tag)


def _truncate(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    size = rng.choice((0, 100, PAGE_BYTES, rng.randrange(FILE_BYTES_MAX)))
    tree.resize(path, size)
    return Operation("truncate", path, size_bytes=size)


def _allocate(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    size = rng.choice((PAGE_BYTES, 4 * PAGE_BYTES, rng.randrange(1, FILE_BYTES_MAX)))
    tree.resize(path, max(size, tree.size(path)))
    return Operation("allocate", path, size_bytes=size)


def _rename(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    """Rename within a directory, onto another file half of the time if there is one."""
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    return _renamed(tree, rng, path, path.rpartition("/")[0])


def _move(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    """Rename a file to another directory."""
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    above = path.rpartition("/")[0]
    others = [other for directory in tree.directories if (other := directory.rstrip("/")) != above]
    return _renamed(tree, rng, path, rng.choice(others)) if others else None


def _renamed(tree: _Tree, rng: random.Random, path: str, above: str) -> Operation | None:
    """Rename into a directory. A rename onto a name of the same file would do nothing."""
    number = tree.names[path]
    targets = [target for name in NAMES if tree.names.get(target := f"{above}/{name}") != number]
    taken = [target for target in targets if target in tree.names]
    if not targets:
        return None
    target = rng.choice(taken if taken and rng.random() < 0.5 else targets)
    tree.names[target] = tree.names.pop(path)
    return Operation("rename", path, target)


def _unlink(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.names:
        return None
    path = rng.choice(sorted(tree.names))
    del tree.names[path]
    return Operation("unlink", path)


def _make_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if len(tree.directories) == DIRECTORIES_MAX or not (path := tree.free_directory(rng, tree.directories)):
        return None
    tree.directories.append(path)
    return Operation("mkdir", path)


def _remove_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    empty = [path for path in tree.directories[1:] if tree.is_empty(path)]
    if not empty:
        return None
    path = rng.choice(empty)
    tree.directories.remove(path)
    return Operation("rmdir", path)


def _rename_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if len(tree.directories) == 1:
        return None
    path = rng.choice(tree.directories[1:])
    outside = [above for above in tree.directories if above != path and not above.startswith(f"{path}/")]
    if not (target := tree.free_directory(rng, outside)):
        return None

    def moved(held: str) -> str:
        return target + held[len(path) :] if held == path or held.startswith(f"{path}/") else held

    tree.directories = [moved(held) for held in tree.directories]
    tree.names = {moved(held): number for held, number in tree.names.items()}
    return Operation("rename_directory", path, target)


def _of_file(kind: str) -> Draw:
    def draw(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
        return Operation(kind, rng.choice(sorted(tree.names))) if tree.names else None

    return draw


def _sync_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    return Operation("fsync_directory", rng.choice(tree.directories))


def _write_range(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not (filled := tree.filled()):
        return None
    path = rng.choice(filled)
    position = rng.randrange(tree.size(path)) // PAGE_BYTES * PAGE_BYTES
    return Operation("write_range", path, position=position, size_bytes=rng.choice((PAGE_BYTES, FILE_BYTES_MAX)))


def _background(_: _Tree, __: random.Random, ___: int) -> Operation | None:
    return Operation("background")


_DRAWN: dict[str, tuple[int, Draw]] = {
    "create": (14, _create),
    "write": (24, _write),
    "map": (6, _map),
    "allocate": (4, _allocate),
    "truncate": (9, _truncate),
    "rename": (9, _rename),
    "move": (5, _move),
    "link": (6, _link),
    "link_nameless": (2, _link_nameless("link_nameless")),
    "link_synced": (2, _link_nameless("link_synced")),
    "unlink": (6, _unlink),
    "mkdir": (4, _make_directory),
    "rmdir": (4, _remove_directory),
    "rename_directory": (6, _rename_directory),
    "fsync": (12, _of_file("fsync")),
    "fdatasync": (5, _of_file("fdatasync")),
    "msync": (4, _of_file("msync")),
    "fsync_directory": (9, _sync_directory),
    "write_synced": (6, _write_synced),
    "msync_range": (4, _msync_range),
    "write_range": (5, _write_range),
    "background": (6, _background),
}
KINDS = tuple(kind for kind in _DRAWN if kind != "move")
"""The kinds of operations. A move is a rename to another directory."""


def draw_workload(rng: random.Random, *, length: int) -> list[Operation]:
    """Return a workload of `length` operations."""
    tree, operations, tag = _Tree(), list[Operation](), 0
    weights = [weight for weight, _ in _DRAWN.values()]
    recent, touched = list[str](), list[str]()
    while len(operations) < length:
        kind = rng.choices(tuple(_DRAWN), weights)[0]
        operation = _DRAWN[kind][1](tree, rng, tag + 1)
        if operation is None:
            continue
        if operation.kind in ("fsync", "fdatasync", "msync") and recent and rng.random() < 0.7:
            operation = Operation(operation.kind, recent[-1]) if recent[-1] in tree.names else operation
        if operation.kind == "fsync_directory" and rng.random() < 0.7:
            known = [path for path in touched if path in tree.directories]
            operation = Operation(operation.kind, rng.choice(known)) if known else operation
        if operation.kind == "msync" and not tree.size(operation.path):
            continue
        if operation.kind in _OF_DIRECTORIES:
            touched = [operation.target or operation.path, *(_above(p) for p in _paths(operation))]
        elif operation.path and operation.kind != "fsync_directory":
            recent.append(operation.target or operation.path)
            if operation.kind in _OF_NAMES:
                touched = [_above(path) for path in _paths(operation)]
        tag += operation.kind in ("write", "write_synced", "map", "link_nameless", "link_synced")
        operations.append(operation)
    return operations


_OF_DIRECTORIES = ("mkdir", "rmdir", "rename_directory")
_OF_NAMES = ("create", "rename", "link", "link_nameless", "link_synced", "unlink")


def _paths(operation: Operation) -> list[str]:
    return [path for path in (operation.path, operation.target) if path]


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"
