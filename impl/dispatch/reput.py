"""The service that dispatches: whatever readers may see of the log goes into the queues and the index, in log order.

It runs when it is woken. Who makes bytes readable calls `note_readable` behind that; while a round runs this costs a
look at a flag, since a round looks at the log once more behind saying that it sleeps. RocketMQ looks each millisecond.
Source: `DefaultMessageStore.ReputMessageService`.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.guards import MakeGuard
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags

__all__ = ["ReputMessages"]

_LOG = logging.getLogger("tornpage.store")


class ReputMessages:
    """Dispatches up to the readable end of the log. That goes down after a failed sync; nothing is taken back then."""

    name = "reput"

    def __init__(
        self,
        derived: Derived,
        log: MappedFileQueue,
        flags: RunningFlags,
        *,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self.wake: Callable[[], None] | None = None
        self._derived = derived
        self._log = log
        self._flags = flags
        self._guard = guard()
        self._sleeps = True
        self._tell_of_error()

    @property
    def behind_bytes(self) -> int:
        """How much of what is readable is still to be dispatched. Source: `dispatchBehindBytes`."""
        return max(0, self._log.readable_end - self._derived.reput_from_offset)

    @property
    def error(self) -> str | None:
        """Why nothing is dispatched any more, as a sentence, or None."""
        return self._derived.error

    def note_readable(self, _end_offset: int = 0) -> None:
        """Say that more of the log may be readable now; wakes the service if it sleeps and there is work."""
        if self._sleeps and self._log.committed_where > self._derived.progress.offset and self.wake is not None:
            self.wake()

    def step(self, now_ms: int) -> int | None:
        """Dispatch until nothing is left, then sleep until woken.

        Raises the OSError of a queue or index file that cannot be written; then, and behind an error, nobody is asked
        to wake it: the runner tries again after its pause.
        """
        self.drain()
        return None

    def alone(self) -> AbstractContextManager[object]:
        """Return what keeps dispatch out while it is entered: queues and index change for another reason then."""
        return self._guard

    def drain(self) -> None:
        """Dispatch until nothing is left. Raises OSError. One at a time does so."""
        with self._guard:
            self._sleeps = False
            log, derived = self._log, self._derived
            while derived.error is None:
                while derived.dispatch(log, log.readable_end):
                    pass
                self._sleeps = True
                if not self.behind_bytes:
                    return
                self._sleeps = False
            self._tell_of_error()

    def _tell_of_error(self) -> None:
        if self.error is not None and self._flags.set(RunningFlag.WRITE_LOGICS_QUEUE_ERROR):
            _LOG.error("dispatch_stopped offset=%d reason=%r", self._derived.reput_from_offset, self.error)
