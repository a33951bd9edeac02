"""Test a history of runs: read from Parquet, compared by kind, noise told from change."""

from pathlib import Path
from typing import Any

import pytest

from tests.reports.documents import history
from tornpage.reports.errors import ReportError
from tornpage.reports.pages.trends import build_trends, causes_over_time, headline_of, render_trends, trend_of
from tornpage.reports.results.history import history_rows, read_history

HERE = Path("history")


def runs(*values: float, kind: str = "explore") -> list[dict[str, Any]]:
    base = {"version": "1", "command": kind}
    return [
        {**base, "run": f"{kind}{place}", "started": f"2026-01-{place:02}", "states_per_s": value}
        for place, value in enumerate(values, 1)
    ]


@pytest.mark.parametrize(
    ("last", "said"), [(103.0, "within"), (60.0, "below"), (160.0, "above")], ids=["noise", "slower", "faster"]
)
def test_the_last_run_is_compared_with_the_usual_scatter_of_its_kind(last: float, said: str) -> None:
    rows = history_rows([*runs(100, 104, 97, 101, 99, 102, last), *runs(1, 2, kind="campaign")], path=HERE)
    explore, campaign = sorted(trend_of(rows, "states_per_s"), key=lambda trend: -len(trend.values))
    assert explore.said.startswith(f"last run {said} the usual ")
    assert campaign.said == "too few runs for a usual range"
    assert trend_of(rows, "median_kill_s") == ()


def test_what_broke_is_open_while_the_newest_run_of_its_kind_shows_it() -> None:
    rows = [dict(row, causes=["a", "b"] if place < 2 else ["b"]) for place, row in enumerate(runs(1, 1, 1))]
    found = causes_over_time(history_rows([*rows, *runs(1, 1, 1, 1, kind="campaign")], path=HERE))
    assert [(row.cause, row.runs, row.is_open, row.last.run) for row in found] == [
        ("b", 3, True, "explore3"),
        ("a", 2, False, "explore2"),
    ]


def test_rows_are_ordered_by_time_and_nulls_are_defaults() -> None:
    rows = history_rows(
        [dict(row, causes=[], seed=None, verdict=None, more=1) for row in reversed(runs(1, 2))], path=HERE
    )
    assert [row.run for row in rows] == ["explore1", "explore2"]
    with pytest.raises(ReportError, match=r"rows\[0\]\.run is not text"):
        history_rows([dict(runs(1)[0], run=None)], path=HERE)
    with pytest.raises(ReportError, match=r"rows\[0\] has no 'version'"):
        history_rows([{"run": "r", "started": "s", "command": "c"}], path=HERE)


def test_a_partitioned_dataset_becomes_a_page(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pa.Table.from_pylist(history())
    parts = dataset.partitioning(pa.schema([("version", pa.string())]), flavor="hive")
    dataset.write_dataset(table, str(tmp_path), format="parquet", partitioning=parts)
    assert (tmp_path / "version=0.2.0").is_dir()
    rows = read_history(tmp_path)
    assert sorted(row.run for row in rows) == [row["run"] for row in history()]
    assert [row.started for row in rows] == sorted(row.started for row in rows)
    assert {row.version for row in rows} == {"0.1.0", "0.2.0"}
    text = build_trends(tmp_path, None).read_text(encoding="utf-8")
    assert "contract-3: a cut byte is still on disk" in text
    assert text.count('class="figure"') == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("missing", "is no directory"), ("empty", "holds no history"), ("broken", "cannot be read")],
)
def test_what_is_no_history_is_refused_in_a_line(tmp_path: Path, wrong: str, said: str) -> None:
    directory = tmp_path / wrong
    if wrong != "missing":
        directory.mkdir()
    if wrong == "broken":
        pytest.importorskip("pyarrow")
        (directory / "part.parquet").write_bytes(b"no Parquet")
    with pytest.raises(ReportError, match=said) as caught:
        read_history(directory)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("what", ["late", "early", "nowhere", "no text"])
def test_values_that_python_does_not_take_are_refused_in_a_line(tmp_path: Path, what: str) -> None:
    """Arrow reads them, so they ended in a traceback."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    started = {
        "late": pa.array([1 << 40], pa.timestamp("s")),
        "early": pa.array([-(1 << 40)], pa.timestamp("s")),
        "nowhere": pa.array([1], pa.timestamp("us", tz="Nowhere/Land")),
        "no text": pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xe3\xe3")]
        ),
    }
    row = {name: pa.array([value]) for name, value in history()[0].items()}
    pq.write_table(pa.table({**row, "started": started[what]}), tmp_path / "one.parquet")
    with pytest.raises(ReportError, match=r"cannot be read: .*take the broken file away") as caught:
        build_trends(tmp_path, None)
    assert len(str(caught.value).splitlines()) == 1


def _row(run: str, verdict: str | None, series: str = "random") -> dict[str, Any]:
    return {"run": run, "started": f"2026-11-2{run}T00:00:00Z", "version": "1", "command": "explore",
            "verdict": verdict, "series": series}  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "word", "tone"),
    [
        (("holds", "holds"), "holds", "good"),
        (("vacuous", "holds"), "holds", "unsure"),
        (("holds", "vacuous"), "not everything was shown", "unsure"),
        (("holds", "broken"), "broken", "bad"),
        (("broken", "holds"), "holds", "good"),
    ],
)
def test_the_banner_hides_no_vacuous_run(verdicts: tuple[str, ...], word: str, tone: str) -> None:
    """Four of six runs were vacuous, and the page was green."""
    rows = history_rows([_row(str(n), each) for n, each in enumerate(verdicts)], path=Path("history"))
    found = headline_of(rows)
    assert (found.word, found.tone) == (word, tone)
    assert ("show nothing" in found.sentence) == ("vacuous" in verdicts)


def test_a_planted_bug_that_was_found_is_not_counted_as_a_broken_store() -> None:
    rows = history_rows([_row("1", "holds"), _row("2", "broken", "random bug lying-flush")], path=Path("history"))
    assert headline_of(rows).word == "holds"
    assert "1 of them with a planted bug" in render_trends(rows)
