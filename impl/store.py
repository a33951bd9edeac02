"""The message store: wiring and the public verbs. What they answer: docs/statuses.md. Source: `DefaultMessageStore`."""

import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from impl.components import Components
from impl.config import MessageStoreConfig
from impl.errors import BadDirectory
from impl.files import Clock, Files
from impl.lifecycle import Lifecycle
from impl.loading import Finding
from impl.message import GetResult, Message, MessageBatch, PutResult, StoredMessage
from impl.opening import OpenDirectory
from impl.put_path import PutPath
from impl.recovery import readable_records
from impl.running_flags import RunningFlags
from impl.statistics import StatisticsSnapshot

__all__ = ["FlushResult", "MessageStore"]

_LOG = logging.getLogger("tornpage.store")


@dataclass(frozen=True, slots=True)
class FlushResult:
    """`durable` says whether everything put before the call is on disk; `flushed_offset` up to where it is."""

    durable: bool
    flushed_offset: int


class MessageStore:
    """A store of one directory; made by `open`, one opener at a time, usable from several threads.

    `running_flags` may be set by an operator.
    """

    def __init__(
        self, directory: str, config: MessageStoreConfig, *, files: Files, clock: Clock, components: Components
    ) -> None:
        """Open it; see `open`."""
        self.directory = directory
        self.running_flags = RunningFlags()
        self._check = components.check_record
        self._flush_guard = threading.Lock()
        self._close_guard = threading.Lock()
        self._closing = False
        self._lifecycle = Lifecycle(directory)
        self._held = OpenDirectory(directory, config, files=files, components=components)
        self._log = self._held.log
        if self._held.damage is not None:
            self._lifecycle.become_read_only(self._held.damage)
        try:
            self._background = components.background(
                config,
                runner=components.runner,
                flush=self._make_durable,
                commit=self._commit,
                checkpoint=self._held.checkpoint,
            )
            self._puts = PutPath(
                self._held,
                self._lifecycle,
                self.running_flags,
                config=config,
                files=files,
                clock=clock,
                components=components,
                flush=self._make_durable,
                written=self._background.written,
            )
        except BaseException:
            self._held.close()
            raise
        self._commit_log = self._puts.commit_log
        if not self._lifecycle.shut:
            self._background.start()

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

    # ---- what can be seen ----------------------------------------------------------------------------------------

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found at open."""
        return self._held.findings

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
        return self.flushed_offset if self._failed_file() is not None else self._log.committed_where

    @property
    def flushed_offset(self) -> int:
        """Everything below this physical offset is on disk."""
        return self._log.flushed_where

    @property
    def read_only_reason(self) -> str | None:
        """Why the store takes no more puts, as a sentence, or None."""
        return self._lifecycle.read_only_reason

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, latencies and rates of the puts so far; times are those of the store's clock."""
        self._lifecycle.require_opener()
        return self._puts.statistics()

    # ---- verbs ---------------------------------------------------------------------------------------------------

    def put(self, message: Message) -> PutResult:
        """Store one message and answer as the flush policy promises; never raises for bad data (contract 8)."""
        return self._puts.put(self._commit_log.put, message)

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Store all messages of a batch or none; the answer is that of `put`."""
        return self._puts.put(self._commit_log.put_batch, batch)

    def put_async(self, message: Message | MessageBatch) -> Future[PutResult]:
        """Append a message or a batch now; the future has the answer of `put` once that is known.

        It cannot be cancelled. Its callbacks may run in a thread of the store and must not wait for another put.
        """
        is_batch = isinstance(message, MessageBatch)
        return self._puts.put_async(self._commit_log.put_batch if is_batch else self._commit_log.put, message)

    def get(self, offset: int) -> GetResult:
        """Return the message whose record begins at a physical offset."""
        self._lifecycle.require_open()
        found = self._commit_log.get(offset, readable_end=self.committed_offset)
        if found.message is None:
            self._lifecycle.require_open()  # nothing is found in a store that was closed meanwhile
        return found

    def messages(self) -> Iterator[StoredMessage]:
        """Yield every record that verifies and is committed, in offset order."""
        self._lifecycle.require_open()
        for offset in readable_records(self._log, self._check):
            message = self.get(offset).message
            if message is not None:
                yield message

    def flush(self) -> FlushResult:
        """Make everything put so far durable: what is in a buffer is committed first."""
        self._lifecycle.require_open()
        commit_failure = self._commit_failure()
        flushed_offset = self._make_durable()
        return FlushResult(self.read_only_reason is None and commit_failure is None, flushed_offset)

    def _commit_failure(self) -> str | None:
        """Commit everything; return why that did not work, or None."""
        try:
            self._log.commit()
        except OSError as error:
            return f"commit to {error.filename or self._log.directories.names} failed: {error.strerror or error}"
        return None

    def _commit(self, least_pages: int) -> bool:
        """Commit what is worth it; what the disk refuses stays in its buffer for the next round."""
        try:
            return self._log.commit(least_pages)
        except OSError as error:
            _LOG.warning("commit_failed path=%r error=%r", error.filename, error.strerror)
            return False

    def _make_durable(self, least_pages: int = 0) -> int:
        """Flush what is worth it, note it, and return the flushed offset; a failed sync makes the store read-only.

        A put that was appended just before `close()` may come here behind it: close has flushed the record then.
        """
        with self._flush_guard:
            if self._commit_log.interruption is not None and self.read_only_reason is None:
                self._lifecycle.become_read_only(f"a put was broken off: {self._commit_log.interruption!r}")
            if self.read_only_reason is None and self._lifecycle.shut != "closed":
                try:
                    self._commit_log.flush(least_pages)
                except OSError as error:
                    failed = self._failed_file()
                    reason = error.strerror or error
                    self._lifecycle.become_read_only(
                        f"sync of {failed or self._log.directories.names} failed: {reason}"
                    )
                else:
                    self._held.note_flushed(self._commit_log.flushed_store_timestamp)
            return self._log.flushed_where

    def _failed_file(self) -> str | None:
        """Return the path of a log file whose sync has failed."""
        return next((file.path for file in self._log.mapped if file.failure is not None), None)

    def close(self) -> None:
        """Answer who waits, flush, note the clean exit, give up the lock. Idempotent.

        A store that is read-only, or whose last flush fails, keeps its abort marker; `read_only_reason` says why. Of
        several closers one does the work and the others return at once: one of them may be a callback the first waits
        for. Not for signal handlers: a flush or put under way in the same thread would wait for itself.
        """
        self._lifecycle.require_opener()
        with self._close_guard:
            if self._closing:
                return
            self._closing = True
        try:
            self._close()
        except BaseException:
            self._closing = False
            raise

    def _close(self) -> None:
        self._puts.stop()
        self._held.stop_allocation()
        self._background.stop()
        commit_failure = self._commit_failure()
        self._make_durable()
        if commit_failure is not None:
            self._lifecycle.read_only_reason = self.read_only_reason or commit_failure
        if self.read_only_reason is None:
            try:
                self._held.note_clean_exit()
            except OSError as error:
                self._lifecycle.read_only_reason = f"clean exit not noted: {error}"
        with self._flush_guard:
            self._lifecycle.shut = "closed"
            self._held.close()

    def check(self) -> None:
        """Assert the order of all watermarks (contract 9)."""
        self._lifecycle.require_open()
        try:
            self._log.check()
            assert self.min_offset <= self.flushed_offset <= self.committed_offset <= self.max_offset
        except AssertionError:
            self._lifecycle.require_open()  # a store that was closed meanwhile has given its files up
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open store cannot be pickled: pass its directory and open it there")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()
