"""Which bugs a strategy cannot see by its nature: a table with reasons, and no judgement about chances.

A bug that a strategy may not see is not tried with it, and counts as not killed by it.
"""

from properties.planted import racing

__all__ = ["NEEDS_THREADS", "may_see", "reason_why_not"]

NEEDS_THREADS = frozenset(bug for bug, *_ in racing.BUGS)
"""Bugs in which two threads have to meet at one place; all of them show in stepped threads, none needs processes."""

_MANY_THREADS = frozenset({"interleavings"})


def may_see(bug: str, strategy: str) -> bool:
    """Whether a strategy can meet what a bug needs."""
    return bug not in NEEDS_THREADS or strategy in _MANY_THREADS


def reason_why_not(bug: str, strategy: str) -> str:
    """Return why a strategy cannot see a bug; empty if it may."""
    return "" if may_see(bug, strategy) else "two threads have to meet, and this strategy has one"
