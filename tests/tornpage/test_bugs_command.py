"""Test `tornpage bugs list`, `show` and `score`: columns, documents, errors, resuming."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.guard import python_command
from tornpage.properties.planted import PLANTED, REPRODUCERS
from tornpage.properties.program.case import Case


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bugs", *arguments])


def test_the_list_says_what_each_bug_is_where_it_comes_from_and_who_may_see_it() -> None:
    rows = json.loads(run("list", "--json").stdout)["rows"]
    assert [row["id"] for row in rows] == list(PLANTED)
    by_id = {row["id"]: row for row in rows}
    assert by_id["RMQ-B13"]["rocketmq"] == ["RMQ-B13"]
    assert by_id["RMQ-B13"]["holes"] == ["H2"]
    assert by_id["sync-error-ignored"]["rocketmq"] == ["RMQ-B25"]
    assert by_id["RMQ-B24"]["strategies"] == ["interleavings"]


def test_a_group_can_be_listed_kind_by_kind() -> None:
    result = run("list", "--group", "durability")
    assert result.exit_code == 0
    assert all(bug in result.stdout for bug in PLANTED if PLANTED[bug].group)
    assert "RMQ-B05" not in result.stdout


def test_a_bug_is_shown_with_promise_and_origin() -> None:
    result = run("show", "no-erase-after-cut")
    assert result.exit_code == 0
    assert "contract 3: Records that a recovery cut never come back" in result.stdout
    assert "hole H1" in result.stdout
    assert "durability: skip the erase" in result.stdout


def test_a_bug_is_shown_with_its_smallest_case() -> None:
    smallest = json.loads(run("show", "whole-pages-only", "--json").stdout)["bug"]["smallest"]
    assert smallest["operations"] == ["put()", "close()"]
    assert smallest["breaks"] == 2
    assert Case.from_token(smallest["token"]) == REPRODUCERS["whole-pages-only"]
    text = run("show", "whole-pages-only").stdout
    assert "1. put()" in text
    assert f"tornpage replay {smallest['token']}" in text
    assert "which breaks contract 9 first" in run("show", "early-acknowledgement").stdout


def test_a_bug_of_threads_has_no_smallest_case_and_says_so() -> None:
    assert json.loads(run("show", "RMQ-B24", "--json").stdout)["bug"]["smallest"] is None
    assert "two threads have to meet" in run("show", "RMQ-B24").stdout


@pytest.mark.parametrize("wrong", [("show", "lyng-flush"), ("score", "lyng-flush")])
def test_a_wrong_id_is_refused_with_the_nearest(wrong: tuple[str, ...]) -> None:
    result = run(*wrong)
    assert result.exit_code == 2
    assert "the nearest are: lying-flush" in result.stderr


def test_misuse_is_refused(tmp_path: Path) -> None:
    assert run("score", "--strategy", "luck").exit_code == 2
    assert run("score", "--trials", "0").exit_code == 2
    assert run("list", "--group", "nothing").exit_code == 2
    assert run("show", "RMQ-B13", "--scores", str(tmp_path)).exit_code == 2
    (tmp_path / "trials.jsonl").write_text("nonsense\n")
    result = run("score", "lying-flush", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "line 1" in result.stderr


@pytest.mark.slow
def test_a_score_has_document_page_and_kept_trials(tmp_path: Path) -> None:
    arguments = ("lying-flush", "--strategy", "random", "--trials", "2", "--budget", "30", "--out", str(tmp_path))
    result = run("score", *arguments, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    figures = document["figures"]
    assert (figures["killed"], figures["killed_within_60_s"], figures["trials"]) == (1, 1, 2)
    assert figures["median_kill_s"] == document["rows"][0]["median_s"]
    assert {"median_kill_s", "killed_within_60_s"} <= set(document["timings"])
    before = (tmp_path / "trials.jsonl").read_text()
    assert run("score", *arguments).exit_code == 0
    assert (tmp_path / "trials.jsonl").read_text() == before
    shown = run("show", "lying-flush", "--scores", str(tmp_path))
    assert "random" in shown.stdout
    assert "2/2" in shown.stdout
    small = json.loads((tmp_path / "small.jsonl").read_text())
    assert f"{figures['median_small_operations']} operations and 0 lost pages, shrunk" in shown.stdout
    assert f"tornpage replay {small['token']}\n" in shown.stdout
    assert figures["small_one_minimal"] == 1
    assert CliRunner().invoke(cli, ["report", str(tmp_path)]).exit_code == 0
    page = (tmp_path / "index.html").read_text()
    assert "How long planted bugs live" in page
    assert "of 1 bug, made small" in page


def score_with_files_of(kib: int, out: Path | None, *, trials: int) -> subprocess.CompletedProcess[str]:
    """Score where no file may become larger: writes fail as on a full disk.

    No bytecode is written there. CPython 3.11 keeps a module whose write ended short, and later imports of it fail.
    """
    words = ["lying-flush", "--strategy", "random", "--trials", str(trials), "--shrink", "0"]
    words += [] if out is None else ["--out", str(out)]
    line = f"ulimit -f {kib}; exec {shlex.join([*python_command('tornpage'), 'bugs', 'score', *words])}"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_a_score_of_other_sources_is_not_continued(tmp_path: Path) -> None:
    """Rows of two versions were mixed."""
    words = ("score", "lying-flush", "--strategy", "random", "--trials", "1", "--shrink", "0", "--out", str(tmp_path))
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 0
    (tmp_path / "sources.json").write_text('{"sources": "0123456789ab"}')
    refused = run(*words)
    assert refused.exit_code == 2
    assert "other sources of tornpage" in refused.stderr
    assert "name another --out directory, or remove trials.jsonl" in refused.stderr
    (tmp_path / "trials.jsonl").unlink()
    assert run(*words).exit_code == 0


@pytest.mark.slow
def test_a_disk_without_room_for_a_trial_is_one_line(tmp_path: Path) -> None:
    """It was a traceback, and exit code 1.

    The rows that fit are kept, and the next score continues from there.
    """
    rows = tmp_path / "trials.jsonl"
    assert run("score", "lying-flush", "--strategy", "random", "--trials", "1", "--out", str(tmp_path)).exit_code == 0
    done = score_with_files_of(1 + rows.stat().st_size // 1024, tmp_path, trials=20)
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [
        f"tornpage: cannot write results to {rows}: File too large; free space and resume, or give another directory"
    ]
    kept = rows.read_text().rpartition("\n")[0]
    assert run("score", "lying-flush", "--strategy", "random", "--trials", "2", "--out", str(tmp_path)).exit_code == 0
    assert kept
    assert rows.read_text().startswith(kept)


@pytest.mark.slow
def test_without_a_temporary_directory_a_score_is_refused_in_one_line() -> None:
    """It was a traceback, and exit code 1."""
    done = score_with_files_of(0, None, trials=1)
    assert done.returncode == 2
    assert done.stderr == (
        "tornpage: no temporary directory can be written; free some space there, or name another one in TMPDIR\n"
    )


def test_failures_may_be_left_as_they_were_met(tmp_path: Path) -> None:
    arguments = ("lying-flush", "--strategy", "random", "--trials", "1", "--shrink", "0", "--out", str(tmp_path))
    document = json.loads(run("score", *arguments, "--json").stdout)
    assert "small_failures" not in document["figures"]
    assert "as found by" in run("show", "lying-flush", "--scores", str(tmp_path)).stdout


def test_what_nobody_kills_is_vacuous() -> None:
    result = run("score", "RMQ-B55", "--strategy", "random", "--trials", "1", "--budget", "0.3")
    assert result.exit_code == 3
    assert "never killed: RMQ-B55" in result.stdout
