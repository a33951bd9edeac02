"""Test one contract for all disks: names, barriers, locks and room."""

import errno
from collections.abc import Callable

import pytest

from tests.contracts.disks import Disk, error_of
from tornpage.impl.io.files import FileStat, OpenFile

# ---- names --------------------------------------------------------------------------------------------------------


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


def test_rename_keeps_the_renamed_file_open(disk: Disk) -> None:
    disk.write("old", b"old")
    file = disk.files.create(disk.path("new"))
    disk.files.rename(disk.path("new"), disk.path("old"))
    disk.files.pwrite(file, b"late", 0)
    disk.files.close(file)
    assert disk.content("old") == b"late"


def test_rename_of_a_name_below_a_file_is_refused(disk: Disk) -> None:
    disk.write("a", b"abc")
    assert error_of(lambda: disk.files.rename(disk.path("a/b"), disk.path("c"))) == errno.ENOTDIR
    assert disk.files.list_directory(disk.root) == ["a"]


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


def test_unlink_below_a_file_is_refused(disk: Disk) -> None:
    disk.write("a", b"abc")
    assert error_of(lambda: disk.files.unlink(disk.path("a/b"))) == errno.ENOTDIR
    assert disk.content("a") == b"abc"


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


# ---- barriers, locks, room ----------------------------------------------------------------------------------------


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


def test_sync_works_through_a_file_opened_for_reading(disk: Disk) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    disk.files.sync(file)
    disk.files.close(file)
    assert disk.content("a") == b"abc"


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
    disk.files.close(disk.files.open(disk.path("lock"), writable=True))  # the lock of another open file changes nothing
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


def test_disk_usage_says_what_is_free_of_how_much(disk: Disk) -> None:
    usage = disk.files.disk_usage(disk.root)
    assert 0 < usage.free_bytes <= usage.total_bytes


def test_disk_usage_answers_for_a_file_too(disk: Disk) -> None:
    path = disk.write("a", b"abc")
    assert disk.files.disk_usage(path).total_bytes == disk.files.disk_usage(disk.root).total_bytes


def test_disk_usage_needs_the_path(disk: Disk) -> None:
    disk.write("a", b"")
    assert error_of(lambda: disk.files.disk_usage(disk.path("no"))) == errno.ENOENT
    assert error_of(lambda: disk.files.disk_usage(disk.path("a/b"))) == errno.ENOTDIR


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
        lambda disk: disk.files.disk_usage(disk.path("no")),
    ],
)
def test_an_error_carries_the_path(disk: Disk, call: Callable[[Disk], object]) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        call(disk)
    assert str(caught.value.filename).startswith(disk.path("no"))
    assert caught.value.strerror


@pytest.mark.parametrize(
    "call",
    [
        lambda disk, file: disk.files.pwrite(file, b"x", 0),
        lambda disk, file: disk.files.zero(file, 0, 1),
        lambda disk, file: disk.files.allocate(file, 100),
        lambda disk, file: disk.files.lock(file),
    ],
    ids=["pwrite", "zero", "allocate", "lock"],
)
def test_an_error_of_an_open_file_carries_the_path(disk: Disk, call: Callable[[Disk, OpenFile], object]) -> None:
    file = disk.files.open(disk.write("a", b"abc"), writable=False)
    with pytest.raises(OSError, match="a") as caught:
        call(disk, file)
    assert (caught.value.errno, caught.value.filename) == (errno.EBADF, disk.path("a"))
    assert caught.value.strerror
    disk.files.close(file)
    assert disk.content("a") == b"abc"


@pytest.mark.parametrize(
    "call",
    [
        lambda disk: disk.files.create(disk.path("a")),
        lambda disk: disk.files.make_directory(disk.path("a")),
        lambda disk: disk.files.unlink(disk.path("a")),
        lambda disk: disk.files.open(disk.path("a"), writable=False),
        lambda disk: disk.files.open(disk.path("a"), writable=True),
    ],
    ids=["create", "make_directory", "unlink", "open", "open for writing"],
)
def test_an_error_about_a_directory_carries_the_path(disk: Disk, call: Callable[[Disk], object]) -> None:
    disk.files.make_directory(disk.path("a"))
    with pytest.raises(OSError, match="a") as caught:
        call(disk)
    assert caught.value.filename == disk.path("a")
    assert caught.value.strerror
