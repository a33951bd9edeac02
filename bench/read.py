"""Measure reads: the compiled walk over a log, pulls, and queries by key.

Pulls are measured with and without copies. Everything is in the page cache, and was checked once before. Each read
checks its records again, as it must.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from tornpage.bench.figures import Figure, figure, scratch
from tornpage.bench.put import QUEUES, message_of, wait_for_dispatch
from tornpage.bench.recover import crc_gb_per_s_1024, log_to_recover
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.kernels.walk import walk_log
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.message import GetStatus
from tornpage.properties.contract import HarnessError

__all__ = [
    "crc_gb_per_s_1024",
    "get_message_1024",
    "get_message_copy_1024",
    "query_key_1024",
    "walk_gb_per_s_1024",
]

PULL = 32


def walk_gb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB (10^9 bytes) of log per second through the compiled walk, with both checksums."""
    with log_to_recover(directory, sizes) as (path, end_offset, _):
        files = [memoryview(file.read_bytes()) for file in sorted(Path(f"{path}/commitlog").iterdir())]

        def one_round() -> float:
            size = sizes.recover_file_bytes
            started = perf_counter()
            ends = [
                walk_log(view, 0, file_bytes=size, base_offset=size * number, check=check_record)[0]
                for number, view in enumerate(files)
            ]
            elapsed = perf_counter() - started
            if size * (len(ends) - 1) + ends[-1] != end_offset:
                raise HarnessError(f"the walk ended at {ends} instead of {end_offset}")
            return end_offset / elapsed / 1e9

        return figure("walk_gb_per_s_1024", "GB/s", one_round, directory=directory, seconds=seconds)


def get_message_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s of 1,024 body bytes in pulls of 32, checked and not copied.

    The messages are buffers on the mapped log.
    """
    return _pulls("get_message_1024", directory, seconds, sizes, decoded=False)


def get_message_copy_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s of 1,024 body bytes in pulls of 32, each decoded into its own message."""
    return _pulls("get_message_copy_1024", directory, seconds, sizes, decoded=True)


def query_key_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Queries/s by unique key in random order, each with one answer of 1,024 body bytes."""
    with _dispatched(directory, sizes) as store:
        keys = [_unique_key(number) for number in range(sizes.gets)]
        random.Random(0).shuffle(keys)

        def one_round() -> float:
            query = store.query_message
            found = 0
            started = perf_counter()
            for key in keys:
                with query("TopicBench", key) as result:
                    found += len(result.messages)
            elapsed = perf_counter() - started
            if found != len(keys):
                raise HarnessError(f"{len(keys)} queries found {found} messages")
            return len(keys) / elapsed

        return figure("query_key_1024", "queries/s", one_round, directory=directory, seconds=seconds)


def _pulls(name: str, directory: str, seconds: float, sizes: Sizes, *, decoded: bool) -> Figure:
    with _dispatched(directory, sizes) as store:

        def one_round() -> float:
            started = perf_counter()
            pulled = sum(_pull_all(store, queue_id, decoded=decoded) for queue_id in range(QUEUES))
            elapsed = perf_counter() - started
            if pulled != sizes.gets * (1024 if decoded else 1):
                raise HarnessError(f"{pulled} messages, or bytes of them, were pulled, {sizes.gets} were put")
            return sizes.gets / elapsed

        return figure(name, "messages/s", one_round, directory=directory, seconds=seconds)


def _pull_all(store: MessageStore, queue_id: int, *, decoded: bool) -> int:
    """Pull a queue from its begin; return the number of messages, or body bytes if `decoded`."""
    found, offset, pulled = GetStatus.FOUND, 0, 0
    while True:
        with store.get_message("TopicBench", queue_id, offset, max_msg_nums=PULL) as result:
            if result.status is not found:
                return pulled
            if decoded:
                pulled += sum(len(buffer.message().body) for buffer in result.messages)
            else:
                pulled += len(result.messages)
            offset = result.next_begin_offset


def _unique_key(number: int) -> str:
    return f"{number:032X}"


@contextmanager
def _dispatched(directory: str, sizes: Sizes) -> Iterator[MessageStore]:
    """Yield a store with dispatched messages, each with a unique key."""
    config = MessageStoreConfig(mapped_file_size_commit_log=sizes.log_file_bytes)
    message = message_of(1024)
    with scratch(directory) as path, MessageStore.open(f"{path}/store", config) as store:
        for number in range(sizes.gets):
            keyed = replace(message, queue_id=number % QUEUES, properties=f"UNIQ_KEY\x01{_unique_key(number)}")
            if not store.put(keyed).stored:
                raise HarnessError("a put was refused while a store was filled")
        wait_for_dispatch(store)
        yield store
