"""The small locks inside the parts of a store, replaceable: a scheduler of interleavings has to see who holds them."""

from collections.abc import Callable
from contextlib import AbstractContextManager

__all__ = ["MakeGuard"]

MakeGuard = Callable[[], AbstractContextManager[object]]
"""Makes one lock, to be used in `with` statements; never taken again by its holder. `threading.Lock` is one."""
