"""Test the kernel's own writeback and its effect on the store."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.drawn import scenarios
from tests.sim.support import ASYNC, MS, SYNC, scenario
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.tables import summarise_flushes
from tornpage.sim.run import run
from tornpage.sim.scenario import SHIPPED_SCRIPT, ImpossibleScenario, Pool, Scenario, Writeback

SELDOM = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20_000)
DISK = DeviceTimes(name="1 GB/s", sync=Constant(MS), sync_ns_per_kib=1_000)


def with_kernel(case: Scenario, *settings: int) -> Scenario:
    return replace(case, writeback=Writeback(*settings))


def test_a_kernel_that_never_wakes_changes_nothing() -> None:
    for flush in (SYNC, ASYNC):
        case = scenario(flush=flush, messages=2_000, file_bytes=100_000)
        assert run(replace(case, writeback=SHIPPED_SCRIPT), 1).digest() == run(case, 1).digest()


@settings(max_examples=30, deadline=None)
@given(scenarios(), st.integers(1, 50), st.integers(0, 50), st.integers(1, 40_000), st.integers(0, 1 << 40))
def test_write_back_changes_nothing_but_what_syncs_cost(
    case: Scenario, wake_ms: int, expire_ms: int, background_bytes: int, seed: int
) -> None:
    cold = replace(case, allocation=replace(case.allocation, warm_up=WarmUp.NONE))
    trace = run(with_kernel(cold, wake_ms, expire_ms, background_bytes), seed)
    back, flushes = trace.writebacks, trace.flushes
    assert (back["from_offset"] < back["to_offset"]).all()
    assert (back["from_offset"][1:] >= back["to_offset"][:-1]).all()
    assert (back["end_ns"][:-1] <= back["start_ns"][1:]).all()
    ends = trace.offset + trace.size
    for row in back:
        assert (trace.written_ns[ends <= row["to_offset"]] <= row["start_ns"]).all(), "written back before it was there"
    assert (flushes["from_offset"][1:] == flushes["to_offset"][:-1]).all()
    assert flushes["messages"].sum() == trace.messages == cold.messages
    assert (trace.written_ns <= trace.durable_ns).all()
    spans = flushes["to_offset"] - 1 - flushes["from_offset"]
    assert (flushes["device_bytes"] <= spans + 2 * 4096).all()


def test_pages_are_written_once_they_have_expired_and_been_looked_at() -> None:
    trace = run(with_kernel(scenario(flush=SELDOM, device=DISK, workload=200.0, messages=6_000), 500, 2_000), 1)
    back = trace.writebacks
    assert len(back) > 20
    assert (back["start_ns"] % (500 * MS) == 0).all()
    for row in back[5:]:
        own = (trace.offset >= row["from_offset"]) & (trace.offset < row["to_offset"])
        ages = row["start_ns"] - trace.written_ns[own]
        assert 2_000 * MS <= ages.min() <= ages.max() <= 2_500 * MS + 5 * MS


def test_what_the_kernel_wrote_costs_the_next_sync_nothing() -> None:
    case = scenario(flush=SELDOM, device=DISK, workload=2_000.0, messages=80_000)
    plain, helped = (summarise_flushes(run(each, 1)) for each in (case, with_kernel(case, 500, 1_000)))
    assert plain.kernel_bytes == 0 < helped.kernel_bytes
    assert helped.mean_us < plain.mean_us / 3
    assert helped.device_bytes == pytest.approx(plain.device_bytes, rel=0.01), "bytes move, none is saved"


def test_above_the_limit_the_kernel_writes_at_once() -> None:
    limit = 1 << 20
    case = scenario(flush=SELDOM, device=DISK, workload=20_000.0, messages=100_000)
    trace = run(with_kernel(case, 3_600_000, 30_000, limit), 1)
    sizes = trace.writebacks["to_offset"] - trace.writebacks["from_offset"]
    assert len(sizes) > 50
    assert (sizes > limit).all()
    assert np.median(sizes) < 1.1 * limit


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_settings_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="it has to be"):
        Writeback(*wrong)


def test_combinations_that_are_not_simulated_are_refused() -> None:
    for other in ({"pool": Pool()}, {"allocation": AllocationPolicy(1, WarmUp.TOUCH)}):
        with pytest.raises(ImpossibleScenario, match="without a pool and without warm-up"):
            replace(scenario(flush=ASYNC), writeback=Writeback(), **other)
