"""Test on real file systems what a sync of some bytes makes durable.

docs/disks/measured.md has the results. The power loss takes every write that no flush covers when the sync returns.
"""

import json
from pathlib import Path

import pytest

from tests.properties.explore.real_faults.file_systems.test_size_changes import KINDS, WRITE_BACK, tree_left
from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.file_systems.file_system import FILE_SYSTEMS, Kind, why_not
from tornpage.properties.explore.real_faults.file_systems.record import prepare
from tornpage.properties.explore.real_faults.file_systems.workload import BASE, Operation
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts
from tornpage.properties.scratch import scratch_directory

A, PAGE, TAG = "/a", 4096, 4
KNOWN = (Operation("write", A, size_bytes=50, tag=1), Operation("fsync", A), WRITE_BACK)


def write(position: int, size_bytes: int = 100, kind: str = "write", path: str = A) -> Operation:
    return Operation(kind, path, position=position, size_bytes=size_bytes, tag=TAG)


def msync(position: int) -> Operation:
    return Operation("msync_range", A, position=position, size_bytes=100)


FIRST, THIRD = write(PAGE - 200), write(2 * PAGE)
THIRD_SYNCED, FIRST_SYNCED = write(2 * PAGE, kind="write_synced"), write(PAGE - 200, kind="write_synced")
LONG = 5 * PAGE
CASES: dict[str, tuple[Operation, ...]] = {
    "write page 0; O_DSYNC write of page 2": (FIRST, THIRD_SYNCED),
    "write page 0; write page 2; msync of page 2": (FIRST, THIRD, msync(2 * PAGE)),
    "write page 0; write page 2; fdatasync": (FIRST, THIRD, Operation("fdatasync", A)),
    "write at the end; O_DSYNC write of page 0": (write(LONG - 100), FIRST_SYNCED),
    "ftruncate to a larger size; O_DSYNC write of page 0": (Operation("truncate", A, size_bytes=LONG), FIRST_SYNCED),
    "fallocate; O_DSYNC write of page 0": (Operation("allocate", A, size_bytes=LONG), FIRST_SYNCED),
    "ftruncate to a smaller size; O_DSYNC write of page 0": (
        Operation("truncate", A, size_bytes=PAGE), FIRST_SYNCED),
    "write page 3; O_DSYNC write at the end": (write(3 * PAGE), write(LONG - 100, kind="write_synced")),
    "create n; write its page 1; O_DSYNC write of its page 0": (
        Operation("create", "/n"), write(PAGE, path="/n"), write(0, kind="write_synced", path="/n")),
}  # fmt: skip
OF_EXT4_AND_XFS = (
    "9000 bytes, new in page 2",
    "9000 bytes, new in page 2",
    "9000 bytes, new in page 0, 2",
    "9000 bytes, new in page 0",
    "20480 bytes, new in page 0",
    "20480 bytes, new in page 0",
    "4096 bytes, new in page 0",
    "20480 bytes, new in page 4",
    "4096 bytes, new in page 0",
)
OF_BTRFS = (
    "9000 bytes, new in page 0, 2",
    "9000 bytes, new in page 0, 2",
    "9000 bytes, new in page 0, 2",
    "20480 bytes, new in page 0, 4",
    "20480 bytes, new in page 0",
    "20480 bytes, new in page 0",
    "4096 bytes, new in page 0",
    "20480 bytes, new in page 3, 4",
    "4196 bytes, new in page 0, 1",
)
EXPECTED: dict[Kind, tuple[str, ...]] = {"ext4": OF_EXT4_AND_XFS, "xfs": OF_EXT4_AND_XFS, "btrfs": OF_BTRFS}


def said(tree: Image, path: str) -> str:
    """Return the size of a file and its pages with new bytes."""
    if path not in tree.files:
        return "no file"
    content = bytes(tree.files[path])
    pages = [str(n) for n in range(-(-len(content) // PAGE)) if bytes([1 + TAG]) in content[n * PAGE : (n + 1) * PAGE]]
    return f"{len(content)} bytes, new in page {', '.join(pages) or 'none'}"


def run_all(kind: Kind, directory: str, out: Path) -> None:
    enter_private_mounts(directory)
    prepared = FILE_SYSTEMS[kind].formatted()
    prepare(kind, prepared, directory)
    found = {
        name: said(tree_left(kind, prepared, directory, [*KNOWN, *operations]), operations[-1].path)
        for name, operations in CASES.items()
    }
    out.write_text(json.dumps(found))


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_sync_of_some_bytes_makes_durable(kind: Kind, tmp_path: Path) -> None:
    if (reason := why_not(kind)) is not None:
        pytest.skip(reason)
    with scratch_directory("tornpage-disk-") as base:
        try:
            in_child(Page(), lambda _: run_all(kind, base, tmp_path / "found"), hang_seconds=0)
        except Unavailable as missing:
            pytest.skip(str(missing))
    assert BASE[A] == 9000
    assert json.loads((tmp_path / "found").read_text()) == dict(zip(CASES, EXPECTED[kind], strict=True))
