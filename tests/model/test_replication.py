"""Test the specification of replicated logs on all states of a small bound."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tornpage.model.replication import step
from tornpage.model.replication.state import Copy, Entry, Generation, Replicated, Wire

Bound = dict[str, int]
"""How often each kind of step may happen in the checked states."""

Used = tuple[int, int, int, int]


def opened(nodes: int = 2) -> Replicated:
    """Return node 0 as a master and the others as slaves, without a record."""
    state = step.open_as(step.initial(nodes), 0, "master", identity=1)
    for node in range(1, nodes):
        state = step.open_as(state, node, "slave", identity=1 + node)
    return state


def following(state: Replicated, used: Used, bound: Bound) -> Iterator[tuple[Replicated, Used]]:
    """Yield every state one step later within the bound, and what was used."""
    puts, crashes, opens, links = used
    identity = 10 + puts + 10 * opens
    for node, copy in enumerate(state.copies):
        if not copy.is_up:
            if opens < bound["opens"]:
                for role in ("master", "slave"):
                    yield step.open_as(state, node, role, identity=identity), (puts, crashes, opens + 1, links)
            continue
        if copy.role == "master" and puts < bound["puts"]:
            grown = step.put(state, node, begin=copy.end, end=copy.end + 10, identity=100 + identity)
            yield grown, (puts + 1, crashes, opens, links)
        if crashes < bound["crashes"]:
            for left in step.crash(state, node, "power"):
                yield left, (puts, crashes + 1, opens, links)
        if opens < bound["opens"]:
            yield step.shut(state, node), used
        if copy.role == "slave":
            other = 1 - node
            if links < bound["links"] and state.copies[other].is_up and state.copies[other].role == "master":
                linked = step.send(step.connect(state, node, other), node)
                linked = step.arrive(linked, node, state.copies[other].end, is_answered=True)
                yield linked, (puts, crashes, opens, links + 1)
            for after in (*step.join(state, node), *step.receive(state, node), *step.cut(state, node)):
                yield after, used


@pytest.mark.parametrize(
    ("bound", "states"),
    [
        ({"puts": 2, "crashes": 1, "opens": 2, "links": 2}, 20_933),
        ({"puts": 2, "crashes": 2, "opens": 2, "links": 1}, 18_387),
        pytest.param({"puts": 2, "crashes": 2, "opens": 3, "links": 2}, None, marks=pytest.mark.deep),
    ],
)
def test_common_point_is_never_past_what_is_equal(bound: Bound, states: int | None) -> None:
    seen: set[tuple[Replicated, Used]] = set()
    left = [(opened(), (0, 0, 0, 0))]
    compared = 0
    while left:
        found = left.pop()
        if found in seen:
            continue
        seen.add(found)
        first, second = found[0].copies
        point = step.common_point(Wire(0, first.log, first.generations), second)
        if point is not None:
            compared += 1
            assert step.equal_below(first, second, point), found[0]
        left += following(*found, bound)
    assert compared > 10_000
    assert states in (None, len(seen)), "the bound is as large as it says"


def test_equal_below_sees_a_difference() -> None:
    first = Copy(log=(Entry(1, 0, 10), Entry(2, 10, 20)))
    second = Copy(log=(Entry(1, 0, 10), Entry(3, 10, 20)))
    assert step.equal_below(first, second, 10)
    assert not step.equal_below(first, second, 20)
    assert not step.equal_below(first, second, 15)


def test_generations_compared_by_number_alone_would_be_wrong() -> None:
    first = Copy(log=(Entry(1, 0, 10),), generations=(Generation(1, 0, 7), Generation(2, 0, 8)))
    second = Copy(log=(Entry(2, 0, 10),), generations=(Generation(1, 0, 7), Generation(2, 0, 9)))
    assert step.common_point(Wire(0, first.log, first.generations), second) == 0
    same = replace(second, generations=first.generations)
    assert step.common_point(Wire(0, first.log, first.generations), same) == 10


def test_a_slave_receives_no_more_than_has_arrived() -> None:
    state = step.put(opened(), 0, begin=0, end=10, identity=50)
    state = step.put(state, 0, begin=10, end=20, identity=51)
    state = step.send(step.connect(state, 1, 0), 1)
    assert list(step.join(state, 1)) == []
    (joined,) = step.join(step.arrive(state, 1, 15, is_answered=True), 1)
    assert [each.copies[1].end for each in step.receive(joined, 1)] == [10]
    assert [each.copies[1].end for each in step.receive(step.arrive(joined, 1, 20, is_answered=True), 1)] == [10, 20]


def test_a_slave_that_is_ahead_is_cut_before_it_joins() -> None:
    state = step.put(opened(), 0, begin=0, end=10, identity=50)
    state = step.arrive(step.send(step.connect(state, 1, 0), 1), 1, 10, is_answered=True)
    (joined,) = step.join(state, 1)
    (ahead,) = step.receive(joined, 1)
    lost = next(each for each in step.crash(ahead, 0, "power") if not each.copies[0].log)
    again = step.put(step.open_as(lost, 0, "master", identity=60), 0, begin=0, end=10, identity=61)
    again = step.arrive(step.send(step.connect(again, 1, 0), 1), 1, 10, is_answered=True)
    assert list(step.join(again, 1)) == []
    (cut,) = step.cut(again, 1)
    assert cut.copies[1].log == ()
    assert cut.wires[1] is None


def test_a_crash_inside_an_operation_keeps_any_of_its_entries() -> None:
    before = opened()
    after = step.put(before, 0, begin=0, end=10, identity=50)
    kept = {len(each.copies[0].log) for each in step.crash(after, 0, "kill", before=before.copies[0])}
    assert kept == {0, 1}
    assert {len(each.copies[0].log) for each in step.crash(after, 0, "kill")} == {1}


def test_a_link_of_a_dead_master_sends_nothing_more() -> None:
    state = step.put(opened(), 0, begin=0, end=10, identity=50)
    state = step.send(step.connect(state, 1, 0), 1)
    (dead,) = step.crash(state, 0, "kill")
    again = step.put(step.open_as(dead, 0, "master", identity=60), 0, begin=10, end=20, identity=61)
    wire = step.send(again, 1).wires[1]
    assert wire is not None
    assert wire.log == state.copies[0].log


def test_states_are_accepted_by_their_ends() -> None:
    empty = opened()
    grown = step.put(empty, 0, begin=0, end=10, identity=50)
    assert step.accepted([empty, grown, grown], (10, None)) == [grown]
    assert step.accepted([empty, grown], (5, None)) == []
