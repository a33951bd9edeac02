"""Test the loss of a crash against counting row by row, and what no policy may lose."""

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.support import MS, SYNC, scenario
from tornpage.impl.config.policy import CommitPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.crashes import crash_moments, figures, loss_rows, losses, summarise_losses
from tornpage.sim.results.tables import summarise_at_risk, summarise_flushes
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool, Replica
from tornpage.sim.workload import OpenPoisson, Sizes

TIMED = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20)
POOLED = replace(
    scenario(
        flush=TIMED,
        device=DeviceTimes(name="slow commits", sync=Constant(MS), put_ns=900, commit_ns_per_kib=100_000),
        workload=OpenPoisson(20_000.0, Sizes(100, 2_000)),
        file_bytes=30_000,
        messages=600,
    ),
    pool=Pool(2, CommitPolicy(10), fast_fail=True),
)
CASES = {
    "sync": scenario(messages=300),
    "timed": scenario(flush=TIMED, messages=300),
    "pool": POOLED,
    "pool and replica": replace(POOLED, replica=Replica(Constant(5 * MS))),
}


@pytest.fixture(params=CASES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return run(CASES[request.param], 3)


def test_losses_are_what_counting_finds(trace: Trace) -> None:
    moments = np.unique(
        np.concatenate([crash_moments(trace, 60, seed=1), trace.written_ns[::29], trace.durable_ns[::29]])
    )
    for row in losses(trace, moments):
        for failure, safe_ns in (("kill", trace.committed_ns), ("power", trace.durable_ns)):
            lost = (trace.size > 0) & (trace.written_ns <= row["at_ns"]) & (row["at_ns"] < safe_ns)
            oldest = trace.written_ns[lost].min() if lost.any() else row["at_ns"]
            assert row[f"{failure}_messages"] == lost.sum()
            assert row[f"{failure}_bytes"] == trace.size[lost].sum()
            assert row[f"{failure}_age_ns"] == row["at_ns"] - oldest
            assert row[f"{failure}_answered"] == (lost & (trace.put_ns <= row["at_ns"])).sum()


def test_the_pooled_case_has_refusals_and_kill_losses() -> None:
    trace = run(POOLED, 3)
    assert (trace.size == 0).any()
    found = summarise_losses(losses(trace, crash_moments(trace, 500, seed=1)), "kill")
    assert found.messages_max > 0
    work = summarise_flushes(trace)
    assert work.mean_batch * work.rounds == pytest.approx(np.count_nonzero(trace.size)), "no flush has a refused put"


def test_sync_flush_loses_nothing_that_was_answered_and_a_kill_nothing_at_all() -> None:
    trace = run(CASES["sync"], 5)
    named = figures(losses(trace, crash_moments(trace, 2_000, seed=1)))
    assert named["power_crash_messages_max"] > 0
    assert named["power_crash_answered_max"] == named["kill_crash_messages_max"] == named["kill_crash_bytes_max"] == 0


def test_even_moments_find_the_mean_over_time() -> None:
    trace = run(scenario(flush=TIMED, workload=20_000.0, messages=20_000), 3)
    found = summarise_losses(losses(trace, crash_moments(trace, 100_000, seed=1)), "power")
    assert found.messages_mean == pytest.approx(summarise_at_risk(trace).messages_mean, rel=0.02)
    assert found.messages_max <= summarise_at_risk(trace).messages_max


def test_no_message_is_lost_for_longer_than_a_cycle() -> None:
    """The oldest lost message of a timed flush has waited one interval and two syncs at most."""
    trace = run(scenario(flush=replace(TIMED, flush_commit_log_least_pages=0), device=Constant(MS), messages=2_000), 3)
    found = summarise_losses(losses(trace, crash_moments(trace, 5_000, seed=1)), "power")
    assert 20 * 1_000 < found.age_max_us <= 22 * 1_000


def test_moments_are_a_function_of_the_seed_and_lie_in_the_load() -> None:
    trace = run(CASES["timed"], 3)
    once, again, other = (crash_moments(trace, 50, seed=seed) for seed in (1, 1, 2))
    assert once.tolist() == again.tolist() != other.tolist()
    assert trace.arrival_ns[0] <= once[0] <= once[-1] <= trace.load_ns
    assert set(loss_rows(losses(trace, once))[0]) >= {"at_us", "kill_bytes", "power_age_us"}


def test_a_run_without_messages_loses_none() -> None:
    trace = run(scenario(flush=SYNC, messages=None, duration_ns=1), 3)
    assert len(crash_moments(trace, 5, seed=0)) == 0
    assert losses(trace, np.array([0, 5]))["power_bytes"].tolist() == [0, 0]
    assert figures(losses(trace, crash_moments(trace, 5, seed=0)))["power_crash_messages_mean"] == 0
