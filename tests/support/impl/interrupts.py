"""Interrupt a call at a chosen place, as the exception of a signal handler does."""

import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["is_interrupted"]


class _Interrupted(BaseException):
    """Stands for the exception of a signal handler."""


def is_interrupted(act: Callable[[], object], place: int) -> bool:
    """Call a function, and raise at the given place; return whether the function has so many.

    CPython runs signal handlers at the begin of a Python function and after the call of another one. It reports both
    places to a profiler. In a finaliser the exception is reported and goes no further.
    """
    left = place

    def profiler(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal left
        if event in ("call", "c_return"):
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
