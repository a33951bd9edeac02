"""A Ctrl-C that cannot be lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback of a weak reference or a finalizer
nobody can hear it: Python prints "Exception ignored in" and goes on, and with it the command.
"""

import signal
import sys
from types import FrameType

__all__ = ["hear_all_interrupts"]

_AGAIN_AFTER_S = 0.005


def hear_all_interrupts() -> None:
    """Raise a KeyboardInterrupt that was ignored once more, a moment later, until it arrives where it can be heard.

    For the main thread of a process of ours. Takes SIGALRM, and `sys.unraisablehook` for such interrupts.
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


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
