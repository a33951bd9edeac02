"""Locks, conditions and queues that the scheduler knows; waiting tasks are not runnable.

Before the acquire and after the release of a lock there is a yield point. Nothing orders the waiting tasks: when the
lock becomes free, the schedule chooses among them and those that arrive, as an operating system may.
"""

import sys
from collections.abc import Callable
from queue import Empty
from types import CodeType, TracebackType
from typing import Final

from tornpage.properties.contract import HarnessError
from tornpage.properties.scheduler.accesses import Access, location_bit
from tornpage.properties.scheduler.task import Task, current_task

__all__ = ["OUTSIDE", "CooperativeCondition", "CooperativeLock", "CooperativeQueue"]

OUTSIDE: Final = -1
"""The holder of a lock that was acquired outside a stepped run, or by an action at a step."""


class CooperativeLock:
    """A mutual exclusion for the tasks of a stepped run.

    Outside of a run it is an ordinary lock of a single thread.

    Args:
        name: For reports.
        reentrant: Whether the holder may acquire it again.
    """

    def __init__(self, name: str, *, reentrant: bool = False) -> None:
        self.name = name
        self._reentrant = reentrant
        self._owner: Task | int | None = None
        self._depth = 0
        self._acquisitions = 0
        self._taken_at: tuple[CodeType, int] | None = None
        self._access = Access(0, location_bit(f"[lock {name}]"))
        self._acquiring = f"acquire {name}"
        self._released = f"release {name}"

    @property
    def is_free(self) -> bool:
        """Whether the lock is free."""
        return self._owner is None

    @property
    def holder(self) -> int | None:
        """The number of the task that holds it, `OUTSIDE`, or None."""
        return self._owner.number if isinstance(self._owner, Task) else self._owner

    @property
    def acquisition(self) -> int | None:
        """The number of the current acquisition, counted from 1; None while the lock is free.

        It distinguishes acquisitions at the same time.
        """
        return None if self._owner is None else self._acquisitions

    def locked(self) -> bool:
        """Whether the lock is held, under the name that `threading.Lock` uses."""
        return self._owner is not None

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, waiting if needed; False if it is held and the call must not block.

        Raises HarnessError outside a run if it would wait forever.
        """
        task = current_task()
        if task is not None:
            task.point(self._acquiring)
            task.touch(self._access)
        owner: Task | int = OUTSIDE if task is None else task
        if self._reentrant and self._owner is not None and self._owner == owner:
            self._depth += 1
            return True
        if self._owner is not None:
            if not blocking:
                return False
            if task is None:
                raise HarnessError(f"{self.name}, held by {self._holder_text()}, is waited for outside a stepped run")
            task.wait_for(self)
        self._owner, self._depth = owner, 1
        self._acquisitions += 1
        if task is not None:
            task.locks += 1
        return True

    def release(self) -> None:
        """Release the lock. Raises RuntimeError if the caller does not hold it."""
        task = current_task()
        owner: Task | int = OUTSIDE if task is None else task
        if self._owner is None or self._owner != owner:
            who = "code outside the run" if task is None else f"task {task.number}"
            raise RuntimeError(f"{who} releases {self.name}, held by {self._holder_text()}")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if task is not None:
                task.locks -= 1
        if task is not None:
            task.touch(self._access)
            task.point(self._released)

    def _holder_text(self) -> str:
        if self._owner is None:
            return "no task"
        if isinstance(self._owner, Task):
            return f"task {self._owner.number}" + (", which has ended" if self._owner.ended else "")
        return "code outside the run"

    @property
    def is_left_next(self) -> bool:
        """Whether its holder is back at the `with` line that took it.

        The holder then has nothing left to do under the lock.
        """
        if not isinstance(self._owner, Task) or self._taken_at is None:
            return False
        code, line = self._taken_at
        frame = sys._current_frames().get(self._owner.thread.ident or 0)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return frame is not None and frame.f_lineno == line

    def __enter__(self) -> bool:
        taken, frame = self.acquire(), sys._getframe(1)
        self._taken_at = frame.f_code, frame.f_lineno
        return taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def __str__(self) -> str:
        return f"{self.name} (held by {self._holder_text()})"


class CooperativeCondition:
    """A condition of a stepped run, with the methods of `threading.Condition`.

    A notification ends the wait of the tasks that wait at that time. A wait never times out.
    """

    def __init__(self, lock: CooperativeLock) -> None:
        self._lock = lock
        self._waiting: list[_Notice] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_exception: object) -> None:
        self._lock.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock of the condition."""
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Release the lock of the condition."""
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification, and take the lock again.

        Raises RuntimeError if the caller does not hold the lock, and HarnessError outside a run.
        """
        self._require_held()
        task = current_task()
        if task is None:
            raise HarnessError(f"a condition of {self._lock.name} is waited for outside a stepped run")
        notice = _Notice()
        self._waiting.append(notice)
        self._lock.release()
        if not notice.is_free:
            task.wait_for(notice)
        return self._lock.acquire()

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until a predicate holds. Raises what `wait` raises."""
        while not predicate():
            self.wait(timeout)
        return True

    def notify(self, n: int = 1) -> None:
        """End the wait of up to `n` tasks.

        Raises RuntimeError if the caller does not hold the lock.
        """
        self._require_held()
        for notice in self._waiting[:n]:
            notice.is_free = True
        del self._waiting[:n]

    def notify_all(self) -> None:
        """End the wait of all tasks. Raises RuntimeError as `notify` does."""
        self.notify(len(self._waiting))

    def _require_held(self) -> None:
        task = current_task()
        if self._lock.holder != (OUTSIDE if task is None else task.number):
            raise RuntimeError("cannot wait on or notify an un-acquired lock")


class _Notice:
    """A notification that a task waits for."""

    def __init__(self) -> None:
        self.is_free = False

    def __str__(self) -> str:
        return "a notification"


class CooperativeQueue:
    """A queue of a stepped run, with the methods `put` and `get` of `queue.SimpleQueue`.

    `name` is for reports. A `get` with a time-out waits like one without.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._items: list[object] = []
        self._access = Access(0, location_bit(f"[queue {name}]"))

    @property
    def is_free(self) -> bool:
        """Whether there is an item."""
        return bool(self._items)

    def put(self, item: object) -> None:
        """Add an item at the end."""
        self._point("put into")
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> object:
        """Remove the first item and return it; wait for it if needed.

        Raises Empty if there is none and the call must not wait, and HarnessError outside a run if it would wait
        forever.
        """
        task = self._point("get from")
        if not self._items:
            if not block or timeout == 0:
                raise Empty
            if task is None:
                raise HarnessError(f"an item of {self._name} is waited for outside a stepped run")
            task.wait_for(self)
        return self._items.pop(0)

    def _point(self, what: str) -> Task | None:
        task = current_task()
        if task is not None:
            task.point(f"{what} {self._name}")
            task.touch(self._access)
        return task

    def __str__(self) -> str:
        return f"an item of {self._name}"
