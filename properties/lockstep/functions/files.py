"""Compare a mapped file, the marks of reads, and the warm-up with a reference.

A program of operations runs on a mapped file of a disk in memory. The reference is a plain list of bytes with four
positions: written, committed, flushed, and the begin of the blank.
"""

import random
from collections import Counter

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, WarmUp
from tornpage.impl.io.files import Mapping, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.io.zeros import CHUNK_BYTES, first_nonzero
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value

__all__ = ["check"]

_SIZES = (256, 4096, 5000, 12_288)
_BASES = (0, 4096, 1 << 40)
_STEPS = 40
_BLANK = bytes.fromhex("cbd43194")


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    for kept_open, buffered in ((True, False), (True, True), (False, False)):  # a buffer needs an open file
        _Program(rng, kept_open=kept_open, buffered=buffered).run()
    _marks(rng)
    _zeros()
    _warm_ups()


class _Disk(LastDisk):
    """A disk in memory that counts its calls."""

    def __init__(self) -> None:
        super().__init__(EMPTY_DISK, disk="posix-strict")
        self.make_directory("/d")
        self.calls: Counter[str] = Counter()

    def sync(self, file: OpenFile) -> None:
        self.calls["sync"] += 1
        super().sync(file)

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        self.calls["populated"] += size_bytes
        super().populate(mapping, position, size_bytes)

    def lock_memory(self, mapping: Mapping) -> bool:
        self.calls["lock"] += 1
        return super().lock_memory(mapping)

    def unlock_memory(self, mapping: Mapping) -> None:
        self.calls["unlock"] += 1
        super().unlock_memory(mapping)

    def advise_will_need(self, mapping: Mapping) -> None:
        self.calls["advice"] += 1
        super().advise_will_need(mapping)


def _file(disk: LastDisk, size_bytes: int) -> OpenFile:
    file = disk.create("/d/f")
    disk.allocate(file, size_bytes)
    return file


class _Program:
    """Runs operations on one mapped file and compares it after each."""

    def __init__(self, rng: random.Random, *, kept_open: bool, buffered: bool) -> None:
        self._rng, self._disk, self._buffered = rng, _Disk(), buffered
        self._size, self._base = rng.choice(_SIZES), rng.choice(_BASES)
        self._file = MappedFile(
            self._disk, _file(self._disk, self._size), base_offset=self._base, written_position=0, kept_open=kept_open
        )
        self._written = self._committed = self._flushed = 0
        self._blank: int | None = None
        self._bytes, self._shown = bytearray(self._size), bytearray(self._size)
        self._asks, self._beyond, self._readers = 0, self._size, 0
        self._kept_open, self._failed = kept_open, False
        is_value("whether a new file has a buffer", False, self._file.has_buffer)
        if buffered:
            self._file.use_buffer(memoryview(bytearray(self._size)))

    def run(self) -> None:
        """Run the program. Raises GuaranteeBroken."""
        self._compare("open")
        steps = (self._append, self._append, self._append, self._commit, self._flush, self._erase, self._ask,
                 self._hold, self._release, self._rewrite, self._blanked)  # fmt: skip
        for _ in range(_STEPS):
            step = self._rng.choice(steps)
            step()
            self._compare(step.__name__)
        if self._buffered:
            self._file.commit()
            taken = self._file.take_buffer()
            is_value("the buffer taken from a file", self._size, 0 if taken is None else len(taken))
            is_answered("a second buffer of a file", None, self._file.take_buffer)
            is_value("whether a file has a buffer that was taken", False, self._file.has_buffer)
        self._end()

    def _compare(self, after: str) -> None:
        file, base, size = self._file, self._base, self._size
        if not self._buffered:
            self._committed = self._written
            self._shown[:] = self._bytes
        for name, value in (
            ("written_position", self._written),
            ("committed_position", self._committed),
            ("flushed_position", self._flushed),
            ("blank_position", self._blank),
            ("is_full", self._written == size),
            ("end_offset", base + size),
            ("size_bytes", size),
            ("path", "/d/f"),
            ("has_buffer", self._buffered),
            ("is_unreferenced", False),
        ):
            is_value(f"{name} of a file after {after}", value, getattr(file, name))
        is_value(f"the content of a file after {after}", bytes(self._shown), bytes(file.view))
        for offset in (base - 1, base, base + size - 1, base + size):
            is_answered(
                f"whether a file after {after} holds an offset", base <= offset < base + size, file.holds, offset
            )
        for position in (0, self._written - 1, self._written, size - 1):
            may = self._blank is None or position < self._blank
            is_answered(f"whether a record may be in a file after {after}", may, file.may_hold_record, position)
        is_answered(f"the check of a file after {after}", None, file.check)
        is_value("how often a file asked for pages", self._asks, self._asks_made)

    _asks_made = 0

    def _append(self) -> None:
        room = self._size - self._written
        if room <= 8 or self._blank is not None:
            return
        data = bytes(self._rng.randrange(1, 256) for _ in range(self._rng.randrange(1, min(room - 8, 300) + 1)))
        end = self._written + len(data)
        if end > self._beyond:
            self._asks, self._beyond = self._asks + 1, self._size
        self._file.append(bytearray(data))
        self._bytes[self._written : end] = data
        self._written = end

    def _blanked(self) -> None:
        if self._blank is None and self._written < self._size and self._rng.random() < 0.2:
            self._blank = self._written
            blank = (self._size - self._written).to_bytes(4, "big") + _BLANK
            self._bytes[self._written : self._written + 8] = blank
            self._file.append_blank()
            self._written = self._size

    def _commit(self) -> None:
        self._file.commit()
        if self._buffered:
            self._committed, self._shown[:] = self._written, self._bytes

    def _flush(self) -> None:
        fails = self._rng.random() < 0.1
        disk = self._disk
        disk.failing_syncs = int(fails)
        syncs = disk.calls["sync"]
        wanted = self._committed if self._buffered else self._written
        is_needed = wanted != self._flushed
        try:
            self._file.flush()
        except OSError:
            if not self._failed and not (fails and is_needed):
                raise GuaranteeBroken(9, "a flush of a file fails although its sync does not") from None
            self._failed = True
        else:
            if self._failed or (fails and is_needed):
                raise GuaranteeBroken(9, "a flush of a file succeeds although a sync has failed")
            self._flushed = wanted
            is_value("the syncs of a flush", int(is_needed), disk.calls["sync"] - syncs)
        disk.failing_syncs = 0

    def _erase(self) -> None:
        """Leave half of a record behind, as an append does that fails."""
        room = self._size - self._written
        count = min(room, self._rng.choice((1, 20)))
        self._file.target[self._written : self._written + count] = b"x" * count
        self._file.erase_failed_append(self._rng.choice((count, room, room + 9)))

    def _ask(self) -> None:
        beyond = min(self._size, self._written + self._rng.choice((0, 1, 150)))

        def ask() -> None:
            self._asks_made += 1

        self._file.ask_for_pages(ask, beyond=beyond)
        self._beyond = beyond

    def _hold(self) -> None:
        is_answered("whether an open file can be held", True, self._file.hold)
        self._readers += 1

    def _release(self) -> None:
        if self._readers:
            self._readers -= 1
            self._file.release()

    def _rewrite(self) -> None:
        start = self._rng.randrange(self._size)
        self._file.rewrite(start, min(self._size, start + self._rng.choice((1, 700))))
        self._file.sync()

    def _end(self) -> None:
        """Zero a range, then close the file while readers hold it."""
        file, disk = self._file, self._disk
        content = bytearray(file.view)
        start = self._rng.randrange(self._size)
        count = min(self._size - start, self._rng.choice((1, 300)))
        file.zero(start, count)
        content[start : start + count] = bytes(count)
        is_value("the content of a file with zeros", bytes(content), bytes(file.view))
        for position in (0, start, start + count, self._size):
            found = next((at for at in range(position, self._size) if content[at]), None)
            is_answered("the first byte of a file that is not zero", found, file.first_nonzero, position)
        for _ in range(2):
            is_answered("the close of a file", None, file.close)
        is_answered("whether a closed file can be held", False, file.hold)
        for left in range(self._readers, 0, -1):
            is_value(f"whether a file with {left} readers is unreferenced", False, file.is_unreferenced)
            is_answered("whether a file with readers is unmapped", False, file.unmap_if_unused)
            is_value("the content of a closed file", bytes(content), bytes(file.view))
            file.release()
        is_value("whether a file without readers is unreferenced", True, file.is_unreferenced)
        is_answered("whether a file without readers is unmapped", True, file.unmap_if_unused)
        is_value("what a closed file leaves open", [], list(disk.leaks()))


def _marks(rng: random.Random) -> None:
    """Compare which records of a file are trusted."""
    for size, appended_from in ((4096, 1024), (64, 0), (100, 100), (1 << 20, 1 << 20)):
        marks, verified = ReadMarks(size, appended_from=appended_from, generation=3), set[int]()
        for _ in range(12):
            position = min(size - 1, rng.choice((0, 63, 64, 511, 512, rng.randrange(size), size - 1)))
            if rng.random() < 0.5:
                marks.add(position)
                verified.add(position // 64)
            for asked in {position, max(0, position - 64), min(size - 1, position + 64), appended_from}:
                expected = asked >= appended_from or asked // 64 in verified
                is_answered(f"whether the record at {asked} is trusted", expected, marks.trusts, asked)
        is_value("the generation of marks", 3, marks.generation)


def _zeros() -> None:
    """Compare the first byte that is not zero, beside the ends of chunks."""
    size = 2 * CHUNK_BYTES + 3
    for at in (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, size - 1):
        content = bytearray(size)
        content[at] = 1
        for position in (0, at - 1, at, at + 1):
            if position >= 0:
                expected = at if position <= at else None
                is_answered("the first byte that is not zero", expected, first_nonzero, memoryview(content), position)


def _warm_ups() -> None:
    """Compare what a warm-up leaves: zeros, populated pages, a lock, syncs.

    The lock of a file ends with the flush that makes all of it durable.
    """
    for kind in WarmUp:
        for pages in (1, 300):
            disk, size = _Disk(), pages * 4096
            file = MappedFile(disk, _file(disk, size), base_offset=0, written_position=0)
            policy = AllocationPolicy(warm_up=kind, flush_least_pages_when_warm_mapped_file=100)
            file.warm_up(policy, FlushDiskType.SYNC_FLUSH)
            is_warm = kind is not WarmUp.NONE
            name = f"of the warm-up {kind.name} of {pages} pages"
            is_value(f"the syncs {name}", -(-pages // 100) * (kind is WarmUp.TOUCH_AND_FORCE), disk.calls["sync"])
            is_value(f"the populated bytes {name}", size * (kind is WarmUp.POPULATE), disk.calls["populated"])
            is_value(f"the locks and advices {name}", (is_warm, is_warm), (disk.calls["lock"], disk.calls["advice"]))
            is_value(f"the content {name}", bytes(size), bytes(file.view))
            file.append(bytearray(b"x"))
            file.flush()
            is_value(f"the ends of a lock before the end {name}", 0, disk.calls["unlock"])
            file.append_blank()
            file.flush()
            is_value(f"the ends of a lock at the end {name}", int(is_warm), disk.calls["unlock"])
            file.close()
            is_value(f"what is left open {name}", [], list(disk.leaks()))
