"""The message store: its life and its verbs. What they answer: docs/statuses.md. Source: `DefaultMessageStore`."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, Self

from impl.arriving import MessageArrivingListener
from impl.assembly import Durability, Surroundings, assemble
from impl.codec import check_record
from impl.config import MessageStoreConfig
from impl.config_verbs import ConfigVerbs
from impl.dispatching import FilterBitMap
from impl.durable_verbs import DurableVerbs, FlushResult
from impl.errors import BadDirectory
from impl.files import Clock, Files
from impl.guards import make_guard
from impl.hold_verbs import HoldVerbs
from impl.lifecycle import Lifecycle
from impl.message import GetResult, Message, MessageBatch, PutResult, StoredMessage
from impl.opening import OpenDirectory
from impl.parts import Parts
from impl.progress_verbs import ProgressVerbs
from impl.read_verbs import ReadVerbs
from impl.recovery import readable_records
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
        parts: Parts,
        listeners: Sequence[MessageArrivingListener] = (),
        filter_bit_map: FilterBitMap | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        """Open it; see `open`."""
        self.directory = directory
        self.running_flags = RunningFlags()
        self._check = parts.of(check_record)
        self._flush_guard = parts.of(make_guard)()
        self._close_guard = parts.of(make_guard)()
        self._closing = False
        self._lifecycle = Lifecycle(directory)
        self._held = OpenDirectory(
            directory,
            config,
            files=files,
            clock=clock,
            parts=parts,
            arriving=listeners,
            bit_map_of=filter_bit_map,
        )
        self._log = self._held.log
        if self._held.damage is not None:
            self._lifecycle.become_read_only(self._held.damage)
        try:
            built = assemble(
                self._held,
                self._lifecycle,
                self.running_flags,
                Surroundings(config, files, clock, parts, memory_bytes or 0),
                Durability(self._make_durable, self._commit, self._make_all_durable, lambda: self.committed_offset),
            )
        except BaseException:
            self._held.close()
            raise
        self._reput, self._background, self._retention = built.reput, built.background, built.retention
        self._puts, self._reads, self._pull_hold = built.puts, built.reads, built.pull_hold
        self._delivery, self._progress = built.delivery, built.progress
        self._commit_log = self._puts.commit_log
        if not self._lifecycle.shut:
            built.start()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files,
        clock: Clock,
        parts: Parts | None = None,
        listeners: Sequence[MessageArrivingListener] = (),
        filter_bit_map: FilterBitMap | None = None,
        memory_bytes: int | None = None,
    ) -> Self:
        """Open or create the store in a directory, recovering it first.

        `listeners` are called with each message that can be read from its queue; `filter_bit_map` returns what the
        extension of the queues stores about the filters of a message; `memory_bytes` is the memory of the machine, and
        None has the store ask the machine.

        Raises StoreInUse, WrongFileSize, NoSpace or BadDirectory; a damaged store opens read-only with `findings`.
        """
        root = os.path.abspath(os.fspath(directory))
        try:
            return cls(
                root,
                config or MessageStoreConfig(),
                files=files,
                clock=clock,
                parts=parts or Parts(),
                listeners=listeners,
                filter_bit_map=filter_bit_map,
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
