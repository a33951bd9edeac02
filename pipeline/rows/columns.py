"""Log, queues and index as NumPy rows, for audits and repairs.

* `RECORDS`, one row per valid record: physical offset, size (bytes), number of its own queue, store time (ms).
* `WANTED`, one row per unit that the log needs: the record's offset, number of the queue, queue offset, size, tags code
  (of a delayed one only the tag's hash), whether it is delayed or of a light queue, store time.
* `KEYS`, one row per index entry that the log needs: the record's offset, hash of the key, store time, and a number
  that rises by one from key to key of a log file, beginning with the first offset of the file.
* `UNITS`, one row per unit found: physical offset as stored, number of the queue, queue offset, size, tags code (with
  `has_code`; from the extension where the unit has an `address`, else 0).
* `ENTRIES`, one row per index entry found: physical offset as stored, hash, seconds, number of the file, number of the
  entry.

Rows of the log are in its order. Queues are numbered by their `QueueNumbers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ENTRIES",
    "KEYS",
    "RECORDS",
    "UNITS",
    "WANTED",
    "LogBatch",
    "LogPlaces",
    "QueueKey",
    "QueueNumbers",
    "joined",
]

QueueKey = tuple[str, int]
"""Topic and queue id."""

RECORDS = np.dtype([("offset", "i8"), ("size", "i8"), ("queue", "i4"), ("timestamp", "i8")])
WANTED = np.dtype(
    [
        ("offset", "i8"),
        ("queue", "i4"),
        ("queue_offset", "i8"),
        ("size", "i8"),
        ("tags_code", "i8"),
        ("is_delayed", "?"),
        ("is_light", "?"),
        ("timestamp", "i8"),
    ]
)
KEYS = np.dtype([("offset", "i8"), ("hash", "i4"), ("timestamp", "i8"), ("place", "i8")])
UNITS = np.dtype(
    [
        ("offset", "i8"),
        ("queue", "i4"),
        ("queue_offset", "i8"),
        ("size", "i8"),
        ("tags_code", "i8"),
        ("has_code", "?"),
        ("address", "i8"),
    ]
)
ENTRIES = np.dtype([("offset", "i8"), ("hash", "i4"), ("seconds", "i8"), ("file", "i4"), ("number", "i8")])


class QueueNumbers:
    """Gives numbers to queues in the order of first use."""

    def __init__(self) -> None:
        self.keys: list[QueueKey] = []
        self._numbers: dict[QueueKey, int] = {}

    def of(self, key: QueueKey) -> int:
        """Return the number of a queue."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number


class LogPlaces:
    """The places of records, to map an offset to the number of its record.

    Records are numbered in the order of offsets.
    """

    def __init__(self, offsets: NDArray[Any]) -> None:
        self.order = np.argsort(offsets, kind="stable")
        self._sorted = offsets[self.order]

    def __len__(self) -> int:
        return len(self._sorted)

    def numbers(self, offsets: NDArray[Any]) -> NDArray[Any]:
        """Return the number of the record at each offset, -1 where none begins."""
        if not len(self._sorted):
            return np.full(len(offsets), -1, "i8")
        at = np.minimum(np.searchsorted(self._sorted, offsets), len(self._sorted) - 1)
        return np.where(self._sorted[at] == offsets, at, -1)


class LogBatch(NamedTuple):
    """Consecutive records of one log file, with the units and keys that they need."""

    records: NDArray[Any]
    wanted: NDArray[Any]
    keys: NDArray[Any]


def joined(parts: Iterable[NDArray[Any]], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the rows of all parts, one part after the other."""
    return np.concatenate([np.empty(0, kind), *parts])
