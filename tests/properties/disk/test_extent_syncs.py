"""Test what syncs of some bytes make durable, in the makers of images and the checker."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.properties.disk.test_certificate import DISKS, FULL, random_steps, recorded
from tests.properties.disk.test_legality import mutations_of
from tornpage.properties.disk.certificate import certify
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import (
    Entry,
    FileCreated,
    FileSynced,
    FileUnlinked,
    PageFreed,
    PagesDropped,
    PageWritten,
    Resized,
)
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.disk.sampling import draw
from tornpage.properties.program.case import Disk

PAGE = 4096
OLD, NEW, LAST = (letter * PAGE for letter in (b"o", b"n", b"l"))
BASE = Image(frozenset({"/"}), {"/a": OLD * 3})
PARTIAL: list[Disk] = ["posix-strict", "journal", "ext4", "xfs"]
"""The disks on which a sync of some bytes is no sync of the whole file."""


def synced(first: int, end: int, inode: int = 0) -> FileSynced:
    return FileSynced(inode, succeeded=True, data_only=True, extent=(first, end))


def contents(journal: Sequence[Entry], disk: Disk, path: str = "/a") -> set[bytes]:
    """Return what a file may have after the journal, without tears. The checker accepts each."""
    state = disk_state(BASE, journal, len(journal), disk=disk)
    every: list[dict[str, int]] = [{}]
    for write in in_flight_writes(state):
        every = [{**choices, write.name: n} for choices in every for n in range(write.alternatives)]
    found = set()
    for choices in every:
        image = compose(state, choices)
        assert objections(BASE, journal, image, certify(BASE, journal, len(journal), choices, disk=disk)) == []
        if path in image.files:
            found.add(bytes(image.files[path]))
    return found


@pytest.mark.parametrize("disk", PARTIAL)
def test_sync_of_one_page_leaves_the_others_in_flight(disk: Disk) -> None:
    journal: list[Entry] = [PageWritten(0, page, NEW) for page in range(3)]
    assert contents([*journal, synced(PAGE, PAGE + 1)], disk) == {
        first + NEW + third for first in (OLD, NEW) for third in (OLD, NEW)
    }
    assert contents([*journal, synced(0, 3 * PAGE)], disk) == {NEW * 3}
    assert contents([*journal, synced(PAGE - 1, PAGE + 1)], disk) == {NEW * 2 + OLD, NEW * 3}
    assert len(contents([*journal, synced(PAGE, PAGE)], disk)) == 8
    assert len(contents([*journal, synced(3 * PAGE, 4 * PAGE)], disk)) == 8, "there are no bytes"


@pytest.mark.parametrize("disk", PARTIAL)
def test_size_is_durable_as_far_as_the_bytes_need_it(disk: Disk) -> None:
    growth: list[Entry] = [Resized(0, 4 * PAGE), PageWritten(0, 3, NEW), Resized(0, 5 * PAGE), PageWritten(0, 4, LAST)]
    found = contents([*growth, synced(3 * PAGE, 4 * PAGE)], disk)
    assert found == {OLD * 3 + NEW, OLD * 3 + NEW + bytes(PAGE), OLD * 3 + NEW + LAST}
    assert contents([*growth, synced(4 * PAGE, 5 * PAGE)], disk) == {
        OLD * 3 + page + LAST for page in (bytes(PAGE), NEW)
    }
    assert {len(found) // PAGE for found in contents([*growth, synced(0, PAGE)], disk)} == {3, 4, 5}


@pytest.mark.parametrize("disk", PARTIAL)
def test_cut_is_committed_by_a_journal_or_if_the_bytes_came_after_it(disk: Disk) -> None:
    cut: list[Entry] = [PageFreed(0, 1, bytes(PAGE)), PageFreed(0, 2, bytes(PAGE)), Resized(0, PAGE)]
    sizes = {1, 3} if disk == "posix-strict" else {1}
    assert {len(found) // PAGE for found in contents([*cut, synced(0, PAGE)], disk)} == sizes
    grown = [*cut, Resized(0, 2 * PAGE), PageWritten(0, 1, NEW)]
    assert contents([*grown, synced(PAGE, 2 * PAGE)], disk) == {OLD + NEW}


@pytest.mark.parametrize(("disk", "kept"), [("ext4", True), ("xfs", True), ("journal", False)])
def test_sync_of_the_last_bytes_commits_what_came_before_the_growth(disk: Disk, kept: bool) -> None:
    """A sync of bytes that leaves a size in flight commits no unrelated name."""
    base = Image(frozenset({"/"}), {"/a": OLD, "/b": b""})
    journal: list[Entry] = [FileUnlinked(1, "/b"), Resized(0, 2 * PAGE), Resized(0, 3 * PAGE)]
    for end, commits in ((2 * PAGE, False), (3 * PAGE, kept)):
        entries = [*journal, synced(0, end)]
        state = DiskState(base, disk=disk)
        state.apply_all(entries)
        assert bool(state.pending) != commits
        image = compose(state, {})
        assert objections(base, entries, image, certify(base, entries, len(entries), {}, disk=disk)) == []


def test_sync_of_some_bytes_is_one_of_the_whole_file_on_btrfs() -> None:
    journal: list[Entry] = [
        Resized(0, 5 * PAGE),
        *(PageWritten(0, page, NEW) for page in range(5)),
        synced(PAGE, PAGE + 1),
    ]
    assert contents(journal, "btrfs") == {NEW * 5}


@pytest.mark.parametrize("disk", ["ext4", "xfs", "journal"])
def test_sync_of_bytes_commits_the_creation_of_the_file(disk: Disk) -> None:
    journal: list[Entry] = [FileCreated(1, "/n"), Resized(1, 2 * PAGE), PageWritten(1, 0, NEW), PageWritten(1, 1, NEW)]
    assert contents([*journal, synced(0, PAGE, inode=1)], disk, "/n") == {NEW + bytes(PAGE), NEW * 2}


def test_dropped_page_stays_in_flight() -> None:
    journal: list[Entry] = [PageWritten(0, 0, NEW), PagesDropped(0), PageWritten(0, 1, NEW), synced(0, 2 * PAGE)]
    assert contents(journal, "ext4") == {OLD + NEW + OLD, NEW + NEW + OLD}


# ---- the checker -----------------------------------------------------------------------------------------------------


def with_extents(journal: Sequence[Entry], rng: random.Random) -> list[Entry]:
    """Return a journal in which half of the syncs cover some bytes only."""
    return [
        replace(entry, data_only=True, extent=(first := rng.randrange(5 * PAGE), rng.randrange(first, 5 * PAGE)))
        if isinstance(entry, FileSynced) and entry.succeeded and rng.random() < 0.5
        else entry
        for entry in journal
    ]


def test_checker_accepts_each_image_and_refuses_each_forgery() -> None:
    made = refused = narrow = 0
    for seed in range(60):
        rng = random.Random(f"extents {seed}")
        base = rng.choice([EMPTY_DISK, FULL])
        journal = with_extents(recorded(base, random_steps(rng)), rng)
        disk = rng.choice(DISKS)
        for _ in range(5):
            position = rng.randrange(len(journal) + 1)
            narrow += any(isinstance(entry, FileSynced) and entry.extent is not None for entry in journal[:position])
            state = disk_state(base, journal, position, disk=disk)
            choices = draw(in_flight_writes(state), rng)
            image, certificate = compose(state, choices), certify(base, journal, position, choices, disk=disk)
            assert objections(base, journal, image, certificate) == []
            made += 1
            for name, (other, claims) in mutations_of(image, certificate, journal, rng).items():
                assert objections(base, journal, other, claims), f"{name} goes unnoticed (seed {seed})"
                refused += 1
    assert made == 300
    assert narrow > 100
    assert refused > 500


@pytest.mark.parametrize("disk", PARTIAL)
def test_checker_finds_a_disk_that_takes_some_bytes_for_the_whole_file(disk: Disk) -> None:
    """The wrong rule of earlier versions, and its opposite."""
    journal: list[Entry] = [PageWritten(0, 0, NEW), PageWritten(0, 2, NEW), synced(0, PAGE)]
    whole = [*journal[:2], replace(synced(0, PAGE), extent=None)]
    image, certificate = compose(disk_state(BASE, whole, 3, disk=disk), {}), certify(BASE, whole, 3, {}, disk=disk)
    assert objections(BASE, journal, image, certificate), "page 2 is claimed to be durable"
    nothing = journal[:2]
    image, certificate = compose(disk_state(BASE, nothing, 2, disk=disk), {}), certify(BASE, nothing, 2, {}, disk=disk)
    assert objections(BASE, journal, image, replace(certificate, position=3)), "page 0 is lost"
