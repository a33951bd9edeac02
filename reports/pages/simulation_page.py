"""The simulation page: each experiment with its question, figure, answer and rows.

A validation is one experiment with many figures: predictions beside measurements.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.reports.kinds import has_sweep, has_validation
from tornpage.reports.pages.gaps import Headline
from tornpage.reports.pages.templating import rendered, write_page
from tornpage.reports.plots.charts import draw_experiment
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.prediction import prediction_figures, read_validation
from tornpage.reports.results.budgets import (
    Against,
    SweepPoint,
    against,
    costs_of_experiments,
    costs_of_sweep,
    read_sweep,
    sweep_table,
)
from tornpage.reports.results.experiment_tables import ExperimentTable, read_experiments
from tornpage.reports.results.tables import BudgetRecord, Caption, RunRecord, read_run
from tornpage.reports.text import counted, number

__all__ = ["PAGE", "Limits", "build_simulation_page", "render_simulation"]

PAGE = "index.html"
ROWS_MAX = 500
"""The rows of a table on the page; the table's file has all."""
BUDGET = BudgetRecord(loss_ms=10.0, put_p99_us=2_000.0)
"""The budget of the table of policies, unless the run or the caller has another one."""
_SHOWN_MAX = 8
"""The policies of the first table; a folded table has all."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An experiment for the page. `svg` is markup; the other text is not escaped yet."""

    name: str
    title: str
    question: str
    setting: str
    see: str
    answer: str
    svg: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows_left_out: int
    is_measured: bool
    caption: Caption


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that replace those of the run; None keeps them."""

    loss_ms: float | None = None
    put_p99_us: float | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """The table of policies against a budget, with the answer for the banner."""

    budget: str
    load: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first: int
    met: int
    answer: str


def build_simulation_page(
    directory: Path, *, limits: Limits = Limits(), progress: Callable[[float, str], None] = lambda done, name: None
) -> Path:
    """Write the simulation page of a run directory or a sweep and return its path.

    `progress` is called with the number of drawn figures and the name of the next one. Raises ReportError.
    """
    points = read_sweep(directory) if has_sweep(directory) else ()
    record = read_run(directory).record if (directory / "run.json").exists() else _record_of(points)
    tables = read_experiments(directory)
    if points:
        tables = (sweep_table(points, Caption("simulation", record.seed, _again(record))), *tables)
    shown = []
    for done, table in enumerate(tables):
        progress(done, table.experiment.title)
        shown.append(_shown(table))
    if has_validation(directory):
        progress(len(shown), "predictions")
        caption = Caption(f"measurement and simulation, tornpage {record.version}", record.seed, record.arguments)
        shown += map(_predicted, prediction_figures(*read_validation(directory), caption))
    budget = record.budget or BUDGET
    budget = replace(budget, **{name: value for name in ("loss_ms", "put_p99_us")
                                if (value := getattr(limits, name)) is not None})  # fmt: skip
    costs = costs_of_sweep(points) if points else costs_of_experiments(tables)
    policies = _policies(against(costs, budget), budget) if costs else None
    return write_page(directory / PAGE, render_simulation(record, shown, policies))


def render_simulation(record: RunRecord, experiments: Sequence[Shown], policies: Policies | None = None) -> str:
    """Return the page of a run of experiments."""
    return rendered(
        "simulation.html",
        ["copy.js"],
        record=record,
        experiments=experiments,
        policies=policies,
        headline=_headline(record, experiments, policies),
        broker_lines="\n".join(f"{name}={value}" for name, value in (record.broker_conf or {}).items()),
    )


def _record_of(points: Sequence[SweepPoint]) -> RunRecord:
    """Return what is known of a sweep that has no `run.json`."""
    seed = points[0].seed if points else None
    return RunRecord(1, "sim sweep", None, {}, (), (), seed, "", "", {}, "")


def _again(record: RunRecord) -> str:
    return f"tornpage {record.arguments}" if record.arguments else ""


_COLUMNS = ("policy", "load", "put p99", "loss at worst", "messages lost", "of the budget", "result")


def _policies(rows: Sequence[Against], budget: BudgetRecord) -> Policies:
    met = sum(row.meets for row in rows)
    best = rows[0]
    if met:
        answer = (
            f"{best.cost.policy} uses least of the budget: put p99 {_us(best.cost.put_p99_us)}, a power loss takes "
            f"{_loss(best)}. {met} of {counted(len(rows), 'policy', 'policies')} meet the budget."
        )
    else:
        answer = (
            f"No policy meets the budget. The nearest is {best.cost.policy}: put p99 {_us(best.cost.put_p99_us)}, a "
            f"power loss takes {_loss(best)}."
        )
    said = f"put p99 at most {_us(budget.put_p99_us)}, and a power loss takes at most {_ms(budget.loss_ms)} of messages"
    loads = list(dict.fromkeys(row.cost.load for row in rows))
    columns: tuple[str, ...] = _COLUMNS
    cells = list(map(_policy_cells, rows))
    if len(loads) == 1:  # then the caption names it
        columns, cells = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in cells]
    load = loads[0] if len(loads) == 1 else ""
    return Policies(said, load, columns, tuple(cells), min(_SHOWN_MAX, len(rows)), met, answer)


def _policy_cells(row: Against) -> tuple[str, ...]:
    cost = row.cost
    used = "refuses puts" if row.used is None else f"{row.used:,.0%}" if row.used < 1e4 else "over"
    return (
        cost.policy,
        cost.load,
        _us(cost.put_p99_us),
        _ms(cost.loss_ms) if cost.loss_ms else "none",
        number(cost.loss_messages),
        used,
        "meets" if row.meets else "exceeds",
    )


def _loss(row: Against) -> str:
    if not row.cost.loss_messages:
        return "no acknowledged message"
    return f"at most {_ms(row.cost.loss_ms)}, {counted(row.cost.loss_messages, 'message')}"


def _us(value: float) -> str:
    return _ms(value / 1e3) if value >= 1e3 else f"{value:.3g} µs"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _headline(record: RunRecord, experiments: Sequence[Shown], policies: Policies | None) -> Headline:
    if record.interrupted:
        return Headline("interrupted", "The run was interrupted: only the experiments below are done.", "unsure")
    if policies is not None:
        word = "a policy meets the budget" if policies.met else "no policy meets the budget"
        return Headline(word, policies.answer, "good" if policies.met else "unsure")
    if not experiments:
        return Headline("no results", "The run ended before any experiment was done.", "unsure")
    count = f"{counted(len(experiments), 'experiment')} answered"
    return Headline(count, "Each answer is below its question.", "")


def _shown(table: ExperimentTable) -> Shown:
    about = table.experiment
    columns = tuple(table.rows[0]) if table.rows else ()
    return Shown(
        name=about.name,
        title=about.title,
        question=about.question,
        setting=about.setting,
        see=_see(table),
        answer=about.answer,
        svg=draw_experiment(table) if table.rows else "",
        columns=columns,
        cells=tuple(tuple(_cell(row.get(column)) for column in columns) for row in table.rows[:ROWS_MAX]),
        rows_left_out=max(len(table.rows) - ROWS_MAX, 0),
        is_measured=about.is_measured,
        caption=table.caption,
    )


def _see(table: ExperimentTable) -> str:
    """Return in one sentence what to see in a chart."""
    chart = table.experiment.chart
    y = chart.panels[0].label
    match chart.kind:
        case "lines":
            return (
                f"A line is a {_kind_of(chart.series)}; where it bends upwards, {y} grows faster than {chart.x.label}."
            )
        case "points":
            return f"Further left is less {chart.x.label}, lower is less {y}."
        case "cells":
            label = chart.value.label if chart.value else y
            return f"The darker a cell, the larger the {label}."
        case "shares":
            return "The longest part of a bar is the main cause of waiting."
        case _:
            return f"The longer a bar, the more {chart.x.label}."


def _kind_of(series: str) -> str:
    return series.replace("_", " ") or "measure"


def _predicted(drawing: Drawing) -> Shown:
    return Shown(
        name=drawing.id,
        title=drawing.title,
        question="How large is the error of the simulator on this disk?",
        setting="Configurations of the real store that were not part of the calibration, measured in the same rounds.",
        see="",
        answer=drawing.sentence,
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
