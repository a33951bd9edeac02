"""Test `tornpage faults` for users: documents, exit codes, one-line errors, no files left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.real_faults.mounts import why_no_mounts
from tornpage.properties.explore.real_faults.report import FaultReport, FaultsReport
from tornpage.properties.explore.real_faults.run import FAULTS
from tornpage.render.explorations import faults_outcome

COMMAND = [sys.executable, "-P", "-m", "tornpage", "faults"]


def document(*arguments: str) -> tuple[dict[str, Any], int]:
    done = subprocess.run([*COMMAND, *arguments, "--json"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done.returncode


CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")


def needs_mounts(directory: Path) -> None:
    reason = why_no_mounts(str(directory))
    if reason is not None:
        pytest.skip(reason)


def without_timings(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "figures": {name: n for name, n in said["figures"].items() if name not in said["timings"]}}


@pytest.mark.slow
def test_it_says_one_document_and_writes_a_run_directory(tmp_path: Path) -> None:
    needs_mounts(tmp_path)
    said, code = document("--only", "sparse-sigbus", "--seed", "4", "--out", str(tmp_path / "out"))
    assert (said["command"], said["verdict"], said["seed"], code) == ("faults", "holds", 4, 0)
    assert said["findings"] == []
    assert {"armed_sparse_sigbus", "fired_sparse_sigbus", "mattered_sparse_sigbus", "skipped"} <= set(said["figures"])
    assert said["timings"] == ["seconds_sparse_sigbus"]
    table = json.loads((tmp_path / "out" / "tables" / "faults.json").read_text())
    (row,) = table["rows"]
    assert (row["fault"], row["verdict"], row["contract"]) == ("sparse-sigbus", "holds", None)
    assert table["caption"]["command"] == "tornpage faults --only sparse-sigbus --seed 4"
    again, _ = document("--only", "sparse-sigbus", "--seed", "4")
    assert without_timings(again) == without_timings(said)


def test_an_unknown_fault_is_a_usage_error_that_names_the_others() -> None:
    done = subprocess.run([*COMMAND, "--only", "flood"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert all(name in done.stderr for name in FAULTS)


@pytest.mark.skipif(not CHILDREN.exists(), reason="this kernel does not list children")
def test_an_interrupt_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    needs_mounts(tmp_path)
    running = subprocess.Popen(
        [*COMMAND, "--only", "full-disk"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    stage = first_child(running)
    writer = None if stage is None else first_child_of(stage)
    assert writer is not None, "it ended before it was interrupted"
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=30)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "verdict: interrupted" in stdout
    assert list(tmp_path.iterdir()) == []
    while runs(writer):  # the kernel ends it with its parent, in a moment
        os.sched_yield()


def first_child(running: subprocess.Popen[str]) -> int | None:
    """Return the first process it forks, or None if it ends without one."""
    while running.poll() is None:
        child = _child_of(running.pid)
        if child is not None:
            return child
    return None


def runs(pid: int) -> bool:
    """Return whether a process has not ended; an unreaped one has."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


def first_child_of(pid: int) -> int | None:
    """Return the first process that another one forks, or None if that ends without one."""
    while runs(pid):
        child = _child_of(pid)
        if child is not None:
            return child
    return None


def _child_of(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


# ---- reports ---------------------------------------------------------------------------------------------------------


def report_of(*faults: FaultReport, interrupted: bool = False) -> FaultsReport:
    return FaultsReport(3, list(faults), interrupted)


HOLDS = FaultReport("full-disk", 5, 5, 5, ["sync: 100 puts stored, then CREATE_MAPEDFILE_FAILED"])
SKIPPED = FaultReport("sync-eio", skipped="no loop device")
BROKEN = FaultReport("sync-eio", 1, 1, 0, broken=GuaranteeBroken(9, "a put whose sync failed", "a refusal", "PUT_OK"))
SILENT = FaultReport("short-write", 1)
OURS = FaultReport("short-write", harness="it cannot fork")


@pytest.mark.parametrize(
    ("report", "verdict", "code"),
    [
        (report_of(HOLDS), "holds", 0),
        (report_of(HOLDS, SKIPPED), "holds", 0),
        (report_of(SKIPPED), "vacuous", 3),
        (report_of(), "vacuous", 3),
        (report_of(HOLDS, SILENT), "vacuous", 3),
        (report_of(HOLDS, BROKEN, SILENT), "broken", 1),
        (report_of(BROKEN, OURS), "harness", 4),
        (report_of(HOLDS, interrupted=True), "holds", 130),
    ],
)
def test_verdict_and_exit_code(report: FaultsReport, verdict: str, code: int) -> None:
    outcome, text = faults_outcome(report, command="tornpage faults")
    assert (outcome.verdict, outcome.exit_code) == (verdict, code)
    assert f"verdict: {'interrupted' if report.interrupted else verdict}" in text


def test_findings_name_fault_and_contract() -> None:
    findings = faults_outcome(report_of(HOLDS, SKIPPED, BROKEN, SILENT, OURS), command="")[0].findings
    assert [finding["code"] for finding in findings] == ["skipped", "contract-9", "never-fired", "harness"]
    assert [finding["severity"] for finding in findings] == ["note", "broken", "vacuous", "harness"]
    assert findings[0]["sentence"] == "no loop device"
    assert (findings[1]["fault"], findings[1]["expected"], findings[1]["found"]) == ("sync-eio", "a refusal", "PUT_OK")


def test_the_text_tells_what_was_seen_and_what_was_not() -> None:
    text = faults_outcome(report_of(HOLDS, SKIPPED, BROKEN), command="")[1]
    assert "sync: 100 puts stored, then CREATE_MAPEDFILE_FAILED" in text
    assert "skipped: no loop device" in text
    assert "contract 9 is broken: a put whose sync failed (expected a refusal; found PUT_OK)" in text
    assert "no fault could be shown here" in faults_outcome(report_of(SKIPPED), command="")[1]
