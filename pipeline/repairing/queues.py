"""Build consume queue files from the units that the log needs.

1. A queue begins in the file with its first number. Pre-fill stands before it, and at numbers without a message.
2. Each number belongs to one record; `pipeline.repairing.numbering` has chosen it.
3. A queue without any record left in the log keeps its last file, so that its numbers continue.
4. Units have tags codes or due times, never an address: there is no extension.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.properties.decode.consumequeue import PREFILL_BYTES, UNIT_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["write_queues"]

_UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
_NUMBER_MAX = 2**40

assert _UNIT.itemsize == UNIT_BYTES


def write_queues(
    directory: Path,
    rows: StoreRows,
    *,
    log_min: int,
    file_bytes: int,
    delays_ms: Mapping[QueueKey, int],
    names: Mapping[QueueKey, Path],
) -> tuple[int, int]:
    """Write all queues of `rows.wanted`; return the numbers of queues and units.


    `names` are the directories of the queues, for topics that are not text.
    """
    wanted = rows.wanted
    wanted = wanted[np.argsort(wanted["queue"], kind="stable")]
    queues = units = 0
    starts = np.searchsorted(wanted["queue"], np.arange(len(rows.numbers.keys) + 1))
    outlived = _outlived(rows, log_min)
    for number, key in enumerate(rows.numbers.keys):
        mine = wanted[starts[number] : starts[number + 1]]
        numbers, stored = _units_of(mine, delays_ms.get(key, 0))
        if not len(numbers):
            numbers, stored = outlived.get(number, (numbers, stored))
        if not len(numbers):
            continue
        where = directory / names.get(key, Path(os.fsdecode(key[0].encode())) / str(key[1]))
        _write(where, numbers, stored, file_bytes)
        queues, units = queues + 1, units + len(numbers)
    return queues, units


def _units_of(wanted: NDArray[Any], delay_ms: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers, ascending, and units of a queue."""
    wanted = wanted[np.argsort(wanted["queue_offset"], kind="stable")]
    stored = np.empty(len(wanted), _UNIT)
    stored["offset"], stored["size"] = wanted["offset"], wanted["size"]
    stored["code"] = np.where(wanted["is_delayed"], wanted["timestamp"] + delay_ms, wanted["tags_code"])
    return wanted["queue_offset"], stored


def _outlived(rows: StoreRows, log_min: int) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
    """Return, per queue, the last unit that points before the log."""
    units = rows.units
    is_old = (units["offset"] >= 0) & (units["size"] > 0) & (units["offset"] + units["size"] <= log_min)
    units = units[is_old & (units["queue_offset"] < _NUMBER_MAX)]
    units = units[np.lexsort((units["queue_offset"], units["queue"]))]
    is_last = np.ones(len(units), bool)
    is_last[:-1] = units["queue"][1:] != units["queue"][:-1]
    kept = {}
    for unit in units[is_last]:
        stored = np.zeros(1, _UNIT)
        stored["offset"], stored["size"], stored["code"] = unit["offset"], unit["size"], unit["tags_code"]
        kept[int(unit["queue"])] = (np.array([unit["queue_offset"]]), stored)
    return kept


def _write(directory: Path, numbers: NDArray[Any], stored: NDArray[Any], file_bytes: int) -> None:
    """Write the files from the one with the first number to the one with the last."""
    directory.mkdir(parents=True)
    file_units = file_bytes // UNIT_BYTES
    first, last = int(numbers[0]), int(numbers[-1])
    for base in range(first - first % file_units, last + 1, file_units):
        units = np.zeros(file_units, _UNIT)
        units["size"][: min(file_units, last + 1 - base)] = PREFILL_BYTES
        start, end = np.searchsorted(numbers, [base, base + file_units])
        units[numbers[start:end] - base] = stored[start:end]
        path = directory / f"{base * UNIT_BYTES:020}"
        used = (min(last + 1, base + file_units) - base) * UNIT_BYTES
        with path.open("xb") as file:
            file.write(units.tobytes()[:used])
            file.truncate(file_units * UNIT_BYTES)
