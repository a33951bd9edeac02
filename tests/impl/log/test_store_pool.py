"""Test the pool in a store: lending, an empty pool, and old bytes in a buffer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    config_of,
    open_store,
)
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.errors import BadConfig
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PAGE = 4096
BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def opened(
    directory: Path, *, file_bytes: int = 64 * PAGE, files: FaultyFiles | None = None, **changes: Any
) -> tuple[MessageStore, HandRunner]:
    """Open a store with a pool; its first commit round, a thorough one, was at 200 ms."""
    runner = HandRunner()
    config = replace(config_of(file_bytes=file_bytes), transient_store_pool_enable=True, **changes)
    store = open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner}))
    assert runner["commit"].due_ms == config.commit_interval_commit_log
    runner.step("commit", after_ms=200)
    return store, runner


def free_buffers(store: MessageStore) -> int:
    assert store._held._pool is not None
    return store._held._pool.free


def test_without_a_free_buffer_the_next_file_is_a_plain_one(tmp_path: Path) -> None:
    store, runner = opened(tmp_path, file_bytes=1024, transient_store_pool_size=1)
    with store:
        for _ in range(3):
            assert store.put(BIG).status is PutStatus.PUT_OK
        assert store.committed_offset == 0, "a plain file after a buffer is visible only after the buffer"
        assert list(store.messages()) == []
        runner.step("commit", after_ms=200)
        assert (store.committed_offset, free_buffers(store)) == (store.max_offset, 1)
        assert len(list(store.messages())) == 3
        assert store.put(BIG).status is PutStatus.PUT_OK
        assert free_buffers(store) == 0


def test_without_a_free_buffer_fast_fail_refuses_before_anything_is_made(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(
        tmp_path, file_bytes=1024, files=files, transient_store_pool_size=2, fast_fail_if_no_buffer_in_store_pool=True
    )
    with store:
        assert [store.put(BIG).status for _ in range(2)] == [PutStatus.PUT_OK] * 2
        end_offset = store.max_offset
        files.calls.clear()
        assert store.put(BIG).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert [verb for verb, _ in files.calls if verb in ("create", "sync")] == []
        assert store.max_offset == end_offset
        assert store.put(MESSAGE).status is PutStatus.PUT_OK, "it fits the file in use"
        assert store.put(BIG).status is PutStatus.CREATE_MAPEDFILE_FAILED
        runner.step("commit", after_ms=200)
        assert store.put(BIG).status is PutStatus.PUT_OK, "the first file has given its buffer back"


def test_a_single_buffer_and_fast_fail_cannot_roll() -> None:
    with pytest.raises(BadConfig, match=r"transient_store_pool_size=1 is invalid: use 2 or more"):
        MessageStoreConfig(
            transient_store_pool_enable=True,
            transient_store_pool_size=1,
            fast_fail_if_no_buffer_in_store_pool=True,
        )


def test_file_found_at_open_has_no_buffer(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    store, _ = opened(tmp_path, file_bytes=1024)
    with store:
        store.put(MESSAGE)
        assert (store.committed_offset, free_buffers(store)) == (store.max_offset, 5)
        store.put(BIG)
        store.put(BIG)
        assert (store.committed_offset, free_buffers(store)) == (1024, 4)


@pytest.mark.parametrize(
    "changes",
    [{"flush_disk_type": FlushDiskType.SYNC_FLUSH}, {"broker_role": BrokerRole.SLAVE}],
    ids=["synchronous", "slave"],
)
def test_pool_has_no_effect(changes: dict[str, Any], tmp_path: Path) -> None:
    runner = HandRunner()
    config = replace(config_of(), transient_store_pool_enable=True, **changes)
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})) as store:
        assert store._held._pool is None
        assert "commit" not in runner.services
        if "broker_role" not in changes:
            assert store.put(MESSAGE).status is PutStatus.PUT_OK
            assert store.committed_offset == store.max_offset > 0


def test_bytes_of_an_earlier_file_never_reach_the_next_one(tmp_path: Path) -> None:
    """A buffer is not cleared: past the blank it holds bytes of the file before."""
    store, runner = opened(tmp_path, file_bytes=1024, transient_store_pool_size=1)
    with store:
        store.put(replace(MESSAGE, body=b"\xa5" * 800))
        store.put(BIG)  # closes the first file; this one is plain
        runner.step("commit", after_ms=200)
        blank_at = store.put(replace(MESSAGE, body=b"\x5a" * 300)).offset + 420  # into the buffer again
        assert free_buffers(store) == 0
        store.put(replace(MESSAGE, body=b"\x5a" * 700))
        runner.step("commit", after_ms=200)
        assert store.committed_offset == store.max_offset
    third = (tmp_path / "commitlog" / f"{2048:020d}").read_bytes()
    assert b"\xa5" not in third
    assert third[blank_at - 2048 + 8 :] == bytes(1024 - (blank_at - 2048) - 8)
