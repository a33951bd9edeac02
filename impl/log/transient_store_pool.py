"""Write buffers of one log file each: records gather here, and a commit copies them to the page cache.

A buffer comes with whatever its last user left in it. It is not zeroed, which would touch a whole file of memory at
each roll: whoever writes a buffer out writes the range it filled itself and nothing else.
"""

import logging
import threading
from collections.abc import Callable

from tornpage.impl.io.memory import LockedMemory

__all__ = ["TransientStorePool"]

_LOG = logging.getLogger("tornpage.store")


class TransientStorePool:
    """`count` buffers of `buffer_bytes` bytes, reserved now and lent out one by one. Safe for threads.

    Each loan is a view of its own that ends when it is given back, so that a late write raises ValueError and cannot
    reach the next borrower. Raises OSError when the memory cannot be had. Source: `TransientStorePool`.
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
        """How many buffers are home. Source: `TransientStorePool.availableBufferNums`."""
        return len(self._home)

    def borrow(self) -> memoryview | None:
        """Return the buffer that came home last, whose pages are warmest; None if none is home.

        The log is warned when fewer than 40 % stay behind, and again only after there were more in between.
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
        """End a loan; the view cannot be used afterwards. Raises ValueError for a view that is not on loan."""
        with self._guard:
            loan = self._lent.pop(id(view), None)
            if loan is None:
                raise ValueError("this buffer is not on loan: it was given back before, or it is not of this pool")
            view.release()
            if self._closed:
                loan[1].release()
                return
            self._home.append(loan[1])
            self._is_low = self._now_low()

    def close(self) -> int:
        """Release every buffer that is home, and the others as they come back; return how many are still on loan.

        Nothing can be borrowed afterwards. Closing again only counts.
        """
        with self._guard:
            self._closed = True
            home, self._home = self._home, []
            lent = len(self._lent)
        for memory in home:
            memory.release()
        return lent
