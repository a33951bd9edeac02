"""Run programs of one index against a plain list of entries (contracts 5 and 10).

An index is a sequence of files with entries. Its bytes are a function of hashes, offsets and times:

1. An entry goes into the last file, and into a new one if that is full. It links to the newest entry before it in its
   slot. Puts that are repeated, with more after them, are not doubled.
2. The time of an entry is in whole seconds since the first entry of its file. It is 0 for an earlier time, and
   without a positive begin. That of the first entry is relative to the end of the file before it.
3. A search yields the offsets of a hash, the newest first. Files whose times all lie outside of the window are left
   out, and so are entries whose second does.
4. Clean-up drops the first files while their last entry lies before the begin of the log. The last file stays.
5. After an open the entries from the begin of the log on are those of the log. Entries before it stay as long as
   their offsets ascend. Whatever else was in the files is gone.
6. An operation that failed can be repeated, with the result of one that did not fail.
7. After a flush of everything the disk has all that a process sees.
"""

import random
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from isal.isal_zlib import crc32

from tornpage.impl.index.index_layout import IndexFileProof, is_index_name, name_after
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.message.dispatching import IndexPuts
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import (
    PartDisk,
    are_files,
    carried_out,
    crashed,
    reports_a_break,
    tried,
)

__all__ = ["check"]

_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_DIRECTORY = "/part/index"
_PROGRAMS = 3
_OPERATIONS = 14
_SECONDS_MAX = (1 << 31) - 1
_HASHES = (0, 1, 2, 3, 7, 8, 9, 700, (1 << 31) - 1)
_TIMES = (0, 1_000, 1_700_000_000_000, 1_700_000_000_999)
_STEPS_MS = (0, 0, 1, 999, 1_000, 1_001, 5_000, -1, -1_500, 1_000 * _SECONDS_MAX, 1_000 * (_SECONDS_MAX + 7))
_STRAYS = ("20240101000000000.bak", "2024", "99990101000000000", "20241301000000000")

_Put = tuple[int, int, int]
"""Hash, physical offset and store time (ms) of an entry."""


@dataclass
class _File:
    """One file: its entries, and the time and the offset at which the file before it ended.

    `is_dated` says whether the times of all entries are known to the store.
    """

    before: tuple[int, int]
    puts: list[_Put] = field(default_factory=list)
    is_dated: bool = True

    def seconds(self) -> list[int]:
        """Return the time of each entry as stored."""
        found = []
        for number, (_, _, time) in enumerate(self.puts):
            begin = self.puts[0][2] if number else self.before[0]
            found.append(min(max(0, time - begin) // 1000, _SECONDS_MAX) if begin > 0 else 0)
        return found

    def data(self, slots: int, most: int) -> bytes:
        """Return the bytes of a file with places for `most` entries, entry 0 counted."""
        heads, rows = [0] * slots, [bytes(20)]
        for number, ((code, offset, _), seconds) in enumerate(zip(self.puts, self.seconds(), strict=True), 1):
            rows.append(_ENTRY.pack(code, offset, seconds, heads[code % slots]))
            heads[code % slots] = number
        if self.puts:
            first, last = self.puts[0], self.puts[-1]
            used = sum(map(bool, heads))
            head = _HEADER.pack(first[2], last[2], first[1], last[1], used, len(self.puts) + 1)
        else:
            time, offset = self.before
            head = _HEADER.pack(time, time, offset, offset, 0, 0)
        data = head + struct.pack(f">{slots}i", *heads) + b"".join(rows)
        return data.ljust(40 + 4 * slots + 20 * most, b"\0")

    def found(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the offsets of a hash that may lie in a window, the newest first."""
        times = [time for _, _, time in self.puts]
        if self.is_dated and (not times or max(times) < begin_ms or end_ms < min(times)):
            return
        is_within = self.is_dated and begin_ms <= min(times) and max(times) <= end_ms
        begin = times[0] if times else 0
        seconds = self.seconds()
        for at in range(len(self.puts) - 1, -1, -1):
            # the second of the first entry is relative to another file, but its time is the begin of this one
            earliest = latest = begin
            if at:
                earliest = begin + 1000 * seconds[at] if seconds[at] and begin > 0 else -(1 << 70)
                latest = begin + 1000 * seconds[at] + 999 if seconds[at] < _SECONDS_MAX and begin > 0 else 1 << 70
            may_lie = is_within or (begin_ms <= latest and earliest <= end_ms)
            if self.puts[at][0] == code and may_lie:
                yield self.puts[at][1]


def check(rng: random.Random) -> None:
    """Run programs of an index, and compare names of files. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()
    _names(rng)


class _Program:
    """One program of an index with few slots and small files."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._disk = PartDisk()
        self._slots, self._most = rng.choice((1, 2, 3, 8)), rng.choice((2, 3, 5, 9, 300))
        self._files: list[_File] = []
        self._puts: list[_Put] = []
        self._log_min, self._log_end, self._time = 0, rng.choice((0, 100)), rng.choice(_TIMES)
        self._begins_at_0 = not self._log_end
        self._clock_ms = 1_700_000_000_000
        self._failed, self._is_settled = 0, True
        self._index = self._opened()
        self._begun(self._index, 0)

    def _opened(self, *, writable: bool = True) -> IndexService:
        return IndexService(
            self._disk, _DIRECTORY, slots=self._slots, entries_max=self._most, clock=lambda: self._clock_ms,
            writable=writable,
        )  # fmt: skip

    @staticmethod
    def _begun(index: IndexService, from_offset: int) -> None:
        tried("load", index.load)
        tried("begin_reconcile", lambda: index.begin_reconcile(from_offset))
        tried("end_reconcile", index.end_reconcile)

    def run(self) -> None:
        """Run the operations of one program, and compare after each."""
        operations: tuple[tuple[int, Callable[[], None]], ...] = (
            (8, self._put), (2, self._clean), (2, self._flush), (2, self._flush_full), (3, self._reopen),
        )  # fmt: skip
        weights, choices = zip(*operations, strict=True)
        for _ in range(_OPERATIONS):
            self._clock_ms += self._rng.choice((0, 0, 1, -1000))
            self._rng.choices(choices, weights)[0]()
            self._compare()
        self._flush()
        self._rewrite()
        self._invariants()
        self._read_only()
        tried("close", self._index.close)
        is_value("the files that a closed index still holds", (0, 0), self._disk.held)

    # ---- operations ----------------------------------------------------------------------------------------------

    def _put(self) -> None:
        """Put the entries of some records, often some of the last ones again."""
        rng = self._rng
        again = rng.choice((0, 0, 0, 1, 2, 5))
        known = [put for each in self._files for put in each.puts]
        offsets = sorted({offset for _, offset, _ in known})[-again:] if again else []
        last = [put for put in known if put[1] in offsets]  # a record is repeated with all its keys
        new = [put for _ in range(rng.choice((1, 1, 2, 4))) for put in self._record()]
        puts = _columns([*last, *new])
        carried_out(self._disk, rng, "put", lambda: self._index.put(puts))
        self._add(new)

    def _record(self) -> list[_Put]:
        """Return the entries of the next record: one for each of its keys."""
        rng = self._rng
        self._time = max(1, self._time + rng.choice(_STEPS_MS)) if self._time < 1 << 60 else self._time
        codes = [rng.choice(_HASHES) for _ in range(rng.choice((1, 1, 2, 3)))]
        codes = list(dict.fromkeys(codes))
        found = [(code, self._log_end, self._time) for code in codes]
        self._log_end += 100
        return found

    def _add(self, new: list[_Put]) -> None:
        self._puts += new
        _fill(self._files, new, self._most)

    def _clean(self) -> None:
        rng = self._rng
        places = [offset for _, offset, _ in self._puts] + [self._log_end]
        self._log_min = max(self._log_min, rng.choice(places))
        wanted = 0
        while wanted + 1 < len(self._files) and self._files[wanted].puts[-1][1] < self._log_min:
            wanted += 1
        before = len(self._index.index_files)
        carried_out(self._disk, rng, "drop_expired", lambda: self._index.drop_expired(self._log_min))
        is_value("the index files that a clean-up drops", wanted, before - len(self._index.index_files))
        del self._files[:wanted]
        durable = [path for path in self._disk.durable.files if path.startswith(_DIRECTORY)]
        if self._disk.failed == self._failed and self._is_settled:
            is_value("the durable index files after a clean-up", True, len(durable) <= len(self._files))

    def _flush(self) -> None:
        left = carried_out(self._disk, self._rng, "flush", self._index.flush, only_names=True)
        is_value("the entries that a flush left", 0, left)
        self._failed, self._is_settled = self._disk.failed, True
        seen = {path: data for path, data in self._disk.content.items() if ".unfinished/" not in path}
        durable = {path: data for path, data in self._disk.durable.files.items() if ".unfinished/" not in path}
        are_files("a flushed index", seen, durable)

    def _flush_full(self) -> None:
        """Flush by a rule of one page, which small files fulfil only when they are full."""
        if self._most > 100:
            return
        left = carried_out(self._disk, self._rng, "flush", lambda: self._index.flush(1), only_names=True)
        durable = [data for path, data in sorted(self._disk.durable.files.items()) if path.startswith(f"{_DIRECTORY}/")]
        full = [each.data(self._slots, self._most) for each in self._files if len(each.puts) == self._most - 1]
        if full and self._disk.failed == self._failed:
            is_value("the full index files after a flush by pages", full, durable[: len(full)])
        is_value("whether a flush by pages leaves no more than the last file", True, 0 <= left < self._most - 1)

    def _rewrite(self) -> None:
        """Rewrite a file from an entry on, and compare what is written."""
        if not self._files:
            return
        at = self._rng.randrange(len(self._files))
        number, end = self._rng.randrange(1, self._most + 1), len(self._files[at].puts) + 1
        start = 40 + 4 * self._slots
        expected = [(0, start)] + ([(start + 20 * number, 20 * (end - number))] if number < end else [])
        self._disk.written.clear()
        tried("rewrite_from", lambda: self._index.index_files[at].rewrite_from(number))
        written = [(place, count) for _, place, count in self._disk.written]
        is_value(f"the bytes of an index file rewritten from entry {number} on", expected, written)
        self._compare()

    def _invariants(self) -> None:
        """Break one watermark: the invariants have to report it."""
        if not self._files:
            return
        mapped = self._rng.choice(self._index.index_files).mapped
        flushed, mapped.flushed_position = mapped.flushed_position, mapped.written_position + 1
        reports_a_break("the check of a broken index", self._index.check)
        mapped.flushed_position = flushed

    # ---- opening -------------------------------------------------------------------------------------------------

    def _reopen(self) -> None:
        """Close, harm the files, open, and compare with the log."""
        rng = self._rng
        carried_out(self._disk, rng, "flush", self._index.flush, only_names=True)
        proofs, proven_end = self._proofs()
        tried("close", self._index.close)
        image = self._disk.durable
        paths = sorted(path for path in image.files if path.startswith(f"{_DIRECTORY}/"))
        changes, wanted, is_wrong = self._harm(image.files, paths)
        if wanted is not None:
            proofs = None
        strays = {f"{_DIRECTORY}/{name}": b"s" for name in _STRAYS if paths and rng.random() < 0.2}
        self._disk, self._failed, self._is_settled = crashed(image, {**changes, **strays}), 0, False
        begin = proven_end if proofs is not None else self._log_min
        puts = [put for put in self._puts if put[1] >= begin]
        self._files = self._files if wanted is None else wanted
        self._index = self._loaded(begin, puts, proofs, is_wrong=is_wrong)
        codes = [finding.code for finding in self._index.findings if finding.code == "stray_file"]
        is_value("the findings about stray files of the index", ["stray_file"] * len(strays), codes)
        for path in strays:
            is_value(f"the stray file {path}", b"s", self._disk.content.get(path))
            self._disk.unlink(path)
            self._disk.sync_directory(_DIRECTORY)
        if proofs is None:
            for each in self._files:
                each.is_dated = all(offset >= self._log_min for _, offset, _ in each.puts)

    def _loaded(
        self, begin: int, puts: list[_Put], proofs: list[IndexFileProof] | None, *, is_wrong: bool | None
    ) -> IndexService:
        # no call fails if a record begins at 0: an erased entry is then as that of an expired record with the hash 0
        rng, made, is_rebuilt, failed = self._rng, list[IndexService](), list[bool](), self._disk.failed

        def load() -> None:
            while made:
                made.pop().close()
            made.append(self._opened())
            made[0].load()
            made[0].begin_reconcile(begin, proofs=proofs)
            start = 0
            while start < len(puts):
                end = start + rng.choice((1, 3, 50))
                made[0].reconcile(_columns(puts[start:end]))
                start = end
            is_rebuilt.append(made[0].end_reconcile())

        if self._begins_at_0:
            tried("an open of the index", load)
        else:
            carried_out(self._disk, rng, "an open of the index", load)
        if is_wrong is not None and self._disk.failed == failed:
            is_value("whether something that counted was rebuilt", is_wrong, is_rebuilt[0])
        return made[0]

    def _proofs(self) -> tuple[list[IndexFileProof] | None, int]:
        """Return proofs of all files and the offset up to which they reach, or None."""
        if self._rng.random() < 0.6 or not self._files:
            return None, 0
        found = []
        for index_file in self._index.index_files:
            data = self._disk.content[index_file.path]
            start, count = 40 + 4 * self._slots + 20, index_file.header.next_number - 1
            crc = crc32(data[start : start + 20 * count])
            found.append(
                IndexFileProof(index_file.path.removeprefix("/part/"), index_file.header, index_file.times, crc)
            )
        return found, self._log_end

    def _harm(
        self, files: Mapping[str, bytes], paths: list[str]
    ) -> tuple[dict[str, bytes | None], list[_File] | None, bool | None]:
        """Return changed files, the files after an open, and whether that is noted.

        The second one is None if nothing differs, and the third one if it is not known.
        """
        rng = self._rng
        kinds = ("none", "entry", "entry", "head", "slot", "tail", "lost_last", "lost_end", "size", "inherited")
        kind = rng.choice(kinds)
        if not paths or kind == "none":
            return {}, None, False
        at = len(paths) - 1 if kind in ("lost_last", "lost_end") else rng.randrange(len(paths))
        path, data, count = paths[at], bytearray(files[paths[at]]), len(self._files[at].puts)
        start = 40 + 4 * self._slots
        match kind:
            case "entry" if count:
                number = 1 + rng.randrange(count)
                data[start + 20 * number + 4] = 0x7F
                return {path: bytes(data)}, self._from(at, number - 1), True
            case "head" if count:
                is_compared = self._files[at].puts[0][1] >= self._log_min
                place = rng.choice((7, 15, 23, 31, 35) if is_compared else (23, 31, 35))
                data[place] ^= 0x40
                return {path: bytes(data)}, self._files, None
            case "slot":
                data[40 + rng.randrange(4 * self._slots)] ^= 0x15
                return {path: bytes(data)}, self._files, None
            case "tail":
                end = start + 20 * (count + 1)
                if end < len(data):
                    data[rng.randrange(end, len(data))] ^= 0x55
                data[start + rng.randrange(20)] ^= 0x55  # entry 0 stays zero
                return {path: bytes(data)}, self._files, None
            case "lost_last":
                return {path: None}, self._from(at, 0), False
            case "lost_end" if count > 1:
                kept = _File(self._files[at].before, self._files[at].puts[: rng.randrange(1, count)])
                return {path: kept.data(self._slots, self._most)}, self._from(at, len(kept.puts), is_told=True), None
            case "inherited":
                return *self._only_inherited(paths), None
            case "size":
                return {path: bytes(data) + b"\0"}, self._from(at, 0, is_gone=True), None
        return {}, None, False

    def _only_inherited(self, paths: list[str]) -> tuple[dict[str, bytes | None], list[_File] | None]:
        """Return the changes that leave one file without an entry, and the files after an open.

        The file has the end of a lost file in its header. The open keeps that end if it lies before the log.
        """
        missing = [put for put in self._puts if put[1] >= self._log_min]
        if not missing:
            return {}, None
        offsets = (self._log_min - 1, self._log_min, self._log_min + 1, missing[-1][1])
        left = _File((self._rng.choice(_TIMES), max(0, self._rng.choice(offsets))))
        files = [_File(left.before if left.before[1] < self._log_min else (0, 0))]
        _fill(files, missing, self._most)
        return {**dict.fromkeys(paths), paths[0]: left.data(self._slots, self._most)}, files

    def _from(self, at: int, number: int, *, is_gone: bool = False, is_told: bool = False) -> list[_File]:
        """Return the files after the log was put again from entry `number` of file `at` on.

        The file itself may be gone. `is_told` says that its header has the time of the last entry that is left.
        """
        kept = [_File(each.before, list(each.puts), each.is_dated) for each in self._files[: at + 1]]
        following = [] if not is_gone else [_File(e.before, list(e.puts), e.is_dated) for e in self._files[at + 1 :]]
        del kept[at].puts[number:]
        if not is_told and kept[at].puts and kept[at].puts[-1][1] < self._log_min:
            # the record has expired, so that its time is known to the second only
            code, offset, _ = kept[at].puts[-1]
            time = kept[at].puts[0][2] + (1000 * kept[at].seconds()[-1] if number > 1 else 0)
            kept[at].puts[-1] = (code, offset, time)
        if not kept[at].puts:
            kept.pop()
        if following and not any(put[1] >= self._log_min for put in self._files[at].puts) and not kept:
            return following
        known = [put for each in kept for put in each.puts]
        missing = [put for put in self._puts if put[1] >= self._log_min]
        is_known = len([put for put in known if put[1] >= self._log_min])
        _fill(kept, missing[is_known:], self._most)
        return kept

    # ---- comparing -----------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        rng = self._rng
        there = [each.path for each in self._index.index_files]
        if self._disk.failed == self._failed:  # a file that could not be made may stay until the next flush
            names = [path for path in self._disk.paths() if path.startswith(f"{_DIRECTORY}/")]
            is_value("the names of the index files", names, there)
        found = [self._disk.content[path] for path in there]
        wanted = [each.data(self._slots, self._most) for each in self._files]
        is_value("the number of index files", len(wanted), len(found))
        for number, (expected, data) in enumerate(zip(wanted, found, strict=True)):
            is_value(f"the content of index file {number}", expected.hex(), data.hex())
        is_answered("the invariants of the index", None, self._index.check)
        last = self._files[-1] if self._files else _File((0, 0))
        update: tuple[int | None, int | None] = last.puts[-1][2:0:-1] if last.puts else last.before
        update = (None, None) if not last.puts and update == (0, 0) else update
        is_answered("the last update of the index", update, lambda: self._index.last_update)
        is_answered("the last offset of the index", update[1], lambda: self._index.last_offset)
        for code in (rng.choice(_HASHES), rng.choice(_HASHES), 6):
            moments = [rng.choice(self._puts)[2] + rng.choice((-1000, -1, 0, 1, 999)) for _ in range(2) if self._puts]
            window = (min(moments), max(moments)) if moments and rng.random() < 0.7 else (-(1 << 63), (1 << 63) - 1)
            found_in = (offset for each in reversed(self._files) for offset in each.found(code, *window))
            is_answered(f"the candidates of hash {code}", _without_repeats(found_in), self._candidates, code, *window)

    def _candidates(self, code: int, begin_ms: int, end_ms: int) -> list[int]:
        return list(self._index.candidates(code, begin_ms, end_ms))

    def _read_only(self) -> None:
        """Open the index read-only beside a file of another size: nothing changes."""
        image = self._disk.durable
        if not self._files:
            return
        odd = f"{_DIRECTORY}/20990101000000000"
        disk, self._disk = self._disk, crashed(image, {odd: b"odd"})
        before = self._disk.content
        index = self._opened(writable=False)
        tried("load", index.load)
        is_value("the findings of a read-only index", ["index_rebuilt"], [each.code for each in index.findings])
        code = self._rng.choice(_HASHES)
        everything = _without_repeats(
            put[1] for each in reversed(self._files) for put in reversed(each.puts) if put[0] == code
        )
        found = tried("candidates", lambda: list(index.candidates(code, -(1 << 63), (1 << 63) - 1)))
        is_value(f"the candidates of hash {code} of a read-only index", everything, found)
        tried("close", index.close)
        are_files("a read-only index", before, self._disk.content)
        self._disk = disk


def _fill(files: list[_File], puts: list[_Put], most: int) -> None:
    for put in puts:
        if not files or len(files[-1].puts) == most - 1:
            time, offset = (files[-1].puts[-1][2], files[-1].puts[-1][1]) if files else (0, 0)
            files.append(_File((max(0, time), max(0, offset))))
        files[-1].puts.append(put)


def _columns(puts: list[_Put]) -> IndexPuts:
    return IndexPuts(*([put[at] for put in puts] for at in range(3)))


def _without_repeats(offsets: Iterator[int]) -> list[int]:
    found: list[int] = []
    for offset in offsets:
        if not found or found[-1] != offset:
            found.append(offset)
    return found


# ---- names -----------------------------------------------------------------------------------------------------------


def _names(rng: random.Random) -> None:
    """Compare names of new files: the time of the clock, and always later than the last name."""
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(12):
        last_ms, step_ms = rng.randrange(1 << 42), rng.choice((-(10**9), -1, 0, 1, 2, 10**6))
        name = _name(begin + timedelta(milliseconds=last_ms))
        later = _name(begin + timedelta(milliseconds=max(last_ms + 1, last_ms + step_ms)))
        is_answered("the first name", name, name_after, "", last_ms)
        is_answered("the name after another", later, name_after, name, last_ms + step_ms)
        is_answered(f"the check of the name {name}", True, is_index_name, name)
        is_answered("the check of a shorter name", False, is_index_name, name[:-1])
        is_answered("the check of a longer name", False, is_index_name, f"{name}0")
    for text in (
        "9998123123595999",
        "00000101000000000",
        "20240230000000000",
        "20240101240000000",
        "99990000000000000",
    ):
        is_answered(f"the check of the name {text}", False, is_index_name, text)
    for text in ("99981231235959999", "20240229235959999", "00010101000000000"):
        is_answered(f"the check of the name {text}", True, is_index_name, text)
    is_answered("the name after a name that is no time", REFUSED, name_after, "20240230000000000", 0)


def _name(moment: datetime) -> str:
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"
