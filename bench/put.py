"""The store's verbs, one thread, and what disk and memory under them give without a store.

Every put hands in the same message and looks at the answer, as a producer must. A round of puts has a new store and
ends before its first log file is full, so creating a file is never inside the clock. Bodies are random bytes.
"""

import os
import random
from time import perf_counter

from bench.figures import Figure, figure, scratch
from bench.sizes import FULL, Sizes
from impl.config import MessageStoreConfig
from impl.message import GetStatus, Message, PutStatus
from impl.policy import FlushDiskType
from properties.verdict import HarnessError
from tornpage.front import MessageStore

__all__ = ["fdatasync_per_s", "get_1024", "memcpy_gb_per_s", "put_100", "put_only_1024", "sync_1"]

PAGE_BYTES = 4096
SYNCED_PAGES = 256
WARM_UP_PUTS = 50


def message_of(body_bytes: int) -> Message:
    """Return the message that is put again and again."""
    return Message("TopicBench", random.Random(body_bytes).randbytes(body_bytes))


def put_only_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 1,024 body bytes, answered from the page cache; nothing dispatched behind them."""
    return _puts("put_only_1024", 1024, directory, seconds, sizes)


def put_100(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 100 body bytes, answered from the page cache: the cost of a put that hardly copies."""
    return _puts("put_100", 100, directory, seconds, sizes)


def _puts(name: str, body_bytes: int, directory: str, seconds: float, sizes: Sizes) -> Figure:
    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes) as store:
            _put_all(store, message, min(WARM_UP_PUTS, sizes.puts))
            return sizes.puts / _put_all(store, message, sizes.puts)

    message = message_of(body_bytes)
    return figure(name, "puts/s", one_round, directory=directory, seconds=seconds)


def sync_1(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Synchronous puts/s of 1,024 body bytes, each waiting alone for the disk: no group to share a sync with."""

    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes, FlushDiskType.SYNC_FLUSH) as store:
            _put_all(store, message, 1)
            rate = sizes.syncs / _put_all(store, message, sizes.syncs)
            if store.flushed_offset != store.max_offset:
                raise HarnessError("a synchronous store answered puts that are not flushed")
            return rate

    message = message_of(1024)
    return figure("sync_1", "puts/s", one_round, directory=directory, seconds=seconds)


def get_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Gets/s by physical offset in random order, checked and decoded, 1,024 body bytes, from the page cache."""
    message = message_of(1024)
    found = GetStatus.FOUND
    with scratch(directory) as path, _open(path, sizes) as store:
        offsets = [store.put(message).offset for _ in range(sizes.gets)]
        random.Random(0).shuffle(offsets)

        def one_round() -> float:
            get = store.get
            missing = 0
            started = perf_counter()
            for offset in offsets:
                missing += get(offset).status is not found
            elapsed = perf_counter() - started
            if missing or getattr(get(offsets[0]).message, "body", None) != message.body:
                raise HarnessError("a get did not return what was put")
            return len(offsets) / elapsed

        return figure("get_1024", "gets/s", one_round, directory=directory, seconds=seconds)


def fdatasync_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Bare pwrite of 4 KiB and fdatasync per second, in a reserved file: what `sync_1` cannot pass on this disk."""
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


def memcpy_gb_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB/s (10^9 bytes copied) from one large buffer into another: no copy of a record can be faster."""
    source, target = bytearray(b"\xa5" * sizes.copy_bytes), bytearray(sizes.copy_bytes)

    def one_round() -> float:
        with memoryview(source) as read, memoryview(target) as written:
            started = perf_counter()
            written[:] = read
            elapsed = perf_counter() - started
        if target[-1] != 0xA5:
            raise HarnessError("a copy did not arrive")
        return sizes.copy_bytes / elapsed / 1e9

    return figure("memcpy_gb_per_s", "GB/s", one_round, directory=directory, seconds=seconds)


def _open(path: str, sizes: Sizes, flush: FlushDiskType = FlushDiskType.ASYNC_FLUSH) -> MessageStore:
    config = MessageStoreConfig(mapped_file_size_commit_log=sizes.log_file_bytes, flush_disk_type=flush)
    return MessageStore.open(f"{path}/store", config)


def _put_all(store: MessageStore, message: Message, count: int) -> float:
    """Put a message `count` times; return the seconds it took."""
    put, put_ok = store.put, PutStatus.PUT_OK
    before, stored_bytes, refused = store.max_offset, 0, 0
    started = perf_counter()
    for _ in range(count):
        result = put(message)
        refused += result.status is not put_ok
        stored_bytes += result.size_bytes
    elapsed = perf_counter() - started
    if refused or store.max_offset - before != stored_bytes:
        raise HarnessError(f"{refused} of {count} puts were refused, {stored_bytes} bytes acknowledged")
    return elapsed
