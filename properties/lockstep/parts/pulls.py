"""Pull from queues with units of every kind, against a list (contracts 8, 11 and 17).

The log has a few files. Its queue is a list of units. A unit is pre-fill, or points to its message, to a harmed record,
to a record of another number or queue, to a record of a file that was deleted, after a blank, or past the readable end.
A pull walks over the list:

1. It stops before the first unit past the readable end. A log that never grows has no such end: the unit is passed.
2. It stops before a unit whose record would exceed a limit, if it has a message. Limits are lower for a record that is
   far before the readable end. It looks at 800 units at most, or at as many as messages are wanted if these are more.
   Units that are confirmed at once do not count.
3. A unit that the filter refuses is passed, and so is a message whose properties it refuses. The filter gets the tags
   code of the unit, or what the extension has at its address.
4. A unit without its message is passed. After a unit whose record is gone with its file, all units of that file are.
5. The answer goes on at the first unit that was not passed. Without a message its status says what the last unit was.
6. Units that appear after the maximum of the answer was read are left to the next pull.
7. The answer has the distance from the record of the last unit to the readable end, and says whether that is far.

A pull that confirms units at once answers like one that does not. Times and records by number follow the same list.
The time search returns a number after the last older message and up to the first one that is not older.
"""

import random
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.codec import check_record
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.confirming import confirm_units
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.queue_pull import GetMessageResult, TransferLimits
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.service.runner import ThreadRunner
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried
from tornpage.properties.program.confirming import confirming

__all__ = ["check"]

_Kind = Literal["message", "prefill", "harmed", "other", "gone", "blanked", "past"]

_LOG = "/part"
_FILE_BYTES = 2048
_PROGRAMS, _PULLS = 5, 10
_MAGIC, _TRAILER = 0xDAA320A7, b"__CRC32#\x01"
_HEAD = struct.Struct(">IIIiiqqiq8sq8siqi")
_UNIT = struct.Struct(">qiq")
_HOST = bytes((127, 0, 0, 1, 0, 0, 0, 9))
_T0 = 1_700_000_000_000
_PREFILL = (0, 0x7FFFFFFF, 0)
_ADDRESS = -(1 << 63)
_LEAST = 800
_KINDS: tuple[tuple[_Kind, int], ...] = (
    ("message", 12), ("prefill", 2), ("harmed", 1), ("other", 1), ("gone", 1), ("blanked", 1), ("past", 1)
)  # fmt: skip
_TEXTS = (b"", b"K\x01no\x02", b"K\x01yes\x02L\x01\x02")
_SETTINGS: tuple[Literal["always", "once", "never"], ...] = ("always", "once", "never")


@dataclass(frozen=True, slots=True)
class _Fact:
    """A unit of the queue, and what is at its place."""

    kind: _Kind
    offset: int = 0
    size: int = 0x7FFFFFFF
    code: int = 0
    time: int = 0
    content: bytes = b""
    is_yes: bool = True
    ext: ExtUnit | None = None


@dataclass
class _Queue:
    """A queue whose units are a list. The store reads it as it reads a consume queue.

    `later` units appear after the maximum was read: units can be read past it.
    """

    first: int
    facts: list[_Fact]
    topic: str = "T"
    queue_id: int = 3
    later: int = 0

    @property
    def key(self) -> tuple[bytes, int]:
        return self.topic.encode(), self.queue_id

    @property
    def min_offset(self) -> int:
        return self.first

    @property
    def max_offset(self) -> int:
        return self.first + len(self.facts) - self.later

    @property
    def ext(self) -> "_Queue":
        return self

    def get(self, address: int) -> ExtUnit | None:
        """Return the extension unit at an address."""
        return next((fact.ext for fact in self.facts if fact.code == address), None)

    def unit(self, number: int, /) -> Unit | None:
        fact = self.facts[number - self.first] if 0 <= number - self.first < len(self.facts) else _Fact("prefill")
        return None if fact.kind == "prefill" else Unit(fact.offset, fact.size, fact.code)

    def units(self, number: int, limit: int, /) -> Iterable[Unit]:
        some = self.facts[number - self.first :][:limit]
        return [Unit(fact.offset, fact.size, fact.code) for fact in some]

    def unit_bytes(self, number: int, limit: int, /) -> bytes:
        return b"".join(_UNIT.pack(*unit) for unit in self.units(number, limit))

    def find(self, topic: str, queue_id: int, /) -> "_Queue | None":
        """Return this queue, the only one of its table."""
        return self if (topic, queue_id) == (self.topic, self.queue_id) else None

    def all(self) -> Iterable["_Queue"]:
        return (self,)


@dataclass
class _Filter:
    """A filter that refuses some tags codes and some properties, and notes what it was asked."""

    refused: frozenset[int | None]
    reads_properties: bool
    asked: list[object] = field(default_factory=list)

    def wants(self, tags_code: int | None) -> bool:
        """Return whether the tags code of a unit passes."""
        return tags_code not in self.refused

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        self.asked.append((tags_code, ext))
        return self.wants(tags_code)

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        if not self.reads_properties:
            return True
        self.asked.append(dict(properties()))
        return properties().get("K") != "no"


@dataclass
class _Expected:
    """The answer to a pull, and the questions to its filter."""

    status: str
    next_number: int
    found: list[int] = field(default_factory=list)
    behind: int | None = None
    asked: list[object] = field(default_factory=list)


def check(rng: random.Random) -> None:
    """Pull from several queues. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()


# ---- the log ---------------------------------------------------------------------------------------------------------


def _record(offset: int, number: int, time: int, text: bytes, *, queue_id: int, has_trailer: bool) -> bytes:
    body = bytes((number + at) % 251 for at in range(number % 5))
    properties_bytes = len(text) + (20 if has_trailer else 0)
    size = _HEAD.size + len(body) + 2 + 2 + properties_bytes
    head = _HEAD.pack(
        size, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, queue_id, 0, number, offset, 0, time, _HOST, time, _HOST, 0, 0,
        len(body),
    )  # fmt: skip
    record = head + body + b"\x01T" + struct.pack(">h", properties_bytes) + text
    if has_trailer:
        digits = f"{zlib.crc32(record) & 0x7FFFFFFF:010d}"[::-1].encode()
        record += _TRAILER + digits + b"\x02"
    return record


class _Program:
    """One log with its queue, opened by a reader."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._first_file = rng.choice((0, 3))
        self._min = self._end = _FILE_BYTES * self._first_file
        self._files: dict[int, bytearray] = {}
        self._blank_at: dict[int, int] = {}
        self._queue = _Queue(rng.choice((0, 0, 7)), [])
        self._fill(rng.choice((1, 4, 12, 30, 60)))
        self._never_grows = rng.random() < 0.3
        self._disk = PartDisk(
            Image(frozenset(("/", _LOG)), {f"{_LOG}/{b:020d}": bytes(d) for b, d in self._files.items()})
        )
        self._log = self._opened()
        limits = (1 << 40, 0, 1, 2, 5, 150, 400)
        self._limits = [rng.choice(limits[:1] if rng.random() < 0.6 else limits) for _ in range(4)]
        self._limits.append(rng.choice((1 << 40, 0, 300, 1000, 3000)))
        self._buffers = ReadBuffers()

    def _fill(self, count: int) -> None:
        """Write records, and the units of the queue."""
        rng, kinds = self._rng, [kind for kind, weight in _KINDS for _ in range(weight)]
        is_plain, is_long = rng.random() < 0.3, rng.random() < 0.15
        while len(self._queue.facts) < count or not self._files:
            kind = "message" if is_plain else rng.choice(kinds)
            number = self._queue.max_offset
            code = rng.choice((0, 1, 2, -7))
            match kind:
                case "prefill":
                    self._queue.facts += [_Fact("prefill")] * (rng.choice((70, 900)) if is_long else 1)
                    is_long = False
                case "gone":
                    if self._first_file and not any(fact.kind != "gone" for fact in self._queue.facts):
                        offset = rng.randrange(self._min)
                        self._queue.facts.append(_Fact("gone", offset, 100, code, _T0))
                case "past":
                    pass  # below
                case "blanked":
                    base = self._end // _FILE_BYTES * _FILE_BYTES
                    if self._end - base > 200 and _FILE_BYTES - (self._end - base) > 200:
                        self._blank_at[base] = self._end - base
                        self._write(number, kind, code)
                        self._end = base + _FILE_BYTES
                case _:
                    self._write(number, kind, code)
        if not is_plain:
            for at in range(rng.choice((0, 0, 1, 3))):
                self._queue.facts.append(_Fact("past", self._end + 50 * at, 100, rng.choice((0, 1))))

    def _write(self, number: int, kind: _Kind, code: int) -> None:
        rng = self._rng
        text, time = rng.choice(_TEXTS), _T0 + 10 * number
        claimed = number + 1 if kind == "other" and rng.random() < 0.5 else number
        queue_id = 3 if kind != "other" or claimed != number else 4
        while True:
            base = self._end // _FILE_BYTES * _FILE_BYTES
            record = _record(self._end, claimed, time, text, queue_id=queue_id, has_trailer=number % 2 == 0)
            if self._end - base + len(record) + 8 <= _FILE_BYTES:
                break
            self._end = base + _FILE_BYTES
        content = bytearray(record)
        if kind == "harmed":
            content[7] ^= 1
        ext = None
        if rng.random() < 0.2:
            ext = ExtUnit(code, time, b"\x05") if rng.random() < 0.7 else None
            code = _ADDRESS + self._end
        file = self._files.setdefault(base, bytearray(_FILE_BYTES))
        file[self._end - base : self._end - base + len(record)] = content
        fact = _Fact(kind, self._end, len(record), code, time, bytes(record), b"K\x01no" not in text, ext)
        self._queue.facts.append(fact)
        self._end += len(record)

    def _opened(self) -> MappedFileQueue:
        """Return the log with its files, as an open leaves it."""
        disk, policy = self._disk, AllocationPolicy()
        directories = LogDirectories(disk, (_LOG,), read_only=(), file_bytes=_FILE_BYTES, clean_forcibly_ratio=0.85)
        maker = LogFileMaker(
            disk, directories, file_bytes=_FILE_BYTES, mapped_file=MappedFile, policy=policy,
            flush_disk_type=FlushDiskType.ASYNC_FLUSH,
        )  # fmt: skip
        allocation = AllocateMappedFiles(maker, policy=policy, runner=ThreadRunner)
        log = MappedFileQueue(maker, allocation, verified=VerifiedRecords(self._rng.choice(_SETTINGS)))
        for base in sorted(self._files):
            log.adopt(f"{_LOG}/{base:020d}", writable=True)
            log.mapped[-1].blank_position = self._blank_at.get(base)
        log.end_at(self._end)
        return log

    # ---- the pulls -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Pull, and compare each answer with the list."""
        rng, queue = self._rng, self._queue
        readable_end = self._end
        reader = LogReader(self._log, check=check_record, buffers=self._buffers, never_grows=self._never_grows)
        parts = confirming(Parts())
        corrects = rng.random() < 0.8
        for confirms in (False, True):
            reads = QueueReads(
                queue, reader, records=QueuedRecords(None), limits=TransferLimits(*self._limits),
                corrects_offsets=corrects, confirm=parts.of(confirm_units) if confirms else confirm_units,
            )  # fmt: skip
            for _ in range(_PULLS):
                self._pull(reads, readable_end, corrects=corrects, confirms=confirms)
        self._by_number(reads, readable_end)
        is_value("the buffers that readers hold", 0, self._buffers.held)
        kept = tried("a pull", lambda: self._get(reads, queue.first, 9, None))
        del kept  # a reader that does not release
        tried("shut", self._buffers.shut)
        self._log.close()
        is_value("the files that a closed log still holds", (0, 0), self._disk.held)

    def _get(self, reads: QueueReads, number: int, count: int, given: _Filter | None) -> GetMessageResult:
        return reads.get_message("T", 3, number, max_msg_nums=count, message_filter=given)

    def _pull(self, reads: QueueReads, readable_end: int, *, corrects: bool, confirms: bool) -> None:
        rng, queue = self._rng, self._queue
        queue.later = min(rng.choice((0, 0, 1, 9)), len(queue.facts) - 1)
        least, most = queue.min_offset, queue.max_offset
        ends = (least, least - 1, most - 1, most, most + 1, -1)
        number = rng.choice(ends) if rng.random() < 0.3 else rng.randrange(least, most)
        count = rng.choice((1, 1, 2, 3, 8, 32, 1000, 0, -1))
        refused = frozenset(rng.sample((0, 1, 2, -7, None), rng.randrange(5)))
        given = None if rng.random() < 0.5 else _Filter(refused, rng.random() < 0.5)
        if not least <= number < most or count <= 0:
            status, following = "NO_MATCHED_MESSAGE", number
            if number < least:
                status, following = "OFFSET_TOO_SMALL", least
            elif number >= most:
                status, following = ("OFFSET_OVERFLOW_ONE" if number == most else "OFFSET_OVERFLOW_BADLY"), most
            expected = _Expected(status, following if corrects else number)
        else:
            units = max(_LEAST, count) + (self._confirmed(number) if confirms and given is None else 0)
            expected = self._expected(number, count, units, given, readable_end)
        found = tried("a pull", lambda: self._get(reads, number, count, given))
        what = f"a pull of {count} from {number}"
        behind = expected.behind
        wanted = (
            expected.status,
            expected.next_number,
            least,
            most,
            behind,
            behind is not None and behind > self._limits[4],
        )
        answer = (found.status.name, found.next_begin_offset, found.min_offset, found.max_offset, found.behind_bytes,
                  found.suggest_pulling_from_slave)  # fmt: skip
        is_value(f"status, next number, bounds and distance of {what}", wanted, answer)
        self._compare_buffers(what, expected.found, found)
        is_value(f"the questions of {what} to its filter", expected.asked, [] if given is None else given.asked)
        queue.later = 0

    def _confirmed(self, number: int) -> int:
        """Return how many leading units of messages lie in one file. They are confirmed at once."""
        queue = self._queue
        some = queue.facts[number - queue.first : queue.max_offset - queue.first]
        file = some[0].offset // _FILE_BYTES
        return len(list(takewhile(lambda fact: fact.kind == "message" and fact.offset // _FILE_BYTES == file, some)))

    def _expected(self, number: int, count: int, units: int, given: _Filter | None, readable_end: int) -> _Expected:
        """Return the answer to a pull within the bounds of the queue.

        It looks at `units` units at most.
        """
        queue, expected = self._queue, _Expected("NO_MATCHED_MESSAGE", number)
        gone_below, size = 0, 0
        for at in range(number, min(queue.max_offset, number + units)):
            fact, expected.next_number = queue.facts[at - queue.first], at
            if fact.kind != "prefill":
                if fact.kind == "past":
                    if not self._never_grows:
                        expected.status = "OFFSET_FOUND_NULL"
                        break
                    expected.status = "MESSAGE_WAS_REMOVING"
                else:
                    expected.behind = readable_end - fact.offset
                    if fact.offset >= gone_below:
                        if expected.found and self._is_full(expected, size + fact.size, count):
                            break
                        expected.status = self._passed(fact, given, expected.asked)
                        if expected.status == "FOUND":
                            expected.found.append(at)
                            size, gone_below = size + fact.size, 0
                        elif expected.status == "MESSAGE_WAS_REMOVING" and fact.kind == "gone":
                            gone_below = (fact.offset // _FILE_BYTES + 1) * _FILE_BYTES
            expected.next_number = at + 1
        expected.status = "FOUND" if expected.found else expected.status
        return expected

    def _is_full(self, expected: _Expected, size: int, count: int) -> bool:
        near_bytes, near_count, far_bytes, far_count, memory_bytes = self._limits
        assert expected.behind is not None
        is_far = expected.behind > memory_bytes
        bytes_max, count_max = (far_bytes, far_count) if is_far else (near_bytes, near_count)
        return len(expected.found) >= min(count, count_max) or size > bytes_max

    def _passed(self, fact: _Fact, given: _Filter | None, asked: list[object]) -> str:
        """Return what a unit below the readable end gives."""
        if given is not None:
            code = fact.code if fact.code >= -(1 << 31) else fact.ext and fact.ext.tags_code
            asked.append((code, fact.ext))
            if not given.wants(code):
                return "NO_MATCHED_MESSAGE"
        if fact.kind != "message":
            return "MESSAGE_WAS_REMOVING"
        if given is not None and given.reads_properties:
            asked.append({} if not _text_of(fact) else dict(_pairs(_text_of(fact))))
            if not fact.is_yes:
                return "NO_MATCHED_MESSAGE"
        return "FOUND"

    def _compare_buffers(self, what: str, numbers: Sequence[int], found: GetMessageResult) -> None:
        facts = [self._queue.facts[number - self._queue.first] for number in numbers]
        expected = [(number, fact.content.hex()) for number, fact in zip(numbers, facts, strict=True)]
        with found:
            is_value(f"the size of {what}", sum(fact.size for fact in facts), found.size_bytes)
            answer = [(buffer.queue_offset, bytes(buffer).hex()) for buffer in found.messages]
            is_value(f"the messages of {what}", expected, answer)
            for buffer, fact in zip(found.messages, facts, strict=True):
                message = buffer.message()
                is_value(
                    "time and place of a message", (fact.time, fact.offset), (message.store_timestamp, message.offset)
                )

    # ---- by number and time --------------------------------------------------------------------------------------

    def _by_number(self, reads: QueueReads, readable_end: int) -> None:
        rng, queue = self._rng, self._queue
        place = queue.topic, queue.queue_id
        least, most = queue.min_offset, queue.max_offset
        is_answered("the names of the queues", [place], reads.names)
        is_answered("the bounds of a queue", (least, most), reads.range_of, *place)
        is_answered("the bounds of an unknown queue", (0, 0), reads.range_of, "T", 4)
        messages = {least + at: fact for at, fact in enumerate(queue.facts) if fact.kind == "message"}
        for number in (least - 1, most, *rng.sample(range(least, most), min(8, most - least))):
            time = messages[number].time if number in messages else None
            is_answered(f"the store time of {number}", time, reads.store_timestamp, *place, number)
            fact = queue.facts[number - least] if least <= number < most else _Fact("prefill")
            is_far = fact.kind != "prefill" and readable_end - fact.offset > self._limits[4]
            is_answered(f"whether {number} is on disk only", is_far, reads.is_in_disk, *place, number)
        begin, end = rng.randrange(least - 1, most + 1), rng.randrange(least, most + 2)
        wanted = [(number, fact.content) for number, fact in messages.items() if begin <= number < end]
        found = [(buffer.queue_offset, bytes(buffer)) for buffer in reads.records(*place, begin, end)]
        is_value(f"the records from {begin} to {end}", wanted, found)
        self._by_time(reads, place)

    def _by_time(self, reads: QueueReads, place: tuple[str, int]) -> None:
        """Search for times; a record that is gone is older than any, one past the end is younger."""
        queue = self._queue
        for _ in range(4):
            time = _T0 + self._rng.randrange(-5, 10 * queue.max_offset + 15)
            kinds = [(number, fact) for number, fact in enumerate(queue.facts, queue.first)]
            older = [n for n, f in kinds if f.kind == "gone" or (f.kind == "message" and f.time < time)]
            younger = [n for n, f in kinds if f.kind == "past" or (f.kind == "message" and f.time >= time)]
            low, high = max(older, default=queue.first - 1) + 1, min(younger, default=queue.max_offset)
            found = tried("offset_by_time", lambda time=time: reads.offset_by_time(*place, time))  # type: ignore[misc]
            is_value(f"whether {found} is the number of {time}, from {low} to {high}", True, low <= found <= high)


def _text_of(fact: _Fact) -> bytes:
    """Return the properties in a record without its trailer."""
    at = fact.content.index(b"\x01T", _HEAD.size) + 4
    return fact.content[at:].partition(_TRAILER)[0]


def _pairs(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield names and values; a value is not empty."""
    for pair in text.decode().split("\x02"):
        name, _, value = pair.partition("\x01")
        if name and value:
            yield name, value
