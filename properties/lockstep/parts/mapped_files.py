"""Run programs of log files, with and without a pool, beside a list (contracts 8, 9).

A log is a list of files of one size, each with its bytes and with what was written, committed and flushed. The
reference has no mappings, locks or buffers:

1. A new file begins where the last one ends. It takes the buffer that was returned last. Without a free buffer it has
   none, or it is refused with ENOBUFS if the log fails fast. A file that is not made leaves its buffer free.
2. A file without a buffer is committed as far as it is written. A commit takes the files with a buffer in order, each
   if the page rule says so. It ends at the first one that is not committed to its end. The others lose their buffer.
3. A file shows the committed bytes and then zeros. A blank is the word of its size and the magic number.
4. A flush begins with the file that has the flushed offset, and takes each file if the page rule says so. It ends at
   the first one that is not flushed to its end. It syncs each file that it takes once, and no other file.
5. After a failed sync a file stays unusable for flushes, and readers see the flushed bytes only.
6. The page rule: there are new bytes, and the file is full, or the rule asks for no page, or the end of the bytes
   lies as many pages after the end of the old ones.
7. The first file leaves the log at once. A reader that holds it reads on, and no new reader can hold it.
8. A failed call takes back what reads know of verified records. A file then trusts what is appended later.
9. An offset lies in the last file that has it. Files after one are removed in order, the last one first.
10. At the end all buffers are free, and no file is open or mapped.
"""

import errno
import logging
import random
import struct
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, reports_a_break, tried

__all__ = ["check"]

_PAGE = 4096
_BLANK_BYTES = 8
_BLANK_MAGIC = -875286124
_PROGRAMS = 6
_OPERATIONS = 30
_LOADS = 6
_ROOT = "/part"
_IO = "EIO"


def check(rng: random.Random) -> None:
    """Run programs of log files, and load some. Raises GuaranteeBroken."""
    log = logging.getLogger("tornpage.store")
    was_disabled, log.disabled = log.disabled, True  # the failed attempts are meant
    try:
        for _ in range(_PROGRAMS):
            _Program(rng).run()
        for _ in range(_LOADS):
            _load(rng)
        _pool_without_memory(rng)
    finally:
        log.disabled = was_disabled


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class _Disk(PartDisk):
    """A part's disk that notes the synced files.

    The sync with the number `failing_sync_in` fails, if that is not 0.
    """

    def __init__(self, image: Image | None = None) -> None:
        super().__init__(image)
        self.synced: list[str] = []
        self.failing_sync_in = 0

    def sync(self, file: OpenFile) -> None:
        """Sync a file, or fail."""
        self.synced.append(file.path)
        if self.failing_sync_in:
            self.failing_sync_in -= 1
            if not self.failing_sync_in:
                raise OSError(errno.EIO, "a sync that was chosen to fail", file.path)
        super().sync(file)


class _Memory:
    """Stands for locked memory, with bytes of an earlier user."""

    def __init__(self, size_bytes: int) -> None:
        self.view = memoryview(bytearray(b"\xee" * size_bytes))
        self.is_released = False

    def release(self) -> None:
        """Note the end."""
        is_value("whether memory of the pool was released before", False, self.is_released)
        self.is_released = True


class _Runner:
    """Runs the service of the files ahead while a put waits, and on demand."""

    def __init__(self, service: AllocateMappedFiles) -> None:
        self._service = service
        self._now_ms = 0

    def wake(self) -> None:
        """Do nothing: the program runs the service."""

    def stop(self) -> None:
        """Do nothing."""

    def wait(self, answer: Future[None], *, timeout_ms: int) -> None:
        """Run one step for a put."""
        self._service.step(self._now_ms)
        is_value("whether a step of the service answers the put", True, answer.done())

    def run(self) -> None:
        """Run until no file is missing."""
        self._now_ms += 10_000
        while tried("a step of the allocation", lambda: self._service.step(self._now_ms)) is not None:
            pass


# ---- the reference ---------------------------------------------------------------------------------------------------


@dataclass
class _File:
    """A file: bytes that were written, and how far they are committed and flushed.

    `buffer` is the number of its buffer in the pool. `trusted_from` and `marked_in` say what reads trust, and
    since which failure.
    """

    base: int
    size: int
    data: bytearray = field(default_factory=bytearray)
    written: int = 0
    flushed: int = 0
    buffer: int | None = None
    buffered: int = 0
    is_failed: bool = False
    trusted_from: int = 0
    marked_in: int = 0

    @property
    def committed(self) -> int:
        """Return how far the file shows its bytes."""
        return self.written if self.buffer is None else self.buffered

    @property
    def shown(self) -> bytes:
        """Return the content of the file."""
        return bytes(self.data[: self.committed]).ljust(self.size, b"\0")

    def is_due(self, done: int, end: int, pages: int) -> bool:
        """Return whether bytes from `done` to `end` are moved by a page rule."""
        return end > done and (self.written == self.size or not pages or end // _PAGE - done // _PAGE >= pages)


class _Program:
    """One log, with real files on a recorded disk, and its reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._disk = _Disk()
        self._size = rng.choice((1024, 2 * _PAGE, 3 * _PAGE + 512))
        self._ahead = rng.choice((0, 0, 1, 2))
        self._first = self._size * rng.choice((0, 0, 3))
        self._fails_fast = rng.random() < 0.3
        self._populates = rng.choice((0, 0, 100))
        self._files: list[_File] = []
        self._ready: set[int] = set()
        self._free: list[int] = []
        self._has_pool = False
        self._flushed = self._failures = 0
        self._asks = self._asked = 0
        self._is_asking = False
        self._held: list[tuple[MappedFile, bytes]] = []
        maker = _maker(self._disk, self._size)
        self._allocation = AllocateMappedFiles(maker, policy=AllocationPolicy(self._ahead), runner=self._runner_of)
        self._queue = MappedFileQueue(
            maker, self._allocation, fast_fail=self._fails_fast, populate_ahead_bytes=self._populates,
            verified=VerifiedRecords("once"),
        )  # fmt: skip
        count = rng.choice((0, 1, 2, 3))
        self._memories: list[_Memory] = []
        self._pool = TransientStorePool(count, self._size, reserve=self._reserve)

    def _runner_of(self, service: Any) -> Any:
        self._runner = _Runner(service)
        return self._runner

    def _reserve(self, size_bytes: int) -> Any:
        is_value("the size of a buffer", self._size, size_bytes)
        self._memories.append(_Memory(size_bytes))
        return self._memories[-1]

    def run(self) -> None:
        """Run the operations of one program, and compare after each."""
        operations: tuple[tuple[int, Callable[[], None]], ...] = (
            (10, self._append), (4, self._roll), (4, self._commit), (4, self._flush), (2, self._drop_first),
            (1, self._use_pool), (1, self._populate), (1, self._release),
        )  # fmt: skip
        weights, choices = zip(*operations, strict=True)
        self._compare()
        for _ in range(_OPERATIONS):
            self._rng.choices(choices, weights)[0]()
            self._compare()
        self._break_an_invariant()
        self._end()

    # ---- operations ----------------------------------------------------------------------------------------------

    def _use_pool(self) -> None:
        if not self._has_pool:
            self._queue.use_pool(self._pool)
            self._queue.want_pages = self._ask
            self._has_pool, self._free = True, list(range(len(self._memories)))

    def _ask(self) -> None:
        self._asked += 1

    def _append(self) -> None:
        """Append bytes, often up to the last blank, to the end of the file, or past a page."""
        if not self._files:
            return
        rng, last = self._rng, self._files[-1]
        room = last.size - last.written
        sizes = (1, 7, 100, _PAGE - 1, _PAGE, _PAGE + 1, room - _BLANK_BYTES, room, -last.written % _PAGE)
        count = rng.choice(sizes)
        if not 0 < count <= room or room - _BLANK_BYTES < count < room:
            return
        data = rng.randbytes(count)
        tried("append", lambda: self._queue.mapped[-1].append(bytearray(data)))
        if self._is_asking:  # the first append after a request for pages
            self._asks, self._is_asking = self._asks + (self._queue.want_pages is not None), False
        last.data += data
        last.written += count

    def _populate(self) -> None:
        tried("populate_last", self._queue.populate_last)
        self._is_asking = self._is_asking or bool(self._populates and self._files)

    def _roll(self) -> None:
        """Make the next file; end the last one and add it, or give it back."""
        rng, queue = self._rng, self._queue
        base = self._files[-1].base + self._size if self._files else self._first
        is_refused = self._has_pool and not self._free and self._fails_fast
        while True:
            failed = self._disk.failed
            self._disk.failing_in = rng.choice((0, 0, 1, 2, 3, 4, 5, 6))
            try:
                mapped = tried("next_file", lambda: queue.next_file(self._first))
                break
            except OSError as error:
                expected = errno.ENOBUFS if is_refused else errno.EIO
                is_value("the error of a file that is not made", expected, error.errno)
                is_value("whether a call has failed for a file", not is_refused, self._disk.failed > failed)
                if is_refused:
                    return
                self._failures += 1
                self._ready |= self._run_ahead(base, is_wanted=True)
                self._compare()
            finally:
                self._disk.failing_in = 0
        is_value("whether a file is made without a buffer", False, is_refused)
        is_value("the begin of a new file", base, mapped.base_offset)
        self._ready.discard(base)
        self._ready |= self._run_ahead(base)
        number = self._free.pop() if self._free else None
        self._has_buffer(mapped, number)
        is_value("the files of a log before a new one is added", len(self._files), len(queue.mapped))
        if rng.random() < 0.2:
            tried("give_back", lambda: queue.give_back(mapped))
            self._ready.add(base)
            self._free += [] if number is None else [number]
            return
        if self._files and (room := self._size - self._files[-1].written):
            last, blank = self._files[-1], struct.pack(">ii", room, _BLANK_MAGIC)
            tried("append_blank", queue.mapped[-1].append_blank)
            last.data += blank.ljust(room, b"\0")
            last.written = self._size
        tried("add", lambda: queue.add(mapped))
        self._files.append(_File(base, self._size, buffer=number, marked_in=self._failures))
        self._is_asking = bool(self._populates)
        if len(self._files) == 1:
            self._flushed = base

    def _run_ahead(self, base: int, *, is_wanted: bool = False) -> set[int]:
        """Let the service make the files that are asked for, and return them."""
        self._runner.run()
        numbers = range(0 if is_wanted else 1, self._ahead + 1) if self._ahead else ()
        return {base + number * self._size for number in numbers}

    def _has_buffer(self, mapped: MappedFile, number: int | None) -> None:
        is_value("whether a file has a buffer", number is not None, mapped.has_buffer)
        expected = mapped.view.obj if number is None else self._memories[number].view.obj
        is_value("whether appends go to the right memory", True, mapped.target.obj is expected)

    def _commit(self) -> None:
        pages = self._rng.choice((0, 0, 1, 2))
        failing = self._disk.failing_in = self._rng.choice((0, 0, 0, 1, 2))
        wanted: object = False
        targets = {file.buffer: found.target for file, found in zip(self._files, self._queue.mapped, strict=True)}
        for file in self._files:
            if file.buffer is None:
                continue
            if file.is_due(file.buffered, file.written, pages):
                failing -= 1
                if not failing:
                    wanted, self._failures = _IO, self._failures + 1
                    break
                file.buffered, wanted = file.written, True
            if file.buffered < file.size:
                break
            self._free.append(file.buffer)
            file.buffer = None
        try:
            moved: object = tried("commit", lambda: self._queue.commit(pages))
        except OSError:
            moved = _IO
        self._disk.failing_in = 0
        is_value("whether a commit moves bytes", wanted, moved)
        for number, target in targets.items():
            if number in self._free:
                is_value("whether a returned buffer can be used", False, _is_usable(target))
                is_answered("a buffer that is returned again", REFUSED, self._pool.give_back, target)

    def _flush(self) -> None:
        pages = self._rng.choice((0, 0, 1, 2))
        failing = self._disk.failing_sync_in = self._rng.choice((0,) * 12 + (1, 2))
        synced, is_error = list[str](), False
        for file in self._files:
            if file.base + file.size <= self._flushed:
                continue
            if file.is_due(file.flushed, file.committed, pages):
                if not file.is_failed:
                    synced.append(f"{_ROOT}/{file.base:020d}")
                    failing -= 1
                    file.is_failed = not failing
                if file.is_failed:
                    is_error, self._failures = True, self._failures + 1
                    break
                file.flushed = file.committed
                self._flushed = file.base + file.flushed
            if file.flushed < file.size:
                break
        self._disk.synced.clear()
        try:
            found: object = tried("flush", lambda: self._queue.flush(pages))
        except OSError:
            found = _IO
        self._disk.failing_sync_in = 0
        is_value("the flushed offset that a flush returns", _IO if is_error else self._flushed, found)
        is_value("the files that a flush syncs", synced, self._disk.synced)

    def _drop_first(self) -> None:
        """Take the first file out of the log once it is durable, often while a reader holds it."""
        if len(self._files) < 2 or self._files[0].flushed < self._size:
            return
        file, first = self._files.pop(0), self._queue.mapped[0]
        is_held = self._rng.random() < 0.4
        if is_held:
            is_answered("a reader of the first file", True, first.hold)
            self._held.append((first, file.shown))
        dropped = tried("drop_first", self._queue.drop_first)
        is_value("whether the first file is dropped", True, dropped is first)
        is_answered("a reader of a dropped file", False, first.hold)
        is_value("the file of an offset in a dropped file", None, self._queue.find(file.base))
        for _ in range(9):
            self._disk.failing_in = self._rng.choice((0, 1, 2))
            try:
                tried("remove", lambda: self._queue.remove(first))
                break
            except OSError:
                continue
        self._disk.failing_in = 0
        tried("remove", lambda: self._queue.remove(first))  # a repeated call accepts a missing name
        is_value("the durable name of a dropped file", False, f"{_ROOT}/{file.base:020d}" in self._disk.durable.files)

    def _release(self) -> None:
        """Let the readers of dropped files end: they still read what was there."""
        for mapped, shown in self._held:
            is_value("what a reader of a dropped file sees", shown.hex(), mapped.view.hex())
            mapped.release()
            is_value("whether a file without readers is mapped", True, mapped.unmap_if_unused())
        self._held.clear()

    def _break_an_invariant(self) -> None:
        """Break one watermark or the order of the files: the check has to report it."""
        queue = self._queue
        tried("check", queue.check)
        flushed, mapped = queue.flushed_where, queue.mapped
        queue.flushed_where = queue.max_offset + 1
        reports_a_break("the check of a log that is flushed past its end", queue.check)
        queue.flushed_where = flushed
        is_value("how often reads verify", "once", queue.verified.setting)
        is_value("the size of a file", self._size, queue.file_bytes)
        for file in mapped[:1]:
            flushed, file.flushed_position = file.flushed_position, file.committed_position + 1
            reports_a_break("the check of a log with a broken file", queue.check)
            file.flushed_position = flushed
        if len(mapped) > 2:
            queue.mapped = [mapped[0], *mapped[2:]]
            reports_a_break("the check of a log with a gap", queue.check)
        if len(mapped) > 1 and not mapped[0].has_buffer:
            queue.mapped = mapped
            mapped[0].written_position -= 1
            reports_a_break("the check of a log with a file that ends early", queue.check)
            mapped[0].written_position += 1
        queue.mapped = mapped

    def _end(self) -> None:
        """Close: buffers return, files stay, files that were made ahead are removed."""
        self._release()
        lent = [file.buffer for file in self._files if file.buffer is not None]
        is_early = self._has_pool and self._rng.random() < 0.3
        if is_early:
            is_value("the buffers on loan at the end of a pool", len(lent), self._pool.close())
        tried("close", self._queue.close)
        is_value("the bounds of a closed log", (0, 0, 0), (self._queue.min_offset, self._queue.max_offset,
                                                           self._queue.committed_where))  # fmt: skip
        is_value("the file of an offset in a closed log", None, self._queue.find(self._flushed))
        tried("close", self._allocation.close)
        is_value("the open and mapped files of a closed log", (0, 0), self._disk.held)
        is_value("the files of a closed log", [file.base for file in self._files], self._names())
        if not is_early:
            is_value("the free buffers of a closed log", len(self._memories), self._pool.free)
            is_value("the buffers on loan at the end of a pool", 0, self._pool.close())
        is_value("the memory that a pool keeps", [], [each for each in self._memories if not each.is_released])
        is_answered("a loan of a closed pool", None, self._pool.borrow)
        is_answered("the loans of a pool that is closed again", 0, self._pool.close)

    # ---- comparing -----------------------------------------------------------------------------------------------

    def _names(self) -> list[int]:
        return [int(path.rpartition("/")[2]) for path in self._disk.paths() if ".unfinished/" not in path]

    def _compare(self) -> None:
        files, queue = self._files, self._queue
        begin, end = (files[0].base, files[-1].base + files[-1].written) if files else (0, 0)
        committed = next((file.base + file.buffered for file in files if file.buffer is not None), end)
        failed = [file for file in files if file.is_failed]
        is_value("the bounds of a log", (begin, self._flushed, committed, end),
                 (queue.min_offset, queue.flushed_where, queue.committed_where, queue.max_offset))  # fmt: skip
        is_value("the end for readers", self._flushed if failed else committed, queue.readable_end)
        path = f"{_ROOT}/{failed[0].base:020d}" if failed else None
        is_value("the path of a file whose sync failed", path, queue.failed_path)
        is_value("the files of a log", [file.base for file in files], [each.base_offset for each in queue.mapped])
        is_value("the free buffers", len(self._free) if self._has_pool else len(self._memories), self._pool.free)
        is_value("the requests for pages", self._asks, self._asked)
        is_value("the files on the disk", sorted({*self._ready, *(file.base for file in files)}), self._names())
        mapped = len(files) + len(self._ready) + len(self._held)
        is_value("the open and mapped files of a log", (mapped, mapped), self._disk.held)
        durable = self._disk.durable.files
        for file, found in zip(files, queue.mapped, strict=True):
            self._compare_file(file, found, durable[f"{_ROOT}/{file.base:020d}"])
        for offset in {place + by for file in files for place in (file.base, file.base + file.size) for by in (-1, 0)}:
            expected = next((file.base for file in files if file.base <= offset < file.base + file.size), None)
            is_answered(f"the file of the offset {offset}", expected, lambda offset=offset: _base_at(queue, offset))

    def _compare_file(self, file: _File, found: MappedFile, durable: bytes) -> None:
        name = f"the file at {file.base}"
        watermarks = file.flushed, file.committed, file.written
        is_value(f"the watermarks of {name}", watermarks,
                 (found.flushed_position, found.committed_position, found.written_position))  # fmt: skip
        is_value(f"the content of {name}", file.shown.hex(), found.view.hex())
        is_value(f"the durable bytes of {name}", file.shown[: file.flushed].hex(), durable[: file.flushed].hex())
        is_value(f"the size of the durable file {name}", file.size, len(durable))
        self._has_buffer(found, file.buffer)
        if self._rng.random() < 0.5:  # a file without a read has the marks of its begin
            return
        if file.marked_in != self._failures:
            file.trusted_from, file.marked_in = file.written, self._failures
        is_value(f"from where on reads trust {name}", file.trusted_from,
                 self._queue.verified.marks_of(found).appended_from)  # fmt: skip


def _pool_without_memory(rng: random.Random) -> None:
    """Make a pool whose memory ends: it keeps none of it, and says why."""
    count, memories = rng.randrange(4), list[_Memory]()

    def reserve(size_bytes: int) -> Any:
        if len(memories) == count:
            raise OSError(errno.ENOMEM, "no memory")
        memories.append(_Memory(size_bytes))
        return memories[-1]

    try:
        tried("a pool", lambda: TransientStorePool(count + rng.choice((1, 2)), _PAGE, reserve=reserve))
        code: int | None = None
    except OSError as error:
        code = error.errno
    is_value("the error of a pool without memory", errno.ENOMEM, code)
    is_value("the memory that such a pool keeps", [], [each for each in memories if not each.is_released])


def _is_usable(buffer: memoryview) -> bool:
    try:
        buffer[0]
    except ValueError:
        return False
    return True


def _base_at(queue: MappedFileQueue, offset: int) -> int | None:
    found = queue.find(offset)
    return None if found is None else found.base_offset


def _maker(disk: PartDisk, size: int) -> LogFileMaker:
    directories = LogDirectories(disk, (_ROOT,), read_only=(), file_bytes=size, clean_forcibly_ratio=0.85)
    return LogFileMaker(
        disk, directories, file_bytes=size, mapped_file=MappedFile, policy=AllocationPolicy(0),
        flush_disk_type=FlushDiskType.ASYNC_FLUSH,
    )  # fmt: skip


# ---- files that an open finds ----------------------------------------------------------------------------------------


def _load(rng: random.Random) -> None:
    """Map files with gaps and of other sizes, look for offsets, and end the log early."""
    size = 1024
    numbers = (
        sorted(rng.sample(range(7), rng.choice((0, 1, 2, 3, 4, 5))))
        if rng.random() < 0.5
        else range(rng.choice((1, 3)))
    )
    files = {number * size: rng.choice((size, size, size, 512, size + 512, 2 * size)) for number in numbers}
    content = {f"{_ROOT}/{base:020d}": rng.randbytes(count) for base, count in files.items()}
    disk = _Disk(Image(frozenset(("/", _ROOT)), content))
    is_writable = rng.random() < 0.7
    maker = _maker(disk, size)
    factory: Any = _Runner
    queue = MappedFileQueue(maker, AllocateMappedFiles(maker, policy=AllocationPolicy(0), runner=factory))
    for path in content:
        tried("adopt", lambda path=path: queue.adopt(path, writable=is_writable))  # type: ignore[misc]
    found = [(each.base_offset, each.size_bytes, each.written_position, each.flushed_position) for each in queue.mapped]
    is_value("files that an open finds", [(base, count, count, 0) for base, count in files.items()], found)
    is_value("the end of a log that an open finds", _end_of(files), queue.max_offset)
    is_value("how often reads verify without a setting", "always", queue.verified.setting)
    if not files:
        tried("end_at", partial(queue.end_at, 0))
        return
    places = {place + by for base, count in files.items() for place in (base, base + count) for by in (-1, 0, 1)}
    for offset in sorted(places):
        holders = [base for base, count in files.items() if base <= offset < base + count]
        whole = [base for base in holders if _in_order(files, base, offset, size)]
        expected = next(iter(whole or holders[-1:]), None)
        is_answered(f"the file of the offset {offset} in {files}", expected, _base_at, queue, offset)
    kept = list(files)
    if is_writable and rng.random() < 0.5:
        index = rng.randrange(len(kept))
        disk.failing_in = rng.choice((0, 0, 1, 2, 3, 4))
        try:
            tried("drop_after", lambda: queue.drop_after(index))
            wanted = kept[: index + 1]
        except OSError:
            wanted = kept[: len(queue.mapped) + 1]  # the file whose removal failed may have its name
        disk.failing_in = 0
        del kept[max(index + 1, len(queue.mapped)) :]
        for image in (disk.content, disk.durable.files):
            bases = [int(path[-20:]) for path in sorted(image)]
            is_value("whether removed files are the last ones", list(files)[: len(bases)], bases)
            is_value("whether removed files stay", True, len(kept) <= len(bases) <= len(wanted))
    else:
        offset = rng.choice(sorted(places))
        tried("end_at", partial(queue.end_at, offset))
        while len(kept) > 1 and kept[-1] >= offset:
            kept.pop()
        written = min(max(0, offset - kept[-1]), files[kept[-1]])
        is_value("the end of a log that ends early", kept[-1] + written, queue.max_offset)
        is_value("the files of a log that ends early", content, disk.content)
    is_value("the files of a shortened log", kept, [each.base_offset for each in queue.mapped])
    is_value("the open and mapped files of a shortened log", (len(kept), len(kept)), disk.held)
    tried("close", queue.close)
    is_value("the open and mapped files of a closed log", (0, 0), disk.held)


def _end_of(files: dict[int, int]) -> int:
    """Return the end of the last file, 0 without files."""
    return list(files)[-1] + list(files.values())[-1] if files else 0


def _in_order(files: dict[int, int], base: int, offset: int, size: int) -> bool:
    """Return whether a file is where a log without gaps has it."""
    return list(files).index(base) == (offset - next(iter(files))) // size
