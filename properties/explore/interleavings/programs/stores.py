"""Benches of a whole store for the locks that only the store as a whole uses."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import ClassVar

from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.errors import StoreClosed
from tornpage.impl.io.files import OpenFile
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.inodes import recorded
from tornpage.properties.disk.journal import Entry as JournalEntry
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.programs.bench import Bench, Failing, call, program, require_rule
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.judge.evidence import durable_image
from tornpage.properties.judge.small_files import physic_timestamp
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT, file_at
from tornpage.properties.program.translation import store_config

__all__ = ["BENCHES", "LockedDisk"]

_SETTINGS = Settings(file_bytes=1024, queue_units=3, index=False)
_BUDGET_BYTES = 1 << 26
_BODIES = (b"0", b"1", b"2")
_EXPIRY_MS = 100 * 3_600_000
_STEPS_OF_A_CLEAN_UP = 6
_FLUSH_QUEUES_MS = 60_000
"""After this time a round of the flush of queues flushes everything, and writes the checkpoint."""

_BATCH = encode_batch_body([BatchMember(b"1"), BatchMember(b"2")])


class LockedDisk(UnmarkedDisk):
    """A recorded disk of one store, which sees what happens without the lock of the directory.

    `broken` is the first violation: a change or a sync after the last lock was released, or a file that is mapped when
    it is. While `readers` is not 0, a read may still hold a mapping. While `is_examined`, a bench reads the files, and
    nothing is a violation. The next syncs of the folder `config` fail for the
    task that plans it with `failing`.
    """

    def __init__(self) -> None:
        super().__init__(EMPTY_DISK, tracker=CompareTracker(), budget_bytes=_BUDGET_BYTES)
        self.failing = Failing()
        self.broken = ""
        self.readers = 0
        self.is_examined = False
        self._locks = 0
        self._was_locked = False

    def lock(self, file: OpenFile) -> bool:
        """Take a lock, and count those that are held."""
        has_it = super().lock(file)
        self._locks += has_it
        self._was_locked = self._was_locked or has_it
        return has_it

    def close(self, file: OpenFile) -> None:
        """Close a file, and look at the mappings if that releases the last lock."""
        self._locks -= recorded(file).holds_lock
        is_last = recorded(file).holds_lock and not self._locks
        if is_last and self._mapped and not self.readers:
            self._break(f"{len(self._mapped)} files are mapped when the lock of the directory is released")
        super().close(file)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write under the lock."""
        self._require_lock(f"a write to {file.path}")
        super().pwrite(file, data, offset)

    def sync_directory(self, path: str) -> None:
        """Sync a directory, or fail if that is planned."""
        if path.endswith("/config") and self.failing.is_due():
            raise OSError(5, "planned failure", path)
        super().sync_directory(path)

    def _note(self, *entries: JournalEntry) -> None:
        self._require_lock(", ".join(type(entry).__name__ for entry in entries))
        super()._note(*entries)

    def _require_lock(self, what: str) -> None:
        if self._was_locked and not self._locks and not self.is_examined:
            self._break(f"{what} after the lock of the directory was released")

    def _break(self, sentence: str) -> None:
        self.broken = self.broken or sentence


class StoreBench(Bench):
    """Flushes, deletions, rounds of services and closes of one store.

    One task of a drawn program closes the store, since a second close returns before the first one ends. After the last
    lock of the directory is released, nothing may be written and no file may be mapped.
    """

    modules: ClassVar[tuple[str, ...]] = (
        "tornpage.impl.store",
        "tornpage.impl.durability",
        "tornpage.impl.retention.retention",
    )
    is_slow = True
    settings = _SETTINGS

    def __init__(self) -> None:
        self.runners: dict[str, SteppedRunner] = {}
        self.now_ms = BORN_TIMESTAMP
        self.files = LockedDisk()
        self.held: list[GetMessageResult] = []
        self.store = self.opened()

    def opened(self) -> MessageStore:
        """Open the store of this bench."""
        return MessageStore.open(
            ROOT,
            store_config(self.settings),
            files=self.files,
            clock=self._clock,
            parts=stepped_parts(Parts(), runner=self._runner),
            memory_bytes=1 << 33,
        )

    def _clock(self) -> int:
        return self.now_ms

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.runners[service.name] = SteppedRunner(service, self._clock)
        return runner

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Context of a read, which may hold a mapping until it ends.

        A closed store has no answer.
        """
        self.files.readers += 1
        try:
            with suppress(StoreClosed):
                yield
        finally:
            self.files.readers -= 1

    def put(self, number: int) -> str:
        answer = self.store.put(Message("T", b"%d" % number))
        return answer.status.name

    def get(self) -> None:
        """Read the first record. A close refuses puts before reads, so only the body is judged."""
        is_there = self.store.max_offset > 0
        with self.reading():
            found = self.store.get(0)
            if is_there:
                require_rule(found.message is not None, "a record is there, and not found", found=found.status.name)
            if found.message is not None:
                body = bytes(found.message.body)
                require_rule(body in _BODIES, "a read returns another body than a put stored", contract=11, found=body)

    def hold(self) -> None:
        """Pull messages, and keep their buffers. A close takes them back."""
        with self.reading():
            self.held.append(self.store.get_message("T", 0, 0))

    def flush(self) -> None:
        """Flush.

        A close refuses puts before flushes, so it is not compared whether the store was closed.
        """
        with suppress(StoreClosed):
            self.store.flush()

    def delete(self) -> None:
        """Delete all topics. A close refuses puts before deletions, so the names are not compared."""
        with suppress(StoreClosed):
            self.store.clean_unused_topics(())

    def clean(self) -> None:
        self.runners["clean"].step()

    def dispatch(self) -> None:
        self.runners["reput"].step()

    def close(self) -> None:
        self.store.close()

    def state(self) -> object:
        self.store.close()
        journal = len(self.files.journal)
        self.store.close()
        require_rule(len(self.files.journal) == journal, "a closed store writes", contract=11)
        require_rule(not self.files._mapped, "a closed store leaves a file mapped", contract=11)
        require_rule(
            not self.files.broken, "a store uses its directory without the lock", contract=14, found=self.files.broken
        )
        return self.store.read_only_reason, sorted(self.files.paths())

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2)),
        entry("put", (1,)).then("dispatch"),
        entry("flush"),
        entry("delete"),
        entry("clean", role="clean"),
        entry("get"),
        entry("hold"),
        entry("close", role="closer"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("store", [call("close")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("close")], [call("close")], before=[call("put", 1)]),
        program("store", [call("close")], [call("delete")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("put", 2)], before=[call("put", 1)]),
        program("store", [call("close")], [call("put", 2), call("delete")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("delete"), call("put", 2)], before=[call("put", 1), call("dispatch")]),
        program("store", [call("flush")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("delete")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("delete")], [call("delete")], before=[call("put", 1), call("dispatch")]),
    )


class ClosingBench(StoreBench):
    """Closes of one store in any number of tasks, beside everything else.

    A close that comes second returns before the first one ends. So no answer is compared, only the end.
    """

    programs = ()

    def put(self, number: int) -> str:
        super().put(number)
        return ""

    def state(self) -> object:
        super().state()
        return ""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("close"),
        entry("put", (1,)).then("dispatch"),
        entry("flush"),
        entry("delete"),
        entry("hold"),
    )


class ExpiringBench(StoreBench):
    """Deletions on request beside clean-ups.

    At the begin the store has an expired file and a deleted topic. The file of deleted topics belongs to both. What it
    says, and the queues of the next open, have to be those of an order of whole calls.
    """

    modules: ClassVar[tuple[str, ...]] = (
        "tornpage.impl.dispatch.deleted_topics",
        "tornpage.impl.retention.clean_commit_log",
        "tornpage.impl.retention.retention",
        "tornpage.impl.retention.topic_cleaning",
    )
    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.put_to(0)
        self.delete()
        while self.store.max_offset < _SETTINGS.file_bytes:
            self.put_to(1)
        self.store.flush()
        self.now_ms += _EXPIRY_MS

    def put_to(self, topic: int) -> None:
        """Put and dispatch a message."""
        self.store.put(Message(f"T{topic}", b"1"))
        self.runners["reput"].step()

    def delete_fails(self) -> None:
        """Delete all topics while their list can neither be made durable nor be written back."""
        with self.files.failing.planned(), self.files.failing.planned(), suppress(OSError, StoreClosed):
            self.store.clean_unused_topics(())

    def expire(self) -> None:
        """Clean up until the service pauses for longer than between two files."""
        with suppress(StoreClosed):
            self.store.delete_expired_files_manually()
            for _ in range(_STEPS_OF_A_CLEAN_UP):
                self.runners["clean"].step()

    def state(self) -> object:
        super().state()
        found = DeletedTopics(self.files, f"{ROOT}/config/deletedTopics")
        found.load()
        self.store = self.opened()
        ranges = [(key, self.store.max_offset_in_queue(*key)) for key in self.store.queues()]
        self.store.close()
        return sorted(found.offsets.items()), ranges

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("expire", role="clean"),
        entry("delete"),
        entry("put_to", (0, 1, 2)).then("delete"),
        entry("delete_fails"),
        entry("put_to", (0, 2)),
    )


class PutsBench(StoreBench):
    """Puts, with the numbers and statistics that they get, beside whatever keeps them out."""

    modules: ClassVar[tuple[str, ...]] = ("tornpage.impl.log.commit_log", "tornpage.impl.put.put_path")
    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.answers: list[PutResult] = []
        self.put_to(0, 0)
        self.now_ms += 1  # so that the time of this record differs from those that the tasks put

    def put_to(self, topic: int, queue: int) -> object:
        return self._answered(self.store.put(Message(f"T{topic}", b"1", queue_id=queue)))

    def put_batch(self, topic: int) -> object:
        return self._answered(self.store.put_batch(MessageBatch(f"T{topic}", _BATCH)))

    def _answered(self, answer: PutResult) -> object:
        self.answers.append(answer)
        return answer.status.name, answer.offset, answer.queue_offset

    def statistics(self) -> int:
        return self.store._puts.statistics().message_count

    def close(self) -> None:
        self.is_closed = True
        super().close()

    def state(self) -> object:
        content = b"".join(
            self.files.peek(path, 0, _SETTINGS.file_bytes)
            for path in sorted(self.files.paths())
            if "/commitlog/" in path
        )
        stored = [answer for answer in self.answers if answer.stored]
        magics = [content[answer.offset + 4 : answer.offset + 8] for answer in stored]
        require_rule(all(any(magic) for magic in magics), "a put that was answered is not in the log", contract=2)
        places = [answer.offset for answer in stored]
        require_rule(len(places) == len(set(places)), "two puts have one place", found=places)
        if not self.is_closed:
            self._require_true_checkpoint()
        statistics = self.statistics()
        super().state()
        return "closed" if self.is_closed else (content, statistics)

    def _require_true_checkpoint(self) -> None:
        """Require that a checkpoint made now is not newer than the newest durable record."""
        self.now_ms += _FLUSH_QUEUES_MS
        self.runners["flush-queues"].step()
        image = durable_image(self.files, disk="posix-strict")
        newest = 0
        for answer in self.answers:
            begin = answer.offset % _SETTINGS.file_bytes
            path = file_at(answer.offset - begin, file_bytes=_SETTINGS.file_bytes, log_paths=1)
            durable = image.files.get(path, b"")[begin : begin + answer.size_bytes]
            if answer.stored and durable == self.files.peek(path, begin, answer.size_bytes):
                newest = max(newest, answer.store_timestamp)
        says = physic_timestamp(image)
        require_rule(says <= newest, "the checkpoint is newer than the durable log", contract=9, found=says - newest)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put_to", (0, 1), (0, 1)),
        entry("put_batch", (0, 1)),
        entry("delete"),
        entry("flush"),
        entry("statistics"),
        entry("close", role="closer"),
    )


class DispatchBench(PutsBench):
    """Dispatch, by its service and by callers that drain it, beside deletions."""

    modules = (
        "tornpage.impl.dispatch.reput",
        "tornpage.impl.dispatch.derived",
        "tornpage.impl.queue.consume_queues",
        "tornpage.impl.retention.topic_cleaning",
    )

    def drain(self) -> None:
        self.store._reput.drain()

    def state(self) -> object:
        is_open = self.store._lifecycle.shut != "closed"
        if is_open:
            self.store._reput.drain()
        keys = sorted(self.store.queues()) if is_open else []
        ends = [(key, self.store.max_offset_in_queue(*key)) for key in keys]
        return super().state(), ends

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put_to", (0, 1), (0, 1)).then("dispatch"),
        entry("put_to", (0, 1), (0, 1)).then("drain"),
        entry("drain"),
        entry("delete"),
        entry("close", role="closer"),
    )


class ReceivingBench(StoreBench):
    """A slave, whose link appends what the master has sent."""

    modules = ("tornpage.impl.log.commit_log", "tornpage.impl.put.receiving")
    settings = replace(_SETTINGS, role="SLAVE")
    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.data, self.ends = _records()
        self.received = 0

    def receive(self, count: int) -> None:
        """Append the next records."""
        begin = self.store.max_offset
        ends = [end for end in self.ends if end > begin][:count]
        if ends and self.store._lifecycle.shut != "closed":
            found = self.store.append_to_commit_log(begin, memoryview(self.data)[begin : ends[-1]])
            self.received = max(self.received, begin + found.appended_bytes)

    def state(self) -> object:
        self.store.close()
        path = next((path for path in sorted(self.files.paths()) if "/commitlog/" in path), "")
        content = self.files.peek(path, 0, self.received) if path else b""
        is_there = content == self.data[: self.received]
        require_rule(is_there, "received records are not in the log", contract=2, found=self.received)
        super().state()
        return ""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("receive", (1, 2), role="link"),
        entry("flush"),
        entry("get"),
        entry("close", role="closer"),
    )


@cache
def _records() -> tuple[bytes, tuple[int, ...]]:
    """Return the records of a master and their ends."""
    master = StoreBench()
    ends = []
    for number in range(5):
        answer = master.store.put(Message("T", b"%d" % number))
        ends.append(answer.offset + answer.size_bytes)
    path = next(path for path in sorted(master.files.paths()) if "/commitlog/" in path)
    return bytes(master.files.peek(path, 0, ends[-1])), tuple(ends)


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "store": StoreBench,
    "closing": ClosingBench,
    "expiring": ExpiringBench,
    "puts": PutsBench,
    "dispatch": DispatchBench,
    "receiving": ReceivingBench,
}
