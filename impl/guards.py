"""The small locks of the parts of a store.

They are replaceable, so that a scheduler of interleavings can control them.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

__all__ = ["MakeGuard", "make_guard"]

MakeGuard = Callable[[], AbstractContextManager[object]]
"""Makes one lock for `with` statements. Its owner never takes it twice. `threading.Lock` is one."""


def make_guard() -> AbstractContextManager[object]:
    """Return the lock of a part. `Parts` may replace this function."""
    return threading.Lock()
