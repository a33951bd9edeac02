"""Test the simulation of consumers: what is consumed, repeated and stored, and figures."""

from dataclasses import replace

import numpy as np
import pytest

from tornpage.impl.consumer.allocation import averagely_by_circle
from tornpage.sim.consumers.group import Consumption, lag_of, run_group
from tornpage.sim.consumers.scenario import (
    NS_PER_MS,
    GroupScenario,
    ImpossibleGroup,
    Load,
    Member,
    SomeSlow,
    draw_load,
    rounded,
)
from tornpage.sim.distributions import Constant, Exponential

S = 1_000 * NS_PER_MS
STEADY = GroupScenario(
    queues=4,
    members=(Member("a", 2), Member("b", 2)),
    rate_per_s=50,
    service=Exponential(30.0 * NS_PER_MS),
    duration_ns=40 * S,
)


def keys_of(run: Consumption) -> list[tuple[int, int]]:
    return [(int(row["queue"]), int(row["offset"])) for row in run.runs]


def most_cached(run: Consumption) -> int:
    """Return the highest number of messages that were pulled and not finished."""
    pulled, ended = np.sort(run.runs["pulled_ns"]), np.sort(run.runs["ended_ns"])
    return int((np.arange(1, len(pulled) + 1) - ended.searchsorted(pulled, side="right")).max())


def load_of(*queues: list[tuple[float, float]]) -> Load:
    """Return a load of (arrival, time of the listener) in seconds, by queue."""
    arrivals, service = (
        tuple(np.array([round(row[part] * S) for row in queue], np.int64) for queue in queues) for part in (0, 1)
    )
    return Load(arrivals, service)


def test_each_message_runs_once_without_a_change_of_members() -> None:
    run = run_group(STEADY, 1)
    assert run.duplicates == 0
    assert run.load.messages - len(run.runs) < 20  # those that run at the end
    assert len(set(keys_of(run))) == len(run.runs)
    per_queue = {queue: [offset for of, offset in keys_of(run) if of == queue] for queue in range(4)}
    assert all(sorted(offsets) == list(range(len(offsets))) for offsets in per_queue.values())
    assert {int(row["member"]) for row in run.runs if row["queue"] < 2} == {0}


def test_equal_seeds_give_equal_runs() -> None:
    assert (run_group(STEADY, 1).runs == run_group(STEADY, 1).runs).all()
    assert len(run_group(STEADY, 2).runs) != len(run_group(STEADY, 1).runs)


def test_idle_share_is_that_of_a_queueing_system() -> None:
    """Work arrives at rate x time, and the threads are busy for that part of their time."""
    busy = 50 * 0.030 / 4
    assert run_group(STEADY, 3).idle_share == pytest.approx(1 - busy, abs=0.03)


def test_lag_counts_messages_from_the_stored_progress_on() -> None:
    load = load_of([(1, 0.1), (2, 0.1), (3, 0.1)])
    stored = (((2 * S, 1), (4 * S, 3)),)
    at_ns = np.array([0, 1 * S, 2 * S, 3 * S, 4 * S])
    assert lag_of(load, stored, at_ns).tolist() == [0, 1, 1, 2, 0]


def test_a_slow_message_pins_the_progress() -> None:
    scenario = replace(STEADY, queues=1, members=(Member("a", 2),), duration_ns=60 * S)
    load = load_of([(0, 30), *((1 + number, 0.1) for number in range(20))])
    run = run_group(scenario, 1, load=load)
    assert [offset for at, offset in run.stored[0] if at < 30 * S] == []
    assert run.stored[0][-1][1] == 21
    assert run.lag(np.array([25 * S])).tolist() == [21]


def test_a_crash_repeats_what_was_not_stored() -> None:
    """A slow message pins the progress: the finished messages after it run again."""
    members = (Member("a", 4, crashes_ns=20 * S), Member("b", 4))
    scenario = replace(STEADY, queues=1, members=members, duration_ns=60 * S, noticed_ns=5 * S)
    load = load_of([(0, 15), *((1 + number / 10, 0.1) for number in range(100)), (19.9, 30)])
    before = replace(scenario, members=(Member("a", 4, crashes_ns=14 * S), Member("b", 4)))
    assert run_group(before, 1, load=load).duplicates == 101
    after = run_group(scenario, 1, load=load)
    assert after.duplicates == 1  # the running one: all before it was stored by the pulls
    again = [row for row in after.runs if row["offset"] == 101]
    assert [int(row["member"]) for row in again] == [0, 1][: len(again)]
    assert after.runs["begun_ns"][after.runs["member"] == 1].min() >= 25 * S


def test_a_hand_over_repeats_nothing_and_dropping_does() -> None:
    members = (Member("a", 4), Member("b", 4, joins_ns=20 * S), Member("c", 4, leaves_ns=30 * S))
    scenario = replace(STEADY, members=members, rate_per_s=150, duration_ns=50 * S)
    assert run_group(scenario, 1).duplicates == 0
    dropped = run_group(replace(scenario, hands_over=False), 1)
    assert dropped.duplicates > 0
    unnoticed = run_group(replace(scenario, hands_over=False, notice=None, duration_ns=50 * S), 1)
    assert unnoticed.duplicates > 3 * dropped.duplicates


def test_a_strategy_moves_queues() -> None:
    members = (Member("a", 4), Member("b", 4), Member("c", 4, joins_ns=10 * S))
    scenario = replace(STEADY, queues=12, members=members, duration_ns=20 * S)
    circle = run_group(replace(scenario, strategy=averagely_by_circle), 1)
    owners = {int(row["queue"]): int(row["member"]) for row in circle.runs}
    assert owners == {queue: queue % 3 for queue in range(12)}
    assert circle.moved > run_group(scenario, 1).moved


def test_prefetch_bounds_what_is_cached() -> None:
    scenario = replace(STEADY, queues=1, members=(Member("a", 1),), prefetch=10, duration_ns=20 * S, rate_per_s=200)
    assert most_cached(run_group(scenario, 1)) == 10
    assert most_cached(run_group(replace(scenario, prefetch=1_000), 1)) > 500


def test_a_leaving_member_ends_its_listeners_first() -> None:
    members = (Member("a", 2, leaves_ns=5 * S), Member("b", 2))
    scenario = replace(STEADY, queues=1, members=members, duration_ns=30 * S)
    load = load_of([(4, 6), (4.5, 1), (6, 1)])
    run = run_group(scenario, 1, load=load)
    assert run.duplicates == 0
    begun = {int(row["offset"]): int(row["begun_ns"]) / S for row in run.runs}
    assert 10 <= begun[2] < 10.2


def test_rounded_loads_keep_their_messages() -> None:
    load = draw_load(STEADY, 1)
    whole = rounded(load, NS_PER_MS)
    assert whole.messages == load.messages
    assert all((times % NS_PER_MS == 0).all() for times in (*whole.arrivals_ns, *whole.service_ns))
    assert all(times.min() >= NS_PER_MS for times in whole.service_ns)


def test_some_slow_calls_have_their_share() -> None:
    drawn = SomeSlow(0.1, S, Constant(1)).draw(np.random.default_rng(1), 10_000)
    assert (drawn == S).mean() == pytest.approx(0.1, abs=0.01)
    with pytest.raises(ValueError, match="impossible"):
        SomeSlow(1.5, S, Constant(1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queues": 0}, "queues is 0"),
        ({"members": ()}, "a group needs members"),
        ({"members": (Member("a"), Member("a"))}, "a name of its own"),
        ({"rate_per_s": 0.0}, "needs 1 to"),
        ({"rate_per_s": 1e9}, "needs 1 to"),
    ],
)
def test_impossible_groups_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ImpossibleGroup, match=message):
        replace(STEADY, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"threads": 0}, {"joins_ns": 5, "leaves_ns": 4}, {"leaves_ns": 1, "crashes_ns": 1}])
def test_impossible_members_are_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ImpossibleGroup):
        Member("a", **fields)
