"""Build consume queue files from the units that the log needs.

1. A queue begins in the file with its first number. Pre-fill stands before it, and at numbers without a message.
2. Of two records with one number the first counts, as in RocketMQ. After more missing numbers than a file has, a queue
   does not continue. The audit of the copy names what is left out.
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

__all__ = ["has_place", "write_queues"]

_UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
_NUMBER_MAX = 2**40

assert _UNIT.itemsize == UNIT_BYTES


def write_queues(
    directory: Path,
    rows: StoreRows,
    *,
    log_min: int,
    end_offset: int,
    file_bytes: int,
    delays_ms: Mapping[QueueKey, int],
    names: Mapping[QueueKey, Path],
) -> tuple[int, int]:
    """Write all queues of the log up to an offset; return the numbers of queues and units.

    `names` are the directories of the queues, for topics that are not text.
    """
    wanted = rows.wanted[rows.wanted["offset"] < end_offset]
    wanted = wanted[np.argsort(wanted["queue"], kind="stable")]
    queues = units = 0
    starts = np.searchsorted(wanted["queue"], np.arange(len(rows.numbers.keys) + 1))
    outlived = _outlived(rows, log_min)
    for number, key in enumerate(rows.numbers.keys):
        mine = wanted[starts[number] : starts[number + 1]]
        numbers, stored = _units_of(mine, file_bytes // UNIT_BYTES, delays_ms.get(key, 0))
        if not len(numbers):
            numbers, stored = outlived.get(number, (numbers, stored))
        if not len(numbers):
            continue
        where = directory / names.get(key, Path(os.fsdecode(key[0].encode())) / str(key[1]))
        _write(where, numbers, stored, file_bytes)
        queues, units = queues + 1, units + len(numbers)
    return queues, units


def has_place(numbers: NDArray[Any], file_units: int) -> NDArray[Any]:
    """Return which numbers, in the order of the log, continue their queue."""
    possible = np.flatnonzero((numbers >= 0) & (numbers < _NUMBER_MAX))
    highest = np.maximum.accumulate(numbers[possible])
    goes_on = np.ones(len(possible), bool)
    goes_on[1:] = (numbers[possible][1:] > highest[:-1]) & (np.diff(highest) <= file_units + 1)
    if len(too_far := np.flatnonzero(np.diff(highest) > file_units + 1)):
        goes_on[too_far[0] + 1 :] = False
    found = np.zeros(len(numbers), bool)
    found[possible] = goes_on
    return found


def _units_of(wanted: NDArray[Any], file_units: int, delay_ms: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the units of a queue with their numbers, ascending."""
    wanted = wanted[has_place(wanted["queue_offset"], file_units)]
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
