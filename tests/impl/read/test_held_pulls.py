"""Test the table of held pulls: found by queue and by deadline, and removed completely."""

from hypothesis import given
from hypothesis import strategies as st

from tornpage.impl.read.held_pulls import HeldPull, HeldPulls, PullRequest


def held_of(queue_id: int = 0, *, topic: str = "T", deadline_ms: int = 100) -> HeldPull:
    return HeldPull(PullRequest((topic, queue_id), 0, max_msg_nums=1), deadline_ms=deadline_ms)


def test_it_is_found_by_its_queue_and_only_by_that() -> None:
    table = HeldPulls()
    first, _ = table.add(held_of(0))
    other, _ = table.add(held_of(1))
    second, _ = table.add(held_of(0))
    assert [number for number, _ in table.of([("T", 0)])] == [first, second]
    assert [number for number, _ in table.of([("T", 1), ("T", 0), ("U", 0)])] == [first, other, second]
    assert ("T", 1) in table
    assert ("T", 2) not in table


def test_a_topic_with_the_sign_that_rocketmq_splits_at_is_one_like_others() -> None:
    table = HeldPulls()
    table.add(held_of(0, topic="a@b"))
    assert ("a@b", 0) in table
    assert ("a", 0) not in table


def test_who_comes_first_is_said_where_his_deadline_is() -> None:
    table = HeldPulls()
    assert table.first_deadline_ms is None
    assert table.add(held_of(deadline_ms=50))[1]
    assert not table.add(held_of(deadline_ms=50))[1]
    assert table.add(held_of(deadline_ms=49))[1]
    assert table.first_deadline_ms == 49


def test_the_late_ones_come_once_and_a_deadline_is_late_when_it_has_come() -> None:
    table = HeldPulls()
    numbers = [table.add(held_of(deadline_ms=deadline_ms))[0] for deadline_ms in (30, 10, 20)]
    assert [number for number, _ in table.late(9)] == []
    assert [number for number, _ in table.late(20)] == [numbers[1], numbers[2]]
    assert [number for number, _ in table.late(20)] == []


def test_one_that_was_taken_is_taken_once_and_nowhere_any_more() -> None:
    table = HeldPulls()
    number, _ = table.add(held_of())
    assert table.take(number) is not None
    assert table.take(number) is None
    assert (len(table), table.first_deadline_ms, table.all()) == (0, None, [])
    assert ("T", 0) not in table


def test_what_was_answered_before_its_deadline_takes_no_room_until_then() -> None:
    table = HeldPulls()
    table.add(held_of(deadline_ms=1 << 40))
    for _ in range(10_000):
        table.take(table.add(held_of(deadline_ms=1 << 41))[0])
    assert len(table._deadlines) < 100
    assert table.first_deadline_ms == 1 << 40


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 60)), max_size=60))
def test_it_is_what_a_list_would_be(steps: list[tuple[int, int, int]]) -> None:
    table, expected = HeldPulls(), dict[int, HeldPull]()
    for kind, queue_id, amount in steps:
        if kind < 2:
            held = held_of(queue_id, deadline_ms=amount)
            number, is_first = table.add(held)
            assert is_first == all(held.deadline_ms < each.deadline_ms for each in expected.values())
            expected[number] = held
        elif kind == 2 and expected:
            number = list(expected)[amount % len(expected)]
            assert table.take(number) is expected.pop(number)
        else:
            late = [number for number, _ in table.late(amount)]
            assert sorted(late) == sorted(n for n, each in expected.items() if each.deadline_ms <= amount)
            for number in late:
                table.take(number)
                del expected[number]
        assert len(table) == len(expected)
        assert table.all() == list(expected.items())
        assert table.first_deadline_ms == min((each.deadline_ms for each in expected.values()), default=None)
        for queue in range(10):
            of_queue = [(n, each) for n, each in expected.items() if each.request.queue == ("T", queue)]
            assert table.of([("T", queue)]) == of_queue
            assert (("T", queue) in table) == bool(of_queue)
