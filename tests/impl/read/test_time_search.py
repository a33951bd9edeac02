"""Test the offset by time: exact where times grow, and no message is ever skipped.

Where times do not grow it is some boundary.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.impl.reading import PREFILL, Log
from tornpage.impl.message.message import Message


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Return an empty log of files of 1,024 bytes."""
    log = Log(tmp_path)
    yield log
    log.close()


def fill(log: Log, times: Sequence[int]) -> None:
    for time in times:
        log.put(Message("T", b"%09d" % 0), store_timestamp=time)


def by_time(log: Log, time: int) -> int:
    return log.reads().offset_by_time("T", 0, time)


def test_unknown_and_empty_queues(log: Log) -> None:
    assert by_time(log, 5) == 0
    log.queue().min_offset = 7
    assert by_time(log, 5) == 7


@pytest.mark.parametrize("times", [[10], [10, 10, 10], [1, 5, 5, 5, 9], list(range(0, 100, 3)), [2] * 30 + [4] * 3])
@pytest.mark.parametrize("min_offset", [0, 40])
def test_first_message_that_is_not_older(log: Log, times: list[int], min_offset: int) -> None:
    """A time before all messages gives the minimum, one after all the maximum."""
    log.queue().min_offset = min_offset
    fill(log, times)
    for time in range(-1, max(times) + 2):
        expected = next((number for number, stored in enumerate(times) if stored >= time), len(times))
        assert by_time(log, time) == min_offset + expected, time


@pytest.mark.parametrize("seed", range(20))
def test_where_the_clock_went_back_the_answer_is_a_boundary(log: Log, seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.randrange(20) for _ in range(rng.randrange(1, 40))]
    fill(log, times)
    for time in range(22):
        found = by_time(log, time)
        assert found == 0 or times[found - 1] < time
        assert found == len(times) or times[found] >= time


def test_what_is_not_readable_counts_as_young(log: Log) -> None:
    fill(log, list(range(8)))
    log.hidden_bytes = 3 * 101
    assert [by_time(log, time) for time in (0, 4, 5, 7, 100)] == [0, 4, 5, 5, 5]


def test_expired_records_count_as_old(log: Log) -> None:
    fill(log, list(range(25)))
    log.drop_first_file()
    assert [by_time(log, time) for time in (-1, 0, 9, 10, 11, 24, 25)] == [10, 10, 10, 10, 11, 24, 25]


@pytest.mark.parametrize("places", [(3,), (0, 1), (3, 4, 5), (8, 9), tuple(range(10))])
def test_numbers_without_a_message_count_as_the_next_one(log: Log, places: tuple[int, ...]) -> None:
    fill(log, [number * 10 for number in range(10)])
    for place in places:
        log.queue().stored[place] = PREFILL
    for time in range(-5, 105, 5):
        found = by_time(log, time)
        real = [number for number in range(10) if number not in places]
        assert all(number * 10 < time for number in real if number < found)
        assert all(number * 10 >= time for number in real if number >= found)
