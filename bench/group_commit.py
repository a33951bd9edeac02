"""Measure synchronous puts, alone and with a shared sync, and the bare disk.

Puts that share are futures of `put_async`, from at most four threads, since more threads would measure the interpreter.
Each round has a new store.
"""

import os
import random
from collections import deque
from concurrent.futures import Future
from threading import Thread
from time import perf_counter

from tornpage.bench.figures import Figure, figure, scratch
from tornpage.bench.put import message_of
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.properties.contract import HarnessError

__all__ = ["fdatasync_per_s", "group_commit_64_over_1", "sync_1", "sync_8", "sync_64"]

PAGE_BYTES = 4096
SYNCED_PAGES = 256
THREADS_MAX = 4
SHARED_PUTS = 16
"""Puts of a shared round for each put of a round that puts alone."""


def sync_1(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Synchronous puts/s of 1,024 body bytes, each waiting alone for the disk."""
    return figure("sync_1", "puts/s", lambda: _alone(directory, sizes), directory=directory, seconds=seconds)


def sync_8(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Synchronous puts/s of 1,024 body bytes with 8 waiting for their answer at any time."""
    return figure("sync_8", "puts/s", lambda: _together(8, directory, sizes), directory=directory, seconds=seconds)


def sync_64(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Synchronous puts/s of 1,024 body bytes with 64 waiting for their answer at any time."""
    return figure("sync_64", "puts/s", lambda: _together(64, directory, sizes), directory=directory, seconds=seconds)


def group_commit_64_over_1(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Rate of 64 outstanding puts over the rate of single ones, both measured in each round."""

    def one_round() -> float:
        return _together(64, directory, sizes) / _alone(directory, sizes)

    return figure("group_commit_64_over_1", "ratio", one_round, directory=directory, seconds=seconds)


def _alone(directory: str, sizes: Sizes) -> float:
    message = message_of(1024)
    with scratch(directory) as path, _open(path, sizes) as store:
        store.put(message)
        refused = 0
        started = perf_counter()
        for _ in range(sizes.syncs):
            refused += store.put(message).status is not PutStatus.PUT_OK
        elapsed = perf_counter() - started
        _require_durable(store, refused)
        return sizes.syncs / elapsed


def _together(outstanding: int, directory: str, sizes: Sizes) -> float:
    """Return the rate of puts with `outstanding` of them waiting, a window in each thread."""
    threads = min(THREADS_MAX, outstanding)
    message, count = message_of(1024), SHARED_PUTS * sizes.syncs // threads
    refused = [count] * threads  # also of a thread that does not finish
    with scratch(directory) as path, _open(path, sizes) as store:
        store.put(message)

        def produce(number: int) -> None:
            refused[number] = _put_in_window(store, message, count, window=outstanding // threads)

        producers = [Thread(target=produce, args=(number,)) for number in range(threads)]
        started = perf_counter()
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        elapsed = perf_counter() - started
        _require_durable(store, sum(refused))
        return count * threads / elapsed


def _put_in_window(store: MessageStore, message: Message, count: int, *, window: int) -> int:
    """Put with at most `window` open answers; return how many puts were refused."""
    waiting: deque[Future[PutResult]] = deque()
    refused = 0
    for _ in range(count):
        if len(waiting) == window:
            refused += waiting.popleft().result().status is not PutStatus.PUT_OK
        waiting.append(store.put_async(message))
    return refused + sum(answer.result().status is not PutStatus.PUT_OK for answer in waiting)


def _require_durable(store: MessageStore, refused: int) -> None:
    if refused or store.flushed_offset != store.max_offset:
        raise HarnessError(f"{refused} puts were refused, flushed {store.flushed_offset} of {store.max_offset} bytes")


def _open(path: str, sizes: Sizes) -> MessageStore:
    config = MessageStoreConfig(
        mapped_file_size_commit_log=sizes.log_file_bytes, flush_disk_type=FlushDiskType.SYNC_FLUSH
    )
    return MessageStore.open(f"{path}/store", config)


def fdatasync_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Bare pwrite of 4 KiB and fdatasync per second, in a reserved file.

    `sync_1` cannot be faster on this disk.
    """
    page = random.Random(1).randbytes(PAGE_BYTES)
    with scratch(directory) as path:
        fd = os.open(f"{path}/bare", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        try:
            os.posix_fallocate(fd, 0, SYNCED_PAGES * PAGE_BYTES)
            os.fsync(fd)

            def one_round() -> float:
                started = perf_counter()
                for number in range(sizes.syncs):
                    os.pwrite(fd, page, number % SYNCED_PAGES * PAGE_BYTES)
                    os.fdatasync(fd)
                return sizes.syncs / (perf_counter() - started)

            return figure("fdatasync_per_s", "syncs/s", one_round, directory=directory, seconds=seconds)
        finally:
            os.close(fd)
