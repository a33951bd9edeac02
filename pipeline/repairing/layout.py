"""Lay out the log of a copy: the valid records, and the lost stretches between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.properties.decode.record import END_RESERVE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Hole", "LogLayout", "lay_out", "valid_in_files"]


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of one log file without a valid record; a tail ends with its file."""

    start: int
    end: int
    is_tail: bool


@dataclass(frozen=True, slots=True)
class LogLayout:
    """The files of the log by their offsets, and its holes in order.

    `end` is the end of the last valid record. The holes past it are the rest of its file, and further files.
    """

    bases: tuple[int, ...]
    file_bytes: int
    end: int
    holes: tuple[Hole, ...]

    def base_of(self, offset: int) -> int:
        """Return the offset at which the file of an offset begins."""
        return offset - (offset - self.bases[0]) % self.file_bytes

    def lost_bytes(self, start: int, end: int) -> int:
        """Return how many bytes of holes lie between two offsets."""
        return sum(max(0, min(hole.end, end) - max(hole.start, start)) for hole in self.holes)

    def between(self, start: int, end: int) -> list[Hole]:
        """Return the holes that lie between two offsets."""
        return [hole for hole in self.holes if hole.start >= start and hole.end <= end]


def valid_in_files(records: NDArray[Any], *, begin: int, file_bytes: int) -> NDArray[Any]:
    """Tell which records, in order, overlap no earlier one and end within their file.

    The log begins at offset `begin`.
    """
    offset, end = records["offset"], records["offset"] + records["size"]
    is_inside = (offset - begin) // file_bytes == (end + END_RESERVE_BYTES - 1 - begin) // file_bytes
    before = np.maximum.accumulate(np.concatenate([[0], np.where(is_inside, end, 0)[:-1]])) if len(records) else end
    inside: NDArray[Any] = is_inside & (offset >= before)
    return inside


def lay_out(records: NDArray[Any], *, begin: int, file_bytes: int, reach: int = 0) -> LogLayout:
    """Lay out valid records, in order, in a log that begins at `begin`.

    Its files go on as far as offset `reach`.
    """
    offset, end = records["offset"], records["offset"] + records["size"]
    last = int(end[-1]) if len(records) else begin
    bases = tuple(range(begin, max(last, reach, begin + 1), file_bytes))
    holes: list[Hole] = []
    starts = np.concatenate([[begin], end])
    stops = np.concatenate([offset, [bases[-1] + file_bytes]])
    for start, stop in zip(starts[starts < stops].tolist(), stops[starts < stops].tolist(), strict=True):
        while start < stop:
            file_end = start - (start - begin) % file_bytes + file_bytes
            holes.append(Hole(start, min(file_end, stop), file_end <= stop))
            start = file_end
    return LogLayout(bases, file_bytes, last, tuple(holes))
