"""Write the store of the measurements, and damage it in five places."""

from __future__ import annotations

import logging
import random
import shutil
import struct
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tornpage.bench.figures import Skipped
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, MessageBatch
from tornpage.properties.contract import HarnessError
from tornpage.properties.decode.consumequeue import UNIT_BYTES

__all__ = ["FILE_BYTES", "TOPICS", "LargeStore", "damage", "make_store", "store_at"]

TOPICS = 50
QUEUES = 4
FILE_BYTES = 1 << 30
_BATCH = 32
_POOL_BYTES = 1 << 20
_SIZES = (64, 256, 1024, 4096, 32_768)
"""Bodies in bytes, and how many of 1,000 have each size. A record has 1,290 bytes on average."""
_SHARES = (390, 270, 218, 110, 12)
_DISK_SHARE = 1.5
"""Room on the disk for each byte of log: queues, index, rows of the audit and Parquet files."""
_DISK_BYTES = 2 << 30
"""Room on the disk for files that are allocated in full: the last log file, 200 queue files, an index file."""

_INDEX_HEADER_BYTES = 40
_INDEX_SLOT_BYTES = 4
_INDEX_ENTRY_BYTES = 20


@dataclass(frozen=True, slots=True)
class LargeStore:
    """A closed store; `record_bytes` are those of its log up to the last record."""

    path: Path
    record_bytes: int

    @property
    def log_files(self) -> list[Path]:
        """Return the log files in order."""
        return sorted((self.path / "commitlog").iterdir())

    @property
    def file_bytes(self) -> int:
        """Return the size of a log file."""
        return self.log_files[0].stat().st_size


def make_store(path: Path, *, log_bytes: int, seed: int = 1, file_bytes: int = FILE_BYTES) -> LargeStore:
    """Write a store with about `log_bytes` of records, and close it.

    Messages have 50 topics of 4 queues, bodies from 64 bytes to 32 KiB, a key and a tag, and come in batches of 32.
    Raises Skipped without room on the disk.
    """
    needed, free = int(_DISK_SHARE * log_bytes) + _DISK_BYTES, shutil.disk_usage(path.parent).free
    if free < needed and file_bytes == FILE_BYTES:
        raise Skipped(f"{path.parent} has {free >> 20} MiB free, and {needed >> 20} MiB are needed")
    rng = random.Random(seed)
    pool = rng.randbytes(_POOL_BYTES)
    ends = list(accumulate(_SHARES))

    def member(number: int) -> BatchMember:
        size_bytes = _SIZES[bisect(ends, rng.randrange(ends[-1]))]
        start = rng.randrange(_POOL_BYTES - size_bytes)
        return BatchMember(pool[start : start + size_bytes], properties=f"KEYS\x01k{number}\x02TAGS\x01t{number % 7}")

    config = MessageStoreConfig(mapped_file_size_commit_log=file_bytes)
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # slow puts are no news here
    number = 0
    with MessageStore.open(path, config) as store:
        while store.max_offset < log_bytes:
            body = encode_batch_body([member(number + each) for each in range(_BATCH)])
            batch = MessageBatch(f"Topic{rng.randrange(TOPICS):02d}", body, queue_id=rng.randrange(QUEUES))
            if not store.put_batch(batch).stored:
                raise HarnessError("a batch was refused while a store was written")
            number += _BATCH
        record_bytes = store.max_offset
    return LargeStore(path, record_bytes)


def store_at(path: Path) -> LargeStore:
    """Return a store that exists. Raises Skipped if it has no log."""
    from tornpage.properties.decode.store import look

    view = look(path)
    if not view.files:
        raise Skipped(f"{path} has no commit log")
    return LargeStore(path, sum(min(file.size_bytes, view.file_bytes) for file in view.files))


def damage(store: LargeStore) -> None:
    """Damage a body, an index entry, and three units of queues."""
    queues = sorted(store.path.glob("consumequeue/*/*/*"))
    units = [queues[len(queues) * place // 4] for place in range(4)]

    def unit_of(file: Path) -> tuple[int, int, int]:
        with file.open("rb") as source:
            count = sum(1 for _ in iter(lambda: source.read(UNIT_BYTES).strip(b"\0"), b""))
            position = UNIT_BYTES * min(100, count // 2)
            source.seek(position)
            offset, size, _ = struct.unpack(">qiq", source.read(UNIT_BYTES))
        return position, offset, size

    _, offset, size = unit_of(units[3])
    _change(store.log_files[offset // store.file_bytes], offset % store.file_bytes + size // 2, "B", lambda v: v ^ 0x55)
    _change(units[0], unit_of(units[0])[0], ">q", lambda value: value + 7)
    _change(units[1], unit_of(units[1])[0] + 8, ">i", lambda value: value + 1)
    _change(units[2], unit_of(units[2])[0] + 12, ">q", lambda value: value ^ 1)
    index = min(store.path.glob("index/*"))
    with index.open("rb") as source:
        source.seek(_INDEX_HEADER_BYTES - 4)
        entries = int.from_bytes(source.read(4), "big")
    slots = MessageStoreConfig().max_hash_slot_num
    entry = _INDEX_HEADER_BYTES + _INDEX_SLOT_BYTES * slots + _INDEX_ENTRY_BYTES * min(1000, entries // 2)
    _change(index, entry + 4, ">q", lambda value: value + 13)


def _change(file: Path, position: int, layout: str, change: Callable[[int], int]) -> None:
    with file.open("r+b") as target:
        target.seek(position)
        (value,) = struct.unpack(layout, target.read(struct.calcsize(layout)))
        target.seek(position)
        target.write(struct.pack(layout, change(value)))
