"""The store as users open it: on this machine's disk, by this machine's clock."""

import os
from collections.abc import Sequence
from time import time_ns
from typing import Self

from impl import store
from impl.arriving import MessageArrivingListener
from impl.compiled import CompiledParts, compiled_batch_encoder
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.dispatching import BitMapOf
from impl.files import Clock, Files
from impl.os_files import OsFiles

__all__ = ["MessageStore"]


def _wall_clock_ms() -> int:
    return time_ns() // 1_000_000


def _compiled_components() -> Components:
    parts = CompiledParts()
    return Components(
        batch_encoder=compiled_batch_encoder,
        walk_log=parts.walk_log,
        dispatch_records=parts.dispatch_records,
        index_entries=parts.index_entries,
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
        components: Components | None = None,
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
            components=components or _compiled_components(),
            arriving=arriving,
            bit_map_of=bit_map_of,
            memory_bytes=memory_bytes,
        )
