"""Build index files from the keys of the log, byte for byte as RocketMQ writes them.

The format is in docs/format.md, 13.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.index_compare import seconds_since
from tornpage.pipeline.repairing.plan import IndexShape
from tornpage.pipeline.rows.index_reading import ENTRY, newest_before
from tornpage.properties.decode.index import HEADER_BYTES, SLOT_BYTES, index_file_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["write_index"]

_HEADER = struct.Struct(">qqqqii")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 1, 1, tzinfo=UTC)


def write_index(directory: Path, keys: NDArray[Any], shape: IndexShape) -> tuple[int, int]:
    """Write as many files as the keys need; return their number and an end time.

    The end time (ms) is that of the last full file, 0 without one.
    """
    room = shape.entries_max - 1
    inherited, full_until, name = 0, 0, ""
    for number, start in enumerate(range(0, len(keys), room)):
        mine = keys[start : start + room]
        name = _name_behind(name, int(mine["timestamp"][0]))
        directory.mkdir(exist_ok=True)
        _write(directory / name, mine, shape, inherited=inherited)
        inherited = max(0, int(mine["timestamp"][-1]))
        if len(mine) == room:
            full_until = inherited
        files = number + 1
    return (files if len(keys) else 0), full_until


def _write(path: Path, keys: NDArray[Any], shape: IndexShape, *, inherited: int) -> None:
    """Write one file; `inherited` is the time that its header takes from the file before."""
    numbers = np.arange(1, len(keys) + 1)
    newest = np.zeros(shape.slots, "i4")
    entries = np.empty(len(keys), ENTRY)
    entries["hash"], entries["offset"] = keys["hash"], keys["offset"]
    entries["previous"] = newest_before(keys["hash"] % shape.slots, numbers, newest)
    begin = int(keys["timestamp"][0])
    entries["seconds"] = seconds_since(np.where(numbers == 1, inherited, begin), keys["timestamp"])
    header = _HEADER.pack(
        begin,
        int(keys["timestamp"][-1]),
        int(keys["offset"][0]),
        int(keys["offset"][-1]),
        int(np.count_nonzero(newest)),
        len(keys) + 1,
    )
    with path.open("xb") as file:
        file.write(header)
        file.write(newest.astype(">i4").tobytes())
        file.seek(HEADER_BYTES + SLOT_BYTES * shape.slots + ENTRY.itemsize)
        file.write(entries.tobytes())
        file.truncate(index_file_bytes(slots=shape.slots, entries=shape.entries_max))


def _name_behind(last: str, timestamp_ms: int) -> str:
    """Return the name of a file made at a store time, or just after the last one."""
    moment = min(max(_EPOCH + timedelta(milliseconds=max(0, min(timestamp_ms, 1 << 47))), _EPOCH), _LAST)
    if last:
        before = datetime.strptime(last[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC) + timedelta(
            milliseconds=int(last[14:])
        )
        moment = max(moment, before + timedelta(milliseconds=1))
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"
