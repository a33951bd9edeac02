"""Helpers of the read tests: a log dispatched by hand, and queues with scripted answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.impl.records import record_of
from tests.support.impl.stores import queue_of
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Clock
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.message import Message
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.queue.units import UNIT, Unit
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.queue_pull import TransferLimits
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.read.read_path import ReadPath
from tornpage.impl.store import MessageStore

__all__ = ["PREFILL", "FakeExt", "FakeQueue", "FakeQueues", "Log", "Reader", "limits_of"]

PREFILL = Unit(0, 0x7FFFFFFF, 0)


@dataclass
class FakeExt:
    """An extension as a mapping."""

    units: dict[int, ExtUnit] = field(default_factory=dict)

    def get(self, address: int) -> ExtUnit | None:
        return self.units.get(address)


@dataclass
class FakeQueue:
    """A queue with scripted answers."""

    topic: str = "T"
    queue_id: int = 0
    min_offset: int = 0
    stored: list[Unit] = field(default_factory=list)
    ext: FakeExt | None = None

    @property
    def key(self) -> QueueKey:
        return self.topic.encode(), self.queue_id

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self.stored)

    def unit(self, number: int) -> Unit | None:
        found = list(self.units(number, 1))
        return None if not found or found[0].is_prefill else found[0]

    def units(self, number: int, limit: int) -> Iterable[Unit]:
        index = number - self.min_offset
        return self.stored[index : index + limit] if index >= 0 else []

    def unit_bytes(self, number: int, limit: int) -> bytes:
        return b"".join(UNIT.pack(*unit) for unit in self.units(number, limit))


@dataclass
class FakeQueues:
    """A table of queues."""

    queues: list[FakeQueue] = field(default_factory=list)

    def find(self, topic: str, queue_id: int) -> FakeQueue | None:
        return next((queue for queue in self.queues if (queue.topic, queue.queue_id) == (topic, queue_id)), None)

    def all(self) -> Iterable[FakeQueue]:
        return self.queues


def limits_of(**changes: int) -> TransferLimits:
    """Return limits that no read reaches, with the given exceptions."""
    values = dict.fromkeys(
        ("bytes_in_memory", "count_in_memory", "bytes_in_disk", "count_in_disk", "memory_bytes"), 1 << 40
    )
    return TransferLimits(**(values | changes))


class _HidingReader(LogReader):
    """Hides the last bytes of a log from its readers."""

    def __init__(self, hiding: "Log") -> None:
        super().__init__(hiding.files, check=check_record, buffers=hiding.buffers)
        self._hiding = hiding

    @property
    def readable_end(self) -> int:
        """The end of the log without the hidden bytes."""
        return self._hiding.end - self._hiding.hidden_bytes


class Log:
    """A commit log of small files with single puts, each with a unit in a queue of `queues`."""

    def __init__(self, directory: Path, *, file_bytes: int = 1024) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.files: MappedFileQueue = queue_of(directory, OsFiles(), file_bytes=file_bytes)
        self.buffers = ReadBuffers()
        self.queues = FakeQueues()
        self.hidden_bytes = 0
        self.reader = _HidingReader(self)

    @property
    def end(self) -> int:
        """The end of the log."""
        return self.files.max_offset

    def put(self, message: Message, *, store_timestamp: int = 1, tags_code: int = 0, queue_offset: int | None = None,
            units: bool = True) -> int:  # fmt: skip
        """Append a message to log and queue; return its physical offset."""
        queue = self.queue(message.topic, message.queue_id)
        number = queue.max_offset if queue_offset is None else queue_offset
        size = len(record_of(message))
        last = self.files.mapped[-1] if self.files.mapped else None
        if last is None or last.size_bytes - last.written_position < size + 8:
            following = self.files.next_file()
            if last is not None and not last.is_full:
                last.append_blank()
            self.files.add(following)
        offset = self.files.max_offset
        record = record_of(message, queue_offset=number, physical_offset=offset, store_timestamp=store_timestamp)
        self.files.mapped[-1].append(record)
        if units:
            queue.stored.append(Unit(offset, size, tags_code))
        return offset

    def queue(self, topic: str = "T", queue_id: int = 0) -> FakeQueue:
        """Return a queue, made if it is missing."""
        found = self.queues.find(topic, queue_id)
        if found is None:
            found = FakeQueue(topic, queue_id)
            self.queues.queues.append(found)
        return found

    def reads(
        self,
        limits: TransferLimits | None = None,
        *,
        dispatch: MultiDispatch | None = None,
        corrects_offsets: bool = True,
    ) -> QueueReads:
        """Return the reads of its queues."""
        return QueueReads(
            self.queues,
            self.reader,
            records=QueuedRecords(dispatch),
            limits=limits or limits_of(),
            corrects_offsets=corrects_offsets,
        )

    def drop_first_file(self) -> None:
        """Remove the oldest file, as retention does."""
        self.files.mapped = self.files.mapped[1:] if len(self.files.mapped) > 1 else self.files.mapped

    def close(self) -> None:
        """Release everything."""
        self.buffers.shut()
        self.files.close()


class Reader(MessageStore):
    """The reads that a store would have with another configuration."""

    def __init__(self, store: MessageStore, config: MessageStoreConfig, clock: Clock, *, memory_bytes: int = 0) -> None:
        derived = store._held.derived
        self._reads = ReadPath(
            store._log,
            derived.queues,
            derived.index,
            lifecycle=store._lifecycle,
            flags=store.running_flags,
            config=config,
            clock=clock,
            parts=Parts(),
            dispatch=store._held.dispatch,
            files=OsFiles(),
            memory_bytes=memory_bytes,
        )
