"""What a producer was told about the records of an image: the file `truth.json` of a golden store.

`records` has one entry per stored record, in put order: `commitLogOffset`, `storeSize`, `recordSha256`, `status`, and
`flushed` after a kill. `damage` is there when the image was damaged afterwards as a power loss damages one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.record import Record

__all__ = ["Told", "Truth", "read_truth", "truth_of"]

_BYTES_MAX = 256 << 20
_STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


@dataclass(frozen=True, slots=True)
class Told:
    """One record that a producer was told is stored."""

    offset: int
    size_bytes: int
    sha256: str
    flushed: bool

    def is_record(self, record: Record) -> bool:
        """Whether a record of a log is this one, byte for byte."""
        return (record.offset, record.size_bytes) == (self.offset, self.size_bytes) and (
            sha256(record.raw).hexdigest() == self.sha256
        )


@dataclass(frozen=True, slots=True)
class Truth:
    """Records by physical offset, in order; `power_loss` says that only flushed ones had to survive.

    `has_copies` says that messages were delivered later, whose copies nobody was told of.
    """

    records: Mapping[int, Told]
    power_loss: bool
    has_copies: bool

    @property
    def due(self) -> tuple[Told, ...]:
        """The records that have to survive: of a killed process all of them."""
        return tuple(told for told in self.records.values() if told.flushed or not self.power_loss)


def read_truth(path: str, *, power_loss: bool | None = None) -> Truth:
    """Read a file of truth. Raises InspectError."""
    try:
        with Path(path).open("rb") as file:
            stored = file.read(_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read the truth {path!r}: {reason}; check the path") from error
    try:
        if len(stored) > _BYTES_MAX:
            raise ValueError("too long")
        document = json.loads(stored)
        return truth_of(document, power_loss=power_loss)
    except (ValueError, RecursionError, OverflowError, KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"[:200]
        raise InspectError(
            f"{path!r} is no truth ({what}); it has `records` with commitLogOffset, storeSize, recordSha256"
        ) from error


def truth_of(document: Mapping[str, Any], *, power_loss: bool | None = None) -> Truth:
    """Return what a document says; `power_loss` is asked of it when nobody tells. Raises KeyError, TypeError."""
    told = [
        Told(
            int(row["commitLogOffset"]),
            int(row["storeSize"]),
            str(row["recordSha256"]),
            bool(row.get("flushed", row.get("status", _STORED[0]) == _STORED[0])),
        )
        for row in document["records"]
        if row.get("status", _STORED[0]) in _STORED
    ]
    topics = {row.get("topic") for row in document["records"]}
    return Truth(
        {record.offset: record for record in sorted(told, key=lambda record: record.offset)},
        "damage" in document if power_loss is None else power_loss,
        "SCHEDULE_TOPIC_XXXX" in topics,
    )
