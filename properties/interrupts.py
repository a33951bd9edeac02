"""Hold interrupts back while processes are started.

An interrupt on a terminal reaches all its processes. A child that has not set its handling yet prints a traceback, and
a forked child unwinds the stack of its parent and ends what the parent began. The parent may also be interrupted
between the start of a process and the line that stores its handle.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

__all__ = ["born_deaf", "held_interrupts"]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold an interrupt back until the block ends.

    They start with SIGINT blocked. A process that is to receive interrupts has to unblock it.
    """
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    is_main = threading.current_thread() is threading.main_thread()  # only the main thread receives interrupts
    before = signal.signal(signal.SIGINT, hold) if is_main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if held:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def born_deaf() -> Iterator[None]:
    """Hold interrupts back while multiprocessing starts processes, which never receive one."""
    resource_tracker.ensure_running()  # it would be started inside the block, and unblocks interrupts after its start
    with held_interrupts():
        yield
