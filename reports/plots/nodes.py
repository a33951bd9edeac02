"""The time line of a cluster: end and durable end of each log after each operation."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tornpage.reports.palette import SERIES

__all__ = ["NodesLine", "plot_nodes"]


@dataclass(frozen=True, slots=True)
class NodesLine:
    """One node: offsets after each operation (-1: down), and the operations that took it down."""

    node: int
    ends: tuple[int, ...]
    flushed: tuple[int, ...]
    crashes: tuple[int, ...]


def plot_nodes(lines: Sequence[NodesLine], *, ax: Axes) -> Axes:
    """Draw the end of each log as a line, its durable end dashed, each crash as a cross."""
    highest = max((end for line in lines for end in line.ends), default=0)
    for place, line in enumerate(lines):
        colour = SERIES[place % len(SERIES)].light
        shift = place * max(highest, 100) * 0.012  # equal logs are not drawn over each other
        numbers = range(1, len(line.ends) + 1)
        ax.plot(numbers, _offsets(line.ends, shift), color=colour, marker=".", label=f"node {line.node}: end")
        durable = _offsets(line.flushed, shift)
        ax.plot(numbers, durable, color=colour, linestyle="--", linewidth=0.9, label=f"node {line.node}: durable")
        at = [line.ends[number - 2] if number > 1 else 0 for number in line.crashes]
        ax.plot(line.crashes, _offsets(at, shift), color=colour, marker="X", markersize=8, linestyle="")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="operation", ylabel="offset (bytes)")
    ax.figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return ax


def _offsets(found: Sequence[int], shift: float) -> list[float]:
    return [nan if offset < 0 else offset + shift for offset in found]
