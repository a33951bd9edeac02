"""Symptom: a flipped bit in topic or queue id of one record dropped messages.

The record counted in another queue and took the number of an intact message there.

Cause: the record was believed: its number in the other queue hid, or moved, intact messages; its own queue ended
before the number, whose unit was erased.
Fix: a place that is missing from a queue, with a record between its neighbours that claims the same number in a queue
where nothing else speaks for it, is the place of that record (`QueueNumbers`).
"""

import shutil
import struct
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import (
    QUEUE_ID_AT,
    TOPIC_AT,
    bodies,
    change,
    config,
    filled,
    notes,
    put_is_reached,
)
from tests.support.impl.stores import open_store


@pytest.mark.parametrize("queue_is_lost", [False, True])
@pytest.mark.parametrize("record", range(0, 18, 3))
@pytest.mark.parametrize("queue_id", [1, 2, 1 << 20, -1])
def test_a_wrong_queue_id(queue_id: int, record: int, queue_is_lost: bool, tmp_path: Path) -> None:
    results = filled(tmp_path, 18, queues=3)
    if queue_id == record % 3:
        return
    # without units nothing tells two neighbours apart that claim one number: one of them is in no queue, and named
    undecidable = {record + queue_id} if queue_is_lost and queue_id in (1, 2) else set()
    change(tmp_path, results[record].offset + QUEUE_ID_AT, struct.pack(">i", queue_id))
    if queue_is_lost:
        shutil.rmtree(tmp_path / "consumequeue")
    with open_store(tmp_path, config=config()) as store:
        for queue in range(3):
            expected = [f"{number:03d}".encode() for number in range(queue, 18, 3) if number != record]
            lost = set(expected) - set(bodies(store, queue_id=queue))
            assert lost <= {f"{number:03d}".encode() for number in undecidable}
            assert notes(store) or (queue_is_lost and record == 15)  # of the last record nothing else speaks
            put_is_reached(store, queue_id=queue)


@pytest.mark.parametrize("record", range(9))
@pytest.mark.parametrize("topic", [b"U", b"\x14", b"/", b"\xd4"])
def test_a_wrong_topic(topic: bytes, record: int, tmp_path: Path) -> None:
    results = filled(tmp_path)
    filled(tmp_path, 3, topic="U")
    change(tmp_path, results[record].offset + TOPIC_AT, topic)
    with open_store(tmp_path, config=config()) as store:
        expected = [f"{number:03d}".encode() for number in range(9) if number != record]
        assert bodies(store) == expected
        assert bodies(store, "U") == [b"000", b"001", b"002"]
        assert notes(store)
        put_is_reached(store)
        put_is_reached(store, "U")
