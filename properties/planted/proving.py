"""Bugs of what an open takes for proved: how far the log was durable, and what queues and index were then."""

from typing import Any

from impl.components import Components

__all__ = ["BUGS"]


def _believed(*_: Any, **__: Any) -> bool:
    """Nothing is read: what the floor says of queues and index is taken for true (holes C13, C16, I5 of 4.9.3)."""
    return True


BUGS = (
    ("derived-floor-believed", "an open believes the derived floor and reads nothing of what it speaks of", 4,
     Components(derived_is_true=_believed)),
)  # fmt: skip
