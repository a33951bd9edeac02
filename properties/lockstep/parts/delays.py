"""Deliver delayed messages from queues that are lists, and save progress (contract 12).

1. A saved table has a number for each level. It is saved only if it has changed, and after the copies are durable,
   unless it is the corrected table of the open. A save that failed changes nothing. A file with a number outside of 0
   to 2^63 - 1, or of another shape, has no table, and its backup is used.
2. A round delivers due messages of each level in order, at most 64. It stops before a message that is not due, and
   goes on when that is due, or after a second. The time is in the unit, in the extension, or in the record.
3. A message without a record or copy, or with a copy that is refused for good, is skipped. After another refusal the
   level pauses 100 ms. With answers that come later each further refusal adds 100 ms, up to a minute, and the progress
   follows the answers. A level with too many open answers puts nothing more. A put that raises pauses its level 10 s.
4. A message that arrives wakes the service if it is due before the next round.
"""

import random
import struct
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.delay.schedule import DeliverDelayedMessages, DeliveryRounds
from tornpage.impl.delay.schedule_async import DeliverDelayedMessagesAsync
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import ExtDraft, QueueRun
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.queue.units import Unit
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.properties.decode.config_files import parse_config, parse_delay_offsets
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, carried_out, tried

__all__ = ["check"]

_PATH = "/part/delayOffset.json"
_TOPIC = SCHEDULE_TOPIC.encode()
_UNIT = struct.Struct(">qiq")
_T0 = 1_700_000_000_000
_ADDRESS = -(1 << 63)
_END = 1 << 20
"""The readable end of the log."""
_FINAL = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
_REFUSED = (PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.OS_PAGECACHE_BUSY)
_STORED = (PutStatus.PUT_OK, PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT)
_PROGRAMS, _ROUNDS = 4, 9
_EXPIRY_SHARE = 0.15
"""The share of rounds after which the first messages of a level have expired."""


def check(rng: random.Random) -> None:
    """Save tables, and deliver. Raises GuaranteeBroken."""
    _files(rng)
    _saves(rng)
    for _ in range(_PROGRAMS):
        _Rounds(rng).run()


# ---- saved progress --------------------------------------------------------------------------------------------------


def _offsets(disk: PartDisk, flush: Any) -> DelayOffsets:
    return DelayOffsets(ConfigFile(disk, _PATH), interval_ms=10_000, make_copies_durable=flush)


def _files(rng: random.Random) -> None:
    """Load files of every shape, with and without a backup."""
    good: tuple[tuple[str, dict[int, int]], ...] = (
        ('{"offsetTable":{1:0,3:9223372036854775807}}', {1: 0, 3: (1 << 63) - 1}),
        ('{"offsetTable":{"2":5}}', {2: 5}),
        ('{"offsetTable":{}}', {}),
    )
    numbers = ("-1", "9223372036854775808", "9223372036854775809", "true", '"5"', "null", "1.0")
    bad = (*(f'{{"offsetTable":{{1:{number}}}}}' for number in numbers), "", "{}", '{"offsetTable":3}', "[]",
           '{"offsetTable":{"x":1}}')  # fmt: skip
    for text, table in good:
        for main, backup in ((text, None), (text, rng.choice(bad)), (rng.choice(bad), text), (None, text)):
            stored = {_PATH: main, f"{_PATH}.bak": backup}
            files = {path: each.encode() for path, each in stored.items() if each is not None}
            disk = PartDisk(Image(frozenset(("/", "/part")), files))
            found = _offsets(disk, lambda: True)
            tried("load", found.load)
            codes = [] if main == text else ["config_file_from_backup"]
            answer = dict(found.by_level()), [each.code for each in found.findings]
            is_value(f"delay offsets of {main!r} with the backup {backup!r}", (table, codes), answer)
    for text in bad:
        disk = PartDisk(Image(frozenset(("/", "/part")), {_PATH: text.encode()}))
        found = _offsets(disk, lambda: True)
        tried("load", found.load)
        answer = dict(found.by_level()), [each.code for each in found.findings]
        is_value(f"delay offsets of {text!r}", ({}, ["config_file_unreadable"]), answer)


def _saves(rng: random.Random) -> None:
    """Advance, correct, save and load again."""
    disk, flushes, are_durable = PartDisk(), [0], [True]

    def flush() -> bool:
        flushes[0] += 1
        return are_durable[0]

    offsets, table, saved, settled = _offsets(disk, flush), dict[int, int](), dict[int, int](), dict[int, int]()
    tried("load", offsets.load)
    is_value("the longest time to a save", 10_000, offsets.interval_ms)
    for _ in range(14):
        match rng.choice(("advance", "advance", "save", "save", "correct", "open")):
            case "advance":
                level, number = rng.choice((1, 2, 18)), rng.randrange(9)
                table[level] = number
                is_answered("an advance", None, offsets.advance, level, number)
            case "correct":
                low, high = sorted(rng.sample(range(9), 2))
                wanted = {level: min(max(number, low), high) for level, number in table.items()}
                ranges = {(SCHEDULE_TOPIC, level - 1): (low, high) for level in table}
                is_answered("a correction", None, offsets.correct, lambda *queue, known=ranges: known[queue])
                is_corrected = any(each.code == "progress_corrected" for each in offsets.findings)
                is_value("whether corrections have a finding", True, is_corrected or wanted == table)
                table, settled = wanted, dict(wanted)
            case "save":
                needs = table != saved and table != settled
                are_durable[0], flushes[0] = rng.random() < 0.7, 0
                if needs and not are_durable[0]:
                    try:
                        tried("save", offsets.save)
                    except OSError:
                        pass
                    else:
                        is_value("a save without durable copies", "OSError", "saved")
                    is_value("the flushes of a save", 1, flushes[0])
                else:
                    carried_out(disk, rng, "save", offsets.save)
                    is_value("whether a save flushes", needs, flushes[0] > 0)
                    if table != saved:
                        saved = settled = dict(table)
            case "open":
                disk = PartDisk(disk.durable)
                offsets, table, settled = _offsets(disk, flush), dict(saved), {}
                tried("load", offsets.load)
                carried_out(disk, rng, "make_durable", offsets.make_durable)
        is_value("the delay offsets", sorted(table.items()), list(offsets.by_level().items()))
        is_answered("the number of level 2", table.get(2), offsets.next_number, 2)
        if saved:
            for files in (disk.content, disk.durable.files):
                stored = parse_delay_offsets(parse_config(files[_PATH]))
                is_value("the saved delay offsets", tuple(sorted(saved.items())), stored)
    is_value("the files that saves still hold", (0, 0), disk.held)


# ---- rounds ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Delayed:
    """A message of a level; `kind` says what its delivery meets.

    `due` is in milliseconds. `has_unit` is False for pre-fill.
    """

    offset: int
    due: int
    kind: str
    code: int
    has_unit: bool = True
    ext: ExtUnit | None = None
    answers: list[PutStatus] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """The queue of a level as the store reads it, and what the reference knows of it.

    `line` has next number and answer of each message that was handled and whose number does not count yet.
    """

    queue_id: int
    first: int
    messages: list[_Delayed]
    progress: int | None = None
    refusals: int = 0
    line: list[tuple[int, Future[PutResult] | None]] = field(default_factory=list)
    topic: str = SCHEDULE_TOPIC

    @property
    def key(self) -> tuple[bytes, int]:
        return _TOPIC, self.queue_id

    @property
    def min_offset(self) -> int:
        return self.first

    @property
    def max_offset(self) -> int:
        return self.first + len(self.messages)

    @property
    def ext(self) -> "_Level":
        return self

    def get(self, address: int) -> ExtUnit | None:
        """Return the extension unit at an address."""
        return next((each.ext for each in self.messages if each.code == address), None)

    def unit(self, number: int) -> Unit | None:
        """Return a unit; None for pre-fill and for an expired one."""
        if number < self.first:
            return None
        message = self.messages[number - self.first]
        return Unit(message.offset, 100, message.code) if message.has_unit else None


class _Rounds:
    """Rounds of one service over two levels."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._is_async = rng, rng.random() < 0.5
        self._clock, self._may_deliver = _T0, True
        self._levels = [_Level(queue_id, rng.choice((0, 0, 3)), []) for queue_id in (0, 2)]
        self._by_offset: dict[int, _Delayed] = {}
        self._fill()
        self._disk = PartDisk()
        self._offsets = _offsets(self._disk, lambda: True)
        for level in self._levels:
            if rng.random() < 0.5:
                level.progress = rng.randrange(level.max_offset + 1)
                self._offsets.advance(level.queue_id + 1, level.progress)
        self._max = rng.choice((1, 2, 50))
        self._next_round = _T0 + 1_000
        self._wakes = 0
        self._counts = {"delivered": 0, "skipped": 0, "unconfirmed": 0}
        self._put: list[int] = []
        self._wanted: list[int] = []
        self._open: dict[int, Future[PutResult]] = {}
        self._service = self._made()
        self._service.wake = self._wake

    def _fill(self) -> None:
        rng, offset = self._rng, 100
        kinds = ("ok",) * 8 + ("refused", "final", "no copy", "no record", "raises", "waits", "waits", "late")
        for level in self._levels:
            is_plain = rng.random() < 0.2
            for _ in range(rng.choice((0, 1, 3, 8, 70 if is_plain else 5))):
                kind, due = "ok" if is_plain else rng.choice(kinds), _T0 + rng.choice((0, 0, 0, 0, 1, 900, 3_000))
                place = _END if kind == "late" else offset
                message = _Delayed(place, due, kind, due, has_unit=is_plain or rng.random() < 0.9)
                if not is_plain and rng.random() < 0.2:
                    message.code = _ADDRESS + offset
                    if rng.random() < 0.5:
                        message.ext = ExtUnit(due, 1, b"")
                    elif kind in ("no record", "late"):
                        message.due = 0
                if kind == "refused":
                    message.answers = [rng.choice(_REFUSED) for _ in range(rng.randrange(1, 4))]
                elif kind == "final":
                    message.answers = [rng.choice(_FINAL)]
                message.answers.append(rng.choice(_STORED))
                level.messages.append(message)
                self._by_offset[place] = message
                offset += 100

    def _made(self) -> DeliveryRounds:
        """Return the service over the levels, with a log and puts of this module."""
        queues = SimpleNamespace(all=lambda: self._levels, find=self._find)
        reader = SimpleNamespace(readable_end=_END, session=lambda verifies: _Session())
        records = SimpleNamespace(find=self._record)
        shared: dict[str, Any] = {
            "levels": DelayLevels((1_000,)), "copy_of": self._copy_of, "clock": lambda: self._clock,
            "may_deliver": lambda: self._may_deliver,
        }  # fmt: skip
        given: tuple[Any, ...] = (queues, reader, records, self._offsets)
        if self._is_async:
            return DeliverDelayedMessagesAsync(*given, put=self._answer_later, pending_max=self._max, **shared)
        return DeliverDelayedMessages(*given, put=self._answer, **shared)

    def _find(self, topic: str, queue_id: int) -> _Level | None:
        return next((level for level in self._levels if (level.topic, level.queue_id) == (topic, queue_id)), None)

    def _record(self, session: "_Session", key: tuple[bytes, int], number: int, offset: int) -> int:
        message = self._by_offset[offset]
        session.found = SimpleNamespace(
            topic=SCHEDULE_TOPIC, body=str(offset).encode(), queue_id=key[1], flag=0, sys_flag=0, born_timestamp=0,
            properties={"DELAY": "1"}, born_host=("", 0), store_host=("", 0), reconsume_times=0,
            store_timestamp=message.due - 1_000,
        )  # fmt: skip
        return 0 if message.kind in ("no record", "late") else 100

    def _copy_of(self, stored: Message) -> Message | str:
        is_copied = self._by_offset[int(stored.body or b"")].kind != "no copy"
        return Message("T", stored.body) if is_copied else "it has no copy"

    def _answer(self, copy: Message) -> PutResult:
        offset = int(copy.body or b"")
        message = self._by_offset[offset]
        self._put.append(offset)
        if message.kind == "raises":
            message.kind = "ok"
            raise RuntimeError("a put that fails")
        status = message.answers.pop(0)
        is_stored = status in _STORED
        return PutResult(status, offset if is_stored else -1)

    def _answer_later(self, copy: Message) -> Future[PutResult]:
        result, future = self._answer(copy), Future[PutResult]()
        offset = int(copy.body or b"")
        if self._by_offset[offset].kind == "waits" and result.stored:
            self._by_offset[offset].answers.append(result.status)
            self._open[offset] = future
        else:
            future.set_result(result)
        return future

    def _wake(self) -> None:
        self._wakes += 1

    # ---- the reference -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run rounds, with answers, arrivals and time between them."""
        self._arrive()
        for _ in range(_ROUNDS):
            self._may_deliver = self._rng.random() < 0.9
            plans = {offset: (each.kind, list(each.answers)) for offset, each in self._by_offset.items()}
            expected = self._round(plans) if self._may_deliver else None
            if not self._may_deliver:
                self._next_round = 1 << 63
            self._put.clear()
            due = tried("a round", lambda: self._service.step(500))
            is_value("the copies that a round puts", self._wanted, self._put)
            self._wanted = []
            is_value("when the next round is due", None if expected is None else 500 + expected, due)
            self._settle(answered=not self._is_async)
            self._compare()
            self._arrive()
            self._clock += self._rng.choice((0, 1, 500, 1_000, 5_000))
            self._answer_some()
            self._expire()
        self._may_deliver = True
        tried("finish", self._service.finish)
        self._settle(answered=True)
        self._compare()

    def _round(self, plans: Mapping[int, tuple[str, list[PutStatus]]]) -> int | None:
        """Note what a round puts; return after how many ms the next one is due."""
        self._settle(answered=True)
        pauses = [pause for level in self._levels if (pause := self._deliver(level, plans)) is not None]
        self._next_round = self._clock + min(pauses) if pauses else 1 << 63
        return min(pauses, default=None)

    def _deliver(self, level: _Level, plans: Mapping[int, tuple[str, list[PutStatus]]]) -> int | None:
        number, handled = max(level.progress or 0, level.first), 0
        if level.progress is not None and level.messages:
            level.progress = number
        if level.line:
            number = max(number, level.line[-1][0])
        while number < level.max_offset:
            message = level.messages[number - level.first]
            if message.has_unit:
                if message.due > self._clock:
                    return min(message.due - self._clock, 1_000)
                if self._is_async and self._open_of(level) >= self._max:
                    return None
                if handled == 64:
                    return 0
                kind, answers = plans[message.offset]
                handled += 1
                if kind == "late":
                    return self._refused(level)
                if kind in ("no copy", "no record"):
                    self._counts["skipped"] += 1
                else:
                    self._wanted.append(message.offset)
                    if kind == "raises":
                        return 10_000
                    if answers[0] in _REFUSED:
                        return self._refused(level)
                    self._counts["skipped" if answers[0] in _FINAL else "delivered"] += 1
                self._handled(level, number + 1, message, kind, answers)
            else:
                self._handled(level, number + 1, None, "", [])
            number += 1
        return None

    def _refused(self, level: _Level) -> int:
        level.refusals += 1
        return min(100 * level.refusals, 60_000) if self._is_async else 100

    def _open_of(self, level: _Level) -> int:
        """Return how many messages wait in the line of a level."""
        return len(level.line)

    def _handled(
        self, level: _Level, following: int, message: _Delayed | None, kind: str, answers: list[PutStatus]
    ) -> None:
        """Note a message that the level need not handle again."""
        level.refusals = 0
        answer: Future[PutResult] | None = None
        if self._is_async and message is not None and kind not in ("no copy", "no record") and answers[0] in _STORED:
            answer = Future()
            if kind == "waits":
                self._waiting[message.offset] = answer
            else:
                answer.set_result(PutResult(answers[0], 1))
        level.line.append((following, answer))
        self._follow(level)

    def _follow(self, level: _Level) -> None:
        """Move the progress of a level past the answered head of its line."""
        while level.line and (level.line[0][1] is None or level.line[0][1].done()):
            following, answer = level.line.pop(0)
            level.progress = max(following, level.progress or 0) if self._is_async else following
            if answer is not None:
                self._counts["unconfirmed"] += answer.result().status is not PutStatus.PUT_OK

    def _settle(self, *, answered: bool) -> None:
        for level in self._levels if answered else ():
            self._follow(level)

    @property
    def _waiting(self) -> dict[int, Future[PutResult]]:
        """The answers that the reference waits for, by offset of the message."""
        return self.__dict__.setdefault("_waits", {})  # type: ignore[no-any-return]

    # ---- between rounds ------------------------------------------------------------------------------------------

    def _answer_some(self) -> None:
        """Answer some open puts; each answer wakes the service."""
        for offset in sorted(self._open):
            if self._rng.random() < 0.5:
                status = self._by_offset[offset].answers.pop(0)
                before = self._wakes
                self._open.pop(offset).set_result(PutResult(status, offset))
                self._waiting.pop(offset).set_result(PutResult(status, offset))
                is_value("the wake-ups of an answer", 1, self._wakes - before)

    def _expire(self) -> None:
        """Remove the first messages of some levels, as a clean-up does."""
        for level in self._levels:
            if level.messages and self._rng.random() < _EXPIRY_SHARE:
                gone = self._rng.randint(1, len(level.messages))
                level.first += gone
                del level.messages[:gone]

    def _arrive(self) -> None:
        """Tell the service about messages that arrived: it wakes for those before its next round."""
        for topic, queue_id in ((_TOPIC, 0), (_TOPIC, 9), (b"T", 0)):
            due = self._next_round + self._rng.choice((-1, 0, 1)) if self._next_round < 1 << 62 else self._clock
            units = _UNIT.pack(1, 100, due + 5) + _UNIT.pack(101, 100, due)
            ext = (ExtDraft(due + 5, 1, b""), ExtDraft(due, 1, b"")) if self._rng.random() < 0.3 else ()
            before = self._wakes
            runs = [QueueRun((topic, queue_id), 0, units, 201, ext)]
            tried("note_runs", lambda runs=runs: self._service.note_runs(runs))  # type: ignore[misc]
            is_value(
                "the wake-ups of an arrival", int(topic == _TOPIC and due < self._next_round), self._wakes - before
            )

    def _compare(self) -> None:
        levels: Iterable[_Level] = (level for level in self._levels if level.progress is not None)
        is_value("the progress of the levels", {level.queue_id + 1: level.progress for level in levels},
                 dict(self._offsets.by_level()))  # fmt: skip
        found = {name: getattr(self._service, name) for name in self._counts}
        is_value("the counts of the deliveries", self._counts, found)


class _Session:
    """A session of reads with the record found last."""

    found: Any = None

    def message(self) -> Any:
        """Return the record found last."""
        return self.found

    def __enter__(self) -> "_Session":
        return self

    def __exit__(self, *_: object) -> None:
        pass
