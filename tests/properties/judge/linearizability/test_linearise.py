"""Test the search for an order of concurrent calls against trying all orders.

It reports when it gives up.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tornpage.properties.judge.linearizability.linearise import Point, linearise

Register = tuple[str, int]
"""A call on one number: ("write", n), ("read", n) or ("take", n), which leaves 0."""


def apply(call: Register, state: int) -> Iterator[int]:
    kind, number = call
    if kind == "write":
        yield number
    elif state == number:
        yield 0 if kind == "take" else state


def points_of(calls: Sequence[tuple[Register, int, int | None]]) -> list[Point[int]]:
    return [Point(f"{call}", began, ended, partial(apply, call)) for call, began, ended in calls]


def by_trying_all(calls: Sequence[tuple[Register, int, int | None]]) -> bool:
    """Return whether some order of the answered calls, with any of the others, is right."""
    answered = [n for n, (_, _, ended) in enumerate(calls) if ended is not None]
    open_ones = [n for n, (_, _, ended) in enumerate(calls) if ended is None]
    for count in range(len(open_ones) + 1):
        for extra in itertools.combinations(open_ones, count):
            for order in itertools.permutations((*answered, *extra)):
                if _in_time(calls, order) and _is_explained(calls, order):
                    return True
    return False


def _in_time(calls: Sequence[tuple[Register, int, int | None]], order: Sequence[int]) -> bool:
    for before, after in itertools.combinations(order, 2):
        ended = calls[after][2]
        if ended is not None and ended < calls[before][1]:
            return False
    return True


def _is_explained(calls: Sequence[tuple[Register, int, int | None]], order: Sequence[int]) -> bool:
    state = 0
    for number in order:
        following = list(apply(calls[number][0], state))
        if not following:
            return False
        (state,) = following
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Register, int, int | None]]:
    """Draw up to five calls; begins and ends are any order of distinct times."""
    count = draw(st.integers(1, 5))
    times = draw(st.permutations(range(2 * count)))
    calls: list[tuple[Register, int, int | None]] = []
    for number in range(count):
        call = draw(st.sampled_from(("write", "read", "take"))), draw(st.integers(0, 2))
        began, ended = sorted(times[2 * number : 2 * number + 2])
        calls.append((call, began, None if draw(st.integers(0, 5)) == 0 else ended))
    return calls


@settings(max_examples=300, deadline=None)
@given(histories())
def test_it_says_what_trying_all_orders_says(calls: list[tuple[Register, int, int | None]]) -> None:
    found = linearise(points_of(calls), 0)
    assert found.verdict == ("holds" if by_trying_all(calls) else "broken")
    if found.verdict == "holds":
        assert _in_time(calls, found.order)
        assert _is_explained(calls, found.order)


def test_time_forbids_what_overlap_allows() -> None:
    overlapping = [(("write", 1), 0, 3), (("read", 0), 1, 2)]
    one_after_the_other = [(("write", 1), 0, 1), (("read", 0), 2, 3)]
    assert linearise(points_of(overlapping), 0).verdict == "holds"
    assert linearise(points_of(one_after_the_other), 0).verdict == "broken"


def test_a_call_without_an_answer_may_have_happened_or_not() -> None:
    seen = [(("write", 1), 0, None), (("read", 1), 1, 2)]
    unseen = [(("write", 1), 0, None), (("read", 0), 1, 2)]
    assert [linearise(points_of(each), 0).verdict for each in (seen, unseen)] == ["holds", "holds"]


def test_a_search_that_is_broken_off_proves_nothing() -> None:
    """Ten concurrent writes, and a read of another number.

    All orders are wrong, and there are many.
    """
    calls: list[tuple[Register, int, int | None]] = [(("write", n), 0, 100) for n in range(1, 11)]
    calls.append((("read", 99), 101, 102))
    found = linearise(points_of(calls), 0, steps_max=500)
    assert found.verdict == "unknown"
    assert 500 <= found.steps < 520
    assert linearise(points_of(calls[:6] + calls[-1:]), 0).verdict == "broken"


def test_moments_of_one_call_keep_their_order() -> None:
    """A call that removes two steps at once: no call sees the second before the first."""
    steps = [
        Point("first", 0, 9, lambda state: [state + 1], -1),
        Point("second", 0, 9, lambda state: [state * 10], 0),
        Point("between", 1, 2, lambda state: [state] if state == 1 else []),
    ]
    assert linearise(steps, 0).order == (0, 2, 1)
    reversed_steps = [*steps[:2], Point("never", 1, 2, lambda state: [state] if state == 0 else [])]
    assert linearise(reversed_steps, 0).order == (2, 0, 1)
    unseen = [*steps[:2], Point("never", 1, 2, lambda state: [state] if state == 2 else [])]
    assert linearise(unseen, 0).verdict == "broken"


@pytest.mark.parametrize("count", [50, 300])
def test_a_long_history_whose_answers_tell_the_order_takes_few_steps(count: int) -> None:
    """Writers and readers alternate, each overlapping its neighbours."""
    calls: list[tuple[Register, int, int | None]] = []
    for number in range(count):
        calls.append((("write", number), 4 * number, 4 * number + 5))
        calls.append((("read", number), 4 * number + 2, 4 * number + 6))
    found = linearise(points_of(calls), 0)
    assert found.verdict == "holds"
    assert found.steps < 10 * count
