"""The message store: wiring and the public verbs. What they answer: docs/statuses.md. Source: `DefaultMessageStore`."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, Self

from impl.arriving import MessageArrivingListener
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.config_verbs import ConfigVerbs
from impl.delayed_delivery import DelayedDelivery
from impl.dispatching import BitMapOf
from impl.durable_verbs import DurableVerbs, FlushResult
from impl.errors import BadDirectory
from impl.files import Clock, Files
from impl.hold_verbs import HoldVerbs, pull_hold_of
from impl.lifecycle import Lifecycle
from impl.message import GetResult, Message, MessageBatch, PutResult, StoredMessage
from impl.opening import OpenDirectory
from impl.progress_verbs import ProgressVerbs
from impl.progress_wiring import open_progress
from impl.put_path import PutPath
from impl.read_path import ReadPath
from impl.read_verbs import ReadVerbs
from impl.recovery import readable_records
from impl.reput import ReputMessages
from impl.retention import Retention
from impl.retention_verbs import RetentionVerbs
from impl.running_flags import RunningFlags

__all__ = ["FlushResult", "MessageStore"]


class MessageStore(DurableVerbs, ReadVerbs, HoldVerbs, RetentionVerbs, ProgressVerbs, ConfigVerbs):
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
        self._flush_guard = components.guard()
        self._close_guard = components.guard()
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
                flushed_where=lambda: self._log.flushed_where,
                committed_where=lambda: self._log.committed_where,
                checkpoint=self._held.checkpoint,
                derived=self._held.derived,
                floor=self._held.raise_derived_floor,
                reput=self._reput,
                log=self._log,
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
            self._pull_hold = pull_hold_of(self._held, self._reads, config=config, components=components)
            self._delivery = DelayedDelivery(
                self._held,
                self._lifecycle,
                files=files,
                config=config,
                clock=clock,
                components=components,
                puts=self._puts,
                reads=self._reads,
                make_durable=self._make_all_durable,
            )
            self._progress = open_progress(
                self._held,
                self._lifecycle,
                config=config,
                files=files,
                clock=clock,
                components=components,
                owners=self._delivery.owners,
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
                begin_anew=self._progress.begin_anew,
                queues_deleted=self._pull_hold.queues_deleted,
            )
        except BaseException:
            self._held.close()
            raise
        self._commit_log = self._puts.commit_log
        if not self._lifecycle.shut:
            self._background.start()
            self._retention.start()
            self._progress.start()
            self._delivery.start()

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open store cannot be pickled: pass its directory and open it there")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()
