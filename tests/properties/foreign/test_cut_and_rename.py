"""Test two rules of the disk `journal` that ext4 keeps.

A cut is one operation, and a sync keeps the name of its file. Symptoms: SQLite with a truncated journal, and stores
that rename a file and sync it again, were called broken on a disk that no journaling file system is.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.model.operations import Choice
from tornpage.properties.disk.certificate import assert_legal, certify
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import PageFreed
from tornpage.properties.disk.legality import objections
from tornpage.properties.foreign.watching import WatchedDirectory
from tornpage.properties.program.case import Disk

PAGE = 4096
BASE = Image(frozenset({"/"}), {"/f": b"A" * 2 * PAGE})


@pytest.fixture
def cut(tmp_path: Path) -> WatchedDirectory:
    """A file of two durable pages, cut to 100 bytes."""
    (tmp_path / "f").write_bytes(BASE.files["/f"])
    watched = WatchedDirectory(tmp_path, BASE)
    os.truncate(tmp_path / "f", 100)
    watched.look()
    return watched


def images(watched: WatchedDirectory, disk: Disk) -> Iterator[tuple[dict[str, Choice], bytes]]:
    """Yield each choice of whole versions and the content of `f`; all of them are legal."""
    position = len(watched.journal)
    state = disk_state(watched.base, watched.journal, position, disk=disk)
    writes = in_flight_writes(state)
    for numbers in itertools.product(*(range(write.alternatives) for write in writes)):
        choices: dict[str, Choice] = dict(zip((write.name for write in writes), numbers, strict=True))
        image = compose(state, choices)
        assert_legal(watched.base, watched.journal, position, choices, image, disk=disk)
        yield choices, image.files["/f"]


def test_cut_shows_no_freed_page_at_the_old_size(cut: WatchedDirectory) -> None:
    found = {(len(content), content[PAGE:].count(0)) for _, content in images(cut, "journal")}
    assert found == {(2 * PAGE, 0), (100, 0)}


def test_cut_on_a_strict_disk_may_free_the_page_before_the_size(cut: WatchedDirectory) -> None:
    assert (2 * PAGE, PAGE) in {(len(content), content[PAGE:].count(0)) for _, content in images(cut, "posix-strict")}


def test_cut_and_growth_show_zeros_or_new_bytes_with_a_later_size(cut: WatchedDirectory) -> None:
    with open(cut.root / "f", "r+b") as file:
        file.seek(PAGE)
        file.write(b"B" * PAGE)
    cut.look()
    found = {(len(content), content[PAGE : PAGE + 1]) for _, content in images(cut, "journal")}
    assert found == {(2 * PAGE, b"A"), (2 * PAGE, b"\0"), (2 * PAGE, b"B"), (100, b"")}
    old_size = [content[PAGE:] for choices, content in images(cut, "journal") if choices["size /f"] == 0]
    assert set(old_size) == {b"A" * PAGE}


def test_checker_objects_to_a_freed_page_at_the_old_size(cut: WatchedDirectory) -> None:
    position, choices = len(cut.journal), {"page /f 1": 1}
    image = compose(disk_state(cut.base, cut.journal, position, disk="posix-strict"), choices)
    certificate = certify(cut.base, cut.journal, position, choices, disk="posix-strict")
    assert objections(cut.base, cut.journal, image, certificate) == []
    (freed,) = [n for n, entry in enumerate(cut.journal) if isinstance(entry, PageFreed)]
    (said,) = objections(cut.base, cut.journal, image, replace(certificate, disk="journal"))
    assert said == f"/f: page 1 holds the version of entry {freed}, after the cut at {freed + 1}, with an older size"


def test_sync_of_the_cut_file_makes_the_cut_durable(cut: WatchedDirectory) -> None:
    found = os.stat(cut.root / "f")
    cut.synced((found.st_dev, found.st_ino))
    assert {len(content) for _, content in images(cut, "journal")} == {100}


@pytest.mark.parametrize(("disk", "survives"), [("journal", {b"new"}), ("posix-strict", {b"old", b"new"})])
def test_sync_of_a_renamed_file_keeps_its_name(tmp_path: Path, disk: Disk, survives: set[bytes]) -> None:
    (tmp_path / "f").write_bytes(b"old")
    watched = WatchedDirectory(tmp_path, Image(frozenset({"/"}), {"/f": b"old"}))
    (tmp_path / "tmp").write_bytes(b"new")
    watched.look()
    found = os.stat(tmp_path / "tmp")
    place = found.st_dev, found.st_ino
    watched.synced(place)
    os.rename(tmp_path / "tmp", tmp_path / "f")
    watched.look()
    watched.synced(place)
    assert {content for _, content in images(watched, disk)} == survives


@pytest.mark.parametrize(("disk", "survives"), [("ext4", {b"new", b"old"}), ("xfs", {b"new"}), ("btrfs", {b"new"})])
def test_sync_of_the_data_of_a_renamed_file_keeps_no_rename_on_ext4(
    tmp_path: Path, disk: Disk, survives: set[bytes]
) -> None:
    """Symptom: a rename followed by fdatasync was durable, and ext4 loses the rename."""
    base = Image(frozenset({"/"}), {"/f": b"old", "/g": b"new"})
    for path, content in base.files.items():
        (tmp_path / path[1:]).write_bytes(content)
    watched = WatchedDirectory(tmp_path, base)
    (tmp_path / "g").rename(tmp_path / "f")
    found = (tmp_path / "f").stat()
    watched.synced((found.st_dev, found.st_ino), data_only=True)
    assert {content for _, content in images(watched, disk)} == survives


def test_write_that_extends_a_file_may_end_at_each_page_in_it(tmp_path: Path) -> None:
    """Symptom: ext4 left 8,192 bytes of a write from 6,000 to 14,192, and no image did."""
    base = Image(frozenset({"/"}), {"/f": b"A" * 6000})
    (tmp_path / "f").write_bytes(base.files["/f"])
    watched = WatchedDirectory(tmp_path, base)
    with open(tmp_path / "f", "ab", buffering=0) as file:
        file.write(b"B" * 8192)
    watched.look()
    assert {len(content) for _, content in images(watched, "ext4")} == {6000, 2 * PAGE, 3 * PAGE, 14192}
    os.truncate(tmp_path / "f", 6 * PAGE)  # one operation, and no write
    watched.look()
    assert {len(content) for _, content in images(watched, "ext4")} == {6000, 2 * PAGE, 3 * PAGE, 14192, 6 * PAGE}
