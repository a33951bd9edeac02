"""Open logs that are written byte by byte, and compare what recovery decides (contract 7).

A log is harmed at one record, or not at all. What is known besides is drawn: the durable floor, whether the last exit
was clean, the time in the checkpoint, and the units in a queue file.

1. The log ends at its first invalid record. If the durable floor lies past that end, this is damage.
2. A file with the records of another place is damage.
3. After a clean exit, bytes past the end are damage, unless zeros follow the end and no valid record follows them.
   Then they are left of an earlier crash.
4. Without a floor, and after a clean exit, a unit whose record is missing is damage. So is a checkpoint that is more
   than three seconds ahead of the newest record. A unit of a place where no record fits proves nothing.
5. Without a floor, and after another exit, a later record that the checkpoint covers is damage.
6. Any other bytes past the end are a tear. Without a floor, valid records after a tear are copied into the
   quarantine. Each file gets the first number that no copy has, and a copy that an earlier open left unfinished is
   removed then.
7. A damaged store stays as it is, and ends after its last valid record. Any other log is durable up to its end. Zeros
   follow it, and no file follows that has no record. The first file stays unless it begins at offset 0. After an
   unclean exit the units of the queues are written again, because a sync before it may have failed.
8. Opening again after that finds nothing.
"""

import random
import struct
import zlib
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import NoSpace
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.runner import ThreadRunner
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, are_files, tried
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["check"]

_FILE_BYTES = 1024
_UNITS = 16
_ROOT = "/part"
_LOG = f"{_ROOT}/commitlog"
_QUEUE = f"{_ROOT}/consumequeue/A/0"
_QUARANTINE = f"{_ROOT}/quarantine"
_DIRECTORIES = ("/", _ROOT, _LOG, f"{_ROOT}/config", f"{_ROOT}/consumequeue", f"{_ROOT}/consumequeue/A", _QUEUE)
_T0 = 1_700_000_000_000
_NOW = _T0 + 1_000_000
_MARGIN_MS = 3_000
_LOGS = 6
_MAGIC, _BLANK = 0xDAA320A7, 0xCBD43194
_BLANK_BYTES = 8
_HEAD = struct.Struct(">IIIiiqqiq8sq8siqi")
_HOST = bytes((127, 0, 0, 1, 0, 0, 0, 9))
_CODES = frozenset(
    ("damaged_record", "torn_tail", "left_over_bytes", "missing_records", "misnamed_file", "missing_file")
)
_HARMS = ("none", "none", "cut", "torn", "torn", "torn_tail", "left_over", "hole", "moved", "ahead")
_CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=_FILE_BYTES,
    max_message_size=_FILE_BYTES - 200,
    store_path_commit_log=(_LOG,),
    mapped_file_size_consume_queue=20 * _UNITS,
    max_hash_slot_num=3,
    max_index_num=10,
    first_file_at_open=False,
    time_zone="UTC",
)


@dataclass(frozen=True, slots=True)
class _Record:
    offset: int
    size: int
    topic: str
    number: int
    time: int


@dataclass
class _Log:
    """A log: its files by first offset, its records in order, and what is known besides."""

    first: int
    files: dict[int, bytearray] = field(default_factory=dict)
    records: list[_Record] = field(default_factory=list)
    floor: int | None = None
    is_clean: bool = False
    time: int = 0
    units: list[tuple[int, int, int]] = field(default_factory=list)
    is_misnamed: bool = False
    copies: int = 0
    is_unfinished: bool = False

    def is_valid(self, record: _Record) -> bool:
        """Return whether the files hold a record as it was written."""
        base = record.offset // _FILE_BYTES * _FILE_BYTES
        data = self.files.get(base, b"")
        start = record.offset - base
        return bytes(data[start : start + record.size]) == _bytes_of(record)

    @property
    def bases(self) -> list[int]:
        """The first offsets of the files, ascending."""
        return sorted(self.files)


def check(rng: random.Random) -> None:
    """Open some logs, each twice. Raises GuaranteeBroken."""
    for _ in range(_LOGS):
        _open(_drawn(rng))
    _without_room()


# ---- writing a log ---------------------------------------------------------------------------------------------------


def _bytes_of(record: _Record) -> bytes:
    topic = record.topic.encode()
    body = bytes((record.number + at) % 251 for at in range(record.size - 91 - len(topic)))
    head = _HEAD.pack(
        record.size, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, 0, 7, record.number, record.offset, 0, record.time, _HOST,
        record.time, _HOST, 0, 0, len(body),
    )  # fmt: skip
    return head + body + bytes((len(topic),)) + topic + b"\0\0"


def _drawn(rng: random.Random) -> _Log:
    log = _Log(rng.choice((0, 0, _FILE_BYTES, 3 * _FILE_BYTES)))
    numbers, offset = {"A": 0 if not log.first else 2, "B": 0}, log.first
    log.files[offset] = bytearray(_FILE_BYTES)
    for at in range(rng.choice((0, 1, 2, 5, 8))):
        topic, room = rng.choice("AAB"), _FILE_BYTES - offset % _FILE_BYTES
        size = rng.choice((92, 150, 400, room - 8))
        if not 92 <= size <= room - 8:
            size = 200
        if size > room - 8:
            _write(log, offset, struct.pack(">II", room, _BLANK))
            offset += room
            log.files[offset] = bytearray(_FILE_BYTES)
        record = _Record(offset, size, topic, numbers[topic], _T0 + 1_000 * at)
        _write(log, offset, _bytes_of(record))
        log.records.append(record)
        numbers[topic] += 1
        offset += size
    of_a = [record for record in log.records if record.topic == "A"]
    if of_a and of_a[0].number < _UNITS and rng.random() < 0.6:
        log.units = [(record.number, record.offset, record.size) for record in of_a]
        if rng.random() < 0.3:
            number, _, size = log.units[-1]
            log.units[-1] = (number, offset + 300, min(size, 100))  # of a record that is elsewhere
    log.is_clean = rng.random() < 0.5
    last = log.records[-1].time if log.records else 0
    log.time = rng.choice((0, last, last + _MARGIN_MS, last + _MARGIN_MS + 1, max(0, last - 1), _NOW + 1))
    log.copies, log.is_unfinished = rng.choice((0, 0, 1, 2)), rng.random() < 0.5
    end = offset
    _harm(log, rng)
    ends = [end, _end_of(log), _end_of(log) + 1, 0, *(record.offset for record in log.records)]
    log.floor = rng.choice((None, None, None, rng.choice(ends)))
    if log.floor is not None and log.floor > max(log.bases, default=0) + _FILE_BYTES:
        log.floor = _end_of(log)
    return log


def _write(log: _Log, offset: int, data: bytes) -> None:
    base = offset // _FILE_BYTES * _FILE_BYTES
    log.files[base][offset - base : offset - base + len(data)] = data


def _harm(log: _Log, rng: random.Random) -> None:
    """Change the files at one record."""
    kind = rng.choice(_HARMS)
    if kind == "ahead":
        for number in range(rng.choice((1, 2))):
            log.files[max(log.bases) + _FILE_BYTES * (1 if number >= 0 else 0)] = bytearray(_FILE_BYTES)
    if kind == "moved" and len(log.files) > 1:
        at, other = rng.sample(range(len(log.bases)), 2)
        at = max(at, 1)
        other = other if other != at else 0
        if any(log.files[log.bases[at]]) and any(log.files[log.bases[other]]):
            log.files[log.bases[at]] = bytearray(log.files[log.bases[other]])
            log.is_misnamed = True
    if not log.records or kind in ("none", "ahead", "moved"):
        return
    record = rng.choice(log.records)
    base = record.offset // _FILE_BYTES * _FILE_BYTES
    start, end = record.offset - base, record.offset - base + record.size
    if kind in ("cut", "torn_tail", "left_over"):
        for later in [each for each in log.bases if each > base]:
            del log.files[later]
        log.files[base][start if kind == "cut" else end :] = bytes(_FILE_BYTES - (start if kind == "cut" else end))
    if kind in ("left_over", "hole"):
        log.files[base][start:end] = bytes(record.size)
    if kind == "left_over":
        log.files[base][start + rng.choice((8, 20, 80))] = 1
    if kind in ("torn", "torn_tail"):
        log.files[base][start + rng.choice((0, 4, 35, 87))] ^= 0x11


# ---- what an open decides --------------------------------------------------------------------------------------------


def _end_of(log: _Log) -> int:
    """Return the offset of the first record that is not valid, or the end of the log."""
    end = log.first
    for record in log.records:
        if not log.is_valid(record):
            base = record.offset // _FILE_BYTES * _FILE_BYTES
            return base if record.offset == base or base not in log.files else record.offset
        end = record.offset + record.size
    return end


def _prefix_end(log: _Log) -> int:
    """Return the end of the valid prefix, with the blank after its last record."""
    end = _end_of(log)
    base = end // _FILE_BYTES * _FILE_BYTES
    blank = struct.pack(">II", base + _FILE_BYTES - end, _BLANK)
    is_blank = bytes(log.files.get(base, b"")[end - base : end - base + 8]) == blank
    return base + _FILE_BYTES if is_blank else end


def _decided(log: _Log) -> tuple[str, int] | None:
    """Return the code of the finding and its offset, or None."""
    end = _prefix_end(log)
    past = {base: bytes(data[max(0, end - base) :]) for base, data in log.files.items() if base + _FILE_BYTES > end}
    is_dirty = any(any(data) for data in past.values())
    later = [record for record in log.records if record.offset >= end and log.is_valid(record)]
    valid = [record for record in log.records if record.offset < end]
    flushed = 0 if log.time > _NOW or log.floor is not None else max(0, log.time - _MARGIN_MS)
    newest = valid[-1].time if valid else 0
    if log.floor is not None and log.floor > end:
        return "damaged_record", end
    if is_dirty and log.is_misnamed and any(base >= end for base in log.files):
        return "misnamed_file", next(base for base in log.bases if _stated_elsewhere(log, base))
    is_left_over = not later and not any(any(data[:8]) for data in past.values())
    if is_dirty and log.is_clean and not is_left_over:
        return "damaged_record", end
    if log.floor is None and log.is_clean:
        units = [unit for unit in log.units if _fits(unit)]
        if units and units[-1][1] >= end:
            number = units[-1][0]
            if not any((record.topic, record.number) == ("A", number) for record in valid):
                return "missing_records", end
        if flushed > newest:
            return "missing_records", end
    if is_dirty and log.is_clean:
        return "left_over_bytes", end
    if is_dirty and any(newest <= record.time <= flushed for record in later):
        return "damaged_record", end
    return ("torn_tail", end) if is_dirty else None


def _fits(unit: tuple[int, int, int]) -> bool:
    """Return whether a record and a blank after it can lie where a unit says."""
    _, offset, size = unit
    return offset % _FILE_BYTES + size + _BLANK_BYTES <= _FILE_BYTES


def _flushed_later(log: _Log) -> int:
    """Return the offset of the first valid record past the end that the checkpoint covers."""
    end = _prefix_end(log)
    newest = max((record.time for record in log.records if record.offset < end), default=0)
    return next(
        record.offset
        for record in log.records
        if record.offset >= end and log.is_valid(record) and newest <= record.time <= log.time - _MARGIN_MS
    )


def _stated_elsewhere(log: _Log, base: int) -> bool:
    """Return whether a file begins with the record of another file."""
    return any(
        record.offset % _FILE_BYTES == 0
        and record.offset != base
        and bytes(log.files[base][: record.size]) == _bytes_of(record)
        for record in log.records
    )


def _files_after(log: _Log) -> dict[int, bytes]:
    """Return the log files that a sound open leaves."""
    end, kept = _prefix_end(log), {}
    for base in log.bases:
        if base < end or base == log.first != 0:
            kept[base] = bytes(log.files[base][: max(0, end - base)]).ljust(_FILE_BYTES, b"\0")
    return kept


def _last_valid_end(log: _Log) -> int:
    """Return the offset after the last valid record, with a blank after it."""
    valid = [record for record in log.records if log.is_valid(record)]
    end = max([_prefix_end(log), *(record.offset + record.size for record in valid)])
    base = end // _FILE_BYTES * _FILE_BYTES
    blank = struct.pack(">II", base + _FILE_BYTES - end, _BLANK)
    return base + _FILE_BYTES if bytes(log.files.get(base, b"")[end - base : end - base + 8]) == blank else end


# ---- opening ---------------------------------------------------------------------------------------------------------


def _image(log: _Log) -> Image:
    files = {f"{_LOG}/{base:020d}": bytes(data) for base, data in log.files.items()}
    if log.floor is not None:
        head = b"TPFLOOR1" + struct.pack(">qq", log.floor, _FILE_BYTES)
        files[f"{_ROOT}/config/durableFloor"] = (head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0")
    if not log.is_clean:
        files[f"{_ROOT}/abort"] = b""
    if log.time:
        files[f"{_ROOT}/checkpoint"] = struct.pack(">qqq", log.time, 0, 0).ljust(4096, b"\0")
    if log.units:
        queue = bytearray(20 * _UNITS)
        for number in range(log.units[0][0]):
            queue[20 * number : 20 * number + 20] = struct.pack(">qiq", 0, 0x7FFFFFFF, 0)
        for number, offset, size in log.units:
            queue[20 * number : 20 * number + 20] = struct.pack(">qiq", offset, size, 0)
        files[f"{_QUEUE}/{0:020d}"] = bytes(queue)
    files |= _earlier_copies(log)
    return Image(frozenset((*_DIRECTORIES, f"{_ROOT}/quarantine")), files)


def _earlier_copies(log: _Log) -> dict[str, bytes]:
    """Return what earlier opens left in the quarantine.

    These are copies of each place of a cut, and an unfinished one.
    """
    end = _prefix_end(log)
    places = [max(base, end) for base in log.bases if base + _FILE_BYTES > end]
    copies = {f"{_QUARANTINE}/{place:020d}.{number}": b"x" for place in places for number in range(log.copies)}
    return copies | ({f"{_QUARANTINE}/unfinished": b"y"} if log.is_unfinished else {})


def _opened(disk: PartDisk) -> OpenDirectory:
    parts = Parts({ThreadRunner: partial(HandDriven, clock=lambda: _NOW)})
    return tried("open", lambda: OpenDirectory(_ROOT, _CONFIG, files=disk, clock=lambda: _NOW, parts=parts))


def _open(log: _Log) -> None:
    disk = PartDisk(_image(log))
    written = _rewritten(log)
    before, decided = disk.content, _decided(log)
    what = f"a log with records up to {_prefix_end(log)}"
    held = _opened(disk)
    found = [(finding.code, finding.offset) for finding in held.findings if finding.code in _CODES]
    is_value(f"the findings about {what}", [] if decided is None else [decided], found)
    is_damaged = any(finding.severity == "damage" for finding in held.findings)
    codes = ("damaged_record", "missing_records", "misnamed_file")
    is_value(f"whether {what} is damaged", decided is not None and decided[0] in codes, is_damaged)
    is_value("whether damage has a sentence", is_damaged, held.damage is not None)
    if decided is not None and decided[0] == "damaged_record" and log.floor is None and not log.is_clean:
        is_value(f"whether {what} names its proof", True, f" {_flushed_later(log)} " in (held.damage or ""))
    if is_damaged:
        end = _last_valid_end(log)
        is_value(f"the end of {what}, damaged", (log.first, end), (held.log.min_offset, held.log.max_offset))
        is_value(f"the flushed end of {what}, damaged", min(_prefix_end(log), end), held.log.flushed_where)
        held.close()
        is_value(f"the log files of {what} that are written", [], _written(disk))
        are_files(what, before, {path: data for path, data in disk.content.items() if path != f"{_ROOT}/lock"})
    else:
        is_value(f"what is rewritten of {what}", written, _written(disk))
        _judge_sound(log, disk, held, what, is_torn=decided is not None)
    is_value("the files that a closed directory still holds", (0, 0), disk.held)


def _rewritten(log: _Log) -> list[tuple[int, int]]:
    """Return offset and length of what a sound open writes again.

    After an unclean exit it is the log past the floor, or the last file without a floor.
    """
    bases = sorted(_files_after(log))
    if log.is_clean or not bases:
        return []
    begin = bases[-1] if log.floor is None else log.floor
    return [(max(base, begin), base + _FILE_BYTES - max(base, begin)) for base in bases if base + _FILE_BYTES > begin]


def _written(disk: PartDisk) -> list[tuple[int, int]]:
    """Return offset and length of each write to a log file."""
    return [(int(path[-20:]) + start, count) for path, start, count in disk.written if path.startswith(f"{_LOG}/")]


def _without_room() -> None:
    """Open an empty directory on a disk with room for just one file, and with less.

    What an earlier open left of a file that it could not finish counts as room.
    """
    folder = f"{_LOG}.unfinished"
    for less, left_bytes in product((0, 1), (0, 500)):
        image = Image(frozenset(("/", _ROOT, folder)), {f"{folder}/file.part": bytes(left_bytes)} if left_bytes else {})
        disk = PartDisk(image, budget_bytes=_FILE_BYTES - left_bytes - less)
        parts = Parts({ThreadRunner: partial(HandDriven, clock=lambda: _NOW)})
        answer = "opened"
        try:
            held = OpenDirectory(_ROOT, _CONFIG, files=disk, clock=lambda: _NOW, parts=parts)
            held.close()
        except NoSpace as error:
            answer = f"{error.needed_bytes - error.free_bytes} too few"
        except OSError:
            pass  # the small files of the store need room as well
        is_value("an open with little room", "1 too few" if less else "opened", answer)
        is_value("the files that a refused open still holds", (0, 0), disk.held)


def _judge_sound(log: _Log, disk: PartDisk, held: OpenDirectory, what: str, *, is_torn: bool) -> None:
    """Compare a log that recovery has cut, also after it is opened again."""
    end, expected = _prefix_end(log), {f"{_LOG}/{base:020d}": data for base, data in _files_after(log).items()}
    bounds = (log.first, end, end) if expected else (0, 0, 0)
    is_value(f"the bounds of {what}", bounds, (held.log.min_offset, held.log.flushed_where, held.log.max_offset))
    for files in (disk.content, disk.durable.files):
        are_files(what, expected, {path: data for path, data in files.items() if path.startswith(f"{_LOG}/")})
    head = b"TPFLOOR1" + struct.pack(">qq", bounds[1], _FILE_BYTES)
    floor = (head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0")
    is_value(f"the floor of {what}", floor.hex(), disk.durable.files.get(f"{_ROOT}/config/durableFloor", b"").hex())
    is_value(f"the abort marker of {what}", True, f"{_ROOT}/abort" in disk.durable.files)
    valid = [record for record in log.records if record.offset < end]
    (time,) = struct.unpack_from(">q", disk.durable.files.get(f"{_ROOT}/checkpoint", b"").ljust(8, b"\0"))
    newest = valid[-1].time if valid else 0
    is_value(f"the checkpoint of {what}", min(log.time, newest), time)
    for topic in "AB":
        numbers = [record.number for record in valid if record.topic == topic]
        if numbers:
            is_value(f"the queue {topic} of {what}", (numbers[0], numbers[-1] + 1), held.range_of(topic, 0))
            _judge_rewritten_units(log, disk, f"{_ROOT}/consumequeue/{topic}/0/{0:020d}", numbers[-1])
    _judge_quarantine(log, disk, end, what, is_torn=is_torn)
    held.close()
    again = _opened(disk)
    found = [finding.code for finding in again.findings if finding.code in _CODES]
    is_value(f"the findings about {what}, opened again", [], found)
    is_value(f"the end of {what}, opened again", bounds[2], again.log.max_offset)
    again.close()


def _judge_rewritten_units(log: _Log, disk: PartDisk, path: str, last: int) -> None:
    """Compare which units of a queue file are written again.

    These are all after an unclean exit, and none after a clean one.
    """
    written = set[int]()
    for place, start, count in disk.written:
        if place == path:
            written.update(range(start, start + count))
    is_value(f"the bytes of {path} that are written again", 0 if log.is_clean else 20 * (last + 1), len(written))


def _judge_quarantine(log: _Log, disk: PartDisk, end: int, what: str, *, is_torn: bool) -> None:
    """Compare the copies of what a cut without a floor has removed."""
    copies = _earlier_copies(log)
    later = [record for record in log.records if record.offset >= end and log.is_valid(record)]
    if is_torn and log.floor is None and later:
        for base in log.bases:
            start = max(0, end - base)
            if base + _FILE_BYTES > end and any(log.files[base][start:]):
                copies[f"{_QUARANTINE}/{base + start:020d}.{log.copies}"] = bytes(log.files[base][start:])
        copies.pop(f"{_QUARANTINE}/unfinished", None)
    for files in (disk.content, disk.durable.files):
        found = {path: data for path, data in files.items() if path.startswith(f"{_QUARANTINE}/")}
        are_files(f"the quarantine of {what}", copies, found)
