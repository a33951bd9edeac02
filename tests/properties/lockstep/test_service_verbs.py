"""Test the comparison of service steps: right stores pass, and each mistake is noticed."""

import errno
from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.dispatch.queue_flush import FlushConsumeQueues
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.flushing import CommitRealTime, FlushRealTime
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.time_outs import TimeOuts
from tornpage.model.operations import (
    Close,
    Crash,
    DiskUsed,
    FailSync,
    FailWrite,
    Flush,
    Get,
    Open,
    Operation,
    Put,
    ReplicaIs,
    ServiceName,
    Step,
)
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

ASYNC = Settings(file_bytes=16384)
SYNC = replace(ASYNC, sync_flush=True)
MASTER = replace(SYNC, role="SYNC_MASTER")
POOL = replace(ASYNC, pool_buffers=1)
AHEAD = replace(ASYNC, file_bytes=4096, files_ahead=1)
LATER = Put(later=True)
HALF = Put(body_bytes=2000)
PAGES = Put(body_bytes=9000)


def step(service: ServiceName, after_ms: int = 0) -> Step:
    return Step(service=service, after_ms=after_ms)


def run(tracker: DirtyTracker, settings: Settings, *operations: Operation) -> Lockstep:
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return trial


# ---- a right store ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "operations", "effect"),
    [
        (ASYNC, (Put(), step("flush"), Put(), step("flush", 500)), "left_alone_by_the_page_rule"),
        (
            replace(ASYNC, least_pages=2),
            (Put(), step("flush"), PAGES, step("flush", 500), Crash()),
            "flushed_by_the_page_rule",
        ),
        (ASYNC, (Put(), FailSync(), step("flush"), Put(), step("flush"), Close(), Open()), "sync_failed_under_flush"),
        (SYNC, (LATER, LATER, step("group-commit"), Crash()), "answered_by_group_commit"),
        (SYNC, (LATER, Put(), Crash()), "answered_with_another"),
        (SYNC, (LATER, step("time-outs", 4_999), step("time-outs", 1), step("group-commit"), Crash()), "timed_out"),
        (SYNC, (LATER, Close(), Open()), "answered_by_close"),
        (MASTER, (ReplicaIs("hangs"), LATER, Step(), step("time-outs", 3_000), Put(), LATER, Close()), "timed_out"),
        (SYNC, (LATER, FailSync(), Close(), Open()), "sync_failed_under_close()"),
        (POOL, (Put(), Get(), step("commit"), Get(), Put(), Crash(kill=True)), "committed"),
        (
            replace(POOL, least_pages=2),
            (Put(), step("commit"), PAGES, step("commit"), Crash(kill=True)),
            "committed_by_the_page_rule",
        ),
        (POOL, (Put(), FailWrite(), step("commit"), Crash(kill=True, back=1)), "commits_failed"),
        (POOL, (PAGES, Put(), FailWrite(), Flush(), Put(), Flush(), Crash()), "answered_PUT_OK"),
        (POOL, (Put(), FailWrite(), Close(), Open(), Put()), "unclean_for_a_commit"),
        (POOL, (PAGES, PAGES, step("commit"), PAGES, Crash(kill=True)), "files_without_a_buffer"),
        (
            replace(POOL, fast_fail=True, pool_buffers=2),
            (PAGES, PAGES, PAGES, step("commit"), PAGES),
            "fast_failed",
        ),
        (AHEAD, (HALF, step("allocate"), HALF, HALF, Crash(kill=True)), "prepared_files_taken"),
        (AHEAD, (Put(), step("allocate"), Crash(), Put(), step("allocate"), Close(), Open()), "files_prepared"),
        (AHEAD, (Put(), DiskUsed(100), step("allocate"), DiskUsed(0), step("allocate", 999)), "preparations_failed"),
        (ASYNC, (Put(), Flush(), step("flush-queues"), Put(), step("flush-queues", 60_000)), "checkpoints_written"),
    ],
)
def test_a_right_store_passes(
    tracker: DirtyTracker, settings: Settings, operations: tuple[Operation, ...], effect: str
) -> None:
    trial = run(tracker, settings, *operations)
    assert trial.performed[-1].op == operations[-1].op
    assert trial.coverage[effect] > 0


def test_a_service_that_a_store_has_not_takes_no_step(tracker: DirtyTracker) -> None:
    trial = run(tracker, ASYNC, Put(), step("group-commit"), step("commit"), step("allocate"))
    assert trial.store.flushed_offset == 0
    assert len(trial.spans) == 5, "each is an operation like any other"


def test_time_passes_in_a_closed_store_too(tracker: DirtyTracker) -> None:
    trial = run(tracker, ASYNC, Close())
    before_ms = trial.environment.now_ms
    trial.run(step("flush", 500))
    assert trial.environment.now_ms == before_ms + 500


def test_half_a_commit_is_in_the_page_cache_and_whole_records_of_it_may_survive(tracker: DirtyTracker) -> None:
    trial = run(tracker, POOL, *[Put()] * 5, FailWrite(), step("commit"))
    assert (trial.store.committed_offset, len(trial.log.records)) == (0, 5)
    trial.run(Crash(kill=True))
    assert len(trial.log.records) == 2


# ---- wrong stores ----------------------------------------------------------------------------------------------------


def spins(self: Any, now_ms: int) -> int:
    return now_ms


def sleeps(self: Any, now_ms: int) -> None:
    """No next round."""


def raises(self: Any, now_ms: int) -> None:
    raise RuntimeError("out of order")


def the_disk_fails(self: Any) -> None:
    raise OSError(errno.EIO, "no")


@pytest.mark.parametrize(
    ("part", "method", "wrong", "settings", "operations", "contract", "sentence"),
    [
        (GroupCommit, "step", spins, SYNC, (step("group-commit"),), 16, "spins"),
        (TimeOuts, "step", spins, SYNC, (step("time-outs"),), 16, "spins"),
        (FlushRealTime, "step", spins, ASYNC, (step("flush"),), 16, "spins"),
        (FlushRealTime, "step", sleeps, ASYNC, (step("flush"),), 16, "sleeps for too long"),
        (CommitRealTime, "step", sleeps, POOL, (step("commit"),), 16, "sleeps for too long"),
        (FlushConsumeQueues, "step", sleeps, ASYNC, (step("flush-queues"),), 16, "sleeps for too long"),
        (AllocateMappedFiles, "step", spins, AHEAD, (step("allocate"),), 16, "spins"),
        (FlushRealTime, "step", raises, ASYNC, (step("flush"),), 8, "step raises RuntimeError"),
        (TimeOuts, "watch", lambda self, request, timeout_ms: False, SYNC, (LATER,), 16, "no wake-up"),
        (MappedFile, "commit", the_disk_fails, POOL, (Put(), step("commit")), 9, "watermarks"),
    ],
)
def test_a_wrong_service_is_noticed_by_its_last_operation(
    tracker: DirtyTracker,
    monkeypatch: pytest.MonkeyPatch,
    part: type,
    method: str,
    wrong: Any,
    settings: Settings,
    operations: tuple[Operation, ...],
    contract: int,
    sentence: str,
) -> None:
    run(tracker, settings, *operations)
    monkeypatch.setattr(part, method, wrong)
    trial = run(tracker, settings, *operations[:-1])
    with pytest.raises(GuaranteeBroken, match=sentence) as caught:
        trial.run(operations[-1])
    assert caught.value.contract == contract


def test_a_store_that_lacks_a_service_is_noticed(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlushRealTime, "name", "flash")
    with pytest.raises(GuaranteeBroken, match="no wake-up is pending") as caught:
        run(tracker, ASYNC, Put())
    assert caught.value.contract == 16


def test_a_buffer_that_is_the_page_cache_is_noticed(tracker: DirtyTracker) -> None:
    """Bytes that were not committed are in the file."""

    class WritesThrough(MappedFile):
        def append(self, record: bytearray) -> None:
            start = self.written_position
            super().append(record)
            self.view[start : start + len(record)] = record

    trial = lockstep_of(POOL, tracker=tracker, parts=Parts({MappedFile: WritesThrough}))
    with pytest.raises(GuaranteeBroken, match="other bytes than were put"):
        trial.run(Put())
