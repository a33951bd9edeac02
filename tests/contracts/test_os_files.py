"""Test the real disk alone: limits, full devices, links, and locked memory."""

import errno
import os
import resource
import threading
from pathlib import Path

import pytest

from tests.contracts.disks import error_of
from tests.support.forked import answer_of_child, forbid_locked_memory
from tests.support.smaps import kib_of
from tornpage.impl.io.files import FileStat
from tornpage.impl.io.os_files import OsFiles

FULL = "/dev/full"
LIMIT_BYTES = 5_000


@pytest.fixture
def files() -> OsFiles:
    return OsFiles()


# ---- writes that fail --------------------------------------------------------------------------------------------


def test_a_short_write_goes_on_until_the_system_says_why(files: OsFiles, tmp_path: Path) -> None:
    """The first write of 10,000 bytes stops at the limit and answers 5,000.

    Only the next one fails.
    """
    path = str(tmp_path / "a")

    def write_too_much() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))  # Python ignores SIGXFSZ
        file = files.create(path)
        with pytest.raises(OSError, match="too large") as caught:
            files.pwrite(file, memoryview(bytes(range(250)) * 40), 0)
        return f"{caught.value.errno} {caught.value.filename}"

    assert answer_of_child(write_too_much) == f"{errno.EFBIG} {path}"
    assert Path(path).read_bytes() == bytes(range(250)) * 20


def test_an_allocation_over_the_limit_names_the_file(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a")

    def allocate_too_much() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
        with pytest.raises(OSError, match="too large") as caught:
            files.allocate(files.create(path), LIMIT_BYTES + 1)
        return f"{caught.value.errno} {caught.value.filename}"

    assert answer_of_child(allocate_too_much) == f"{errno.EFBIG} {path}"
    assert Path(path).stat().st_size == 0


def test_a_full_disk_is_an_error_that_names_the_file(files: OsFiles) -> None:
    file = files.open(FULL, writable=True)
    with pytest.raises(OSError, match=FULL) as caught:
        files.pwrite(file, b"abc", 0)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, FULL)
    files.close(file)


def test_a_sync_that_fails_names_the_file(files: OsFiles) -> None:
    file = files.open(FULL, writable=True)  # a device without a disk cannot be synced
    with pytest.raises(OSError, match=FULL) as caught:
        files.sync(file)
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, FULL)
    files.close(file)


def test_calls_on_a_closed_file_name_it(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a")

    def use_after_close() -> str:
        file = files.create(path)
        files.close(file)
        calls = [
            lambda: files.read(file, 0, 1),
            lambda: files.pwrite(file, b"x", 0),
            lambda: files.sync(file),
            lambda: files.map(file),
            lambda: files.lock(file),
        ]
        errors = [error_of(call) for call in calls]
        files.close(file)  # again, as after an interrupt
        return str(errors)

    assert answer_of_child(use_after_close) == str([errno.EBADF] * 5)


# ---- names ---------------------------------------------------------------------------------------------------------


def test_stat_follows_links_and_knows_neither_file_nor_directory(files: OsFiles, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("no")
    os.mkfifo(tmp_path / "pipe")
    assert files.stat(f"{tmp_path}/link") == FileStat("file", 3)
    assert files.stat(f"{tmp_path}/dangling") is None
    assert files.stat(f"{tmp_path}/pipe") == FileStat("other", 0)


# ---- memory --------------------------------------------------------------------------------------------------------


def test_locked_pages_are_in_memory_until_they_are_unlocked(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    file = files.create(path)
    files.allocate(file, 64 << 10)
    mapping = files.map(file)
    assert kib_of(path, "Rss", "Locked") == [0, 0]
    if not files.lock_memory(mapping):
        pytest.skip("this machine locks no 64 KiB")
    assert kib_of(path, "Rss", "Locked") == [64, 64]
    files.unlock_memory(mapping)
    assert kib_of(path, "Locked") == [0]
    files.unmap(mapping)
    files.close(file)


def test_a_refused_lock_is_one_warning_and_no_error(
    files: OsFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tornpage.impl.io.memory._FIRST_REFUSAL", threading.Lock()
    )  # a lock may have failed in this process before
    file = files.create(str(tmp_path / "a"))
    files.allocate(file, 64 << 10)

    def lock_beyond_the_limit() -> str:
        forbid_locked_memory(16 << 10)
        mapping = files.map(file)
        answers = [files.lock_memory(mapping) for _ in range(3)]
        mapping.view[:3] = b"abc"
        files.unlock_memory(mapping)
        return "\n".join([str(answers), *(record.getMessage() for record in caplog.records)])

    answers, *warnings = answer_of_child(lock_beyond_the_limit).split("\n")
    assert answers == "[False, False, False]"
    (warning,) = warnings
    assert warning.startswith("memory_not_locked needed_bytes=65536 limit_bytes=16384 error='Cannot allocate memory'")
    assert "ulimit -l" in warning
    assert "LimitMEMLOCK" in warning
    assert files.read(file, 0, 3) == b"abc"
    files.close(file)
