"""Test shards in processes: equal results for any number of workers.

After an interrupt or the death of a worker the results are partial.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.campaign import CrashResult, Plan, run_campaign
from tornpage.properties.program.case import Settings

COMMAND = [sys.executable, "-P", "-m", "tornpage", "explore", "--json"]


def explored(
    tracker: DirtyTracker, workers: int, progress: Callable[[int, float], None] | None = None, **more: Any
) -> CrashResult:
    plan = Plan(Settings(), **{"seed": 8, "states": 8, "shard_states": 4, **more}, workers=workers)
    return run_campaign(plan, tracker=tracker, progress=progress or (lambda states, seconds: None))


def children(pid: int) -> list[int]:
    """Return the workers of a process: its children except helpers of multiprocessing."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    told = [(int(child), Path(f"/proc/{child}/cmdline").read_bytes()) for child in found]
    return [child for child, line in told if b"spawn_main" in line]


@pytest.mark.slow
def test_the_result_is_the_same_for_any_number_of_workers(tracker: DirtyTracker) -> None:
    """This holds for tasks of Spark too (tests/pipeline/test_jobs_spark.py)."""
    here, two = (explored(tracker, workers) for workers in (1, 2))
    assert here.result_hash == two.result_hash
    assert (here.shards, here.tally.states) == (2, two.tally.states)
    assert here.tally.discovery == two.tally.discovery
    assert here.tally.hit == two.tally.hit


@pytest.mark.deep
@pytest.mark.parametrize("strategy", ["random", "covering"])
def test_the_result_is_the_same_for_any_hash_seed(strategy: str) -> None:
    hashes = set()
    for value, workers in (("1", "1"), ("77", "2")):
        arguments = ("--states", "4", "--states-per-shard", "2", "--strategy", strategy, "--workers", workers)
        env = {**os.environ, "PYTHONHASHSEED": value}
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, env=env)
        assert done.returncode in (0, 3), done.stderr
        hashes.add(json.loads(done.stdout)["result_hash"])
    assert len(hashes) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_is_a_finding_and_the_others_results_are_kept(tracker: DirtyTracker) -> None:
    killed: list[int] = []

    def kill_one(states: int, seconds: float) -> None:
        if not killed and states:
            killed.append(children(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    result = explored(tracker, 2, kill_one, states=30, shard_states=10)
    assert killed
    assert result.verdict is Verdict.HARNESS
    assert result.shards == 2
    assert result.tally.states >= 20
    [fault] = result.faults
    assert "was killed by SIGKILL" in fault
    assert "from seed 8:" in fault


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, pytest.param(False, marks=pytest.mark.deep)], ids=["terminal", "one process"])
def test_an_interrupt_ends_all_workers_and_keeps_what_they_have(to_all: bool) -> None:
    """A terminal interrupts all processes of a group, `kill` only one."""
    running = subprocess.Popen(
        [*COMMAND, "--seconds", "600", "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    workers: list[int] = []
    while len(workers) < 2 or any(cpu_seconds(worker) < 2 for worker in workers):
        assert running.poll() is None, running.communicate()
        threading.Event().wait(0.05)
        workers = children(running.pid)
    (os.killpg if to_all else os.kill)(running.pid, signal.SIGINT)
    stdout, stderr = running.communicate(timeout=120)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    said = json.loads(stdout)
    assert said["figures"]["all_states"] > 0
    assert said["cut"]
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process. Source: proc(5), utime of /proc/pid/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.deep
def test_workers_whose_parent_dies_end_by_themselves() -> None:
    running = subprocess.Popen([*COMMAND, "--seconds", "600", "--workers", "2"], stderr=subprocess.DEVNULL)
    workers: list[int] = []
    while len(workers) < 2 or any(cpu_seconds(worker) < 2 for worker in workers):
        assert running.poll() is None
        threading.Event().wait(0.05)
        workers = children(running.pid)
    running.kill()
    running.wait()
    for worker in workers:
        while Path(f"/proc/{worker}").exists() and "Z" not in Path(f"/proc/{worker}/stat").read_text().split()[2]:
            threading.Event().wait(0.05)


@pytest.mark.deep
def test_time_ends_a_campaign_of_workers(tracker: DirtyTracker) -> None:
    result = explored(tracker, 2, states=None, seconds=2.0, shard_states=1_000)
    assert result.is_cut
    assert not result.interrupted
    assert not result.without_canary
    assert result.tally.histories
