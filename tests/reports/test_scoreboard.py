"""Test the scoreboard on the page: falling curves, censored times, strict tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tornpage.reports.errors import ReportError
from tornpage.reports.pages.gaps import gaps_of, headline_of
from tornpage.reports.pages.run_page import render
from tornpage.reports.results.scoreboard import (
    SCORE_COLUMNS,
    SMALL_COLUMNS,
    ScoreRow,
    SmallFailureRow,
    SurvivalRow,
    plot_survival,
    score_cells,
    small_cells,
    summarise_survival,
)
from tornpage.reports.results.tables import read_run

MakeRun = Callable[..., Path]
OTHERS = ("put_latency", "at_risk", "stalls", "discovery", "page_map")
SURVIVAL: list[dict[str, Any]] = [
    {"strategy": "random", "seconds": 0.0, "alive": 1.0},
    {"strategy": "random", "seconds": 3.0, "alive": 0.25},
    {"strategy": "random", "seconds": 60.0, "alive": 0.25},
    {"strategy": "machine", "seconds": 0.0, "alive": 1.0},
    {"strategy": "machine", "seconds": 60.0, "alive": 1.0},
]


def score(**changes: Any) -> dict[str, Any]:
    return {
        "bug": "lying-flush",
        "strategy": "random",
        "trials": 30,
        "kills": 28,
        "median_s": 1.5,
        "median_s_low": 1.0,
        "median_s_high": 2.0,
        "p95_s": None,
        "median_count": 120,
        "signatures": ["the log <differs>"],
    } | changes


def test_a_curve_is_of_one_strategy_and_says_when_half_are_dead() -> None:
    random, machine = summarise_survival([SurvivalRow(**row) for row in SURVIVAL])
    assert (random.strategy, random.seconds, random.alive) == ("random", (0.0, 3.0, 60.0), (1.0, 0.25, 0.25))
    assert (random.half_s, machine.half_s) == (3.0, None)


def test_the_axes_name_what_they_show_and_strategies_differ_in_marker_too() -> None:
    ax = Figure().add_subplot()
    plot_survival(summarise_survival([SurvivalRow(**row) for row in SURVIVAL]), ax=ax)
    assert ax.get_xlabel() == "seconds of a trial"
    assert ax.get_ylabel() == "share of trials, bug alive"
    assert (
        len({line.get_marker() for line in ax.get_lines()}) == len({line.get_color() for line in ax.get_lines()}) == 2
    )


def test_what_is_beyond_the_budget_is_said() -> None:
    cells = score_cells(ScoreRow(**{**score(), "signatures": ("a", "b")}))
    assert len(cells) == len(SCORE_COLUMNS)
    assert cells[6] == "beyond the budget"
    assert cells[-1] == "a; b"


def test_the_page_has_curve_and_table(make_run: MakeRun) -> None:
    tables = {"scoreboard": {"rows": [score(), score(bug="<b>")]}, "survival": {"rows": SURVIVAL}}
    text = render(read_run(make_run(without=OTHERS, **tables)))
    assert "made small" not in text
    assert 'id="survival"' in text
    assert 'href="#scoreboard"' in text
    assert "the log &lt;differs&gt;" in text
    assert "<b>" not in text


SMALL = {
    "bug": "<i>", "strategy": "random", "operations_met": 40, "operations": 3, "losses": 4, "lost_pages": 2,
    "one_minimal": True, "ended": "", "token": "tp1-x",
}  # fmt: skip


def test_the_page_says_how_small_failures_became(make_run: MakeRun) -> None:
    lost = {**SMALL, "bug": "b", "operations": 0, "one_minimal": None, "ended": "hung", "token": ""}
    tables = {"scoreboard": {"rows": [score()]}, "small": {"rows": [SMALL, {**SMALL, "operations": 5}, lost]}}
    text = render(read_run(make_run(without=OTHERS, **tables)))
    assert "of 2 bugs, made small: in the middle 4 operations and 2 lost pages" in text
    assert "&lt;i&gt;" in text
    assert "not shrunk: hung" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1-minimal"),
        ({"one_minimal": None}, "shrunk as far as possible"),
        ({"one_minimal": False, "ended": "time"}, "not 1-minimal: end of time"),
        ({"token": "", "ended": "holds"}, "not shrunk: holds"),
    ],
)
def test_how_small_is_said(changes: dict[str, Any], said: str) -> None:
    cells = small_cells(SmallFailureRow(**{**SMALL, **changes}))
    assert len(cells) == len(SMALL_COLUMNS)
    assert cells[-1] == said


def test_the_banner_speaks_of_bugs_and_not_of_the_store(make_run: MakeRun) -> None:
    run = read_run(make_run(without=OTHERS, scoreboard={"rows": [score()]}))
    assert headline_of(run).word in ("all killed", "some live")
    assert not any("simulated" in gap for gap in gaps_of(run))


def test_a_run_without_scores_has_no_such_section(make_run: MakeRun) -> None:
    assert 'id="scoreboard"' not in render(read_run(make_run(without=OTHERS)))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("scoreboard", [score(kills=-1)]),
        ("scoreboard", [{"bug": "x"}]),
        ("survival", [{"strategy": "random", "seconds": 0.0, "alive": 1.5}]),
        ("small", [{"bug": "x"}]),
        ("survival", [*SURVIVAL, {"strategy": "machine", "seconds": 50.0, "alive": 0.5}]),
    ],
)
def test_a_malformed_table_is_named(make_run: MakeRun, table: str, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(ReportError, match=table):
        read_run(make_run(**{table: {"rows": rows}}))
