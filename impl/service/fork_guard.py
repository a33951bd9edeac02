"""Tells the stores of a process that they have been forked away from it.

A child has the mappings and the lock of its parent's store and may use neither. `os.register_at_fork` hooks live as
long as the process, so there is one, and it knows the stores that are open.
"""

import os
import weakref
from typing import Protocol

__all__ = ["note_open"]


class _Forked(Protocol):
    def note_fork(self) -> None: ...


_OPEN: "weakref.WeakSet[_Forked]" = weakref.WeakSet()


def note_open(store: _Forked) -> None:
    """Have `note_fork` called in every child that this process forks from now on."""
    _OPEN.add(store)


def _in_child() -> None:
    for store in _OPEN:
        store.note_fork()


os.register_at_fork(after_in_child=_in_child)
