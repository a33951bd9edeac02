"""Test simulated Raft groups: exact times, losses of each policy, and elections."""

from dataclasses import replace

import numpy as np
import pytest

from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.stalls import StallLaw, StallSlice
from tornpage.sim.distributions import Constant
from tornpage.sim.experiments.quorum import MEMBERS
from tornpage.sim.pair import LINKS, Link, Port, Way
from tornpage.sim.raft.group import lost_in_group_cut, lost_in_quorum_cut, run_raft
from tornpage.sim.raft.links import jittered
from tornpage.sim.raft.member import HEADER_BYTES
from tornpage.sim.raft.scenario import NS_PER_MS, ImpossibleRaftGroup, RaftScenario

S = 1_000 * NS_PER_MS
RACK = LINKS["same rack"]
PLAIN = RaftScenario(members=3, link=RACK, device=PRESETS["constant-1ms"], duration_ns=2 * S, rate_per_s=2.0)
BUSY = RaftScenario(members=3, link=jittered(RACK), device=PRESETS["vm-ext4"], duration_ns=S, rate_per_s=1_000.0)
KILLED = replace(BUSY, duration_ns=40 * S, rate_per_s=20.0, kill_after_ns=S, restart_ns=S)
MOMENTS = np.linspace(S // 10, S, 500).astype(np.int64)


def _bytes_ns(size_bytes: int) -> int:
    return round(size_bytes / RACK.bytes_per_s * 1e9)


# ---- times -----------------------------------------------------------------------------------------------------------


def test_a_put_takes_two_ways_three_rounds_and_one_sync() -> None:
    turn, way, sync = 50_000, 60_000, 1_000_000
    entry, answer = _bytes_ns(HEADER_BYTES + PLAIN.size_bytes), _bytes_ns(HEADER_BYTES)
    run = run_raft(PLAIN, 1)
    expected = 3 * turn + 2 * way + sync + entry + answer
    took = run.answered_ns - run.arrived_ns
    assert len(took) >= 2
    assert (took == expected).sum() >= len(took) - 1  # a heartbeat may delay one of them


def test_a_member_alone_waits_for_its_own_sync() -> None:
    run = run_raft(replace(PLAIN, members=1), 1)
    assert set((run.answered_ns - run.arrived_ns).tolist()) == {50_000 + 1_000_000}


def test_followers_of_dledger_answer_before_their_sync() -> None:
    run = run_raft(replace(PLAIN, acknowledge="received"), 1)
    assert run.put_ms.max() < 0.5


def test_ways_of_one_port_share_its_bandwidth() -> None:
    link = Link("slow", Constant(0), 1_000.0)
    port = Port()
    first, second, other = (Way(link, 1, name, each) for name, each in (("a", port), ("b", port), ("c", None)))
    assert [first.send(0, 1_000), second.send(0, 1_000), other.send(0, 1_000)] == [S, 2 * S, S]


def test_a_member_that_has_started_again_gets_entries_at_once() -> None:
    """Symptom: it lacked entries for an election time-out, and its elections failed."""
    run = run_raft(
        replace(
            KILLED, duration_ns=20 * S, heartbeat_ns=25 * NS_PER_MS, election_min_ns=100 * NS_PER_MS,
            election_max_ns=200 * NS_PER_MS, kill_after_ns=150 * NS_PER_MS, restart_ns=150 * NS_PER_MS,
        ),
        1,
    )  # fmt: skip
    assert len(run.failovers) > 50
    assert sum(each.failed_elections for each in run.failovers) <= 3


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    one, again, other = (run_raft(KILLED, seed) for seed in (1, 1, 2))
    assert one.failovers == again.failovers
    assert np.array_equal(one.answered_ns, again.answered_ns)
    assert one.failovers != other.failovers


# ---- losses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", MEMBERS)
def test_a_sync_before_the_answer_loses_nothing(members: int) -> None:
    run = run_raft(replace(BUSY, members=members), 1)
    assert len(run.put_ms) > 800
    assert lost_in_quorum_cut(run, MOMENTS).max() == 0
    assert lost_in_group_cut(run, MOMENTS).max() == 0


@pytest.mark.parametrize("members", MEMBERS)
def test_a_flush_on_a_clock_loses_half_an_interval_on_average(members: int) -> None:
    run = run_raft(replace(BUSY, members=members, acknowledge="received"), 1)
    lost = lost_in_quorum_cut(run, MOMENTS)
    assert 3 < lost.mean() < 12  # 1,000/s for 10 ms, and the worst of some followers
    assert lost.max() >= 9


# ---- elections -------------------------------------------------------------------------------------------------------


def test_a_failover_takes_a_time_out_of_an_election() -> None:
    run = run_raft(KILLED, 1)
    assert len(run.failovers) >= 10
    took = run.failover_ms
    assert took[0] >= 600 - 150 - 1  # the last heartbeat came at most an interval before the kill
    assert np.median(took) < 1_200
    assert run.unavailable_ns == sum(each.took_ns for each in run.failovers)
    assert len(run.put_ms) >= 0.95 * KILLED.rate_per_s * 40 - 30  # puts wait for the next leader


def test_a_narrow_range_of_time_outs_splits_votes() -> None:
    wide, narrow = (
        run_raft(replace(KILLED, members=7, link=jittered(LINKS["other region"]), election_max_ns=high), 1)
        for high in (1_200 * NS_PER_MS, 610 * NS_PER_MS)
    )
    assert sum(each.failed_elections for each in narrow.failovers) > sum(
        each.failed_elections for each in wide.failovers
    )


def test_a_stall_of_the_disk_of_a_leader_starts_a_false_election() -> None:
    stalls = StallLaw.of([StallSlice(5 * S, (2 * S,), (1_500 * NS_PER_MS,))])
    calm, stalled = (run_raft(replace(KILLED, kill_after_ns=None, stalls=law), 1) for law in (None, stalls))
    assert calm.false_elections == calm.unavailable_ns == 0
    assert stalled.false_elections > 0
    assert stalled.put_ms.max() > 600 > calm.put_ms.max()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"members": 0}, "0 members; use 1 to 9"),
        ({"clients": 3}, "a load has either a rate or clients"),
        ({"heartbeat_ns": S}, "elections need longer time-outs than heartbeats"),
        ({"members": 1, "kill_after_ns": S}, "a group needs 3 members"),
        ({"size_bytes": 0}, "size_bytes is 0"),
        ({"rate_per_s": 1e9}, "more than 1000000 messages"),
    ],
)
def test_an_impossible_group_is_refused(change: dict[str, int], told: str) -> None:
    with pytest.raises(ImpossibleRaftGroup, match=told):
        replace(PLAIN, **change)  # type: ignore[arg-type]
