"""Dispatch files that are written byte by byte, against lists (contracts 4 and 5).

1. A record gives a unit in its queue, and in each queue that it names if multi-dispatch is enabled. It names no queue
   if the list of offsets has another length or another form, and none from the schedule topic or a retry topic. A
   prepared or rolled-back message gives no unit.
2. The unit has the hash of the tags, or the due time of a delayed message.
3. The index gets the unique key and each key, except from a rolled-back message.
4. Dispatch ends at the end that it is given, with the record that fills the batch, at a blank, or at bytes that are no
   record. Then it says what is wrong.
5. Runs are joined if their numbers go on, and their units stay in order.
6. Listeners get each record, for its own queue and for each queue that it names, with the number after its own.
"""

import random
import re
import struct
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tornpage.impl.dispatch.arriving import Arrival, arrivals_in, tell
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import DispatchRules, ExtDraft, QueueRun, joined
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.model.delay import level_of
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.queues import java_hash
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_PROGRAMS = 5
_MAGIC, _BLANK_MAGIC = 0xDAA320A7, 0xCBD43194
_HEAD, _AFTER = struct.Struct(">IIIiiqqiq"), struct.Struct(">iqi")
_UNIT = struct.Struct(">qiq")
_V4, _V6 = bytes((127, 0, 0, 1, 0, 0, 0, 9)), bytes(15) + b"\x01" + bytes((0, 0, 0, 9))
_T0 = 1_700_000_000_000
_LEVELS = (1_000, 60_000)
_OFFSET = re.compile("[0-9]{1,18}")
_TOPICS = ("T", "T", "U", "tést", "%RETRY%g", "%LMQ%x", SCHEDULE_TOPIC, SCHEDULE_TOPIC)
_PAIRS: dict[str, tuple[str, ...]] = {
    "TAGS": ("a", "é"),
    "DELAY": ("1", "2", "3", "0", "-1", "x"),
    "KEYS": ("k", "k l", " k  l "),
    "UNIQ_KEY": ("u",),
    "INNER_MULTI_DISPATCH": ("A", "T", "A,%LMQ%x", "A,A", " ", "A,,B", "%LMQ%x,T,B"),
    "INNER_MULTI_QUEUE_OFFSET": ("0", "7", "5,6", "1,2,3", "5,x", "5,", "9" * 18, "9" * 19),
    "__CRC32#": ("0123456789",),
}
_BROKEN = ("no magic", "short", "long", "body", "topic", "properties", "place", "other file")
_REASONS = {"no magic": "bad_magic", "place": "bad_position", "other file": "bad_position"}

_Key = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class _Made:
    """A record, and what dispatch has to find in it. `pairs` are its properties."""

    topic: str
    queue_id: int
    number: int
    offset: int
    sys_flag: int
    time: int
    pairs: dict[str, str]
    content: bytes

    @property
    def own(self) -> _Key:
        return self.topic.encode(), self.queue_id

    @property
    def code(self) -> int:
        """The hash of the tags, or the due time of a delayed message."""
        if self.topic == SCHEDULE_TOPIC and "DELAY" in self.pairs:
            level = min(level_of({"DELAY": self.pairs["DELAY"]}) or 0, len(_LEVELS))
            if level > 0:
                return self.time + _LEVELS[level - 1]
        return java_hash(self.pairs.get("TAGS", ""))

    @property
    def keys(self) -> list[str]:
        """The keys for the index, the unique one first."""
        unique = [self.pairs["UNIQ_KEY"]] if "UNIQ_KEY" in self.pairs else []
        return unique + [key for key in self.pairs.get("KEYS", "").split(" ") if key]


class _Setting(NamedTuple):
    """What dispatch depends on.

    `multi` says whether named queues count, `light` whether light queues do, `indexes` whether there is an index,
    `ext` whether units have drafts, and `maps` whether these have bit maps.
    """

    multi: bool
    light: bool
    indexes: bool
    ext: bool
    maps: bool

    def rules(self, batch_bytes_max: int) -> DispatchRules:
        """Return the rules of the store."""
        return DispatchRules(
            index=self.indexes,
            delay_levels=DelayLevels(_LEVELS),
            multi_dispatch=MultiDispatch(light_queues=self.light) if self.multi else None,
            ext=self.ext,
            bit_map_of=_bit_map if self.maps else None,
            batch_bytes_max=batch_bytes_max,
        )


@dataclass
class _Lists:
    """What dispatch gives, as plain lists."""

    runs: list[QueueRun] = field(default_factory=list)
    entries: list[tuple[int, int, int]] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)


def check(rng: random.Random) -> None:
    """Dispatch several files. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _dispatch(rng)


def _bit_map(topic: bytes, pairs: object) -> bytes:
    """Return a bit map of a topic. The provider fails for topic U."""
    if topic == b"U":
        raise ValueError("a provider that fails")
    return bytes((len(topic), len(pairs)))  # type: ignore[arg-type]


# ---- writing a file --------------------------------------------------------------------------------------------------


def _made(rng: random.Random, offset: int, numbers: dict[_Key, int]) -> _Made:
    topic, queue_id = rng.choice(_TOPICS), rng.choice((0, 1, -1))
    number = numbers.get((topic.encode(), queue_id), rng.choice((0, 0, 9)))
    numbers[topic.encode(), queue_id] = number + rng.choice((1, 1, 1, 2, 0))
    names = rng.sample(sorted(_PAIRS), rng.choice((0, 1, 3, 7)))
    pairs = {name: rng.choice(_PAIRS[name]) for name in names}
    if "INNER_MULTI_DISPATCH" in pairs and rng.random() < 0.7:
        count = pairs["INNER_MULTI_DISPATCH"].count(",") + 1
        pairs["INNER_MULTI_QUEUE_OFFSET"] = ",".join(str(rng.randrange(9)) for _ in range(count))
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items()).encode()
    born, host, body = rng.choice((_V4, _V4, _V6)), rng.choice((_V4, _V4, _V6)), rng.randbytes(rng.choice((0, 3)))
    sys_flag = rng.choice((0, 0, 0, 4, 8, 12)) | 0x10 * (born == _V6) | 0x20 * (host == _V6)
    name, time = topic.encode(), _T0 + rng.randrange(1000)
    size = _HEAD.size + len(born) + 8 + len(host) + _AFTER.size + len(body) + 1 + len(name) + 2 + len(text)
    head = _HEAD.pack(size, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, queue_id, 0, number, offset, sys_flag, time)
    placed = head + born + struct.pack(">q", time) + host + _AFTER.pack(0, 0, len(body)) + body
    content = placed + bytes((len(name),)) + name + struct.pack(">H", len(text)) + text
    return _Made(topic, queue_id, number, offset, sys_flag, time, pairs, content)


def _broken(rng: random.Random, made: _Made, kind: str, file_bytes: int) -> bytes:
    """Return a record with one wrong field."""
    data = bytearray(made.content)
    body_at = 80 + (20 if made.sys_flag & 0x10 else 8) + (12 if made.sys_flag & 0x20 else 0)
    body_bytes = struct.unpack_from(">i", data, body_at - 4)[0]
    topic_at = body_at + body_bytes
    properties_at = topic_at + 3 + data[topic_at]
    match kind:
        case "no magic":
            data[4] ^= 1
        case "short":
            struct.pack_into(">i", data, 0, rng.choice((0, -1, 90)))
        case "long":
            struct.pack_into(">i", data, 0, rng.choice((file_bytes, (1 << 31) - 1)))
        case "body":
            struct.pack_into(">i", data, body_at - 4, rng.choice((-1, len(data) - body_at - 2, len(data), 1 << 30)))
        case "topic":
            data[topic_at] = 255
        case "properties":
            struct.pack_into(">H", data, properties_at - 2, len(data) - properties_at + rng.choice((1, 1 << 8)))
        case "place":
            struct.pack_into(">q", data, 28, rng.choice((made.offset + 1, made.offset - 1, -file_bytes)))
        case "other file":
            struct.pack_into(">q", data, 28, made.offset + file_bytes)
    return bytes(data)


def _dispatch(rng: random.Random) -> None:
    """Dispatch a file of some records that ends in a drawn way."""
    base, numbers = rng.choice((0, 1 << 14)), dict[_Key, int]()
    made: list[_Made] = []
    data = bytearray()
    file_bytes = 1 << 13
    for _ in range(rng.choice((0, 1, 2, 4, 9))):
        made.append(_made(rng, base + len(data), numbers))
        data += made[-1].content
    end, kind, reason = file_bytes, rng.choice(("end", "inside", "blank", "no blank", "zeros", *_BROKEN)), None
    used = len(data)
    match kind:
        case "end":
            end = used
        case "inside":
            extra = _made(rng, base + used, numbers).content
            end = used + rng.choice((1, 7, 8, len(extra) - 1))
            data, reason = data + extra, "past_end" if end < used + 8 else "bad_length"
        case "blank" | "no blank":
            total = file_bytes - used - (kind == "no blank")
            data, reason = data + struct.pack(">II", total, _BLANK_MAGIC), "blank" if kind == "blank" else "bad_magic"
        case "zeros":
            reason = "bad_magic"
        case _:
            data += _broken(rng, _made(rng, base + used, numbers), kind, file_bytes)
            reason = _REASONS.get(kind, "bad_length")
            if kind == "other file" and not made:
                return  # nothing says where the file begins
    setting = _Setting(*(rng.random() < 0.6 for _ in range(5)))
    start = rng.randrange(len(made)) if made and rng.random() < 0.3 else 0
    position = sum(len(each.content) for each in made[:start])
    batch_bytes = rng.choice((1, 200, 500, 1 << 20))
    taken, at = list[_Made](), position
    for each in made[start:]:
        if at - position >= batch_bytes:
            break
        taken.append(each)
        at += len(each.content)
    is_cut = at - position >= batch_bytes
    view = memoryview(bytes(data.ljust(file_bytes, b"\0")))
    found = tried("dispatch", lambda: dispatch_records(view, position, end, setting.rules(batch_bytes)))
    lists = _lists(taken, setting)
    newest = max((each.time for each in taken), default=0)
    wanted = at, len(taken), newest, None if is_cut else reason
    answer = found.end_position, found.records, found.store_timestamp, found.reason
    is_value(f"end, count, newest time and reason of a dispatch that ends with {kind}", wanted, answer)
    is_value("the runs of a dispatch", joined(lists.runs), joined(found.runs))
    is_value("the runs of a dispatch, one after the other", _flat(lists.runs), _flat(found.runs))
    is_value("the index entries of a dispatch", lists.entries, list(zip(*found.index, strict=True)))
    _are_joined(lists.runs)
    arrivals = tried("arrivals_in", lambda: arrivals_in(view, position, at, setting.rules(batch_bytes)))
    is_value("the arrivals of a dispatch", lists.arrivals, arrivals)
    _listen(arrivals)


# ---- the plain lists -------------------------------------------------------------------------------------------------


def _named(made: _Made, setting: _Setting) -> dict[_Key, int]:
    """Return the queues that a record names, with its numbers there."""
    names = made.pairs.get("INNER_MULTI_DISPATCH", "")
    if not setting.multi or not names.strip() or made.topic.startswith(("%RETRY%", SCHEDULE_TOPIC)):
        return {}
    offsets = made.pairs.get("INNER_MULTI_QUEUE_OFFSET", "").split(",")
    queues = [
        (name.encode(), 0 if setting.light and name.startswith("%LMQ%") else made.queue_id) for name in names.split(",")
    ]
    if len(offsets) != len(queues) or not all(map(_OFFSET.fullmatch, offsets)):
        return {}
    return dict(zip(queues, map(int, offsets), strict=True))


def _lists(taken: list[_Made], setting: _Setting) -> _Lists:
    lists = _Lists()
    for made in taken:
        named, size = _named(made, setting), len(made.content)
        bit_map = bytes((len(made.own[0]), len(made.pairs))) if setting.maps and made.topic != "U" else b""
        if not made.sys_flag & 4:
            unit, end = _UNIT.pack(made.offset, size, made.code), made.offset + size
            ext = (ExtDraft(made.code, made.time, bit_map),) if setting.ext else ()
            lists.runs.append(QueueRun(made.own, made.number, unit, end, ext, made.own in named))
            others = [(key, number) for key, number in named.items() if key != made.own]
            lists.runs += [QueueRun(key, number, unit, end, (), True) for key, number in others]
        if setting.indexes and made.sys_flag & 12 != 12:
            hashes = (abs(java_hash(f"{made.topic}#{key}")) % 2**31 for key in made.keys)
            lists.entries += [(code, made.offset, made.time) for code in hashes]
        pairs = {name: value for name, value in made.pairs.items() if name != "__CRC32#"}
        arrived_map = bytes((len(made.own[0]), len(pairs))) if bit_map else b""
        for (name, queue_id), number in ((made.own, made.number), *named.items()):
            lists.arrivals.append(
                Arrival(name.decode(), queue_id, number + 1, made.code, made.time, arrived_map, pairs)
            )
    return lists


def _flat(runs: object) -> list[tuple[_Key, int, tuple[int, int, int], bool, object]]:
    """Return the units of runs with their queues and numbers, sorted by place."""
    return sorted(
        (
            (run.key, run.queue_offset + at, unit, run.named, run.ext[at] if run.ext else None)
            for run in runs  # type: ignore[attr-defined]
            for at, unit in enumerate(_UNIT.iter_unpack(run.units))
        ),
        key=lambda unit: (unit[2][0], unit[:2]),
    )


def _are_joined(runs: list[QueueRun]) -> None:
    """Compare joined runs: units stay in order, and no two runs go on."""
    found = tried("joined", lambda: joined(runs))
    for key in {run.key for run in runs}:
        mine, theirs = [run for run in runs if run.key == key], [run for run in found if run.key == key]
        is_value("the units of joined runs", b"".join(run.units for run in mine), b"".join(run.units for run in theirs))
        ends = [run.units[-20:-8] for run in theirs]
        is_value("the ends of joined runs", [_UNIT.pack(run.end_offset, 0, 0)[:8] for run in theirs],
                 [struct.pack(">q", sum(struct.unpack(">qi", end))) for end in ends])  # fmt: skip
        for before, after in pairwise(theirs):
            goes_on = before.queue_offset + len(before.units) // 20 == after.queue_offset
            same = (before.named, bool(before.ext)) == (after.named, bool(after.ext))
            is_value("whether joined runs go on", False, goes_on and same)
    firsts = [struct.unpack(">q", run.units[:8])[0] for run in found]
    is_value("the order of joined runs", sorted(firsts), firsts)


def _listen(arrivals: list[Arrival]) -> None:
    """Call listeners, of which one fails."""
    heard: list[object] = []

    def fails(arrival: Arrival) -> None:
        heard.append(arrival.next_offset)
        raise ValueError("a listener that fails")

    is_answered("a call of listeners", None, tell, (fails, heard.append), arrivals)
    expected = [each for arrival in arrivals for each in (arrival.next_offset, arrival)]
    is_value("the calls of listeners", expected, heard)
