"""Test that a second opener is refused before it changes anything (contract 14)."""

import errno
import fcntl
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, chain_of, open_store, snapshot
from tornpage.impl.errors import BadDirectory, StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.io.store_lock import StoreLock, make_directories
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner

SECOND_OPENER = """
import sys
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.store import MessageStore
try:
    MessageStore.open(
        sys.argv[1], MessageStoreConfig(mapped_file_size_commit_log=1024), files=OsFiles(), clock=lambda: 1
    )
except StoreInUse as refused:
    print(refused)
    sys.exit(7)
"""


def test_second_opener_in_this_process_changes_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path, parts=Parts({ThreadRunner: HandRunner()})) as store:
        store.put(MESSAGE)
        before = snapshot(tmp_path)
        with pytest.raises(StoreInUse) as refused:
            open_store(tmp_path)
        assert str(tmp_path) in chain_of(refused.value)
        assert "close it first" in chain_of(refused.value)
        assert snapshot(tmp_path) == before
        assert store.put(MESSAGE).stored
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 2


def test_second_opener_in_another_process_changes_nothing(tmp_path: Path, repository: Path) -> None:
    with open_store(tmp_path, parts=Parts({ThreadRunner: HandRunner()})) as store:
        store.put(MESSAGE)
        before = snapshot(tmp_path)
        second = subprocess.run(
            [sys.executable, "-c", SECOND_OPENER, str(tmp_path)], cwd=repository, capture_output=True, text=True
        )
        assert (second.returncode, second.stderr) == (7, "")
        assert str(tmp_path) in second.stdout
        assert snapshot(tmp_path) == before


def test_lock_is_taken_before_anything_is_read_or_written(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    files = FaultyFiles()
    open_store(tmp_path, files=files).close()
    until = files.calls.index(("lock", f"{tmp_path}/lock"))
    allowed = {("stat", str(tmp_path)), ("stat", f"{tmp_path}/lock"), ("open", f"{tmp_path}/lock")}
    allowed.add(("sync_directory", str(tmp_path.parent)))  # changes nothing
    assert set(files.calls[:until]) <= allowed


def test_lock_of_a_new_store_is_taken_before_anything_else_is_made(tmp_path: Path) -> None:
    files = FaultyFiles()
    open_store(tmp_path / "new", files=files).close()
    until = files.calls.index(("lock", f"{tmp_path}/new/lock"))
    made = [path for verb, path in files.calls[:until] if verb in ("create", "make_directory", "pwrite")]
    assert made == [f"{tmp_path}/new", f"{tmp_path}/new/lock"]


def test_closing_lets_the_next_opener_in(tmp_path: Path) -> None:
    for _ in range(3):
        open_store(tmp_path).close()
    assert (tmp_path / "lock").read_bytes() == b"lock"


def test_a_failed_open_lets_the_next_opener_in(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    files = FaultyFiles()
    files.fail("create", part="abort")
    with pytest.raises(BadDirectory):
        open_store(tmp_path, files=files)
    open_store(tmp_path).close()


def test_lock_is_the_byte_that_rocketmq_locks(tmp_path: Path) -> None:
    """Another process sees a write lock on byte 0 only."""
    lock = StoreLock(OsFiles(), str(tmp_path))
    lock.acquire()
    with open(tmp_path / "lock", "rb") as looked_at:
        for start, length, taken in ((0, 1, True), (1, 0, False)):
            question = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, start, length, 0)
            answer = struct.unpack("hhqqi4x", fcntl.fcntl(looked_at, fcntl.F_OFD_GETLK, question))
            assert (answer[0] != fcntl.F_UNLCK) is taken
    lock.release()
    lock.release()
    again = StoreLock(OsFiles(), str(tmp_path))
    again.acquire()
    again.release()


def test_lock_file_of_a_killed_creator_is_completed(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    open_store(tmp_path).close()
    assert (tmp_path / "lock").read_bytes() == b"lock"


def test_directories_are_made_durable_from_the_top(tmp_path: Path) -> None:
    files = FaultyFiles()
    make_directories(files, f"{tmp_path}/a/b")
    steps = [call for call in files.calls if call[0] != "stat" and call[1].startswith(str(tmp_path))]
    assert steps == [
        ("make_directory", f"{tmp_path}/a"),
        ("sync_directory", str(tmp_path)),
        ("make_directory", f"{tmp_path}/a/b"),
        ("sync_directory", f"{tmp_path}/a"),
    ]


def test_file_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"precious")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadDirectory, match="name a directory") as refused:
            open_store(path)
        assert str(tmp_path / "file") in chain_of(refused.value)
    assert snapshot(tmp_path) == {"file": b"precious"}


def test_an_open_that_fails_at_the_lock_file_lets_the_next_one_in(tmp_path: Path) -> None:
    """The lock was kept and not released when writing the four bytes of the lock file failed."""
    files = FaultyFiles()
    files.fail("pwrite", code=errno.ENOSPC, part="/lock", times=1)
    with pytest.raises(BadDirectory, match="No space left"):
        open_store(tmp_path, files=files)
    with open_store(tmp_path, files=files) as store:
        assert store.put(MESSAGE).stored


def test_a_directory_that_is_there_is_made_durable_too(tmp_path: Path) -> None:
    """An opener before may have been killed between making and syncing it."""
    files = FaultyFiles()
    make_directories(files, str(tmp_path))
    assert files.calls == [("stat", str(tmp_path)), ("sync_directory", str(tmp_path.parent))]


def test_a_parent_that_may_not_be_read_is_no_obstacle(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fail("sync_directory", code=errno.EACCES)
    make_directories(files, str(tmp_path))
