"""Test the close of a store with all services: order, last answers, remaining files."""

import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, config_of, log_bytes, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PATIENCE_S = 30
BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def opened(
    directory: Path, config: MessageStoreConfig, files: FaultyFiles | None = None
) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    return open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner})), runner


def pooled(**changes: Any) -> MessageStoreConfig:
    return replace(config_of(), transient_store_pool_enable=True, mapped_files_ahead=1, **changes)


def in_short(files: FaultyFiles, root: Path) -> list[tuple[str, str]]:
    """Return the calls that change a file, with paths below the store."""
    changing = ("pwrite", "sync", "unlink", "sync_directory")
    calls = [(verb, str(Path(path).relative_to(root))) for verb, path in files.calls if verb in changing]
    return [(verb, path.replace("0" * 16, "…")) for verb, path in calls]


def test_order_is_prepared_files_commit_flush_queues_checkpoint_floor_marker(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, pooled(), files)
    for _ in range(2):
        store.put(BIG)
        runner.step("allocate")
    files.calls.clear()
    store.close()
    assert in_short(files, tmp_path) == [
        ("unlink", "commitlog/…2048"),
        ("sync_directory", "commitlog"),
        ("pwrite", "commitlog/…0000"),
        ("pwrite", "commitlog/…1024"),
        ("sync", "commitlog/…0000"),
        ("sync", "commitlog/…1024"),
        ("pwrite", "config/durableFloor"),
        ("sync", "consumequeue.unfinished/file.part"),
        ("sync", "consumequeue/TopicTest/1/…0000"),
        ("sync_directory", "consumequeue/TopicTest/1"),
        ("sync_directory", "consumequeue/TopicTest"),
        ("sync_directory", "consumequeue"),
        ("sync_directory", "."),
        ("pwrite", "config/derivedFloor.new"),
        ("sync", "config/derivedFloor.new"),
        ("sync_directory", "config"),
        ("pwrite", "checkpoint"),
        ("sync", "checkpoint"),
        ("sync", "config/durableFloor"),
        ("unlink", "abort"),
        ("sync_directory", "."),
    ]
    assert runner.services
    assert all(service.stopped for service in runner.services.values())


@pytest.mark.parametrize("verb", ["unlink", "sync_directory"])
def test_prepared_file_that_stays_is_no_reason_for_an_unclean_exit(verb: str, tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, replace(config_of(), mapped_files_ahead=2), files)
    store.put(BIG)
    for _ in range(2):
        runner.step("allocate")
    files.fail(verb, part="commitlog")
    store.close()
    assert store.read_only_reason is None
    assert not (tmp_path / "abort").exists()
    files.mend()
    with open_store(tmp_path) as found:
        assert found.findings == ()
        assert len(list(found.messages())) == 1
        assert found.put(BIG).offset == 1024


@pytest.mark.parametrize("ready", [0, 1, 2])
def test_prepared_files_after_a_kill_are_no_finding(ready: int, tmp_path: Path) -> None:
    store, runner = opened(tmp_path / "live", replace(config_of(), mapped_files_ahead=2))
    with store:
        results = [store.put(BIG) for _ in range(2)]
        for _ in range(ready):
            runner.step("allocate")
        names = list(log_bytes(tmp_path / "live"))
        (tmp_path / "killed" / "commitlog").mkdir(parents=True)
        for name, data in log_bytes(tmp_path / "live").items():
            (tmp_path / "killed" / "commitlog" / name).write_bytes(data)
        (tmp_path / "killed" / "abort").touch()
    assert len(names) == 2 + ready
    with open_store(tmp_path / "killed") as found:
        assert found.findings == ()
        assert [stored.offset for stored in found.messages()] == [result.offset for result in results]
        assert len(log_bytes(tmp_path / "killed")) == 2


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_who_waits_is_answered_by_what_the_last_flush_did(sync: bool, fails: bool, tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _ = opened(tmp_path, config_of(sync=sync), files)
    answers = [store.put_async(BIG) for _ in range(3)]
    if fails:
        files.fail("sync", part=f"{1024:020d}")
    store.close()
    expected = [PutStatus.PUT_OK] * 3
    if sync and fails:
        expected[1:] = [PutStatus.FLUSH_DISK_TIMEOUT] * 2
    assert [answer.result(timeout=0).status for answer in answers] == expected
    assert (tmp_path / "abort").exists() is fails


def test_no_service_does_anything_afterwards(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, pooled(flush_commit_log_timed=False), files)
    store.put(BIG)
    store.close()
    files.calls.clear()
    for name in runner.services:
        runner.step(name, after_ms=60_000)
    assert files.calls == []


def test_close_waits_for_the_put_that_waits_for_its_file(tmp_path: Path) -> None:
    inside, go = threading.Event(), threading.Event()

    class SlowFiles(FaultyFiles):
        """Reserving the blocks of a file takes until the test allows it."""

        def allocate(self, file: Any, size_bytes: int) -> None:
            if "commitlog" in file.path:
                inside.set()
                assert go.wait(PATIENCE_S)
            super().allocate(file, size_bytes)

    runner = HandRunner()
    parts = Parts({ThreadRunner: lambda each: ThreadRunner(each) if each.name == "allocate" else runner(each)})
    config = replace(config_of(), mapped_files_ahead=1)
    store = open_store(tmp_path, config=config, files=SlowFiles(), parts=parts)
    results: list[PutResult] = []
    putter = threading.Thread(target=lambda: results.append(store.put(MESSAGE)), daemon=True)
    putter.start()
    assert inside.wait(PATIENCE_S)
    closer = threading.Thread(target=store.close, daemon=True)
    closer.start()
    go.set()
    for thread in (putter, closer):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert [result.status for result in results] == [PutStatus.PUT_OK]
    assert not (tmp_path / "abort").exists()
    with open_store(tmp_path) as found:
        assert len(list(found.messages())) == 1


def test_put_from_a_callback_of_a_closing_store_is_refused(tmp_path: Path) -> None:
    store, _ = opened(tmp_path, config_of(sync=True))
    late: list[PutResult] = []

    def put_again(done: Future[PutResult]) -> None:
        late.append(store.put(MESSAGE))

    store.put_async(MESSAGE).add_done_callback(put_again)
    store.close()
    assert [result.status for result in late] == [PutStatus.SERVICE_NOT_AVAILABLE]
