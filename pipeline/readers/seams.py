"""Split one log file into parts for several tasks whose results equal one walk.

A part begins at the first record at or after its nominal start, and takes items up to the first record at or after the
nominal start of the next part. The step of a walk from item to item depends on the place alone. So all parts together
equal the one walk if each part ends exactly where the next one begins (proof by induction from the start of the file).
Each part computes where the next one will begin and reports a problem if it did not get there.

The first record after a place can be false: a body may contain bytes that are a valid record for exactly their place. A
false record lies inside a true one, so a place is taken only if no valid record of `LOOK_BACK_BYTES` or less spans it.
That covers what a broker with the default limit (4 MiB a message) can hold. What remains (larger records made to
deceive, and valid records after the end mark of their file) is found by the part before, and reported as a problem.
"""

from __future__ import annotations

import struct

from tornpage.properties.decode.record import RECORD_MAGIC, Record
from tornpage.properties.decode.walk import Source, decode_at, next_record

__all__ = ["LOOK_BACK_BYTES", "part_starts", "seam"]

LOOK_BACK_BYTES = 5 * 1024 * 1024

_MAGIC = struct.pack(">I", RECORD_MAGIC)
_PLACE = struct.Struct(">iI20xq")


def part_starts(size_bytes: int, split_bytes: int) -> tuple[int, ...]:
    """Return the nominal starts of the parts of a file.

    The last part may be half as long again as the others.
    """
    if not split_bytes:
        return (0,)
    return tuple(range(0, max(1, size_bytes - split_bytes // 2), split_bytes))


def seam(
    source: Source,
    start: int,
    *,
    base_offset: int,
    file_bytes: int,
    record_bytes_max: int,
    look_back_bytes: int = LOOK_BACK_BYTES,
) -> int | None:
    """Return the place of the first record at or after `start` that no other record spans.

    The result is None if there is none. Cost: `look_back_bytes` are searched for starts of records.
    """
    place = start
    while place < source.end:
        # next_record searches for a magic, so the first possible place is `place` itself
        found = next_record(source, place, base_offset, file_bytes, record_bytes_max)
        if found >= source.end:
            return None
        end = _end_of_spanning(source, found, base_offset, file_bytes, record_bytes_max, look_back_bytes)
        if end is None:
            return found
        place = end
    return None


def _end_of_spanning(
    source: Source, place: int, base_offset: int, file_bytes: int, record_bytes_max: int, look_back_bytes: int
) -> int | None:
    """Return the end of a valid record that begins before `place` and ends after it, or None."""
    first = max(0, place - look_back_bytes)
    window = source.read(first, place - first + _PLACE.size)
    at = window.find(_MAGIC, 4)
    while 0 <= at - 4 < place - first:
        begin = at - 4
        if begin + _PLACE.size <= len(window):
            size, _, stated = _PLACE.unpack_from(window, begin)
            if stated == base_offset + first + begin and first + begin + size > place:
                item = decode_at(source, first + begin, base_offset, file_bytes, record_bytes_max)
                if isinstance(item, Record):
                    return first + begin + item.size_bytes
        at = window.find(_MAGIC, at + 1)
    return None
