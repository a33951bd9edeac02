"""Test `tornpage exhaust` for users: statement, documents, exit codes, resumed runs."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.exhaust import command as exhaust
from tornpage.cli.replay import command as replay
from tornpage.properties.explore.exhaustive import run

COMMAND = [sys.executable, "-P", "-m", "tornpage", "exhaust"]
SMALL = ("--ops", "1", "--facts", "0", "--letters", "flush,close,open", "--check-ops", "0", "--check-facts", "0")


def called(*arguments: str) -> Result:
    return CliRunner().invoke(exhaust, [*SMALL, *arguments])


def document(text: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(text)
    said["figures"] = {name: figure for name, figure in said["figures"].items() if name not in said["timings"]}
    return said


@pytest.mark.slow
def test_the_document_depends_on_neither_hash_seed_nor_number_of_processes() -> None:
    told = []
    for hash_seed, workers in (("1", "1"), ("2", "2")):
        done = subprocess.run(
            [*COMMAND, *SMALL, "--workers", workers, "--json"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        assert done.returncode == 0, done.stderr
        told.append(document(done.stdout))
    assert told[0] == told[1]
    assert told[0]["verdict"] == "holds"
    assert told[0]["statement"].startswith("exhaustive up to 1 operation with the operations {flush, close, open}")
    assert [row["letter"] for row in told[0]["alphabet"]] == ["flush", "close", "open"]


def test_a_planted_bug_ends_with_1_and_a_token_that_replays(tmp_path: Path) -> None:
    arguments = ["--ops", "1", "--letters", "roll", "--check-ops", "0", "--bug", "no-crc", "--json", "--out"]
    done = CliRunner().invoke(exhaust, [*arguments, str(tmp_path / "out")])
    assert done.exit_code == 1, done.output
    (finding,) = json.loads(done.stdout)["findings"]
    assert Path(finding["case_file"]).exists()
    assert CliRunner().invoke(replay, [finding["token"]]).exit_code == 1


@pytest.mark.slow
def test_an_interrupt_ends_with_130_and_the_next_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--ops", "2", "--facts", "1", "--check-ops", "0", "--check-facts", "0", "--workers", "2", "--json"]
    kept = tmp_path / "workloads.jsonl"
    with subprocess.Popen(
        [*COMMAND, *arguments, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            while not (kept.exists() and kept.read_text().count("\n") > 3):
                assert running.poll() is None
                threading.Event().wait(0.05)
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the workers receive it too
            stdout, stderr = running.communicate(timeout=60)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    said = json.loads(stdout)
    assert said["verdict"] == "unknown"
    assert said["statement"].endswith("is not claimed")
    lines = kept.read_text().count("\n")
    monkeypatch.setattr(
        "tornpage.properties.campaign.workers._is_past", lambda until: until is not None
    )  # no time is left, on the fastest machine
    again = CliRunner().invoke(exhaust, [*arguments[:-3], "--seconds", "3600", "--json", "--out", str(tmp_path)])
    assert again.exit_code == 3, again.output
    assert json.loads(again.stdout)["figures"]["workloads_kept"] == lines - 1


def test_without_its_canary_it_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "caught_canary", lambda plan, tracker: "")
    done = called()
    assert done.exit_code == 3
    assert "canary: no planted bug was caught" in done.stdout
    assert done.stdout.endswith("verdict: vacuous\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--letters", "put,sing"), "no operation 'sing'"),
        (("--mode", "async", "--letters", "commit"), "no operation 'commit'"),
        (("--ops", "2", "--letters", "close"), "make no workload of 2 operations"),
        (("--letters", "open"), "make no workload of 1 operation"),
        (("--ops", "0"), "--ops"),
        (("--mode", "lazy"), "--mode"),
        (("--disk", "tape"), "--disk"),
        (("--bug", "none such"), "no planted bug"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_a_mistake_ends_with_2_and_says_which(arguments: tuple[str, ...], told: str) -> None:
    done = called(*arguments)
    assert done.exit_code == 2
    assert told in done.output
    assert "Traceback" not in done.output


def test_a_directory_of_another_bound_or_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "workloads.jsonl").write_text('{"tornpage_exhaust": 1}\n')
    done = called("--out", str(tmp_path))
    assert done.exit_code == 2
    assert "another bound" in done.output
    (tmp_path / "thesis.txt").write_text("mine")
    assert called("--out", str(tmp_path)).exit_code == 2
