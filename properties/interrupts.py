"""Interrupts while processes are started.

An interrupt of a terminal comes to all its processes. A child that has not said yet what it does about that prints a
traceback of its own; one that was forked unwinds the stack of its parent, and ends what the parent has begun. And the
parent may be interrupted between the start of a process and the line that remembers it.
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
    """Hold an interrupt back until this is over. Processes that are started meanwhile never hear one.

    They are born with SIGINT blocked; one that is to hear it has to unblock it.
    """
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    is_main = threading.current_thread() is threading.main_thread()  # nobody else is interrupted
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
    """Hold interrupts back while multiprocessing starts processes, which never hear one."""
    resource_tracker.ensure_running()  # it would be started in here, and unblocks interrupts behind that
    with held_interrupts():
        yield
