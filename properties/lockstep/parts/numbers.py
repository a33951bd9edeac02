"""Decide about wrong queue offsets alone, against the model (contracts 17 and 18).

A log is a list of claims here: records of a few queues, of which some name a second queue in their properties. Several
of them claim a wrong number or a wrong queue. The queue files have the units of the right claims, and are whole, lost,
short, shifted, or have exchanged or foreign units. The decision is taken from runs of the claims and applied to other
runs of them, as dispatch does, and the queues are reconciled with the result. Their units, minima and findings have to
be those of one legal result of `model.damage.numbering`.

The operation `harm_numbers` judges the same on copies of whole stores, which cost a hundred times as much. So each copy
has few wrong claims, and none has the greatest numbers, expired units and light queues at once.
"""

import random
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tornpage.impl.dispatch.queue_numbers import QueueNumbers, Rulings
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.model.damage.numbering import Entry, Evidence, Numbering, numberings
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried

__all__ = ["check"]

_UNIT = struct.Struct(">qiq")
_PREFILL = (0, 0x7FFFFFFF)
_NUMBER_MAX = (1 << 62) // 20
_ROOT = "/part"
_PROGRAMS = 16
_LOG_BEGIN = 1000
_LIGHT = ("%LMQ%l", 0)
_QUEUES = (("T", 0), ("T", 1), ("U", 0))
_HARMS = ("number", "shift", "queue", "other", "from_here", "again")
_UNITS = ("whole", "whole", "lost", "short", "shifted", "exchanged", "foreign")
_NOWHERE = ("repeated_queue_offset", "impossible_queue_offset")

_Queue = tuple[str, int]
_Units = dict[int, tuple[int, int] | None]
"""Offset and size of each unit of a queue by number, None for pre-fill."""


def check(rng: random.Random) -> None:
    """Decide about several logs. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Log(rng).judge()


class _Log:
    """One log of claims, and the files of its queues.

    Each element of `_records` has the claims of one record, that of its own queue first.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._file_units = rng.choice((2, 3, 4, 8))
        self._begin = rng.choice((0, 0, _LOG_BEGIN))
        self._records: list[list[Entry]] = []
        self._units: dict[_Queue, _Units] = defaultdict(dict)
        self._put_records()
        for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
            self._harm_claim()
        for queue in sorted(self._units):
            self._harm_units(queue, rng.choice(_UNITS))

    # ---- the log and its queues ----------------------------------------------------------------------------------

    def _put_records(self) -> None:
        """Write right claims and their units; those before the begin of the log have expired."""
        rng, count = self._rng, self._rng.choice((1, 2, 5, 9, 14))
        queues, next_number = _QUEUES[: rng.choice((1, 2, 2, 3))], dict[_Queue, int]()
        offset = self._begin and self._begin - 40 * rng.randrange(1, 6)
        while len(self._records) < count:
            queue, size = rng.choice(queues), rng.choice((40, 40, 60))
            if self._begin and offset < self._begin < offset + size:
                size = self._begin - offset
            claims = [Entry(offset, size, queue, 0, is_named=rng.random() < 0.1)]
            if rng.random() < 0.2:
                claims.append(Entry(offset, size, _LIGHT, 0, is_named=True))
            for at, entry in enumerate(claims):
                number = next_number.setdefault(entry.queue, rng.choice((0, 0, 0, 5)) if self._begin else 0)
                claims[at] = replace(entry, number=number)
                self._units[entry.queue][number] = (offset, size)
                next_number[entry.queue] = number + 1
            if offset >= self._begin:
                self._records.append(claims)
            offset += size + rng.choice((0, 0, 8))

    def _harm_claim(self) -> None:
        """Change one claim, or all later ones of its queue."""
        rng, records, kind = self._rng, self._records, self._rng.choice(_HARMS)
        at = rng.randrange(len(records))
        place = rng.randrange(len(records[at]))
        entry, other = records[at][place], rng.choice(rng.choice(records))
        match kind:
            case "number":
                numbers = (0, 1, 2, 5, 9, -1, -(1 << 63), _NUMBER_MAX - 1, _NUMBER_MAX, (1 << 63) - 1)
                entry = replace(entry, number=rng.choice(numbers))
            case "shift":
                steps = (-2, -1, 1, 2, self._file_units, self._file_units + 1)
                entry = replace(entry, number=entry.number + rng.choice(steps))
            case "queue" if not place:
                entry = replace(entry, queue=rng.choice((*_QUEUES, ("V", 7))))
            case "other" if not place:
                entry = replace(entry, queue=other.queue, number=other.number)
            case "from_here" | "again":
                by = rng.choice((-1, 1, self._file_units, 40)) if kind == "from_here" else -entry.number
                for later in records[at + 1 :]:
                    for index, each in enumerate(later):
                        if each.queue == entry.queue:
                            later[index] = replace(each, number=each.number + by)
                entry = replace(entry, number=entry.number + by)
        if entry.queue not in [each.queue for index, each in enumerate(records[at]) if index != place]:
            records[at][place] = entry

    def _harm_units(self, queue: _Queue, kind: str) -> None:
        """Change the files of a queue."""
        rng, units = self._rng, self._units[queue]
        first, end = min(units), max(units) + 1
        match kind:
            case "lost":
                units.clear()
            case "short":
                for number in range(end - rng.randrange(1, 4), end):
                    units.pop(number, None)
            case "shifted":
                moved: _Units = {number + 1: unit for number, unit in units.items()}
                units.clear()
                units.update({first: None, **moved})
            case "exchanged" if end - first > 1:
                at = rng.randrange(first, end - 1)
                units[at], units[at + 1] = units[at + 1], units[at]
            case "foreign":
                entry = rng.choice(rng.choice(self._records))
                units[rng.randrange(first, end + 1)] = rng.choice((None, (entry.offset, entry.size_bytes)))
        while units and units[max(units)] is None:
            del units[max(units)]  # no queue ends with pre-fill

    def _image(self) -> Image:
        """Return the files of the queues. Numbers before the first unit of a file have pre-fill."""
        directories, files = {"/", _ROOT}, dict[str, bytes]()
        for (topic, queue_id), units in self._units.items():
            if not units:
                continue
            base = min(units) // self._file_units * self._file_units
            units.update(dict.fromkeys(range(base, min(units))))
            data = b"".join(_UNIT.pack(*(units[number] or _PREFILL), 0) for number in range(base, max(units) + 1))
            directory, file_bytes = f"{_ROOT}/consumequeue/{topic}/{queue_id}", 20 * self._file_units
            directories |= {directory, directory.rpartition("/")[0], f"{_ROOT}/consumequeue"}
            for at in range(0, len(data), file_bytes):
                piece = data[at : at + file_bytes].ljust(file_bytes, b"\0")
                files[f"{directory}/{20 * base + at:020d}"] = piece
        return Image(frozenset(directories), files)

    # ---- the decision --------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Decide, reconcile the queues, and compare them. Raises GuaranteeBroken."""
        disk = PartDisk(self._image())
        queues = ConsumeQueues(
            disk, _ROOT, file_bytes=20 * self._file_units, writable=True, clean_exit=self._rng.random() < 0.5
        )
        rulings = tried("the decision about queue offsets", lambda: self._reconciled(queues))
        entries = [entry for claims in self._records for entry in claims]
        legal = numberings(Evidence(entries, self._units, self._file_units, self._begin))
        told = {(finding.code, finding.offset) for finding in (*rulings.findings, *queues.findings)}
        differences = [self._difference(numbering, queues, told) for numbering in legal]
        queues.close()
        if (
            legal
            and all(differences)
            and not any(self._is_twice(entry, queue) for entry, queue in legal[0].moved.items())
        ):
            claims = [(each.offset, each.queue, each.number) for each in entries]
            raise GuaranteeBroken(17, f"of claims {claims}, {differences[0]}", str(legal[0]), str(sorted(told)))

    def _is_twice(self, moved: Entry, queue: _Queue) -> bool:
        """Return whether a record moves to a queue that it names.

        The rules do not say which of its two numbers it then has first.
        """
        return any(
            (entry.offset, entry.queue) == (moved.offset, queue) and entry.queue != moved.queue
            for claims in self._records
            for entry in claims
        )

    def _reconciled(self, queues: ConsumeQueues) -> Rulings:
        queues.load()
        numbers = QueueNumbers(queues, log_min=self._begin)
        for runs in self._batches():
            numbers.take(runs)
        rulings = numbers.rulings()
        for runs in self._batches():
            for run in rulings.applied(runs):
                queues.of(run.key).reconcile(run)
        queues.end_reconcile(self._begin)
        return rulings

    def _batches(self) -> Iterator[list[QueueRun]]:
        """Yield the claims in batches of runs, divided in another way each time.

        Records of one queue are one run if their numbers go on and all of them name the queue, or none does.
        """
        runs: list[tuple[list[Entry], _Queue]] = []
        joins = self._rng.random() < 0.6
        for claims in self._records:
            for entry in claims:
                last = next((run for run, queue in reversed(runs) if queue == entry.queue), None)
                goes_on = last is not None and (last[-1].number + 1, last[-1].is_named) == (
                    entry.number,
                    entry.is_named,
                )
                if joins and goes_on and last is not None:
                    last.append(entry)
                else:
                    runs.append(([entry], entry.queue))
            if self._rng.random() < 0.15:
                yield [_run_of(run) for run, _ in runs]
                runs = []
        yield [_run_of(run) for run, _ in runs]

    # ---- comparing -----------------------------------------------------------------------------------------------

    def _difference(self, numbering: Numbering, queues: ConsumeQueues, told: set[tuple[str, int]]) -> str:
        """Return how the queues differ from a legal result, or nothing."""
        for key in sorted({*numbering.queues, *((queue.topic, queue.queue_id) for queue in queues.all())}):
            there, queue = numbering.queues.get(key, {}), queues.find(*key)
            if not there:
                if queue is not None and queue.min_offset < queue.max_offset:
                    return f"the queue {key} has messages"
                continue
            if queue is None:
                return f"the queue {key} is missing"
            bounds = numbering.first[key], max(there) + 1
            if (queue.min_offset, queue.max_offset) != bounds:
                return f"the bounds of {key} are {queue.min_offset, queue.max_offset} and not {bounds}"
            for number in range(min(there), max(there) + 1):
                entry, unit = there.get(number), queue.unit(number)
                if (entry and entry.offset, entry and entry.size_bytes) != (unit and unit.offset, unit and unit.size):
                    return f"the number {number} of {key} has the unit {unit} and not {entry}"
        return self._difference_told(numbering, told)

    def _difference_told(self, numbering: Numbering, told: set[tuple[str, int]]) -> str:
        """Return how the findings differ from those of a legal result, or nothing."""
        moved = {entry.offset for entry in numbering.moved}
        named = {offset for code, offset in told if code == "queue_offset_outvoted"}
        if named != moved:
            return f"the records at {sorted(named)} have another number, and not those at {sorted(moved)}"
        nowhere = {offset for code, offset in told if code in _NOWHERE}
        for entry in numbering.left_out:
            if entry.offset not in nowhere:
                return f"no finding names the record at {entry.offset}, which is in no queue"
        gaps = {offset for code, offset in told if code == "queue_gap"}
        for offset in _after_gaps(numbering.queues):
            if offset not in gaps:
                return f"no finding names the gap before the record at {offset}"
        return ""


def _run_of(entries: Sequence[Entry]) -> QueueRun:
    first, last = entries[0], entries[-1]
    units = b"".join(_UNIT.pack(entry.offset, entry.size_bytes, 0) for entry in entries)
    key = first.queue[0].encode(), first.queue[1]
    return QueueRun(key, first.number, units, last.offset + last.size_bytes, (), first.is_named)


def _after_gaps(queues: Mapping[_Queue, Mapping[int, Entry]]) -> Iterator[int]:
    """Yield the offset of each record before whose number a queue has a gap."""
    for there in queues.values():
        for before, after in pairwise(sorted(there)):
            if after > before + 1:
                yield there[after].offset
