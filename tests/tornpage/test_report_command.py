"""Test `tornpage report`: pages of counterexamples beside the page, trends, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.campaign import command as campaign
from tornpage.cli.check import command as check
from tornpage.cli.report import command as report
from tornpage.model.operations import Crash, Put
from tornpage.properties.program.case import Case, Settings


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(report, list(arguments))


def case(bug: str = "no-erase-after-cut") -> Case:
    """Return a case in which a byte that recovery cut stays on the disk."""
    settings = Settings(file_bytes=8192, bug=bug)
    lost = {f"page /store/commitlog/{0:020} 1": 0}
    return Case(settings, (Put(body_bytes=3444), Put(body_bytes=452), Crash(survived=lost, others="kept")))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run with a finding that fails, one that fails no more, and an unreadable one."""
    directory = tmp_path / "run"
    directory.mkdir()
    tokens = (case().token(), case(bug="").token(), "tp1-00000000-nonsense", "ti1-00000000-threads")
    findings = [
        {"code": f"contract-{3 + n}", "severity": "broken", "sentence": f"broken in way {'abcd'[n]}", "token": token}
        for n, token in enumerate(tokens)
    ]
    document: dict[str, Any] = {
        "schema": 1, "command": "explore", "verdict": "broken", "figures": {}, "timings": [], "findings": findings,
        "seed": 0, "version": "0.1.0", "arguments": "explore", "machine": {}, "started": "2026-11-22T11:00:00Z",
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps(document))
    return directory


def test_a_cause_that_fails_has_a_page_and_the_report_leads_to_it(run: Path) -> None:
    done = invoke(str(run))
    name = f"case-{case().token()[4:12]}.html"
    assert (done.exit_code, done.stdout) == (0, f"{run / 'index.html'}\n")
    assert [path.name for path in run.glob("case-*")] == [name]
    assert f'<a href="{name}">See it explained</a>' in (run / "index.html").read_text(encoding="utf-8")
    assert "a byte that recovery cut is still on disk" in (run / name).read_text(encoding="utf-8")
    assert sum("every guarantee holds now" in line for line in done.stderr.splitlines()) == 1
    assert len(done.stderr.splitlines()) == 2


def test_pages_that_are_there_are_not_written_again_and_none_are_if_none_are_wanted(run: Path) -> None:
    none = json.loads(invoke(str(run), "--pages", "0", "--json").stdout)
    assert (none["figures"]["pages"], list(run.glob("case-*"))) == (0, [])
    written = [json.loads(invoke(str(run), "--json").stdout)["figures"]["pages"] for _ in range(2)]
    assert written == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a run directory, or --history"),
        (("run", "--history", "h"), "give a run directory, or --history"),
        (("run", "--out", "x.html"), "--out goes with --history"),
        (("--history", "nowhere"), "is no directory"),
    ],
    ids=["nothing", "both", "out", "nowhere"],
)
def test_what_contradicts_itself_is_refused_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert said in done.stderr


@pytest.mark.slow
def test_a_campaign_and_a_check_leave_runs_that_have_a_report(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    runner, rows, machines = CliRunner(), tmp_path / "campaign", tmp_path / "check"
    arguments = ["--shards", "1", "--states-per-shard", "20", "--engine", "serial", "--bug", "lying-flush"]
    assert runner.invoke(campaign, [*arguments, "--out", str(rows)]).exit_code == 1
    assert runner.invoke(campaign, [*arguments, "--out", str(rows), "--resume"]).exit_code == 1
    assert runner.invoke(check, ["--examples", "3", "--out", str(machines)]).exit_code in (0, 3)
    for directory in (rows, machines):
        assert invoke(str(directory), "--pages", "0").exit_code == 0
    text = (rows / "index.html").read_text(encoding="utf-8")
    assert "shard 0" in text
    assert "lost page" in text
