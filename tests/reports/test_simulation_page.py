"""Test the simulation page: question, figure, answer and rows of every experiment.

Malformed parts are named.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.reports.experiment_results import KINDS, table_of, write_experiments
from tornpage.reports.errors import ReportError
from tornpage.reports.kinds import has_experiments
from tornpage.reports.pages.simulation_page import ROWS_MAX, build_simulation_page
from tornpage.reports.plots.charts import draw_experiment, panels_of
from tornpage.reports.results.experiment_tables import read_experiments

HOSTILE = "</script><script>x</script>\x1b]0;x\x07\u202e"


def page_of(directory: Path) -> str:
    return build_simulation_page(directory).read_text(encoding="utf-8")


def test_the_page_tells_all_of_every_experiment_in_the_order_asked_for(tmp_path: Path) -> None:
    page = page_of(write_experiments(tmp_path / "run"))
    places = [page.index(f'<figure id="{kind}-chart">') for kind in KINDS]
    assert places == sorted(places)
    for word in (
        "What is it?",
        "It is this: 17.",
        "Open load.",
        "device vm-ext4 (measured)",
        "Seed 4",
    ):
        assert page.count(word) >= 1
    assert page.count('<svg role="img"') == len(KINDS)
    assert page.count("Some marks are measured on the machine of this run") == 1
    assert "tornpage sim experiment --all --seed 4" in page


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_its_rows(kind: str, tmp_path: Path) -> None:
    """Equal rows give equal bytes, and another row another figure.

    Every colour belongs to the palette.
    """
    [table] = read_experiments(write_experiments(tmp_path / "run", table_of(kind)))
    changed = table_of(kind)
    for row in changed["rows"]:
        row["late_us"] *= 1.0 + row["every_ms"]
        row["lost"] *= 3.0
    [other] = read_experiments(write_experiments(tmp_path / "other", changed))
    drawn = draw_experiment(table)
    assert drawn != draw_experiment(other)
    if kind == "points":
        assert drawn == draw_experiment(table)
    assert not re.search(r"#[0-9a-fA-F]{6}", drawn), "a colour that has no class stays as it is in the dark"
    assert f"A chart of {kind}" in drawn


def test_panels_are_vertical_axes_or_values_of_a_column(tmp_path: Path) -> None:
    tables = {one.experiment.name: one for one in read_experiments(write_experiments(tmp_path / "run"))}
    assert [panel.y.column for panel in panels_of(tables["lines-chart"])] == ["late_us", "lost"]
    assert [len(panel.overlays) for panel in panels_of(tables["lines-chart"])] == [1, 0]
    assert [panel.title for panel in panels_of(tables["bars-chart"])] == ["10.0", "100.0", "1000.0"]


def test_what_a_table_says_is_never_markup(tmp_path: Path) -> None:
    table = table_of("lines", policies=(HOSTILE,), title=HOSTILE, question=HOSTILE, answer=HOSTILE, setting=HOSTILE)
    page = page_of(write_experiments(tmp_path / "run", table))
    assert page.count("<script>") == page.count("</script>") == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(page)


def test_long_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    table = table_of("lines")
    table["rows"] = [{**table["rows"][0], "rate": 1.0 + number} for number in range(ROWS_MAX + 7)]
    page = page_of(write_experiments(tmp_path / "run", table))
    assert "7 more rows are in tables/experiment-lines-chart.json" in page
    assert f"{ROWS_MAX + 7} rows" in page


def test_a_run_that_was_interrupted_says_so_and_may_hold_nothing(tmp_path: Path) -> None:
    directory = write_experiments(tmp_path / "run", table_of("cells"), interrupted=True)
    assert "The run was interrupted" in page_of(directory)
    empty = table_of("lines")
    empty["rows"] = []
    assert "<svg" not in page_of(write_experiments(tmp_path / "empty", empty))


def test_only_runs_of_experiments_have_them(tmp_path: Path) -> None:
    assert has_experiments(write_experiments(tmp_path / "run"))
    (tmp_path / "other" / "tables").mkdir(parents=True)
    assert not has_experiments(tmp_path / "other")
    assert not has_experiments(tmp_path / "missing")


def broken(**changes: Any) -> dict[str, Any]:
    table = table_of("cells")
    for path, value in changes.items():
        *inner, last = path.split("__")
        place: Any = table
        for key in inner:
            place = place[int(key)] if key.isdigit() else place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return table


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (broken(experiment__chart__kind="pie"), "experiment.chart.kind is 'pie'; it has to be lines"),
        (broken(experiment__chart__panels=[]), "has no panels"),
        (broken(experiment__chart__value=None), "a chart of cells needs a value"),
        (broken(experiment__name="../x"), "only letters, digits and hyphens"),
        (broken(experiment__chart__x__scale="cubic"), "the scale of 'rate' is 'cubic'"),
        (broken(rows__3__late_us=None), "rows[3] has no column 'late_us'"),
        (broken(rows__3__late_us="much"), "rows[3].late_us is 'much', which is no number"),
        (broken(experiment__overlays__0__panel=4), "an overlay has as many x as y"),
        (broken(experiment__question=None), "has no 'question'"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused_with_its_place(
    table: dict[str, Any], told: str, tmp_path: Path
) -> None:
    directory = write_experiments(tmp_path / "run")
    path = directory / "tables" / "experiment-cells-chart.json"
    path.write_text(json.dumps(table))
    with pytest.raises(ReportError) as caught:
        build_simulation_page(directory)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
