"""Run real threads against every service at once: no message is lost, doubled or early.

No thread waits forever.
"""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, SetClock, open_store
from tests.support.impl.stress import Crowd, TroubledFiles, reopened_bodies, small_config
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import PutStatus
from tornpage.impl.store import MessageStore

LATE = PutStatus.FLUSH_DISK_TIMEOUT
CONFIGS = {
    "plain": small_config(sync=False, pool_buffers=0),
    "woken": small_config(sync=False, pool_buffers=0, flush_commit_log_timed=False),
    "sync": small_config(sync=True, pool_buffers=0),
    "pool": small_config(sync=False, pool_buffers=3),
    "pool-of-one": small_config(sync=False, pool_buffers=1, flush_commit_log_timed=False),
    "pool-on-demand": small_config(sync=False, pool_buffers=2, files_ahead=0),
    "pool-fast-fail": small_config(sync=False, pool_buffers=2, fast_fail_if_no_buffer_in_store_pool=True),
    "sync-three-ahead": small_config(sync=True, pool_buffers=0, files_ahead=3),
}
pytestmark = pytest.mark.usefixtures("switch_often")
EACH_CONFIG = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """The files are on a disk: syncs take longer, and threads meet at other places."""
    return disk_path


def opened(directory: Path, config: MessageStoreConfig) -> MessageStore:
    return open_store(directory, config=config, files=OsFiles(), clock=SetClock())


def run_to_the_end(directory: Path, config: MessageStoreConfig, *, seed: int, puts: int) -> None:
    crowd = Crowd(opened(directory, config), seed=seed, puts=puts)
    crowd.start()
    crowd.join()
    crowd.store.check()
    crowd.store.close()
    assert crowd.store.read_only_reason is None
    assert reopened_bodies(directory, config) == crowd.bodies()
    assert len(crowd.stored) == len({result.offset for _, result in crowd.stored})
    if not config.fast_fail_if_no_buffer_in_store_pool:
        assert len(crowd.stored) == 4 * puts


def close_in_the_middle(directory: Path, config: MessageStoreConfig, *, seed: int, puts: int) -> None:
    crowd = Crowd(opened(directory, config), seed=seed, puts=puts)
    crowd.start(flushers=2)
    crowd.wait_for(puts)
    closer = threading.Thread(target=crowd.store.close, daemon=True)
    closer.start()
    closer.join(60)
    assert not closer.is_alive(), "close waits forever"
    crowd.join()
    assert crowd.store.read_only_reason is None
    assert reopened_bodies(directory, config) == crowd.bodies()


@pytest.mark.slow
@EACH_CONFIG
def test_everything_put_is_there_once_and_in_order(config: MessageStoreConfig, tmp_path: Path) -> None:
    run_to_the_end(tmp_path, config, seed=1, puts=30)


@pytest.mark.slow
@EACH_CONFIG
def test_close_in_the_middle_answers_everyone_and_loses_nothing(config: MessageStoreConfig, tmp_path: Path) -> None:
    close_in_the_middle(tmp_path, config, seed=2, puts=30)


def trouble(directory: Path, config: MessageStoreConfig, *, seed: int, puts: int) -> TroubledFiles:
    files = TroubledFiles(seed)
    store = open_store(directory, config=config, files=files, clock=SetClock())
    crowd = Crowd(store, seed=seed, puts=puts, commits_fail=True)
    crowd.start()
    crowd.join()
    files.mended = True
    store.check()
    store.close()
    assert store.read_only_reason is None
    assert reopened_bodies(directory, config) == crowd.bodies()
    return files


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "sync", "pool", "pool-of-one", "pool-on-demand"])
def test_disk_that_refuses_now_and_then_costs_puts_and_no_record(name: str, tmp_path: Path) -> None:
    assert trouble(tmp_path, CONFIGS[name], seed=4, puts=30).refusals > 0


def failing_sync(directory: Path, config: MessageStoreConfig, *, seed: int, puts: int) -> None:
    files = FaultyFiles()
    store = open_store(directory, config=config, files=files, clock=SetClock())
    crowd = Crowd(store, seed=seed, puts=puts, sync_fails=True, all_wait=True)
    files.fail("sync", part="commitlog", skip=20)
    crowd.start()
    crowd.join()
    assert store.read_only_reason is not None
    flushed_offset = store.flushed_offset
    durable = [
        (bodies, result) for bodies, result in crowd.stored if result.offset + result.size_bytes <= flushed_offset
    ]
    if config.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        assert {result.status for _, result in durable} == {PutStatus.PUT_OK}
        assert {result.status for each in crowd.stored if each not in durable for result in each[1:]} <= {LATE}
    for _, result in durable:
        assert store.get(result.offset).message is not None
    files.mend()
    store.close()
    assert (directory / "abort").exists()
    with opened(directory, replace(config, mapped_files_ahead=0)) as found:
        assert found.read_only_reason is None
        bodies = [stored.body for stored in found.messages()]
    assert bodies == crowd.bodies()[: len(bodies)]
    assert len(bodies) >= sum(len(each) for each, _ in durable)


@pytest.mark.parametrize("name", ["plain", "sync", "sync-three-ahead", "pool"])
def test_sync_that_fails_ends_puts_and_no_promise_is_broken(name: str, tmp_path: Path) -> None:
    failing_sync(tmp_path, CONFIGS[name], seed=5, puts=60)


@pytest.mark.deep
@EACH_CONFIG
@pytest.mark.parametrize("seed", range(3))
def test_everything_put_is_there_once_and_in_order_for_long(
    config: MessageStoreConfig, seed: int, tmp_path: Path
) -> None:
    run_to_the_end(tmp_path / "whole", config, seed=seed, puts=600)
    close_in_the_middle(tmp_path / "closed", config, seed=seed, puts=600)
    trouble(tmp_path / "trouble", config, seed=seed, puts=600)
    failing_sync(tmp_path / "failing", config, seed=seed, puts=600)


def test_no_thread_of_a_store_outlives_it(tmp_path: Path) -> None:
    for name, config in CONFIGS.items():
        with opened(tmp_path / name, config) as store:
            store.put(MESSAGE)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("tornpage-")]


def test_store_as_it_comes(tmp_path: Path) -> None:
    """Use the defaults except for the file size.

    These are one file ahead, timers, and a thread for each service.
    """
    config = replace(MessageStoreConfig(), mapped_file_size_commit_log=4096)
    crowd = Crowd(opened(tmp_path, config), seed=3, puts=40)
    crowd.start()
    crowd.join()
    assert crowd.store.put(MESSAGE).status is PutStatus.PUT_OK
    names = {thread.name for thread in threading.enumerate()}
    assert {"tornpage-flush", "tornpage-reput", "tornpage-flush-queues", "tornpage-allocate"} <= names
    crowd.store.close()
    assert reopened_bodies(tmp_path, config) == [
        *crowd.bodies(),
        MESSAGE.body,
    ]
