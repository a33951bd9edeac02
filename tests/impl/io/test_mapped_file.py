"""Test one mapped file: order of watermarks, references, poison after a failed sync."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.stores import FaultyFiles
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles


@pytest.fixture
def files() -> FaultyFiles:
    """Return a disk that fails on request."""
    return FaultyFiles()


@pytest.fixture
def mapped(tmp_path: Path, files: FaultyFiles) -> Iterator[MappedFile]:
    """Map a file of 512 bytes that begins at physical offset 1024."""
    file = files.create(str(tmp_path / "00000000000000001024"))
    files.allocate(file, 512)
    mapped = MappedFile(files, file, base_offset=1024, written_position=0)
    yield mapped
    mapped.close()


def positions(mapped: MappedFile) -> tuple[int, int, int]:
    mapped.check()
    return mapped.flushed_position, mapped.committed_position, mapped.written_position


def test_new_file_is_empty(mapped: MappedFile) -> None:
    assert positions(mapped) == (0, 0, 0)
    assert (mapped.base_offset, mapped.size_bytes, mapped.end_offset) == (1024, 512, 1536)
    assert mapped.path.endswith("/00000000000000001024")


def test_append_moves_written_and_flush_moves_flushed(mapped: MappedFile) -> None:
    mapped.append(bytearray(b"a" * 100))
    assert positions(mapped) == (0, 100, 100)
    mapped.flush()
    assert positions(mapped) == (100, 100, 100)
    mapped.append(bytearray(b"b" * 50))
    assert positions(mapped) == (100, 150, 150)
    assert bytes(mapped.view) == b"a" * 100 + b"b" * 50 + bytes(362)


def test_written_is_published_after_the_bytes(mapped: MappedFile, files: FaultyFiles) -> None:
    seen = []
    files.on_mark = lambda label: seen.append((label, bytes(mapped.view[:3]), mapped.written_position))
    mapped.append(bytearray(b"abc"))
    assert seen == [("record", b"abc", 0)]
    assert mapped.written_position == 3


def test_blank_fills_the_file(mapped: MappedFile) -> None:
    mapped.append(bytearray(b"a" * 200))
    mapped.append_blank()
    assert positions(mapped) == (0, 512, 512)
    assert bytes(mapped.view[200:]).hex() == "00000138cbd43194" + "00" * 304


def test_flush_without_news_does_not_sync(mapped: MappedFile, files: FaultyFiles) -> None:
    mapped.flush()
    assert [verb for verb, _ in files.calls if verb == "sync"] == []


def test_flush_covers_what_was_written_before_it(mapped: MappedFile, files: FaultyFiles) -> None:
    """A sync does not cover a record that arrives during it."""
    mapped.append(bytearray(b"a" * 100))

    def append_meanwhile(_: str) -> None:
        files.faults.clear()
        mapped.append(bytearray(b"b" * 100))

    files.faults["sync"] = append_meanwhile
    mapped.flush()
    assert positions(mapped) == (100, 200, 200)
    mapped.flush()
    assert positions(mapped) == (200, 200, 200)


def test_failed_sync_moves_nothing_and_poisons_for_good(mapped: MappedFile, files: FaultyFiles) -> None:
    mapped.append(bytearray(b"a" * 10))
    mapped.flush()
    mapped.append(bytearray(b"b" * 10))
    files.fail("sync", times=1)
    with pytest.raises(OSError, match="Input/output error") as first:
        mapped.flush()
    assert positions(mapped) == (10, 20, 20)
    assert mapped.failure is first.value
    files.mend()
    with pytest.raises(OSError, match="Input/output error"):
        mapped.flush()
    assert positions(mapped) == (10, 20, 20)


def test_held_file_survives_close_until_release(mapped: MappedFile) -> None:
    mapped.append(bytearray(b"still here"))
    assert mapped.hold()
    assert mapped.hold()
    mapped.close()
    assert bytes(mapped.view[:10]) == b"still here"
    mapped.release()
    assert bytes(mapped.view[:10]) == b"still here"
    mapped.release()
    with pytest.raises(ValueError, match="released"):
        mapped.view[0]
    assert not mapped.hold()


def test_closed_file_cannot_be_held(mapped: MappedFile) -> None:
    mapped.close()
    assert not mapped.hold()


def test_file_that_is_held_by_a_reader_takes_further_readers_only_while_somebody_holds_it(mapped: MappedFile) -> None:
    assert mapped.hold()
    mapped.close()
    mapped.release()
    assert not mapped.hold()


def test_zero_erases_a_range(mapped: MappedFile) -> None:
    mapped.append(bytearray(b"x" * 300))
    mapped.zero(100, 412)
    assert bytes(mapped.view) == b"x" * 100 + bytes(412)


def test_check_refuses_watermarks_out_of_order(mapped: MappedFile) -> None:
    mapped.flushed_position = 1
    with pytest.raises(AssertionError):
        mapped.check()
    mapped.flushed_position = 0
    mapped.written_position = 513
    with pytest.raises(AssertionError):
        mapped.check()


def test_closing_a_mapped_file_twice_leaves_it_to_its_reader(tmp_path: Path) -> None:
    """The second close gave back the reference of the reader."""
    files = OsFiles()
    file = files.create(str(tmp_path / f"{0:020d}"))
    files.allocate(file, 512)
    mapped = MappedFile(files, file, base_offset=0, written_position=0)
    assert mapped.hold()
    mapped.close()
    mapped.close()
    assert bytes(mapped.view[:1]) == b"\0"
    mapped.release()


@pytest.mark.parametrize("size_bytes", [40, 412, 1000])
def test_what_a_refused_append_left_is_erased_and_nothing_else(mapped: MappedFile, size_bytes: int) -> None:
    mapped.append(bytearray(b"a" * 100))
    mapped.view[100:140] = b"x" * 40
    mapped.erase_failed_append(size_bytes)
    assert positions(mapped) == (0, 100, 100)
    assert bytes(mapped.view) == b"a" * 100 + bytes(412)
