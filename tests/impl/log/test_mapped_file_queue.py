"""Test the sequence of log files: rolling, finding, flushing in order, dropping the end."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.impl.stores import FaultyFiles, queue_of
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import file_name
from tornpage.impl.log.mapped_file_queue import MappedFileQueue


@pytest.fixture
def files() -> FaultyFiles:
    """Return a disk that fails on request."""
    return FaultyFiles()


@pytest.fixture
def make_queue(tmp_path: Path, files: FaultyFiles) -> Iterator[Callable[[], MappedFileQueue]]:
    """Return a maker of queues of 256-byte files in one directory."""
    made: list[MappedFileQueue] = []

    def make() -> MappedFileQueue:
        made.append(queue_of(tmp_path, files))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def append_file(queue: MappedFileQueue) -> MappedFile:
    """Continue in the next file."""
    file = queue.next_file()
    queue.add(file)
    return file


def fill(queue: MappedFileQueue, count: int) -> None:
    """Append `count` full files."""
    for _ in range(count):
        file = append_file(queue)
        file.append(bytearray(100))
        file.append_blank()
    queue.check()


@pytest.mark.parametrize(
    ("offset", "name"), [(0, "0" * 20), (1 << 30, "00000000001073741824"), ((1 << 63) - 1, "09223372036854775807")]
)
def test_file_name_has_twenty_digits(offset: int, name: str) -> None:
    assert file_name(offset) == name


def test_empty_queue(make_queue: Callable[[], MappedFileQueue]) -> None:
    queue = make_queue()
    assert (queue.min_offset, queue.flushed_where, queue.max_offset) == (0, 0, 0)
    assert queue.find(0) is None
    assert queue.flush() == 0
    queue.check()


def test_files_are_contiguous(make_queue: Callable[[], MappedFileQueue], tmp_path: Path) -> None:
    queue = make_queue()
    fill(queue, 3)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [file_name(0), file_name(256), file_name(512)]
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [256] * 3
    assert (queue.min_offset, queue.max_offset) == (0, 768)


def test_new_file_is_durable_in_size_and_name_before_use(
    make_queue: Callable[[], MappedFileQueue], files: FaultyFiles, tmp_path: Path
) -> None:
    append_file(make_queue())
    path, folder = str(tmp_path / file_name(0)), f"{tmp_path}.unfinished"
    part = f"{folder}/file.part"
    assert [call for call in files.calls if call[0] != "stat"] == [
        ("disk_usage", str(tmp_path)),
        ("make_directory", folder),
        ("create", part),
        ("allocate", part),
        ("sync", part),
        ("rename", path),
        ("open", path),
        ("sync_directory", str(tmp_path)),
        ("map", path),
    ]


@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "sync_directory", "map"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_refused_file_leaves_the_directory_as_it_was(
    make_queue: Callable[[], MappedFileQueue], files: FaultyFiles, tmp_path: Path, verb: str, code: int
) -> None:
    queue = make_queue()
    fill(queue, 1)
    files.fail(verb, code=code)
    with pytest.raises(OSError) as refused:  # noqa: PT011 - the code is checked below
        append_file(queue)
    assert refused.value.errno == code
    assert [path.name for path in tmp_path.iterdir()] == [file_name(0)]
    assert queue.max_offset == 256
    queue.check()
    files.mend()
    assert append_file(queue).base_offset == 256


def test_find_gives_the_file_that_holds_an_offset(make_queue: Callable[[], MappedFileQueue]) -> None:
    queue = make_queue()
    fill(queue, 3)
    for offset, base in ((0, 0), (255, 0), (256, 256), (767, 512)):
        found = queue.find(offset)
        assert found is not None
        assert found.base_offset == base
    assert queue.find(768) is None
    assert queue.find(-1) is None


def test_adopted_files_count_as_written_until_recovery(
    make_queue: Callable[[], MappedFileQueue], tmp_path: Path
) -> None:
    first = make_queue()
    fill(first, 3)
    first.close()
    queue = make_queue()
    for base in (256, 512):
        queue.adopt(str(tmp_path / file_name(base)), writable=True)
    assert (queue.min_offset, queue.max_offset) == (256, 768)
    assert queue.find(0) is None
    found = queue.find(300)
    assert found is not None
    assert found.base_offset == 256
    queue.flushed_where = queue.max_offset
    assert append_file(queue).base_offset == 768


def test_adopting_a_missing_file_raises_and_adopts_nothing(
    make_queue: Callable[[], MappedFileQueue], tmp_path: Path
) -> None:
    queue = make_queue()
    with pytest.raises(FileNotFoundError):
        queue.adopt(str(tmp_path / file_name(0)), writable=True)
    assert queue.mapped == []


def test_flush_goes_front_to_back_and_stops_at_the_first_failure(
    make_queue: Callable[[], MappedFileQueue], files: FaultyFiles
) -> None:
    queue = make_queue()
    fill(queue, 3)
    files.calls.clear()
    files.fail("sync", part=file_name(256))
    with pytest.raises(OSError, match="Input/output"):
        queue.flush()
    assert [path[-3:] for _, path in files.calls] == ["000", "256"]
    assert queue.flushed_where == 256
    queue.check()
    files.mend()
    with pytest.raises(OSError, match="Input/output"):
        queue.flush()
    assert queue.flushed_where == 256


def test_flush_reaches_the_end_and_syncs_only_what_is_new(
    make_queue: Callable[[], MappedFileQueue], files: FaultyFiles
) -> None:
    queue = make_queue()
    fill(queue, 2)
    assert queue.flush() == 512
    assert queue.flush() == 512
    append_file(queue).append(bytearray(50))
    files.calls.clear()
    assert queue.flush() == 562
    assert [(verb, path[-3:]) for verb, path in files.calls] == [("sync", "512")]


def test_drop_behind_goes_last_first_each_durably(
    make_queue: Callable[[], MappedFileQueue], files: FaultyFiles, tmp_path: Path
) -> None:
    queue = make_queue()
    fill(queue, 4)
    files.calls.clear()
    queue.drop_after(1)
    assert files.calls == [
        ("unlink", str(tmp_path / file_name(768))),
        ("sync_directory", str(tmp_path)),
        ("unlink", str(tmp_path / file_name(512))),
        ("sync_directory", str(tmp_path)),
    ]
    assert queue.max_offset == 512
    queue.drop_after(-1)
    assert list(tmp_path.iterdir()) == []


def test_check_refuses_a_gap(make_queue: Callable[[], MappedFileQueue], tmp_path: Path) -> None:
    first = make_queue()
    fill(first, 3)
    queue = make_queue()
    for base in (0, 512):
        queue.adopt(str(tmp_path / file_name(base)), writable=True)
    with pytest.raises(AssertionError):
        queue.check()
