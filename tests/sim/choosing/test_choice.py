"""Test candidates, assessments and ranks of `sim choose`, counting row by row."""

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tests.sim.support import MS, SYNC, scenario
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.broker_config import parse_properties, policies_of, settings_of
from tornpage.sim.choosing.assessment import CRASHES, Assessed, assess, merged
from tornpage.sim.choosing.candidates import KINDS, candidates, kind_of, with_replica
from tornpage.sim.choosing.choice import Budget, choose, frontier
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant
from tornpage.sim.experiments.policies import StorePolicy
from tornpage.sim.pair import LINKS
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool
from tornpage.sim.sweep import Point, simulate
from tornpage.sim.workload import OpenPoisson, Sizes

TIMED = FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20, 0)
POLICY = StorePolicy("one of a test", TIMED)
POOL = Pool(2, CommitPolicy(10, 4, 10))
SLOW = DeviceTimes(name="1 ms a sync", sync=Constant(MS), put_ns=900)


def made(name: str, p99_us: float, loss_ms: float, **other: Any) -> Assessed:
    blank = Assessed(
        policy=replace(POLICY, name=name),
        seeds=1,
        messages=100,
        put_p50_us=1.0,
        put_p99_us=p99_us,
        put_p99_best_us=p99_us,
        loss_ms=loss_ms,
        loss_messages=int(loss_ms),
        loss_ms_max=loss_ms,
        loss_messages_max=int(loss_ms),
        loss_bytes_max=0,
        flushes_per_s=1.0,
        written_per_byte=1.0,
        put_refused=0,
        rolls=0,
    )
    return replace(blank, **other)


def names(ranked: tuple[Assessed, ...]) -> list[str]:
    return [one.policy.name for one in ranked]


def test_candidates_cover_each_kind_with_names_of_their_own() -> None:
    all_of_them = (*candidates(), *with_replica(LINKS["same rack"], PRESETS["vm-ext4"]))
    assert len({policy.name for policy in all_of_them}) == len(all_of_them)
    assert {kind_of(policy) for policy in all_of_them} == set(KINDS)
    assert {policy.allocation.warm_up for policy in all_of_them} == {WarmUp.NONE, WarmUp.TOUCH_AND_FORCE}


@pytest.mark.parametrize("policy", candidates(), ids=lambda policy: policy.name)
def test_the_settings_of_a_candidate_give_the_candidate(policy: StorePolicy) -> None:
    lines = settings_of(policy.flush, policy.allocation, policy.pool, file_bytes=1 << 24)
    found = policies_of(parse_properties("\n".join(f"{name}={value}" for name, value in lines.items())))
    assert (found.flush, found.allocation, found.pool) == (policy.flush, policy.allocation, policy.pool)
    assert (found.file_bytes, found.notes) == (1 << 24, ())


def test_a_second_copy_is_a_line_of_the_broker() -> None:
    for policy in with_replica(LINKS["same rack"], PRESETS["vm-ext4"]):
        lines = settings_of(policy.flush, policy.allocation, policy.pool, file_bytes=1 << 24, waits=True)
        assert lines["brokerRole"] == "SYNC_MASTER"
        assert policies_of(lines).flush == policy.flush


@pytest.mark.parametrize("crash", ["power", "kill"])
@pytest.mark.parametrize("place", range(3))
def test_what_a_replica_acknowledged_survives_the_machine_of_its_master(place: int, crash: str) -> None:
    policy = with_replica(LINKS["other zone"], PRESETS["vm-ext4"])[place]
    alone = replace(policy, replica=None)
    found, without = (
        assess(each, simulate(Point(0, each.scenario(PRESETS["vm-ext4"], 2_000.0, messages=3_000), 7)),
               crash=crash, share=1.0, seed=7)
        for each in (policy, alone)
    )  # fmt: skip
    assert (found.loss_ms_max, found.loss_messages_max, found.loss_bytes_max) == (0, 0, 0)
    assert found.put_p50_us > 1_000  # two ways of 500 us
    assert found.put_p50_us > without.put_p50_us
    if crash == "power" and place < 2:
        assert without.loss_messages_max > 0


def test_a_master_that_does_not_wait_loses_what_its_replica_has_not_received() -> None:
    """The loss follows from the times of the link, not from the name of the policy."""
    [waits, *_] = with_replica(LINKS["other zone"], PRESETS["vm-ext4"])
    assert waits.replica is not None
    hasty = replace(waits, replica=replace(waits.replica, waits=False))
    trace = simulate(Point(0, hasty.scenario(PRESETS["vm-ext4"], 2_000.0, messages=3_000), 7))
    assert assess(hasty, trace, crash="power", share=1.0, seed=7).loss_messages_max > 0


def test_settings_with_other_values_and_without_a_setting() -> None:
    flush = FlushPolicy(FlushDiskType.SYNC_FLUSH, sync_flush_timeout=7)
    allocation = AllocationPolicy(1, WarmUp.TOUCH_AND_FORCE, 15)
    lines = settings_of(flush, allocation, None, file_bytes=1 << 30)
    assert policies_of(lines).flush == flush
    assert policies_of(lines).allocation == allocation
    assert "mappedFileSizeCommitLog" not in lines
    for impossible in (AllocationPolicy(0), AllocationPolicy(1, WarmUp.TOUCH)):
        with pytest.raises(ValueError, match=r"no setting of a broker gives (on-demand|one-ahead)"):
            settings_of(flush, impossible, None, file_bytes=1 << 30)


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("pool", [None, POOL], ids=["plain", "pool"])
def test_the_worst_loss_is_that_of_the_worst_nanosecond(crash: str, pool: Pool | None) -> None:
    trace = run(
        replace(
            scenario(flush=TIMED, device=SLOW, workload=OpenPoisson(2_000.0, Sizes.of(500)), messages=300), pool=pool
        ),
        3,
    )
    safe_ns = trace.durable_ns if crash == "power" else trace.committed_ns
    moments = np.unique(np.concatenate([np.concatenate([trace.put_ns, safe_ns]) + step for step in (-1, 0, 1)]))
    moments = moments[moments <= trace.load_ns].tolist()
    lost = [np.flatnonzero((trace.put_ns <= at) & (safe_ns > at)) for at in moments]
    found = assess(POLICY, trace, crash=crash, share=1.0, seed=3)
    oldest_ns = max(
        (int(at - trace.written_ns[rows[0]]) for at, rows in zip(moments, lost, strict=True) if len(rows)), default=0
    )
    assert found.loss_messages_max == found.loss_messages == max(len(rows) for rows in lost)
    assert found.loss_ms_max == found.loss_ms == oldest_ns / MS
    assert (found.loss_ms_max > 0) == (crash == "power" or pool is not None)
    most = assess(POLICY, trace, crash=crash, share=0.5, seed=3)
    assert most.loss_ms_max == found.loss_ms_max
    assert most.loss_ms < found.loss_ms or not found.loss_ms


def test_group_commit_loses_no_acknowledged_message() -> None:
    trace = run(scenario(flush=SYNC, device=SLOW, messages=300), 1)
    found = assess(StorePolicy("sync", SYNC), trace, crash="power", share=1.0, seed=1)
    assert (found.loss_ms_max, found.loss_messages_max, found.loss_bytes_max) == (0.0, 0, 0)
    assert found.put_p99_us >= 1_000


def test_several_seeds_count_by_their_worst() -> None:
    both = merged([made("a", 10.0, 3.0), made("a", 12.0, 2.0, put_refused=1, flushes_per_s=3.0)])
    assert (both.seeds, both.put_p99_us, both.put_p99_best_us, both.loss_ms) == (2, 12.0, 10.0, 3.0)
    assert (both.put_refused, both.flushes_per_s, both.messages) == (1, 2.0, 200)


def test_the_policy_that_leaves_the_most_room_ranks_first() -> None:
    budget = Budget(loss_ms=10.0, put_p99_us=100.0)
    fast, safe, even, over = made("fast", 1, 9), made("safe", 80, 0), made("even", 50, 5), made("over", 101, 0)
    choice = choose([over, fast, safe, even], budget)
    assert names(choice.ranked) == ["even", "safe", "fast", "over"]
    assert (choice.met, choice.best) == (3, even)
    assert [budget.use(one) for one in choice.ranked] == pytest.approx([0.5, 0.8, 0.9, 1.01])


def test_refused_puts_never_meet_and_the_nearest_comes_first() -> None:
    budget = Budget(loss_ms=0.0, put_p99_us=10.0)
    refusing, slow, lossy = made("refusing", 1, 0, put_refused=1), made("slow", 15, 0), made("lossy", 1, 0.1)
    choice = choose([lossy, refusing, slow], budget)
    assert (choice.met, choice.best) == (0, slow)
    assert budget.use(refusing) == budget.use(lossy) == inf


def test_exactly_the_budget_meets_it() -> None:
    assert choose([made("exact", 100, 10)], Budget(10.0, 100.0)).met == 1


def test_the_frontier_has_what_no_other_beats() -> None:
    rows = [made("a", 1, 9), made("b", 2, 9), made("c", 3, 4), made("d", 3, 5), made("e", 9, 0), made("f", 10, 0)]
    assert names(frontier([*reversed(rows), made("refusing", 0.5, 0, put_refused=3)])) == ["a", "c", "e"]


@pytest.mark.parametrize(("loss_ms", "p99_us"), [(-1, 1), (nan, 1), (inf, 1), (1, 0), (1, nan), (1, inf)])
def test_impossible_budgets_are_refused(loss_ms: float, p99_us: float) -> None:
    with pytest.raises(ValueError, match="is impossible"):
        Budget(loss_ms, p99_us)
