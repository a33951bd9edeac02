"""Test that the fast engine gives the trace of the reference engine.

This covers a grid, drawn scenarios, and many blocks of draws.
"""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.drawn import scenarios
from tests.sim.support import ASYNC, MS, SYNC, open_load, scenario
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import PRESETS
from tornpage.sim.distributions import Constant, Distribution, Exponential
from tornpage.sim.fast import run_fast
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Replica, Scenario
from tornpage.sim.workload import ClosedLoop, OnOffBursts, OpenPoisson, Sizes, Workload

SIZES = Sizes(100, 3_000)
FLUSHES = {
    "sync": SYNC,
    "timed": FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20, 4, 100),
    "woken": FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20, 4, 100, False),
}
LOADS: dict[str, Workload] = {
    "open": OpenPoisson(20_000.0, SIZES),
    "bursts": OnOffBursts(60_000.0, 3 * MS, 9 * MS, SIZES, 500.0),
    "closed": ClosedLoop(7, SIZES, Exponential(300_000.0)),
    "in step": ClosedLoop(16, SIZES, Constant(200_000)),
}
ALLOCATIONS = [AllocationPolicy(ahead, warm_up) for ahead, warm_up in product((0, 1, 3), WarmUp)]
DEVICES: dict[str, Distribution | str] = {"disk": "vm-ext4", "nothing but constant syncs": Constant(MS)}


def assert_same(once: Trace, again: Trace) -> None:
    for name in ("arrival_ns", "start_ns", "written_ns", "durable_ns", "put_ns", "offset", "size", "producer"):
        assert getattr(once, name).tolist() == getattr(again, name).tolist(), name
    for name in ("flushes", "rolls", "allocations"):
        assert getattr(once, name).tolist() == getattr(again, name).tolist(), name
    assert once.digest() == again.digest()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("flush", FLUSHES)
def test_traces_are_equal_over_a_grid(flush: str, load: str, device: str) -> None:
    asked = DEVICES[device]
    times = PRESETS[asked] if isinstance(asked, str) else asked
    for allocation in ALLOCATIONS:
        case = scenario(
            flush=FLUSHES[flush],
            allocation=allocation,
            device=times,
            workload=LOADS[load],
            file_bytes=50_000,
            messages=400,
        )
        assert_same(run(case, 5), run_fast(case, 5))
    whole = scenario(flush=FLUSHES[flush], device=times, workload=LOADS[load], messages=None, duration_ns=30 * MS)
    assert_same(run(whole, 5), run_fast(whole, 5))


@pytest.mark.parametrize("flush", FLUSHES)
def test_answers_of_a_replica_are_equal(flush: str) -> None:
    case = replace(scenario(flush=FLUSHES[flush], messages=2_000), replica=Replica(Exponential(500_000.0)))
    assert_same(run(case, 5), run_fast(case, 5))


DRAWN = given(scenarios(), st.integers(0, 1 << 40), st.one_of(st.none(), st.integers(1, 200 * MS)))


@settings(max_examples=60, deadline=None)
@DRAWN
def test_traces_are_equal_over_drawn_scenarios(case: Scenario, seed: int, duration_ns: int | None) -> None:
    check_drawn(case, seed, duration_ns)


@pytest.mark.deep
@settings(max_examples=3_000, deadline=None)
@DRAWN
def test_traces_are_equal_over_many_drawn_scenarios(case: Scenario, seed: int, duration_ns: int | None) -> None:
    check_drawn(case, seed, duration_ns)


def check_drawn(case: Scenario, seed: int, duration_ns: int | None) -> None:
    cut = replace(case, duration_ns=duration_ns)
    assert_same(run(cut, seed), run_fast(cut, seed))


@pytest.mark.parametrize("flush", FLUSHES)
def test_traces_are_equal_beyond_every_block(flush: str) -> None:
    """More rows, syncs, stalls, files and decisions than the engine prepares at once."""
    stalls = replace(PRESETS["vm-ext4"], read_ahead_bytes=4096, read_ahead_stall=Exponential(5_000.0))
    messages = 70_000
    open_ = scenario(flush=FLUSHES[flush], device=stalls, workload=9_000.0, file_bytes=1 << 19, messages=messages)
    assert_same(run(open_, 2), run_fast(open_, 2))
    loop = ClosedLoop(300, SIZES, Exponential(2e6))
    seconds = scenario(flush=FLUSHES[flush], workload=loop, messages=None, duration_ns=60 * MS)
    found = run_fast(seconds, 2)
    assert found.messages > 4_096
    assert_same(run(seconds, 2), found)
    few = ClosedLoop(2, Sizes.of(100), Constant(1_000))
    long = scenario(flush=FLUSHES["timed"], workload=few, messages=5_000)
    assert_same(run(long, 2), run_fast(long, 2))


def test_no_message_is_a_trace_too() -> None:
    for flush in FLUSHES.values():
        for load in LOADS.values():
            case = scenario(flush=flush, workload=load, messages=None, duration_ns=1)
            assert_same(run(case, 8), run_fast(case, 8))


def test_the_comparison_tells_a_nanosecond() -> None:
    case = scenario(flush=ASYNC, workload=open_load(5_000.0), messages=50)
    found = run_fast(case, 1)
    found.durable_ns[-1] += 1
    with pytest.raises(AssertionError, match="durable_ns"):
        assert_same(run(case, 1), found)
