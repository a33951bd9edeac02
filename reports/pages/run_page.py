"""The page of a run: results, gaps, figures, and how to repeat the run.

The page is one file: no network, no font, no image except inline SVG. A content security policy forbids anything else.
Its only script copies command lines. Everything from tables is escaped. Equal input gives equal bytes: the page has no
time except that of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tornpage.reports.errors import ReportError
from tornpage.reports.pages.activation import matrix_of, pairs_of
from tornpage.reports.pages.downloads import Download, downloads_of
from tornpage.reports.pages.gaps import gaps_of, headline_of
from tornpage.reports.pages.templating import rendered, write_page
from tornpage.reports.pages.tiles import tiles_of
from tornpage.reports.plots.figures import (
    Drawing,
    crash_images_figure,
    discovery_figure,
    frontier_figure,
    page_map_figure,
    put_latency_figure,
    stalls_figure,
    survival_figure,
)
from tornpage.reports.promises import promise_of
from tornpage.reports.results.causes import causes_of, codes_of
from tornpage.reports.results.mutants import (
    RATE_COLUMNS,
    SURVIVOR_COLUMNS,
    rate_rows,
    summarise_mutants,
    survivor_rows,
)
from tornpage.reports.results.scoreboard import (
    SCORE_COLUMNS,
    SMALL_COLUMNS,
    score_board,
    score_cells,
    small_cells,
    small_sentence,
)
from tornpage.reports.results.stages import StageRow, bars_of
from tornpage.reports.results.summaries import summarise_activation, summarise_discovery
from tornpage.reports.results.tables import Caption, PageMapRow, Run, Table, read_run
from tornpage.reports.text import number

__all__ = ["PAGE", "build_report", "render"]

PAGE = "index.html"
DISCOVERY_MIN = 3
"""The points from which a discovery curve is drawn."""
MAPS_MAX = 6
"""The number of counterexamples with a figure; further ones are described in words."""
TOLD_MAX = 50
"""The number of described counterexamples; further ones are rows among the findings."""
_SCRIPTS = ("copy.js", "filter.js")
_SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("findings", "Findings", ()),
    ("steps", "Steps", ("steps",)),
    ("images", "Crash images", ("rulings", "crash_images")),
    ("scoreboard", "Scoreboard", ("scoreboard", "survival")),
    ("mutants", "Mutants", ("mutants",)),
    ("exploration", "Crash exploration", ("discovery", "activation", "pairs")),
    ("counterexamples", "Counterexamples", ("page_map",)),
    ("policies", "Policies", ("put_latency", "at_risk", "stalls")),
    ("audit", "Audit", ("audit",)),
    ("time", "Time", ("stages",)),
    ("provenance", "Provenance", ()),
)
"""Id and name of each section, and the tables of which it needs at least one."""
_ABSENT_FROM = "prove"
_ABSENT = {
    "steps": "Single steps of this run were not recorded.",
    "activation": "No crash campaign was run, so there is no activation table.",
    "discovery": "No crash campaign recorded a discovery curve.",
    "page_map": "This run recorded no counterexample.",
    "put_latency": "Put latency per flush policy was not simulated.",
    "at_risk": "Messages at risk were not simulated.",
    "stalls": "Stalls at file rolls were not simulated.",
    "audit": "No store was audited in this run.",
}
"""The text for a table of the main job that is missing or empty."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A counterexample and its drawing (None beyond MAPS_MAX)."""

    row: PageMapRow
    drawing: Drawing | None

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The settings as text, by name."""
        return tuple((name, str(value)) for name, value in sorted((self.row.settings or {}).items()))


def build_report(directory: Path, *, mutants: Path | None = None) -> Path:
    """Write the page of a run directory and return its path.

    `mutants` is the directory of a `bugs mutate`, whose rates the page shows as well. Raises ReportError.
    """
    run = read_run(directory)
    if mutants is not None:
        table = read_run(mutants).mutants
        if table is None:
            raise ReportError(str(mutants), "has no mutants", "name the --out directory of `bugs mutate`")
        run = replace(run, mutants=table)
    return write_page(directory / PAGE, render(run, downloads=downloads_of(directory)))


def render(run: Run, *, downloads: Sequence[Download] = ()) -> str:
    """Return the page of a run; `downloads` are the files that it offers."""
    causes = causes_of(run.record.findings)
    there = _there(run)
    activation = summarise_activation(run.activation.rows) if run.activation else None
    stages = _stages(run)
    return rendered(
        "page.html",
        _SCRIPTS,
        run=run,
        record=run.record,
        headline=headline_of(run),
        sections=[(id, name) for id, name, tables in _SECTIONS if not tables or any(map(there.get, tables))],
        absent=[sentence for table, sentence in _ABSENT.items() if not there[table]]
        if run.record.command == _ABSENT_FROM
        else [],
        promises={cause.number: promise_of(cause.contract) for cause in causes},
        gaps=gaps_of(run),
        tiles=tiles_of(run, causes),
        causes=causes,
        codes=codes_of(causes),
        findings_count=len(run.record.findings),
        activation=activation,
        matrix=matrix_of(activation) if activation else (),
        factors=pairs_of(run.pairs.rows) if run.pairs else (),
        discovery=_discovery(run),
        policies=[
            put_latency_figure(run.put_latency) if run.put_latency and run.put_latency.rows else None,
            frontier_figure(run.at_risk) if run.at_risk and run.at_risk.rows else None,
            stalls_figure(run.stalls) if run.stalls and run.stalls.rows else None,
        ],
        counterexamples=_counterexamples(run.page_map),
        counterexamples_left_out=max(0, len(run.page_map.rows) - TOLD_MAX) if run.page_map else 0,
        crash_images=crash_images_figure(run.crash_images) if run.crash_images and run.crash_images.rows else None,
        survival=survival_figure(run.survival) if run.survival and run.survival.rows else None,
        board=score_board(run.scoreboard.rows) if run.scoreboard and run.scoreboard.rows else None,
        score_columns=SCORE_COLUMNS,
        score_rows=[score_cells(row) for row in run.scoreboard.rows] if run.scoreboard else [],
        small_columns=SMALL_COLUMNS,
        small_rows=[small_cells(row) for row in run.small.rows] if run.small else [],
        small_sentence=small_sentence(run.small.rows) if run.small else "",
        **_mutants(run),
        stages=bars_of(stages.rows) if stages else (),
        stages_caption=stages.caption if stages else None,
        rates=_rates(run),
        downloads=downloads,
    )


def _discovery(run: Run) -> Drawing | None:
    """Return the discovery curve if it has enough points to be one."""
    table = run.discovery
    return discovery_figure(table) if table is not None and len(table.rows) >= DISCOVERY_MIN else None


def _mutants(run: Run) -> dict[str, object]:
    """Return the values of the section of mutants."""
    rows = run.mutants.rows if run.mutants else ()
    return {
        "mutants": summarise_mutants(rows) if rows else None,
        "rate_columns": RATE_COLUMNS,
        "package_rates": rate_rows(rows, lambda row: row.package),
        "operator_rates": rate_rows(rows, lambda row: row.operator),
        "survivor_columns": SURVIVOR_COLUMNS,
        "survivors": survivor_rows(rows),
        "mutants_caption": run.mutants.caption if run.mutants else None,
    }


def _there(run: Run) -> dict[str, bool]:
    """Return for each table whether it has something to show."""
    tables = {field.name: getattr(run, field.name) for field in fields(run) if field.name != "record"}
    there = {name: bool(table and table.rows) for name, table in tables.items()}
    discovered = run.discovery is not None and summarise_discovery(run.discovery.rows) is not None
    return there | {"discovery": discovered, "stages": _stages(run) is not None}


def _stages(run: Run) -> Table[StageRow] | None:
    """Return where the time went: a campaign's stages, or the timed steps of the main job."""
    if run.stages and run.stages.rows:
        return run.stages
    steps = [StageRow(row.step, row.seconds) for row in run.steps.rows if row.seconds] if run.steps else []
    return Table(tuple(steps), Caption("run time of each step")) if steps else None


def _rates(run: Run) -> list[tuple[str, str]]:
    """Return every figure that is a rate."""
    return [
        (name.removesuffix("_per_s").replace("_", " "), number(value))
        for name, value in sorted(run.record.figures.items())
        if name.endswith("_per_s")
    ]


def _counterexamples(table: Table[PageMapRow] | None) -> list[Counterexample]:
    if table is None:
        return []
    return [
        Counterexample(row, page_map_figure(row, table.caption, place=place) if place <= MAPS_MAX else None)
        for place, row in enumerate(table.rows[:TOLD_MAX], 1)
    ]
