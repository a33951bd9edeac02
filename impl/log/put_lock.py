"""The lock around each append, in RocketMQ's two kinds.

A store makes its lock once and keeps it: 4.1 looked the kind up at each acquire and each release, and a change in
between left the lock held forever (RMQ-B17).
"""

import threading
import time
from collections.abc import Callable
from itertools import repeat
from types import TracebackType
from typing import Protocol

from tornpage.impl.config.policy import PutLockKind

__all__ = ["PutLock", "SpinLock", "make_put_lock"]


class PutLock(Protocol):
    """Mutual exclusion; a context manager too. Source: `PutMessageLock`."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock and return True; with `blocking` False return False at once when it is held."""

    def release(self) -> None:
        """Give it back. Raises RuntimeError when it is not held."""

    def __enter__(self) -> object:
        """Take the lock, waiting for it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it back."""


_WITHOUT_WAITING = repeat(False)


def _give_way() -> None:
    time.sleep(0)


class SpinLock:
    """One flag, taken by trying until it works; a thread that waits is never parked.

    `pause` runs between two tries and lets another thread have the interpreter. Not re-entrant: a thread that takes the
    lock twice waits for itself. Any thread may release it. Source: `PutMessageSpinLock`, which does not pause, and
    which lets the release of a free lock pass.

    An interrupt leaves it to nobody: none falls between flag and `is_taken`, which is one step of a loop, nor in front
    of the release at the end of a `with`, which is compiled.
    """

    __slots__ = ("__exit__", "_flag", "_pause")

    def __init__(self, pause: Callable[[], object] = _give_way) -> None:
        self._flag = threading.Lock()
        self._pause = pause
        self.__exit__ = self._flag.__exit__

    def acquire(self, blocking: bool = True) -> bool:
        """Take the flag; try again and again if `blocking`."""
        while not self._flag.acquire(blocking=False):
            if not blocking:
                return False
            self._pause()
        return True

    def release(self) -> None:
        """Clear the flag. Raises RuntimeError when it is clear."""
        self._flag.release()

    def __enter__(self) -> "SpinLock":
        is_taken = False
        try:
            for is_taken in map(self._flag.acquire, _WITHOUT_WAITING):
                if is_taken:
                    break
                self._pause()
        except BaseException:
            if is_taken:
                self._flag.release()
            raise
        return self


def make_put_lock(kind: PutLockKind) -> PutLock:
    """Return a new lock. REENTRANT: not fair, taken again by its holder, released by it only.

    Source: `PutMessageReentrantLock`, `PutMessageSpinLock`.
    """
    return threading.RLock() if kind is PutLockKind.REENTRANT else SpinLock()
