"""The running flags: five bits that forbid reads or writes, and the derived permissions.

    bit  mask  name                      forbids          set by
    0    1     NOT_READABLE              gets             an operator
    1    2     NOT_WRITEABLE             puts and queues  an operator
    2    4     WRITE_LOGICS_QUEUE_ERROR  puts and queues  a consume queue that cannot be written
    3    8     WRITE_INDEX_FILE_ERROR    puts and queues  an index file that cannot be made
    4    16    DISK_FULL                 puts             the disk watch (impl/service/disk_watch.py)

Each bit has its own cause and is set and cleared independently. RocketMQ never clears bits 2 and 3, and drops a
NOT_WRITEABLE that is set while another bit forbids writes.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import IntFlag

__all__ = ["RunningFlag", "RunningFlags"]


class RunningFlag(IntFlag):
    """One reason to forbid reads or writes. Source: `RunningFlags`, with its masks."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 2
    WRITE_LOGICS_QUEUE_ERROR = 4
    WRITE_INDEX_FILE_ERROR = 8
    DISK_FULL = 16


_STOP_GETS = RunningFlag.NOT_READABLE
_STOP_QUEUES = RunningFlag.NOT_WRITEABLE | RunningFlag.WRITE_LOGICS_QUEUE_ERROR | RunningFlag.WRITE_INDEX_FILE_ERROR
_STOP_PUTS = _STOP_QUEUES | RunningFlag.DISK_FULL


class RunningFlags:
    """The bits of one store. Source: `RunningFlags`.

    Readers read the attributes without a lock. `readable` permits gets, `writeable` puts. `queue_writeable` permits
    writes to consume queues, which continue on a full disk so that they catch up with the log. Only `set` and `clear`
    change the attributes, under a lock created by `lock`; `bits` changes first.
    """

    __slots__ = ("_lock", "bits", "queue_writeable", "readable", "writeable")

    def __init__(self, *, lock: Callable[[], AbstractContextManager[object]] = threading.Lock) -> None:
        self._lock = lock()
        self.bits = RunningFlag(0)
        self.readable = True
        self.writeable = True
        self.queue_writeable = True

    def set(self, flag: RunningFlag) -> bool:
        """Set one bit or several; return whether one of them was clear."""
        with self._lock:
            return self._change(self.bits | flag)

    def clear(self, flag: RunningFlag) -> bool:
        """Clear one bit or several; return whether one of them was set."""
        with self._lock:
            return self._change(self.bits & ~flag)

    def _change(self, bits: RunningFlag) -> bool:
        if bits == self.bits:
            return False
        self.bits = bits
        self.readable = not bits & _STOP_GETS
        self.writeable = not bits & _STOP_PUTS
        self.queue_writeable = not bits & _STOP_QUEUES
        return True
