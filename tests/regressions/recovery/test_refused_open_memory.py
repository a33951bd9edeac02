"""An open that fails takes no memory for the pool.

Symptom: an open that failed, or that found damage, had taken and locked memory of five log files before.
Cause: the buffers of the pool were made first of all, and not released when the store was in use.
Fix: they are made after the lock and after a recovery without damage (impl/recovery/opening.py, `_use_pool`). A pool
without memory is reported as a configuration value that does not work.
Found by: a review.
"""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, HandRunner, config_of, open_store, snapshot
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig, StoreInUse, WrongFileSize
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner


class Pools:
    """Counts the pools."""

    def __init__(self) -> None:
        self.made = 0
        self.refused = False

    def __call__(self, count: int, buffer_bytes: int) -> TransientStorePool:
        """Make one."""
        self.made += 1
        if self.refused:
            raise OSError(errno.ENOMEM, "Cannot allocate memory: lower transient_store_pool_size")
        return TransientStorePool(count, buffer_bytes)


def pooled(*, file_bytes: int = 1024) -> MessageStoreConfig:
    return replace(config_of(file_bytes=file_bytes), transient_store_pool_enable=True)


def test_refused_open_makes_no_pool(tmp_path: Path) -> None:
    pools = Pools()
    parts = Parts({TransientStorePool: pools, ThreadRunner: HandRunner()})
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        with pytest.raises(StoreInUse):
            open_store(tmp_path, config=pooled(), parts=parts)
    with pytest.raises(WrongFileSize):
        open_store(tmp_path, config=pooled(file_bytes=2048), parts=parts)
    assert pools.made == 0


def test_damaged_store_makes_no_pool(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    log_file = tmp_path / "commitlog" / ("0" * 20)
    damaged = bytearray(log_file.read_bytes())
    damaged[20] ^= 0xFF
    log_file.write_bytes(damaged)
    pools = Pools()
    config = replace(pooled(), check_whole_log_on_recover=True)
    with open_store(
        tmp_path, config=config, parts=Parts({TransientStorePool: pools, ThreadRunner: HandRunner()})
    ) as store:
        assert store.read_only_reason is not None
    assert pools.made == 0


def test_pool_without_memory_is_a_bad_configuration_and_holds_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    before = snapshot(tmp_path)
    pools = Pools()
    pools.refused = True
    with pytest.raises(BadConfig, match="lower transient_store_pool_size"):
        open_store(tmp_path, config=pooled(), parts=Parts({TransientStorePool: pools, ThreadRunner: HandRunner()}))
    assert snapshot(tmp_path) == before
    with open_store(tmp_path, config=pooled()) as store:
        assert len(list(store.messages())) == 1
