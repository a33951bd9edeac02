"""The seconds of each stage of a run, or of each step of the main job.

The table is `stages.json` of a run directory. Without it the steps are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.shape import Positive

__all__ = ["BAR", "StageBar", "StageRow", "bars_of"]

BAR = 120
"""Length of the longest bar (units of the drawing)."""


@dataclass(frozen=True, slots=True)
class StageRow:
    """Seconds that a stage took, over all workers."""

    stage: str
    seconds: Positive


@dataclass(frozen=True, slots=True)
class StageBar:
    """A stage with its share of the whole (percent), and the length of its bar."""

    stage: str
    seconds: float
    share: float
    bar: int


def bars_of(rows: Sequence[StageRow]) -> tuple[StageBar, ...]:
    """Return a bar per stage that took time, in the order of the rows."""
    total = sum(row.seconds for row in rows)
    longest = max((row.seconds for row in rows), default=0.0)
    return tuple(
        StageBar(row.stage, row.seconds, 100 * row.seconds / total, round(BAR * row.seconds / longest))
        for row in rows
        if row.seconds
    )
