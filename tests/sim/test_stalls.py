"""Test stalls of a disk: they depend on time, and each meets one sync."""

from dataclasses import replace

import numpy as np
import pytest

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.stalls import NEVER, StallLaw, Stalls, StallSlice
from tornpage.sim.fast import can_run_fast
from tornpage.sim.results.analytic import put_law
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import OpenPoisson, Sizes

LAW = StallLaw.of(
    [
        StallSlice(500_000_000, (50_000_000, 56_000_000, 300_000_000), (5_000_000, 20_000_000, 5_000_000)),
        StallSlice(250_000_000, (10_000_000, 100_000_000, 240_000_000), (20_000_000, 5_000_000, 30_000_000)),
        StallSlice(250_000_000),
    ]
)
QUIET = Scenario(
    flush=FlushPolicy(FlushDiskType.SYNC_FLUSH),
    allocation=AllocationPolicy(files_ahead=0),
    device=PRESETS["constant-1ms"],
    workload=OpenPoisson(500.0, Sizes.of(1024)),
    duration_ns=4_000_000_000,
)


def stalls(law: StallLaw = LAW, seed: int = 3) -> Stalls:
    return Stalls(law, np.random.default_rng(seed))


def laid_out(seed: int = 3) -> list[tuple[int, int]]:
    """Return begin and length of the stalls of the first ten seconds."""
    drawn = stalls(seed=seed)
    drawn.returns_ns(10_000_000_000, 10_000_000_001)
    return list(zip(drawn._begins, drawn._lasts, strict=True))


def given(*found: tuple[int, int]) -> Stalls:
    """Return stalls with these begins and lengths."""
    drawn = stalls()
    drawn._begins, drawn._lasts = [begin for begin, _ in found], [lasts for _, lasts in found]
    drawn._laid_out_ns = 10**12
    return drawn


def test_a_disk_that_never_stalls_changes_nothing() -> None:
    with_none = run(replace(QUIET, stalls=NEVER), 5)
    assert with_none.digest() == run(QUIET, 5).digest()


def test_a_stall_is_the_duration_of_the_sync_that_it_meets() -> None:
    assert given((100, 50)).returns_ns(90, 110) == 140, "it begins while the sync runs"
    assert given((100, 50)).returns_ns(120, 130) == 170, "the sync starts within it"
    assert given((100, 5)).returns_ns(90, 110) == 110, "the sync is longer than it"


def test_a_stall_that_is_over_before_the_sync_or_begins_after_it_does_not_meet_it() -> None:
    assert given((100, 50)).returns_ns(150, 160) == 160
    assert given((100, 50)).returns_ns(80, 100) == 100


def test_two_stalls_close_to_each_other_meet_two_syncs() -> None:
    drawn = given((100, 50), (110, 60))
    assert drawn.returns_ns(90, 105) == 140
    assert drawn.returns_ns(140, 145) == 200
    assert drawn.returns_ns(205, 210) == 210


def test_moments_and_lengths_are_those_of_whole_slices() -> None:
    """Stalls that were measured close together stay close together."""
    begins = np.array([begin for begin, _ in laid_out()])
    together = np.count_nonzero(np.diff(begins) == 6_000_000)
    assert together > 5


def test_stalls_are_the_same_however_often_a_caller_asks() -> None:
    asked, drawn = stalls(), stalls()
    for start_ns in range(0, 1_000_000_000, 900_000):
        asked.returns_ns(start_ns, start_ns + 100_000)
    drawn.returns_ns(999_000_000, 1_000_000_000)
    shared = min(len(asked._begins), len(drawn._begins))
    assert asked._begins[:shared] == drawn._begins[:shared]
    assert shared >= 5


def test_a_busy_store_meets_as_many_stalls_in_a_second_as_a_quiet_one() -> None:
    busy = replace(QUIET, workload=OpenPoisson(5_000.0, Sizes.of(1024)))

    def per_s(scenario: Scenario) -> float:
        traces = [run(replace(scenario, stalls=LAW), seed) for seed in range(5)]
        met = sum(int((trace.flushes["end_ns"] - trace.flushes["start_ns"] > 1_000_000).sum()) for trace in traces)
        return met / sum(trace.load_ns for trace in traces) * 1e9

    quiet_per_s, busy_per_s = per_s(QUIET), per_s(busy)
    assert quiet_per_s == pytest.approx(busy_per_s, rel=0.15)
    assert busy_per_s == pytest.approx(LAW.per_s, rel=0.2)


def test_equal_seeds_give_equal_stalls_and_others_do_not() -> None:
    assert laid_out(3) == laid_out(3) != laid_out(4)
    assert run(replace(QUIET, stalls=LAW), 1).digest() == run(replace(QUIET, stalls=LAW), 1).digest()


def test_the_rate_of_a_law_is_that_of_its_slices() -> None:
    assert LAW.per_s == pytest.approx(6.0)
    assert NEVER.per_s == StallLaw.of([StallSlice(1_000)]).per_s == 0


@pytest.mark.parametrize(
    "wrong",
    [
        StallSlice(0),
        StallSlice(100, (50,), (-5,)),
        StallSlice(100, (101,), (5,)),
        StallSlice(100, (-1,), (5,)),
        StallSlice(100, (50, 20), (5, 5)),
        StallSlice(100, (50,), ()),
    ],
)
def test_impossible_stalls_are_refused(wrong: StallSlice) -> None:
    with pytest.raises(ValueError, match=r"slice 0 "):
        StallLaw.of([wrong])


def test_neither_formula_nor_fast_engine_claims_to_know_stalls() -> None:
    assert can_run_fast(QUIET)
    assert put_law(replace(QUIET, messages=100, duration_ns=None)) is not None
    stalled = replace(QUIET, stalls=LAW, messages=100, duration_ns=None)
    assert not can_run_fast(stalled)
    assert put_law(stalled) is None
