"""Test files made ahead in a store: puts without a file, and files left by a close."""

import errno
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    config_of,
    log_bytes,
    open_store,
)
from tornpage.impl.config.policy import WarmUp
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import file_name
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def created(files: FaultyFiles) -> list[int]:
    """Return the offsets of the log files made, in order."""
    return [int(path.rpartition("/")[2]) for verb, path in files.calls if verb == "rename" and "commitlog/" in path]


def opened(directory: Path, *, files: FaultyFiles, **changes: Any) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    config = replace(config_of(), **{"mapped_files_ahead": 1} | changes)
    return open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner})), runner


@pytest.mark.parametrize("files_ahead", [0, 1, 2])
def test_clean_close_leaves_only_files_of_the_log(files_ahead: int, tmp_path: Path) -> None:
    store, runner = opened(tmp_path, files=FaultyFiles(), mapped_files_ahead=files_ahead)
    with store:
        assert list(log_bytes(tmp_path)) == []
        for _ in range(3):
            store.put(BIG)
            for _ in range(files_ahead):
                runner.step("allocate")
        assert len(log_bytes(tmp_path)) == 3 + files_ahead
        assert store.max_offset < 3 * 1024
    assert len(log_bytes(tmp_path)) == 3
    with open_store(tmp_path) as found:
        assert found.findings == ()
        assert len(list(found.messages())) == 3


def test_put_that_gets_no_file_writes_nothing_and_the_next_one_asks_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, files=files)
    with store:
        first = store.put(BIG)
        files.fail("allocate", code=errno.ENOSPC, times=2)
        runner.step("allocate")
        assert store.put(BIG).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert store.max_offset == first.size_bytes
        assert len(log_bytes(tmp_path)) == 1
        assert store.put(MESSAGE).offset == first.size_bytes
        assert store.put(BIG).offset == 1024


def test_file_whose_blank_failed_is_kept_for_the_next_put(tmp_path: Path) -> None:
    class RefusesABlank(MappedFile):
        """The first blank fails half-way."""

        refusals = 1

        def append_blank(self) -> None:
            if RefusesABlank.refusals:
                RefusesABlank.refusals -= 1
                self.target[self.written_position : self.written_position + 4] = b"\xff" * 4
                raise OSError(errno.EIO, "refused")
            super().append_blank()

    files = FaultyFiles()
    parts = Parts({ThreadRunner: HandRunner(), MappedFile: RefusesABlank})
    with open_store(tmp_path / "ours", files=files, parts=parts) as store:
        first = store.put(BIG)
        assert store.put(BIG).status is PutStatus.UNKNOWN_ERROR
        assert store.max_offset == first.size_bytes
        store.check()
        assert created(files) == [0, 1024]
        assert store.put(BIG).offset == 1024
        assert created(files) == [0, 1024]
    with open_store(tmp_path / "twin") as twin:
        for _ in range(2):
            twin.put(BIG)
    assert [len(each) for each in log_bytes(tmp_path / "ours").values()] == [1024, 1024]
    assert log_bytes(tmp_path / "ours")[file_name(0)][:4] == log_bytes(tmp_path / "twin")[file_name(0)][:4]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("warm_up", list(WarmUp), ids=lambda kind: kind.name)
def test_warm_up_changes_no_byte_of_the_log(warm_up: WarmUp, sync: bool, tmp_path: Path) -> None:
    for name, kind in (("ours", warm_up), ("twin", WarmUp.NONE)):
        config = replace(config_of(sync=sync, file_bytes=8192), mapped_files_ahead=1, warm_up=kind)
        with open_store(tmp_path / name, config=config, parts=Parts({ThreadRunner: HandRunner()})) as store:
            for _ in range(20):
                assert store.put(BIG).status is PutStatus.PUT_OK
    assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")


def test_close_waits_for_the_file_that_is_being_made(tmp_path: Path) -> None:
    """With a real thread, stop arrives while the next file is made ahead.

    The file is finished and then removed.
    """
    inside, go = threading.Event(), threading.Event()

    class SlowFiles(FaultyFiles):
        """Making the second file takes until the test lets it go on."""

        def sync_directory(self, path: str) -> None:
            if "commitlog" in path and len(created(self)) == 2 and not go.is_set():
                inside.set()
                assert go.wait(30)
            super().sync_directory(path)

    runner, files = HandRunner(), SlowFiles()
    parts = Parts({ThreadRunner: lambda each: ThreadRunner(each) if each.name == "allocate" else runner(each)})
    store = open_store(tmp_path, config=replace(config_of(), mapped_files_ahead=1), files=files, parts=parts)
    store.put(MESSAGE)
    assert inside.wait(30)
    closer = threading.Thread(target=store.close)
    closer.start()
    go.set()
    closer.join(30)
    assert not closer.is_alive()
    assert list(log_bytes(tmp_path)) == [file_name(0)]


# ---- the first file --------------------------------------------------------------------------------------------------


def log_files_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("commitlog/*"))


def test_open_makes_the_first_file_on_request(tmp_path: Path) -> None:
    config = replace(config_of(), first_file_at_open=True)
    with open_store(tmp_path, config=config) as store:
        assert log_files_in(tmp_path) == ["0" * 20]
        assert store.max_offset == 0
        assert store.put(MESSAGE).offset == 0
        assert log_files_in(tmp_path) == ["0" * 20]
    with open_store(tmp_path, config=config) as store:
        assert store.get(0).message is not None


def test_first_file_without_a_put_is_removed(tmp_path: Path) -> None:
    with open_store(tmp_path, config=replace(config_of(), first_file_at_open=True)):
        pass
    assert log_files_in(tmp_path) == []
    with open_store(tmp_path, config=config_of()) as store:
        assert log_files_in(tmp_path) == []
        assert store.read_only_reason is None


def test_slow_log_file_says_what_it_waited_for(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    times = iter((0, 400, 700))
    monkeypatch.setattr("tornpage.impl.log.log_files._now_ms", lambda: next(times))
    with open_store(tmp_path, config=config_of()) as store:
        assert store.put(MESSAGE).stored
    assert "slow_log_file elapsed_ms=700" in caplog.text
    assert "allocation_ms=400 name_sync_ms=300" in caplog.text
