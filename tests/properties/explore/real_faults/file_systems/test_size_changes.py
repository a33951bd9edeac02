"""Test on real file systems which syncs of a file commit an unrelated directory operation.

docs/disks/measured.md has the rules. The power loss takes every write that no flush covers when the sync returns.
"""

import json
import os
from pathlib import Path

import pytest

from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.file_systems.block_device import BlockWrite, Flush, Logged, Mark
from tornpage.properties.explore.real_faults.file_systems.block_log import copied
from tornpage.properties.explore.real_faults.file_systems.file_system import FILE_SYSTEMS, Kind, why_not
from tornpage.properties.explore.real_faults.file_systems.record import prepare, recorded
from tornpage.properties.explore.real_faults.file_systems.tree import read_image
from tornpage.properties.explore.real_faults.file_systems.workload import Operation
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts
from tornpage.properties.scratch import scratch_directory

KINDS: tuple[Kind, ...] = ("ext4", "xfs", "btrfs")
B, SIZE = "/b", 4096
WRITE_BACK = Operation("background")
KNOWN = (Operation("write", B, size_bytes=50, tag=1), Operation("fsync", B), WRITE_BACK)
"""After these the inode is in memory, and it has not changed since the last commit."""
UNRELATED = (Operation("unlink", "/d/a"), Operation("rename", "/d/a", "/f/c"), Operation("mkdir", "/d/m"))
GROWTH = Operation("write", B, position=SIZE, size_bytes=100, tag=2)
INSIDE = Operation("write", B, position=100, size_bytes=100, tag=2)
HOLE = Operation("write", B, position=3 * SIZE, size_bytes=100, tag=2)


def cut(size_bytes: int) -> Operation:
    return Operation("truncate", B, size_bytes=size_bytes)


def reserve(size_bytes: int) -> Operation:
    return Operation("allocate", B, size_bytes=size_bytes)


Case = tuple[str, tuple[Operation, ...], tuple[Operation, ...], str, tuple[Kind, ...]]
CASES: tuple[Case, ...] = (
    ("a growth by a write", (), (GROWTH,), "fdatasync msync fsync", ("ext4", "xfs")),
    ("a growth by ftruncate", (), (cut(9000),), "fdatasync msync fsync", ("ext4", "xfs")),
    ("a growth by fallocate", (), (reserve(9000),), "fdatasync fsync", ("ext4", "xfs")),
    ("a cut", (), (cut(100),), "fdatasync msync fsync", ("ext4", "xfs")),
    ("a cut and a growth to the old size", (), (cut(100), reserve(SIZE)), "fdatasync fsync", ("ext4", "xfs")),
    ("a growth that is cut again", (), (GROWTH, cut(SIZE)), "fsync", ("ext4", "xfs")),
    ("a growth that is cut again, the data", (), (GROWTH, cut(SIZE)), "fdatasync msync", ("xfs",)),
    ("a write inside the file", (), (INSIDE,), "fdatasync msync", ()),
    ("no change", (), (), "fdatasync fsync", ()),
    ("an earlier growth", (GROWTH, WRITE_BACK), (), "fdatasync fsync", ()),
    ("first blocks of a hole", (cut(5 * SIZE), WRITE_BACK), (HOLE,), "fdatasync fsync", ("ext4", "xfs")),
    ("first blocks of a reserved range", (reserve(5 * SIZE), WRITE_BACK), (HOLE,), "fdatasync fsync", ("ext4", "xfs")),
    ("the same blocks again", (reserve(5 * SIZE), HOLE, WRITE_BACK), (HOLE,), "fdatasync", ()),
)
"""What happened before the unrelated operation and after it, the syncs, and where they commit that operation."""


def flushed(log: list[Logged]) -> list[BlockWrite]:
    """Return the writes that a flush covers before the last mark."""
    end = max(number for number, entry in enumerate(log) if isinstance(entry, Mark))
    flushes = [number for number, entry in enumerate(log[:end]) if isinstance(entry, Flush)]
    return [entry for entry in log[: max(flushes, default=0)] if isinstance(entry, BlockWrite)]


def tree_left(kind: Kind, prepared: int, directory: str, operations: list[Operation]) -> Image:
    """Return the tree after a workload and a power loss without what no flush covers."""
    image, medium = copied(prepared), copied(prepared)
    try:
        for write in flushed(recorded(kind, image, directory, operations)):
            os.pwrite(medium, write.data, write.position)
        tree = read_image(kind, medium, directory)
    finally:
        os.close(image)
        os.close(medium)
    assert not isinstance(tree, str), tree
    return tree


def committed(kind: Kind, prepared: int, directory: str, operations: list[Operation], unrelated: Operation) -> bool:
    tree = tree_left(kind, prepared, directory, operations)
    there = {*tree.files, *tree.directories}
    return unrelated.path not in there if unrelated.kind == "unlink" else (unrelated.target or unrelated.path) in there


def run_all(kind: Kind, directory: str, out: Path) -> None:
    enter_private_mounts(directory)
    prepared, found = FILE_SYSTEMS[kind].formatted(), list[tuple[str, str, bool]]()
    prepare(kind, prepared, directory)
    for name, before, after, syncs, _ in CASES:
        for number, sync in enumerate(syncs.split()):
            unrelated = UNRELATED[number]
            operations = [*KNOWN, *before, unrelated, *after, Operation(sync, B)]
            found.append((name, sync, committed(kind, prepared, directory, operations, unrelated)))
    out.write_text(json.dumps(found))


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_sync_commits_unrelated_operations_where_the_size_has_changed(kind: Kind, tmp_path: Path) -> None:
    if (reason := why_not(kind)) is not None:
        pytest.skip(reason)
    with scratch_directory("tornpage-disk-") as base:
        try:
            in_child(Page(), lambda _: run_all(kind, base, tmp_path / "found"), hang_seconds=0)
        except Unavailable as missing:
            pytest.skip(str(missing))
    expected = [[name, sync, kind in kinds] for name, _, _, syncs, kinds in CASES for sync in syncs.split()]
    assert json.loads((tmp_path / "found").read_text()) == expected
