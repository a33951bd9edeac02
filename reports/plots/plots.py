"""The figures: each function draws a summary on an axes and returns it.

Numbers are not computed here. Colours are the light values of the palette, which `reports.plots.svg` turns into
classes. Series differ in colour, marker and line.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from tornpage.reports.palette import FATES, GRID, INK, MUTED, PAPER, series_style
from tornpage.reports.plots.pagegrid import COLUMNS, GridLine, PageGrid
from tornpage.reports.results.summaries import Discovery, Frontier, LatencyCurve, Stalls
from tornpage.reports.text import shortened, tick

__all__ = [
    "legend_above",
    "legend_lines",
    "log_axis",
    "plot_discovery",
    "plot_frontier",
    "plot_page_map",
    "plot_put_latency",
    "plot_stalls",
]

_NAME_LENGTH = 44
_NAME_LENGTH_TWO_COLUMNS = 26


def legend_lines(labels: Sequence[str]) -> int:
    """Return the lines that a legend of these labels takes above its figure."""
    return -(-len(labels) // _legend_columns(labels))


def plot_put_latency(curves: Sequence[LatencyCurve], *, ax: Axes) -> Axes:
    """Draw the share of puts over put latency (µs, log), one step curve per flush policy.

    The quantiles are marked.
    """
    log_axis(ax, "x", [value for curve in curves for value in curve.latency_us])
    for number, curve in enumerate(curves):
        style = series_style(number)
        ax.plot(
            curve.latency_us,
            curve.fraction,
            drawstyle="steps-post",
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=list(curve.marked),
            label=shortened(curve.policy, length=_NAME_LENGTH),
        )
    ax.set(xlabel="put latency (µs)", ylabel="share of puts", ylim=(-0.02, 1.04))
    legend_above(ax, "flush policy")
    return ax


def plot_frontier(frontier: Frontier, *, ax: Axes) -> Axes:
    """Draw messages at risk over put latency p99 (µs), both log.

    A point is the mean, a whisker leads to the p99, and the marker size is the rate.
    """
    floor = frontier.floor_messages or 0.0
    sizes = {rate: 3.5 + 2.5 * rank for rank, rate in enumerate(frontier.rates_per_s)}
    at_risk = [max(value, floor) for curve in frontier.curves for value in (*curve.messages_mean, *curve.messages_p99)]
    log_axis(ax, "x", [value for curve in frontier.curves for value in curve.put_p99_us])
    log_axis(ax, "y", at_risk, floor=frontier.floor_messages)
    for number, curve in enumerate(frontier.curves):
        style = series_style(number)
        mean = [max(value, floor) for value in curve.messages_mean]
        high = [max(value, floor) for value in curve.messages_p99]
        ax.vlines(curve.put_p99_us, mean, high, colors=style.colour, linewidth=1)
        label = shortened(curve.policy, length=_NAME_LENGTH)
        ax.plot(curve.put_p99_us, mean, color=style.colour, linestyle=style.line, linewidth=0.8, label=label)
        for rate, x, y in zip(curve.rate_per_s, curve.put_p99_us, mean, strict=True):
            ax.plot([x], [y], color=style.colour, linestyle="", marker=style.marker, markersize=sizes[rate])
    ax.set(xlabel="put latency, p99 (µs)", ylabel="messages at risk (mean, line to p99)")
    legend_above(ax, "flush policy; size: rate", handles=_frontier_handles(frontier, sizes))
    return ax


def plot_stalls(stalls: Stalls, *, ax: Axes) -> Axes:
    """Draw every stall (µs, log), a strip per preallocation policy, with median and quartiles."""
    floor = stalls.floor_us or 0.0
    shown = [max(value, floor) for group in stalls.groups for value in group.stall_us]
    log_axis(ax, "x", shown, floor=stalls.floor_us)
    for number, group in enumerate(stalls.groups):
        style = series_style(number)
        low, median, high = (max(value, floor) for value in (group.low_us, group.median_us, group.high_us))
        ax.plot([low, high], [number, number], color=GRID.light, linewidth=22, solid_capstyle="butt", zorder=1)
        ax.plot([median, median], [number - 0.3, number + 0.3], color=INK.light, linewidth=1.5, zorder=4)
        ax.plot(
            [max(value, floor) for value in group.stall_us],
            [number + 0.5 * (0.618 * place % 1) - 0.25 for place in range(len(group.stall_us))],
            color=style.colour,
            linestyle="",
            marker=style.marker,
            markerfacecolor="none",
            markersize=4,
            label=shortened(group.allocation, length=_NAME_LENGTH),
            zorder=3,
        )
    names = [shortened(group.allocation, length=18) for group in stalls.groups]
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="stall at a file roll (µs)", ylabel="preallocation", ylim=(len(names) - 0.5, -0.5))
    ax.grid(visible=False, axis="y")
    return ax


def plot_discovery(discovery: Discovery, *, ax: Axes) -> Axes:
    """Draw distinct images and distinct recovered logs over crash states, both log.

    The begin of the last tenth is marked.
    """
    series = ((discovery.images, "distinct disk images"), (discovery.recovered, "distinct recovered logs"))
    log_axis(ax, "x", discovery.states)
    log_axis(ax, "y", [*discovery.images, *discovery.recovered])
    ax.plot(discovery.states, discovery.states, color=MUTED.light, linestyle=":", linewidth=1, label="every state new")
    for number, (counts, label) in enumerate(series):
        style = series_style(number)
        every = max(1, len(counts) // 12)
        ax.plot(
            discovery.states,
            [count or None for count in counts],  # type: ignore[arg-type]  # a gap where nothing was found yet
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=every,
            label=label,
        )
    ax.axvline(discovery.tail_states, color=MUTED.light, linewidth=0.8, linestyle="--", label="last tenth begins")
    ax.set(xlabel="crash states explored", ylabel="distinct so far (count)")
    legend_above(ax, None)
    return ax


def plot_page_map(grid: PageGrid, *, ax: Axes) -> Axes:
    """Draw the pages of each file as cells, names and sizes beside them.

    Colour, hatch and letter show the fate.
    """
    beside = max(grid.columns, 4) + 0.5
    for number, line in enumerate(grid.lines):
        top = 2.0 * number
        ax.text(0, top + 0.62, _line_name(line), fontsize=7.5, color=INK.light, va="center")
        for place, fate in enumerate(line.fates):
            if fate:
                _cell(ax, place, top + 1, fate)
        for place, (what, fate) in enumerate(line.facts[:3]):
            x = beside + 3.7 * place
            _cell(ax, x, top + 1, fate)
            ax.text(x + 1.2, top + 1.48, shortened(what, length=10), fontsize=7.5, color=INK.light, va="center")
    facts = max((len(line.facts[:3]) for line in grid.lines), default=0)
    ax.set(xlim=(-0.2, max(beside + 3.7 * facts, 12)), ylim=(2.0 * max(len(grid.lines), 1) + 0.2, 0))
    ax.set_xticks([column + 0.5 for column in range(grid.columns)], [str(column) for column in range(grid.columns)])
    ax.set_yticks([])
    several = f", {COLUMNS} to a line" if any(line.first_page for line in grid.lines) else ""
    ax.set_xlabel(f"page of the file (4 KiB each{several}); names and sizes beside", loc="left")
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    patches = [_fate_patch(fate, _fate_label(fate, count)) for fate, count in grid.fates]
    legend_above(ax, None, handles=patches)
    return ax


def _line_name(line: GridLine) -> str:
    name = shortened(line.file, length=48)
    return f"{name}, from page {line.first_page}" if line.first_page else name


def _cell(ax: Axes, x: float, y: float, fate: str) -> None:
    style = FATES[fate]
    ax.add_patch(
        Rectangle(
            (x + 0.05, y),
            0.9,
            0.95,
            facecolor=style.colour if style.filled else PAPER.light,
            edgecolor=style.colour,
            hatch=style.hatch,
            linewidth=1,
        )
    )
    box = {"boxstyle": "round,pad=0.2", "facecolor": PAPER.light, "edgecolor": "none"}
    ax.text(x + 0.5, y + 0.5, style.letter, fontsize=7, color=INK.light, ha="center", va="center", bbox=box)


def _fate_label(fate: str, count: int) -> str:
    counted = f", {count} page{'s' * (count > 1)}" if count else ""
    return f"{FATES[fate].letter}: {fate}{counted}"


def _fate_patch(fate: str, label: str) -> Patch:
    style = FATES[fate]
    face = style.colour if style.filled else PAPER.light
    return Patch(facecolor=face, edgecolor=style.colour, hatch=style.hatch, label=label)


def _frontier_handles(frontier: Frontier, sizes: dict[float, float]) -> list[Artist]:
    handles: list[Artist] = []
    for number, curve in enumerate(frontier.curves):
        style = series_style(number)
        label = shortened(curve.policy, length=_NAME_LENGTH)
        handles.append(Line2D([], [], color=style.colour, linestyle=style.line, marker=style.marker, label=label))
    for rate, size in sizes.items():
        label = f"{tick(rate)} messages/s"
        handles.append(Line2D([], [], color=MUTED.light, linestyle="", marker="o", markersize=size, label=label))
    return handles


def _legend_columns(labels: Sequence[str]) -> int:
    return 1 if max(map(len, labels), default=0) > _NAME_LENGTH_TWO_COLUMNS else 2


def legend_above(ax: Axes, title: str | None, *, handles: Sequence[Artist] | None = None) -> None:
    """Put a legend of the drawn series, or of the given handles, between title and figure."""
    shown = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not shown:
        return
    legend = ax.legend(
        handles=shown,
        title=title,
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        ncols=_legend_columns([str(handle.get_label()) for handle in shown]),
        frameon=False,
        borderaxespad=0,
    )
    legend.set_alignment("left")


def log_axis(ax: Axes, name: Literal["x", "y"], values: Iterable[float], *, floor: float | None = None) -> None:
    """Make an axis log, fitted to `values`, at least a decade long, with plain numbers.

    `floor` is where the zeros are drawn, labelled 0. Then there are no minor ticks, since they would be wrong below it.
    """
    shown = [value for value in values if value > 0] or [1.0]
    low, high = min(shown) / 1.4, max(shown) * 1.4
    if math.floor(math.log10(high)) == math.floor(math.log10(low)):
        low, high = low if floor else 10 ** math.floor(math.log10(low)), max(high, 10 * low)
    ax.set(**{f"{name}scale": "log"})
    axis = ax.xaxis if name == "x" else ax.yaxis
    axis.set_major_locator(LogLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_formatter(NullFormatter())
    if floor is not None:
        decades = [value for value in LogLocator().tick_values(floor, high) if floor < value <= high]
        axis.set_major_locator(FixedLocator([floor, *decades]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value <= floor else tick(value)))
        axis.set_minor_locator(NullLocator())
    ax.set(**{f"{name}lim": (low, high)})
