"""Carry out the work of each row with our store, and take wall and processor time."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import NamedTuple

from tornpage.bench.java.shapes import LOG_FILE_BYTES, Shape
from tornpage.bench.put import BATCH, QUEUES, message_of, wait_for_dispatch
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig, VerifyReads
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, GetStatus, Message, MessageBatch, PutResult, PutStatus
from tornpage.properties.contract import HarnessError

__all__ = ["Stretch", "config_for", "fill", "measured", "opened_in", "write_to_recover"]

_TOPIC = "TopicBench"
_PULL = 32
_BUSY_MS = 60_000


class Stretch(NamedTuple):
    """One timed stretch of work: items, seconds, and seconds of processor time."""

    items: int
    seconds: float
    cpu_s: float


def config_for(
    *, sync: bool = False, file_bytes: int = LOG_FILE_BYTES, verify_reads: VerifyReads = "always"
) -> MessageStoreConfig:
    """Return the settings of our side."""
    return MessageStoreConfig(
        mapped_file_size_commit_log=file_bytes,
        os_page_cache_busy_time_out_mills=_BUSY_MS,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
        verify_reads=verify_reads,
    )


def measured(store: MessageStore, shape: Shape, count: int) -> Stretch:
    """Carry out one round on an open store. Raises HarnessError if an answer is wrong."""
    work = {"put": _put, "batch": _batch, "sync": _sync, "pull": _pull, "query": _query}[shape.kind]
    return work(store, shape, count)


@contextmanager
def _timed(count: int) -> Iterator[Callable[[], Stretch]]:
    cpu, began = process_time(), perf_counter()
    yield lambda: Stretch(count, perf_counter() - began, process_time() - cpu)


def _keyed(shape: Shape, count: int) -> list[Message]:
    body = message_of(shape.body_bytes).body
    return [
        Message(_TOPIC, body, number % QUEUES, f"UNIQ_KEY\x01{number:032X}\x02KEYS\x01order-{number}")
        for number in range(count)
    ]


def _put(store: MessageStore, shape: Shape, count: int) -> Stretch:
    messages = _keyed(shape, count)
    put, put_ok, refused = store.put, PutStatus.PUT_OK, 0
    with _timed(count) as taken:
        for message in messages:
            refused += put(message).status is not put_ok
        wait_for_dispatch(store)
        stretch = taken()
    _require(refused == 0, f"{refused} puts were refused")
    return stretch


def _batch(store: MessageStore, shape: Shape, count: int) -> Stretch:
    member = BatchMember(message_of(shape.body_bytes).body or b"", "KEYS\x01k\x02TAGS\x01TagA")
    batch = MessageBatch(_TOPIC, encode_batch_body([member] * BATCH), properties="WAIT\x01true")
    put, put_ok, refused = store.put_batch, PutStatus.PUT_OK, 0
    with _timed(count // BATCH * BATCH) as taken:
        for _ in range(count // BATCH):
            refused += put(batch).status is not put_ok
        wait_for_dispatch(store)
        stretch = taken()
    _require(refused == 0, f"{refused} batches were refused")
    return stretch


def _sync(store: MessageStore, shape: Shape, count: int) -> Stretch:
    message, put_ok, refused = message_of(shape.body_bytes), PutStatus.PUT_OK, 0
    waiting: deque[Future[PutResult]] = deque()
    with _timed(count) as taken:
        for _ in range(count):
            if shape.window == 1:
                refused += store.put(message).status is not put_ok
                continue
            if len(waiting) == shape.window:
                refused += waiting.popleft().result().status is not put_ok
            waiting.append(store.put_async(message))
        refused += sum(answer.result().status is not put_ok for answer in waiting)
        stretch = taken()
    _require(refused == 0, f"{refused} puts were refused")
    return stretch


def _pull(store: MessageStore, shape: Shape, count: int) -> Stretch:
    pulled = 0
    with _timed(count) as taken:
        for queue_id in range(QUEUES):
            place = 0
            while True:
                with store.get_message(_TOPIC, queue_id, place, max_msg_nums=_PULL) as answer:
                    if answer.status is not GetStatus.FOUND:
                        break
                    if shape.decoded:
                        pulled += sum(len(buffer.message().body) > 0 for buffer in answer.messages)
                    else:
                        pulled += len(answer.messages)
                    place = answer.next_begin_offset
        stretch = taken()
    _require(pulled == count, f"pulls returned {pulled} of {count} messages")
    return stretch


def _query(store: MessageStore, shape: Shape, count: int) -> Stretch:
    keys = [f"{number:032X}" for number in range(count)]
    random.Random(0).shuffle(keys)
    found = 0
    with _timed(count) as taken:
        for key in keys:
            with store.query_message(_TOPIC, key) as answer:
                found += len(answer.messages)
        stretch = taken()
    _require(found == count, f"queries found {found} of {count} messages")
    return stretch


def fill(store: MessageStore, shape: Shape, count: int) -> None:
    """Put the messages that reads return."""
    for message in _keyed(shape, count):
        _require(store.put(message).stored, "a put was refused")
    wait_for_dispatch(store)


# ---- opens -----------------------------------------------------------------------------------------------------------


def write_to_recover(store: MessageStore, log_bytes: int) -> int:
    """Put batches until the log has so many bytes; dispatch them; return its end."""
    members = [BatchMember(random.Random(number).randbytes(1024), f"KEYS\x01k{number}") for number in range(BATCH)]
    body, number = encode_batch_body(members), 0
    while store.max_offset < log_bytes:
        batch = MessageBatch(_TOPIC, body, number % QUEUES, properties="WAIT\x01true")
        _require(store.put_batch(batch).stored, "a batch was refused")
        number += 1
    wait_for_dispatch(store)
    return store.max_offset


def opened_in(directory: str, *, file_bytes: int, end: int) -> Stretch:
    """Time an open until queues and index have everything."""
    with _timed(1) as taken:
        store = MessageStore.open(directory, config_for(file_bytes=file_bytes))
        wait_for_dispatch(store)
        stretch = taken()
    found, reason = store.max_offset, store.read_only_reason
    store.close()
    _require((found, reason) == (end, None), f"the log ends at {found} instead of {end} ({reason or 'read-write'})")
    return stretch


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise HarnessError(failure)
