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
    DirectoryRemoved,
    DirectoryRenamed,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileMade,
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


# ---- moved and removed directories, moved files, links ---------------------------------------------------------------


def forged(journal: list[Entry], disk: Disk, survivors: dict[int, bool]) -> list[str]:
    """Return why these entries alone may not survive.

    Those with True keep their old name too. The image has what the entries leave, so only rules object.
    """
    claims = certify(BASE, journal, len(journal), {}, disk="kill").operations
    kept = tuple(replace(c, keeps_source=survivors[c.entry]) for c in claims if c.entry in survivors)
    certificate = replace(certify(BASE, journal, len(journal), {}, disk="kill"), disk=disk, operations=kept)
    image = compose(disk_state(BASE, journal, len(journal), disk="kill"), {})
    reasons = objections(BASE, journal, image, certificate)
    return [reason for reason in reasons if "is lost" in reason or "old name is kept" in reason]


@pytest.mark.parametrize(("disk", "lost"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_of_a_new_file_may_lose_the_rename_of_its_directory(disk: Disk, lost: bool) -> None:
    journal: list[Entry] = [DirectoryRenamed("/d", "/n"), FileCreated(2, "/n/b"), FileSynced(2, succeeded=True)]
    assert (frozenset({"/a", "/d/a", "/d/b"}) in trees(journal, disk)) == lost
    assert frozenset({"/a", "/n/a", "/n/b"}) in trees(journal, disk)
    assert bool(forged(journal, disk, {1: False})) != lost


@pytest.mark.parametrize(("disk", "lost"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_after_a_move_may_lose_earlier_operations(disk: Disk, lost: bool) -> None:
    journal: list[Entry] = [FileRenamed(D, "/d/a", "/b"), FileCreated(2, "/e"), FileSynced(2, succeeded=True)]
    assert (frozenset({"/a", "/d/a", "/e"}) in trees(journal, disk)) == lost
    assert bool(forged(journal, disk, {1: False})) != lost


@pytest.mark.parametrize("disk", DISK_RULES)
def test_a_moved_file_may_be_at_both_names_until_its_old_directory_is_synced(disk: Disk) -> None:
    splits = disk in ("posix-strict", "journal", "btrfs")
    both = frozenset({"/a", "/b", "/d/a"})
    journal: list[Entry] = [FileRenamed(D, "/d/a", "/b"), DirectorySynced("/")]
    assert (both in trees(journal, disk)) == splits
    assert bool(forged(journal, disk, {0: True})) != splits
    settled: list[Entry] = [*journal, DirectorySynced("/d")]
    assert trees(settled, disk) == {frozenset({"/a", "/b"})}
    assert forged(settled, disk, {0: True})


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_moved_file_is_at_its_new_name_alone_after_its_own_sync(disk: Disk) -> None:
    journal: list[Entry] = [FileRenamed(D, "/d/a", "/b"), DirectorySynced("/"), FileSynced(D, succeeded=True)]
    assert trees(journal, disk) == {frozenset({"/a", "/b"})}
    assert forged(journal, disk, {0: True})


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_move_that_no_sync_committed_is_whole(disk: Disk) -> None:
    journal: list[Entry] = [FileRenamed(D, "/d/a", "/b")]
    assert trees(journal, disk) == {frozenset({"/a", "/b"}), frozenset({"/a", "/d/a"})}
    assert forged(journal, disk, {0: True})


def test_the_claim_that_a_name_is_kept_is_compared_with_the_image() -> None:
    journal: list[Entry] = [FileRenamed(D, "/d/a", "/b"), DirectorySynced("/")]
    certificate = certify(BASE, journal, 2, {}, disk="btrfs")
    assert [claim.keeps_source for claim in certificate.operations] == [True]
    assert "and the file is at its old name too" in certificate.sentences()[0]
    whole = compose(disk_state(BASE, journal, 2, disk="ext4"), {})
    assert "the file /d/a is missing, but a surviving name leads to it" in objections(BASE, journal, whole, certificate)


@pytest.mark.parametrize(("disk", "lost"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_removed_name_may_be_committed_without_the_other_link(disk: Disk, lost: bool) -> None:
    """The file is lost."""
    journal: list[Entry] = [FileLinked(A, "/d/e"), FileUnlinked(A, "/a"), DirectorySynced("/")]
    assert (frozenset({"/d/a"}) in trees(journal, disk)) == lost
    assert bool(forged(journal, disk, {1: False})) != lost
    same: list[Entry] = [FileLinked(A, "/e"), FileUnlinked(A, "/a"), DirectorySynced("/")]
    assert trees(same, disk) == {frozenset({"/d/a", "/e"})}


@pytest.mark.parametrize(("disk", "lost"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_removed_name_needs_no_link_after_a_moved_directory_either(disk: Disk, lost: bool) -> None:
    journal: list[Entry] = [
        DirectoryRenamed("/d", "/n"), DirectorySynced("/"),
        FileLinked(A, "/n/e"), FileUnlinked(A, "/a"), DirectorySynced("/"),
    ]  # fmt: skip
    assert (frozenset({"/n/a"}) in trees(journal, disk)) == lost
    assert bool(forged(journal, disk, {0: False, 3: False})) != lost


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_may_commit_the_rename_of_a_directory_in_a_synced_one(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        DirectorySynced("/"), FileCreated(2, "/d/b"), DirectoryRenamed("/d", "/n"),
        FileCreated(3, "/c"), FileSynced(3, succeeded=True),
    ]  # fmt: skip
    assert (frozenset({"/a", "/c", "/n/a"}) in trees(journal, disk)) == alone
    assert bool(forged(journal, disk, {2: False, 3: False})) != alone


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_may_commit_the_link_of_a_synced_file(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        FileCreated(2, "/e"), FileMade(3), FileSynced(3, succeeded=True), FileLinked(3, "/d/b"),
        FileSynced(A, succeeded=True),
    ]  # fmt: skip
    assert (frozenset({"/a", "/d/a", "/d/b"}) in trees(journal, disk)) == alone
    assert bool(forged(journal, disk, {3: False})) != alone


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_of_a_renamed_file_may_commit_the_rename_of_its_directory(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        FileCreated(2, "/e"), DirectoryRenamed("/d", "/n"), FileRenamed(D, "/n/a", "/n/b"),
        FileSynced(D, succeeded=True),
    ]  # fmt: skip
    assert (frozenset({"/a", "/n/b"}) in trees(journal, disk)) == alone
    assert bool(forged(journal, disk, {1: False, 2: False})) != alone


@pytest.mark.parametrize(
    ("disk", "trees_left"),
    [("ext4", "neither both"), ("xfs", "both"), ("btrfs", "both link"), ("journal", "neither link both")],
)
def test_a_data_sync_commits_a_link_on_xfs_and_btrfs_only(disk: Disk, trees_left: str) -> None:
    """Without the earlier creation on btrfs. On `journal` it may do either."""
    journal: list[Entry] = [
        FileCreated(2, "/e"), FileLinked(A, "/d/b"), FileSynced(A, succeeded=True, data_only=True),
    ]  # fmt: skip
    names = {"neither": {"/a", "/d/a"}, "link": {"/a", "/d/a", "/d/b"}, "both": {"/a", "/d/a", "/d/b", "/e"}}
    found = trees(journal, disk)
    assert {name for name, files in names.items() if frozenset(files) in found} == set(trees_left.split())
    assert bool(forged(journal, disk, {})) == ("neither" not in trees_left)
    assert bool(forged(journal, disk, {1: False})) == ("link" not in trees_left)


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_removed_directory_is_committed_with_what_emptied_it(disk: Disk) -> None:
    journal: list[Entry] = [FileUnlinked(D, "/d/a"), DirectoryRemoved("/d"), DirectorySynced("/")]
    assert trees(journal, disk) == {frozenset({"/a"})}
    assert forged(journal, disk, {1: False})


@pytest.mark.parametrize("disk", WITH_JOURNAL)
def test_a_new_directory_of_an_old_name_is_committed_with_the_rename_of_the_old_one(disk: Disk) -> None:
    journal: list[Entry] = [DirectoryRenamed("/d", "/n"), DirectoryMade("/d"), DirectorySynced("/d")]
    assert trees(journal, disk) == {frozenset({"/a", "/n/a"})}
    assert forged(journal, disk, {1: False})


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_of_a_linked_file_may_commit_what_is_beside_its_names(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        FileLinked(D, "/c"), FileUnlinked(A, "/a"), FileCreated(2, "/d/n"), FileSynced(D, succeeded=True),
    ]  # fmt: skip
    assert (frozenset({"/a", "/c", "/d/a", "/d/n"}) in trees(journal, disk)) == alone
    assert bool(forged(journal, disk, {0: False, 2: False})) != alone


@pytest.mark.parametrize(("disk", "alone"), [("ext4", False), ("xfs", False), ("btrfs", True), ("journal", True)])
def test_a_sync_of_a_directory_may_commit_links_of_a_file_that_is_new_in_it(disk: Disk, alone: bool) -> None:
    journal: list[Entry] = [
        FileRenamed(A, "/a", "/b"), FileUnlinked(D, "/d/a"), FileLinked(A, "/d/e"), DirectorySynced("/"),
    ]  # fmt: skip
    assert (frozenset({"/b", "/d/a", "/d/e"}) in trees(journal, disk)) == alone
    assert bool(forged(journal, disk, {0: False, 2: False})) != alone


# ---- syncs of files whose size has changed ---------------------------------------------------------------------------

WITH_ONE_JOURNAL = ("ext4", "xfs")
UNLINKED: Entry = FileUnlinked(D, "/d/a")


@pytest.mark.parametrize("disk", DISK_RULES)
@pytest.mark.parametrize("data_only", [False, True])
@pytest.mark.parametrize("size_bytes", [0, 4096])
def test_a_sync_of_a_resized_file_commits_earlier_operations_on_ext4_and_xfs(
    disk: Disk, data_only: bool, size_bytes: int
) -> None:
    """The file is another one than that of the operation."""
    change: list[Entry] = [Resized(A, size_bytes)]
    if not size_bytes:
        change = [PageWritten(A, 0, b"\0"), *change]
    journal = [UNLINKED, *change, FileSynced(A, succeeded=True, data_only=data_only)]
    lost = disk not in (*WITH_ONE_JOURNAL, "kill")
    assert (frozenset({"/a", "/d/a"}) in trees(journal, disk)) == lost
    assert bool(forged(journal, disk, {})) != lost
    failed = [*journal[:-1], FileSynced(A, succeeded=False, data_only=data_only)]
    assert (frozenset({"/a", "/d/a"}) in trees(failed, disk)) == (disk != "kill")
    assert bool(forged(failed, disk, {})) == (disk == "kill")


@pytest.mark.parametrize("disk", WITH_JOURNAL)
@pytest.mark.parametrize("data_only", [False, True])
def test_a_sync_of_a_file_that_kept_its_size_commits_nothing_else(disk: Disk, data_only: bool) -> None:
    journal: list[Entry] = [UNLINKED, PageWritten(A, 0, b"b"), FileSynced(A, succeeded=True, data_only=data_only)]
    assert frozenset({"/a", "/d/a"}) in trees(journal, disk)
    assert not forged(journal, disk, {})


@pytest.mark.parametrize("disk", WITH_ONE_JOURNAL)
def test_operations_after_the_change_of_the_size_may_be_lost(disk: Disk) -> None:
    """The kernel may have written the change to the journal before the operation."""
    journal: list[Entry] = [Resized(A, 4096), UNLINKED, FileSynced(A, succeeded=True)]
    assert frozenset({"/a", "/d/a"}) in trees(journal, disk)
    assert not forged(journal, disk, {})


@pytest.mark.parametrize("disk", WITH_ONE_JOURNAL)
def test_the_names_that_a_resized_file_commits_include_its_own(disk: Disk) -> None:
    journal: list[Entry] = [
        FileRenamed(D, "/d/a", "/d/e"), FileCreated(2, "/c"), Resized(A, 9000), FileCreated(3, "/n"),
        FileSynced(A, succeeded=True),
    ]  # fmt: skip
    assert trees(journal, disk) == {frozenset({"/a", "/d/e", "/c", *more}) for more in ((), ("/n",))}
    assert forged(journal, disk, {0: False})


@pytest.mark.parametrize(
    ("sizes", "committed"),
    [
        ([9000, 1], False),  # the growth need not have reached the inode
        ([9000, 5000, 1], True),
        ([9000, 8000], True),
        ([0, 1], True),
        ([9000, 8000, 9000], True),
        ([9000, 1, 8000], True),
        ([9000, 1, 8000, 1], False),
    ],
)
def test_a_data_sync_on_ext4_counts_sizes_that_the_inode_did_not_have(sizes: list[int], committed: bool) -> None:
    change: list[Entry] = []
    for size_bytes in sizes:
        if not size_bytes:
            change.append(PageWritten(A, 0, b"\0"))
        change.append(Resized(A, size_bytes))
    journal = [UNLINKED, *change, FileSynced(A, succeeded=True, data_only=True)]
    lost = frozenset({"/a", "/d/a"})
    assert (lost not in trees(journal, "ext4")) == committed
    assert bool(forged(journal, "ext4", {})) == committed
    for disk, data_only in (("ext4", False), ("xfs", True)):
        whole = [*journal[:-1], FileSynced(A, succeeded=True, data_only=data_only)]
        assert lost not in trees(whole, disk)  # type: ignore[arg-type]
        assert forged(whole, disk, {})  # type: ignore[arg-type]
