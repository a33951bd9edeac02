"""Test flush and close of a store: what they report as durable."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, caught_up, chain_of, open_store, snapshot
from tornpage.impl.config.policy import FlushDiskType, FlushPolicy
from tornpage.impl.errors import StoreClosed
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.store import FlushResult

# ---- flush and close ---------------------------------------------------------------------------------------------


def test_async_put_answers_before_the_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        store.put(MESSAGE)
        files.calls.clear()
        put = store.put(MESSAGE)
        assert "sync" not in [verb for verb, _ in files.calls]
        assert store.flushed_offset == 0
        assert store.flush() == FlushResult(True, put.offset + put.size_bytes)
        assert ("sync", f"{tmp_path}/commitlog/{0:020d}") in files.calls
        store.check()


def test_sync_put_answers_after_the_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, sync=True, files=files) as store:
        store.put(MESSAGE)
        files.calls.clear()
        put = store.put(MESSAGE)
        assert [verb for verb, path in files.calls if "commitlog" in path] == ["sync"]
        assert store.flushed_offset == put.offset + put.size_bytes


@pytest.mark.parametrize(
    ("properties", "waits"),
    [("WAIT\x01false", False), ({"WAIT": "false"}, False), ("WAIT\x01true", True), ("A\x01b", True), ("", True)],
)
def test_wait_false_answers_before_the_disk(tmp_path: Path, properties: str | dict[str, str], waits: bool) -> None:
    with open_store(tmp_path, sync=True) as store:
        put = store.put(Message("T", b"", properties=properties))
        assert put.status is PutStatus.PUT_OK
        assert store.flushed_offset == (store.max_offset if waits else 0)
        store.put(Message("T", b""))
        assert store.flushed_offset == store.max_offset


@pytest.mark.parametrize("sync", [True, False])
def test_flush_policy(sync: bool) -> None:
    policy = FlushPolicy(FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH)
    assert policy.answers_after_flush(wait_store_msg_ok=True) is sync
    assert policy.answers_after_flush(wait_store_msg_ok=False) is False


def test_clean_close_keeps_everything_and_removes_the_marker(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for _ in range(12):
        store.put(MESSAGE)
    assert (tmp_path / "abort").exists()
    store.close()
    assert not (tmp_path / "abort").exists()
    assert store.read_only_reason is None
    with open_store(tmp_path) as store:
        assert store.findings == ()
        assert len(list(store.messages())) == 12
        assert store.flushed_offset == store.max_offset


def test_close_makes_durable_first_and_removes_the_marker_last(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = open_store(tmp_path, files=files)
    store.put(MESSAGE)
    caught_up(store)
    files.calls.clear()
    store.close()
    calls = [call for call in files.calls if call[0] in ("sync", "unlink", "sync_directory")]
    queues = [call for call in calls if "consumequeue" in call[1]]
    steps = [(verb, Path(path).name) for verb, path in calls if (verb, path) not in queues]
    assert queues
    assert calls[1 : 1 + len(queues)] == queues
    assert steps == [
        ("sync", f"{0:020d}"),
        ("sync_directory", tmp_path.name),
        ("sync", "derivedFloor.new"),
        ("sync_directory", "config"),
        ("sync", "checkpoint"),
        ("sync", "durableFloor"),
        ("unlink", "abort"),
        ("sync_directory", tmp_path.name),
    ]


def test_marker_is_durable_before_the_first_write(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        store.put(MESSAGE)
        made = files.calls.index(("create", f"{tmp_path}/abort"))
        durable = files.calls.index(("sync_directory", str(tmp_path)), made)
        assert durable < files.calls.index(("create", f"{tmp_path}/commitlog.unfinished/file.part"))


def test_close_is_idempotent(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(MESSAGE)
    store.close()
    before = snapshot(tmp_path)
    with open_store(tmp_path) as other:
        store.close()
        assert other.put(MESSAGE).stored
        other.close()
    store.close()
    assert snapshot(tmp_path).keys() == before.keys()


def test_verbs_after_close(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(MESSAGE)
    store.close()
    before = snapshot(tmp_path)
    assert store.put(MESSAGE) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    verbs: list[Callable[[], object]] = [lambda: store.get(0), store.flush, lambda: list(store.messages())]
    for verb in verbs:
        with pytest.raises(StoreClosed, match="open it again") as refused:
            verb()
        assert str(tmp_path) in chain_of(refused.value)
    assert snapshot(tmp_path) == before


def test_context_manager_closes_when_its_body_raises(tmp_path: Path) -> None:
    def put_and_fail() -> None:
        with open_store(tmp_path) as store:
            store.put(MESSAGE)
            raise KeyError

    with pytest.raises(KeyError):
        put_and_fail()
    assert not (tmp_path / "abort").exists()
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 1


def test_no_mapping_or_descriptor_is_left(tmp_path: Path) -> None:
    def held() -> int:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        descriptors = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if
                       os.path.lexists(f"/proc/self/fd/{fd}")]  # fmt: skip
        return maps.count(str(tmp_path)) + sum(str(tmp_path) in path for path in descriptors)

    store = open_store(tmp_path)
    for _ in range(30):
        store.put(MESSAGE)
    assert list(store.messages())
    assert held() > 0
    store.close()
    assert held() == 0


def test_no_space_refusals_leave_no_descriptor(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        files.fail("allocate", code=errno.ENOSPC)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            assert store.put(MESSAGE).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert len(os.listdir("/proc/self/fd")) == before
