"""Judge the answers of a peer to one image, contract number by contract number.

What has to be there comes from the judges' own decoder and from the model, as for our store: the bytes of the log, the
units of the queues, the records of each key. A peer is asked for the bounds of its log, for every message of every
queue, and for records by key. Its log files are compared by their bytes after its recovery. Numbers that these answers
do not show are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tornpage.model.dispatch import Queue, places
from tornpage.model.state import Layout
from tornpage.model.state import Record as ModelRecord
from tornpage.peers.errors import PeerCrashed, PeerFailed, PeerTimeout
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import (
    Found,
    LogBounds,
    Mode,
    PeerMessage,
    PeerQueue,
    Recovery,
    begin_recoveries,
    java_settings,
    recoveries,
)
from tornpage.properties.judge.image import SeenImage, Truth, write_image
from tornpage.properties.judge.image_evidence import ImageLedger, is_text, model_record
from tornpage.properties.judge.ledgers import DerivedLedger, Key, Ledger
from tornpage.properties.judge.rulings import NAMES, Ruling, bounds_text, broken, counted, holds, queue_text, unknown
from tornpage.properties.judge.shape import Look, SettingsOverride, look_at
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["Asked", "Expectation", "PeerAnswers", "PeerJudgement", "expectation_of", "judge_with_peer", "rulings_on"]

_KEYS_MAX = 400
"""How many keys of an image are asked for."""

_QUERY_MAX = 64
"""The most records that RocketMQ returns for a key by default."""

_NOT_ASKED: Final[Mapping[int, str]] = {
    3: "it needs a put and a restart after the recovery",
    8: "a status is the answer to a put, and nothing is put",
    9: "the answers do not show watermarks",
    10: "an image does not show which files were due for removal",
    11: "nothing is read while files are removed",
    12: "an image does not show when a message was delivered",
    13: "the answers do not show progress files",
    14: "no second opener is tried",
    15: "the peer has no replica",
    18: "nothing is put",
}
"""Why answers to reads never decide these numbers."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a recovery of one image may keep, and what it has to keep.

    `records` are the records of the log in order. The log has to reach `due_end`; `why_due` says why. `unknown` has the
    reason for each number that cannot be judged. `keys` are the keys to ask for.
    """

    ledger: Ledger
    derived: DerivedLedger
    records: Sequence[ModelRecord]
    begin: int
    due_end: int
    why_due: str
    keys: Sequence[Key]
    unknown: Mapping[int, str] = field(default_factory=dict)

    @property
    def ends(self) -> set[int]:
        """The offsets at which the log may end.

        They are the ends of records, and the ends of files that a blank fills.
        """
        size = self.ledger.file_bytes
        after = {record.end_offset for record in self.records}
        return {self.begin} | after | {-(-end // size) * size for end in after}


@dataclass(frozen=True, slots=True)
class PeerAnswers:
    """The answers of a peer after one recovery.

    `failed` is the number that a peer without further answers breaks, with the reason; None if all were given.
    """

    log: LogBounds | None = None
    queues: Mapping[Queue, tuple[PeerQueue, Sequence[PeerMessage], Sequence[tuple[int, str]]]] = field(
        default_factory=dict
    )
    found: Mapping[Key, Sequence[Found]] = field(default_factory=dict)
    failed: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class PeerJudgement:
    """The rulings on a peer, by contract number. `kept` is None if the peer did not start."""

    peer: str
    rulings: tuple[Ruling, ...]
    kept: int | None

    @property
    def verdict(self) -> str:
        """Broken if one number is broken; unknown if none could be judged."""
        words = {ruling.verdict for ruling in self.rulings}
        return next((word for word in ("broken", "holds") if word in words), "unknown")

    def numbers(self, word: str) -> list[int]:
        """Return the numbers with a verdict."""
        return [ruling.contract for ruling in self.rulings if ruling.verdict == word]


# ---- expectations ----------------------------------------------------------------------------------------------------


def expectation_of(seen: SeenImage, look: Look, truth: Truth | None = None) -> tuple[Expectation, dict[str, Any]]:
    """Return what a recovery of an image has to keep, and RocketMQ's settings for it."""
    log, found, floor = look.log, look.store_layout, look.floor
    unknown_numbers = dict(found.unknown)
    if len(found.log_directories) > 1:
        unknown_numbers |= dict.fromkeys(NAMES, "the log has several directories, and the driver opens one")
    records = [model_record(record) for record in log.records]
    reason = _not_derivable(records, found.layout) if all(map(is_text, log.records)) else "a topic is not UTF-8"
    if reason:
        unknown_numbers |= dict.fromkeys((4, 5, 17), reason)
    due_end, why = (records[-1].end_offset if records else log.begin), "in the valid part of the image"
    if truth is not None:
        held = {record.offset: record for record in log.records}
        due = [each for each in truth.due if each.offset >= log.begin]
        lost = [each for each in due if each.offset not in held or not each.is_record(held[each.offset])]
        due_end = max((each.offset + each.size_bytes for each in due if each not in lost), default=log.begin)
        why = "flushed" if truth.power_loss else "acknowledged before the process died"
        if lost:
            unknown_numbers.setdefault(2, f"the image itself lacks {counted(len(lost), 'record')} that had to be there")
    elif floor is not None and floor.offset > due_end:
        unknown_numbers.setdefault(2, "the image itself lacks records below its durable floor")
    derived = DerivedLedger(found.layout, () if reason else records)
    keys = [] if 5 in unknown_numbers or not found.settings.index else list(derived.keys)[:_KEYS_MAX]
    if not found.settings.index:
        unknown_numbers.setdefault(5, "the store has no index")
    files = {base: seen.content[name] for base, name in log.files.items()}
    ledger = ImageLedger(files, log.records, file_bytes=log.file_bytes)
    return Expectation(
        ledger, derived, records, log.begin, due_end, why, keys, unknown_numbers
    ), java_settings(found.config)  # fmt: skip


def _not_derivable(records: Iterable[ModelRecord], layout: Layout) -> str:
    """Return why the queues cannot be derived from the records; empty if they can."""
    last: dict[Queue, int] = {}
    for record in records:
        for queue, number in places(record, layout):
            if number not in (last.get(queue, number - 1) + 1, last.get(queue)):
                return f"queue {queue_text(queue)} has number {number} at {record.offset} after {last[queue]}"
            last[queue] = number
    return ""


# ---- answers ---------------------------------------------------------------------------------------------------------


class Asked:
    """Recoveries of one directory by a peer, which change it.

    They run while the caller does something else.

    Raises PeerUnavailable if the peer cannot run at all.
    """

    def __init__(
        self,
        process: Process,
        directory: str,
        settings: Mapping[str, Any],
        keys: Sequence[Key],
        *,
        mode: Mode = "light",
    ) -> None:
        self._process, self._keys = process, keys
        self._failed: PeerAnswers | None = None
        try:
            begin_recoveries(process, directory, settings, keys, mode=mode, count=_QUERY_MAX)
        except PeerCrashed as crash:
            self._failed = PeerAnswers(failed=(7, str(crash)))

    def answers(self) -> tuple[PeerAnswers, PeerAnswers | None]:
        """Return the answers after both recoveries; the second is None if the first one failed."""
        if self._failed is not None:
            return self._failed, None
        try:
            made = recoveries(self._process)
        except PeerTimeout as late:
            return PeerAnswers(failed=(16, str(late))), None
        except PeerCrashed as crash:
            return PeerAnswers(failed=(7, str(crash))), None
        except PeerFailed as error:
            return PeerAnswers(failed=(7, f"open: {error}")), None
        first = self._answers_of(made[0])
        return first, None if len(made) == 1 else first if made[1] is made[0] else self._answers_of(made[1])

    def _answers_of(self, made: Recovery) -> PeerAnswers:
        if made.failed:
            return PeerAnswers(failed=(7 if made.failed == "open" else 8, f"{made.failed}: {made.reason}"))
        if not made.loaded:
            return PeerAnswers(failed=(7, made.reason))
        if made.everything is None:
            return PeerAnswers(made.log, failed=(16, made.reason))
        queues = {(each[0].topic, each[0].queue_id): each for each in made.everything.queues}
        return PeerAnswers(made.log, queues, dict(zip(self._keys, made.everything.found, strict=True)))


# ---- rulings ---------------------------------------------------------------------------------------------------------


def rulings_on(
    expected: Expectation, first: PeerAnswers, second: PeerAnswers | None, directory: Path
) -> tuple[list[Ruling], int | None]:
    """Return a ruling on each number, and how many records the peer kept.

    `first` and `second` are the answers after two recoveries of the image in `directory`. Number 6 is unknown without
    `second`. The files are those after the first recovery, or after both.
    """
    rulings = {number: unknown(number, reason) for number, reason in _NOT_ASKED.items()}
    log = first.log
    if first.failed is not None:
        number, reason = first.failed
        why = f"the peer gave no further answers, which number {number} judges"
        rulings |= {each: unknown(each, why) for each in (1, 2, 4, 5, 6, 7, 16, 17) if each != number}
        rulings[number] = broken(number, f"the peer does not go on: {reason}")
    if log is not None:
        rulings[1] = _prefix(expected, log, directory)
        rulings[2] = _floor(expected, log)
        if first.failed is None or first.failed[0] != 7:
            rulings[7] = holds(7, "the peer opens")
    if log is not None and first.failed is None:
        rulings[4] = _queues(expected, first, log)
        rulings[5] = _keys(expected, first, log)
        rulings[6] = unknown(6, "no second recovery was tried") if second is None else _again(first, second)
        rulings[16] = _dispatched(log)
        rulings[17] = _bounds(expected, first, log)
    for number, reason in expected.unknown.items():
        if number in rulings and number not in (7, 16):
            rulings[number] = unknown(number, reason)
    kept = None if log is None else sum(record.end_offset <= log.end for record in expected.records)
    return [rulings[number] for number in sorted(rulings)], kept


def _prefix(expected: Expectation, log: LogBounds, directory: Path) -> Ruling:
    size = expected.ledger.file_bytes
    if log.end not in expected.ends:
        return broken(1, "the log ends where no valid record ends", offset=log.end,
                      expected=str(_last_end(expected)), found=str(log.end))  # fmt: skip
    for base in range(expected.begin // size * size, log.end, size):
        name = f"commitlog/{base:020d}"
        try:
            content = (directory / name).read_bytes()[: log.end - base]
        except OSError:
            return broken(1, f"the log file {name} is not there", file=name, offset=base)
        wanted = expected.ledger.expected(base, log.end)[: log.end - base]
        if content != wanted:
            at = next((n for n, pair in enumerate(zip(content, wanted, strict=False)) if pair[0] != pair[1]), 0)
            return broken(1, "the log differs from what was appended", file=name, offset=base + at)
    kept = sum(record.end_offset <= log.end for record in expected.records)
    return holds(1, f"{counted(kept, 'record')} up to {log.end}, byte for byte as appended")


def _last_end(expected: Expectation) -> int:
    return expected.records[-1].end_offset if expected.records else expected.begin


def _floor(expected: Expectation, log: LogBounds) -> Ruling:
    lost = [record for record in expected.records if log.end < record.end_offset <= expected.due_end]
    if lost:
        return broken(2, f"{counted(len(lost), 'record')} {expected.why_due} cut", offset=lost[0].offset,
                      expected=f"log end {expected.due_end}", found=f"log end {log.end}")  # fmt: skip
    return holds(2, f"every record {expected.why_due} is kept")


def _queues(expected: Expectation, answers: PeerAnswers, log: LogBounds) -> Ruling:
    for queue, memory, count in expected.derived.queues_at(log.end):
        _, messages, _ = answers.queues.get(queue, (None, (), ()))
        served = {each.place: (each.offset, each.size_bytes, each.record_sha256) for each in messages}
        wanted = {
            unit.queue_offset: (
                unit.record.offset,
                unit.record.size_bytes,
                _sha256(expected.ledger.stored(unit.record)),
            )
            for unit in memory.units[:count]
        }
        missing = [place for place in wanted if place not in served]
        wrong = [place for place, what in served.items() if wanted.get(place) != what]
        if missing or wrong:
            place = min(missing + wrong)
            sentence = (
                f"queue {queue_text(queue)}: {counted(len(missing), 'message')} of the log not served, "
                f"{counted(len(wrong), 'message')} served that the log does not have there"
            )
            return broken(4, sentence, expected=f"at {place}: {_place(wanted.get(place))}",
                          found=f"at {place}: {_place(served.get(place))}")  # fmt: skip
    known = {queue for queue, _, _ in expected.derived.queues_at(log.end)}
    for queue, (_, messages, _) in answers.queues.items():
        if queue not in known and messages:
            return broken(4, f"queue {queue_text(queue)} serves messages that no record of the log belongs to")
    total = sum(len(messages) for _, messages, _ in answers.queues.values())
    return holds(4, f"{counted(total, 'message')} in {counted(len(known), 'queue')}, each the record that it has to be")


def _place(what: tuple[int, int, str] | None) -> str:
    return "nothing" if what is None else f"record {what[0]}, {what[1]} bytes"


def _keys(expected: Expectation, answers: PeerAnswers, log: LogBounds) -> Ruling:
    missing = foreign = twice = 0
    first: Key | None = None
    for key, found in answers.found.items():
        wanted = {
            (record.offset, record.size_bytes, _sha256(expected.ledger.stored(record)))
            for record in expected.derived.records_with(key, log.end, log.begin)
        }
        got = set(found)
        lacks = min(len(wanted), _QUERY_MAX) - len(got & wanted)
        missing, foreign, twice = missing + lacks, foreign + len(got - wanted), twice + len(found) - len(got)
        if first is None and (lacks or got - wanted or len(found) > len(got)):
            first = key
    if first is not None:
        sentence = f"by key {missing} records are missing, {foreign} are of other keys, {twice} come twice"
        return broken(5, f"{sentence}; the first key is {first[1]!r} of {first[0]!r}")
    return holds(5, f"{counted(len(answers.found), 'key')} asked for, each with its records")


def _again(first: PeerAnswers, second: PeerAnswers) -> Ruling:
    if second.failed is not None:
        return broken(6, f"a second recovery fails: {second.failed[1]}")
    if first.log != second.log:
        return broken(6, "a second recovery has another log", expected=str(first.log), found=str(second.log))
    for queue in sorted(first.queues.keys() | second.queues.keys()):
        if first.queues.get(queue) != second.queues.get(queue):
            return broken(6, f"a second recovery serves queue {queue_text(queue)} differently")
    for key, found in first.found.items():
        if sorted(found) != sorted(second.found[key]):
            return broken(6, "a second recovery answers a key differently", expected=f"{len(found)} records",
                          found=f"{len(second.found[key])} records")  # fmt: skip
    return holds(6, "a second recovery gives the same answers")


def _dispatched(log: LogBounds) -> Ruling:
    if log.behind:
        return broken(16, "the peer opened with part of its log not dispatched", expected="0", found=str(log.behind))
    return holds(16, "the peer opened with nothing left to dispatch")


def _bounds(expected: Expectation, answers: PeerAnswers, log: LogBounds) -> Ruling:
    wanted = {
        queue: (memory.units[0].queue_offset, memory.units[count - 1].queue_offset + 1)
        for queue, memory, count in expected.derived.queues_at(log.end)
    }
    for queue in sorted(wanted.keys() | answers.queues.keys()):
        said = answers.queues.get(queue)
        bounds = (0, 0) if said is None else (said[0].begin, said[0].end)
        if queue not in wanted and expected.begin:
            continue  # all its records are removed, and the log does not show its next number
        if bounds != wanted.get(queue, (0, 0)):
            return broken(17, f"the bounds of queue {queue_text(queue)} are wrong",
                          expected=bounds_text(wanted.get(queue, (0, 0))), found=bounds_text(bounds))  # fmt: skip
    return holds(17, f"bounds of {counted(len(wanted), 'queue')} are right")


@lru_cache(maxsize=4096)
def _sha256(stored: bytes) -> str:
    return sha256(stored).hexdigest()


# ---- one image -------------------------------------------------------------------------------------------------------


def judge_with_peer(
    process: Process,
    seen: SeenImage,
    *,
    override: SettingsOverride | None = None,
    truth: Truth | None = None,
    mode: Mode = "light",
) -> PeerJudgement:
    """Let a peer recover a copy of an image twice, and judge it.

    Raises InspectError, PeerUnavailable, OSError.
    """
    expected, settings = expectation_of(seen, look_at(seen, override or SettingsOverride()), truth)
    name = f"rocketmq:{process.release.version}"
    if 7 in expected.unknown:
        return PeerJudgement(name, tuple(unknown(number, expected.unknown[number]) for number in NAMES), None)
    with scratch_directory("tornpage-peer-image-", below=memory_directory()) as work:
        copy = Path(work) / "store"
        write_image(seen.image, copy)
        first, second = Asked(process, str(copy), settings, expected.keys, mode=mode).answers()
        rulings, kept = rulings_on(expected, first, second, copy)
    return PeerJudgement(name, tuple(rulings), kept)
