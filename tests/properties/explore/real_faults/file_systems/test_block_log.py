"""Test the images that a block log permits, and the journal of a workload."""

import os
import random

import pytest

from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.journal import (
    DirectoryRemoved,
    DirectoryRenamed,
    FileLinked,
    FileMade,
    FileSynced,
    FileUnlinked,
    PageWritten,
    Resized,
)
from tornpage.properties.explore.real_faults.file_systems.block_device import BlockWrite, Flush, Logged, Mark
from tornpage.properties.explore.real_faults.file_systems.block_log import PATTERNS, copied, power_losses
from tornpage.properties.explore.real_faults.file_systems.history import START, history_of
from tornpage.properties.explore.real_faults.file_systems.outcomes import Outcome, outcome_of
from tornpage.properties.explore.real_faults.file_systems.workload import KINDS, Operation, draw_workload, operation_of

BYTES = 16 << 10
LOG: list[Logged] = [
    Mark(-1), BlockWrite(0, b"1" * 4096), Flush(), Mark(0), BlockWrite(0, b"2" * 4096), BlockWrite(8192, b"3" * 4096),
    Mark(1),
]  # fmt: skip


def images(*, whole: range = range(0)) -> list[tuple[int, str, bytes]]:
    base = os.memfd_create("base")
    os.ftruncate(base, BYTES)
    try:
        losses = power_losses(base, LOG, 400, random.Random(1), whole=whole)
        return [(loss.mark, loss.pattern, os.pread(loss.image, BYTES, 0)) for loss in losses]
    finally:
        os.close(base)


def test_flushed_writes_are_kept_and_others_may_be_lost_alone() -> None:
    found = images()
    assert {pattern for _, pattern, _ in found} == set(PATTERNS)
    after = [image for mark, _, image in found if mark == 0]
    assert all(set(image[:4096]) <= set(b"12") for image in after)
    assert {(image[:1], image[8192:8193]) for image in after if len(set(image[:4096])) == 1} >= {
        (b"1", b"\0"), (b"2", b"\0"), (b"1", b"3"), (b"2", b"3"),
    }  # fmt: skip
    before = [image for mark, _, image in found if mark == -1]
    assert any(not any(image) for image in before)


def test_only_a_torn_write_mixes_sectors_and_a_whole_one_never_does() -> None:
    assert {pattern for _, pattern, image in images() if len(set(image[:4096])) > 1} == {"torn"}
    assert all(len(set(image[:4096])) == 1 for _, _, image in images(whole=range(4096)))


def test_a_copy_has_the_same_bytes_and_holes() -> None:
    file = os.memfd_create("file")
    os.ftruncate(file, 1 << 20)
    os.pwrite(file, b"x" * 5000, 300_000)
    copy = copied(file)
    assert os.pread(copy, 1 << 20, 0) == os.pread(file, 1 << 20, 0)
    assert os.fstat(copy).st_blocks == os.fstat(file).st_blocks
    os.close(file)
    os.close(copy)


def test_workloads_have_every_operation_and_repeat_by_their_seed() -> None:
    drawn = [draw_workload(random.Random(seed), length=12) for seed in range(60)]
    assert {operation.kind for operations in drawn for operation in operations} == set(KINDS)
    renames = [operation for operations in drawn for operation in operations if operation.kind == "rename"]
    between = [o for o in renames if o.path.rpartition("/")[0] != o.target.rpartition("/")[0]]
    assert 0 < len(between) < len(renames)
    assert drawn == [draw_workload(random.Random(seed), length=12) for seed in range(60)]
    for operations in drawn:
        assert [operation_of(operation.document()) for operation in operations] == operations


def test_the_journal_of_a_workload_has_its_links_and_directories() -> None:
    operations = [
        Operation("link_synced", "/d/b", size_bytes=100, tag=1),
        Operation("link", "/a", "/f/a"),
        Operation("rename_directory", "/f", "/d/f"),
        Operation("unlink", "/d/f/a"),
        Operation("rmdir", "/d/f"),
    ]
    history = history_of(operations)
    assert history.journal == [
        FileMade(3),
        Resized(3, 100),
        PageWritten(3, 0, b"\2" * 100),
        FileSynced(3, succeeded=True),
        FileLinked(3, "/d/b"),
        FileLinked(0, "/f/a"),
        DirectoryRenamed("/f", "/d/f"),
        FileUnlinked(0, "/d/f/a"),
        DirectoryRemoved("/d/f"),
    ]
    assert history.positions(0) == [3, 5]
    assert history.positions(1) == [5]


def test_the_journal_of_a_workload_gives_its_files() -> None:
    operations = [
        Operation("write", "/b", position=4000, size_bytes=8192, tag=1),
        Operation("truncate", "/b", size_bytes=4100),
        Operation("rename", "/b", "/a"),
        Operation("fsync", "/a"),
    ]
    history = history_of(operations)
    state = DiskState(START, disk="kill")
    state.apply_all(history.journal)
    names, _ = state.visible()
    assert bytes(state.inodes[names["/a"]].latest()) == b"\x01" * 4000 + b"\x02" * 100
    assert history.positions(-1) == [0]
    assert history.positions(6) == [history.ends[2], history.ends[3]]  # a sync that has not returned
    assert history.positions(7) == [history.ends[3]]
    assert history.positions(0) == [history.ends[0]]


@pytest.mark.parametrize("found", [((3, START), (3, START), (4, "it cannot be mounted"))])
def test_an_outcome_survives_json(found: tuple[tuple[int, object], ...]) -> None:
    outcome = Outcome(7, (Operation("create", "/c"),), found)  # type: ignore[arg-type]
    again = outcome_of(outcome.document())
    assert again.found == ((3, START), (4, "it cannot be mounted"))
    assert (again.seed, again.operations) == (outcome.seed, outcome.operations)
