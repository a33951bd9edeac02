"""What forbids the store to be read or written at the moment: five bits, and what follows from them.

    bit  mask  name                      forbids          set by
    0    1     NOT_READABLE              gets             an operator
    1    2     NOT_WRITEABLE             puts and queues  an operator
    2    4     WRITE_LOGICS_QUEUE_ERROR  puts and queues  a consume queue that cannot be written
    3    8     WRITE_INDEX_FILE_ERROR    puts and queues  an index file that cannot be made
    4    16    DISK_FULL                 puts             the disk watch (impl/service/disk_watch.py)

Each bit has its own cause and is set and cleared on its own, whatever the others say. RocketMQ never clears bits 2 and
3, and drops a NOT_WRITEABLE that comes while another bit blocks writing.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import IntFlag

__all__ = ["RunningFlag", "RunningFlags"]


class RunningFlag(IntFlag):
    """One reason not to read or not to write. Source: `RunningFlags`, with its masks."""

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

    Readers take the attributes as they are, without a lock: `readable` (gets), `writeable` (puts; read at each of
    them), `queue_writeable` (consume queues, which go on when the disk is full, so that they catch up with the log) and
    `bits`. Only `set` and `clear` change them, under a lock from `lock`; `bits` changes first.
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
