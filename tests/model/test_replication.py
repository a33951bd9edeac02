"""Test the specification of replicated logs on all states of a small bound."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tornpage.model.replication import step
from tornpage.model.replication.state import Copy, Entry, Generation, Replicated, Wire

Bound = dict[str, int]
"""How often each kind of step may happen in the checked states."""

FILE_BYTES = 20
"""A file has two records of these tests."""

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
        if copy.role == "master" and bound.get("cleans"):
            for cleaned in step.clean(step.flush(state, node, copy.end), node, file_bytes=FILE_BYTES):
                yield cleaned, used
        if crashes < bound["crashes"]:
            for left in step.crash(state, node, "power", file_bytes=FILE_BYTES):
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "states"),
    [
        ({"puts": 2, "crashes": 1, "opens": 2, "links": 2}, 20_933),
        ({"puts": 2, "crashes": 2, "opens": 2, "links": 1}, 18_387),
        ({"puts": 3, "crashes": 1, "opens": 1, "links": 1, "cleans": 1}, None),
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
        point = step.common_point(Wire(0, first.log, generations=first.generations), second)
        if point is not None:
            compared += 1
            assert step.equal_below(first, second, point), found[0]
        left += following(*found, bound)
    assert compared > 1_000
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
    assert step.common_point(Wire(0, first.log, generations=first.generations), second) == 0
    same = replace(second, generations=first.generations)
    assert step.common_point(Wire(0, first.log, generations=first.generations), same) == 10


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
    lost = next(each for each in step.crash(ahead, 0, "power", file_bytes=FILE_BYTES) if not each.copies[0].log)
    again = step.put(step.open_as(lost, 0, "master", identity=60), 0, begin=0, end=10, identity=61)
    again = step.arrive(step.send(step.connect(again, 1, 0), 1), 1, 10, is_answered=True)
    assert list(step.join(again, 1)) == []
    (cut,) = step.cut(again, 1)
    assert cut.copies[1].log == ()
    assert cut.wires[1] is None


def test_a_crash_inside_an_operation_keeps_any_of_its_entries() -> None:
    before = opened()
    after = step.put(before, 0, begin=0, end=10, identity=50)
    kept = {
        len(each.copies[0].log) for each in step.crash(after, 0, "kill", file_bytes=FILE_BYTES, before=before.copies[0])
    }
    assert kept == {0, 1}
    assert {len(each.copies[0].log) for each in step.crash(after, 0, "kill", file_bytes=FILE_BYTES)} == {1}


def test_a_link_of_a_dead_master_sends_nothing_more() -> None:
    state = step.put(opened(), 0, begin=0, end=10, identity=50)
    state = step.send(step.connect(state, 1, 0), 1)
    (dead,) = step.crash(state, 0, "kill", file_bytes=FILE_BYTES)
    again = step.put(step.open_as(dead, 0, "master", identity=60), 0, begin=10, end=20, identity=61)
    wire = step.send(again, 1).wires[1]
    assert wire is not None
    assert wire.log == state.copies[0].log


def test_states_are_accepted_by_their_ends() -> None:
    empty = opened()
    grown = step.put(empty, 0, begin=0, end=10, identity=50)
    assert step.accepted([empty, grown, grown], ((0, 10), None)) == [grown]
    assert step.accepted([empty, grown], ((0, 5), None)) == []


# ---- retention -------------------------------------------------------------------------------------------------------


def three_files() -> Replicated:
    """Return a master with five records of which two lie in each file, all durable."""
    state = opened()
    for number in range(5):
        state = step.put(state, 0, begin=10 * number, end=10 * number + 10, identity=50 + number)
    return step.flush(state, 0, 50)


def cleaned(state: Replicated) -> Replicated:
    return list(step.clean(state, 0, file_bytes=FILE_BYTES))[-1]


def linked(state: Replicated) -> Replicated:
    state = step.send(step.connect(state, 1, 0), 1)
    return step.arrive(state, 1, state.copies[0].end, is_answered=True)


def test_retention_removes_durable_files_but_the_last() -> None:
    state = three_files()
    assert [each.copies[0].begin for each in step.clean(state, 0, file_bytes=FILE_BYTES)] == [0, 20, 40]
    unsynced = state.with_copy(0, replace(state.copies[0], durable=3))
    assert [each.copies[0].begin for each in step.clean(unsynced, 0, file_bytes=FILE_BYTES)] == [0, 20]
    assert [each.identity for each in cleaned(state).copies[0].kept] == [54]


def test_an_empty_slave_begins_where_its_master_begins() -> None:
    (joined,) = step.join(linked(cleaned(three_files())), 1)
    found = {(each.copies[1].begin, each.copies[1].end) for each in step.receive(joined, 1)}
    assert found == {(40, 40), (40, 50)}, "the file may be there before its first record"


def test_a_slave_below_the_begin_of_its_master_receives_nothing() -> None:
    state = linked(three_files())
    (joined,) = step.join(state, 1)
    behind = next(each for each in step.receive(joined, 1) if each.copies[1].end == 10)
    away = next(iter(step.crash(behind, 1, "kill", file_bytes=FILE_BYTES)))
    back = step.open_as(away, 1, "slave", identity=9)
    passed = linked(cleaned(back))
    assert step.is_gone(passed, 1, 0)
    assert list(step.join(passed, 1)) == []
    assert list(step.cut(passed, 1)) == []
    (dropped,) = step.cut(passed, 1, discards=True)
    assert dropped.copies[1].log == ()
    assert not step.is_gone(linked(back), 1, 0)


def test_a_crash_inside_retention_leaves_any_of_its_files() -> None:
    before = three_files()
    after = cleaned(before)
    left = step.crash(after, 0, "power", file_bytes=FILE_BYTES, before=before.copies[0])
    assert {each.copies[0].begin for each in left} == {0, 20, 40}
    assert {each.copies[0].begin for each in step.crash(after, 0, "power", file_bytes=FILE_BYTES)} == {40}
