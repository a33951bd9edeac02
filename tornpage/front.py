"""The store as users open it: on this machine's disk, by this machine's clock."""

import os
from collections.abc import Sequence
from time import time_ns
from typing import Self

from tornpage.impl import store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.arriving import MessageArrivingListener
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels.compiled import CompiledParts, compiled_batch_encoder
from tornpage.impl.log.scan import walk_log
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.dispatching import BitMapOf
from tornpage.impl.parts import Parts

__all__ = ["MessageStore"]


def _wall_clock_ms() -> int:
    return time_ns() // 1_000_000


def _compiled_parts() -> Parts:
    compiled = CompiledParts()
    return Parts(
        {
            BatchEncoder: compiled_batch_encoder,
            walk_log: compiled.walk_log,
            dispatch_records: compiled.dispatch_records,
            PLAIN_ENTRIES: compiled.index_entries,
        }
    )


class MessageStore(store.MessageStore):
    """A message store in a directory; see `impl.store.MessageStore` for what it promises."""

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files | None = None,
        clock: Clock = _wall_clock_ms,
        parts: Parts | None = None,
        arriving: Sequence[MessageArrivingListener] = (),
        bit_map_of: BitMapOf | None = None,
        memory_bytes: int = 0,
    ) -> Self:
        """Open or create the store in a directory, recovering it first. Raises StoreError."""
        return super().open(
            directory,
            config,
            files=files or OsFiles(),
            clock=clock,
            parts=parts or _compiled_parts(),
            arriving=arriving,
            bit_map_of=bit_map_of,
            memory_bytes=memory_bytes,
        )
