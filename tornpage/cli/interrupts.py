"""Handle SIGINT and SIGTERM so that each interrupt is raised exactly once.

1. SIGTERM works like SIGINT: a command that handles interrupts keeps its results and cleans up.
2. The exception is a subclass of KeyboardInterrupt. Python records that a KeyboardInterrupt itself ended code run by
   `exec`, such as the creation of a dataclass, and then dies of SIGINT at the end of a command that has handled it.
3. A second interrupt within a second counts as the same one: users press the keys twice, and a terminal and a parent
   send one each. A later one ends the command without waiting for its clean-up.
4. Python raises the exception at any place of the main thread. In a callback of a weak reference or in a finalizer it
   cannot be caught: Python prints "Exception ignored in" and the command continues. So the interrupt is raised again.
5. After its last output a command ignores interrupts, since Python would die of them in its own clean-up.
6. An interrupted command exits without Python's clean-up: an interrupt in a compiler leaves objects whose finalizers
   crash.
"""

import atexit
import os
import signal
import sys
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import NoReturn

__all__ = ["INTERRUPTED", "Interrupted", "deaf_to_interrupts", "hear_all_interrupts", "leave_interrupted"]

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""

_AGAIN_AFTER_S = 0.005
_THE_SAME_WITHIN_S = 1.0


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM has arrived."""


class _Ears:
    """Signal handler that raises an interrupt, unless the last one is less than a second old."""

    def __init__(self) -> None:
        self._heard_at = -_THE_SAME_WITHIN_S

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        now = monotonic()
        if now - self._heard_at >= _THE_SAME_WITHIN_S:
            self._heard_at = now
            raise Interrupted


def hear_all_interrupts() -> None:
    """Make SIGINT and SIGTERM raise Interrupted, and repeat an interrupt that Python ignored.

    Call it in the main thread. It uses SIGALRM and `sys.unraisablehook`. SIGTERM calls the SIGINT handler that is
    installed at that time. Forked processes die of SIGTERM, as by default.
    """
    others = sys.unraisablehook

    def hook(ignored: "sys.UnraisableHookArgs", /) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            # by a timer: an exception raised in this hook would be ignored as well
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)
        else:
            others(ignored)

    signal.signal(signal.SIGALRM, _raise)
    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, _Ears().hear)
    signal.signal(signal.SIGTERM, _as_an_interrupt)
    os.register_at_fork(after_in_child=_die_when_told)


def deaf_to_interrupts() -> None:
    """Ignore SIGINT and SIGTERM from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def leave_interrupted() -> NoReturn:
    """Run exit functions, flush the output, and end this process without further clean-up."""
    deaf_to_interrupts()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted


def _as_an_interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _die_when_told() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
