"""Find how far the log once went, from the checkpoint and the queues.

A store of RocketMQ has no durable floor. Two facts take its place.

1. The checkpoint names a store time up to which the log was flushed. RocketMQ 4.9.3 may name the time of the record
   that made the log roll, so the last three seconds prove nothing. With a transient store pool the time is that of
   bytes in a private buffer, and nothing is proved.
2. After a clean exit every message of a queue is in the log. A last unit that points past the end of the log is one of
   a record that is missing, unless the log has a record with that number: then only the unit is damaged. A unit of a
   place where no record fits is damaged, and proves nothing.

Source: `StoreCheckpoint.getMinTimestamp`, `DefaultMessageStore.shutdown`.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Files
from tornpage.impl.message import codec
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.units import UNIT, Unit

__all__ = ["FLUSHED_MARGIN_MS", "LastUnit", "flushed_time", "last_units"]

FLUSHED_MARGIN_MS = 3_000
_NAME_DIGITS = 20
_QUEUE_ID = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)


class LastUnit(NamedTuple):
    """The last unit of a queue: its file, its number in the queue, and itself."""

    key: QueueKey
    path: str
    number: int
    unit: Unit


def flushed_time(checkpoint: Checkpoint, *, has_pool: bool, now_ms: int) -> int:
    """Return the store time (ms) up to which the log was certainly flushed, or 0.

    A checkpoint of a later time than now is damaged, and proves nothing.
    """
    time = checkpoint.physic_msg_timestamp
    return 0 if has_pool or time > now_ms else max(0, time - FLUSHED_MARGIN_MS)


def last_units(files: Files, root: str, *, queue_file_bytes: int, log_file_bytes: int) -> list[LastUnit]:
    """Return the last unit of each queue that may point to a record.

    Cost: one file of each queue is read. Raises OSError.
    """
    found: list[LastUnit] = []
    for topic in _directories(files, f"{root}/consumequeue"):
        for queue_id in _directories(files, f"{root}/consumequeue/{topic}"):
            if _QUEUE_ID.fullmatch(queue_id):
                directory = f"{root}/consumequeue/{topic}/{queue_id}"
                key = os.fsencode(topic), int(queue_id)
                found += _last_unit(files, directory, key, queue_file_bytes, log_file_bytes)
    return found


def _directories(files: Files, path: str) -> list[str]:
    names = files.list_directory(path) if files.stat(path) else []
    return [name for name in names if (stat := files.stat(f"{path}/{name}")) is not None and stat.kind == "directory"]


def _fits(unit: Unit, log_file_bytes: int) -> bool:
    """Return whether a record may have the place and the size that a unit states."""
    room = log_file_bytes - unit.offset % log_file_bytes - codec.BLANK_BYTES
    return codec.SMALLEST_RECORD_BYTES <= unit.size <= room


def _last_unit(files: Files, directory: str, key: QueueKey, file_bytes: int, log_file_bytes: int) -> Iterator[LastUnit]:
    """Yield the last unit of a queue that may point to a record, if there is one."""
    for name in sorted(files.list_directory(directory), reverse=True):
        path = f"{directory}/{name}"
        stat = files.stat(path)
        is_queue_file = stat is not None and stat.kind == "file" and stat.size_bytes == file_bytes
        if not is_queue_file or len(name) != _NAME_DIGITS or not (name.isascii() and name.isdigit()):
            continue
        file = files.open(path, writable=False)
        try:
            data = files.read(file, 0, file_bytes)
        finally:
            files.close(file)
        # Most of a file is zeros: RocketMQ makes it for 300,000 units.
        for index in reversed(range(-(-len(data.rstrip(b"\0")) // UNIT_BYTES))):
            unit = Unit._make(UNIT.unpack_from(data, index * UNIT_BYTES))
            if unit.is_possible and not unit.is_prefill and _fits(unit, log_file_bytes):
                yield LastUnit(key, path, int(name) // UNIT_BYTES + index, unit)
                return
