"""Symptom: of two numberings of one queue in the log the wrong one counted.

Cause: the first record of a number stayed.
Fix: stored units decide; without units the last numbering of a queue counts, since a topic was deleted and created
again. A light queue is counted from 0 again at each restart of RocketMQ 4.9.3 (hole C11), and the longest counts.
"""

from typing import Any

import pytest

from tornpage.impl.dispatch.queue_numbers import QueueNumbers
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.units import UNIT

SIZE = 100


class NoQueues:
    """Queues of which none has a file."""

    file_units = 20

    def all(self) -> tuple[Any, ...]:
        return ()

    def stored(self, _: QueueKey) -> None:
        return None

    def directory_of(self, key: QueueKey) -> str:
        return f"consumequeue/{key[0].decode()}/{key[1]}"


def runs_of(key: QueueKey, numbers: list[int]) -> list[QueueRun]:
    return [
        QueueRun(key, number, UNIT.pack(SIZE * place, SIZE, 0), SIZE * (place + 1))
        for place, number in enumerate(numbers)
    ]


def numbers_in(topic: bytes, numbers: list[int]) -> list[tuple[int, int]]:
    """Return place in the log and number of each record that is in the queue."""
    runs = runs_of((topic, 0), numbers)
    found = QueueNumbers(NoQueues(), log_min=0)  # type: ignore[arg-type]
    found.take(runs)
    return [(run.end_offset // SIZE - 1, run.queue_offset) for run in found.rulings().applied(runs)]


@pytest.mark.parametrize(
    ("topic", "numbers", "expected"),
    [
        (b"T", [0, 1, 2, 3], [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (b"T", [0, 1, 2, 3, 0, 1], [(4, 0), (5, 1)]),
        (b"%LMQ%a", [0, 1, 2, 0, 1], [(0, 0), (1, 1), (2, 2)]),
        (b"%LMQ%a", [0, 1, 0, 1, 2], [(2, 0), (3, 1), (4, 2)]),
        (b"T", [0, 1, 1000, 3], [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (b"T", [0, 1, 2, 1000], [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (b"T", [1 << 62, 1, 2], [(0, 0), (1, 1), (2, 2)]),
        (b"T", [-5], []),
        (b"T", [0, 1, 2, 2, 3], [(0, 0), (1, 1), (2, 2), (4, 3)]),
        (b"T", [0, 1, 5], [(0, 0), (1, 1), (2, 5)]),
    ],
)
def test_it_is_decided(topic: bytes, numbers: list[int], expected: list[tuple[int, int]]) -> None:
    assert numbers_in(topic, numbers) == expected
