"""Test the time-outs of a put: a silent disk, a silent replica, and both."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, ScriptedReplicas, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.io.files import OpenFile
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.put.time_outs import Awaited, TimeOuts
from tornpage.impl.service.runner import Runner, Service, ThreadRunner
from tornpage.impl.store import MessageStore

OK, DISK, SLAVE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT, PutStatus.FLUSH_SLAVE_TIMEOUT
PATIENCE_S = 30


def sync_config(**changes: int) -> MessageStoreConfig:
    return replace(config_of(sync=True), **changes)  # type: ignore[arg-type]


def opened(
    directory: Path,
    runner: HandRunner,
    *,
    config: MessageStoreConfig | None = None,
    replicas: ScriptedReplicas | None = None,
) -> MessageStore:
    parts = Parts({ThreadRunner: runner})
    if replicas is not None:
        parts = parts.replacing({make_replicas: lambda: replicas})
    return open_store(directory, config=config or sync_config(), parts=parts)


# ---- the service -------------------------------------------------------------------------------------------------


def awaited(answers: list[PutStatus], *, deadline_ms: int, timeout_status: PutStatus = DISK) -> Awaited:
    return Awaited(answers.append, end_offset=0, deadline_ms=deadline_ms, timeout_status=timeout_status)


def test_service_wants_to_run_at_the_earliest_deadline_of_all() -> None:
    answers: list[PutStatus] = []
    time_outs = TimeOuts()
    assert time_outs.step(0) is None
    assert time_outs.watch(awaited(answers, deadline_ms=5_000), 5_000)
    assert not time_outs.watch(awaited(answers, deadline_ms=5_001), 5_000)
    assert time_outs.watch(awaited(answers, deadline_ms=3_000, timeout_status=SLAVE), 3_000)
    assert time_outs.step(2_999) == 3_000
    assert answers == []
    assert time_outs.step(3_000) == 5_000
    assert answers == [SLAVE]
    assert time_outs.step(5_000) == 5_001
    assert time_outs.step(9_000) is None
    assert answers == [SLAVE, DISK, DISK]


def test_what_was_answered_is_not_waited_for() -> None:
    answers: list[PutStatus] = []
    time_outs = TimeOuts()
    first = awaited(answers, deadline_ms=10)
    time_outs.watch(first, 5_000)
    first.answer(OK)
    first.answer(DISK)
    assert time_outs.step(0) is None
    assert answers == [OK]


def test_answered_ones_do_not_pile_up() -> None:
    time_outs = TimeOuts()
    for deadline_ms in range(1_000):
        each = awaited([], deadline_ms=deadline_ms)
        time_outs.watch(each, 5_000)
        each.answer(OK)
    assert sum(map(len, time_outs._watched.values())) == 1


# ---- the disk ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [5_000, 7])
def test_silent_disk_is_a_time_out_at_the_deadline_and_not_before(timeout_ms: int, tmp_path: Path) -> None:
    runner = HandRunner(now_ms=100)
    with opened(tmp_path, runner, config=sync_config(sync_flush_timeout=timeout_ms)) as store:
        answer = store.put_async(MESSAGE)
        assert runner["time-outs"].wakes == 1
        assert runner.step("time-outs", after_ms=timeout_ms - 1) == 100 + timeout_ms
        assert not answer.done()
        runner.step("time-outs", after_ms=1)
        assert answer.result(timeout=0).status is DISK
        assert answer.result(timeout=0).offset == 0


def test_record_that_timed_out_becomes_durable_with_the_next_flush(tmp_path: Path) -> None:
    runner = HandRunner()
    with opened(tmp_path, runner) as store:
        late = store.put_async(MESSAGE)
        runner.step("time-outs", after_ms=5_000)
        assert (late.result(timeout=0).status, store.flushed_offset) == (DISK, 0)
        assert store.get(0).message is not None
        runner.step()
        assert store.flushed_offset == late.result().size_bytes
        assert late.result().status is DISK
        assert store.put(MESSAGE).queue_offset == 1
        assert store.read_only_reason is None


@pytest.mark.parametrize("first", ["group-commit", "time-outs"])
def test_first_answer_counts(first: str, tmp_path: Path) -> None:
    runner = HandRunner()
    with opened(tmp_path, runner) as store:
        answer = store.put_async(MESSAGE)
        runner.now_ms = 5_000
        runner.step(first)
        runner.step("time-outs" if first == "group-commit" else "group-commit")
        assert answer.result(timeout=0).status is (OK if first == "group-commit" else DISK)


def test_each_put_has_its_own_deadline(tmp_path: Path) -> None:
    runner = HandRunner()
    with opened(tmp_path, runner) as store:
        answers = [store.put_async(MESSAGE)]
        runner.now_ms = 10
        answers.append(store.put_async(MESSAGE))
        assert runner.step("time-outs", after_ms=4_990) == 5_010
        assert [answer.done() for answer in answers] == [True, False]


def test_put_without_waiting_is_watched_by_nobody(tmp_path: Path) -> None:
    runner = HandRunner()
    with opened(tmp_path, runner) as store:
        assert store.put(replace(MESSAGE, properties="WAIT\x01false")).status is OK
        assert runner["group-commit"].wakes == 1
        assert runner["time-outs"].wakes == 0
        runner.step()
        assert store.flushed_offset == store.max_offset > 0


def threads_but(runner: HandRunner, *names: str) -> Callable[[Service], Runner]:
    """Return thread runners, with hand runners for the named services."""
    return lambda service: runner(service) if service.name in names else ThreadRunner(service)


def test_put_that_waits_while_the_sync_hangs_is_answered_by_the_time_outs(tmp_path: Path) -> None:
    hangs, mended = threading.Event(), threading.Event()

    class HangingFiles(FaultyFiles):
        """A disk whose sync of the log returns only after a repair."""

        armed = False

        def sync(self, file: OpenFile) -> None:
            if self.armed:
                hangs.set()
                assert mended.wait(PATIENCE_S)
            super().sync(file)

    files, runner = HangingFiles(), HandRunner()
    parts = Parts({ThreadRunner: threads_but(runner, "time-outs", "allocate", "flush-queues")})
    with open_store(tmp_path, config=sync_config(), files=files, parts=parts) as store:
        first = store.put(MESSAGE)
        files.armed = True
        results: list[PutResult] = []
        putter = threading.Thread(target=lambda: results.append(store.put(MESSAGE)), daemon=True)
        putter.start()
        assert hangs.wait(PATIENCE_S)
        runner.step("time-outs", after_ms=5_000)
        putter.join(PATIENCE_S)
        assert [result.status for result in results] == [DISK]
        assert store.flushed_offset == first.size_bytes
        mended.set()
        assert store.flush().durable
        assert store.flushed_offset == store.max_offset


# ---- the replica -------------------------------------------------------------------------------------------------


def master(*, sync: bool) -> MessageStoreConfig:
    return replace(config_of(sync=sync), broker_role=BrokerRole.SYNC_MASTER, slave_timeout=3_000)


@pytest.mark.parametrize("sync", [False, True])
def test_silent_replica_is_a_time_out_at_the_deadline(sync: bool, tmp_path: Path) -> None:
    runner, replicas = HandRunner(), ScriptedReplicas(confirms=None)
    with opened(tmp_path, runner, config=master(sync=sync), replicas=replicas) as store:
        answer = store.put_async(MESSAGE)
        runner.step()
        runner.step("time-outs", after_ms=2_999)
        assert not answer.done()
        runner.step("time-outs", after_ms=1)
        assert answer.result(timeout=0).status is SLAVE
        replicas.answer()
        assert answer.result(timeout=0).status is SLAVE


def test_replica_that_confirms_late_hides_no_disk_that_is_late(tmp_path: Path) -> None:
    runner, replicas = HandRunner(), ScriptedReplicas(confirms=None)
    with opened(tmp_path, runner, config=master(sync=True), replicas=replicas) as store:
        answer = store.put_async(MESSAGE)
        replicas.answer()
        runner.step("time-outs", after_ms=4_999)
        assert not answer.done()
        runner.step("time-outs", after_ms=1)
        assert answer.result(timeout=0).status is DISK


def test_replica_hides_the_disk_when_both_are_late(tmp_path: Path) -> None:
    runner, replicas = HandRunner(), ScriptedReplicas(confirms=None)
    with opened(tmp_path, runner, config=master(sync=True), replicas=replicas) as store:
        answer = store.put_async(MESSAGE)
        runner.step("time-outs", after_ms=60_000)
        assert answer.result(timeout=0).status is SLAVE
