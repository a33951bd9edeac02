"""Test each rule of the measured disks by the smallest workload that showed it.

docs/disks/measured.md has the experiments. For each rule the maker of images permits what was seen, and the legality
checker refuses what was not.
"""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from tornpage.cli.options import DISKS
from tornpage.properties.disk.certificate import certify
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import Choices, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageWritten,
    Resized,
)
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.rules import DISK_RULES
from tornpage.properties.program.case import Disk

BASE = Image(frozenset({"/", "/d"}), {"/a": b"a", "/d/a": b"d"})
A, D = 0, 1
WITH_JOURNAL = ("journal", "ext4", "xfs", "btrfs")


def trees(journal: list[Entry], disk: Disk, base: Image = BASE) -> set[frozenset[str]]:
    """Return the files of each image that a crash after the journal may leave. All are legal."""
    state = disk_state(base, journal, len(journal), disk=disk)
    writes = [write for write in in_flight_writes(state) if write.kind in ("name", "names")]
    found = set()
    for values in product(*(range(write.alternatives) for write in writes)):
        choices = {write.name: value for write, value in zip(writes, values, strict=True) if value}
        image = compose(state, choices)
        certificate = certify(base, journal, len(journal), choices, disk=disk)
        assert objections(base, journal, image, certificate) == []
        found.add(frozenset(image.files))
    return found


def refused(journal: list[Entry], disk: Disk, survivors: set[int]) -> list[str]:
    """Return why these entries alone may not survive, judged without the maker of images."""
    certificate = certify(BASE, journal, len(journal), {}, disk="kill")
    claims = tuple(claim for claim in certificate.operations if claim.entry in survivors)
    forged = replace(certificate, disk=disk, operations=claims)
    image = compose(disk_state(BASE, journal, len(journal), disk="kill"), {})
    return [reason for reason in objections(BASE, journal, image, forged) if "is lost" in reason]


def test_each_disk_has_rules_and_can_be_chosen() -> None:
    assert tuple(DISK_RULES) == DISKS == get_args(Disk)


@pytest.mark.parametrize(
    ("disk", "lost"), [("ext4", True), ("journal", True), ("xfs", False), ("btrfs", False), ("posix-strict", True)]
)
def test_a_data_sync_commits_a_rename_on_xfs_and_btrfs_only(disk: Disk, lost: bool) -> None:
    journal: list[Entry] = [FileRenamed(A, "/a", "/c"), FileSynced(A, succeeded=True, data_only=True)]
    assert (frozenset({"/a", "/d/a"}) in trees(journal, disk)) == lost
    assert bool(refused(journal, disk, set())) != lost
    whole: list[Entry] = [FileRenamed(A, "/a", "/c"), FileSynced(A, succeeded=True)]
    assert (frozenset({"/a", "/d/a"}) in trees(whole, disk)) == (disk == "posix-strict")


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_data_sync_commits_the_creation(disk: Disk) -> None:
    journal: list[Entry] = [FileCreated(2, "/n"), FileSynced(2, succeeded=True, data_only=True)]
    assert all("/n" in files for files in trees(journal, disk))
    assert refused(journal, disk, set())


@pytest.mark.parametrize(("disk", "lost"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_commits_earlier_operations_where_the_journal_is_one(disk: Disk, lost: bool) -> None:
    journal: list[Entry] = [FileUnlinked(A, "/a"), FileCreated(2, "/d/n"), FileSynced(2, succeeded=True)]
    assert (frozenset({"/a", "/d/a", "/d/n"}) in trees(journal, disk)) == lost
    assert bool(refused(journal, disk, {1})) != lost


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_directory_sync_commits_its_own_creation(disk: Disk) -> None:
    journal: list[Entry] = [DirectoryMade("/n"), DirectorySynced("/n")]
    state = disk_state(BASE, journal, 2, disk=disk)
    assert "/n" in compose(state, {}).directories
    assert refused(journal, disk, set())


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_directory_sync_may_commit_what_is_in_new_directories(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        DirectoryMade("/n"), FileUnlinked(D, "/d/a"), FileCreated(2, "/n/b"), DirectorySynced("/"),
    ]  # fmt: skip
    assert (frozenset({"/a", "/d/a", "/n/b"}) in trees(journal, disk)) == alone
    assert bool(refused(journal, disk, {0, 2})) != alone


def test_files_that_held_the_name_are_committed_with_it() -> None:
    journal: list[Entry] = [FileRenamed(A, "/a", "/b"), FileCreated(2, "/a"), FileSynced(2, succeeded=True)]
    assert trees(journal, "btrfs") == {frozenset({"/a", "/b", "/d/a"})}
    assert refused(journal, "btrfs", {1})


def test_committed_and_pending_names_take_effect_in_their_order() -> None:
    journal: list[Entry] = [
        FileRenamed(A, "/a", "/e"),  # replaced by the last rename, which a sync commits
        FileCreated(2, "/c"),
        FileRenamed(2, "/c", "/e"),
        FileSynced(2, succeeded=True),
    ]
    state = disk_state(BASE, journal, 4, disk="btrfs")
    assert state.visible()[0] == {"/d/a": D, "/e": 2}
    assert trees(journal, "btrfs") == {frozenset({"/a", "/d/a", "/e"}), frozenset({"/d/a", "/e"})}


def test_btrfs_never_tears_a_page() -> None:
    journal: list[Entry] = [Resized(A, 4096), PageWritten(A, 0, b"1" * 4096), PageWritten(A, 0, b"2" * 4096)]
    torn: Choices = {"size /a": 1, "page /a 0": (1, 2, 0b1111)}
    for disk, whole in (("ext4", False), ("btrfs", True)):
        image = compose(disk_state(BASE, journal, 3, disk=disk), torn)  # type: ignore[arg-type]
        assert (len(set(image.files["/a"])) == 1) == whole
    certificate = certify(BASE, journal, 3, torn, disk="ext4")
    image = compose(disk_state(BASE, journal, 3, disk="ext4"), torn)
    assert objections(BASE, journal, image, certificate) == []
    assert objections(BASE, journal, image, replace(certificate, disk="btrfs")) == [
        "/a: page 0 is torn, which this disk never does"
    ]
