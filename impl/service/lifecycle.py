"""Whether a store may still be used, and why not; read by every method without a lock."""

import os
import weakref
from typing import Literal, Protocol

from tornpage.impl.errors import ForkedStore, StoreClosed

__all__ = ["Lifecycle", "note_open"]


class _Forked(Protocol):
    def note_fork(self) -> None: ...


_OPEN: "weakref.WeakSet[_Forked]" = weakref.WeakSet()


def note_open(store: _Forked) -> None:
    """Call `note_fork` of a store in every child that this process forks from now on.

    A child has the mappings and the lock of its parent's store and may use neither. `os.register_at_fork` hooks live as
    long as the process, so there is only one, with a set of the open stores.
    """
    _OPEN.add(store)


def _in_child() -> None:
    for store in _OPEN:
        store.note_fork()


os.register_at_fork(after_in_child=_in_child)


class Lifecycle:
    """The state of one open store.

    `shut` is empty while everything is allowed, and only becomes stricter. `read_only_reason` is a sentence once the
    store accepts no more puts: damage found at open, a failed sync, or an exit that could not be recorded.
    """

    __slots__ = ("__weakref__", "directory", "read_only_reason", "shut")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.shut: Literal["", "read-only", "closed", "forked"] = ""
        self.read_only_reason: str | None = None
        note_open(self)

    def become_read_only(self, reason: str) -> None:
        """Refuse puts from here on."""
        self.read_only_reason = reason
        self.shut = self.shut or "read-only"

    def note_fork(self) -> None:
        """Refuse every method from here on.

        This process is a child of the one that opened the store.
        """
        self.shut = "forked"

    def require_opener(self) -> None:
        """Raise ForkedStore in a child of the process that opened the store."""
        if self.shut == "forked":
            raise ForkedStore(self.directory)

    def require_open(self) -> None:
        """Raise ForkedStore in a child, or StoreClosed after `close()`."""
        self.require_opener()
        if self.shut == "closed":
            raise StoreClosed(self.directory)
