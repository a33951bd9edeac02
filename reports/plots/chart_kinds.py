"""The kinds of charts: each function draws the rows of one panel.

Only positions are computed here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator

from tornpage.reports.palette import INK, MUTED, PAPER, SERIES, series_style
from tornpage.reports.plots.plots import log_axis
from tornpage.reports.results.experiment_tables import Axis, Chart, Overlay, Row
from tornpage.reports.results.summaries import zero_floor
from tornpage.reports.text import number, shortened

__all__ = ["DRAWERS", "MORE_BELOW", "NAME_LENGTH", "Panel", "distinct"]

NAME_LENGTH = 26
_DARKEST = 0.55
"""Opacity of the cell with the greatest value; text in it is still legible."""
_BAR_STEPS = 20
"""The shades of the scale beside cells."""
MORE_BELOW = 0.9
"""How much wider (points) each series is than the one drawn over it, so that equal curves are all seen."""
_LABEL_STEP = 0.065
"""Least distance of two labels, as a share of the height of a panel."""
_CLUSTER = 0.2
"""Marks closer than this share of the width have their labels in one column."""
_POINTS_ACROSS, _POINTS_UP = 280.0, 150.0
"""The approximate size of a panel in points."""
_SHORT_SPAN = 30.0
"""A log axis that spans at most this factor has ticks between its decades."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: its rows, vertical axis, title, and overlays.

    `all_rows` are those of the whole chart: panels share series and horizontal axes, and panels of one column both.
    """

    chart: Chart
    rows: tuple[Row, ...]
    all_rows: tuple[Row, ...]
    y: Axis
    title: str = ""
    overlays: tuple[Overlay, ...] = ()


def _lines(panel: Panel, ax: Axes) -> None:
    chart = panel.chart
    floors = _scaled(panel, ax)
    for curve in panel.overlays:
        ax.plot(curve.x, curve.y, color=MUTED.light, linestyle=":", linewidth=1.2, zorder=1)
    series = list(_series(panel))
    for place, (_, rows) in enumerate(series):
        style = series_style(place)
        points = [(row[chart.x.column], _number(row[panel.y.column])) for row in rows]
        shown = [(x, max(y, floors[1])) for x, y in points if y is not None]
        ax.plot(
            [cast(float, x) for x, _ in shown],
            [y for _, y in shown],
            color=style.colour,
            linestyle=style.line if chart.series else "-",
            marker=style.marker if len(shown) < 40 else "",
            markersize=4 + MORE_BELOW * (len(series) - 1 - place),
            linewidth=1.3 + MORE_BELOW * (len(series) - 1 - place),
        )
    ax.set(xlabel=chart.x.title, ylabel=_wrapped(panel.y))


def _points(panel: Panel, ax: Axes) -> None:
    chart = panel.chart
    floors = _scaled(panel, ax)
    for curve in panel.overlays:
        ax.plot(curve.x, [max(y, floors[1]) for y in curve.y], color=MUTED.light, linestyle=":", linewidth=1.2)
    labels: dict[str, tuple[float, float]] = {}
    for place, (_, rows) in enumerate(_series(panel)):
        style = series_style(place)
        for row in rows:
            x, y = _number(row[chart.x.column]), _number(row[panel.y.column])
            if x is None or y is None:
                continue
            at = (max(x, floors[0]), max(y, floors[1]))
            ax.plot(
                [at[0]],
                [at[1]],
                linestyle="",
                marker=style.marker,
                color=style.colour,
                markerfacecolor="none" if place else style.colour,
                markersize=8 if place else 5,
                clip_on=False,
                zorder=3,
            )
            if chart.label and row[chart.label]:
                labels.setdefault(str(row[chart.label]), at)
    _label(ax, labels)
    ax.set(xlabel=chart.x.title, ylabel=_wrapped(panel.y))


def _label(ax: Axes, labels: Mapping[str, tuple[float, float]]) -> None:
    """Write names to the right of their marks, apart from each other.

    A line leads to a label that had to move.
    """
    places = {name: _place_of(ax, at) for name, at in labels.items()}
    reached = -1.0
    for name, (across, up) in sorted(places.items(), key=lambda place: place[1][1]):
        beside = max(other for other, _ in places.values() if other - across < _CLUSTER)
        reached = max(reached + _LABEL_STEP, up)
        ax.annotate(
            shortened(name, length=NAME_LENGTH),
            labels[name],
            xytext=(14 + (beside - across) * _POINTS_ACROSS, (reached - up) * _POINTS_UP),
            textcoords="offset points",
            fontsize=6.5,
            color=INK.light,
            va="center",
            arrowprops={"arrowstyle": "-", "color": MUTED.light, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 4},
        )


def _place_of(ax: Axes, at: tuple[float, float]) -> tuple[float, float]:
    """Return where in the panel a point is, right and up, both from 0 to 1."""
    (left, low), (right, high) = zip(ax.get_xlim(), ax.get_ylim(), strict=True)
    (x0, y0), (x1, y1), (x, y) = ax.transScale.transform([(left, low), (right, high), at])
    return float((x - x0) / (x1 - x0)), float((y - y0) / (y1 - y0))


def _bars(panel: Panel, ax: Axes) -> None:
    chart = panel.chart
    names = [shortened(str(row[panel.y.column]), length=NAME_LENGTH) for row in panel.rows]
    reach = [0.0]
    for place, row in enumerate(panel.rows):
        value = _number(row[chart.x.column])
        low, high = (_number(row[column]) if column else None for column in (chart.low, chart.high))
        if value is not None:
            ax.barh(place, value, height=0.62, color=SERIES[0].light, alpha=0.75)
        if low is not None and high is not None:
            ax.plot([low, high], [place, place], color=SERIES[1].light, linewidth=2, marker="|", markersize=9, zorder=3)
        end = max(value or 0.0, high or 0.0)
        reach.append(end)
        text = "measured only" if value is None else number(value)
        ax.annotate(text, (end, place), xytext=(6, 0), textcoords="offset points", fontsize=7, va="center")
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(0, 1.4 * max(reach) or 1.0), ylim=(len(names) - 0.4, -0.6))
    ax.grid(visible=False, axis="y")


def _shares(panel: Panel, ax: Axes) -> None:
    chart = panel.chart
    names = distinct(panel.rows, panel.y.column)
    parts = [name for name, _ in _series(panel)]
    for place, name in enumerate(names):
        rows = [row for row in panel.rows if str(row[panel.y.column]) == name]
        total = sum(_number(row[chart.x.column]) or 0.0 for row in rows)
        begin = 0.0
        for row in rows:
            share = 100 * (_number(row[chart.x.column]) or 0.0) / total if total else 0.0
            colour = SERIES[parts.index(str(row[chart.series])) % len(SERIES)].light
            ax.barh(place, share, left=begin, height=0.7, color=colour, edgecolor=PAPER.light, linewidth=0.8)
            begin += share
        ax.annotate(number(total), (100, place), xytext=(5, 0), textcoords="offset points", fontsize=7.5, va="center")
    ax.set_yticks(range(len(names)), [shortened(name, length=NAME_LENGTH) for name in names])
    ax.set(xlim=(0, 120), ylim=(len(names) - 0.5, -0.5), xlabel=_wrapped(chart.x), xticks=range(0, 101, 20))
    ax.grid(visible=False, axis="y")


def _cells(panel: Panel, ax: Axes) -> None:
    chart = panel.chart
    assert chart.value is not None, "checked when the table was read"
    xs, ys = (_edges([_number(row[axis.column]) for row in panel.rows]) for axis in (chart.x, panel.y))
    values = [_number(row[chart.value.column]) or 0.0 for row in panel.rows]
    top = max(values, default=0.0) or 1.0
    ax.set(xscale="log", yscale="log")
    for row, value in zip(panel.rows, values, strict=True):
        (left, right), (low, high) = xs[_at(row, chart.x)], ys[_at(row, panel.y)]
        ax.add_patch(
            Rectangle(
                (left, low),
                right - left,
                high - low,
                facecolor=SERIES[0].light,
                alpha=_DARKEST * (value / top) ** 0.5,
                linewidth=0,
            )
        )
        middle = ((left * right) ** 0.5, (low * high) ** 0.5)
        box = {"boxstyle": "round,pad=0.1", "facecolor": PAPER.light, "edgecolor": "none", "alpha": 0.6}
        ax.text(*middle, number(value), fontsize=7, color=INK.light, ha="center", va="center", bbox=box, zorder=4)
    for curve in panel.overlays:
        ax.plot(curve.x, curve.y, color=SERIES[1].light, linewidth=1.8)
    for name, edges, axis in (("x", xs, chart.x), ("y", ys, panel.y)):
        bounds = [edge for pair in edges.values() for edge in pair]
        ax.set(**{f"{name}lim": (min(bounds), max(bounds)), f"{name}label": axis.title})
        ticks = {"x": ax.set_xticks, "y": ax.set_yticks}[name]
        ticks(list(edges), [number(at) for at in edges])
    ax.minorticks_off()
    ax.grid(visible=False)
    _colour_bar(ax, top, chart.value)


def _colour_bar(ax: Axes, top: float, value: Axis) -> None:
    """Draw the scale of the cells beside them: shades, values, name and unit."""
    bar = ax.inset_axes((1.04, 0.0, 0.05, 1.0))
    for step in range(_BAR_STEPS):
        middle = (step + 0.5) / _BAR_STEPS
        shade = Rectangle((0, step), 1, 1, facecolor=SERIES[0].light, alpha=_DARKEST * middle**0.5, linewidth=0)
        bar.add_patch(shade)
    marks = range(0, _BAR_STEPS + 1, _BAR_STEPS // 4)
    bar.set(xlim=(0, 1), ylim=(0, _BAR_STEPS), xticks=(), ylabel=value.title)
    bar.set_yticks(list(marks), [number(top * mark / _BAR_STEPS) for mark in marks])
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    bar.grid(visible=False)


DRAWERS: dict[str, Callable[[Panel, Axes], None]] = {
    "lines": _lines,
    "points": _points,
    "bars": _bars,
    "shares": _shares,
    "cells": _cells,
}


# ---- parts ---------------------------------------------------------------------------------------------------------


def _scaled(panel: Panel, ax: Axes) -> tuple[float, float]:
    """Scale both axes; return where zeros are drawn on them, nowhere on a linear one."""
    floors = []
    for name, axis in (("x", panel.chart.x), ("y", panel.y)):
        rows = panel.all_rows if name == "x" or panel.chart.panel_by else panel.rows
        values = [value for row in rows if (value := _number(row[axis.column])) is not None]
        curves = [value for curve in panel.overlays for value in (curve.x if name == "x" else curve.y)]
        if axis.scale != "log" or not values:
            floors.append(-math.inf)
            continue
        floor = zero_floor([*values, *curves])
        shown = [max(value, floor or 0.0) for value in (*values, *curves)]
        log_axis(ax, "x" if name == "x" else "y", shown, floor=floor)
        if floor is None and max(shown) < _SHORT_SPAN * min(shown):
            (ax.xaxis if name == "x" else ax.yaxis).set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        floors.append(floor or 0.0)
    return floors[0], floors[1]


def _series(panel: Panel) -> list[tuple[str, list[Row]]]:
    """Return the panel's rows of each series, in the order of the whole chart."""
    column = panel.chart.series
    if not column:
        return [("", list(panel.rows))]
    return [
        (name, [row for row in panel.rows if str(row[column]) == name]) for name in distinct(panel.all_rows, column)
    ]


def distinct(rows: Sequence[Row], column: str) -> list[str]:
    """Return the values of a column, in order of their first row."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def _edges(values: Sequence[float | None]) -> dict[float, tuple[float, float]]:
    """Return the edges of the cell around each distinct value of a log axis.

    An edge is halfway to the neighbour.
    """
    known = sorted({value for value in values if value is not None and value > 0})
    if len(known) < 2:
        return {value: (value / 2, value * 2) for value in known}
    middles = [(before * after) ** 0.5 for before, after in pairwise(known)]
    bounds = [known[0] ** 2 / middles[0], *middles, known[-1] ** 2 / middles[-1]]
    return {value: (bounds[place], bounds[place + 1]) for place, value in enumerate(known)}


def _at(row: Row, axis: Axis) -> float:
    value = _number(row[axis.column])
    assert value is not None, "cells lie at numbers"
    return value


def _number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def _wrapped(axis: Axis) -> str:
    """Return the name of a vertical axis; its unit is on a second line if the name is long."""
    return axis.title if len(axis.title) <= NAME_LENGTH else f"{axis.label}\n({axis.unit})"
