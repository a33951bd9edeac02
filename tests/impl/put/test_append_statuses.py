"""Test the rows of docs/statuses.md about puts that reach the log.

They are about the disk, the mapped file, the sync and replicas.
"""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    ScriptedReplicas,
    SetClock,
    caught_up,
    config_of,
    log_bytes,
    open_store,
    put,
    snapshot,
    watermarks,
)
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

APPEND_ROWS = {
    "a new log file is needed, `fast_fail": "`CREATE_MAPEDFILE_FAILED`",
    "a new log file is needed, was not prepared, and cannot": "`CREATE_MAPEDFILE_FAILED`",
    "a new log file is needed, and the allocation service": "`CREATE_MAPEDFILE_FAILED`",
    "the mapped file refuses the bytes": "`UNKNOWN_ERROR`",
    "`SYNC_MASTER` and synchronous store, WAIT not false, and both": "the answer of the replication",
    "synchronous store, WAIT not false, and the sync fails": "`FLUSH_DISK_TIMEOUT`",
    "synchronous store, WAIT not false, and `sync_flush_timeout` ends before the flush does": "`FLUSH_DISK_TIMEOUT`",
    "`SYNC_MASTER`, WAIT not false, and no replica is connected": "`SLAVE_NOT_AVAILABLE`",
    "`SYNC_MASTER`, WAIT not false, and no replica has confirmed": "`FLUSH_SLAVE_TIMEOUT`",
    "synchronous store, WAIT not false": "`PUT_OK`",
    "synchronous store, WAIT=false": "`PUT_OK`",
    "asynchronous store, and the file has a buffer of the transient store pool": "`PUT_OK`",
    "asynchronous store": "`PUT_OK`",
}
"""The begin of each row, and the answer that the tests below expect."""

REPLICATED = replace(config_of(sync=True), broker_role=BrokerRole.SYNC_MASTER, slave_timeout=0)
BATCH = batch_of(b"one", b"two")
EITHER = pytest.mark.parametrize("message", [MESSAGE, BATCH], ids=["message", "batch"])


def floor_of(directory: Path) -> int:
    floor = DurableFloor(OsFiles(), f"{directory}/config/durableFloor", file_bytes=1024).load()
    assert floor is not None
    return floor.offset


def in_log(directory: Path, result: PutResult) -> bool:
    """Return whether the bytes of a result are in its file."""
    data = log_bytes(directory)[f"{result.offset // 1024 * 1024:020d}"]
    return any(data[result.offset % 1024 :][: result.size_bytes])


@EITHER
@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "sync_directory", "map"])
@pytest.mark.parametrize("held", [0, 8])
def test_new_file_that_cannot_be_made_refuses_the_put(
    message: Message | MessageBatch, verb: str, held: int, tmp_path: Path
) -> None:
    files = FaultyFiles()
    ours = open_store(tmp_path / "ours", files=files, clock=SetClock())
    twin = open_store(tmp_path / "twin", clock=SetClock())
    with ours, twin:
        for _ in range(held):
            assert ours.put(MESSAGE) == twin.put(MESSAGE)
        marks = watermarks(caught_up(ours))
        before = snapshot(tmp_path / "ours")
        files.fail(verb, code=errno.ENOSPC, part="commitlog")
        assert put(ours, message) == PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        assert snapshot(tmp_path / "ours") == before
        assert watermarks(ours) == marks
        files.mend()
        assert put(ours, message) == put(twin, message)
        assert ours.read_only_reason is None
    assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")


class Refusing(MappedFile):
    """A mapped file that fails appends while `refuses` is set."""

    refuses = False

    def append(self, record: bytearray) -> None:
        if Refusing.refuses:
            raise OSError(errno.EIO, "refused", self.path)
        super().append(record)


@EITHER
@pytest.mark.parametrize("held", [0, 1, 8])
def test_mapped_file_that_refuses_bytes_costs_the_put_only(
    message: Message | MessageBatch, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = open_store(tmp_path / "ours", clock=SetClock(), parts=Parts({MappedFile: Refusing}))
    twin = open_store(tmp_path / "twin", clock=SetClock())
    with ours, twin:
        for _ in range(held):
            assert ours.put(MESSAGE) == twin.put(MESSAGE)
        monkeypatch.setattr(Refusing, "refuses", True)
        assert put(ours, message) == PutResult(PutStatus.UNKNOWN_ERROR)
        assert ours.max_offset == (1024 if held == 8 else twin.max_offset)
        ours.check()
        monkeypatch.setattr(Refusing, "refuses", False)
        assert put(ours, message) == put(twin, message)
    assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")


@EITHER
def test_failed_sync_is_a_time_out_and_the_end_of_puts(message: Message | MessageBatch, tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files, sync=True) as store:
        first = store.put(MESSAGE)
        files.fail("sync", part="commitlog", times=1)
        late = put(store, message)
        assert (late.status, late.offset) == (PutStatus.FLUSH_DISK_TIMEOUT, first.size_bytes)
        assert in_log(tmp_path, late)
        assert watermarks(store) == (0, late.offset, late.offset, late.offset + late.size_bytes)
        assert [stored.offset for stored in store.messages()] == [0]
        assert store.read_only_reason is not None
        assert put(store, message) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
        assert floor_of(tmp_path) == first.size_bytes


@pytest.mark.parametrize(
    ("replicas", "status"),
    [
        (ScriptedReplicas(acknowledged_offset=None), PutStatus.SLAVE_NOT_AVAILABLE),
        (ScriptedReplicas(confirms=False), PutStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_sync_and_replication_fail_with_the_answer_of_the_replication(
    replicas: ScriptedReplicas, status: PutStatus, tmp_path: Path
) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, config=REPLICATED, files=files, parts=Parts({make_replicas: lambda: replicas})) as store:
        files.fail("sync", part="commitlog", skip=1, times=1)
        result = store.put(MESSAGE)
        assert (result.status, result.offset) == (status, 0)
        assert watermarks(store) == (0, 0, 0, result.size_bytes)
        assert list(store.messages()) == []
        assert store.put(MESSAGE) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)


@EITHER
@pytest.mark.parametrize(("behind", "ok"), [(None, False), (1001, False), (1000, False), (999, True), (0, True)])
@pytest.mark.parametrize("sync", [True, False])
def test_replica_that_is_missing_or_far_behind(
    message: Message | MessageBatch, behind: int | None, ok: bool, sync: bool, tmp_path: Path
) -> None:
    replicas = ScriptedReplicas()
    config = replace(
        config_of(sync=sync), broker_role=BrokerRole.SYNC_MASTER, ha_slave_fallbehind_max=1000, slave_timeout=0
    )
    with open_store(tmp_path, config=config, parts=Parts({make_replicas: lambda: replicas})) as store:
        end = put(store, message).size_bytes * 2
        replicas.acknowledged_offset = None if behind is None else end - behind
        result = put(store, message)
        assert result.status is (PutStatus.PUT_OK if ok else PutStatus.SLAVE_NOT_AVAILABLE)
        assert result.offset + result.size_bytes == end == store.max_offset
        assert store.flushed_offset == (end if sync else 0)
        assert store.get(result.offset).message is not None


@EITHER
@pytest.mark.parametrize("confirms", [False, None])
@pytest.mark.parametrize("sync", [True, False])
def test_replica_that_does_not_confirm_is_a_time_out(
    message: Message | MessageBatch, confirms: bool | None, sync: bool, tmp_path: Path
) -> None:
    replicas = ScriptedReplicas(confirms=confirms)
    config = replace(config_of(sync=sync), broker_role=BrokerRole.SYNC_MASTER, slave_timeout=0)
    with open_store(tmp_path, config=config, parts=Parts({make_replicas: lambda: replicas})) as store:
        result = put(store, message)
        assert (result.status, result.offset) == (PutStatus.FLUSH_SLAVE_TIMEOUT, 0)
        assert store.flushed_offset == (result.size_bytes if sync else 0)
        assert store.get(0).message is not None
        assert store.read_only_reason is None
        assert put(store, message).queue_offset == result.message_count


def put_ok(store: MessageStore, message: Message | MessageBatch) -> PutResult:
    result = put(store, message)
    assert result.status is PutStatus.PUT_OK
    return result


@EITHER
def test_synchronous_put_is_durable_and_raises_the_floor(message: Message | MessageBatch, tmp_path: Path) -> None:
    with open_store(tmp_path, sync=True) as store:
        result = put_ok(store, message)
        assert store.flushed_offset == floor_of(tmp_path) == result.size_bytes == store.max_offset


@EITHER
@pytest.mark.parametrize("properties", ["WAIT\x01false", {"WAIT": "no"}])
def test_synchronous_put_without_waiting_is_in_the_page_cache(
    message: Message | MessageBatch, properties: str | dict[str, str], tmp_path: Path
) -> None:
    runner = HandRunner()
    with open_store(tmp_path, sync=True, parts=Parts({ThreadRunner: runner})) as store:
        result = put_ok(store, replace(message, properties=properties))
        assert in_log(tmp_path, result)
        assert store.flushed_offset == floor_of(tmp_path) == 0
        assert store.get(0).message is not None
        runner.step()
        assert store.flushed_offset == floor_of(tmp_path) == store.max_offset


@EITHER
def test_asynchronous_put_is_in_the_page_cache(message: Message | MessageBatch, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        result = put_ok(store, message)
        assert in_log(tmp_path, result)
        assert store.flushed_offset == floor_of(tmp_path) == 0
        assert store.get(0).message is not None


@EITHER
def test_file_without_a_buffer_is_refused_where_that_is_to_fail_fast(
    message: Message | MessageBatch, tmp_path: Path
) -> None:
    config = replace(
        config_of(),
        transient_store_pool_enable=True,
        transient_store_pool_size=2,
        fast_fail_if_no_buffer_in_store_pool=True,
    )
    runner = HandRunner()
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})) as store:
        for _ in range(2):
            put_ok(store, replace(MESSAGE, body=bytes(850)))
        marks = watermarks(caught_up(store))
        before = snapshot(tmp_path)
        assert put(store, message) == PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        assert (snapshot(tmp_path), watermarks(store)) == (before, marks)
        runner.step("commit")
        assert put_ok(store, message).offset == 2048


@EITHER
def test_file_that_nobody_prepares_in_time_refuses_the_put(message: Message | MessageBatch, tmp_path: Path) -> None:
    runner = HandRunner()
    config = replace(config_of(), mapped_files_ahead=1)
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})) as store:
        driven = runner["allocate"]
        step, driven.step = driven.step, lambda: None  # type: ignore[method-assign]
        marks = watermarks(caught_up(store))
        before = snapshot(tmp_path)
        assert put(store, message) == PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        assert (snapshot(tmp_path), watermarks(store)) == (before, marks)
        driven.step = step  # type: ignore[method-assign]
        runner.step("allocate")
        assert put_ok(store, message).offset == 0


@EITHER
def test_late_flush_is_a_time_out_of_a_put_that_is_durable_later(
    message: Message | MessageBatch, tmp_path: Path
) -> None:
    runner = HandRunner()
    with open_store(tmp_path, sync=True, parts=Parts({ThreadRunner: runner})) as store:
        answer = store.put_async(message)
        runner.step("time-outs", after_ms=4_999)
        assert not answer.done()
        runner.step("time-outs", after_ms=1)
        result = answer.result(timeout=0)
        assert (result.status, result.offset) == (PutStatus.FLUSH_DISK_TIMEOUT, 0)
        assert in_log(tmp_path, result)
        assert store.flushed_offset == 0
        assert store.get(0).message is not None
        runner.step()
        assert store.flushed_offset == floor_of(tmp_path) == store.max_offset == result.size_bytes
        assert put_ok(store, message).queue_offset == result.message_count


@EITHER
def test_put_into_a_buffer_is_served_after_its_commit(message: Message | MessageBatch, tmp_path: Path) -> None:
    runner = HandRunner()
    config = replace(config_of(), transient_store_pool_enable=True, transient_store_pool_size=1)
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})) as store:
        result = put_ok(store, message)
        assert not in_log(tmp_path, result)
        assert watermarks(store) == (0, 0, 0, result.size_bytes)
        assert store.get(0).message is None
        assert list(store.messages()) == []
        runner.step("commit")
        assert in_log(tmp_path, result)
        assert watermarks(store) == (0, 0, result.size_bytes, result.size_bytes)
        assert store.get(0).message is not None
