"""Test stalls of a disk, which depend on time: no sync returns during one.

No load makes them rarer.
"""

from dataclasses import replace

import numpy as np
import pytest

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.stalls import StallLaw, Stalls
from tornpage.sim.fast import can_run_fast
from tornpage.sim.results.analytic import put_law
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import OpenPoisson, Sizes

LAW = StallLaw(20.0, (5_000_000, 20_000_000))
QUIET = Scenario(
    flush=FlushPolicy(FlushDiskType.SYNC_FLUSH),
    allocation=AllocationPolicy(files_ahead=0),
    device=PRESETS["constant-1ms"],
    workload=OpenPoisson(500.0, Sizes.of(1024)),
    duration_ns=4_000_000_000,
)


def stalls(law: StallLaw = LAW, seed: int = 3) -> Stalls:
    return Stalls(law, np.random.default_rng(seed))


def windows(seed: int = 3) -> list[tuple[int, int]]:
    """Return begin and end of the stalls of the first ten seconds."""
    drawn = stalls(seed=seed)
    drawn.returns_ns(10_000_000_000, 10_000_000_001)
    return list(zip(drawn._begins, drawn._ends, strict=True))


def test_a_disk_that_never_stalls_changes_nothing() -> None:
    with_none = run(replace(QUIET, stalls=StallLaw(0.0, ())), 5)
    assert with_none.digest() == run(QUIET, 5).digest()


def test_no_sync_returns_while_a_stall_lasts_and_none_waits_for_another_reason() -> None:
    drawn = stalls()
    for start_ns in range(0, 2_000_000_000, 7_300_000):
        end_ns = drawn.returns_ns(start_ns, start_ns + 1_000_000)
        met = [(begin, end) for begin, end in windows() if begin < end_ns and end > start_ns]
        assert not any(begin < end_ns < end for begin, end in windows())
        assert end_ns == max([start_ns + 1_000_000, *(end for _, end in met)])


def test_a_stall_that_begins_while_another_holds_a_sync_up_holds_it_up_too() -> None:
    drawn = stalls()
    drawn._begins, drawn._ends = [100, 180, 10**12], [200, 300, 2 * 10**12]
    assert drawn.returns_ns(50, 150) == 300
    assert drawn.returns_ns(250, 260) == 300
    assert drawn.returns_ns(301, 310) == 310
    assert drawn.returns_ns(20, 90) == 90


def test_stalls_are_the_same_however_often_somebody_asks() -> None:
    asked, drawn = stalls(), stalls()
    for start_ns in range(0, 1_000_000_000, 900_000):
        asked.returns_ns(start_ns, start_ns + 100_000)
    drawn.returns_ns(999_000_000, 1_000_000_000)
    shared = min(len(asked._begins), len(drawn._begins))
    assert asked._begins[:shared] == drawn._begins[:shared]
    assert shared > 10


def test_a_busy_store_meets_as_many_stalls_in_a_second_as_a_quiet_one() -> None:
    busy = replace(QUIET, workload=OpenPoisson(5_000.0, Sizes.of(1024)))

    def per_s(scenario: Scenario) -> float:
        traces = [run(replace(scenario, stalls=LAW), seed) for seed in range(5)]
        met = sum(int((trace.flushes["end_ns"] - trace.flushes["start_ns"] > 1_000_000).sum()) for trace in traces)
        return met / sum(trace.load_ns for trace in traces) * 1e9

    quiet_per_s, busy_per_s = per_s(QUIET), per_s(busy)
    assert quiet_per_s == pytest.approx(busy_per_s, rel=0.1)
    assert 10 < busy_per_s < LAW.per_s, "stalls that overlap are met as one"


def test_equal_seeds_give_equal_stalls_and_others_do_not() -> None:
    assert windows(3) == windows(3) != windows(4)
    assert run(replace(QUIET, stalls=LAW), 1).digest() == run(replace(QUIET, stalls=LAW), 1).digest()


def test_what_was_seen_becomes_a_law() -> None:
    law = StallLaw.of(np.array([30, 10, 20]), seconds=2.0)
    assert (law.per_s, law.lasts_ns) == (1.5, (10, 20, 30))
    assert StallLaw.of(np.zeros(0, np.int64), seconds=0.0).per_s == 0


@pytest.mark.parametrize(("per_s", "lasts_ns"), [(-1.0, (1,)), (1.0, ()), (1.0, (-5,))])
def test_impossible_stalls_are_refused(per_s: float, lasts_ns: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="impossible"):
        StallLaw(per_s, lasts_ns)


def test_neither_formula_nor_fast_engine_claims_to_know_stalls() -> None:
    assert can_run_fast(QUIET)
    assert put_law(replace(QUIET, messages=100, duration_ns=None)) is not None
    stalled = replace(QUIET, stalls=LAW, messages=100, duration_ns=None)
    assert not can_run_fast(stalled)
    assert put_law(stalled) is None
