"""The dispatch service: puts readable records into queues and index, in log order.

The service runs when it is woken. Call `note_readable` after making bytes readable. During a round this only reads a
flag: the round sets `_sleeps`, then checks the log again, so no wake-up is lost.
After a round its thread rests for a millisecond, as that of RocketMQ does. Without the rest each synchronous put waits
for a round of dispatch, since both need the interpreter. Source: `DefaultMessageStore.ReputMessageService`.
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
    """Dispatches up to the readable end of the log.

    After a failed sync that end moves back; dispatched units stay.
    """

    name = "reput"
    rest_ms = 1

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
        """Bytes that are readable and not dispatched yet, without expired ones.

        Source: `dispatchBehindBytes`.
        """
        return max(0, self._log.readable_end - max(self._derived.reput_from_offset, self._log.min_offset))

    @property
    def error(self) -> str | None:
        """Why dispatch has stopped for good, as a sentence, or None."""
        return self._derived.error

    def note_readable(self, _end_offset: int = 0) -> None:
        """Wake the service if it sleeps and there is something to dispatch.

        Call it after bytes became readable.
        """
        if self._sleeps and self._log.committed_where > self._derived.progress.offset and self.wake is not None:
            self.wake()

    def step(self, now_ms: int) -> int | None:
        """Dispatch until nothing is left; return None to sleep until woken.

        Raises OSError if a queue or index file cannot be written. The runner then tries again after its pause. After
        that, and after dispatch has stopped for good, `note_readable` does not wake the service.
        """
        self.drain()
        return None

    def without_dispatch(self) -> AbstractContextManager[object]:
        """Return a context that keeps dispatch out, for other changes to queues and index."""
        return self._guard

    def drain(self) -> None:
        """Dispatch until nothing is left, one thread at a time.

        It ends, whatever a dispatch leaves: another round begins only if the readable end has moved. Raises OSError.
        """
        with self._guard:
            self._sleeps = False
            log, derived = self._log, self._derived
            while derived.error is None:
                end = log.readable_end
                while derived.dispatch(log, end):
                    end = log.readable_end
                self._sleeps = True
                if not self.behind_bytes or (log.readable_end == end and derived.error is None):
                    return
                self._sleeps = False
            self._tell_of_error()

    def _tell_of_error(self) -> None:
        if self.error is not None and self._flags.set(RunningFlag.WRITE_LOGICS_QUEUE_ERROR):
            _LOG.error("dispatch_stopped offset=%d reason=%r", self._derived.reput_from_offset, self.error)
