"""Find how far the log once went, from the checkpoint and the queues.

A store of RocketMQ has no durable floor. Two facts take its place.

1. The checkpoint names a store time up to which the log was flushed. RocketMQ 4.9.3 may name the time of the record
   that made the log roll, so the last three seconds prove nothing. With a transient store pool the time is that of
   bytes in a private buffer, and nothing is proved.
2. After a clean exit every message of a queue is in the log. A unit that points past the end of the log is one of a
   record that is missing.

Source: `StoreCheckpoint.getMinTimestamp`, `DefaultMessageStore.shutdown`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Files
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.queue.units import UNIT, Unit, count_possible

__all__ = ["FLUSHED_MARGIN_MS", "MissingUnit", "flushed_time", "newest_unit"]

FLUSHED_MARGIN_MS = 3_000
_NAME_DIGITS = 20


class MissingUnit(NamedTuple):
    """The unit that points furthest: its file, its number in the queue, and itself."""

    path: str
    number: int
    unit: Unit


def flushed_time(checkpoint: Checkpoint, *, has_pool: bool) -> int:
    """Return the store time (ms) up to which the log was certainly flushed, or 0."""
    return 0 if has_pool else max(0, checkpoint.physic_msg_timestamp - FLUSHED_MARGIN_MS)


def newest_unit(files: Files, root: str, *, queue_file_bytes: int) -> MissingUnit | None:
    """Return the unit of all queues that points furthest, None without any. Raises OSError.

    Cost: one file of each queue is read.
    """
    found = [
        each
        for directory in _queues(files, f"{root}/consumequeue")
        for each in _last_unit(files, directory, queue_file_bytes)
    ]
    return max(found, key=lambda each: each.unit.end_offset, default=None)


def _queues(files: Files, path: str) -> Iterator[str]:
    for topic in _directories(files, path):
        yield from _directories(files, topic)


def _directories(files: Files, path: str) -> Iterator[str]:
    for name in files.list_directory(path) if files.stat(path) else []:
        stat = files.stat(f"{path}/{name}")
        if stat is not None and stat.kind == "directory":
            yield f"{path}/{name}"


def _last_unit(files: Files, directory: str, file_bytes: int) -> Iterator[MissingUnit]:
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
        count = count_possible(memoryview(data))
        while count and (unit := Unit(*UNIT.unpack_from(data, (count - 1) * UNIT_BYTES))).is_prefill:
            count -= 1
        if count:
            yield MissingUnit(path, int(name) // UNIT_BYTES + count - 1, unit)
            return
