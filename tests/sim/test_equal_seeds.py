"""Test that a run is a function of scenario and seed in every process and hash seed."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, ON_DEMAND, ONE_AHEAD, SYNC, scenario
from tornpage.sim.device.device import PRESETS
from tornpage.sim.distributions import Exponential
from tornpage.sim.events.probe import Rows
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes

ROOT = Path(__file__).parents[2]
SCENARIOS = {
    "open, sync": scenario(file_bytes=64 << 10),
    "open, async, on demand": scenario(flush=ASYNC, allocation=ON_DEMAND, file_bytes=64 << 10),
    "closed, sync": scenario(workload=ClosedLoop(7, Sizes(100, 3000), Exponential(1e6)), file_bytes=64 << 10),
    "closed, async": scenario(flush=ASYNC, workload=ClosedLoop(7, Sizes(100, 3000)), file_bytes=64 << 10),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_equal_seeds_give_equal_traces_and_others_do_not(name: str) -> None:
    case = SCENARIOS[name]
    first, again, other = run(case, 11), run(case, 11), run(case, 12)
    assert first.digest() == again.digest() != other.digest()
    assert first.digest() == run(pickle.loads(pickle.dumps(case)), 11, probe=Rows()).digest()


def test_equal_seeds_give_equal_traces_in_other_processes() -> None:
    program = (
        "import pickle, sys; from tornpage.sim.run import run\n"
        "for case in pickle.load(sys.stdin.buffer): print(run(case, 11).digest())"
    )
    for hash_seed in ("0", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps(list(SCENARIOS.values())),
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            check=True,
        )
        assert done.stdout.decode().split() == [run(case, 11).digest() for case in SCENARIOS.values()]


@pytest.mark.parametrize(
    "other",
    [
        scenario(flush=ASYNC),
        scenario(allocation=ON_DEMAND, file_bytes=8192),
        scenario(device=PRESETS["ebs-gp3"]),
        scenario(messages=1500),
    ],
    ids=["flush", "allocation", "device", "length"],
)
def test_policies_are_compared_under_the_same_arrivals(other: Scenario) -> None:
    once, twice = run(scenario(), 4), run(other, 4)
    rows = min(once.messages, twice.messages)
    assert (once.arrival_ns[:rows] == twice.arrival_ns[:rows]).all()
    assert (once.size[:rows] == twice.size[:rows]).all()


def test_a_further_producer_does_not_shift_the_others() -> None:
    def first_thoughts(producers: int) -> dict[int, int]:
        workload = ClosedLoop(producers, Sizes.of(100), Exponential(1e6))
        trace = run(scenario(allocation=ONE_AHEAD, workload=workload, messages=200), 4)
        numbers, rows = np.unique(trace.producer, return_index=True)
        return dict(zip(numbers.tolist(), trace.arrival_ns[rows].tolist(), strict=True))

    few, many = first_thoughts(5), first_thoughts(6)
    assert {number: many[number] for number in few} == few


def test_a_message_count_and_a_duration_cut_the_same_stream() -> None:
    whole = run(scenario(messages=2_000), 8)
    half_ns = int(whole.arrival_ns[999])
    cut = run(scenario(messages=None, duration_ns=half_ns), 8)
    assert cut.messages == 1000
    assert (cut.arrival_ns == whole.arrival_ns[:1000]).all()
    sizes = OpenPoisson(5_000.0, Sizes(10, 20))
    both = run(scenario(workload=sizes, messages=10, duration_ns=10_000 * MS), 8)
    assert both.messages == 10
    assert run(scenario(messages=None, duration_ns=1, flush=SYNC), 8).messages == 0
