"""Test measured puts: drawn in turn from their bin, by one thread.

The thread is late only after it slept.
"""

from dataclasses import replace

import numpy as np
import pytest

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.put_table import AFTER_NS, BEFORE_NS, GAP_BINS, LATELY_BINS, PutTable, Serving, lately_ns
from tornpage.sim.device.sync_table import TooFewSamples
from tornpage.sim.fast import can_run_fast
from tornpage.sim.results.analytic import put_law
from tornpage.sim.run import run
from tornpage.sim.scenario import ImpossibleScenario, Scenario
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes

COLD, WARM, QUEUED = (80_000, 90_000), (10_000, 30_000), (1_000, 20_000)


def table() -> PutTable:
    """Return puts that are slow after 2 ms, fast after 60 us, and fastest in a queue.

    The latest ones take 300 us.
    """
    kinds = ((2_000_000, *COLD), (60_000, *WARM), (0, *QUEUED))
    rows = [kind for kind in kinds for _ in range(12)]
    gap, late, took = np.array(rows, np.int64).T
    return PutTable.of(gap_ns=gap, lately_ns=np.full(len(gap), 300_000), late_ns=late, took_ns=took)


SCENARIO = Scenario(
    flush=FlushPolicy(FlushDiskType.ASYNC_FLUSH),
    allocation=AllocationPolicy(files_ahead=0),
    device=PRESETS["vm-ext4"],
    workload=OpenPoisson(3_000.0, Sizes.of(1024)),
    messages=500,
    puts=table(),
)


def test_a_put_is_drawn_from_the_bin_of_its_rest() -> None:
    puts = table()
    assert puts.draw(0, gap_ns=2_500_000, lately_ns=300_000) == COLD
    assert puts.draw(2**32 - 1, gap_ns=70_000, lately_ns=300_000) == WARM
    assert puts.draw(1 << 31, gap_ns=0, lately_ns=300_000) == QUEUED


def test_an_empty_bin_takes_the_nearest_one() -> None:
    puts = table()
    assert puts.draw(0, gap_ns=10_000_000, lately_ns=5_000_000) == COLD
    assert puts.draw(0, gap_ns=120_000, lately_ns=0) == WARM
    assert (puts.bins[:, 1] >= 12).all()
    assert len(puts.bins) == GAP_BINS * LATELY_BINS


def test_lateness_and_duration_stay_together() -> None:
    rng = np.random.default_rng(1)
    late = rng.integers(0, 50_000, 300)
    puts = PutTable.of(gap_ns=np.full(300, 60_000), lately_ns=np.full(300, 300_000), late_ns=late, took_ns=late + 7)
    for draw in rng.integers(0, 1 << 32, 50).tolist():
        drawn_late, drawn_took = puts.draw(draw, gap_ns=60_000, lately_ns=300_000)
        assert drawn_took == drawn_late + 7


def test_one_thread_serves_who_comes_while_it_works_next_and_is_late_only_when_it_slept() -> None:
    serving = Serving(table(), np.random.default_rng(2))
    begin_ns, took_ns = serving.next(2_000_000, 0)
    assert (begin_ns, took_ns) == (2_000_000 + COLD[0], COLD[1])
    free_ns = begin_ns + took_ns
    assert serving.next(2_010_000, free_ns) == (free_ns + QUEUED[0], QUEUED[1])


def test_in_a_run_no_put_begins_before_it_arrives_or_while_another_runs() -> None:
    trace = run(SCENARIO, 4)
    assert (trace.start_ns > trace.arrival_ns).all()
    assert (trace.start_ns[1:] >= trace.written_ns[:-1]).all()
    assert set((trace.written_ns - trace.start_ns).tolist()) <= {COLD[1], WARM[1], QUEUED[1]}


def test_what_the_device_says_of_puts_does_not_count() -> None:
    dear = replace(SCENARIO.device, put_ns=10_000_000, touch_page_ns=1_000_000)
    assert np.array_equal(run(SCENARIO, 4).written_ns, run(replace(SCENARIO, device=dear), 4).written_ns)


def test_the_mean_gap_lately_follows_the_gaps() -> None:
    arrivals = np.cumsum(np.concatenate((np.full(100, 1_000_000), np.full(100, 200_000))))
    means = lately_ns(arrivals)
    assert means[99] == pytest.approx(1_000_000, rel=0.01)
    assert 200_000 < means[108] < 600_000
    assert means[-1] == pytest.approx(200_000, rel=0.01)
    assert len(lately_ns(arrivals[:0])) == 0


def test_too_few_puts_are_refused() -> None:
    few = np.full(3, 60_000)
    with pytest.raises(TooFewSamples, match="3 puts are too few"):
        PutTable.of(gap_ns=few, lately_ns=few, late_ns=few, took_ns=few)


def test_closed_producers_and_measured_puts_do_not_go_together() -> None:
    with pytest.raises(ImpossibleScenario, match="one thread"):
        replace(SCENARIO, workload=ClosedLoop(4, Sizes.of(1024)))


def test_tables_are_equal_by_what_they_hold_and_neither_formula_nor_fast_engine_knows_them() -> None:
    assert table() == table()
    assert hash(table()) == hash(table())
    assert not can_run_fast(SCENARIO)
    assert put_law(SCENARIO) is None


def test_puts_beside_a_flush_have_a_table_of_their_own() -> None:
    slow = PutTable.of(
        gap_ns=np.full(20, 60_000),
        lately_ns=np.full(20, 300_000),
        late_ns=np.full(20, 900_000),
        took_ns=np.full(20, 70_000),
    )
    puts = replace(table(), beside=slow)
    assert puts.at(1_000_000) is puts, "without the times of flushes there are none"
    begins, ends = np.array([1_000_000, 5_000_000]), np.array([1_500_000, 5_600_000])
    timed = puts.with_flushes(begins, ends)
    beside = (begins[0] - BEFORE_NS, begins[0], ends[0], ends[0] + AFTER_NS - 1, 5_300_000)
    assert all(timed.at(int(moment)) is slow for moment in beside)
    apart = (0, begins[0] - BEFORE_NS - 1, ends[0] + AFTER_NS, 9_000_000)
    assert all(timed.at(int(moment)) is timed for moment in apart)


def test_a_put_beside_a_flush_is_served_from_the_other_table() -> None:
    slow = PutTable.of(
        gap_ns=np.full(20, 60_000),
        lately_ns=np.full(20, 300_000),
        late_ns=np.full(20, 900_000),
        took_ns=np.full(20, 70_000),
    )
    timed = replace(table(), beside=slow).with_flushes(np.array([10_000_000]), np.array([11_000_000]))
    serving = Serving(timed, np.random.default_rng(1))
    quiet_ns, _ = serving.next(5_000_000, 0)
    busy_ns, took_ns = serving.next(10_500_000, 6_000_000)
    assert quiet_ns - 5_000_000 < 900_000
    assert (busy_ns - 10_500_000, took_ns) == (900_000, 70_000)
