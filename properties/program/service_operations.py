"""What runs a store, as values: the steps of its services, flush, close and open."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Close", "Flush", "Open", "OpenTwice", "ServiceName", "Step"]

ServiceName = Literal[
    "group-commit",
    "time-outs",
    "flush",
    "commit",
    "allocate",
    "reput",
    "flush-queues",
    "clean",
    "pull-hold",
    "progress",
    "schedule",
]


@dataclass(frozen=True, slots=True)
class Step:
    """Time passes, then a service takes one step; one that the store does not have takes none.

    A step of group commit answers all puts that wait for the disk.
    """

    service: ServiceName = "group-commit"
    after_ms: int = 0
    op: Literal["step"] = "step"


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush the store."""

    op: Literal["flush"] = "flush"


@dataclass(frozen=True, slots=True)
class Close:
    """Close the store cleanly."""

    op: Literal["close"] = "close"


@dataclass(frozen=True, slots=True)
class Open:
    """Open the closed store."""

    op: Literal["open"] = "open"


@dataclass(frozen=True, slots=True)
class OpenTwice:
    """Somebody else opens the store while it is open."""

    op: Literal["open_twice"] = "open_twice"
