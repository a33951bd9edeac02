"""Compare the simulation with formulas. Each tolerance comes from the sample.

A mean is taken over independent runs and may lie 4 standard errors from its formula (a correct simulation fails 1 time
in 15,000; the seeds are fixed, so it fails always or never). Each test also bounds the standard error: it has to be a
small part of the formula, or else agreement would mean nothing.
"""

from collections.abc import Callable

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, SYNC, US, scenario
from tornpage.impl.config.policy import FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant, Distribution, Exponential, LogNormal
from tornpage.sim.fast import run_fast
from tornpage.sim.results.analytic import (
    Estimate,
    GroupCommitLaw,
    cdf_distance,
    cdf_tolerance,
    closed_loop_bounds,
    md1_mean_wait_ns,
    mg1_mean_wait_ns,
    put_law,
    replications,
    timer_at_risk,
)
from tornpage.sim.results.tables import summarise_at_risk
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes

ERRORS = 4.0
LAWS: dict[str, Distribution] = {
    "constant": Constant(MS),
    "exponential": Exponential(float(MS)),
    "lognormal": LogNormal.from_moments(mean_ns=MS, deviation_ns=MS / 2),
}


def estimate(measure: Callable[[int], float], runs: int) -> Estimate:
    return replications([measure(seed) for seed in range(runs)])


def assert_meets(found: Estimate, formula: float, *, finer_than: float) -> None:
    assert found.error < finer_than * formula, "the sample is too small to tell"
    assert abs(found.errors_from(formula)) < ERRORS, f"{found} against {formula}"


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_wait_for_the_put_lock_is_that_of_md1(load: float) -> None:
    service_ns = 100 * US
    device = DeviceTimes(name="puts", sync=Constant(0), put_ns=service_ns)
    case = scenario(flush=ASYNC, device=device, workload=load * 1e9 / service_ns, messages=50_000)

    def mean_wait(seed: int) -> float:
        trace = run(case, seed)
        return float((trace.start_ns - trace.arrival_ns).mean())

    formula = md1_mean_wait_ns(rate_per_ns=load / service_ns, service_ns=service_ns)
    assert_meets(estimate(mean_wait, 32), formula, finer_than=0.01)
    law = put_law(case)
    assert law is not None
    assert law.mean_ns == pytest.approx(formula + service_ns)


def test_wait_for_the_put_lock_is_that_of_mg1_when_sizes_differ() -> None:
    """Sizes 1 to 400 KiB, each KiB 1 us: the service is nearly uniform.

    Whole bytes are rounded down to ns.
    """
    smallest, largest = 1 << 10, 400 << 10
    device = DeviceTimes(name="copies", sync=Constant(0), copy_ns_per_kib=1000)
    services = np.arange(smallest, largest + 1) * 1000 // 1024
    rate_per_ns = 0.6 / float(services.mean())
    case = scenario(
        flush=ASYNC, device=device, workload=OpenPoisson(rate_per_ns * 1e9, Sizes(smallest, largest)), messages=30_000
    )

    def mean_wait(seed: int) -> float:
        trace = run(case, seed)
        return float((trace.start_ns - trace.arrival_ns).mean())

    formula = rate_per_ns * float((services.astype(float) ** 2).mean()) / (2 * (1 - 0.6))
    assert_meets(estimate(mean_wait, 32), formula, finer_than=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [100.0, 1_000.0, 20_000.0])
@pytest.mark.parametrize("name", sorted(LAWS))
def test_group_commit_means_are_those_of_the_law(name: str, rate: float) -> None:
    sync = LAWS[name]
    law = GroupCommitLaw(rate / 1e9, sync)
    case = scenario(device=sync, workload=rate, messages=6_000 if rate < 10_000 else 60_000)
    traces = [run(case, seed) for seed in range(16)]

    def mean_of(figure: Callable[[Trace], float]) -> Estimate:
        return replications([figure(trace) for trace in traces])

    assert_meets(mean_of(lambda trace: float((trace.put_ns - trace.arrival_ns).mean())), law.mean_ns, finer_than=0.01)
    assert_meets(mean_of(lambda trace: trace.messages / len(trace.flushes)), law.mean_batch, finer_than=0.01)
    if law.mean_batch < 10:  # at higher loads an idle moment is too rare to know the spread of 16 runs
        assert_meets(mean_of(busy_share), law.busy_share, finer_than=0.02)


def busy_share(trace: Trace) -> float:
    """Return the share of time in syncs over whole cycles.

    A cycle runs from the start of the first sync to that of the last one.
    """
    starts, ends = trace.flushes["start_ns"], trace.flushes["end_ns"]
    return float((ends - starts)[:-1].sum() / (starts[-1] - starts[0]))


@pytest.mark.parametrize(("name", "rate"), [("constant", 1_000.0), ("exponential", 5_000.0), ("lognormal", 20_000.0)])
def test_group_commit_distribution_is_that_of_the_law(name: str, rate: float) -> None:
    sync = LAWS[name]
    trace = run_fast(scenario(device=sync, workload=rate, messages=400_000), 1)
    distance = cdf_distance(trace.put_ns - trace.arrival_ns, GroupCommitLaw(rate / 1e9, sync), points=128)
    assert distance < cdf_tolerance(trace.flushes["messages"], chance=1e-3)


@pytest.mark.parametrize("wrong_rate", [700.0, 1_400.0])
def test_the_distribution_test_tells_a_wrong_rate(wrong_rate: float) -> None:
    trace = run_fast(scenario(device=LAWS["constant"], workload=1_000.0, messages=100_000), 1)
    distance = cdf_distance(
        trace.put_ns - trace.arrival_ns, GroupCommitLaw(wrong_rate / 1e9, LAWS["constant"]), points=128
    )
    assert distance > 2 * cdf_tolerance(trace.flushes["messages"], chance=1e-3)


@pytest.mark.deep
@pytest.mark.parametrize("rate", [300.0, 1_000.0, 5_000.0, 20_000.0])
@pytest.mark.parametrize("name", sorted(LAWS))
def test_group_commit_distribution_at_a_million_messages(name: str, rate: float) -> None:
    sync = LAWS[name]
    trace = run_fast(scenario(device=sync, workload=rate, messages=1_000_000), 1)
    distance = cdf_distance(trace.put_ns - trace.arrival_ns, GroupCommitLaw(rate / 1e9, sync), points=128)
    assert distance < cdf_tolerance(trace.flushes["messages"], chance=1e-3)


@pytest.mark.slow
def test_at_risk_behind_a_timer_is_rate_times_half_a_cycle_and_a_sync() -> None:
    policy, rate, sync_ns = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 50), 20_000.0, 5 * MS
    case = scenario(
        flush=policy, device=Constant(sync_ns), workload=rate, messages=None, duration_ns=110_000 * MS // 10
    )

    def mean_at_risk(seed: int) -> float:
        return summarise_at_risk(run(case, seed)).messages_mean

    assert case.duration_ns == 200 * (50 * MS + sync_ns), "whole cycles, so that the last one is no exception"
    assert_meets(
        estimate(mean_at_risk, 16), timer_at_risk(policy, rate_per_ns=rate / 1e9, sync_ns=sync_ns), finer_than=0.01
    )


def test_below_the_page_rule_only_the_thorough_flush_works() -> None:
    """16 messages/s of 1 KiB are 2 pages in 500 ms.

    Exposure is bounded by the thorough interval, one sleep and one sync.
    """
    trace = run(scenario(flush=ASYNC, device=Constant(MS), workload=2.0, messages=200), 3)
    exposed = trace.durable_ns - trace.written_ns
    bound_ns = (ASYNC.flush_commit_log_thorough_interval + 2 * ASYNC.flush_interval_commit_log + 1) * MS
    assert ASYNC.flush_interval_commit_log * MS * 4 < exposed.max() <= bound_ns
    small = trace.flushes["to_offset"] // 4096 - trace.flushes["from_offset"] // 4096 < 4
    assert small.any(), "some flush was thorough"
    assert np.diff(trace.flushes["start_ns"][small]).min() >= ASYNC.flush_commit_log_thorough_interval * MS


@pytest.mark.parametrize("producers", [1, 4, 32])
@pytest.mark.parametrize("think_ns", [0, MS])
def test_closed_loop_throughput_lies_between_its_bounds(producers: int, think_ns: int) -> None:
    workload = ClosedLoop(producers, Sizes.of(1024), Constant(think_ns))
    trace = run(scenario(device=Constant(MS), workload=workload, messages=2_000), 1)
    least, most = closed_loop_bounds(producers=producers, sync_ns=MS, think_ns=think_ns)
    whole_laps = trace.messages / int(trace.put_ns.max())
    assert least * 0.99 <= whole_laps <= most * (1 + 1e-12), "the first lap may begin late, by less than one in 60"
    if producers == 1:
        assert whole_laps == most


def test_a_lone_closed_producer_pays_one_sync_per_message() -> None:
    trace = run(scenario(device=Constant(MS), workload=ClosedLoop(1, Sizes.of(100)), messages=50), 1)
    assert (trace.put_ns - trace.arrival_ns == MS).all()
    assert (trace.arrival_ns[1:] == trace.put_ns[:-1]).all()


def test_free_syncs_answer_at_once() -> None:
    trace = run(scenario(device=Constant(0), workload=20_000.0), 1)
    assert (trace.put_ns == trace.arrival_ns).all()


def test_twice_the_time_everywhere_doubles_every_latency() -> None:
    once = run(scenario(device=Constant(MS), workload=4_000.0, messages=5_000), 5)
    twice = run(scenario(device=Constant(2 * MS), workload=2_000.0, messages=5_000), 5)
    latencies = 2 * (once.put_ns - once.arrival_ns), twice.put_ns - twice.arrival_ns
    gaps_rounded_ns = 2  # each gap is rounded to a ns, in the first run before doubling
    assert np.abs(latencies[0] - latencies[1]).max() <= gaps_rounded_ns * trace_longest_busy_period(once)
    assert latencies[0].mean() == pytest.approx(latencies[1].mean(), rel=1e-6)


def trace_longest_busy_period(trace: Trace) -> int:
    """Return the largest number of messages between two idle moments of the flusher."""
    starts, ends = trace.flushes["start_ns"], trace.flushes["end_ns"]
    after_idle = np.concatenate(([True], starts[1:] > ends[:-1]))
    return int(np.bincount(np.cumsum(after_idle), weights=trace.flushes["messages"]).max())


def test_a_shorter_interval_never_raises_what_is_at_risk() -> None:
    means = []
    for interval_ms in (10, 20, 50, 100, 200, 500, 1000):
        policy = FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval_ms)
        case = scenario(flush=policy, device=PRESETS["vm-ext4"], workload=20_000.0, messages=200_000)
        means.append(summarise_at_risk(run(case, 9)).messages_mean)
    assert means == sorted(means)


def test_laws_are_offered_only_where_they_are_exact() -> None:
    ideal = PRESETS["exponential-1ms"]
    offered = put_law(scenario(device=ideal))
    assert offered is not None
    assert offered.name == "group commit"
    assert put_law(scenario(device=ideal, file_bytes=1 << 19)) is None, "it rolls"
    assert put_law(scenario(device=PRESETS["vm-ext4"])) is None, "a sync costs more for more bytes"
    assert put_law(scenario(device=ideal, workload=ClosedLoop(3, Sizes.of(10)))) is None
    slow = DeviceTimes(name="slow", sync=Constant(0), put_ns=MS)
    assert put_law(scenario(flush=ASYNC, device=slow, workload=999.0)) is not None
    assert put_law(scenario(flush=ASYNC, device=slow, workload=1000.0)) is None, "the queue grows forever"
    assert put_law(scenario(flush=SYNC, device=slow, workload=10.0)) is None
    with pytest.raises(ValueError, match="grows forever"):
        mg1_mean_wait_ns(rate_per_ns=1.0, service=Constant(1))
