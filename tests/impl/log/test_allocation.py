"""Test files made ahead: order, waiting puts, failed files and left-over files."""

import errno
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    ScriptedDisk,
    maker_of,
)
from tornpage.impl.config.policy import AllocationPolicy
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_files import file_name

FILE_BYTES = 256
BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def service_of(directory: Path, files: FaultyFiles, *, files_ahead: int = 1) -> tuple[AllocateMappedFiles, HandRunner]:
    runner = HandRunner()
    policy = AllocationPolicy(files_ahead=files_ahead)
    maker = maker_of(directory, files, file_bytes=FILE_BYTES, files_ahead=files_ahead)
    return AllocateMappedFiles(maker, policy=policy, runner=runner), runner


def names(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in directory.iterdir())


def created(files: FaultyFiles) -> list[int]:
    """Return the offsets of the log files made, in order."""
    return [int(path.rpartition("/")[2]) for verb, path in files.calls if verb == "rename"]


# ---- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files_ahead", [0, 1, 2, 3])
def test_who_takes_a_file_asks_for_those_behind_it_and_a_step_makes_one(files_ahead: int, tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files, files_ahead=files_ahead)
    assert service.take(0).base_offset == 0
    assert created(files) == [0]
    for ahead in range(files_ahead):
        assert runner.step("allocate") == (None if ahead == files_ahead - 1 else 0)
        assert created(files) == [FILE_BYTES * number for number in range(ahead + 2)]
    assert runner.step("allocate") is None
    assert len(created(files)) == files_ahead + 1
    service.close()


def test_each_file_is_durable_before_the_next_begins(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files, files_ahead=2)
    service.take(0).close()
    for _ in range(2):
        runner.step("allocate")
    verbs = [verb for verb, _ in files.calls]
    folder = ["disk_usage", "stat", "stat", "make_directory"]
    made = ["create", "allocate", "sync", "rename", "open", "sync_directory", "map"]
    assert verbs == folder + made + ["disk_usage", "stat", *made] * 2
    service.close()


def test_prepared_file_costs_neither_a_sync_nor_room(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files)
    service.take(0).close()
    runner.step("allocate")
    files.calls.clear()
    for verb in ("disk_usage", "create", "sync"):
        files.fail(verb)
    assert service.take(FILE_BYTES).base_offset == FILE_BYTES
    assert files.calls == []
    service.close()


def test_taking_wakes_the_service_only_while_something_is_missing(tmp_path: Path) -> None:
    service, runner = service_of(tmp_path, FaultyFiles())
    service.take(0).close()
    assert runner["allocate"].wakes == 2
    service.close()
    on_demand, runner = service_of(tmp_path, FaultyFiles(), files_ahead=0)
    on_demand.take(FILE_BYTES).close()
    assert runner["allocate"].wakes == 0
    on_demand.close()


# ---- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files_ahead", [0, 1])
@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "sync_directory", "map"])
def test_refusal_is_told_at_once_and_leaves_nothing(verb: str, files_ahead: int, tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files, files_ahead=files_ahead)
    files.fail(verb, code=errno.ENOSPC, times=1)
    with pytest.raises(OSError, match="No space left") as refused:
        service.take(0)
    assert refused.value.errno == errno.ENOSPC
    assert (names(tmp_path), runner.now_ms) == ([], 0)
    assert service.take(0).base_offset == 0
    service.close()


def test_failed_request_is_tried_again_by_the_service_after_a_second(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files)
    service.take(0).close()
    files.fail("create", times=2)
    assert runner.step("allocate", after_ms=10) == 1_010
    assert runner.step("allocate", after_ms=999) == 1_010
    assert len([verb for verb, _ in files.calls if verb == "create"]) == 2
    assert runner.step("allocate", after_ms=1) == 2_010
    assert runner.step("allocate", after_ms=1_000) is None
    assert names(tmp_path) == [0, FILE_BYTES]
    service.close()


def test_failure_ahead_costs_no_put_whose_own_file_is_ready(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files)
    service.take(0).close()
    runner.step("allocate")
    files.fail("create")
    assert service.take(FILE_BYTES).base_offset == FILE_BYTES
    runner.step("allocate")
    with pytest.raises(OSError, match="Input/output"):
        service.take(2 * FILE_BYTES)
    files.mend()
    assert service.take(2 * FILE_BYTES).base_offset == 2 * FILE_BYTES, "the wait ends before the second has passed"
    service.close()


def test_an_error_that_is_not_the_disks_is_told_to_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure was reported at once as a file that was not ready after five seconds."""
    service, runner = service_of(tmp_path, FaultyFiles())

    def fails(base_offset: int) -> NoReturn:
        raise ValueError("mmap length is greater than file size")

    monkeypatch.setattr(service._maker, "make", fails)
    wait = runner["allocate"].wait

    def logged(answer: Future[None], *, timeout_ms: int) -> bool:
        with suppress(ValueError):  # as a thread does
            wait(answer, timeout_ms=timeout_ms)
        return answer.done()

    monkeypatch.setattr(runner["allocate"], "wait", logged)
    with pytest.raises(OSError, match="ValueError: mmap length is greater than file size") as refused:
        service.take(0)
    assert refused.value.errno == errno.EIO
    assert refused.value.filename.endswith(file_name(0))
    monkeypatch.undo()
    assert service.take(0).base_offset == 0
    service.close()


def test_file_that_is_not_ready_in_time_is_refused_and_the_request_stays(tmp_path: Path) -> None:
    service, runner = service_of(tmp_path, FaultyFiles())
    runner["allocate"].hangs = True
    with pytest.raises(OSError, match="not ready after 5000 ms") as refused:
        service.take(0)
    assert refused.value.errno == errno.ETIMEDOUT
    assert runner.now_ms == 5_000
    runner["allocate"].hangs = False
    runner.step("allocate")
    assert names(tmp_path) == [0]
    assert service.take(0).base_offset == 0
    service.close()


def test_full_disk_is_refused_with_a_remedy_before_anything_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = ScriptedDisk()
    service, _ = service_of(tmp_path, disk)
    disk.usage = DiskUsage(total_bytes=1 << 30, free_bytes=FILE_BYTES - 1)
    with pytest.raises(OSError, match="room") as refused:
        service.take(0)
    assert refused.value.errno == errno.ENOSPC
    assert created(disk) == []
    assert f"needed_bytes={FILE_BYTES} free_bytes={FILE_BYTES - 1} remedy='" in caplog.text
    disk.usage = DiskUsage(total_bytes=1 << 30, free_bytes=FILE_BYTES)
    assert service.take(0).base_offset == 0
    service.close()


# ---- close -------------------------------------------------------------------------------------------------------


def test_close_removes_what_nobody_took_newest_first_each_durably(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files, files_ahead=3)
    taken = service.take(0)
    for _ in range(3):
        runner.step("allocate")
    files.calls.clear()
    service.close()
    removed = [tmp_path / file_name(FILE_BYTES * number) for number in (3, 2, 1)]
    assert files.calls == [
        call for path in removed for call in (("unlink", str(path)), ("sync_directory", str(tmp_path)))
    ]
    assert runner["allocate"].stopped
    assert names(tmp_path) == [0]
    taken.close()


def test_close_goes_on_when_a_file_cannot_be_removed(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, runner = service_of(tmp_path, files, files_ahead=2)
    service.take(0).close()
    for _ in range(2):
        runner.step("allocate")
    files.fail("unlink", part=file_name(2 * FILE_BYTES))
    service.close()
    assert 0 in names(tmp_path)


def test_file_that_was_given_back_is_taken_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    service, _ = service_of(tmp_path, files, files_ahead=0)
    file = service.take(0)
    service.give_back(file)
    files.calls.clear()
    assert service.take(0) is file
    assert files.calls == []
    service.give_back(file)
    service.close()
    assert names(tmp_path) == []
