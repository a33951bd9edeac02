"""Wait for a stop or the end of a traced process, or for a descriptor, without polling.

A stop raises SIGCHLD. The signal is blocked while a thread waits, and read from a descriptor (signalfd). Another thread
of this process may take the signal, so each wait has a time limit.
"""

import ctypes
import os
import select
import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

__all__ = ["child_signals_held", "wait_for_child"]

LOST_SIGNAL_S = 0.002
"""The longest wait, because a signal may be lost."""
_SIGSET_BYTES = 128
_CLOSE_ON_EXEC_AND_NONBLOCKING = os.O_CLOEXEC | os.O_NONBLOCK
_SIGNAL_BYTES = 128


@contextmanager
def child_signals_held() -> Iterator[None]:
    """Block SIGCHLD in this thread, so that none is lost before a wait."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    try:
        yield
    finally:
        if signal.SIGCHLD not in before:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))


def wait_for_child(descriptors: Sequence[int] = (), seconds: float = LOST_SIGNAL_S) -> bool:
    """Wait until a descriptor can be read, a child changes, or a time is over.

    Return whether a descriptor can be read.
    """
    signals = _signal_descriptor(os.getpid())
    ready, _, _ = select.select([*descriptors, signals], [], [], min(seconds, LOST_SIGNAL_S))
    if signals in ready:
        with suppress(BlockingIOError):
            os.read(signals, 16 * _SIGNAL_BYTES)
    return any(descriptor in ready for descriptor in descriptors)


@lru_cache(maxsize=1)
def _signal_descriptor(process: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    mask = ctypes.create_string_buffer(struct.pack("Q", 1 << (signal.SIGCHLD - 1)), _SIGSET_BYTES)
    found: int = libc.signalfd(-1, mask, _CLOSE_ON_EXEC_AND_NONBLOCKING)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
