"""One contract for both disks: the real one and the recorded one answer every call alike.

What only a recorded disk does (a budget, failing syncs, a journal) is tested in test_recording_files.py.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from impl.files import Files, FileStat
from impl.os_files import OsFiles
from properties.recorder.dirty import CompareTracker
from properties.recorder.disk import Image, parent_of
from properties.recorder.recording_files import RecordingFiles


@dataclass(frozen=True)
class Disk:
    """A disk under test, and an empty directory on it."""

    files: Files
    root: str

    def path(self, name: str) -> str:
        """Return the path of a name in the directory."""
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> str:
        """Make a closed file with a content."""
        file = self.files.create(self.path(name))
        self.files.pwrite(file, data, 0)
        self.files.close(file)
        return self.path(name)

    def content(self, name: str) -> bytes:
        """Return what a file holds."""
        file = self.files.open(self.path(name), writable=False)
        try:
            return self.files.read(file, 0, 1 << 20)
        finally:
            self.files.close(file)


def recording_files(root: str, *, budget_bytes: int = 1 << 40) -> RecordingFiles:
    """Return a recorded disk that has the directory `root` and its parents."""
    directories = {root}
    while root != "/":
        root = parent_of(root)
        directories.add(root)
    return RecordingFiles(Image(frozenset(directories), {}), tracker=CompareTracker(), budget_bytes=budget_bytes)


@pytest.fixture(params=["real", "recorded"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    root = str(tmp_path)
    return Disk(OsFiles() if request.param == "real" else recording_files(root), root)


def error_of(call: Callable[[], object]) -> int | None:
    """Return the errno of the OSError that a call must raise."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is compared by the caller
        call()
    return caught.value.errno


# ---- creating, opening, closing --------------------------------------------------------------------------------------


def test_create_makes_an_empty_file_that_can_be_written(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    assert file.path == disk.path("a")
    assert disk.files.stat(disk.path("a")) == FileStat("file", 0)
    disk.files.pwrite(file, b"abc", 0)
    assert disk.files.read(file, 0, 10) == b"abc"
    disk.files.close(file)


@pytest.mark.parametrize("taken_by", ["file", "directory"])
def test_create_refuses_a_taken_name_and_leaves_it_alone(disk: Disk, taken_by: str) -> None:
    if taken_by == "file":
        disk.write("a", b"old")
    else:
        disk.files.make_directory(disk.path("a"))
    before = disk.files.stat(disk.path("a"))
    assert error_of(lambda: disk.files.create(disk.path("a"))) == errno.EEXIST
    assert disk.files.stat(disk.path("a")) == before


def test_create_needs_its_directory(disk: Disk) -> None:
    assert error_of(lambda: disk.files.create(disk.path("no/a"))) == errno.ENOENT


@pytest.mark.parametrize("writable", [False, True])
def test_open_needs_the_file(disk: Disk, writable: bool) -> None:
    assert error_of(lambda: disk.files.open(disk.path("a"), writable=writable)) == errno.ENOENT
    assert disk.files.list_directory(disk.root) == []


def test_open_keeps_the_content(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=True)
    assert file.path == disk.path("a")
    disk.files.pwrite(file, b"X", 1)
    disk.files.close(file)
    assert disk.content("a") == b"aXc"


def test_open_for_writing_refuses_a_directory(disk: Disk) -> None:
    disk.files.make_directory(disk.path("a"))
    assert error_of(lambda: disk.files.open(disk.path("a"), writable=True)) == errno.EISDIR


def test_two_openers_see_one_file(disk: Disk) -> None:
    first = disk.files.create(disk.path("a"))
    second = disk.files.open(disk.path("a"), writable=True)
    disk.files.pwrite(first, b"abc", 0)
    assert disk.files.read(second, 0, 10) == b"abc"
    disk.files.close(first)
    disk.files.pwrite(second, b"X", 0)
    assert disk.files.read(second, 0, 10) == b"Xbc"
    disk.files.close(second)


def test_a_file_opened_for_reading_refuses_writes(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    assert error_of(lambda: disk.files.pwrite(file, b"X", 0)) == errno.EBADF
    assert error_of(lambda: disk.files.zero(file, 0, 1)) == errno.EBADF
    assert disk.files.read(file, 0, 10) == b"abc"
    disk.files.close(file)


def test_a_file_opened_for_reading_refuses_to_grow(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    assert error_of(lambda: disk.files.allocate(file, 100)) == errno.EBADF
    assert disk.files.stat(disk.path("a")) == FileStat("file", 3)
    disk.files.close(file)


# ---- content ---------------------------------------------------------------------------------------------------------


def test_allocate_grows_with_zeros_and_never_shrinks(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"abc", 0)
    disk.files.allocate(file, 5000)
    assert disk.files.read(file, 0, 9000) == b"abc".ljust(5000, b"\0")
    disk.files.allocate(file, 10)
    assert disk.files.stat(disk.path("a")) == FileStat("file", 5000)
    disk.files.close(file)


def test_pwrite_grows_the_file_and_fills_the_gap_with_zeros(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"abc", 4)
    assert disk.files.read(file, 0, 100) == b"\0\0\0\0abc"
    assert disk.files.stat(disk.path("a")) == FileStat("file", 7)
    disk.files.close(file)


def test_pwrite_of_nothing_changes_nothing(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"", 10)
    assert disk.files.stat(disk.path("a")) == FileStat("file", 0)
    disk.files.close(file)


@pytest.mark.parametrize(
    ("offset", "size_bytes", "expected"), [(0, 3, b"abc"), (1, 9, b"bc"), (3, 1, b""), (99, 1, b""), (1, 0, b"")]
)
def test_read_is_short_at_the_end(disk: Disk, offset: int, size_bytes: int, expected: bytes) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    assert disk.files.read(file, offset, size_bytes) == expected
    disk.files.close(file)


def test_zero_overwrites_a_range_only(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"x" * 10_000, 0)
    disk.files.zero(file, 10, 9_000)
    assert disk.files.read(file, 0, 20_000) == b"x" * 10 + bytes(9_000) + b"x" * 990
    disk.files.close(file)


# ---- mappings --------------------------------------------------------------------------------------------------------


def test_mapping_and_descriptor_see_each_other(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 8192)
    mapping = disk.files.map(file)
    assert (len(mapping.view), mapping.view.readonly) == (8192, False)
    disk.files.pwrite(file, b"abc", 4090)
    assert bytes(mapping.view[4090:4093]) == b"abc"
    mapping.view[4094:4100] = b"stored"
    assert disk.files.read(file, 4090, 10) == b"abc\0stored"
    disk.files.unmap(mapping)
    disk.files.close(file)
    assert disk.content("a")[4090:4100] == b"abc\0stored"


def test_two_mappings_are_shared(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 4096)
    first, second = disk.files.map(file), disk.files.map(file)
    first.view[7] = 42
    assert second.view[7] == 42
    disk.files.unmap(first)
    second.view[8] = 43
    disk.files.unmap(second)
    assert disk.files.read(file, 7, 2) == b"*+"
    disk.files.close(file)


def test_a_mapping_survives_the_close_of_its_file(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 4096)
    mapping = disk.files.map(file)
    disk.files.close(file)
    mapping.view[:3] = b"abc"
    disk.files.unmap(mapping)
    assert disk.content("a")[:4] == b"abc\0"


def test_a_file_opened_for_reading_has_a_read_only_view(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    mapping = disk.files.map(file)
    assert (bytes(mapping.view), mapping.view.readonly) == (b"abc", True)
    disk.files.unmap(mapping)
    disk.files.close(file)


def test_an_empty_file_has_an_empty_mapping(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    mapping = disk.files.map(file)
    assert len(mapping.view) == 0
    disk.files.unmap(mapping)
    disk.files.close(file)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_rename_replaces_the_target(disk: Disk) -> None:
    disk.write("new", b"new")
    disk.write("old", b"old")
    disk.files.rename(disk.path("new"), disk.path("old"))
    assert disk.files.list_directory(disk.root) == ["old"]
    assert disk.content("old") == b"new"


def test_rename_keeps_an_open_target_readable(disk: Disk) -> None:
    disk.write("new", b"new")
    disk.write("old", b"old")
    file = disk.files.open(disk.path("old"), writable=False)
    disk.files.rename(disk.path("new"), disk.path("old"))
    assert disk.files.read(file, 0, 10) == b"old"
    disk.files.close(file)


def test_rename_to_itself_changes_nothing(disk: Disk) -> None:
    disk.write("a", b"abc")
    disk.files.rename(disk.path("a"), disk.path("a"))
    assert disk.content("a") == b"abc"


def test_rename_needs_its_source(disk: Disk) -> None:
    disk.write("old", b"old")
    assert error_of(lambda: disk.files.rename(disk.path("new"), disk.path("old"))) == errno.ENOENT
    assert disk.content("old") == b"old"


def test_rename_of_a_file_refuses_a_directory_as_target(disk: Disk) -> None:
    disk.write("a", b"abc")
    disk.files.make_directory(disk.path("b"))
    assert error_of(lambda: disk.files.rename(disk.path("a"), disk.path("b"))) == errno.EISDIR
    assert disk.content("a") == b"abc"


def test_unlink_removes_the_name_and_keeps_the_open_file(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=True)
    mapping = disk.files.map(file)
    disk.files.unlink(disk.path("a"))
    assert disk.files.stat(disk.path("a")) is None
    assert disk.files.read(file, 0, 10) == b"abc"
    disk.files.pwrite(file, b"X", 0)
    assert bytes(mapping.view) == b"Xbc"
    disk.files.unmap(mapping)
    disk.files.close(file)


def test_an_unlinked_name_can_be_created_again(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    disk.files.unlink(disk.path("a"))
    disk.write("a", b"new")
    assert disk.files.read(file, 0, 10) == b"abc"
    assert disk.content("a") == b"new"
    disk.files.close(file)


def test_unlink_needs_the_file(disk: Disk) -> None:
    assert error_of(lambda: disk.files.unlink(disk.path("a"))) == errno.ENOENT


def test_unlink_refuses_a_directory(disk: Disk) -> None:
    disk.files.make_directory(disk.path("a"))
    assert error_of(lambda: disk.files.unlink(disk.path("a"))) == errno.EISDIR
    assert disk.files.stat(disk.path("a")) == FileStat("directory", 0)


def test_make_directory_makes_one_level(disk: Disk) -> None:
    disk.files.make_directory(disk.path("a"))
    disk.files.make_directory(disk.path("a/b"))
    assert disk.files.stat(disk.path("a/b")) == FileStat("directory", 0)
    assert error_of(lambda: disk.files.make_directory(disk.path("a"))) == errno.EEXIST
    assert error_of(lambda: disk.files.make_directory(disk.path("no/b"))) == errno.ENOENT


def test_list_directory_is_sorted_and_one_level_deep(disk: Disk) -> None:
    for name in ("b", "a", "c10", "c9"):
        disk.write(name, b"")
    disk.files.make_directory(disk.path("B"))
    disk.write("B/inner", b"")
    assert disk.files.list_directory(disk.root) == ["B", "a", "b", "c10", "c9"]
    assert disk.files.list_directory(disk.path("B")) == ["inner"]


def test_list_directory_needs_a_directory(disk: Disk) -> None:
    assert error_of(lambda: disk.files.list_directory(disk.path("no"))) == errno.ENOENT


def test_list_directory_refuses_a_file(disk: Disk) -> None:
    disk.write("a", b"")
    assert error_of(lambda: disk.files.list_directory(disk.path("a"))) == errno.ENOTDIR


def test_stat_tells_kind_and_size(disk: Disk) -> None:
    disk.write("a", b"abc")
    assert disk.files.stat(disk.path("a")) == FileStat("file", 3)
    assert disk.files.stat(disk.root) == FileStat("directory", 0)
    assert disk.files.stat(disk.path("no")) is None
    assert disk.files.stat(disk.path("a/below a file")) is None


def test_a_file_is_no_directory(disk: Disk) -> None:
    disk.write("a", b"")
    assert error_of(lambda: disk.files.create(disk.path("a/b"))) == errno.ENOTDIR
    assert error_of(lambda: disk.files.make_directory(disk.path("a/b"))) == errno.ENOTDIR
    assert error_of(lambda: disk.files.open(disk.path("a/b"), writable=True)) == errno.ENOTDIR


# ---- barriers, locks, room -------------------------------------------------------------------------------------------


def test_sync_covers_any_open_file(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 4096)
    mapping = disk.files.map(file)
    mapping.view[:3] = b"abc"
    disk.files.sync(file)
    disk.files.unlink(disk.path("a"))
    disk.files.sync(file)
    disk.files.unmap(mapping)
    disk.files.close(file)


def test_sync_directory_needs_the_directory(disk: Disk) -> None:
    disk.files.sync_directory(disk.root)
    assert error_of(lambda: disk.files.sync_directory(disk.path("no"))) == errno.ENOENT


def test_sync_directory_refuses_a_file(disk: Disk) -> None:
    disk.write("a", b"")
    assert error_of(lambda: disk.files.sync_directory(disk.path("a"))) == errno.ENOTDIR


def test_a_lock_excludes_a_second_open_file_until_it_is_closed(disk: Disk) -> None:
    disk.write("lock", b"lock")
    first = disk.files.open(disk.path("lock"), writable=True)
    second = disk.files.open(disk.path("lock"), writable=True)
    assert disk.files.lock(first)
    assert disk.files.lock(first)
    assert not disk.files.lock(second)
    disk.files.close(disk.files.open(disk.path("lock"), writable=True))  # that of another open file changes nothing
    assert not disk.files.lock(second)
    disk.files.close(first)
    assert disk.files.lock(second)
    disk.files.close(second)


def test_a_lock_needs_a_writable_file(disk: Disk) -> None:
    disk.write("lock", b"lock")
    file = disk.files.open(disk.path("lock"), writable=False)
    assert error_of(lambda: disk.files.lock(file)) == errno.EBADF
    disk.files.close(file)


def test_locks_of_two_files_are_apart(disk: Disk) -> None:
    first, second = disk.files.create(disk.path("a")), disk.files.create(disk.path("b"))
    assert disk.files.lock(first)
    assert disk.files.lock(second)
    disk.files.close(first)
    disk.files.close(second)


def test_a_fresh_disk_has_room(disk: Disk) -> None:
    assert disk.files.free_bytes(disk.root) > 0


def test_free_bytes_needs_the_path(disk: Disk) -> None:
    assert error_of(lambda: disk.files.free_bytes(disk.path("no"))) == errno.ENOENT


def test_a_mark_says_nothing(disk: Disk) -> None:
    disk.files.mark("record")


@pytest.mark.parametrize(
    "call",
    [
        lambda disk: disk.files.create(disk.path("no/a")),
        lambda disk: disk.files.open(disk.path("no"), writable=True),
        lambda disk: disk.files.rename(disk.path("no"), disk.path("a")),
        lambda disk: disk.files.unlink(disk.path("no")),
        lambda disk: disk.files.make_directory(disk.path("no/a")),
        lambda disk: disk.files.list_directory(disk.path("no")),
        lambda disk: disk.files.sync_directory(disk.path("no")),
    ],
)
def test_an_error_carries_the_path(disk: Disk, call: Callable[[Disk], object]) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        call(disk)
    assert str(caught.value.filename).startswith(disk.path("no"))
    assert caught.value.strerror
