"""What the tests of the store share: a clock that is told the time, disks that fail on order, small stores."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from impl.components import Components
from impl.config import MessageStoreConfig
from impl.files import DiskUsage, FileStat, Mapping, OpenFile
from impl.message import Message, MessageBatch, PutResult
from impl.os_files import OsFiles
from impl.policy import FlushDiskType
from impl.runner import Step
from impl.store import MessageStore

__all__ = [
    "MESSAGE",
    "FaultyFiles",
    "HandRunner",
    "ScriptedDisk",
    "ScriptedReplicas",
    "SetClock",
    "chain_of",
    "config_of",
    "log_bytes",
    "open_store",
    "put",
    "snapshot",
    "watermarks",
]

MESSAGE = Message("TopicTest", b"body", queue_id=1, born_host=("127.0.0.1", 50000), born_timestamp=1_700_000_000_000)


class SetClock:
    """A clock that says what it was last told, or one millisecond more at each call if `ticking`."""

    def __init__(self, now_ms: int = 1_700_000_000_001, *, ticking: bool = False) -> None:
        self.now_ms = now_ms
        self.calls = 0
        self._ticking = ticking

    def __call__(self) -> int:
        self.calls += 1
        self.now_ms += self._ticking
        return self.now_ms


class FaultyFiles(OsFiles):
    """The real disk, with a log of barriers and faults on order.

    `faults` maps a verb to a function of the path that may raise; `on_mark` is called with each label.
    """

    def __init__(self) -> None:
        self.faults: dict[str, Callable[[str], None]] = {}
        self.on_mark: Callable[[str], None] | None = None
        self.calls: list[tuple[str, str]] = []

    def _call(self, verb: str, path: str) -> None:
        self.calls.append((verb, path))
        if verb in self.faults:
            self.faults[verb](path)

    def fail(self, verb: str, *, code: int = errno.EIO, part: str = "", times: int = 1 << 30, skip: int = 0) -> None:
        """Let `verb` fail for paths that contain `part`, after `skip` good calls, `times` times."""
        left = [skip, times]

        def fault(path: str) -> None:
            if part not in path:
                return
            if left[0]:
                left[0] -= 1
            elif left[1]:
                left[1] -= 1
                raise OSError(code, os.strerror(code), path)

        self.faults[verb] = fault

    def mend(self) -> None:
        """Let everything succeed again."""
        self.faults.clear()

    def create(self, path: str) -> OpenFile:
        self._call("create", path)
        return super().create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        self._call("open", path)
        return super().open(path, writable=writable)

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        self._call("allocate", file.path)
        super().allocate(file, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        self._call("map", file.path)
        return super().map(file)

    def pwrite(self, file: OpenFile, data: bytes, offset: int) -> None:
        self._call("pwrite", file.path)
        super().pwrite(file, data, offset)

    def sync(self, file: OpenFile) -> None:
        self._call("sync", file.path)
        super().sync(file)

    def sync_directory(self, path: str) -> None:
        self._call("sync_directory", path)
        super().sync_directory(path)

    def unlink(self, path: str) -> None:
        self._call("unlink", path)
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        self._call("make_directory", path)
        super().make_directory(path)

    def list_directory(self, path: str) -> list[str]:
        self._call("list_directory", path)
        return super().list_directory(path)

    def stat(self, path: str) -> FileStat | None:
        self._call("stat", path)
        return super().stat(path)

    def lock(self, file: OpenFile) -> bool:
        self._call("lock", file.path)
        return super().lock(file)

    def disk_usage(self, path: str) -> DiskUsage:
        self._call("disk_usage", path)
        return super().disk_usage(path)

    def mark(self, label: str) -> None:
        if self.on_mark is not None:
            self.on_mark(label)


class ScriptedDisk(FaultyFiles):
    """A real disk that says what it was told about its room."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.usage = DiskUsage(total_bytes=1 << 30, free_bytes=1 << 29)

    def use(self, ratio: float) -> None:
        """Let so much of the disk be in use."""
        self.usage = DiskUsage(total_bytes=1 << 30, free_bytes=(1 << 30) - round(ratio * (1 << 30)))

    def disk_usage(self, path: str) -> DiskUsage:
        self.looks += 1
        super().disk_usage(path)
        return self.usage


class HandRunner:
    """A runner that steps when the test says so; hand it to `Components.runner`."""

    def __init__(self) -> None:
        self.wakes = 0
        self.stopped = False
        self._step: Step | None = None

    def __call__(self, step: Step) -> "HandRunner":
        """Take the service to drive."""
        self._step = step
        return self

    def step(self) -> None:
        """Let the service do one round."""
        assert self._step is not None
        self._step()

    def wake(self) -> None:
        """Count it."""
        self.wakes += 1

    def stop(self) -> None:
        """Note it."""
        self.stopped = True


class ScriptedReplicas:
    """Replicas that have acknowledged what they were told; hand `lambda: replicas` to `Components.replicas`.

    `confirms` answers each request at once; None leaves it open, in `requests`.
    """

    def __init__(self, *, acknowledged_offset: int | None = 0, confirms: bool | None = True) -> None:
        self.acknowledged_offset = acknowledged_offset
        self.confirms = confirms
        self.requests: list[tuple[int, Future[bool]]] = []

    def request(self, next_offset: int) -> Future[bool]:
        """Answer as told."""
        request: Future[bool] = Future()
        if self.confirms is not None:
            request.set_result(self.confirms)
        self.requests.append((next_offset, request))
        return request


def config_of(
    *, file_bytes: int = 1024, sync: bool = False, trailer: bool = True, record_bytes_max: int = 1 << 20
) -> MessageStoreConfig:
    """Return the configuration of a small store."""
    return MessageStoreConfig(
        mapped_file_size_commit_log=file_bytes,
        max_message_size=record_bytes_max,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
        record_checksum="record" if trailer else "body",
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
    components: Components | None = None,
) -> MessageStore:
    """Open a small store on a real directory; a `config` counts instead of the single settings."""
    return MessageStore.open(
        directory,
        config or config_of(file_bytes=file_bytes, sync=sync, trailer=trailer, record_bytes_max=record_bytes_max),
        files=files or OsFiles(),
        clock=clock or SetClock(ticking=True),
        components=components,
    )


def put(store: MessageStore, message: Message | MessageBatch) -> PutResult:
    """Put a message or a batch."""
    return store.put_batch(message) if isinstance(message, MessageBatch) else store.put(message)


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
