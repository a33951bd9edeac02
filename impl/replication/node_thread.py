"""The thread of a node.

It steps the node, then waits until a link is ready, a put asks for replicas, or the next step is due.
"""

import logging
import threading
import time
from collections.abc import Callable

from tornpage.impl.replication.link import WaitingNetwork

__all__ = ["NodeThread", "monotonic_ms"]

_LOG = logging.getLogger("tornpage.replication")

_PAUSE_AFTER_FAILURE_MS = 1_000


def monotonic_ms() -> int:
    """Return the monotonic time in milliseconds."""
    return time.monotonic_ns() // 1_000_000


class NodeThread:
    """Steps a node until `stop`.

    `step` takes the time in milliseconds and returns when the next step is due. A failed step is logged and repeated
    after a second.
    """

    def __init__(
        self,
        step: Callable[[int], int],
        network: WaitingNetwork,
        now_ms: Callable[[], int],
        *,
        name: str = "tornpage-replication",
    ) -> None:
        self._step = step
        self._network = network
        self._now_ms = now_ms
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its current step. Idempotent."""
        self._is_stopped = True
        self._network.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            due_ms = self._due_after_step()
            self._network.wait(max(0, due_ms - self._now_ms()))

    def _due_after_step(self) -> int:
        try:
            return self._step(self._now_ms())
        except Exception:
            _LOG.exception("step_failed service=%s", self._thread.name)  # the node goes on: its other links may work
            return self._now_ms() + _PAUSE_AFTER_FAILURE_MS
