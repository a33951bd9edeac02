"""Run programs of a consume queue against a plain list of units (contracts 4, 10, 17).

A queue is a list of units by number. Whatever was done to it, its files are these units and then zeros. The reference
has no files, mappings or watermarks:

1. A run is appended where its number says. Units that are there already are left out. A gap of at most one file of
   units becomes pre-fill, and a run past a larger gap is left out. A queue without a file begins at the first unit of
   the file that has the number, with pre-fill before it. A queue of expired units only restarts if a run leaves a
   gap.
2. The minimum is the first number whose message lies at or past the begin of the log.
3. Clean-up drops the first files while each of their messages lies before the begin of the log. It stops before a
   file whose successor does not begin with a unit of a durable record.
4. After an open the units from the first one of the log on are those of the log. Units before them stay if the files
   reach from them to the first unit of the log, with a possible unit for each number.
5. A queue of which the log has no unit keeps its units up to the last pre-fill or expired one. Its minimum is its
   end.
6. A unit with a draft has the address of an extension unit with the values of the draft, or the tags code of the
   draft if no extension file has room for it. Extension units follow each other, and none reaches into the last four
   bytes of a file.
7. An operation that failed can be repeated, with the result of one that did not fail.
8. After a flush of everything the disk has all that a process sees.
"""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tornpage.impl.message.dispatching import ExtDraft, QueueRun
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import (
    PartDisk,
    are_files,
    carried_out,
    crashed,
    reports_a_break,
    tried,
)

__all__ = ["check"]

_UNIT = struct.Struct(">qiq")
_EXT = struct.Struct(">hqqh")
_PREFILL = (0, 0x7FFFFFFF, 0)
_NUMBER_MAX = (1 << 62) // 20
_ROOT = "/part"
_BASE = -(1 << 63)
_PROGRAMS = 6
_OPERATIONS = 14
_RECORD_BYTES = 100
_EXT_BYTES = 128
"""The size of an extension file; a draft with the longest bit map has no room in it."""
_BIT_MAPS = (b"", b"\x05", b"\x01\x02\x03\x04", bytes(range(60)), b"\xff" * 104, b"\x01" * 105)
_STRAYS = {"consumequeue/stray": b"x", "consumequeue/T/05": b"", "consumequeue/T/1/note": b"n"}
_ODD_FOLDERS = ("00", "-0", "+1", "x", "12345678901")
"""Names of folders that are no queue ids."""

_Unit = tuple[int, int, int]


@dataclass
class _Queue:
    """A queue as a list of units, `first` being the number of the first one.

    `log` has the units of the log by number, `drafts` what the extension has for them. `ext_end` is the position after
    the last extension unit.
    """

    per_file: int
    first: int = 0
    units: list[_Unit] = field(default_factory=list)
    has_file: bool = False
    min: int = 0
    log: dict[int, _Unit] = field(default_factory=dict)
    drafts: dict[int, ExtDraft] = field(default_factory=dict)
    ext_end: int = 0
    noted: set[tuple[str, int]] = field(default_factory=set)

    @property
    def end(self) -> int:
        """The number after the last unit."""
        return self.first + len(self.units)

    @property
    def last_end(self) -> int:
        """The physical offset after the last record, -1 without one."""
        return next((offset + size for offset, size, _ in reversed(self.units) if (offset, size) != _PREFILL[:2]), -1)

    def unit(self, number: int) -> _Unit | None:
        """Return a unit, pre-fill too; None outside the files."""
        return self.units[number - self.first] if self.first <= number < self.end else None

    def begin(self, number: int) -> None:
        """Begin the file that has a number."""
        self.first, self.has_file = number // self.per_file * self.per_file, True
        self.units = [_PREFILL] * (number - self.first)
        self.min = number

    def clear(self) -> None:
        """Forget everything but the log."""
        self.first, self.units, self.has_file, self.min = 0, [], False, 0
        self.drafts, self.ext_end = {}, 0

    def files(self) -> dict[str, bytes]:
        """Return the content of the files by name."""
        found: dict[str, bytes] = {}
        for at in range(0, max(len(self.units), int(self.has_file)), self.per_file):
            data = b"".join(_UNIT.pack(*unit) for unit in self.units[at : at + self.per_file])
            found[f"{(self.first + at) * 20:020d}"] = data.ljust(20 * self.per_file, b"\0")
        return found


def check(rng: random.Random) -> None:
    """Run programs of a store with one queue. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()
    _impossible_names(rng)


class _Program:
    """One program of a queue of topic T, with or without extension."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._disk = PartDisk()
        self._has_ext = rng.random() < 0.4
        self._queue = _Queue(rng.choice((1, 3, 4, 5)))
        self._key = (b"T", rng.choice((0, 1, 7)))
        self._log_min = 0
        self._log_end = rng.choice((0, _RECORD_BYTES))
        self._queues = self._opened(clean_exit=True)
        tried("load", self._queues.load)
        tried("end_reconcile", lambda: self._queues.end_reconcile(0))

    def _opened(self, *, clean_exit: bool) -> ConsumeQueues:
        return ConsumeQueues(
            self._disk, _ROOT, file_bytes=20 * self._queue.per_file - self._rng.randrange(20), writable=True,
            clean_exit=clean_exit, ext=self._has_ext, ext_file_bytes=_EXT_BYTES, bit_maps=self._has_ext,
        )  # fmt: skip

    def run(self) -> None:
        """Run the operations of one program, and compare after each."""
        operations: tuple[tuple[int, Callable[[], None]], ...] = (
            (8, self._append), (2, self._clean), (2, self._flush), (1, self._remove), (3, self._reopen),
        )  # fmt: skip
        weights, choices = zip(*operations, strict=True)
        for _ in range(_OPERATIONS):
            self._rng.choices(choices, weights)[0]()
            self._compare()
            if self._queue.end > _NUMBER_MAX:
                break  # an open takes no file that begins later
        self._flush()
        self._rewrite()
        self._invariants()
        tried("close", self._queues.close)
        is_value("the files that a closed queue still holds", (0, 0), self._disk.held)

    # ---- operations ----------------------------------------------------------------------------------------------

    def _append(self) -> None:
        """Append a run, usually the next one."""
        rng, queue = self._rng, self._queue
        steps = (0, 0, 0, 0, 0, -1, -3, 1, 2, queue.per_file - 1, queue.per_file, queue.per_file + 1)
        number = queue.end + rng.choice(steps)
        if not queue.has_file:
            number = rng.choice((0, 0, 1, 4, 23, -1, _NUMBER_MAX, _NUMBER_MAX + 1, -(1 << 63), (1 << 63) - 9))
        number = number if not queue.has_file else max(queue.min, number)
        run = self._run_from(number, rng.choice((1, 1, 2, 3, 9)))
        self._repeated("append", lambda: self._queues.of(self._key).append(run))
        self._append_to_list(run)

    def _repeated(self, what: str, do: Callable[[], None]) -> None:
        """Call a queue until no call fails.

        With an extension none fails, since a repeated append leaves unused extension units.
        """
        tried(what, do) if self._has_ext else carried_out(self._disk, self._rng, what, do)

    def _run_from(self, number: int, count: int) -> QueueRun:
        """Return a run: units of the queue again, and new ones after its end."""
        rng, units, drafts = self._rng, [], []
        for at in range(number, number + count):
            known = self._queue.log.get(at) if at < self._queue.end else None
            if known is None:
                size = rng.choice((40, _RECORD_BYTES))
                known = (self._log_end, size, rng.choice((0, 7, -5, (1 << 40))))
                self._log_end += size + rng.choice((0, 0, 300))
            units.append(known)
            draft = self._queue.drafts.get(at) if at < self._queue.end else None
            drafts.append(draft or ExtDraft(known[2], rng.randrange(1 << 41), rng.choice(_BIT_MAPS)))
        ext = drafts if self._has_ext else []
        data = b"".join(_UNIT.pack(*unit) for unit in units)
        return QueueRun(self._key, number, data, units[-1][0] + units[-1][1], ext)

    def _append_to_list(self, run: QueueRun) -> None:
        queue, number = self._queue, run.queue_offset
        units = list(_UNIT.iter_unpack(run.units))
        if queue.has_file and queue.min == queue.end < number:
            queue.clear()
        if not queue.has_file:
            if not 0 <= number <= _NUMBER_MAX:
                queue.noted.add(("impossible_queue_offset", units[0][0]))
                return
            queue.begin(number)
        if number > queue.end:
            queue.noted.add(("queue_gap", units[0][0]))
            if number - queue.end > queue.per_file:
                return
            queue.units += [_PREFILL] * (number - queue.end)
        known = queue.end - number
        last_end = queue.last_end
        for unit in units[:known]:
            if unit[0] + unit[1] > last_end:
                queue.noted.add(("repeated_queue_offset", unit[0]))
        for at, unit in enumerate(units[known:], known):
            queue.log[number + at] = unit
            if run.ext:
                unit = self._extended(unit, number + at, run.ext[at])
            queue.units.append(unit)

    def _extended(self, unit: _Unit, number: int, draft: ExtDraft) -> _Unit:
        """Store a draft in the extension, and return the unit with its address."""
        queue, size = self._queue, 20 + len(draft.bit_map)
        queue.drafts[number] = draft
        if size + 4 > _EXT_BYTES:
            return unit
        used = queue.ext_end % _EXT_BYTES
        if used and used + size + 4 > _EXT_BYTES:
            queue.ext_end += _EXT_BYTES - used
        address = queue.ext_end + _BASE
        queue.ext_end += size
        return (unit[0], unit[1], address)

    def _clean(self) -> None:
        """Move the begin of the log, and drop what has expired."""
        rng, queue = self._rng, self._queue
        places = [place for offset, size, _ in queue.log.values() for place in (offset, offset + size)] + [
            self._log_end
        ]
        self._log_min = max(self._log_min, rng.choice(places))
        durable_end = rng.choice((self._log_end, self._log_end, rng.choice(places) + rng.choice((0, 40, 100, 101))))
        found = self._queues.stored(self._key)
        if found is None:
            return
        carried_out(self._disk, rng, "correct_min_offset", lambda: found.correct_min_offset(self._log_min))
        queue.min = self._first_from(self._log_min)
        wanted = self._dropped(durable_end)
        gone, waits = [0], [False]

        def drop() -> None:
            files = len(found.mapped)
            try:
                _, waits[0] = found.drop_expired(self._log_min, durable_end)
            finally:
                gone[0] += files - len(found.mapped)

        carried_out(self._disk, rng, "drop_expired", drop)
        is_value("the files that a clean-up drops, and whether others wait", wanted, (gone[0], waits[0]))
        queue.first += wanted[0] * queue.per_file
        del queue.units[: wanted[0] * queue.per_file]

    def _first_from(self, log_min: int) -> int:
        """Return the first number, at or past the minimum, of a message in the log."""
        queue = self._queue
        for number in range(queue.min, queue.end):
            unit = queue.unit(number)
            assert unit is not None
            if unit[:2] != _PREFILL[:2] and unit[0] >= log_min:
                return number
        return queue.end

    def _dropped(self, durable_end: int) -> tuple[int, bool]:
        """Return how many files a clean-up drops, and whether others wait for a flush."""
        queue, dropped = self._queue, 0
        for end in range(queue.per_file, len(queue.units) + queue.per_file, queue.per_file):
            if end >= len(queue.units) or not all(map(self._is_expired, queue.units[end - queue.per_file : end])):
                break
            offset, size, _ = queue.units[end]
            if (offset, size) == _PREFILL[:2] or offset + size > durable_end:
                return dropped, True
            dropped += 1
        return dropped, False

    def _flush(self) -> None:
        carried_out(self._disk, self._rng, "flush_all", self._queues.flush_all, only_names=True)
        durable = self._disk.durable.files
        seen = {path: data for path, data in self._disk.content.items() if ".unfinished/" not in path}
        are_files("a flushed queue", seen, {path: data for path, data in durable.items() if ".unfinished/" not in path})
        found = self._queues.stored(self._key)
        if found is not None:
            is_answered("the position of a second flush", 20 * self._queue.end, found.flush)

    def _remove(self) -> None:
        """Remove the queue durably."""
        found = self._queues.stored(self._key)
        if found is None:
            return
        try:
            self._disk.failing_in = self._rng.choice((0, 0, 1, 2, 3, 4))
            tried("remove", lambda: self._queues.remove(found))
        except OSError:
            self._disk.failing_in = 0
            is_value("a queue whose removal failed", None, self._queues.stored(self._key))
            if self._rng.random() < 0.5:  # otherwise the next queue of the key removes what is left
                carried_out(self._disk, self._rng, "remove_leftovers", self._queues.remove_leftovers)
            else:
                carried_out(self._disk, self._rng, "of", lambda: self._queues.of(self._key))
        self._disk.failing_in = 0
        is_value("the files of a removed queue", {}, self._found_files())
        left = [path for path in self._disk.durable.files if path.startswith(f"{_ROOT}/consumequeue/T/")]
        is_value("the durable files of a removed queue", [], left)
        self._queue.clear()
        self._queue.log.clear()
        self._queue.noted.clear()

    def _rewrite(self) -> None:
        """Rewrite the units from a number on: these bytes are written, and no others."""
        queue, found = self._queue, self._queues.stored(self._key)
        if found is None or not queue.has_file:
            return
        number, size = self._rng.randrange(queue.first, queue.end + 2), 20 * queue.per_file
        expected = []
        for base in range(20 * queue.first, 20 * queue.end, size):
            start, end = max(20 * number, base), min(20 * queue.end, base + size)
            if start < end:
                expected.append((start, end - start))
        self._disk.written.clear()
        tried("rewrite_from", lambda: found.rewrite_from(number))
        written = [(int(path[-20:]) + start, count) for path, start, count in self._disk.written]
        is_value(f"the bytes rewritten from number {number} on", expected, written)
        is_value("the files of a rewritten queue", queue.files(), self._found_files())

    def _invariants(self) -> None:
        """Break one watermark: the invariants have to report it."""
        found = self._queues.stored(self._key)
        files = [] if found is None else [*found.mapped, *([] if found.ext is None else found.ext._units.mapped)]
        if not files:
            return
        file = self._rng.choice(files)
        flushed, file.flushed_position = file.flushed_position, file.written_position + 1
        reports_a_break("the check of a broken queue", self._queues.check)
        file.flushed_position = flushed

    # ---- opening -------------------------------------------------------------------------------------------------

    def _reopen(self) -> None:
        """Close, harm the files, open, and compare with the log."""
        rng = self._rng
        carried_out(self._disk, rng, "flush_all", self._queues.flush_all, only_names=True)
        tried("close", self._queues.close)
        if rng.random() < 0.3:  # the begin of the log has moved since the last clean-up of the queue
            places = [offset for offset, _, _ in self._queue.log.values()]
            self._log_min = max(self._log_min, rng.choice((self._log_end, *places)))
        harm = self._harm() if not self._has_ext else {}
        clean_exit = rng.random() < 0.5
        image = self._disk.durable
        stored = {path: data for path, data in {**image.files, **harm}.items() if data is not None}
        strays = {f"{_ROOT}/{name}": data for name, data in _STRAYS.items() if rng.random() < 0.3}
        topic = f"{_ROOT}/consumequeue/T"
        odd = {f"{topic}/{name}" for name in _ODD_FOLDERS if rng.random() < 0.1}
        directories = image.directories | {f"{_ROOT}/consumequeue", topic} | odd
        for name in list(strays):
            if name.rpartition("/")[0] not in directories:
                del strays[name]
        self._disk = crashed(type(image)(directories, stored), strays)
        wanted = self._after_open(self._found_files(), clean_exit=clean_exit)
        runs = list(self._runs_of_log())
        self._queues = self._loaded(runs, clean_exit=clean_exit)
        codes = [finding.code for finding in self._queues.findings if finding.code == "stray_file"]
        folders = sum(f"{topic}/{name}" in directories for name in _ODD_FOLDERS)
        is_value("the findings about stray files", ["stray_file"] * (len(strays) + folders), codes)
        for path in strays:
            is_value(f"the stray file {path}", strays[path], self._disk.content.get(path))
            self._disk.unlink(path)
            self._disk.sync_directory(path.rpartition("/")[0])
        self._queue = wanted

    def _loaded(self, runs: list[QueueRun], *, clean_exit: bool) -> ConsumeQueues:
        """Open until no call fails."""
        made, erased, failed = list[ConsumeQueues](), list[bool](), self._disk.failed
        before = self._disk.content

        def load() -> None:
            is_first = not made
            while made:
                made.pop().close()
            made.append(self._opened(clean_exit=clean_exit and is_first))
            made[0].load()
            for run in runs:
                made[0].of(self._key).reconcile(run)
            erased.append(made[0].end_reconcile(self._log_min))

        self._repeated("an open", load)
        is_kept = before == self._disk.content and (clean_exit or not self._has_ext)
        if self._disk.failed == failed:
            self._findings_of_files(made[0], before)
            self._is_told(made[0], before, is_erased=erased[-1])
        if self._disk.failed == failed and is_kept:
            codes = [finding.code for finding in made[0].findings if finding.code == "queue_rebuilt"]
            is_value("whether a queue that stays as it is was rebuilt", (False, []), (erased[-1], codes))
        return made[0]

    def _findings_of_files(self, queues: ConsumeQueues, before: dict[str, bytes]) -> None:
        """Compare the findings about files that a queue cannot use.

        Each file of another size has one unless it is empty, and each file before the last gap.
        """
        size, expected = 20 * self._queue.per_file, set[tuple[str, int]]()
        sizes = {int(path[-20:]): len(before[path]) for path in self._paths(before)}
        expected |= {("queue_file_size", base) for base, count in sizes.items() if count not in (0, size)}
        whole = sorted((base for base, count in sizes.items() if count == size), reverse=True)
        newest = sum(base == whole[0] - size * at for at, base in enumerate(whole))
        expected |= {("queue_file_alone", base) for base in whole[newest:]}
        codes = "queue_file_size", "queue_file_alone"
        noted = {(each.code, each.offset) for each in queues.findings if each.code in codes}
        is_value("the findings about files of a queue", sorted(expected), sorted(noted))

    def _paths(self, files: dict[str, bytes]) -> list[str]:
        """Return the paths of the queue's files."""
        directory = f"{_ROOT}/consumequeue/T/{self._key[1]}/"
        return [path for path in files if path.startswith(directory) and len(path) == len(directory) + 20]

    def _is_told(self, queues: ConsumeQueues, before: dict[str, bytes], *, is_erased: bool) -> None:
        """Judge whether an open says that it has erased units, and from which number on.

        Files before a gap may go without a finding, since only the log tells what they are.
        """
        after, size = self._disk.content, 20 * self._queue.per_file
        paths = [path for path in sorted(self._paths(before)) if len(before[path]) == size]
        bases = [int(path[-20:]) for path in paths]
        if bases != [bases[0] + size * at for at in range(len(bases))]:
            return
        erased = [
            (base + at) // 20
            for base, path in zip(bases, paths, strict=True)
            for at in range(0, size, 20)
            if any(unit := before[path][at : at + 20]) and after.get(path, b"")[at : at + 20] != unit
        ]
        if erased:
            told = [each.offset for each in queues.findings if each.code == "queue_rebuilt"]
            is_value("whether an open that erases units says so", True, is_erased and bool(told))
            is_value("whether the rebuilt units begin where units were erased", True, told[0] <= 20 * erased[0])

    def _runs_of_log(self) -> Iterator[QueueRun]:
        """Yield the units of the log in runs, as dispatch does."""
        queue, rng, run = self._queue, self._rng, list[int]()
        there = [number for number in sorted(queue.log) if queue.log[number][0] >= self._log_min]
        for number, following in pairwise((*there, -2)):
            run.append(number)
            if following != number + 1 or rng.random() < 0.3:
                units = [queue.log[each] for each in run]
                ext = [queue.drafts[each] for each in run] if self._has_ext else []
                data = b"".join(_UNIT.pack(*unit) for unit in units)
                yield QueueRun(self._key, run[0], data, units[-1][0] + units[-1][1], ext)
                run = []

    def _harm(self) -> dict[str, bytes | None]:
        """Return changed files.

        An end or files are lost, units are changed, or units and torn bytes lie past the end. None is a lost file.
        """
        rng, queue, files = self._rng, self._queue, self._found_files()
        kinds = ("none", "none", "end", "last", "first", "size", "unit", "past", "torn", "gaps", "gaps")
        names, kind = sorted(files), rng.choice(kinds)
        directory = f"{_ROOT}/consumequeue/T/{self._key[1]}"
        if not names:
            return {}
        data = bytearray(files[names[-1]])
        match kind:
            case "end" | "last":
                data[20 * rng.randrange(queue.per_file) if kind == "end" else 0 :] = b""
            case "first":
                return {f"{directory}/{names[0]}": b""}
            case "size":
                return {f"{directory}/{rng.choice(names)}": bytes(20 * queue.per_file - rng.choice((1, -1)))}
            case "unit":
                name, at = rng.choice(names), 20 * rng.randrange(queue.per_file) + 19
                data = bytearray(files[name])
                if any(data[at - 19 : at + 1]) and data[at - 19 : at + 1] != _UNIT.pack(*_PREFILL):
                    data[at] ^= 1
                return {f"{directory}/{name}": bytes(data)}
            case "gaps":  # files in the middle are lost, and the files after a gap may be without data
                lost = rng.sample(names[1:-1], min(len(names[1:-1]), rng.choice((1, 2, 2, 3))))
                after = [name for name in names if lost and name > min(lost)]
                empty = after[-rng.choice((1, 2, 4)) :] if rng.random() < 0.5 else []
                changed: dict[str, bytes | None] = dict.fromkeys(empty, bytes(20 * queue.per_file))
                changed.update(dict.fromkeys(lost))
                return {f"{directory}/{name}": content for name, content in changed.items()}
            case "torn":  # bytes that are no unit follow the last one
                used = len(queue.units) % queue.per_file
                if used:
                    data[20 * used : 20 * used + 20] = _UNIT.pack(self._log_end, rng.choice((0, -1)), 7)
            case "past":
                name = f"{int(names[-1]) + 20 * queue.per_file:020d}"
                return {f"{directory}/{name}": _UNIT.pack(self._log_end + 5, 40, 1).ljust(20 * queue.per_file, b"\0")}
        return {f"{directory}/{names[-1]}": bytes(data).ljust(20 * queue.per_file, b"\0")}

    def _after_open(self, files: dict[str, bytes], *, clean_exit: bool) -> _Queue:
        """Return the queue that an open leaves, from the files that it finds."""
        queue, size = self._queue, 20 * self._queue.per_file
        there = [number for number in sorted(queue.log) if queue.log[number][0] >= self._log_min]
        bases = sorted(int(name) for name, data in files.items() if len(data) == size)
        spans: list[list[int]] = []
        for base in bases:
            if spans and spans[-1][-1] + size == base:
                spans[-1].append(base)
            else:
                spans.append([base])
        found = _Queue(queue.per_file, log={number: queue.log[number] for number in there})
        for span in reversed(spans):
            units = [unit for base in span for unit in _UNIT.iter_unpack(files[f"{base:020d}"])]
            while units and not (units[-1][0] >= 0 and units[-1][1] > 0):
                units.pop()
            if not units:
                continue
            if not there:
                while units and not self._is_expired(units[-1]):
                    units.pop()
                if not units:
                    continue
            found.first, found.units, found.has_file = span[0] // 20, units, True
            break
        if not there:
            found.min = found.end
            return self._kept_ext(found)
        begin = there[0]
        is_whole = all(offset >= 0 and unit_bytes > 0 for offset, unit_bytes, _ in found.units[: begin - found.first])
        has_ext_file = any(path.startswith(f"{_ROOT}/consumequeue_ext/") for path in self._disk.paths())
        is_rebuilt = has_ext_file and not clean_exit  # no checksum covers the bit maps
        if not (found.has_file and found.first <= begin <= found.end and is_whole) or is_rebuilt:
            found.units = []
            found.begin(begin)
        del found.units[begin - found.first :]
        found.min = begin
        found.drafts, kept = {}, [queue.units[n - queue.first] for n in range(queue.first, queue.end)]
        for number in there:
            gap = number - found.end
            if gap > 0:
                found.noted.add(("queue_gap", queue.log[number][0]))
            if gap > found.per_file:
                break
            found.units += [_PREFILL] * gap
            found.units.append(queue.log[number])
        if self._has_ext:
            self._readdress(found, {queue.first + at: unit for at, unit in enumerate(kept)}, is_rebuilt=is_rebuilt)
        return found

    def _is_expired(self, unit: _Unit) -> bool:
        """Return whether a unit is pre-fill, or one of a record before the begin of the log."""
        offset, size, _ = unit
        return unit == _PREFILL or (offset >= 0 and size > 0 and offset + size <= self._log_min)

    def _kept_ext(self, found: _Queue) -> _Queue:
        """Return a queue without a unit in the log, with the extension up to its last address."""
        found.drafts = {number: draft for number, draft in self._queue.drafts.items() if number < found.end}
        found.ext_end = self._end_of_ext(found)
        return found

    def _end_of_ext(self, found: _Queue) -> int:
        """Return the position after the extension unit of the last unit with an address."""
        for number in range(found.end - 1, found.first - 1, -1):
            code = found.units[number - found.first][2]
            if code < -(1 << 31):
                return code - _BASE + 20 + len(found.drafts[number].bit_map)
        return 0

    def _readdress(self, found: _Queue, kept: dict[int, _Unit], *, is_rebuilt: bool) -> None:
        """Give the units of the log their stored addresses, or new ones."""
        for number in range(found.first, found.end):
            unit, draft = found.units[number - found.first], self._queue.drafts.get(number)
            if draft is None or unit == _PREFILL:
                continue
            if is_rebuilt:
                self._queue.ext_end = found.ext_end
                found.units[number - found.first] = self._extended(unit, number, draft)
                found.ext_end = self._queue.ext_end
            else:
                found.units[number - found.first] = kept[number]
            found.drafts[number] = draft
        if not is_rebuilt:
            found.ext_end = self._end_of_ext(found)

    # ---- comparing -----------------------------------------------------------------------------------------------

    def _found_files(self) -> dict[str, bytes]:
        """Return the queue's files by name, without stray ones."""
        directory = f"{_ROOT}/consumequeue/T/{self._key[1]}/"
        names = {path: path.removeprefix(directory) for path in self._disk.paths() if path.startswith(directory)}
        return {name: self._disk.content[path] for path, name in names.items() if len(name) == 20}

    def _compare(self) -> None:
        queue, found = self._queue, self._queues.stored(self._key)
        are_files("a queue", queue.files(), self._found_files())
        if found is None or not queue.has_file:
            is_value("whether a queue without files has any", False, bool(found and found.mapped))
            return
        bounds = queue.first, queue.min, queue.end
        is_value("the bounds of a queue", bounds, (found.first_number, found.min_offset, found.max_offset))
        is_answered("the end of the last record of a queue", queue.last_end, lambda: found.last_end_offset)
        is_answered("the invariants of a queue", None, found.check)
        self._compare_units(found)
        if self._has_ext:
            self._compare_ext(found)
        noted = {(each.code, each.offset) for each in found.findings if each.code in _NOTED}
        is_value("the findings of a queue", sorted(queue.noted), sorted(noted))

    def _compare_units(self, found: ConsumeQueue) -> None:
        queue, rng = self._queue, self._rng
        for number in range(queue.first - 1, queue.end + 2):
            unit, is_read = queue.unit(number), queue.min <= number < queue.end
            is_answered("the offset at a number", unit[0] if unit else 0, found.offset_at, number)
            expected = unit if is_read and unit != _PREFILL else None
            answer = tried("unit", lambda number=number: found.unit(number))  # type: ignore[misc]
            is_value("a unit of a queue", expected, None if answer is None else tuple(answer))
        start, count = rng.randrange(queue.first, queue.end + 2), rng.randrange(1, 9)
        data = b"".join(_UNIT.pack(*unit) for unit in queue.units[max(0, start - queue.first) :][:count])
        is_answered("the stored bytes", data if start >= queue.first else b"", found.stored_bytes, start, count)
        is_answered("the bytes of units", data if start >= queue.min else b"", found.unit_bytes, start, count)

    def _compare_ext(self, found: ConsumeQueue) -> None:
        queue = self._queue
        assert found.ext is not None
        for number, draft in queue.drafts.items():
            unit = queue.unit(number)
            if unit is None or number < queue.min or unit[2] >= -(1 << 31):
                continue
            answer = tried("the extension", lambda code=unit[2]: found.ext.get(code))  # type: ignore[misc]
            is_value("a unit of the extension", tuple(draft), None if answer is None else tuple(answer))
        for address in (queue.ext_end + _BASE, 0, -(1 << 31)):
            is_answered("the extension past its end", None, found.ext.get, address)


_NOTED = frozenset(("queue_gap", "impossible_queue_offset", "repeated_queue_offset"))


def _impossible_names(rng: random.Random) -> None:
    """Append to queues whose topics no directory can have as its name."""
    disk = PartDisk()
    queues = ConsumeQueues(disk, _ROOT, file_bytes=100, writable=True, clean_exit=True)
    tried("load", queues.load)
    names = (b"", b".", b"..", b"a/b", b"a\0", b"x" * 256)
    for name in names:
        run = QueueRun((name, 0), rng.randrange(3), _UNIT.pack(0, 40, 1), 40)
        for _ in range(2):
            tried("append", lambda run=run: queues.of(run.key).append(run))  # type: ignore[misc]
        is_value("a queue of an impossible name", None, queues.stored((name, 0)))
    codes = [finding.code for finding in queues.findings]
    is_value("the findings about impossible names", ["impossible_queue"] * len(names), codes)
    is_value("the files of queues with impossible names", [], disk.paths())
    for name in (b"x" * 255, b"...", b"a b"):
        tried("of", lambda name=name: queues.of((name, 0)))  # type: ignore[misc]
    is_value("the findings about possible names", len(names), len(queues.findings))
    queues.close()
