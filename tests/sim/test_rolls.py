"""Test the value of files made ahead by exact accounting."""

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, ON_DEMAND, ONE_AHEAD, SYNC, US, scenario
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import PRESETS, Device, DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.results.tables import summarise_flushes, summarise_roll_stalls
from tornpage.sim.run import run
from tornpage.sim.streams import stream

FILE_BYTES = 64 * 1024
RECORDS_PER_FILE = 63
"""Records of 1 KiB each: the 64th would leave no room for the blank."""


def device(create_ns: int) -> DeviceTimes:
    return DeviceTimes(name="files", sync=Constant(100 * US), put_ns=1_000, create_ns=create_ns)


@pytest.mark.parametrize("flush", [SYNC, ASYNC], ids=["sync", "async"])
def test_on_demand_every_roll_waits_for_its_whole_allocation(flush: FlushPolicy) -> None:
    case = scenario(flush=flush, allocation=ON_DEMAND, device=device(7 * MS), file_bytes=FILE_BYTES)
    stalls = summarise_roll_stalls(run(case, 1))
    assert stalls.rolls == stalls.stalls == (1_000 - 1) // RECORDS_PER_FILE
    assert stalls.mean_us == stalls.p99_us == stalls.max_us == 7_000
    assert stalls.total_us == 7_000 * stalls.rolls


@pytest.mark.parametrize("flush", [SYNC, ASYNC], ids=["sync", "async"])
def test_one_ahead_never_waits_when_filling_a_file_takes_longer(flush: FlushPolicy) -> None:
    case = scenario(flush=flush, allocation=ONE_AHEAD, device=device(1 * MS), file_bytes=FILE_BYTES)
    trace = run(case, 1)
    fastest_fill_ns = np.diff(trace.rolls["asked_ns"]).min()
    assert fastest_fill_ns > 1 * MS, "the case is what it claims to be"
    stalls = summarise_roll_stalls(trace)
    assert (stalls.rolls, stalls.stalls, stalls.max_us) == (15, 0, 0.0)


def test_one_ahead_waits_for_what_filling_the_file_left_of_the_allocation() -> None:
    """Check 15 of the anchors, roll by roll: max(0, allocation - time since the last turn).

    The time counts from the turn to the file before.
    """
    create_ns = 12 * MS
    trace = run(scenario(flush=ASYNC, allocation=ONE_AHEAD, device=device(create_ns), file_bytes=FILE_BYTES), 1)
    asked, ready = trace.rolls["asked_ns"], trace.rolls["ready_ns"]
    requested = np.concatenate(([0], asked[:-1]))
    free = np.concatenate(([0], ready[:-1]))  # the allocator is done with the file before when that file was taken
    expected = np.maximum(0, np.maximum(requested, np.minimum(free, requested + create_ns)) + create_ns - asked)
    waits = ready - asked
    assert (waits <= expected).all()
    assert (waits >= np.maximum(0, create_ns - (asked - requested))).all()
    assert 0 < np.count_nonzero(waits) < len(waits), "some rolls wait and some do not"


def test_more_files_ahead_never_wait_longer() -> None:
    total = []
    for ahead in range(5):
        case = scenario(
            flush=ASYNC,
            allocation=AllocationPolicy(ahead),
            device=device(11 * MS),
            file_bytes=FILE_BYTES,
            messages=3_000,
        )
        total.append(summarise_roll_stalls(run(case, 1)).total_us)
    assert total == sorted(total, reverse=True)
    assert total[0] > total[1] > total[2]


def test_a_stall_holds_up_those_behind_it() -> None:
    trace = run(scenario(flush=ASYNC, allocation=ON_DEMAND, device=device(5 * MS), file_bytes=FILE_BYTES), 1)
    for row, asked_ns, ready_ns in trace.rolls[["row", "asked_ns", "ready_ns"]].tolist():
        assert ready_ns - asked_ns == 5 * MS
        behind = (trace.arrival_ns > asked_ns) & (trace.arrival_ns < ready_ns)
        assert behind.sum() > 10
        assert (trace.start_ns[behind] > ready_ns).all()
        assert trace.written_ns[row] == ready_ns + 1_000


@pytest.mark.parametrize("flush_type", list(FlushDiskType))
def test_warming_moves_the_cost_from_puts_to_the_allocator(flush_type: FlushDiskType) -> None:
    times = replace(PRESETS["vm-ext4"], sync=Constant(75 * US))
    flush = FlushPolicy(flush_type, 50)
    cold = run(
        scenario(flush=flush, allocation=AllocationPolicy(1), device=times, file_bytes=1 << 20, messages=5_000), 1
    )
    warm_policy = AllocationPolicy(1, warm_up=WarmUp.TOUCH_AND_FORCE, flush_least_pages_when_warm_mapped_file=100)
    warm = run(scenario(flush=flush, allocation=warm_policy, device=times, file_bytes=1 << 20, messages=5_000), 1)
    assert ((cold.written_ns - cold.start_ns) >= (warm.written_ns - warm.start_ns)).all()
    assert (warm.written_ns - warm.start_ns).max() == times.copy_ns(1024)

    touch_ns = 256 * times.touch_page_ns + 600 * US
    took = warm.allocations["ready_ns"] - warm.allocations["start_ns"]
    if flush_type is FlushDiskType.SYNC_FLUSH:
        each = times.sync_ns_per_kib + times.convert_ns_per_kib
        syncs = [75 * US + times.convert_ns + pages * 4 * each for pages in (100, 100, 56)]
        assert (took == times.allocation_ns(1 << 20) + touch_ns + sum(syncs)).all()
        assert summarise_flushes(warm).mean_us < summarise_flushes(cold).mean_us - 50, "nothing is left to convert"
    else:
        assert (took == times.allocation_ns(1 << 20) + touch_ns).all()
        first = np.unique(warm.flushes["file_index"], return_index=True)[1]
        assert (warm.flushes["device_bytes"][first] == 1 << 20).all(), "the first flush of a file writes all it touched"
        assert np.delete(warm.flushes["device_bytes"], first).max() < 1 << 20


def test_a_sync_costs_by_its_bytes_and_more_on_reserved_blocks() -> None:
    times = DeviceTimes(name="x", sync=Constant(10), sync_ns_per_kib=3, convert_ns=100, convert_ns_per_kib=7)
    drawn = Device(times, stream(0, "x"))
    assert drawn.sync_ns(4096, gap_ns=5, reserved_only=False) == 10 + 4 * 3
    assert drawn.sync_ns(4096, gap_ns=5, reserved_only=True) == 110 + 4 * 10
    assert DeviceTimes(name="x", sync=Constant(1), create_ns=5, reserve_ns_per_gib=1024).allocation_ns(1 << 20) == 6


def test_presets_are_named_for_themselves_and_lie_near_their_sources() -> None:
    assert all(name == times.name for name, times in PRESETS.items())
    here = PRESETS["vm-ext4"]
    one_page_us = (here.sync.quantile(np.array([0.5, 0.99])) + 4 * here.sync_ns_per_kib) / US
    assert one_page_us == pytest.approx([75, 111], abs=1)
    one_mib_us = (here.sync.mean_ns + here.convert_ns + 1024 * (here.sync_ns_per_kib + here.convert_ns_per_kib)) / US
    assert 530 < one_mib_us < 630, "fallocated, mmap and msync of 1 MiB: 581 to 627 us measured"
    touch_ns = Device(here, stream(0, "x")).warm_up_ns(256 << 20) / (65_536)
    assert touch_ns == pytest.approx(643, abs=1), "first touch of 256 MiB, fallocated, quiet: 643 ns per page"
    assert 900 * US < here.allocation_ns(1 << 30) - here.allocation_ns(0) < 1000 * US


def test_impossible_times_are_refused() -> None:
    with pytest.raises(ValueError, match="put_ns is -1"):
        DeviceTimes(name="x", sync=Constant(1), put_ns=-1)
