"""Results of experiments as figures.

A chart has a panel for each of its vertical axes, or for each value of a column, one below the other. One legend is
above all of them.
"""

from typing import cast

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tornpage.reports.palette import MUTED, SERIES, series_style
from tornpage.reports.plots.chart_kinds import DRAWERS, NAME_LENGTH, Panel, distinct
from tornpage.reports.plots.svg import inline_svg
from tornpage.reports.results.experiment_tables import ExperimentTable
from tornpage.reports.text import shortened

__all__ = ["draw_experiment", "panels_of"]

_PANEL_IN = {"lines": 1.85, "points": 2.6, "cells": 3.2}
_SMALL_PANEL_IN = 1.15
_BAR_IN = 0.23
_SHARE_IN = 0.34
_AXIS_IN = 0.5
_LEGEND_LINE_IN = 0.17
_LONG_LABEL = 60


def draw_experiment(table: ExperimentTable) -> str:
    """Return the figure of an experiment as inline SVG."""
    about = table.experiment
    panels, handles = panels_of(table), _handles(table)
    heights = [_height_in(panel) for panel in panels]
    columns = 1 if any(len(str(handle.get_label())) > NAME_LENGTH for handle in handles) else 2
    legend_in = 0.2 + _LEGEND_LINE_IN * -(-len(handles) // columns) if handles else 0.0

    def draw(ax: Axes) -> None:
        figure = cast(Figure, ax.figure)
        ax.remove()
        shares_x = about.chart.kind in ("lines", "points")
        grid = figure.subplots(len(panels), 1, squeeze=False, sharex=shares_x, height_ratios=heights)[:, 0]
        for place, (panel, below) in enumerate(zip(panels, grid, strict=True)):
            DRAWERS[about.chart.kind](panel, below)
            if panel.title:
                below.set_title(shortened(panel.title, length=_LONG_LABEL), loc="left", fontsize=8.5)
            if shares_x and place < len(panels) - 1:
                below.set_xlabel("")
            if about.chart.panel_by:
                below.set_ylabel("")  # all panels have the same axis: labelled once
        if about.chart.panel_by and about.chart.kind in ("lines", "points"):
            figure.supylabel(panels[0].y.title, fontsize=9)
        if handles:
            figure.legend(handles=handles, loc="outside upper left", ncols=columns, frameon=False)

    return inline_svg(draw, prefix=f"experiment-{about.name}", title=about.title, height_in=sum(heights) + legend_in)


def panels_of(table: ExperimentTable) -> list[Panel]:
    """Return the panels of a chart from top to bottom."""
    chart, overlays = table.experiment.chart, table.experiment.overlays
    if not chart.panel_by:
        return [
            Panel(chart, table.rows, table.rows, y, overlays=tuple(curve for curve in overlays if curve.panel == place))
            for place, y in enumerate(chart.panels)
        ]
    return [
        Panel(
            chart,
            tuple(row for row in table.rows if str(row[chart.panel_by]) == value),
            table.rows,
            chart.panels[0],
            title=value,
        )
        for value in distinct(table.rows, chart.panel_by)
    ]


def _height_in(panel: Panel) -> float:
    match panel.chart.kind:
        case "bars":
            return _AXIS_IN + _BAR_IN * len(panel.rows)
        case "shares":
            return _AXIS_IN + _SHARE_IN * len(distinct(panel.rows, panel.y.column))
        case kind:
            return _SMALL_PANEL_IN if panel.chart.panel_by else _PANEL_IN[kind]


def _handles(table: ExperimentTable) -> list[Artist]:
    """Return the handles of a legend: series, overlays, and measured ranges."""
    about = table.experiment
    chart = about.chart
    handles: list[Artist] = []
    for place, name in enumerate(distinct(table.rows, chart.series) if chart.series else []):
        style, label = series_style(place), shortened(name, length=NAME_LENGTH)
        if chart.kind == "shares":
            handles.append(Patch(facecolor=SERIES[place % len(SERIES)].light, label=label))
            continue
        line = style.line if chart.kind == "lines" else ""
        filled = chart.kind == "lines" or place == 0
        face = style.colour if filled else "none"
        handles.append(
            Line2D([], [], color=style.colour, linestyle=line, marker=style.marker, markerfacecolor=face, label=label)
        )
    for label in dict.fromkeys(curve.label.split(",")[0] for curve in about.overlays):
        colour, line = (SERIES[1], "-") if chart.kind == "cells" else (MUTED, ":")
        handles.append(Line2D([], [], color=colour.light, linestyle=line, label=shortened(label, length=_LONG_LABEL)))
    if chart.range_label:
        handles.append(Patch(facecolor=SERIES[0].light, alpha=0.75, label=chart.x.label))
        handles.append(
            Line2D(
                [],
                [],
                color=SERIES[1].light,
                linewidth=2,
                marker="|",
                label=shortened(chart.range_label, length=_LONG_LABEL),
            )
        )
    return handles
