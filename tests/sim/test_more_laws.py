"""Compare the fast engine with further formulas of docs/disks/presets.md.

Its traces are those of the reference engine (tests/sim/test_fast.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, SYNC, US, scenario
from tornpage.impl.config.policy import PAGE_BYTES, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant, Distribution, Exponential, LogNormal
from tornpage.sim.fast import run_fast
from tornpage.sim.results.analytic import GroupCommitLaw, cdf_distance, mg1_mean_wait_ns, replications
from tornpage.sim.results.trace import Trace
from tornpage.sim.workload import OnOffBursts, Sizes

LAWS: dict[str, Distribution] = {
    "constant": Constant(MS),
    "exponential": Exponential(float(MS)),
    "lognormal": LogNormal.from_moments(mean_ns=MS, deviation_ns=MS / 2),
}


@pytest.mark.parametrize("rate", [100.0, 300.0, 1_000.0])
@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_group_commit_distribution_is_within_two_thousandths_at_a_million_messages(name: str, rate: float) -> None:
    trace = run_fast(scenario(device=LAWS[name], workload=rate, messages=1_000_000), 1)
    assert cdf_distance(trace.put_ns - trace.arrival_ns, GroupCommitLaw(rate / 1e9, LAWS[name]), points=128) < 2e-3


@pytest.mark.parametrize("rate", [500.0, 2_000.0])
def test_two_thousandths_tell_a_rate_that_is_two_percent_off(rate: float) -> None:
    trace = run_fast(scenario(device=LAWS["constant"], workload=rate, messages=1_000_000), 1)
    assert cdf_distance(trace.put_ns - trace.arrival_ns, GroupCommitLaw(1.02 * rate / 1e9, LAWS["constant"])) > 2e-3


@pytest.mark.parametrize("name", sorted(LAWS))
def test_group_commit_meets_its_limits(name: str) -> None:
    """Check 5: a single put takes one sync.

    Under load it takes one sync and the rest of another.
    """
    sync = LAWS[name]
    alone = run_fast(scenario(device=sync, workload=0.1, messages=2_000), 1)
    syncs = alone.flushes["end_ns"] - alone.flushes["start_ns"]
    assert (alone.put_ns - alone.arrival_ns == np.repeat(syncs, alone.flushes["messages"])).mean() > 0.999
    crowd = run_fast(scenario(device=sync, workload=2e6, messages=4_000_000), 1)
    variation = sync.second_moment_ns2 / sync.mean_ns**2 - 1
    expected = sync.mean_ns * (1 + (1 + variation) / 2)
    assert float((crowd.put_ns - crowd.arrival_ns).mean()) == pytest.approx(expected, rel=0.05)


def every_put_draws(service: Distribution) -> DeviceTimes:
    """Return a device on which each put of 4 KiB waits once for read-ahead.

    Nothing else takes time.
    """
    return DeviceTimes(name="drawn", sync=Constant(0), read_ahead_bytes=4096, read_ahead_stall=service)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_time_in_the_put_lock_is_that_of_mm1(load: float) -> None:
    """Check 1: quantile p of M/M/1 is -ln(1-p)/(mu-lambda)."""
    mean_ns = 100.0 * US
    case = scenario(
        flush=ASYNC, device=every_put_draws(Exponential(mean_ns)), workload=0.0 + load * 1e9 / mean_ns, messages=1
    )
    case = replace(case, workload=replace(case.workload, sizes=Sizes.of(4096)), messages=200_000)
    runs = [run_fast(case, seed) for seed in range(8)]
    for share in (0.5, 0.9, 0.99):
        found = replications([float(np.quantile(trace.put_ns - trace.arrival_ns, share)) for trace in runs])
        expected = -np.log(1 - share) * mean_ns / (1 - load)
        assert found.error < 0.02 * expected
        assert abs(found.errors_from(expected)) < 4


@pytest.mark.parametrize("name", sorted(LAWS))
def test_wait_for_the_put_lock_is_that_of_mg1(name: str) -> None:
    """Check 3."""
    case = scenario(flush=ASYNC, device=every_put_draws(LAWS[name]), workload=600.0, messages=1)
    case = replace(case, workload=replace(case.workload, sizes=Sizes.of(4096)), messages=200_000)
    found = replications(
        [float((trace.start_ns - trace.arrival_ns).mean()) for trace in (run_fast(case, seed) for seed in range(8))]
    )
    expected = mg1_mean_wait_ns(rate_per_ns=600 / 1e9, service=LAWS[name])
    assert found.error < 0.02 * expected
    assert abs(found.errors_from(expected)) < 4


@pytest.mark.parametrize("flush", [SYNC, ASYNC, replace(ASYNC, flush_commit_log_timed=False)])
def test_littles_law_and_the_utilisation_law_are_identities(flush: FlushPolicy) -> None:
    """Check 9 on one path: waiting puts over time are the sum of their waits.

    Syncs keep the disk busy one by one.
    """
    trace = run_fast(scenario(flush=flush, device=PRESETS["vm-ext4"], messages=20_000), 1)
    moments = np.sort(np.concatenate([trace.arrival_ns, trace.put_ns]))
    inside = trace.arrival_ns.searchsorted(moments, "right") - trace.put_ns.searchsorted(moments, "right")
    area = int((inside[:-1] * np.diff(moments)).sum())
    assert area == int((trace.put_ns - trace.arrival_ns).sum())
    took = trace.flushes["end_ns"] - trace.flushes["start_ns"]
    assert busy_ns(trace) == int(took.sum()) == pytest.approx(len(took) * took.mean(), rel=1e-9)


def busy_ns(trace: Trace) -> int:
    """Return the time with at least one running sync."""
    moments = np.sort(np.concatenate([trace.flushes["start_ns"], trace.flushes["end_ns"]]))
    running = trace.flushes["start_ns"].searchsorted(moments, "right") - trace.flushes["end_ns"].searchsorted(
        moments, "right"
    )
    return int((np.diff(moments) * (running[:-1] > 0)).sum())


@pytest.mark.parametrize(("share", "drifts"), [(0.5, False), (1.5, True)])
def test_puts_beyond_the_bandwidth_of_the_device_drift(share: float, drifts: bool) -> None:
    """Check 12: 100 MiB/s against 50 and 150 MiB/s of puts."""
    device = DeviceTimes(name="100 MiB/s", sync=Constant(0), sync_ns_per_kib=10**9 // (100 << 10))
    trace = run_fast(
        scenario(
            flush=replace(ASYNC, flush_interval_commit_log=10),
            device=device,
            workload=share * 102_400,
            messages=400_000,
        ),
        1,
    )
    exposed = trace.durable_ns - trace.written_ns
    early, late = exposed[: trace.messages // 4].mean(), exposed[-trace.messages // 4 :].mean()
    assert bool(late > 3 * early) is drifts


@pytest.mark.parametrize(("pages_per_interval", "deferred"), [(3, True), (6, False)])
def test_the_page_rule_defers_below_its_pages_per_interval(pages_per_interval: int, deferred: bool) -> None:
    """Check 8: with 4 pages and 500 ms, 32 KiB/s is the border between 0.5 s and more."""
    rate = pages_per_interval * PAGE_BYTES / 0.5 / 1024
    trace = run_fast(scenario(flush=ASYNC, device=Constant(MS), workload=rate, messages=5_000), 1)
    median_ns = float(np.median(trace.durable_ns - trace.written_ns))
    assert (median_ns > 350 * MS) is deferred
    assert (trace.durable_ns - trace.written_ns).max() <= 11_000 * MS + 2 * MS


@pytest.mark.parametrize("pages", [1, 4, 16, 64])
def test_a_woken_flush_is_one_by_bytes(pages: int) -> None:
    """At risk are at most the pages of the rule, one begun page, and arrivals meanwhile.

    The latter arrive while the flusher wakes and syncs.
    """
    flush = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 60_000, pages, 600_000, False)
    trace = run_fast(scenario(flush=flush, device=Constant(MS), workload=20_000.0, messages=100_000), 1)
    before = np.concatenate(([0], np.cumsum(trace.size)))
    at_risk = before[1:] - before[trace.durable_ns.searchsorted(trace.written_ns, "right")]
    in_a_sync = int(
        trace.written_ns.searchsorted(trace.written_ns + MS, "right").__sub__(np.arange(trace.messages)).max()
    )
    assert at_risk.max() <= (pages + 1) * PAGE_BYTES + 2 * in_a_sync * 1024
    assert at_risk.max() >= pages * PAGE_BYTES
    inner = trace.flushes[1:-1]
    assert (inner["to_offset"] // PAGE_BYTES - inner["from_offset"] // PAGE_BYTES >= pages).all()


def test_bursts_have_their_rates() -> None:
    load = OnOffBursts(50_000.0, 20 * MS, 80 * MS, Sizes.of(100), 1_000.0)
    trace = run_fast(scenario(workload=load, messages=None, duration_ns=20_000 * MS), 1)
    within = trace.arrival_ns % (100 * MS)
    in_burst = int((within < 20 * MS).sum())
    assert in_burst == pytest.approx(200 * 1_000, rel=0.01)
    assert trace.messages - in_burst == pytest.approx(200 * 80, rel=0.05)
    assert load.rate_per_s == pytest.approx(10_800)
    silent = run_fast(scenario(workload=replace(load, rest_rate_per_s=0.0), messages=50_000), 1)
    assert (silent.arrival_ns % (100 * MS) <= 20 * MS).all()
    assert (np.diff(silent.arrival_ns) >= 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OnOffBursts(0.0, 1, 1, Sizes.of(1)),
        lambda: OnOffBursts(1.0, 0, 1, Sizes.of(1)),
        lambda: OnOffBursts(1.0, 1, 0, Sizes.of(1)),
        lambda: OnOffBursts(1.0, 1, 1, Sizes.of(1), -1.0),
        lambda: OnOffBursts(float("inf"), 1, 1, Sizes.of(1)),
    ],
)
def test_impossible_bursts_are_refused(wrong: "type[object]") -> None:
    with pytest.raises(ValueError, match="impossible"):
        wrong()
