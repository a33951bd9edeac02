"""The store as users open it: on this machine's disk, by this machine's clock."""

import os
from time import time_ns
from typing import Self

from impl import store
from impl.compiled import compiled_batch_encoder
from impl.components import Components
from impl.config import MessageStoreConfig
from impl.files import Clock, Files
from impl.os_files import OsFiles

__all__ = ["MessageStore"]


def _wall_clock_ms() -> int:
    return time_ns() // 1_000_000


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
    ) -> Self:
        """Open or create the store in a directory, recovering it first. Raises StoreError."""
        parts = components or Components(batch_encoder=compiled_batch_encoder)
        return super().open(directory, config, files=files or OsFiles(), clock=clock, components=parts)
