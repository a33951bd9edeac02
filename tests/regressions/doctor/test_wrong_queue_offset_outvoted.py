"""Symptom: a flipped bit in the queue offset of one record made messages unreachable.

A larger number had every later put answered with PUT_OK and an offset that no pull reached. A smaller one dropped
intact messages and overwrote their queue units. A number near 2^63 made `put` raise struct.error. No checksum of
RocketMQ 4.9.3 covers the field.
Cause: each record was believed by itself; the table of next numbers and the queue followed it.
Fix: the neighbours in the log and the units that the queue has outvote one record (`QueueNumbers`).
"""

import shutil
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import bodies, config, filled, notes, put_is_reached, set_queue_offset
from tests.support.impl.stores import open_store

WRONG = (
    0,
    1,
    3,
    5,
    7,
    9,
    12,
    20,
    21,
    4 + (1 << 20),
    1 << 40,
    (1 << 62) // 20,
    (1 << 63) - 1,
    (1 << 63) - 2,
    -1,
    -(1 << 63),
)


@pytest.mark.parametrize("queue_is_lost", [False, True])
@pytest.mark.parametrize("record", [0, 4, 8])
@pytest.mark.parametrize("wrong", WRONG)
def test_every_other_message_is_served_and_puts_are_reached(
    wrong: int, record: int, queue_is_lost: bool, tmp_path: Path
) -> None:
    if wrong == record:
        return
    results = filled(tmp_path)
    set_queue_offset(tmp_path, results[record], wrong)
    if queue_is_lost:
        shutil.rmtree(tmp_path / "consumequeue")
    expected = [f"{number:03d}".encode() for number in range(9) if number != record]
    for _ in range(2):
        with open_store(tmp_path, config=config()) as store:
            assert [body for body in bodies(store) if body in expected] == expected
            assert notes(store)
            put_is_reached(store)


@pytest.mark.parametrize("wrong", WRONG)
def test_the_only_message_of_a_queue(wrong: int, tmp_path: Path) -> None:
    results = filled(tmp_path, 4, queues=2)
    only = filled(tmp_path, 1, topic="U")
    set_queue_offset(tmp_path, only[0], wrong)
    with open_store(tmp_path, config=config()) as store:
        put_is_reached(store, "U")
        put_is_reached(store)
        assert len(bodies(store)) + len(bodies(store, queue_id=1)) == len(results) + 1
