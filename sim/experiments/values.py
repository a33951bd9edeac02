"""An experiment as a value: its question, its axes, and three functions.

`measure` simulates and yields rows. `caption` describes what the rows show, and `overlays` are curves drawn over them.
Both use the rows alone, so that a caption cannot differ from its table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.results.trace import Trace
from tornpage.sim.scenario import Scenario
from tornpage.sim.sweep import Point, simulate

__all__ = ["Axis", "Chart", "Experiment", "Overlay", "Result", "Row", "Setup", "cut_short", "run_experiment"]

Cell = str | int | float | None
Row = dict[str, Cell]
Scale = Literal["linear", "log", "names"]
Kind = Literal["lines", "points", "bars", "shares", "cells"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its column of the rows, its label, and its unit."""

    column: str
    label: str
    unit: str = ""
    scale: Scale = "linear"


@dataclass(frozen=True, slots=True)
class Chart:
    """How rows are drawn.

    There is one panel for each of `panels` (their vertical axes), or for each value of `panel_by`.

    | kind | a row is |
    |---|---|
    | lines | a point of the line `series` |
    | points | a mark with the look of `series`, with `label` beside it if it is not empty |
    | bars | a bar from 0 to `x`, named by the panel's column; `range_label` describes `low` to `high` beside it |
    | shares | a part `series` of the bar that the panel's column names; the parts of one bar are drawn as shares |
    | cells | a cell of a map; a larger `value` is darker |
    """

    kind: Kind
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
    """A curve over the rows of one panel: a formula, or a front."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    panel: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """The common settings of experiments.

    `effort` scales how much each simulates; captions are meant for 1.
    """

    device: DeviceTimes
    seed: int
    effort: float = 1.0

    def count(self, full: int, *, least: int = 200) -> int:
        """Return the number of messages, or crashes, of a point at this effort."""
        return max(round(full * self.effort), least)

    def trace(self, scenario: Scenario) -> Trace:
        """Simulate, with the compiled engine where it can."""
        return simulate(Point(0, scenario, self.seed, is_compiled=True))


Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A question that rows answer. Commands and files use its `name`."""

    name: str
    title: str
    question: str
    setting: str
    """The load and the files: the conditions of the captions."""
    chart: Chart
    measure: Callable[[Setup, Progress], Iterator[Row]]
    caption: Callable[[Sequence[Row]], str]
    overlays: Callable[[Sequence[Row]], tuple[Overlay, ...]] = lambda rows: ()
    is_measured: bool = False
    """Whether some of its rows are measured on this machine and differ between runs."""
    needs_law: bool = False
    """Whether it changes the law of a sync. A calibration has measured syncs and no law."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of an experiment on a device.

    An experiment that ended early is not `is_whole`, and its rows show nothing.
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    caption: str
    overlays: tuple[Overlay, ...]
    device: str
    seed: int
    is_whole: bool = True


def run_experiment(
    experiment: Experiment, setup: Setup, progress: Progress, took: Callable[[Row], object] = lambda row: None
) -> Result:
    """Run an experiment; `took` receives each row at once.

    Equal setups give equal results, unless it `is_measured`.
    """
    measured = []
    for row in experiment.measure(setup, progress):
        measured.append(row)
        took(row)
    rows = tuple(measured)
    return Result(experiment, rows, experiment.caption(rows), experiment.overlays(rows), setup.device.name, setup.seed)


def cut_short(experiment: Experiment, setup: Setup, rows: Sequence[Row]) -> Result:
    """Return the rows of an experiment that ended early, for example by an interrupt."""
    told = f"It ended early with {len(rows)} rows, from which nothing is concluded."
    return Result(experiment, tuple(rows), told, (), setup.device.name, setup.seed, is_whole=False)
