"""Test which numbers a log that contradicts itself calls for."""

import pytest

from tornpage.model.damage.numbering import Entry, Evidence, Numbering, numberings
from tornpage.model.dispatch import Queue

SIZE = 100
T: Queue = ("T", 0)
U: Queue = ("U", 0)


def evidence(
    claims: list[tuple[Queue, int]], units: dict[Queue, list[int]] | None = None, *, file_units: int = 20
) -> Evidence:
    """Return records with these claims, in log order, and the units of queues.

    A unit is given by the place in the log of its record.
    """
    entries = [Entry(SIZE * place, SIZE, queue, number) for place, (queue, number) in enumerate(claims)]
    stored = {
        queue: {number: (SIZE * place, SIZE) for number, place in enumerate(places)}
        for queue, places in (units or {}).items()
    }
    return Evidence(entries, stored, file_units, begin_offset=0)


def places(numbering: Numbering, queue: Queue) -> dict[int, int]:
    """Return the place in the log of each number of a queue."""
    return {number: entry.offset // SIZE for number, entry in numbering.queues.get(queue, {}).items()}


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 2, 3], {0: 0, 1: 1, 2: 2, 3: 3}),
        ([0, 1, 1000, 3], {0: 0, 1: 1, 2: 2, 3: 3}),  # it fills the gap of its neighbours
        ([0, 1, 2, 1000], {0: 0, 1: 1, 2: 2, 3: 3}),  # no queue can reach the last number
        ([0, 1, 5], {0: 0, 1: 1, 5: 2}),
        ([0, 1, 2, 2, 3], {0: 0, 1: 1, 2: 2, 3: 4}),  # either record of the number may stay
        ([0, 1, 2, 3, 0, 1], {0: 4, 1: 5}),  # the numbering begins again
        ([0, 41, 42, 43], {41: 1, 42: 2, 43: 3}),  # the first one is too far away
        ([-5], {}),
    ],
)
def test_neighbours_decide_without_units(numbers: list[int], expected: dict[int, int]) -> None:
    assert expected in [places(each, T) for each in numberings(evidence([(T, number) for number in numbers]))]


def test_units_decide_before_neighbours() -> None:
    (numbering,) = numberings(evidence([(T, 0), (T, 2), (T, 1)], {T: [0, 1, 2]}))
    assert places(numbering, T) == {0: 0, 1: 1, 2: 2}
    assert {entry.offset // SIZE for entry in numbering.moved} == {1, 2}


def test_a_record_of_another_queue_fills_a_missing_number() -> None:
    (numbering,) = numberings(evidence([(T, 0), (T, 1), (U, 2), (T, 3), (T, 4)]))
    assert places(numbering, T) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
    assert places(numbering, U) == {}


def test_equal_chains_are_all_legal() -> None:
    legal = numberings(evidence([(T, 10), (T, 30), (T, 60)], file_units=4))
    assert {tuple(places(each, T)) for each in legal} == {(10, 11, 12), (30, 31), (60,)}


def test_units_before_the_first_number_stay() -> None:
    (numbering,) = numberings(evidence([(U, 5), (T, 1), (T, 2)], {T: [0, 1, 2], U: []}))
    assert numbering.first[T] == 0
