"""Test histories: one whole row per run, read by Trends, with the activation of faults."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli import campaign, explore
from tornpage.cli.document import Outcome
from tornpage.reports.pages.trends import build_trends
from tornpage.reports.results.history import COLUMNS, read_history
from tornpage.run.history import append_run, prepare_history

pq = pytest.importorskip("pyarrow.parquet")
STARTED = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)
OUTCOME = Outcome(
    "explore",
    "broken",
    {
        "states": 40,
        "seconds": 2.0,
        "states_per_s": 20.0,
        "distinct_images": 9,
        "armed_torn_page": 7,
        "fired_torn_page": 3,
    },
    findings=[
        {"code": "contract-3", "severity": "broken", "sentence": "byte 512 of file 0x1f is cut"},
        {"code": "contract-3", "severity": "broken", "sentence": "byte 700 of file 3 is cut"},
        {"code": "never-fired", "severity": "vacuous", "sentence": "kill never fired"},
    ],
    seed=4,
    extra={"strategy": "covering", "settings": {"disk": "kill", "file_bytes": 4096, "bug": ""}},
)


def test_runs_become_rows_that_trends_show(tmp_path: Path) -> None:
    first = append_run(str(tmp_path), OUTCOME, started=STARTED)
    second = append_run(str(tmp_path), replace(OUTCOME, findings=[]), started=STARTED + timedelta(minutes=2))
    assert first is not None
    assert second is not None
    assert (first.parent.name, second.parent.name) == ("day=2026-11-22", "day=2026-11-23")
    rows = read_history(tmp_path)
    assert [(row.kind, row.verdict, row.states, row.seed) for row in rows] == [
        ("explore covering kill 4096", "broken", 40, 4)
    ] * 2
    assert [row.causes for row in rows] == [("contract-3: byte # of file # is cut",), ()]
    assert "byte # of file # is cut" in build_trends(tmp_path, None).read_text()
    [row] = pq.ParquetFile(first).read().to_pylist()
    assert set(COLUMNS) <= set(row)
    assert row["activation"] == [{"name": "torn_page", "armed": 7, "fired": 3, "mattered": 0}]


def test_a_run_that_was_interrupted_or_cannot_be_written_is_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert append_run(str(tmp_path), replace(OUTCOME, interrupted=True), started=STARTED) is None
    assert "interrupted: it is no row" in capsys.readouterr().err

    def full(_: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    outcome = replace(OUTCOME)
    assert append_run(str(tmp_path), outcome, started=STARTED) is None
    assert outcome.unwritten
    assert "No space left on device; name another --history directory" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_pyarrow_a_history_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(SystemExit) as left:
        prepare_history("runs")
    assert left.value.code == 2
    assert "pyarrow is not installed; install it with pip: 'tornpage[spark]'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [campaign.command, explore.command])
def test_history_that_cannot_be_written_is_refused_in_one_line(command: object, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(command, ["--history", str(tmp_path / "file" / "runs")])  # type: ignore[arg-type]
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("tornpage: cannot write to ")
    assert done.stderr.count("\n") == 1


def test_history_is_of_crash_campaigns(tmp_path: Path) -> None:
    done = CliRunner().invoke(explore.command, ["--kills", "2", "--history", str(tmp_path)])
    assert done.exit_code == 2
    verbs = "`explore crashes`, `explore cluster`, `explore consumers`, `explore raft`"
    assert f"--history goes with {verbs}, not with `explore kills`" in done.stderr


def test_a_resumed_run_has_no_speed(tmp_path: Path) -> None:
    figures = {**OUTCOME.figures, "shards_skipped": 3}
    append_run(str(tmp_path), replace(OUTCOME, figures=figures), started=STARTED)
    [row] = read_history(tmp_path)
    assert (row.states, row.states_per_s, row.seconds) == (40, None, None)
