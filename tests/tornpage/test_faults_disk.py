"""Test `tornpage faults disk`: legal trees, documents, exit codes, nothing left over."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.real_faults.file_systems.comparing import PLANTED, Comparison
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind, why_not
from tornpage.properties.explore.real_faults.file_systems.measure import Measured
from tornpage.properties.explore.real_faults.file_systems.seen import NEVER_SEEN
from tornpage.properties.explore.real_faults.file_systems.workload import Operation
from tornpage.render.file_systems import measured_outcome

COMMAND = [sys.executable, "-P", "-m", "tornpage", "faults", "disk"]
KINDS: tuple[Kind, ...] = ("ext4", "xfs", "btrfs")
RARE = frozenset({"size kept without its page", "stale page after a cut", "torn page"})
"""Seen in fewer than ten of 1,300 states, so that a run may miss them. The recorded trees show them."""


def document(*arguments: str) -> tuple[dict[str, Any], int]:
    done = subprocess.run([*COMMAND, *arguments, "--json"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done.returncode


def needs(kind: Kind) -> None:
    if (reason := why_not(kind)) is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_workloads_hold_and_are_written_down(kind: Kind, tmp_path: Path) -> None:
    needs(kind)
    out = tmp_path / "out"
    said, code = document("--filesystem", kind, "--workloads", "3", "--states", "4", "--out", str(out))
    if any(finding["code"] == "skipped" for finding in said["findings"]):
        pytest.skip(said["findings"][0]["sentence"])
    assert (said["command"], said["filesystem"], said["figures"]["workloads"]) == ("faults disk", kind, 3)
    assert said["figures"]["states"] >= 3
    assert said["figures"]["illegal_trees"] == said["figures"]["unreadable_images"] == 0
    assert (said["verdict"], code) in (
        ("holds", 0),
        ("vacuous", 3),
    )
    rows = json.loads((out / "tables" / "rules.json").read_text())["rows"]
    assert {"rule", "seen"} == set(rows[0])


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_workloads_leave_only_legal_trees(kind: Kind) -> None:
    needs(kind)
    said, code = document("--filesystem", kind, "--workloads", "200", "--states", "10", "--seed", "1")
    assert (said["verdict"], code) == ("holds", 0)
    assert said["figures"]["illegal_trees"] == said["figures"]["illegal_trees_journal"] == 0
    never = {finding["sentence"] for finding in said["findings"] if finding["code"] == "never-happened"}
    assert never <= {f"permitted and never seen: {rule}" for rule in NEVER_SEEN[kind] | RARE}


def test_an_interrupt_leaves_no_loop_device_and_no_mount() -> None:
    needs("ext4")
    before = Path("/proc/self/mountinfo").read_text()
    running = subprocess.Popen(
        [*COMMAND, "--filesystem", "ext4", "--workloads", "100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and not attached_by(running.pid):
        os.sched_yield()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert not attached_by(running.pid)
    assert Path("/proc/self/mountinfo").read_text() == before


def attached_by(pid: int) -> list[str]:
    """Return the mounts of the child of a process that are on a loop device."""
    found = []
    for task in Path(f"/proc/{pid}/task/{pid}").glob("children"):
        for child in task.read_text().split():
            try:
                lines = Path(f"/proc/{child}/mountinfo").read_text().splitlines()
            except OSError:
                continue
            found += [line for line in lines if "/dev/loop" in line and "tornpage-disk" in line]
    return found


def measured(*, skipped: str = "", illegal: bool = False) -> Measured:
    kind: Kind = "ext4"
    run = Measured(
        kind, 3, Comparison(kind, kind), Comparison(kind, "journal"), Comparison(kind, kind, PLANTED[kind]),
        skipped=skipped,
    )  # fmt: skip
    if illegal:
        run.comparison.add(5, [Operation("fsync", "/a")], 1, Image(frozenset({"/", "/d"}), {"/a": b"other"}))
    return run


def test_an_illegal_tree_is_a_finding_with_its_workload() -> None:
    outcome, text = measured_outcome(measured(illegal=True), command="again")
    assert (outcome.verdict, outcome.exit_code) == ("broken", 1)
    (finding, *_) = outcome.findings
    assert finding["code"] == "illegal-tree"
    assert finding["tree"]["operations"] == [{"kind": "fsync", "path": "/a"}]
    assert "workload 5, power loss at operation 0 (fsync /a)" in text


def test_without_the_privilege_it_is_skipped_with_the_reason_and_vacuous() -> None:
    outcome, text = measured_outcome(measured(skipped="mkfs.ext4 is not installed"), command="again")
    assert (outcome.verdict, outcome.exit_code) == ("vacuous", 3)
    assert text.startswith("skipped: mkfs.ext4 is not installed")


def test_a_file_system_has_to_be_named() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "ext4" in done.stderr
