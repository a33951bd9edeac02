"""Figures of the page about power loss: shares of crash states with their intervals."""

from collections.abc import Sequence
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from tornpage.reports.palette import series_style
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.svg import inline_svg
from tornpage.reports.results.power_loss import ANY, PowerLoss, Share, version_key
from tornpage.reports.results.tables import Caption

__all__ = ["by_guarantee", "by_version"]

_ROW_IN = 0.2
_GAP = 0.62
"""The part of a row's height over which its marks are spread."""
_COLUMNS = ("disk", "version", "flush", "guarantee", "states broken", "states", "share", "95 % interval")


def by_version(found: PowerLoss, writer: str, title: str) -> Drawing:
    """Return the share of states with any broken number, by disk, version and flush type."""
    rows = [row for row in found.shares if row.writer == writer and row.number == ANY]
    disks = list(dict.fromkeys(row.disk for row in rows))
    versions = sorted({row.peer for row in rows}, key=version_key)
    flushes = sorted({row.flush for row in rows})

    def draw(ax: Axes) -> None:
        figure = cast(Figure, ax.figure)
        ax.remove()
        panels = figure.subplots(len(disks), 1, squeeze=False, sharex=True)[:, 0]
        for disk, panel in zip(disks, panels, strict=True):
            for place, flush in enumerate(flushes):
                shown = [row for row in rows if (row.disk, row.flush) == (disk, flush)]
                _marks(panel, shown, [versions.index(row.peer) for row in shown], place, len(flushes))
            _labels(panel, f"disk {disk}", [peer.rpartition(":")[2] for peer in versions])
        _finish(figure, rows, [f"{flush} flush" for flush in flushes])

    height = 0.75 + len(disks) * (0.32 + _ROW_IN * max(len(versions), 2) * 1.3)
    svg = inline_svg(draw, prefix=f"versions-{writer}", title=title, height_in=height)
    sentence = "A mark is the share of states in which RocketMQ breaks any number. Its line is the 95 % interval."
    cells = tuple(_cells(row) for row in rows)
    return Drawing(f"versions-{writer}", title, svg, sentence, _COLUMNS, cells, _caption(found))


def by_guarantee(found: PowerLoss, writer: str, title: str) -> Drawing:
    """Return the share of states in which each number is broken, by disk and version."""
    rows = [row for row in found.pooled(writer) if row.number != ANY]
    runs = [run for run in found.runs if run.writer == writer]
    disks = list(dict.fromkeys(run.disk for run in runs))
    versions = sorted({run.peer for run in runs}, key=version_key)
    numbers = {disk: sorted({(row.number, row.name) for row in rows if row.disk == disk}) for disk in disks}
    heights = [max(len(numbers[disk]), 1) for disk in disks]

    def draw(ax: Axes) -> None:
        figure = cast(Figure, ax.figure)
        ax.remove()
        panels = figure.subplots(len(disks), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for disk, panel in zip(disks, panels, strict=True):
            for place, version in enumerate(versions):
                shown = [row for row in rows if (row.disk, row.peer) == (disk, version)]
                ys = [numbers[disk].index((row.number, row.name)) for row in shown]
                _marks(panel, shown, ys, place, len(versions))
            _labels(panel, f"disk {disk}", [f"{number} {name}" for number, name in numbers[disk]])
        _finish(figure, rows, [version.rpartition(":")[2] for version in versions])

    height = 0.85 + 0.32 * len(disks) + sum(heights) * max(_ROW_IN * 1.3, 0.085 * len(versions))
    svg = inline_svg(draw, prefix=f"guarantees-{writer}", title=title, height_in=height)
    sentence = (
        "A mark is the share of states in which RocketMQ breaks a number, over both flush types. Its line is the 95 % "
        "interval. A number without a mark was broken in no state."
    )
    cells = tuple(_cells(row) for row in found.shares if row.writer == writer and row.number != ANY)
    return Drawing(f"guarantees-{writer}", title, svg, sentence, _COLUMNS, cells, _caption(found))


def _marks(ax: Axes, rows: Sequence[Share], places: Sequence[int], series: int, count: int) -> None:
    """Draw the marks of one series, each beside those of the others in its row."""
    style = series_style(series)
    shift = (series - (count - 1) / 2) * _GAP / max(count, 1)
    for row, place in zip(rows, places, strict=True):
        low, high = row.interval
        ax.plot([low, high], [place + shift] * 2, color=style.colour, linewidth=1.4, solid_capstyle="butt")
        ax.plot([row.share], [place + shift], color=style.colour, marker=style.marker, markersize=4.2, linestyle="")


def _labels(ax: Axes, title: str, names: Sequence[str]) -> None:
    ax.set_title(title, loc="left", fontsize=9)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _finish(figure: Figure, rows: Sequence[Share], labels: Sequence[str]) -> None:
    """Draw the legend, and let the common axis begin at 0 and reach past the last interval."""
    figure.axes[-1].set_xlim(0, 1.03 * max((row.interval[1] for row in rows), default=1.0))
    figure.axes[-1].set_xlabel("share of crash states")
    handles = []
    for place, label in enumerate(labels):
        style = series_style(place)
        handles.append(Line2D([], [], color=style.colour, marker=style.marker, linestyle="-", label=label))
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(labels), 5), frameon=False)


def _cells(row: Share) -> tuple[str, ...]:
    low, high = row.interval
    name = "any" if row.number == ANY else f"{row.number} {row.name}"
    version = row.peer.rpartition(":")[2]
    return (
        row.disk, version, row.flush, name, f"{row.broken:,}", f"{row.states:,}", f"{row.share:.2%}",
        f"{low:.2%} to {high:.2%}",
    )  # fmt: skip


def _caption(found: PowerLoss) -> Caption:
    return Caption(found.captions[0].source) if found.captions else Caption()
