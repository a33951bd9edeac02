"""Interrupt a call at a chosen place, as the exception of a signal handler does."""

import logging
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["is_interrupted"]

_LEFT_ALONE = ("<frozen importlib", logging.__file__)


class _Interrupted(BaseException):
    """Stands for the exception of a signal handler."""


def is_interrupted(act: Callable[[], object], place: int) -> bool:
    """Call a function, and raise at the given place; return whether the function has so many.

    CPython runs signal handlers at the begin of a Python function and after the call of another one. It reports both
    places to a profiler. In a finaliser the exception is reported and goes no further. Imports and log output are not
    interrupted, because they could keep a lock of the whole process, which later tests need.
    """
    left = place

    def profiler(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and not frame.f_code.co_filename.startswith(_LEFT_ALONE):
            left -= 1
            if left < 0:
                raise _Interrupted  # CPython removes the profiler then

    try:
        sys.setprofile(profiler)
        act()
    except _Interrupted:
        pass
    finally:
        sys.setprofile(None)
    return left < 0
