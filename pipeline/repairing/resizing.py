"""Convert the log of a copy to files of another size.

1. The records keep their order. A record that would cross the end of a file begins the next file, after a blank.
2. Each record gets its new physical offset in its header, and a trailer that fits. The prepared transaction offset of a
   commit or rollback follows its half message.
3. The log begins at the first multiple of the new size that is not below its old begin, so that units of expired
   records still point before it.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tornpage.pipeline.repairing.fillers import ROLLED_BACK, blank, changed
from tornpage.properties.decode.record import END_RESERVE_BYTES, Record
from tornpage.properties.decode.store import iter_items, look

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Moved", "convert_log"]

_PHYSICAL_OFFSET_AT = 28
_I64 = struct.Struct(">q")
_PREPARED_AT = 76
"""Where the prepared transaction offset lies in a record with two IPv4 hosts."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The records of a converted log.

    `before` and `after` are their physical offsets, in order. `end` is the end of the log.
    """

    before: NDArray[Any]
    after: NDArray[Any]
    end: int

    def rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows with the new offsets of their records."""
        moved = rows.copy()
        if len(rows):
            moved["offset"] = self.after[np.searchsorted(self.before, rows["offset"])]
        return moved

    def bound(self, offset: int) -> int:
        """Return the new offset of the first record at or past an old offset.

        Past the last record it is the end of the log.
        """
        at = int(np.searchsorted(self.before, offset))
        return int(self.after[at]) if at < len(self.after) else self.end


def convert_log(copy: Path, *, file_bytes: int, new_file_bytes: int) -> Moved:
    """Replace the log of a copy by one with files of `new_file_bytes`.

    Each record has room in such a file. Cost: the log a second time on the disk, and some 200 bytes of memory a record.
    Raises OSError.
    """
    view = look(copy, file_bytes=file_bytes)
    old = view.files[0].base_offset
    begin = position = old + -old % new_file_bytes
    made = copy / "commitlog.converted"
    made.mkdir()
    moved: dict[int, int] = {}
    file = _opened(made, begin)
    try:
        for each in iter_items(view):
            record = each.item
            if not isinstance(record, Record):
                continue
            room = new_file_bytes - position % new_file_bytes
            if record.size_bytes + END_RESERVE_BYTES > room:
                file.write(blank(room))
                _close(file, new_file_bytes)
                position += room
                file = _opened(made, position)
            moved[record.offset] = position
            file.write(_at(record, position, moved))
            position += record.size_bytes
    finally:
        _close(file, new_file_bytes)
    shutil.rmtree(copy / "commitlog")
    made.rename(copy / "commitlog")
    return Moved(np.array(list(moved), "i8"), np.array(list(moved.values()), "i8"), position)


def _opened(directory: Path, base_offset: int) -> BinaryIO:
    return (directory / f"{base_offset:020}").open("xb")


def _close(file: BinaryIO, file_bytes: int) -> None:
    if not file.closed:
        with file:
            file.truncate(file_bytes)


def _at(record: Record, offset: int, moved: dict[int, int]) -> bytes:
    """Return the bytes of a record at another physical offset."""
    raw = bytearray(record.raw)
    _I64.pack_into(raw, _PHYSICAL_OFFSET_AT, offset)
    if record.sys_flag & ROLLED_BACK:
        at = _PREPARED_AT + (12 if record.sys_flag & 0x10 else 0) + (12 if record.sys_flag & 0x20 else 0)
        before = record.prepared_transaction_offset
        _I64.pack_into(raw, at, moved.get(before, before))
    return changed(bytes(raw))
