"""Draw small workloads: lists of file operations with syncs in between.

A workload starts with the files and directories of `BASE`, which are durable. Two operations do nothing that a program
could rely on, as a kernel may do them at any time: `background` writes everything back, and `write_range` writes a part
of a file back.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["BASE", "BASE_DIRECTORIES", "KINDS", "Operation", "content", "draw_workload", "operation_of"]

BASE_DIRECTORIES = ("/d",)
BASE: Mapping[str, int] = {"/a": 9000, "/b": 4096, "/d/a": 6000}
"""Size of each file at the start. Its bytes are `content(0, ...)`."""

NAMES = ("a", "b", "c", "e")
DIRECTORIES_MAX = 3
PAGE_BYTES = 4096
FILE_BYTES_MAX = 5 * PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a file or directory.

    `target` is the new name of a rename. A write puts `size_bytes` bytes of `content(tag, ...)` at `position`. For
    `truncate`, `size_bytes` is the new size.
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
    """What a workload sees: the size of each file, and the directories."""

    def __init__(self) -> None:
        self.files = dict(BASE)
        self.directories = ["/", *BASE_DIRECTORIES]

    def free_name(self, rng: random.Random) -> str:
        above = rng.choice(self.directories).rstrip("/")
        free = [path for name in NAMES if (path := f"{above}/{name}") not in self.files]
        return rng.choice(free) if free else ""


Draw = Callable[[_Tree, random.Random, int], Operation | None]


def _create(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not (path := tree.free_name(rng)):
        return None
    tree.files[path] = 0
    return Operation("create", path)


def _write(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
    if not tree.files:
        return None
    path = rng.choice(sorted(tree.files))
    size = tree.files[path]
    position = rng.choice((0, size, size, rng.randrange(size + 1), size // PAGE_BYTES * PAGE_BYTES))
    length = rng.choice((100, 700, PAGE_BYTES, 2 * PAGE_BYTES, rng.randrange(1, 3 * PAGE_BYTES)))
    length = min(length, FILE_BYTES_MAX - position)
    if length <= 0:
        return None
    tree.files[path] = max(size, position + length)
    return Operation("write", path, position=position, size_bytes=length, tag=tag)


def _map(tree: _Tree, rng: random.Random, tag: int) -> Operation | None:
    filled = sorted(path for path, size in tree.files.items() if size)
    if not filled:
        return None
    path = rng.choice(filled)
    position = rng.randrange(tree.files[path])
    length = min(rng.choice((300, PAGE_BYTES, 2 * PAGE_BYTES)), tree.files[path] - position)
    return Operation("map", path, position=position, size_bytes=length, tag=tag)


def _truncate(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.files:
        return None
    path = rng.choice(sorted(tree.files))
    size = rng.choice((0, 100, PAGE_BYTES, rng.randrange(FILE_BYTES_MAX)))
    tree.files[path] = size
    return Operation("truncate", path, size_bytes=size)


def _rename(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    """Rename within a directory, onto another file half of the time if there is one."""
    if not tree.files:
        return None
    path = rng.choice(sorted(tree.files))
    above = path.rpartition("/")[0]
    targets = [target for name in NAMES if (target := f"{above}/{name}") != path]
    taken = [target for target in targets if target in tree.files]
    target = rng.choice(taken if taken and rng.random() < 0.5 else targets)
    tree.files[target] = tree.files.pop(path)
    return Operation("rename", path, target)


def _unlink(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if not tree.files:
        return None
    path = rng.choice(sorted(tree.files))
    del tree.files[path]
    return Operation("unlink", path)


def _make_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    if len(tree.directories) == DIRECTORIES_MAX:
        return None
    path = f"{rng.choice(tree.directories).rstrip('/')}/n{len(tree.directories)}"
    tree.directories.append(path)
    return Operation("mkdir", path)


def _of_file(kind: str) -> Draw:
    def draw(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
        return Operation(kind, rng.choice(sorted(tree.files))) if tree.files else None

    return draw


def _sync_directory(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    return Operation("fsync_directory", rng.choice(tree.directories))


def _write_range(tree: _Tree, rng: random.Random, _: int) -> Operation | None:
    filled = sorted(path for path, size in tree.files.items() if size)
    if not filled:
        return None
    path = rng.choice(filled)
    position = rng.randrange(tree.files[path]) // PAGE_BYTES * PAGE_BYTES
    return Operation("write_range", path, position=position, size_bytes=rng.choice((PAGE_BYTES, FILE_BYTES_MAX)))


def _background(_: _Tree, __: random.Random, ___: int) -> Operation | None:
    return Operation("background")


_DRAWN: dict[str, tuple[int, Draw]] = {
    "create": (14, _create),
    "write": (24, _write),
    "map": (6, _map),
    "truncate": (9, _truncate),
    "rename": (11, _rename),
    "unlink": (6, _unlink),
    "mkdir": (4, _make_directory),
    "fsync": (10, _of_file("fsync")),
    "fdatasync": (5, _of_file("fdatasync")),
    "msync": (4, _of_file("msync")),
    "fsync_directory": (5, _sync_directory),
    "write_range": (5, _write_range),
    "background": (6, _background),
}
KINDS = tuple(_DRAWN)


def draw_workload(rng: random.Random, *, length: int) -> list[Operation]:
    """Return a workload of `length` operations."""
    tree, operations, tag = _Tree(), list[Operation](), 0
    weights = [weight for weight, _ in _DRAWN.values()]
    recent: list[str] = []
    while len(operations) < length:
        kind = rng.choices(KINDS, weights)[0]
        operation = _DRAWN[kind][1](tree, rng, tag + 1)
        if operation is None:
            continue
        if operation.kind in ("fsync", "fdatasync", "msync") and recent and rng.random() < 0.7:
            operation = Operation(operation.kind, recent[-1]) if recent[-1] in tree.files else operation
        if operation.kind == "msync" and not tree.files[operation.path]:
            continue
        if operation.path and operation.kind not in ("fsync_directory", "mkdir"):
            recent.append(operation.target or operation.path)
        tag += operation.kind in ("write", "map")
        operations.append(operation)
    return operations
