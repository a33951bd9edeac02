"""Helpers of the store tests: a settable clock, disks that fail on request, small stores."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.impl.faulty_files import FaultyFiles, ScriptedDisk
from tests.support.impl.hand_runner import HandDriven, HandRunner
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, WarmUp
from tornpage.impl.dispatch.arriving import Arrival, MessageArrivingListener
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.time_outs import Request
from tornpage.impl.store import MessageStore

__all__ = [
    "MESSAGE",
    "Arrivals",
    "FaultyFiles",
    "HandDriven",
    "HandRunner",
    "ScriptedDisk",
    "ScriptedReplicas",
    "SetClock",
    "caught_up",
    "chain_of",
    "config_of",
    "fill_to",
    "log_bytes",
    "maker_of",
    "open_store",
    "put",
    "queue_of",
    "snapshot",
    "watermarks",
]

_PATIENCE_S = 30

MESSAGE = Message("TopicTest", b"body", queue_id=1, born_host=("127.0.0.1", 50000), born_timestamp=1_700_000_000_000)


class SetClock:
    """A clock with a set time, or one millisecond more at each call if `ticking`."""

    def __init__(self, now_ms: int = 1_700_000_000_001, *, ticking: bool = False) -> None:
        self.now_ms = now_ms
        self.calls = 0
        self._ticking = ticking

    def __call__(self) -> int:
        self.calls += 1
        self.now_ms += self._ticking
        return self.now_ms


class ScriptedReplicas:
    """Replicas with a scripted acknowledgement; give `lambda: replicas` to `Parts.replicas`.

    `confirms` answers each request at once; None leaves it open, in `requests`.
    """

    def __init__(self, *, acknowledged_offset: int | None = 0, confirms: bool | None = True) -> None:
        self.acknowledged_offset = acknowledged_offset
        self.confirms = confirms
        self.requests: list[Request] = []

    def request(self, request: Request) -> None:
        """Give the scripted answer."""
        self.requests.append(request)
        if self.confirms is not None:
            self.answer(-1, confirms=self.confirms)

    def answer(self, number: int = 0, *, confirms: bool = True) -> None:
        """Answer a request that was left open."""
        request = self.requests[number]
        request.answer(PutStatus.PUT_OK if confirms else request.timeout_status)


def config_of(
    *, file_bytes: int = 1024, sync: bool = False, trailer: bool = True, record_bytes_max: int = 1 << 20
) -> MessageStoreConfig:
    """Return the configuration of a small store.

    It makes each file on demand, and has small queues and indexes.
    """
    return MessageStoreConfig(
        mapped_file_size_commit_log=file_bytes,
        max_message_size=record_bytes_max,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
        record_checksum="record" if trailer else "body",
        mapped_files_ahead=0,
        mapped_file_size_consume_queue=400,
        max_hash_slot_num=16,
        max_index_num=64,
    )


def open_store(
    directory: Path,
    *,
    file_bytes: int = 1024,
    sync: bool = False,
    trailer: bool = True,
    record_bytes_max: int = 1 << 20,
    files: OsFiles | None = None,
    clock: Callable[[], int] | None = None,
    config: MessageStoreConfig | None = None,
    parts: Parts | None = None,
    arriving: Sequence[MessageArrivingListener] = (),
) -> MessageStore:
    """Open a small store on a real directory; a `config` replaces the single settings."""
    return MessageStore.open(
        directory,
        config or config_of(file_bytes=file_bytes, sync=sync, trailer=trailer, record_bytes_max=record_bytes_max),
        files=files or OsFiles(),
        clock=clock or SetClock(ticking=True),
        parts=parts,
        listeners=arriving,
    )


def maker_of(
    directory: Path,
    files: OsFiles,
    *,
    file_bytes: int = 256,
    files_ahead: int = 0,
    warm_up: WarmUp = WarmUp.NONE,
    sync: bool = False,
) -> LogFileMaker:
    """Return a maker of small log files in one directory."""
    return LogFileMaker(
        files,
        LogDirectories(files, [str(directory)], read_only=(), file_bytes=file_bytes, clean_forcibly_ratio=0.85),
        file_bytes=file_bytes,
        mapped_file=MappedFile,
        policy=AllocationPolicy(files_ahead=files_ahead, warm_up=warm_up),
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
    )


def queue_of(directory: Path, files: OsFiles, *, file_bytes: int = 256) -> MappedFileQueue:
    """Return an empty sequence of small files in one directory, each made on demand."""
    maker = maker_of(directory, files, file_bytes=file_bytes)
    return MappedFileQueue(
        maker, AllocateMappedFiles(maker, policy=AllocationPolicy(files_ahead=0), runner=HandRunner())
    )


def put(store: MessageStore, message: Message | MessageBatch) -> PutResult:
    """Put a message or a batch."""
    return store.put_batch(message) if isinstance(message, MessageBatch) else store.put(message)


def fill_to(store: MessageStore, end_offset: int) -> None:
    """Put one message whose record ends at an offset of the last file."""
    overhead_bytes = 120 if store._commit_log._trailer else 100
    room_bytes = end_offset - store.max_offset
    result = store.put(replace(MESSAGE, body=bytes(max(0, room_bytes - overhead_bytes))))
    missing_bytes = end_offset - store.max_offset
    assert (result.status, missing_bytes) == (PutStatus.PUT_OK, 0), missing_bytes


def caught_up(store: MessageStore) -> MessageStore:
    """Return a store after the dispatch of all puts, by its threads or by this one."""
    store._reput.drain()
    assert not store.dispatch_behind_bytes, store.dispatch_error
    return store


class Arrivals:
    """A listener of a store with a wait; `heard` has the arrived messages."""

    def __init__(self) -> None:
        self.heard: list[Arrival] = []
        self._changed = threading.Condition()

    def __call__(self, arrival: Arrival) -> None:
        with self._changed:
            self.heard.append(arrival)
            self._changed.notify_all()

    def of(self, topic: str) -> list[Arrival]:
        """Return the arrived messages of a topic."""
        return [arrival for arrival in self.heard if arrival.topic == topic]

    def wait_for(self, count: int, topic: str) -> None:
        """Return after this many messages of a topic have arrived, however long that takes."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.of(topic)) >= count, _PATIENCE_S), len(self.of(topic))


def watermarks(store: MessageStore) -> tuple[int, int, int, int]:
    """Return the four offsets of contract 9, in their order."""
    store.check()
    return store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset


def snapshot(directory: Path) -> dict[str, bytes | None]:
    """Return every path below a directory with its bytes (None for a directory)."""
    return {
        str(path.relative_to(directory)): None if path.is_dir() else path.read_bytes()
        for path in sorted(directory.rglob("*"))
    }


def log_bytes(directory: Path) -> dict[str, bytes]:
    """Return the commit log files by name."""
    return {path.name: path.read_bytes() for path in sorted((directory / "commitlog").iterdir()) if path.is_file()}


def chain_of(error: BaseException) -> str:
    """Return the message of an error, which has to be a single line."""
    text = str(error)
    assert text
    assert "\n" not in text
    return text
