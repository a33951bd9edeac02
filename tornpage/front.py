"""Open the store with the disk and the clock of this machine."""

import os
from collections.abc import Sequence
from time import time_ns
from typing import Self

from tornpage.impl import store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.arriving import MessageArrivingListener
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels.compiled import compiled_parts
from tornpage.impl.message.dispatching import FilterBitMap
from tornpage.impl.parts import Parts

__all__ = ["MessageStore", "wall_clock_ms"]


def wall_clock_ms() -> int:
    """Return the time of the machine in milliseconds since 1970."""
    return time_ns() // 1_000_000


class MessageStore(store.MessageStore):
    """A message store in a directory, opened by `open`.

    One process can have it open at a time, with several threads. Use it in a `with` statement, or call `close()`.
    `put` answers bad data with a status and raises nothing for it.
    After `close()` every method raises StoreClosed; in a forked child process it raises ForkedStore.
    """

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files | None = None,
        clock: Clock = wall_clock_ms,
        parts: Parts | None = None,
        listeners: Sequence[MessageArrivingListener] = (),
        filter_bit_map: FilterBitMap | None = None,
        memory_bytes: int | None = None,
    ) -> Self:
        """Open or create the store in a directory, after recovery.

        `directory` is the store directory; the store creates it if it is missing.
        `config` has the settings; None means the defaults of RocketMQ 4.9.3, which reserve gigabytes of disk space.
        `files` is the disk; None means the disk of this machine.
        `clock` returns the time in milliseconds since the epoch.
        `parts` replaces parts of the store; None means the default parts, with compiled loops.
        `listeners` are called in the dispatching thread with each message that has become readable in its queue.
        `filter_bit_map` is called with topic and properties of a record and returns the bit map of consumer filters
        for the extension of its queue (see `FilterBitMaps.bit_map_of`); None means empty bit maps.
        `memory_bytes` is the memory of the machine in bytes; None means that the store reads it from the system.

        A damaged store opens read-only: `findings` names each damage, and `read_only_reason` is not None.

        Raises StoreInUse if another process has the store open.
        Raises WrongFileSize if the log files have another size than the configuration says.
        Raises NoSpace if the disk cannot hold one log file.
        Raises BadDirectory if the directory cannot be used: permissions, a failing disk, another file in its place.
        """
        return super().open(
            directory,
            config,
            files=files or OsFiles(),
            clock=clock,
            parts=parts or compiled_parts(),
            listeners=listeners,
            filter_bit_map=filter_bit_map,
            memory_bytes=memory_bytes,
        )
