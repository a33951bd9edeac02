"""Compiling kernels and the functions they call, and the types of their arguments."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

__all__ = ["BYTES", "INT", "READ", "WRITE", "Bytes", "Text", "kernel", "kernel_part"]

Bytes = NDArray[np.uint8]
Text = Any
"""An argument of type `bytes`. A kernel indexes it as it indexes an array."""

READ = types.Array(types.uint8, 1, "C", readonly=True)
WRITE = types.Array(types.uint8, 1, "C")
BYTES = types.Bytes(types.uint8, 1, "C", readonly=True)
"""The type of `bytes`. Such an argument needs no array around it."""
INT = types.int64

_OPTIONS: Any = {"nogil": True, "_nrt": False}
"""Disables reference counts of arrays, since no kernel creates or keeps one. Counts are atomic, each call of a function
changes several, and two thirds of a dispatch were spent on them (numba/numba, issue 2345)."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(*signature: Any) -> Callable[[_Function], _Function]:
    """Compile a function for calls from Python; cache it on disk."""
    compiled: Any = njit([signature], cache=True, **_OPTIONS)
    wrap: Callable[[_Function], _Function] = compiled
    return wrap


def kernel_part(function: _Function) -> _Function:
    """Compile a function that kernels call, into each of them."""
    compiled: _Function = njit(**_OPTIONS)(function)
    return compiled
