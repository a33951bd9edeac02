"""Measure opening a store after an unclean exit, the checksum, and the judges' scan.

All three walk the same kind of bytes: records of 1,024 random body bytes with the checksum trailer, in the page cache.
"""

import os
import random
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from isal.isal_zlib import crc32

from tornpage.bench.figures import Figure, Skipped, figure, scratch
from tornpage.bench.put import message_of
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, MessageBatch
from tornpage.properties.contract import HarnessError
from tornpage.properties.decode import scan

__all__ = [
    "crc_gb_per_s_1024",
    "judge_scan_gb_per_s_1024",
    "log_to_recover",
    "open_4gib_s",
    "recover_gb_per_s_1024",
]

_BATCH = 32


def recover_gb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB (10^9 bytes) of log per second of `open`, from the lock to a store that accepts puts.

    The whole log is checked, and queues and index are compared with it, as after the loss of the derived floor.
    """
    config = MessageStoreConfig(mapped_file_size_commit_log=sizes.recover_file_bytes, check_whole_log_on_recover=True)
    with log_to_recover(directory, sizes) as (path, end_offset, _):

        def one_round() -> float:
            return end_offset / _seconds_to_open(path, config, end_offset) / 1e9

        return figure("recover_gb_per_s_1024", "GB/s", one_round, directory=directory, seconds=seconds)


def open_4gib_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Seconds until a store of 4 GiB and 3.9 million messages takes puts again.

    Everything is durable, and the exit is marked unclean.
    """
    member = BatchMember(message_of(1024).body or b"")
    batch = MessageBatch("TopicBench", encode_batch_body([member] * _BATCH))
    config = MessageStoreConfig(mapped_file_size_commit_log=sizes.open_file_bytes)
    _require_room(directory, sizes.open_bytes, sizes.open_file_bytes)
    with scratch(directory) as base:
        path = f"{base}/store"
        with MessageStore.open(path, config) as store:
            while store.max_offset < sizes.open_bytes - _BATCH * 2048:
                if not store.put_batch(batch).stored:
                    raise HarnessError("a batch was refused while a log was made")
            end_offset = store.max_offset

        def one_round() -> float:
            return _seconds_to_open(path, config, end_offset)

        return figure("open_4gib_s", "s", one_round, directory=directory, seconds=seconds)


def _seconds_to_open(path: str, config: MessageStoreConfig, end_offset: int) -> float:
    """Open a store as after an unclean exit, close it, and return the time of the open."""
    os.close(os.open(f"{path}/abort", os.O_CREAT | os.O_WRONLY, 0o644))  # the last exit was unclean
    started = perf_counter()
    store = MessageStore.open(path, config)
    elapsed = perf_counter() - started
    recovered, reason = store.max_offset, store.read_only_reason
    store.close()
    if recovered != end_offset or reason is not None:
        raise HarnessError(f"recovery ended at {recovered} instead of {end_offset} ({reason or 'read-write'})")
    return elapsed


def judge_scan_gb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB (10^9 bytes) of log per second through the judges' independent scan.

    It shares no code and no checksum library with the store.
    """
    with log_to_recover(directory, sizes) as (path, end_offset, records):
        files = sorted(Path(f"{path}/commitlog").iterdir())
        contents = [(int(file.name), file.read_bytes()) for file in files]

        def one_round() -> float:
            started = perf_counter()
            offsets = [scan(content, base_offset=base)[0] for base, content in contents]
            elapsed = perf_counter() - started
            found = sum(map(len, offsets))
            if found != records:
                raise HarnessError(f"the judges' scan found {found} of {records} records")
            return end_offset / elapsed / 1e9

        return figure("judge_scan_gb_per_s_1024", "GB/s", one_round, directory=directory, seconds=seconds)


def crc_gb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB (10^9 bytes) of bodies per second through the store's checksum, 1,024 bytes a call."""
    rng = random.Random(2)
    bodies = [rng.randbytes(1024) for _ in range(sizes.bodies)]
    expected = 0
    for body in bodies:
        expected ^= zlib.crc32(body)

    def one_round() -> float:
        found = 0
        started = perf_counter()
        for body in bodies:
            found ^= crc32(body)
        elapsed = perf_counter() - started
        if found != expected:
            raise HarnessError("the checksum library does not agree with zlib")
        return len(bodies) * 1024 / elapsed / 1e9

    return figure("crc_gb_per_s_1024", "GB/s", one_round, directory=directory, seconds=seconds)


@contextmanager
def log_to_recover(directory: str, sizes: Sizes) -> Iterator[tuple[str, int, int]]:
    """Yield a closed store of several files: path, end offset, number of records.

    Raises Skipped without room for it.
    """
    _require_room(directory, sizes.recover_bytes, sizes.recover_file_bytes)
    message = message_of(1024)
    config = MessageStoreConfig(mapped_file_size_commit_log=sizes.recover_file_bytes)
    with scratch(directory) as base:
        path = f"{base}/store"
        records = 0
        with MessageStore.open(path, config) as store:
            while store.max_offset < sizes.recover_bytes:
                if not store.put(message).stored:
                    raise HarnessError("a put was refused while a log was made")
                records += 1
            end_offset = store.max_offset
        yield path, end_offset, records


def _require_room(directory: str, log_bytes: int, file_bytes: int) -> None:
    """Raise Skipped without room for a log, the file made ahead of it, and its queues."""
    needed, free = log_bytes + 2 * file_bytes, shutil.disk_usage(directory).free
    if free < needed:
        raise Skipped(f"{directory} has {free >> 20:,} MiB free, and its store takes up to {needed >> 20:,} MiB")
