"""Garbage of a campaign: thousands of stores are opened and given up, each a knot of parts that lead to each other.

Python looks for such knots after every 700 new objects, and through everything that lives after some such looks: a
sixth of a campaign's time. Nothing in a campaign waits for a store to be gone, so it is enough to look rarely.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rarely_collected"]

NEW_OBJECTS_MAX = 20_000
"""So many new objects are about 20 stores with their disks: some megabytes, which a cache holds better than more."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for garbage rarely, and not among what lives already; afterwards as before."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
