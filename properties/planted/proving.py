"""Bugs of what an open takes for proved: how far the log was durable, and what queues and index were then."""

from typing import Any

from impl.derived_proof import is_still_true
from impl.parts import Parts

__all__ = ["BUGS"]


def _believed(*_: Any, **__: Any) -> bool:
    """Nothing is read: what the floor says of queues and index is taken for true (holes C13, C16, I5 of 4.9.3)."""
    return True


BUGS = (
    ("derived-floor-believed", "an open believes the derived floor and reads nothing of what it speaks of", 4,
     Parts({is_still_true: _believed})),
)  # fmt: skip
