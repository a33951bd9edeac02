"""Compare what a slave appends of a stream of bytes with a reference (contract 15).

The log and its appends are stand-ins. The stream has records and blanks, of which one may be wrong, and arrives in
drawn pieces.

1. Each whole valid record is appended, and each whole blank, which ends its file. All bytes arrive at their offset.
2. The begin of a record waits for its rest.
3. A unit that cannot become valid is refused as soon as its first 8 bytes are there: no magic of a record or of a
   blank, a blank that does not end its file, a length of which no file has room beside a blank, or more than the limit.
   Another wrong record is refused when it is whole.
4. Nothing after a refused unit is appended, and nothing of it. The refusal names its offset.
5. An append that fails is a refusal, and so is another offset than the end of the log, another role, and a store that
   is read-only or closed. An empty log begins where a file begins. A log whose only file is empty and begins at another
   offset has to be removed first.
6. The listener gets the end of each append once, and nothing without an append.
7. The store time of an append is that of its last record, and 0 for a blank.
"""

import errno
import random
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.log.scan import walk_log
from tornpage.impl.message.codec import check_record
from tornpage.impl.put.receiving import Received, ReceivedRecords
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_STREAMS = 6
_FILE_BYTES = 1_024
_REST_BYTES = 64 << 10
"""What a record may have beside its body, at most."""
_BLANK_BYTES = 8
_MAGIC, _BLANK_MAGIC = 0xDAA320A7, 0xCBD43194
_HEAD = struct.Struct(">IIIiiqqiq")
_WRONG = 0.6
"""The share of streams with a wrong unit."""
_FAILING_IN = (0, 0, 0, 1, 2)
"""The append that fails, counted from 1. 0 lets none fail."""
_MADE_BYTES_MAX = 4_096
_T0 = 1_700_000_000_000
_EARLY = ("magic", "blank length", "zero", "negative", "no room", "past the file", "too long")
"""Units that 8 bytes show to be wrong."""
_LATE = ("body", "place", "short")
"""Units that only all of their bytes show to be wrong."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A record or a blank. `wrong` is empty, or says what is wrong with it."""

    offset: int
    data: bytes
    time: int
    wrong: str = ""

    @property
    def is_blank(self) -> bool:
        return self.data[4:8] == _BLANK_MAGIC.to_bytes(4, "big") and not self.wrong

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass
class _Log:
    """Stands for the log and its appends, of which one may fail."""

    base: int
    file_bytes: int = _FILE_BYTES
    data: bytearray = field(default_factory=bytearray)
    appended: list[tuple[int, int, int, bool]] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    failing_in: int = 0
    has_failed: bool = False
    has_file: bool = True
    refused_at: int | None = None

    @property
    def mapped(self) -> tuple[object, ...]:
        """The files, of which only their number is asked."""
        return (self,) if self.has_file else ()

    @property
    def min_offset(self) -> int:
        """The begin of the log."""
        return self.base if self.has_file else 0

    @property
    def end(self) -> int:
        """The end of what was appended."""
        return self.base + len(self.data)

    @property
    def max_offset(self) -> int:
        """The end of the log, 0 without a file."""
        return self.end if self.has_file else 0

    def append_received(self, data: bytearray, *, offset: int, store_timestamp: int, ends_file: bool) -> None:
        """Append, or fail. The bytes come at the end of the log."""
        self.failing_in -= 1
        if not self.failing_in:
            self.has_failed = True
            raise OSError(errno.EIO, "a call that was chosen to fail")
        is_value("the offset of an append", self.base + len(self.data), offset)
        self.has_file = True
        self.data += data
        self.appended.append((offset, len(data), store_timestamp, ends_file))


def check(rng: random.Random) -> None:
    """Receive some streams, and try what is refused. Raises GuaranteeBroken."""
    for _ in range(_STREAMS):
        _receive(rng)
    _refusals()


# ---- a stream --------------------------------------------------------------------------------------------------------


def _record(offset: int, size: int, time: int) -> bytes:
    """Return a record of `size` bytes, at least 91. Source: docs/format.md."""
    body = b"b" * (size - 92)
    head = _HEAD.pack(size, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, 0, 0, 0, offset, 0, time)
    return (
        head + bytes(8) + struct.pack(">q", time) + bytes(8) + struct.pack(">iqi", 0, 0, len(body)) + body + b"\1T\0\0"
    )


def _units(rng: random.Random, base: int, file_bytes: int, unit_bytes_max: int) -> list[_Unit]:
    """Return the units of some files. Each full file ends with a blank."""
    units: list[_Unit] = []
    at = base
    for _ in range(rng.choice((1, 4, 9, 25))):
        room, time = file_bytes - at % file_bytes, _T0 + rng.randrange(1_000)
        size = rng.choice((92, 93, 120, 300, unit_bytes_max, room - _BLANK_BYTES, room - _BLANK_BYTES - 1))
        if 92 <= room - _BLANK_BYTES < size or size > unit_bytes_max:
            size = min(92, unit_bytes_max)
        if size < 92 or size > room - _BLANK_BYTES:
            units.append(_Unit(at, struct.pack(">II", room, _BLANK_MAGIC) + bytes(room - 8), 0))
        else:
            units.append(_Unit(at, _record(at, size, time), time))
        at = units[-1].end
    return units


def _wrong(rng: random.Random, unit: _Unit, kind: str, file_bytes: int, unit_bytes_max: int) -> _Unit:
    """Return a record in the place of a unit, with one wrong field."""
    room = file_bytes - unit.offset % file_bytes
    data = bytearray(_record(unit.offset, 120, _T0))
    magic, total = _MAGIC, len(data)
    match kind:
        case "magic":
            magic = rng.choice((_MAGIC ^ 1, 0, _BLANK_MAGIC ^ 1))
        case "blank length":
            magic, total = _BLANK_MAGIC, room + rng.choice((-1, 1, 8))
        case "zero":
            total = 0
        case "negative":
            total = 0x1_0000_0000 - rng.choice((1, 120))
        case "no room":
            total = room - rng.randrange(_BLANK_BYTES)
        case "past the file":
            total = room + rng.choice((1, 7, 8, 9, 1 << 20))
        case "too long":
            total = unit_bytes_max + 1
        case "body":
            data[89] ^= 1
        case "place":
            struct.pack_into(">q", data, 28, unit.offset + rng.choice((-1, 1, file_bytes)))
        case "short":
            total = rng.choice((8, 36, 90))
    if kind in ("no room", "past the file") and 92 <= total <= _MADE_BYTES_MAX:
        data[:] = _record(unit.offset, total, _T0)  # everything else is right
    struct.pack_into(">II", data, 0, total, magic)
    if kind in _LATE and room < total + _BLANK_BYTES:
        kind = "no room"  # the record does not fit, whatever else is wrong
    return _Unit(unit.offset, bytes(data[:total] if kind == "short" else data), 0, kind)


def _receive(rng: random.Random) -> None:
    """Receive a stream in pieces."""
    file_bytes = rng.choice((_FILE_BYTES, 1_000, 1 << 18))
    base, most = file_bytes * rng.choice((0, 3)), rng.choice((300, 4_000))
    unit_bytes_max = min(file_bytes, most + _REST_BYTES)
    units = _units(rng, base, file_bytes, unit_bytes_max)
    if rng.random() < _WRONG:
        at = rng.randrange(len(units))
        units[at] = _wrong(rng, units[at], rng.choice((*_EARLY, *_LATE)), file_bytes, unit_bytes_max)
        del units[at + 1 :]
    log = _Log(base, file_bytes, has_file=rng.random() < 0.5)
    part = _part(log, Lifecycle("/part"), most)
    stream = b"".join(unit.data for unit in units)
    arrived = 0
    while arrived < len(stream):
        arrived = min(len(stream), arrived + rng.choice((1, 7, 8, 91, 92, 300, 1_000, 1 << 20)))
        log.failing_in = rng.choice(_FAILING_IN)
        while _goes_on(part, log, units, stream[:arrived]):
            log.failing_in = rng.choice(_FAILING_IN)
        if units[-1].wrong and log.refused_at == units[-1].offset:
            return


def _goes_on(part: ReceivedRecords, log: _Log, units: list[_Unit], arrived: bytes) -> bool:
    """Give the part what has arrived past the end of the log; return whether an append failed."""
    begin, log.has_failed = log.end, False
    log.appended.clear()
    log.told.clear()
    piece = memoryview(arrived)[begin - log.base :]
    answer = tried("append", lambda: part.append(begin, piece))
    end, refused_at = _expected(units, begin, log.base + len(arrived))
    if log.has_failed:  # the failing append could have ended anywhere before that end
        ends = [begin, *(unit.end for unit in units)]
        is_value("whether the log ends at a unit after a failed append", True, log.end in ends and log.end < end)
        end = refused_at = log.end
    log.refused_at = refused_at
    is_value("the end of a log that receives", end, log.end)
    is_value("the bytes of a log that receives", arrived[: end - log.base].hex(), log.data.hex())
    told = (answer.appended_bytes, _names(answer, refused_at), answer.must_empty)
    is_value(f"the answer to bytes at {begin}", (end - begin, True, False), told)
    is_value("the ends that the listener gets", [end] if end > begin else [], log.told)
    is_value("the times and kinds of appends", _kinds(units, log), [each[2:] for each in log.appended])
    return log.has_failed


def _expected(units: list[_Unit], begin: int, arrived: int) -> tuple[int, int | None]:
    """Return where the log has to end, and where a unit is refused.

    `arrived` is the end of what is there.
    """
    for unit in units:
        if unit.offset < begin:
            continue
        if arrived < unit.offset + _BLANK_BYTES:
            return unit.offset, None
        if unit.wrong in _EARLY:
            return unit.offset, unit.offset
        if arrived < unit.end:
            return unit.offset, None
        if unit.wrong:
            return unit.offset, unit.offset
    return units[-1].end, None


def _names(answer: Received, offset: int | None) -> bool:
    """Return whether the refusal of an answer names an offset.

    None requires that nothing is refused.
    """
    if offset is None or answer.refusal is None:
        return answer.refusal is None and offset is None
    return str(offset) in answer.refusal.split()


def _kinds(units: list[_Unit], log: _Log) -> list[tuple[int, bool]]:
    """Return the time of the last record of each append, and whether it is a blank."""
    kinds = []
    for offset, size_bytes, *_ in log.appended:
        last = next(unit for unit in units if unit.end == offset + size_bytes)
        kinds.append((last.time, last.is_blank and last.offset == offset))
    return kinds


# ---- refusals --------------------------------------------------------------------------------------------------------


def _part(log: _Log, lifecycle: Lifecycle, most: int, role: BrokerRole = BrokerRole.SLAVE) -> ReceivedRecords:
    stands: Any = log
    return ReceivedRecords(
        stands, stands, lifecycle, role=role, record_bytes_max=most, written=log.told.append,
        check=check_record, walk=walk_log,
    )  # fmt: skip


def _refusals() -> None:
    """Try each role, state of the store and offset."""
    base = 3 * _FILE_BYTES
    read_only, closed = Lifecycle("/part"), Lifecycle("/part")
    read_only.become_read_only("a reason")
    closed.shut = "closed"
    is_open = Lifecycle("/part")
    for role in BrokerRole:
        for lifecycle in (is_open, read_only, closed):
            may = role is BrokerRole.SLAVE and lifecycle is is_open
            _try(f"{role} {lifecycle.shut}", _Log(base), role, lifecycle, base, accepted=may)
    head = bytearray(_record(base, 120, _T0))
    for offset in (0, base - _FILE_BYTES, base - 1, base + 1, base + 119, base + 120, base + 121, base + _FILE_BYTES):
        used = _Log(base, data=bytearray(head))
        _try(f"a log that ends at {base + 120}", used, BrokerRole.SLAVE, is_open, offset, accepted=offset == base + 120)
        empty = _Log(base)
        must_empty = offset != base
        _try("an empty file", empty, BrokerRole.SLAVE, is_open, offset, accepted=not must_empty, must_empty=must_empty)
        nothing = _Log(offset, has_file=False)
        _try("no file", nothing, BrokerRole.SLAVE, is_open, offset, accepted=not offset % _FILE_BYTES)


def _try(
    what: str, log: _Log, role: BrokerRole, lifecycle: Lifecycle, offset: int, *, accepted: bool,
    must_empty: bool = False,
) -> None:  # fmt: skip
    """Append one record at an offset."""
    before = len(log.data)
    data = memoryview(_record(offset, 120, _T0))
    answer = tried("append", lambda: _part(log, lifecycle, 4_000, role).append(offset, data))
    found = (answer.refusal is None, answer.must_empty, answer.appended_bytes, len(log.data) - before)
    is_value(f"an append at {offset} with {what}", (accepted, must_empty, 120 * accepted, 120 * accepted), found)
