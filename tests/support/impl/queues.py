"""Helpers of the queue tests: units, runs, small queues, and units of RocketMQ."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import ExtDraft, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.directory_tree import DirectoryTree
from tornpage.impl.queue.queue_files import QueueFiles

__all__ = [
    "EMPTY",
    "KEY",
    "PREFILL",
    "bytes_in",
    "files_of",
    "log_of",
    "queue_of",
    "reconciled",
    "run_of",
    "told_units",
]

UNIT = struct.Struct(">qiq")
EXT = struct.Struct(">hqqh")
KEY: QueueKey = (b"TopicTest", 3)
EMPTY = bytes(20)
PREFILL = bytes.fromhex("00000000000000007fffffff0000000000000000")


def run_of(
    number: int, count: int = 1, *, key: QueueKey = KEY, step: int = 100, code: int = 7, ext: bytes | None = None
) -> QueueRun:
    """Return units of consecutive numbers.

    The record of number n lies at n * step and has step - 1 bytes. With `ext` each has a draft with this bit map.
    """
    numbers = range(number, number + count)
    units = b"".join(UNIT.pack(n * step, step - 1, code) for n in numbers)
    drafts = [] if ext is None else [ExtDraft(code, 1_700_000_000_000 + n, ext) for n in numbers]
    return QueueRun(key, number, units, (number + count) * step - 1, drafts)


def files_of(
    root: Path,
    *,
    files: OsFiles | None = None,
    name: str = "consumequeue",
    file_bytes: int = 100,
    writable: bool = True,
) -> QueueFiles:
    """Return the files of one queue below a root, with room for five units each by default."""
    used = files or OsFiles()
    return QueueFiles(
        used,
        f"{root}/{name}/TopicTest/3",
        tree=DirectoryTree(used, str(root)),
        file_bytes=file_bytes,
        writable=writable,
    )


def queue_of(
    root: Path,
    *,
    files: OsFiles | None = None,
    file_bytes: int = 100,
    ext_file_bytes: int = 0,
    writable: bool = True,
    clean_exit: bool = False,
    bit_maps: bool = False,
) -> ConsumeQueue:
    """Load a small queue."""
    ext = None
    if ext_file_bytes:
        ext = ConsumeQueueExt(
            files_of(root, files=files, name="consumequeue_ext", file_bytes=ext_file_bytes, writable=writable)
        )
    units = files_of(root, files=files, file_bytes=file_bytes, writable=writable)
    queue = ConsumeQueue(KEY, units, ext=ext, clean_exit=clean_exit, bit_maps=bit_maps)
    queue.load()
    return queue


def reconciled(queue: ConsumeQueue, runs: Sequence[QueueRun], *, log_min: int = 0) -> bool:
    """Prove a queue with the runs of a log; return whether anything was erased."""
    for run in runs:
        queue.reconcile(run)
    erased = queue.end_reconcile(log_min)
    queue.check()
    return erased


def bytes_in(root: Path, name: str = "consumequeue/TopicTest/3") -> dict[str, bytes]:
    """Return the files of a directory by the last four digits of their names."""
    directory = root / name
    return {path.name[-4:]: path.read_bytes() for path in sorted(directory.iterdir())} if directory.exists() else {}


def told_units(units: Sequence[tuple[int, int, int]]) -> bytes:
    """Return units as bytes."""
    return b"".join(UNIT.pack(*unit) for unit in units)


def _ext_draft(directory: Path, address: int) -> ExtDraft:
    """Return the bytes that RocketMQ stored at an address."""
    position = address + (1 << 63)
    base, path = max((int(path.name), path) for path in directory.iterdir() if int(path.name) <= position)
    data = path.read_bytes()[position - base :]
    size, code, timestamp, length = EXT.unpack_from(data)
    assert size == 20 + length
    return ExtDraft(code, timestamp, data[20 : 20 + length])


def log_of(store: Path) -> Iterator[QueueRun]:
    """Yield the units of all queues of a store, as runs of one in the order of the log."""
    found = []
    for directory in sorted((store / "consumequeue").glob("*/*")):
        key = (str(directory.parent.name).encode(errors="surrogateescape"), int(directory.name))
        ext = store / "consumequeue_ext" / directory.parent.name / directory.name
        for path in sorted(directory.iterdir()):
            for number, (offset, size, code) in enumerate(UNIT.iter_unpack(path.read_bytes()), int(path.name) // 20):
                if size and (offset, size) != (0, 0x7FFFFFFF):
                    draft = [_ext_draft(ext, code)] if code < -(1 << 31) else []
                    units = UNIT.pack(offset, size, draft[0].tags_code if draft else code)
                    found.append((offset, key, QueueRun(key, number, units, offset + size, draft)))
    return (run for *_, run in sorted(found, key=lambda row: row[:2]))
