"""Test one contract for all disks: the real, the recorded and the faked one answer alike.

What only a recorded disk does (a budget, failing syncs, a journal) is tested in test_recording_files.py.
"""

import errno
from collections.abc import Callable

import pytest

from tests.contracts.disks import Disk, error_of
from tornpage.impl.io.files import FileStat

# ---- creating, opening, closing -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("writable", [False, True])
def test_open_refuses_a_directory(disk: Disk, writable: bool) -> None:
    disk.files.make_directory(disk.path("a"))
    assert error_of(lambda: disk.files.open(disk.path("a"), writable=writable)) == errno.EISDIR


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


# ---- content ------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", [bytes, memoryview, lambda data: memoryview(bytearray(data))])
def test_pwrite_takes_bytes_and_views_of_bytes(disk: Disk, kind: Callable[[bytes], bytes | memoryview]) -> None:
    file = disk.files.create(disk.path("a"))
    data = kind(b"0123456789")
    disk.files.pwrite(file, data[2:6], 1)
    assert disk.files.read(file, 0, 100) == b"\x002345"
    disk.files.close(file)


def test_pwrite_holds_its_buffer_no_longer_than_it_writes(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    buffer = bytearray(b"abc")
    with memoryview(buffer) as view, view[1:] as part:
        disk.files.pwrite(file, part, 0)
    buffer.append(0)  # raises BufferError while a view is left
    disk.files.close(file)
    assert disk.content("a") == b"bc"


def test_pwrite_over_the_end_keeps_what_lies_before(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"abcdef", 0)
    disk.files.pwrite(file, b"XYZ", 5)
    assert disk.files.read(file, 0, 100) == b"abcdeXYZ"
    disk.files.close(file)


def test_pwrite_of_several_pages_at_once(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    data = bytes(number % 251 for number in range(3 * 4096 + 17))
    disk.files.pwrite(file, data, 4000)
    assert disk.files.read(file, 4000, 1 << 20) == data
    disk.files.close(file)


@pytest.mark.parametrize(
    ("offset", "size_bytes", "expected"), [(0, 3, b"abc"), (1, 9, b"bc"), (3, 1, b""), (99, 1, b""), (1, 0, b"")]
)
def test_read_is_short_at_the_end(disk: Disk, offset: int, size_bytes: int, expected: bytes) -> None:
    disk.write("a", b"abc")
    file = disk.files.open(disk.path("a"), writable=False)
    assert disk.files.read(file, offset, size_bytes) == expected
    disk.files.close(file)


def test_what_was_written_lies_in_the_stretches_that_may_hold_something(disk: Disk) -> None:
    size_bytes = 1 << 20
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"\0", size_bytes - 1)
    disk.files.pwrite(file, b"abc", 300_000)
    for position in (0, 299_999, 300_001, 300_003, size_bytes - 1):
        covered = bytearray(size_bytes)
        at = position
        while (stretch := disk.files.next_data(file, at)) is not None:
            start, end = stretch
            assert at <= start < end <= size_bytes
            covered[start:end] = b"\1" * (end - start)
            at = end
        content = disk.content("a")
        assert all(covered[n] for n in range(position, size_bytes) if content[n])
    assert disk.files.next_data(file, size_bytes) is None
    disk.files.close(file)


def test_zero_overwrites_a_range_only(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"x" * 10_000, 0)
    disk.files.zero(file, 10, 9_000)
    assert disk.files.read(file, 0, 20_000) == b"x" * 10 + bytes(9_000) + b"x" * 990
    disk.files.close(file)


def test_zero_of_nothing_changes_nothing(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.pwrite(file, b"abc", 0)
    disk.files.zero(file, 1, 0)
    assert disk.files.read(file, 0, 10) == b"abc"
    disk.files.close(file)


def test_zero_of_more_than_it_writes_at_once(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    size_bytes = (2 << 20) + 3
    disk.files.pwrite(file, b"x" * (size_bytes + 2), 0)
    disk.files.zero(file, 1, size_bytes)
    assert disk.files.read(file, 0, size_bytes + 2) == b"x" + bytes(size_bytes) + b"x"
    disk.files.close(file)


# ---- mappings -----------------------------------------------------------------------------------------------------


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


def test_populating_changes_no_byte_and_goes_beyond_no_end(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 3 * 4096)
    mapping = disk.files.map(file)
    mapping.view[4096:4099] = b"abc"
    before = bytes(mapping.view)
    disk.files.populate(mapping, 4096, 1 << 20)
    disk.files.populate(mapping, 0, 1)
    assert bytes(mapping.view) == before
    mapping.view[0] = 1
    disk.files.unmap(mapping)
    disk.files.close(file)
    assert disk.content("a") == b"\x01" + before[1:]


def test_locking_and_advising_change_no_byte_and_may_be_repeated(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    disk.files.allocate(file, 3 * 4096 + 5)
    mapping = disk.files.map(file)
    mapping.view[4096:4099] = b"abc"
    before = bytes(mapping.view)
    disk.files.unlock_memory(mapping)
    assert disk.files.lock_memory(mapping) in (True, False)
    assert disk.files.lock_memory(mapping) in (True, False)
    disk.files.advise_will_need(mapping)
    assert bytes(mapping.view) == before
    disk.files.unlock_memory(mapping)
    disk.files.unlock_memory(mapping)
    disk.files.lock_memory(mapping)
    mapping.view[0] = 1
    disk.files.unmap(mapping)
    disk.files.close(file)
    assert disk.content("a") == b"\x01" + before[1:]


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
    disk.files.populate(mapping, 0, 4096)
    disk.files.advise_will_need(mapping)
    assert disk.files.lock_memory(mapping)
    disk.files.unlock_memory(mapping)
    disk.files.unmap(mapping)
    disk.files.close(file)
