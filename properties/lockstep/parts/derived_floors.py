"""Raise the derived floor over drawn queues and index files, beside a plain statement.

Queues, index, log and the file of the floor are stand-ins. The dispatch of the store goes on between sample and write.

1. A sample is the progress of dispatch. For each queue it names the units whose records begin before that offset. There
   is none without a record before it, if a checksum cannot replace a walk, or if nothing has changed since the last
   written floor: neither progress nor the number of files.
2. A floor is written for the last sample once the log is flushed up to it. A floor that cannot be written is tried
   again.
3. It names each queue file with sampled units, and their bytes with a checksum. A queue that is newer than the sample
   is not named. It names each index file up to the one of the sample, with the checksum of its entries. The last one
   has the header and times of the sample.
4. It names the blank of each log file that ends at or before the offset, and the queues that records before it name.
5. Bytes that the last try has summed up are not read again.
6. A file that was removed meanwhile is not read. Each file that is held is released.
"""

import errno
import random
import zlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tornpage.impl.dispatch.derived import Progress
from tornpage.impl.dispatch.derived_floor import DerivedProof
from tornpage.impl.index.index_layout import IndexHeader, IndexLayout
from tornpage.impl.recovery.derived_floor_raising import RaiseDerivedFloor
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_PROGRAMS, _EVENTS = 6, 40
_UNIT_BYTES = 20
_UNITS = 4
"""Units of a queue file."""
_LAYOUT = IndexLayout(3, 5)
_SETTINGS_KEYS = ("offset", "store_timestamp", "blanks", "named_queues", "queue_files", "index_files")


def check(rng: random.Random) -> None:
    """Run some programs. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class _View:
    """The bytes of a file; notes what is read."""

    def __init__(self, content: bytearray) -> None:
        self.content = content
        self.read = list[tuple[int, int]]()

    def __getitem__(self, part: slice) -> bytes:
        self.read.append((part.start, part.stop))
        return bytes(self.content[part])


@dataclass(eq=False)
class _Mapped:
    """A mapped file. A removed one cannot be held."""

    path: str
    base_offset: int
    size_bytes: int
    is_removed: bool = False
    held: int = 0

    def __post_init__(self) -> None:
        self.view = _View(bytearray(self.size_bytes))

    def hold(self) -> bool:
        """Hold it for a read."""
        self.held += not self.is_removed
        return not self.is_removed

    def release(self) -> None:
        """End a read."""
        self.held -= 1


@dataclass(eq=False)
class _Queue:
    """A consume queue: the offsets of its records from `first_number` on."""

    directory: str
    first_number: int
    offsets: list[int] = field(default_factory=list)
    mapped: tuple[_Mapped, ...] = ()

    @property
    def max_offset(self) -> int:
        """The number after the last unit."""
        return self.first_number + len(self.offsets)

    def offset_at(self, number: int) -> int:
        """Return the offset of the record of a number."""
        return self.offsets[number - self.first_number]

    def add(self, rng: random.Random, offset: int) -> None:
        """Append a unit, in a new file if the last one is full."""
        at = self.max_offset * _UNIT_BYTES
        if not self.mapped or at >= self.mapped[-1].base_offset + self.mapped[-1].size_bytes:
            size = _UNITS * _UNIT_BYTES
            self.mapped += (_Mapped(f"{self.directory}/{at // size * size:020d}", at // size * size, size),)
        file = self.mapped[-1]
        file.view.content[at - file.base_offset : at - file.base_offset + _UNIT_BYTES] = rng.randbytes(_UNIT_BYTES)
        self.offsets.append(offset)


@dataclass(eq=False)
class _IndexFile:
    """An index file."""

    mapped: _Mapped
    header: IndexHeader
    times: tuple[int, int]
    layout: IndexLayout = _LAYOUT


class _Program:
    """One program of appends, samples and writes."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._queues = list[_Queue]()
        self._index = list[_IndexFile]()
        self._has_index = rng.random() < 0.8
        self._named = dict[tuple[bytes, int], int]()
        self._end = self._min = rng.choice((0, 1_000))
        self._time = 5
        log: Any = SimpleNamespace(min_offset=self._min, flushed_where=self._min, mapped=[])
        self._log = log
        self._sampled: tuple[Progress, dict[str, int]] | None = None
        self._written: tuple[Progress, int] | None = None
        self._summed = dict[str, tuple[int, int]]()
        self._proofs = list[DerivedProof]()
        self._fails = False
        index: Any = SimpleNamespace() if self._has_index else None
        queues: Any = SimpleNamespace(all=lambda: tuple(self._queues))
        derived: Any = SimpleNamespace(
            queues=queues, index=index, named_queues=self._named, is_provable=True, progress=self._progress()
        )
        floor: Any = SimpleNamespace(write=self._write)
        self._derived = derived
        self._ours = RaiseDerivedFloor(floor, derived, log, root="/part")
        self._follow()

    def _write(self, proof: DerivedProof) -> None:
        if self._fails:
            raise OSError(errno.EIO, "a write that was chosen to fail")
        self._proofs.append(proof)

    def _progress(self) -> Progress:
        last = self._index[-1] if self._index else None
        header, times = (IndexHeader(), (0, 0)) if last is None else (last.header, last.times)
        return Progress(self._end, self._time, last, header, times)  # type: ignore[arg-type]

    def _follow(self) -> None:
        """Show the part what dispatch has reached."""
        self._derived.progress = self._progress()
        if self._derived.index is not None:
            self._derived.index.index_files = tuple(self._index)

    _names = 0

    # ---- events --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Draw events."""
        rng = self._rng
        events = (self._dispatch, self._dispatch, self._dispatch, self._ahead, self._sample, self._sample, self._raise,
                  self._raise, self._flush, self._remove, self._blank, self._prove)  # fmt: skip
        for _ in range(_EVENTS):
            rng.choice(events)()

    def _dispatch(self) -> None:
        """Dispatch some records: a unit for each, an entry for some, further queues for some."""
        rng = self._rng
        for _ in range(rng.choice((1, 2, 6))):
            if len(self._queues) < 3 and rng.random() < 0.3:
                self._queues.append(_Queue(f"/part/consumequeue/T/{len(self._queues)}", rng.choice((0, 0, 3, 9))))
            if self._queues:
                rng.choice(self._queues).add(rng, self._end)
            if rng.random() < 0.2:
                self._named.setdefault((rng.choice((b"T", b"\xff")), rng.choice((0, 1))), self._end)
            self._end += rng.choice((90, 100))
            self._time += rng.choice((0, 3))
            if self._has_index and rng.random() < 0.6:
                self._enter()
        self._follow()

    def _enter(self) -> None:
        rng = self._rng
        if not self._index or self._index[-1].header.next_number == _LAYOUT.entries_max:
            self._names += 1
            path = f"/part/index/{20_250_101_000_000_000 + self._names}"
            self._index.append(_IndexFile(_Mapped(path, 0, _LAYOUT.file_bytes), IndexHeader(), (9, 9)))
        last = self._index[-1]
        at = 40 + 4 * 3 + 20 * last.header.next_number
        last.mapped.view.content[at : at + 20] = rng.randbytes(20)
        last.header = last.header._replace(next_number=last.header.next_number + 1, end_offset=self._end)
        last.times = rng.randrange(9), 9 + rng.randrange(9)

    def _ahead(self) -> None:
        """Let queues have units of records that dispatch has not completed."""
        for queue in self._queues:
            if self._rng.random() < 0.3:
                queue.add(self._rng, self._end)

    def _flush(self) -> None:
        ends = [self._end, self._end - 1, self._min]
        if self._sampled is not None:
            ends += [self._sampled[0].offset, self._sampled[0].offset - 1]
        self._log.flushed_where = max(self._log.flushed_where, self._rng.choice(ends))

    def _remove(self) -> None:
        """Remove the first file of a queue, or the first index file."""
        queues = [queue for queue in self._queues if len(queue.mapped) > 1]
        if queues and self._rng.random() < 0.6:
            queue = self._rng.choice(queues)
            end = queue.mapped[1].base_offset // _UNIT_BYTES
            queue.offsets = queue.offsets[max(0, end - queue.first_number) :]
            queue.first_number, queue.mapped = max(queue.first_number, end), queue.mapped[1:]
        elif len(self._index) > 1:
            self._index = self._index[1:]
        elif queues and queues[0].mapped[0].is_removed is False:
            queues[0].mapped[0].is_removed = True
        self._follow()

    def _blank(self) -> None:
        """Make log files of which some end with a blank."""
        rng, base = self._rng, self._min
        self._log.mapped = []
        for end in sorted({self._end, self._end + 90, self._end - 90, *self._sampled_end()}):
            if end > base:
                blank = rng.choice((None, 7))
                self._log.mapped.append(SimpleNamespace(base_offset=base, end_offset=end, blank_position=blank))
                base = end

    def _sampled_end(self) -> tuple[int, ...]:
        return () if self._sampled is None else (self._sampled[0].offset,)

    def _prove(self) -> None:
        self._derived.is_provable = self._rng.random() < 0.8

    def _count(self) -> int:
        return sum(len(queue.mapped) for queue in self._queues) + len(self._index)

    def _sample(self) -> None:
        tried("sample", self._ours.sample)
        progress = self._progress()
        has_changed = self._written != (progress, self._count())
        self._sampled = None
        if has_changed and progress.offset != self._min and self._derived.is_provable:
            ends = {
                queue.directory: sum(offset < progress.offset for offset in queue.offsets) + queue.first_number
                for queue in self._queues
            }
            self._sampled = progress, ends

    def _raise(self) -> None:
        self._fails = self._rng.random() < 0.2
        tried("a floor", self._ours.raise_floor)
        sampled = self._sampled
        if sampled is None or sampled[0].offset > self._log.flushed_where:
            is_value("the floors without a durable sample", [], self._proofs)
            is_value("the reads without a durable sample", {}, self._reads())
            return
        expected, reads = self._expected(*sampled)
        is_value("the bytes that a floor sums up", {path: n for path, n in reads.items() if n}, self._reads())
        if self._fails:
            return
        found = [{name: getattr(each, name) for name in _SETTINGS_KEYS} for each in self._proofs]
        self._proofs.clear()
        is_value("the number of floors", 1, len(found))
        for name in _SETTINGS_KEYS:
            is_value(f"{name} of a floor", repr(expected[name]), repr(_plain(found[0][name])))
        self._sampled = None
        named = len(expected["queue_files"]) + len(expected["index_files"])
        self._written = sampled[0], named

    def _files(self) -> list[_Mapped]:
        return [each for queue in self._queues for each in queue.mapped] + [each.mapped for each in self._index]

    def _reads(self) -> dict[str, list[tuple[int, int]]]:
        """Return what was read since the last call; every file has to be released."""
        found = {each.path: each.view.read for each in self._files() if each.view.read}
        for each in self._files():
            is_value("how often a file is held after a floor", 0, each.held)
            each.view.read = []
        return found

    def _expected(
        self, progress: Progress, ends: dict[str, int]
    ) -> tuple[dict[str, Any], dict[str, list[tuple[int, int]]]]:
        reads, summed = dict[str, list[tuple[int, int]]](), dict[str, tuple[int, int]]()
        queue_files, index_files = list[object](), list[object]()
        for queue in self._queues:
            end = ends.get(queue.directory, 0) * _UNIT_BYTES
            for file in queue.mapped:
                if file.base_offset < end:
                    size = min(end - file.base_offset, file.size_bytes)
                    queue_files.append((file.path[6:], size, self._sum(file, 0, size, reads, summed)))
        last: object = progress.index_file
        for each in self._index if last is not None else ():
            is_last = each is last
            header, times = (progress.index_header, progress.index_times) if is_last else (each.header, each.times)
            start, end = 40 + 4 * 3 + 20, 40 + 4 * 3 + 20 * header.next_number
            index_files.append((each.mapped.path[6:], header, times, self._sum(each.mapped, start, end, reads, summed)))
            if is_last:
                break
        self._summed = summed
        named = [(name.hex(), number) for (name, number), offset in self._named.items() if offset < progress.offset]
        blanks = [
            (file.base_offset, file.blank_position)
            for file in self._log.mapped
            if file.blank_position is not None and file.end_offset <= progress.offset
        ]
        content = {
            "offset": progress.offset, "store_timestamp": progress.store_timestamp, "blanks": tuple(blanks),
            "named_queues": tuple(named), "queue_files": tuple(queue_files), "index_files": tuple(index_files),
        }  # fmt: skip
        return content, reads

    def _sum(
        self, file: _Mapped, start: int, end: int, reads: dict[str, list[tuple[int, int]]],
        summed: dict[str, tuple[int, int]],
    ) -> int:  # fmt: skip
        """Return the checksum of a part of a file, and note what of it has to be read.

        A removed file keeps the checksum of what was read before.
        """
        begin, position = self._summed.get(file.path, (start, start))
        if begin != start or position > end:
            position = start
        if not file.is_removed:
            if position < end:
                reads[file.path] = [(position, end)]
            position = end
        summed[file.path] = start, position
        return zlib.crc32(file.view.content[start:position])


def _plain(value: object) -> object:
    """Return a value with plain tuples in it."""
    if isinstance(value, tuple) and not isinstance(value, IndexHeader):
        return tuple(map(_plain, value))
    return value
