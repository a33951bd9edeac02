"""The message store: wiring only. Opening, the public verbs, closing.

The order of an open is the promise of contracts 6, 7 and 14: lock first, then look, then decide, then mark the exit
unclean, and only then change anything. Source: `DefaultMessageStore`.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from impl import codec
from impl.abort_marker import AbortMarker
from impl.checkpoint import Checkpoint
from impl.commit_log import CommitLog
from impl.config import MessageStoreConfig
from impl.durable_floor import DurableFloor, Floor
from impl.errors import BadDirectory, ForkedStore, NoSpace, StoreClosed
from impl.files import Clock, Files
from impl.loading import Finding, LogDirectory, examine_log_directory
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message import GetResult, Message, PutResult, PutStatus, StoredMessage
from impl.recovery import Recovery, RecoveryPlan, readable_records
from impl.scan import RecordChecker
from impl.store_lock import StoreLock, make_directories

__all__ = ["Components", "FlushResult", "MessageStore"]


@dataclass(frozen=True, slots=True)
class Components:
    """The parts a store is made of. A planted bug replaces one of them (properties/planted)."""

    mapped_file: Callable[..., MappedFile] = MappedFile
    mapped_file_queue: Callable[..., MappedFileQueue] = MappedFileQueue
    commit_log: Callable[..., CommitLog] = CommitLog
    durable_floor: Callable[..., DurableFloor] = DurableFloor
    abort_marker: Callable[..., AbortMarker] = AbortMarker
    recovery: Callable[..., Recovery] = Recovery
    check_record: RecordChecker = codec.check_record


@dataclass(frozen=True, slots=True)
class FlushResult:
    """`durable` says whether everything put before the call is on disk; `flushed_offset` up to where it is."""

    durable: bool
    flushed_offset: int


class MessageStore:
    """A store of one directory; made by `open`, one opener at a time, usable from several threads."""

    def __init__(
        self, directory: str, config: MessageStoreConfig, *, files: Files, clock: Clock, components: Components
    ) -> None:
        """Open it; see `open`."""
        self.directory = directory
        self._config = config
        self._files = files
        self._pid = os.getpid()
        self._closed = False
        self.read_only_reason: str | None = None
        self.findings: tuple[Finding, ...] = ()
        self._floor = components.durable_floor(
            files, f"{directory}/config/durableFloor", file_bytes=config.mapped_file_size_commit_log
        )
        self._checkpoint = Checkpoint(files, f"{directory}/checkpoint")
        self._abort = components.abort_marker(files, directory)
        self._log = components.mapped_file_queue(
            files,
            f"{directory}/commitlog",
            file_bytes=config.mapped_file_size_commit_log,
            mapped_file=components.mapped_file,
        )
        self._lock = StoreLock(files, directory)
        self._look_first()
        make_directories(files, directory)
        self._lock.acquire()
        try:
            plan = self._recover(components)
        except BaseException:
            self._release()
            raise
        self._check = components.check_record
        self._commit_log = components.commit_log(
            self._log, config=config, clock=clock, check=components.check_record, queue_offsets=plan.scan.queue_offsets
        )

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files,
        clock: Clock,
        components: Components | None = None,
    ) -> Self:
        """Open or create the store in a directory, recovering it first.

        Raises StoreInUse, WrongFileSize, NoSpace or BadDirectory; a damaged store opens read-only with `findings`.
        """
        root = os.path.abspath(os.fspath(directory))
        try:
            return cls(
                root, config or MessageStoreConfig(), files=files, clock=clock, components=components or Components()
            )
        except PermissionError as error:
            raise BadDirectory(
                root, f"no permission for {error.filename or root}", "change its owner or mode"
            ) from error
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or root})"
            raise BadDirectory(root, reason, "mend the disk or name another directory") from error

    def _look_first(self) -> None:
        """Refuse what can be refused before a directory without a lock file gets anything from us."""
        if self._files.stat(f"{self.directory}/lock") is None:
            self._examine(self._floor.load())

    def _examine(self, floor: Floor | None) -> LogDirectory:
        needed = self._config.mapped_file_size_commit_log
        found = examine_log_directory(self._files, self._log.directory, file_bytes=needed, floor=floor)
        existing = self.directory
        while self._files.stat(existing) is None:
            existing = existing.rpartition("/")[0] or "/"
        if not found.base_offsets and self._files.free_bytes(existing) < needed:
            raise NoSpace(self.directory, needed_bytes=needed, free_bytes=self._files.free_bytes(existing))
        return found

    def _recover(self, components: Components) -> RecoveryPlan:
        floor = self._floor.load()
        clean_exit = not self._abort.present()
        found = self._examine(floor)
        for base_offset in found.base_offsets:
            self._log.adopt(base_offset, writable=True)
        recovery = components.recovery(
            self._files,
            self._log,
            root=self.directory,
            floor=floor,
            clean_exit=clean_exit,
            check=components.check_record,
        )
        plan = recovery.plan(found.findings)
        self.findings = plan.findings
        if plan.damaged:
            damage = next(finding for finding in plan.findings if finding.severity == "damage")
            self.read_only_reason = damage.message
            self._log.flushed_where = max(self._log.min_offset, plan.scan.end_offset)  # it was read from the disk
            return plan
        self._prepare(found)
        recovery.carry_out(plan)
        self._floor.start(self._log.flushed_where)
        return plan

    def _prepare(self, found: LogDirectory) -> None:
        """Make what every writable store has; the abort marker last, before the log is touched.

        The names in the log directory are synced first: an opener before us may have been killed between removing a
        file and syncing that, and a file that comes back must not do so behind our own removals.
        """
        for name in ("config", "commitlog"):
            make_directories(self._files, f"{self.directory}/{name}")
        self._files.sync_directory(self._log.directory)
        self._checkpoint.load()
        self._checkpoint.start()
        self._abort.create()
        if found.empty_newest is not None:
            self._files.unlink(found.empty_newest)
            self._files.sync_directory(self._log.directory)

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte."""
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        """Physical offset just behind the last record that was put."""
        return self._log.max_offset

    @property
    def committed_offset(self) -> int:
        """End of what readers may see: below the flushed end once a sync has failed."""
        return self.flushed_offset if self._poisoned() else self._log.max_offset

    @property
    def flushed_offset(self) -> int:
        """Everything below this physical offset is on disk."""
        return self._log.flushed_where

    def put(self, message: Message) -> PutResult:
        """Store one message and answer as the flush policy promises; never raises for bad data (contract 8)."""
        self._require_opener()
        if self._closed or self.read_only_reason is not None:
            return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
        result = self._commit_log.put(message)
        if result.status is PutStatus.FLUSH_DISK_TIMEOUT:
            self._poison()
        elif self._log.flushed_where > result.offset >= 0:
            self._note_flushed()
        return result

    def get(self, offset: int) -> GetResult:
        """Return the message whose record begins at a physical offset."""
        self._require_open()
        return self._commit_log.get(offset, readable_end=self.committed_offset)

    def messages(self) -> Iterator[StoredMessage]:
        """Yield every record that verifies and is committed, in offset order."""
        self._require_open()
        for offset in readable_records(self._log, self._check):
            message = self.get(offset).message
            if message is not None:
                yield message

    def flush(self) -> FlushResult:
        """Make everything put so far durable."""
        self._require_open()
        if self.read_only_reason is not None:
            return FlushResult(False, self.flushed_offset)
        try:
            self._commit_log.flush()
        except OSError:
            self._poison()
            return FlushResult(False, self.flushed_offset)
        self._note_flushed()
        return FlushResult(True, self.flushed_offset)

    def close(self) -> None:
        """Flush, note the clean exit, give up the lock. Idempotent.

        A store that is read-only, or whose last flush fails, keeps its abort marker; `read_only_reason` says why.
        """
        if self._closed:
            return
        self._require_opener()
        self._commit_log.stop()
        if self.read_only_reason is None and self.flush().durable:
            try:
                self._checkpoint.flush()
                self._floor.sync()
                self._abort.remove()
            except OSError as error:
                self.read_only_reason = f"clean exit not noted: {error}"
        self._closed = True
        self._release()

    def check(self) -> None:
        """Assert the order of all watermarks (contract 9)."""
        self._log.check()
        assert self.min_offset <= self.flushed_offset <= self.committed_offset <= self.max_offset

    def _note_flushed(self) -> None:
        self._floor.raise_to(self._log.flushed_where)
        self._checkpoint.physic_msg_timestamp = max(
            self._checkpoint.physic_msg_timestamp, self._commit_log.flushed_store_timestamp
        )

    def _poisoned(self) -> bool:
        return any(file.failure is not None for file in self._log.mapped)

    def _poison(self) -> None:
        failed = next(file for file in self._log.mapped if file.failure is not None)
        self.read_only_reason = f"sync of {failed.path} failed: {failed.failure}"

    def _release(self) -> None:
        self._log.close()
        self._floor.close()
        self._checkpoint.close()
        self._lock.release()

    def _require_opener(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedStore(self.directory)

    def _require_open(self) -> None:
        self._require_opener()
        if self._closed:
            raise StoreClosed(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open store cannot be pickled: pass its directory and open it there")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()
