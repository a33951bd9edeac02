"""Test the anatomy of stalls: its parts are complete, and each equals its formula."""

from dataclasses import replace

import pytest

from tests.sim.support import ASYNC, MS, ON_DEMAND, ONE_AHEAD, SYNC, US, scenario
from tornpage.impl.config.policy import AllocationPolicy, FlushPolicy, WarmUp
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.anatomy import REPROTECT_GRAIN_BYTES, anatomy, held_up_ns, reprotect_faults
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool

VM = PRESETS["vm-ext4"]


@pytest.mark.parametrize("allocation", [ON_DEMAND, ONE_AHEAD, AllocationPolicy(0, WarmUp.TOUCH)])
@pytest.mark.parametrize("flush", [SYNC, ASYNC])
@pytest.mark.parametrize("pool", [None, Pool(3)])
def test_the_parts_add_up_to_all_the_time_of_puts(
    allocation: AllocationPolicy, flush: FlushPolicy, pool: Pool | None
) -> None:
    if pool is not None and flush is SYNC:
        return
    case = scenario(
        flush=flush, allocation=allocation, device=VM, workload=60_000.0, file_bytes=1 << 20, messages=6_000
    )
    trace = run(replace(case, pool=pool), 3)
    found = anatomy(trace)
    parts = found.put_ns + found.queue_ns + found.touch_ns + found.read_ahead_ns + found.allocation_ns
    assert parts == found.total_ns == int((trace.written_ns - trace.arrival_ns).sum())
    assert min(found.queue_ns, found.touch_ns, found.read_ahead_ns, found.allocation_ns) >= 0
    assert (found.read_ahead_ns > 0) is (pool is None and allocation.warm_up is WarmUp.NONE)
    assert found.flush_lock_ns == 0


def test_read_ahead_stalls_are_the_bytes_over_the_window() -> None:
    """Check 13 of the anchors, at a load at which no put waits for another."""
    device = DeviceTimes(
        name="windows", sync=Constant(0), read_ahead_bytes=8 << 10, read_ahead_stall=Constant(600 * US)
    )
    trace = run(scenario(flush=ASYNC, device=device, workload=1.0, messages=800), 1)
    assert anatomy(trace).read_ahead_ns == 800 * 1024 // (8 << 10) * 600 * US


def test_every_grain_of_a_forced_file_faults_once_more_and_every_tail_of_another() -> None:
    forced = AllocationPolicy(1, WarmUp.TOUCH_AND_FORCE)
    trace = run(scenario(flush=SYNC, allocation=forced, device=Constant(MS), messages=1_000), 1)
    assert reprotect_faults(trace) == -(-1_000 * 1024 // REPROTECT_GRAIN_BYTES)
    plain = run(scenario(flush=SYNC, device=Constant(MS), messages=1_000), 1)
    assert reprotect_faults(plain) == len(plain.flushes) - 1  # nothing is stored after the last flush
    assert reprotect_faults(run(replace(plain.scenario, flush=ASYNC, pool=Pool()), 1)) == 0


def test_a_touched_file_faults_from_its_first_sync_on() -> None:
    touched = AllocationPolicy(1, WarmUp.TOUCH)
    flush = replace(ASYNC, flush_interval_commit_log=100)
    trace = run(scenario(flush=flush, allocation=touched, device=Constant(0), messages=5_000, workload=5_000.0), 1)
    behind = 5_000 * 1024 - int(trace.flushes["to_offset"][0])
    assert reprotect_faults(trace) == -(-behind // REPROTECT_GRAIN_BYTES) < 5_000 * 1024 // REPROTECT_GRAIN_BYTES


def test_a_flush_that_holds_the_lock_keeps_who_comes_waiting_for_what_is_left_of_it() -> None:
    """Free puts arrive at random: a sync of h keeps rate * h of them waiting, h/2 each."""
    flush = replace(ASYNC, flush_interval_commit_log=90)
    trace = run(scenario(flush=flush, device=Constant(10 * MS), workload=20_000.0, messages=200_000), 1)
    assert held_up_ns(trace, 0.0) == 0
    for share in (0.5, 1.0):
        held = share * 10 * MS
        expected = len(trace.flushes) * 20_000 / 1e9 * held**2 / 2
        assert held_up_ns(trace, share) == pytest.approx(expected, rel=0.05)
