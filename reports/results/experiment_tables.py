"""Read results of experiments, `tables/experiment-*.json`, as checked frozen values.

Each table describes how it is drawn, so that a page can show unknown experiments.
"""

from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.errors import ReportError
from tornpage.reports.kinds import EXPERIMENTS
from tornpage.reports.results.tables import Caption
from tornpage.reports.shape import Scalar, read_json, shaped

__all__ = ["About", "Axis", "Chart", "ExperimentTable", "Overlay", "Row", "read_experiments"]

KINDS = ("lines", "points", "bars", "shares", "cells")
SCALES = ("linear", "log", "names")
Row = dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its column, its name and unit, and its scale."""

    column: str
    label: str
    unit: str = ""
    scale: str = "linear"

    @property
    def title(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Chart:
    """How the rows are drawn; see `sim.experiments.values.Chart`."""

    kind: str
    x: Axis
    panels: tuple[Axis, ...]
    series: str = ""
    panel_by: str = ""
    label: str = ""
    low: str = ""
    high: str = ""
    range_label: str = ""
    value: Axis | None = None


@dataclass(frozen=True, slots=True)
class Overlay:
    """A curve over the rows of one panel."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    panel: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """What a table of an experiment answers, and how it is drawn."""

    name: str
    title: str
    question: str
    setting: str
    answer: str
    chart: Chart
    overlays: tuple[Overlay, ...] = ()
    is_measured: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class ExperimentTable:
    """One experiment: question, answer and rows."""

    rows: tuple[Row, ...]
    caption: Caption
    experiment: About


def read_experiments(directory: Path) -> tuple[ExperimentTable, ...]:
    """Return the results in a run directory, in the order of the request. Raises ReportError."""
    tables = [_read(path) for path in sorted((directory / "tables").glob(EXPERIMENTS))]
    return tuple(sorted(tables, key=lambda table: table.experiment.place))


def _read(path: Path) -> ExperimentTable:
    table = shaped(ExperimentTable, read_json(path), path=path, place="table")
    wrong = _wrong(table)
    if wrong is not None:
        raise ReportError(str(path), wrong, "run the command that wrote it again, or take the file away")
    return table


def _wrong(table: ExperimentTable) -> str | None:
    """Return why a table cannot be drawn, or None."""
    about, chart = table.experiment, table.experiment.chart
    axes = [chart.x, *chart.panels, *([chart.value] if chart.value else [])]
    if chart.kind not in KINDS:
        return f"experiment.chart.kind is {chart.kind!r}; it has to be {', '.join(KINDS)}"
    if not chart.panels:
        return "experiment.chart has no panels"
    if not about.name.replace("-", "").isalnum() or not about.name.isascii():
        return f"experiment.name is {about.name!r}; only letters, digits and hyphens can name a figure"
    for axis in axes:
        if axis.scale not in SCALES:
            return f"the scale of {axis.column!r} is {axis.scale!r}; it has to be {', '.join(SCALES)}"
    if chart.kind == "cells" and chart.value is None:
        return "a chart of cells needs a value"
    for number, row in enumerate(table.rows):
        for column in _columns(chart):
            if column not in row:
                return f"rows[{number}] has no column {column!r}"
        for axis in axes:
            if axis.scale != "names" and isinstance(row[axis.column], str):
                return f"rows[{number}].{axis.column} is {row[axis.column]!r}, which is no number"
    if any(len(curve.x) != len(curve.y) or curve.panel >= len(chart.panels) for curve in about.overlays):
        return "an overlay has as many x as y, and a panel that there is"
    return None


def _columns(chart: Chart) -> list[str]:
    named = [chart.series, chart.panel_by, chart.label, chart.low, chart.high]
    axes = [chart.x, *chart.panels, *([chart.value] if chart.value else [])]
    return [*(axis.column for axis in axes), *(column for column in named if column)]
