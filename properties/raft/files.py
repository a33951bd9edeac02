"""Say what the files of a Raft log have to hold, without the store's code.

Source: the tables of entries and units in docs/replication/dledger.md and impl/raft/entry_codec.py.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

__all__ = ["BLANK_BYTES", "HEADER_BYTES", "UNIT_BYTES", "LogFiles", "Row", "laid_out"]

_HEADER = struct.Struct(">iiqqqiIIi")
_UNIT = struct.Struct(">iqiqq")
HEADER_BYTES, UNIT_BYTES, BLANK_BYTES = 48, 32, 8


@dataclass(frozen=True, slots=True)
class Row:
    """An entry: its place, its term, its position and its body."""

    place: int
    term: int
    position: int
    body: bytes

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + HEADER_BYTES + len(self.body)

    def data(self, *, sealed: bool = True) -> bytes:
        """Return its bytes. DLedger writes no checksums."""
        size, of_body = HEADER_BYTES + len(self.body), crc32(self.body)
        seal = crc32(struct.pack(">iqqqI", size, self.place, self.term, self.position, of_body)) or 1
        checksums = (seal, of_body) if sealed else (0, 0)
        return _HEADER.pack(1, size, self.place, self.term, self.position, 0, *checksums, len(self.body)) + self.body

    def unit(self) -> bytes:
        """Return its index unit."""
        return _UNIT.pack(1, self.position, HEADER_BYTES + len(self.body), self.place, self.term)


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a log, by the number of their first byte.

    The rest of each file is zeros.
    """

    data: dict[int, bytes]
    index: dict[int, bytes]
    rows: tuple[Row, ...]

    @property
    def end(self) -> int:
        """The position after the last entry."""
        return self.rows[-1].end if self.rows else 0


def laid_out(
    entries: Sequence[tuple[int, bytes]], data_file_bytes: int, index_file_bytes: int, *, units: int | None = None
) -> LogFiles:
    """Return the files of a log with these terms and bodies.

    `units` is how many entries the index has.
    """
    rows: list[Row] = []
    data: dict[int, bytearray] = {}
    end = 0
    for place, (term, body) in enumerate(entries):
        rest = -end % data_file_bytes
        if rest and HEADER_BYTES + len(body) + BLANK_BYTES > rest:
            if rest >= BLANK_BYTES:
                data[end - end % data_file_bytes] += struct.pack(">ii", -1, rest)
            end += rest
        row = Row(place, term, end, body)
        rows.append(row)
        data.setdefault(end - end % data_file_bytes, bytearray()).extend(row.data())
        end = row.end
    index: dict[int, bytes] = {}
    for row in rows[:units]:
        at = row.place * UNIT_BYTES
        first = at - at % (index_file_bytes - index_file_bytes % UNIT_BYTES)
        index[first] = index.get(first, b"") + row.unit()
    return LogFiles({first: bytes(each) for first, each in data.items()}, index, tuple(rows))
