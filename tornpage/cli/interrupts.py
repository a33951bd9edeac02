"""An interrupt, or the word to end, that is heard once and cannot be lost.

1. SIGTERM is heard as SIGINT is: whoever takes interrupts keeps what there is, and cleans up.
2. What is raised is a kind of KeyboardInterrupt. Of KeyboardInterrupt itself Python remembers that it ended code which
   `exec` ran, as a dataclass that is just being made, and dies of SIGINT at the end of a command that has handled it.
3. A second one within a second is the same one: people press twice, a terminal and a parent send one each. Behind that
   it is somebody who does not want to wait until the command has cleaned up.
4. Python raises it wherever the main thread happens to be. In a callback of a weak reference or a finalizer nobody can
   hear it: Python prints "Exception ignored in" and goes on, and with it the command. So it is raised again.
5. A command that has said its last is not interrupted any more: Python would die of it while it tidies up.
6. A command that was interrupted ends without that: an interrupt into a compiler leaves what its finalizers crash on.
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
    """Somebody wants this command to end."""


class _Ears:
    """Raises an interrupt, unless it is the one that was raised just before."""

    def __init__(self) -> None:
        self._heard_at = -_THE_SAME_WITHIN_S

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        now = monotonic()
        if now - self._heard_at >= _THE_SAME_WITHIN_S:
            self._heard_at = now
            raise Interrupted


def hear_all_interrupts() -> None:
    """Have SIGINT and SIGTERM raise Interrupted, and raise one that was ignored again, until it is heard.

    For the main thread of a process of ours. Takes SIGALRM, and `sys.unraisablehook` for such interrupts. What SIGTERM
    does is up to who handles SIGINT at that time. Forked processes die of SIGTERM, as they are born to do.
    """
    others = sys.unraisablehook

    def hook(ignored: "sys.UnraisableHookArgs", /) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            # by the clock: what is raised from in here would be ignored as well
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)
        else:
            others(ignored)

    signal.signal(signal.SIGALRM, _raise)
    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, _Ears().hear)
    signal.signal(signal.SIGTERM, _as_an_interrupt)
    os.register_at_fork(after_in_child=_die_when_told)


def deaf_to_interrupts() -> None:
    """Take no notice of SIGINT and SIGTERM from here on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def leave_interrupted() -> NoReturn:
    """End this process, with what was registered for its end and what is still to be printed, and nothing else."""
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
