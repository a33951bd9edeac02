"""The message store: wiring and the public verbs. What they answer: docs/statuses.md. Source: `DefaultMessageStore`."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from impl.arriving import MessageArrivingListener
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.dispatching import BitMapOf
from impl.errors import BadDirectory
from impl.files import Clock, Files
from impl.lifecycle import Lifecycle
from impl.message import GetResult, Message, MessageBatch, PutResult, StoredMessage
from impl.opening import OpenDirectory
from impl.put_path import PutPath
from impl.read_path import ReadPath
from impl.read_verbs import ReadVerbs
from impl.recovery import readable_records
from impl.reput import ReputMessages
from impl.retention import Retention
from impl.retention_verbs import RetentionVerbs
from impl.running_flags import RunningFlags
from impl.store_views import StoreViews

__all__ = ["FlushResult", "MessageStore"]

_LOG = logging.getLogger("tornpage.store")


@dataclass(frozen=True, slots=True)
class FlushResult:
    """`durable` says whether everything put before the call is on disk; `flushed_offset` up to where it is."""

    durable: bool
    flushed_offset: int


class MessageStore(StoreViews, ReadVerbs, RetentionVerbs):
    """A store of one directory; made by `open`, one opener at a time, usable from several threads.

    `running_flags` may be set by an operator.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        *,
        files: Files,
        clock: Clock,
        components: Components,
        arriving: Sequence[MessageArrivingListener] = (),
        bit_map_of: BitMapOf | None = None,
        memory_bytes: int = 0,
    ) -> None:
        """Open it; see `open`."""
        self.directory = directory
        self.running_flags = RunningFlags()
        self._check = components.check_record
        self._flush_guard = threading.Lock()
        self._close_guard = threading.Lock()
        self._closing = False
        self._lifecycle = Lifecycle(directory)
        self._held = OpenDirectory(
            directory,
            config,
            files=files,
            clock=clock,
            components=components,
            arriving=arriving,
            bit_map_of=bit_map_of,
        )
        self._log = self._held.log
        if self._held.damage is not None:
            self._lifecycle.become_read_only(self._held.damage)
        try:
            self._reput: ReputMessages = components.reput(
                self._held.derived, self._log, self.running_flags, readable_end=lambda: self.committed_offset
            )
            self._background = components.background(
                config,
                runner=components.runner,
                flush=self._make_durable,
                commit=self._commit,
                checkpoint=self._held.checkpoint,
                derived=self._held.derived,
                floor=self._held.raise_derived_floor,
                reput=self._reput,
            )
            disk_watch = components.disk_watch(
                files,
                self._log.directories.writable,
                self.running_flags,
                policy=config.retention_policy(),
                queue_path=directory,
            )
            self._puts = PutPath(
                self._held,
                self._lifecycle,
                self.running_flags,
                config=config,
                clock=clock,
                components=components,
                flush=self._make_durable,
                written=self._background.written,
                disk_watch=disk_watch,
            )
            self._reads = ReadPath(
                self._log,
                self._held.derived.queues,
                self._held.derived.index,
                lifecycle=self._lifecycle,
                flags=self.running_flags,
                config=config,
                clock=clock,
                components=components,
                readable_end=lambda: self.committed_offset,
                dispatch=self._held.dispatch,
                files=files,
                put_statistics=self._puts.statistics,
                memory_bytes=memory_bytes,
            )
            self._retention = Retention(
                self._held,
                self._lifecycle,
                config=config,
                clock=clock,
                components=components,
                watch=disk_watch,
                reput=self._reput,
                commit_log=self._puts.commit_log,
                buffers=self._reads.buffers,
            )
        except BaseException:
            self._held.close()
            raise
        self._commit_log = self._puts.commit_log
        if not self._lifecycle.shut:
            self._background.start()
            self._retention.start()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files,
        clock: Clock,
        components: Components | None = None,
        arriving: Sequence[MessageArrivingListener] = (),
        bit_map_of: BitMapOf | None = None,
        memory_bytes: int = 0,
    ) -> Self:
        """Open or create the store in a directory, recovering it first.

        `arriving` are told of each message that can be read from its queue; `bit_map_of` says what the extension of the
        queues is to remember about the filters of a message; `memory_bytes` is what the machine has, 0 for asking it.

        Raises StoreInUse, WrongFileSize, NoSpace or BadDirectory; a damaged store opens read-only with `findings`.
        """
        root = os.path.abspath(os.fspath(directory))
        try:
            return cls(
                root,
                config or MessageStoreConfig(),
                files=files,
                clock=clock,
                components=components or Components(),
                arriving=arriving,
                bit_map_of=bit_map_of,
                memory_bytes=memory_bytes,
            )
        except PermissionError as error:
            raise BadDirectory(
                root, f"no permission for {error.filename or root}", "change its owner or mode"
            ) from error
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or root})"
            raise BadDirectory(root, reason, "mend the disk or name another directory") from error

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
            if self._log.commit():
                self._reput.note_readable()
        except OSError as error:
            return f"commit to {error.filename or self._log.directories.names} failed: {error.strerror or error}"
        return None

    def _commit(self, least_pages: int) -> bool:
        """Commit what is worth it; what the disk refuses stays in its buffer for the next round."""
        try:
            moved = self._log.commit(least_pages)
        except OSError as error:
            _LOG.warning("commit_failed path=%r error=%r", error.filename, error.strerror)
            return False
        if moved:
            self._reput.note_readable()
        return moved

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
                    failed = self._failed_file() or self._log.directories.names
                    self._lifecycle.become_read_only(f"sync of {failed} failed: {error.strerror or error}")
                else:
                    self._held.note_flushed(self._commit_log.flushed_store_timestamp)
            return self._log.flushed_where

    def close(self) -> None:
        """Answer who waits, dispatch, flush, note the clean exit, give up the lock. Idempotent.

        A store that is read-only, or whose last dispatch or flush fails, keeps its abort marker; `read_only_reason`
        says why. Of several closers one does the work and the others return at once: one of them may be a callback the
        first waits for. Not for signal handlers: a flush or put under way in the same thread would wait for itself.
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
        self._retention.stop()
        self._background.stop()
        commit_failure = self._commit_failure()
        self._make_durable()
        dispatch_failure = self._dispatch_failure()
        self._lifecycle.read_only_reason = self.read_only_reason or commit_failure or dispatch_failure
        if self.read_only_reason is None:
            try:
                self._held.note_clean_exit()
            except OSError as error:
                self._lifecycle.read_only_reason = f"clean exit not noted: {error}"
        with self._flush_guard:
            self._lifecycle.shut = "closed"
            self._reads.shut()
            self._held.close()
            self._reads.note_leaks()

    def _dispatch_failure(self) -> str | None:
        """Dispatch everything that is readable; return why that did not work, or None."""
        try:
            self._reput.drain()
        except OSError as error:
            return f"dispatch at offset {self.reput_from_offset} failed: {error}"
        return self.dispatch_error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open store cannot be pickled: pass its directory and open it there")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()
