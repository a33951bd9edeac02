"""Measure the store's operations in one thread, and disk and memory without a store.

Every put hands in the same message and checks the answer, as a producer must. A round of puts has a new store and ends
before its first log file is full, so that no file is created while the clock runs. Bodies are random bytes. Only
`put_with_dispatch_1024` builds queues and index meanwhile. The others leave that to the close, after the measurement.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice, repeat
from time import perf_counter, sleep

from tornpage.bench.figures import Figure, figure, scratch
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.kernels.compiled import compiled_batch_encoder
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.message import BatchMember, GetStatus, Message, MessageBatch, PutStatus
from tornpage.impl.parts import Parts
from tornpage.properties.contract import HarnessError

__all__ = [
    "get_1024",
    "memcpy_gb_per_s",
    "message_of",
    "pool_1024",
    "put_100",
    "put_batch32_1024",
    "put_keyed_1024",
    "put_only_1024",
    "put_with_dispatch_1024",
]

WARM_UP_PUTS = 50
BATCH = 32
QUEUES = 4
_LOOK_S = 0.0005


def message_of(body_bytes: int) -> Message:
    """Return the message that is put repeatedly."""
    return Message("TopicBench", random.Random(body_bytes).randbytes(body_bytes))


def put_only_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 1,024 body bytes, answered from the page cache, without dispatch."""
    return _puts("put_only_1024", 1024, directory, seconds, sizes)


def put_100(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 100 body bytes, answered from the page cache: the cost without copying."""
    return _puts("put_100", 100, directory, seconds, sizes)


def put_keyed_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 1,024 body bytes with keys, tag and unique key, all messages different."""
    messages = [
        replace(
            message_of(1024),
            queue_id=number % QUEUES,
            properties=f"KEYS\x01order-{number}\x02TAGS\x01TagA\x02UNIQ_KEY\x01{number:032X}\x02WAIT\x01true",
        )
        for number in range(sizes.puts)
    ]

    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes) as store:
            _put_all(store, messages[:WARM_UP_PUTS])
            return sizes.puts / _put_all(store, messages)

    return figure("put_keyed_1024", "puts/s", one_round, directory=directory, seconds=seconds)


def put_with_dispatch_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 1,024 body bytes with two keys, until queues and index have them too.

    One key is the unique key. One thread puts, and the store's own thread dispatches meanwhile with compiled parts.
    Nothing is flushed.
    """
    messages = [
        replace(
            message_of(1024),
            queue_id=number % QUEUES,
            properties=f"UNIQ_KEY\x01{number:032X}\x02KEYS\x01order-{number}",
        )
        for number in range(sizes.puts)
    ]

    def one_round() -> float:
        config = MessageStoreConfig(mapped_file_size_commit_log=sizes.log_file_bytes)
        with scratch(directory) as path, MessageStore.open(f"{path}/store", config) as store:
            _put_all(store, messages[:WARM_UP_PUTS])
            wait_for_dispatch(store)
            started = perf_counter()
            _put_all(store, messages)
            wait_for_dispatch(store)
            elapsed = perf_counter() - started
            dispatched = sum(store.max_offset_in_queue("TopicBench", queue_id) for queue_id in range(QUEUES))
            if dispatched != sizes.puts + min(WARM_UP_PUTS, sizes.puts):
                raise HarnessError(f"{dispatched} units were dispatched")
            return sizes.puts / elapsed

    return figure("put_with_dispatch_1024", "puts/s", one_round, directory=directory, seconds=seconds)


def wait_for_dispatch(store: MessageStore) -> None:
    """Return when queues and index have everything that was put.

    Raises HarnessError if they never will.
    """
    while store.dispatch_behind_bytes and store.dispatch_error is None:
        sleep(_LOOK_S)
    if store.dispatch_error is not None:
        raise HarnessError(store.dispatch_error)


def put_batch32_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s of 1,024 body bytes in batches of 32, answered from the page cache.

    The batches are encoded by compiled code.
    """
    member = BatchMember(message_of(1024).body or b"", properties="KEYS\x01k\x02TAGS\x01TagA")
    batch = MessageBatch("TopicBench", encode_batch_body([member] * BATCH), properties="WAIT\x01true")
    rounds = max(1, sizes.puts // BATCH)

    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes) as store:
            put_batch, put_ok = store.put_batch, PutStatus.PUT_OK
            put_batch(batch)
            refused = 0
            started = perf_counter()
            for _ in range(rounds):
                refused += put_batch(batch).status is not put_ok
            elapsed = perf_counter() - started
            if refused or sum(1 for _ in islice(store.messages(), BATCH + 1)) != BATCH + 1:
                raise HarnessError(f"{refused} of {rounds} batches were refused, or their messages are not there")
            return rounds * BATCH / elapsed

    return figure("put_batch32_1024", "messages/s", one_round, directory=directory, seconds=seconds)


def _puts(name: str, body_bytes: int, directory: str, seconds: float, sizes: Sizes) -> Figure:
    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes) as store:
            _put_all(store, repeat(message, min(WARM_UP_PUTS, sizes.puts)))
            return sizes.puts / _put_all(store, repeat(message, sizes.puts))

    message = message_of(body_bytes)
    return figure(name, "puts/s", one_round, directory=directory, seconds=seconds)


def pool_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Puts/s of 1,024 body bytes into a buffer of the transient store pool, with commits."""
    message = message_of(1024)

    def one_round() -> float:
        with scratch(directory) as path, _open(path, sizes, transient_store_pool_enable=True) as store:
            _put_all(store, repeat(message, min(WARM_UP_PUTS, sizes.puts)))
            rate = sizes.puts / _put_all(store, repeat(message, sizes.puts))
            if not store.flush().durable or store.flushed_offset != store.max_offset:
                raise HarnessError("what was put into the pool did not get to the disk")
            return rate

    return figure("pool_1024", "puts/s", one_round, directory=directory, seconds=seconds)


def get_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Gets/s of 1,024 body bytes by physical offset in random order, checked and decoded.

    Everything is in the page cache.
    """
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


def memcpy_gb_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """GB/s (10^9 bytes) copied between two large buffers: the limit of copying a record."""
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


def _open(path: str, sizes: Sizes, *, transient_store_pool_enable: bool = False) -> MessageStore:
    config = MessageStoreConfig(
        mapped_file_size_commit_log=sizes.log_file_bytes,
        transient_store_pool_enable=transient_store_pool_enable,
        transient_store_pool_size=1,
    )
    parts = Parts({BatchEncoder: compiled_batch_encoder, ReputMessages: _Resting})
    return MessageStore.open(f"{path}/store", config, parts=parts)


class _Resting(ReputMessages):
    """Dispatches nothing before the store closes."""

    def note_readable(self, _end_offset: int = 0) -> None:
        """Ignore readable bytes."""


def _put_all(store: MessageStore, messages: Iterable[Message]) -> float:
    """Put messages one after the other; return the seconds it took."""
    put, put_ok = store.put, PutStatus.PUT_OK
    before, stored_bytes, refused = store.max_offset, 0, 0
    started = perf_counter()
    for message in messages:
        result = put(message)
        refused += result.status is not put_ok
        stored_bytes += result.size_bytes
    elapsed = perf_counter() - started
    if refused or store.max_offset - before != stored_bytes:
        raise HarnessError(f"{refused} puts were refused, {stored_bytes} bytes acknowledged")
    return elapsed
