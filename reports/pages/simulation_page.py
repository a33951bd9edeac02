"""The simulation page: each experiment with its question, figure, answer and rows.

A validation is one experiment with many figures: predictions beside measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.pages.templating import rendered, write_page
from tornpage.reports.plots.charts import draw_experiment
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.prediction import has_validation, prediction_figures, read_validation
from tornpage.reports.results.experiment_tables import ExperimentTable, read_experiments
from tornpage.reports.results.tables import Caption, RunRecord, read_run
from tornpage.reports.text import number

__all__ = ["PAGE", "build_simulation_page", "render_simulation"]

PAGE = "index.html"
ROWS_MAX = 500
"""The rows of a table on the page; the table's file has all."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An experiment for the page. `svg` is markup; the other text is not escaped yet."""

    name: str
    title: str
    question: str
    setting: str
    answer: str
    axes: tuple[str, ...]
    svg: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows_left_out: int
    is_measured: bool
    caption: Caption


def build_simulation_page(directory: Path) -> Path:
    """Write the simulation page of a run directory and return its path. Raises ReportError."""
    record = read_run(directory).record
    shown = [_shown(table) for table in read_experiments(directory)]
    if has_validation(directory):
        caption = Caption(f"measurement and simulation, tornpage {record.version}", record.seed, record.arguments)
        shown += map(_predicted, prediction_figures(*read_validation(directory), caption))
    return write_page(directory / PAGE, render_simulation(record, shown))


def render_simulation(record: RunRecord, experiments: Sequence[Shown]) -> str:
    """Return the page of a run of experiments."""
    return rendered("simulation.html", ["copy.js"], record=record, experiments=experiments)


def _shown(table: ExperimentTable) -> Shown:
    about = table.experiment
    chart = about.chart
    columns = tuple(table.rows[0]) if table.rows else ()
    axes = [chart.x, *chart.panels, *([chart.value] if chart.value else [])]
    return Shown(
        name=about.name,
        title=about.title,
        question=about.question,
        setting=about.setting,
        answer=about.answer,
        axes=tuple(dict.fromkeys(axis.title + (", log" if axis.scale == "log" else "") for axis in axes)),
        svg=draw_experiment(table) if table.rows else "",
        columns=columns,
        cells=tuple(tuple(_cell(row.get(column)) for column in columns) for row in table.rows[:ROWS_MAX]),
        rows_left_out=max(len(table.rows) - ROWS_MAX, 0),
        is_measured=about.is_measured,
        caption=table.caption,
    )


def _predicted(drawing: Drawing) -> Shown:
    return Shown(
        name=drawing.id,
        title=drawing.title,
        question="How large is the error of the simulator on this disk?",
        setting="Configurations of the real store that were not part of the calibration, measured in the same rounds.",
        answer=drawing.sentence,
        axes=(),
        svg=drawing.svg,
        columns=drawing.columns,
        cells=drawing.cells,
        rows_left_out=0,
        is_measured=True,
        caption=drawing.caption,
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, int | float) else str(value)
