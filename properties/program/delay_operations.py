"""What happens to clocks, roles and the progress of delayed messages, as values."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["ChangeRole", "ClockStep", "DelayOffsetsAre"]


@dataclass(frozen=True, slots=True)
class ClockStep:
    """Somebody sets the clock, forward or back."""

    by_ms: int = 0
    op: Literal["clock_step"] = "clock_step"


@dataclass(frozen=True, slots=True)
class DelayOffsetsAre:
    """Somebody else writes `delayOffset.json`: the master of a slave while that is open, else an operator while the
    store is closed.

    Every level of the table is set `by` messages ahead, or back; a level that has none yet begins at 0. Or the file is
    `lost` (its backup stays), or it and its backup are `garbage`.
    """

    kind: Literal["moved", "lost", "garbage"] = "moved"
    by: int = 1
    op: Literal["delay_offsets_are"] = "delay_offsets_are"


@dataclass(frozen=True, slots=True)
class ChangeRole:
    """The store is closed, and opened again in another role."""

    role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"] = "ASYNC_MASTER"
    op: Literal["change_role"] = "change_role"
