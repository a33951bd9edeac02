"""The put lock around each append, of RocketMQ's two kinds.

A store creates its lock once. RocketMQ 4.1 looked the kind up at each acquire and release, and a change in between left
the lock held forever (RMQ-B17).
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
    """A mutual exclusion lock, also a context manager. Source: `PutMessageLock`."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock and return True.

        With `blocking` False return False at once while it is held.
        """

    def release(self) -> None:
        """Release the lock. Raises RuntimeError if it is not held."""

    def __enter__(self) -> object:
        """Wait for the lock and take it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Release the lock."""


_WITHOUT_WAITING = repeat(False)


def _give_way() -> None:
    time.sleep(0)


class SpinLock:
    """A spin lock on one flag; a waiting thread is never parked.

    `pause` runs between two attempts and lets another thread have the interpreter. The lock is not re-entrant: a thread
    that takes it twice waits forever. Any thread may release it. Source: `PutMessageSpinLock`, which does not pause,
    and which ignores the release of a free lock.

    An interrupt cannot leave it held. Taking the flag and setting `is_taken` are one step of a loop, and the release at
    the end of a `with` is compiled code; neither can be interrupted.
    """

    __slots__ = ("__exit__", "_flag", "_pause")

    def __init__(self, pause: Callable[[], object] = _give_way) -> None:
        self._flag = threading.Lock()
        self._pause = pause
        self.__exit__ = self._flag.__exit__

    def acquire(self, blocking: bool = True) -> bool:
        """Take the flag; with `blocking`, retry until that succeeds."""
        while not self._flag.acquire(blocking=False):
            if not blocking:
                return False
            self._pause()
        return True

    def release(self) -> None:
        """Clear the flag. Raises RuntimeError if it is clear."""
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
    """Return a new lock.

    REENTRANT is not fair, may be taken again by its owner, and is released by its owner only. Source:
    `PutMessageReentrantLock`, `PutMessageSpinLock`.
    """
    return threading.RLock() if kind is PutLockKind.REENTRANT else SpinLock()
