"""Make the image that a power loss leaves from a log of block writes.

Every write that a later flush covers is on the medium. Each other write is there, or not, or with a part of its sectors
of 512 bytes, independently of the others. Writes that overlap take effect in their order.
"""

import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tornpage.properties.explore.real_faults.file_systems.block_device import BlockWrite, Flush, Logged, Mark

__all__ = ["PATTERNS", "PowerLoss", "copied", "power_losses"]

SECTOR_BYTES = 512
PATTERNS = ("none", "all", "prefix", "subset", "torn")
"""Which of the writes that no flush covers are on the medium: none, all, the first ones, any, or any sectors."""
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """One power loss: the last mark before it, the number of writes in flight, and its image.

    The image belongs to the caller of `power_losses` until the next one is asked for.
    """

    mark: int
    in_flight: int
    pattern: str
    image: int


def copied(image: int) -> int:
    """Return a descriptor of a sparse copy in memory."""
    size_bytes = os.fstat(image).st_size
    copy = os.memfd_create("tornpage-image", os.MFD_CLOEXEC)
    os.ftruncate(copy, size_bytes)
    start = 0
    while start < size_bytes:
        try:
            start = os.lseek(image, start, os.SEEK_DATA)
        except OSError:  # only a hole is left
            break
        end = os.lseek(image, start, os.SEEK_HOLE)
        while start < end:
            data = os.pread(image, min(_COPY_BYTES, end - start), start)
            os.pwrite(copy, data, start)
            start += len(data)
    return copy


def power_losses(
    base: int, log: Iterable[Logged], count: int, rng: random.Random, *, whole: range = range(0)
) -> Iterator[PowerLoss]:
    """Yield `count` power losses in the order of the log.

    They fall between the first mark and the last. `base` is the image before the first entry of the log. No write that
    begins in `whole` is torn.
    """
    entries = list(log)
    marks = [number for number, entry in enumerate(entries) if isinstance(entry, Mark)]
    points = sorted(rng.randrange(marks[0] + 1, marks[-1] + 1) for _ in range(count))
    medium, pending, mark, taken = copied(base), list[BlockWrite](), 0, 0
    try:
        for point in points:
            for entry in entries[taken:point]:
                if isinstance(entry, BlockWrite):
                    pending.append(entry)
                elif isinstance(entry, Flush):
                    for write in pending:
                        os.pwrite(medium, write.data, write.position)
                    pending.clear()
                else:
                    mark = entry.number
            taken = point
            image, pattern = copied(medium), rng.choice(PATTERNS)
            try:
                for write in _surviving(pending, pattern, rng, whole):
                    os.pwrite(image, write.data, write.position)
                yield PowerLoss(mark, len(pending), pattern, image)
            finally:
                os.close(image)
    finally:
        os.close(medium)


def _surviving(pending: list[BlockWrite], pattern: str, rng: random.Random, whole: range) -> Iterator[BlockWrite]:
    if pattern == "all":
        yield from pending
    elif pattern == "prefix":
        yield from pending[: rng.randrange(len(pending) + 1)]
    elif pattern == "subset":
        yield from (write for write in pending if rng.random() < 0.5)
    elif pattern == "torn":
        for write in pending:
            if write.position in whole or rng.random() < 0.5:
                if rng.random() < 0.8:
                    yield write
                continue
            for start in range(0, len(write.data), SECTOR_BYTES):
                if rng.random() < 0.5:
                    yield BlockWrite(write.position + start, write.data[start : start + SECTOR_BYTES])
