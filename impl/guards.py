"""The small locks inside the parts of a store, replaceable: a scheduler of interleavings has to see who holds them."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

__all__ = ["MakeGuard", "make_guard"]

MakeGuard = Callable[[], AbstractContextManager[object]]
"""Makes one lock, to be used in `with` statements; never taken again by its holder. `threading.Lock` is one."""


def make_guard() -> AbstractContextManager[object]:
    """Return the lock of a part: this one, unless the store was opened with another."""
    return threading.Lock()
