"""Write buffers of one log file each.

Records are written there, and a commit copies them to the page cache. A buffer still holds the bytes of its last user.
It is not zeroed, which would touch a whole file of memory at each roll. A commit writes only the range that its own
file has filled.
"""

import logging
import threading
from collections.abc import Callable

from tornpage.impl.io.memory import LockedMemory

__all__ = ["TransientStorePool"]

_LOG = logging.getLogger("tornpage.store")


class TransientStorePool:
    """`count` buffers of `buffer_bytes` bytes, allocated now and lent one by one. Thread-safe.

    Each loan is a view of its own that ends when it is returned, so a late write raises ValueError and cannot reach the
    next borrower. Raises OSError if the memory cannot be allocated. Source: `TransientStorePool`.
    """

    def __init__(self, count: int, buffer_bytes: int, *, reserve: Callable[[int], LockedMemory] = LockedMemory) -> None:
        self.count = count
        self.buffer_bytes = buffer_bytes
        self._guard = threading.Lock()
        self._home: list[LockedMemory] = []
        self._lent: dict[int, tuple[memoryview, LockedMemory]] = {}
        self._is_low = False
        self._closed = False
        for _ in range(count):
            try:
                self._home.append(reserve(buffer_bytes))
            except OSError as error:
                self.close()
                raise OSError(error.errno, f"{error.strerror}: {self._remedy()}") from error

    def _remedy(self) -> str:
        return (
            f"the transient store pool needs {self.count} buffers of {self.buffer_bytes} bytes; "
            "lower transient_store_pool_size or mapped_file_size_commit_log, or leave transient_store_pool_enable out"
        )

    @property
    def free(self) -> int:
        """The number of buffers not on loan. Source: `TransientStorePool.availableBufferNums`."""
        return len(self._home)

    def borrow(self) -> memoryview | None:
        """Return the buffer returned last, whose pages are most likely cached.

        Returns None if all are on loan. Logs a warning when fewer than 40 % are left, and again only after more were
        available in between.
        """
        with self._guard:
            if not self._home:
                return None
            memory = self._home.pop()
            view = memoryview(memory.view)
            self._lent[id(view)] = view, memory
            was_low, self._is_low = self._is_low, self._now_low()
            crossed = self._is_low and not was_low
            free = len(self._home)
        if crossed:
            _LOG.warning("transient_store_pool_low free=%d count=%d", free, self.count)
        return view

    def _now_low(self) -> bool:
        return 10 * len(self._home) < 4 * self.count

    def give_back(self, view: memoryview) -> None:
        """End a loan; the view cannot be used afterwards.

        Raises ValueError for a view that is not on loan.
        """
        with self._guard:
            loan = self._lent.pop(id(view), None)
            if loan is None:
                raise ValueError("this buffer is not on loan: it was returned before, or belongs to another pool")
            view.release()
            if self._closed:
                loan[1].release()
                return
            self._home.append(loan[1])
            self._is_low = self._now_low()

    def close(self) -> int:
        """Release every buffer, loans when they are returned; return the number of loans.

        No buffer can be borrowed afterwards. A second call only counts.
        """
        with self._guard:
            self._closed = True
            home, self._home = self._home, []
            lent = len(self._lent)
        for memory in home:
            memory.release()
        return lent
