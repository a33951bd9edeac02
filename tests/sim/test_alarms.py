"""Test RocketMQ's alarms, each counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, ON_DEMAND, SYNC, scenario
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.alarms import PUT_BUCKETS, alarms, figures, put_histogram_rows
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool, Scenario
from tornpage.sim.workload import OnOffBursts, Sizes


def slow_files(create_ms: int) -> Scenario:
    """Files of 64 records, each made only when it is needed."""
    device = DeviceTimes(name="slow files", sync=Constant(MS), put_ns=1_000, create_ns=create_ms * MS)
    return scenario(
        flush=ASYNC, allocation=ON_DEMAND, device=device, workload=500.0, file_bytes=64 * 1024, messages=1_000
    )


@pytest.mark.parametrize(
    ("create_ms", "over"), [(5, (0, 0, 0)), (200, (0, 0, 0)), (201, (1, 0, 0)), (501, (1, 1, 0)), (1_001, (1, 1, 1))]
)
def test_a_lock_that_waits_for_a_file_is_held(create_ms: int, over: tuple[int, int, int]) -> None:
    trace = run(slow_files(create_ms), 1)
    rolls = len(trace.rolls)
    found = alarms(trace)
    held = (found.lock_held_over_200_ms, found.lock_held_over_500_ms, found.lock_held_over_1000_ms)
    if create_ms == 200:
        assert held == (rolls, 0, 0), "1 us of copying comes to the 200 ms"
    else:
        assert held == tuple(rolls * each for each in over)
    assert found.creations_over_10_ms == (rolls if create_ms > 10 else 0)
    assert found.creation_time_outs == 0


def test_sends_behind_a_lock_held_for_too_long_are_refused_and_those_before_not() -> None:
    trace = run(slow_files(1_500), 1)
    held = np.flatnonzero(trace.written_ns - trace.start_ns > 1_000 * MS)
    behind = sum(
        int(((trace.arrival_ns < trace.written_ns[row]) & (np.arange(trace.messages) > row)).sum()) for row in held
    )
    found = alarms(trace)
    assert found.page_cache_busy_sends == behind > 100
    assert found.send_queue_time_outs == int((trace.start_ns - trace.arrival_ns > 200 * MS).sum()) > 100
    assert alarms(run(slow_files(5_001), 1)).creation_time_outs == len(trace.rolls)


def test_slow_flushes_count_by_round() -> None:
    """A round of two files of 300 ms each is one of 600 ms."""
    policy = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 1_000)
    slow = scenario(flush=policy, device=Constant(300 * MS), workload=50.0, file_bytes=30 * 1024, messages=300)
    trace = run(slow, 1)
    rounds, syncs = np.unique(trace.flushes["round"], return_counts=True)
    assert alarms(trace).flushes_over_500_ms == (syncs > 1).sum() > 0
    assert (syncs == 1).any()
    assert alarms(run(replace(slow, device=replace(slow.device, sync=Constant(501 * MS))), 1)).flushes_over_500_ms > 3
    assert len(rounds)


def test_slow_commits_count() -> None:
    device = DeviceTimes(name="slow commits", sync=Constant(MS), commit_ns=501 * MS)
    case = scenario(flush=ASYNC, allocation=AllocationPolicy(1), device=device, workload=100.0, messages=200)
    trace = run(replace(case, pool=Pool(2, CommitPolicy())), 1)
    assert alarms(trace).commits_over_500_ms == len(trace.commits) > 0
    named = figures(trace)
    assert named["alarm_commits_over_500_ms"] == len(trace.commits)


def histogram(trace: Trace) -> dict[str, int]:
    return {str(row["bucket"]): int(row["messages"]) for row in put_histogram_rows(trace)}


def test_the_histogram_has_the_buckets_of_the_store() -> None:
    names, firsts = zip(*PUT_BUCKETS, strict=True)
    assert list(firsts) == sorted(firsts)
    fast = run(scenario(flush=ASYNC, messages=500), 1)
    assert histogram(fast) == {**dict.fromkeys(names, 0), "[<=0ms]": 500}
    one = run(scenario(flush=SYNC, device=Constant(MS), workload=1.0, messages=50), 1)
    assert histogram(one)["[0~10ms]"] == 50
    ten = run(scenario(flush=SYNC, device=Constant(10 * MS), workload=1.0, messages=50), 1)
    assert histogram(ten)["[10~50ms]"] == 50
    long = run(scenario(flush=SYNC, device=Constant(10_000 * MS), workload=0.001, messages=20), 1)
    assert histogram(long)["[10s~]"] == 20


def test_a_quiet_run_raises_no_alarm() -> None:
    load = OnOffBursts(5_000.0, 20 * MS, 80 * MS, Sizes.of(512))
    assert set(figures(run(scenario(workload=load), 1)).values()) == {0}
