"""Benches of the files of queues, of the index and of the log, on a recorded disk."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import ClassVar, cast

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.memory import LockedMemory
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.message.dispatching import IndexPuts
from tornpage.impl.queue.directory_tree import DirectoryTree
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.programs.bench import Bench, Failing, require_rule
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.scheduler import CooperativeLock

__all__ = ["BENCHES"]

_BUDGET_BYTES = 1 << 24
_MAPPED = partial(MappedFile, guard=lambda: CooperativeLock("mapped file"))


def _guard() -> CooperativeLock:
    return CooperativeLock("guard")


class _Disk(UnmarkedDisk):
    """A recorded disk on which the next removal or sync of a directory of one task may fail."""

    def __init__(self) -> None:
        super().__init__(EMPTY_DISK, tracker=CompareTracker(), budget_bytes=_BUDGET_BYTES)
        self.removals, self.directory_syncs = Failing(), Failing()

    def unlink(self, path: str) -> None:
        if self.removals.is_due():
            raise OSError(5, "planned failure", path)
        super().unlink(path)

    def sync_directory(self, path: str) -> None:
        if self.directory_syncs.is_due():
            raise OSError(5, "planned failure", path)
        super().sync_directory(path)


class _DiskBench(Bench):
    """A part on a recorded disk, with the promises that it has made."""

    def __init__(self) -> None:
        self.disk = _Disk()
        self.disk.make_directory(ROOT)
        self.promises: list[tuple[int, str, int]] = []

    def promise(self, path: str, size_bytes: int) -> None:
        """Note that the first bytes of a file were reported as durable."""
        self.promises.append((len(self.disk.journal), path, size_bytes))

    def require_promises(self) -> None:
        """Check that what was reported as durable survives a power loss. Raises GuaranteeBroken."""
        state, applied = DiskState(self.disk.base, disk="posix-strict"), 0
        there = set(self.disk.paths())
        for journal, path, size_bytes in self.promises:
            state.apply_all(self.disk.journal[applied:journal])
            applied = journal
            inode = state.names.get(path)
            if path in there:
                durable = b"" if inode is None else bytes(state.inodes[inode].durable[:size_bytes])
                found = f"{len(durable)} bytes" if inode is not None else "no file"
                is_kept = durable == self.disk.peek(path, 0, size_bytes)
                require_rule(is_kept, f"{path} was reported as durable to {size_bytes}", contract=2, found=found)

    def require_files(self, used: Iterable[str], among: str) -> None:
        """Check that the files below a directory are those in use. Raises GuaranteeBroken."""
        there = sorted(path for path in self.disk.paths() if path.startswith(among))
        require_rule(there == sorted(used), f"the files below {among} are not those in use", found=there)

    def require_closed(self) -> None:
        """Check that no file is mapped any more. Raises GuaranteeBroken."""
        require_rule(not self.disk._mapped, "a closed file stays mapped", contract=11, found=len(self.disk._mapped))


_UNIT = 20
_QUEUE_FILE = 2 * _UNIT


class QueueFilesBench(_DiskBench):
    """The files of one queue. One thread appends, cuts and removes, others flush."""

    modules = ("tornpage.impl.queue.queue_files",)

    def __init__(self) -> None:
        super().__init__()
        self.files = QueueFiles(
            self.disk,
            f"{ROOT}/consumequeue/T/0",
            tree=DirectoryTree(self.disk, ROOT),
            file_bytes=_QUEUE_FILE,
            writable=True,
            top=f"{ROOT}/consumequeue",
            mapped_file=_MAPPED,
            guard=_guard,
        )
        self.is_closed = False
        self.appended = 0
        self.deletions = 0

    def append(self, units: int) -> None:
        if self.is_closed:
            return
        if not self.files.mapped:
            self.files.begin(0)
        for _ in range(units):
            self.appended += 1
            self.files.append(b"%020d" % self.appended)

    def flush(self) -> None:
        """Flush, and note the promise unless the flushed files were removed meanwhile."""
        deletions = self.deletions
        end = self.files.flush()
        for mapped in self.files.mapped if self.deletions == deletions else ():
            if mapped.base_offset < end:
                self.promise(mapped.path, min(end - mapped.base_offset, _QUEUE_FILE))

    def drop_before(self, position: int) -> None:
        self.files.drop_before(position)

    def drop_fails(self, position: int) -> None:
        """Remove files while a removal fails."""
        with self.disk.removals.planned(), suppress(OSError):
            self.files.drop_before(position)

    def delete_fails(self) -> None:
        with self.disk.removals.planned(), suppress(OSError):
            self.delete()

    def delete(self) -> None:
        """Remove all files, as the deletion of a queue does."""
        if not self.is_closed:
            self.files.cut(0)
            self.deletions += 1
            self.promises.clear()

    def close(self) -> None:
        self.is_closed = True
        self.files.close()

    def state(self) -> object:
        self.require_promises()
        content = self.files.read(self.files.first_position, 1_000)
        self.files.flush()
        waiting = [mapped.path for mapped in self.files.mapped if mapped.flushed_position < mapped.written_position]
        require_rule(not waiting, "a flush leaves a file out", contract=2, found=waiting)
        if not self.is_closed:
            self.require_files([mapped.path for mapped in self.files.mapped], f"{ROOT}/consumequeue/")
        self.files.close()
        self.require_closed()
        return content, sorted(self.disk.paths())

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("append", (1, 2, 3), role="dispatch"),
        entry("drop_before", (_QUEUE_FILE, 2 * _QUEUE_FILE), role="dispatch"),
        entry("drop_fails", (2 * _QUEUE_FILE,), role="dispatch"),
        entry("delete", role="dispatch"),
        entry("delete_fails", role="dispatch"),
        entry("close", role="dispatch"),
        entry("flush"),
    )


class FullQueueFilesBench(QueueFilesBench):
    """The files of a queue that has two files with units that are not durable."""

    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.append(3)


class IndexBench(_DiskBench):
    """The files of the index. One thread puts and removes files, others flush."""

    modules = ("tornpage.impl.index.index_service", "tornpage.impl.index.index_file")
    codes = 3

    def __init__(self) -> None:
        super().__init__()
        self.index = IndexService(
            self.disk,
            f"{ROOT}/index",
            slots=2,
            entries_max=4,
            clock=lambda: 1,
            writable=True,
            index_file=partial(IndexFile, guard=_guard),
            mapped_file=_MAPPED,
            guard=_guard,
        )
        self.offset = 0

    def put(self, count: int) -> None:
        offsets = range(self.offset + 100, self.offset + 100 * count + 1, 100)
        self.offset += 100 * count
        codes = tuple(offset // 100 % self.codes for offset in offsets)
        self.index.put(IndexPuts(codes, tuple(offsets), (1_000,) * count))

    def query(self, code: int) -> list[int]:
        return list(self.index.candidates(code, 0, 2_000))

    def drop_expired(self, log_min: int) -> int:
        return self.index.drop_expired(log_min)

    def drop_fails(self, log_min: int, is_sync: int) -> None:
        """Remove files while a removal, or the sync of one, fails."""
        failing = self.disk.directory_syncs if is_sync else self.disk.removals
        with failing.planned(), suppress(OSError):
            self.index.drop_expired(log_min)

    def flush(self) -> None:
        self.index.flush()

    def refuse(self, count: int) -> None:
        """Let the next creations of a file fail."""
        self.disk.refused_files = count

    def state(self) -> object:
        self.disk.refused_files = 0
        self.index.check()
        found = [self.query(code) for code in range(self.codes)]
        require_rule(self.index.flush() == 0, "a flush of everything leaves entries out", contract=2)
        self.require_files([each.path for each in self.index._index_files], f"{ROOT}/index/")
        self.index.close()
        self.require_closed()
        return found, len(self.disk.paths())

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2, 3, 6), role="dispatch"),
        entry("put", (6,), role="dispatch").then("drop_expired", (350, 650)),
        entry("put", (6,), role="dispatch").then("drop_fails", (350, 650), (0, 1)),
        entry("drop_expired", (350, 650), role="dispatch"),
        entry("refuse", (1, 2), role="dispatch").then("put", (1, 4)).then("refuse", (0,)),
        entry("flush"),
    )


class FullIndexBench(IndexBench):
    """The files of an index that has three files with entries that are not durable."""

    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.put(7)


class IndexQueriesBench(IndexBench):
    """Queries beside puts. Each put has one entry, since a query may find a part of more."""

    codes = 2
    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1,), role="dispatch"),
        entry("query", (0, 1)),
    )


_LOG_FILE = 32
_RECORD = 16


class _Memory:
    def __init__(self, size_bytes: int) -> None:
        self.view = memoryview(bytearray(size_bytes))

    def release(self) -> None:
        return None


class LogFilesBench(_DiskBench):
    """The files of the log. One thread puts, others commit, flush and delete."""

    modules = ("tornpage.impl.log.mapped_file_queue",)
    buffers = 0

    def __init__(self) -> None:
        super().__init__()
        directories = LogDirectories(
            self.disk, (f"{ROOT}/commitlog",), read_only=(), file_bytes=_LOG_FILE, clean_forcibly_ratio=0.85
        )
        self.disk.make_directory(f"{ROOT}/commitlog")
        policy = AllocationPolicy(files_ahead=0)
        maker = LogFileMaker(
            self.disk,
            directories,
            file_bytes=_LOG_FILE,
            mapped_file=_MAPPED,
            policy=policy,
            flush_disk_type=FlushDiskType.ASYNC_FLUSH,
        )
        allocation = AllocateMappedFiles(maker, policy=policy, runner=lambda service: SteppedRunner(service, lambda: 0))
        self.log = MappedFileQueue(maker, allocation, guard=_guard)
        self.pool = TransientStorePool(self.buffers, _LOG_FILE, reserve=cast(Callable[[int], LockedMemory], _Memory))
        if self.buffers:
            self.log.use_pool(self.pool)
        self.is_closed = False
        self.puts = 0

    def put(self, count: int) -> None:
        for _ in range(0 if self.is_closed else count):
            self.puts += 1
            last = self.log.mapped[-1] if self.log.mapped else None
            if last is None or last.is_full:
                last = self.log.next_file()
                self.log.add(last)
            last.append(bytearray(b"%016d" % self.puts))

    def commit(self) -> None:
        self.log.commit()

    def flush(self) -> None:
        end = self.log.flush()
        for mapped in list(self.log.mapped):
            if mapped.base_offset < end:
                self.promise(mapped.path, min(end - mapped.base_offset, _LOG_FILE))

    def drop_first(self) -> None:
        """Remove the first file if it is durable and not the last one."""
        if len(self.log.mapped) > 1 and self.log.mapped[0].end_offset <= self.log.flushed_where:
            self.log.remove(self.log.drop_first())

    def close(self) -> None:
        self.is_closed = True
        self.log.close()

    def state(self) -> object:
        self.require_promises()
        if not self.is_closed:
            self.log.check()
        self.log.commit()
        flushed = self.log.flush()
        require_rule(self.is_closed or flushed == self.log.max_offset, "a flush leaves bytes out", contract=2)
        first, content = self.log.min_offset, [bytes(mapped.view) for mapped in self.log.mapped]
        self.log.close()
        free = self.pool.free
        require_rule(free == self.buffers, "a closed log keeps a buffer", contract=11, found=free)
        return first, content

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2, 3), role="put lock"),
        entry("flush"),
        entry("commit"),
        entry("flush", role="cleaner").then("drop_first"),
    )


class PooledLogFilesBench(LogFilesBench):
    """The files of a log whose puts write into buffers."""

    buffers = 2


class ClosingLogFilesBench(LogFilesBench):
    """A log that is closed. No file is removed then, since the store stops its cleaner first."""

    buffers = 2

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2, 3), role="put lock"),
        entry("close", role="put lock"),
        entry("flush"),
        entry("commit"),
    )


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "queue files": QueueFilesBench,
    "full queue files": FullQueueFilesBench,
    "index": IndexBench,
    "full index": FullIndexBench,
    "index queries": IndexQueriesBench,
    "log files": LogFilesBench,
    "pooled log files": PooledLogFilesBench,
    "closing log files": ClosingLogFilesBench,
}
