"""Symptom: a topic of a store of RocketMQ that was created again lost its new messages.

Cause: queue offsets begin again at 0 while the old records are still in the log. The first record of a number counted,
so the old messages took the place of the good queue units, and the new ones were in no queue.
Fix: a numbering that begins again is the queue if its units are stored, or without units if it is the last one
(`QueueNumbers`).
"""

import shutil
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import bodies, config, forget_our_files, notes, put, put_is_reached
from tests.support.impl.stores import open_store, snapshot


@pytest.mark.parametrize("queue_is_lost", [False, True])
@pytest.mark.parametrize(("before", "since"), [(9, 4), (4, 9), (5, 5), (30, 2), (70, 25)])
def test_the_new_messages_are_the_queue(before: int, since: int, queue_is_lost: bool, tmp_path: Path) -> None:
    with open_store(tmp_path, config=config()) as store:
        for number in range(before):
            put(store, number)
        put(store, 0, 0, "U")
        store._reput.drain()
        assert store.clean_unused_topics({"U"}) == ("T",)
        for number in range(100, 100 + since):
            put(store, number)
    forget_our_files(tmp_path)
    queue = tmp_path / "consumequeue" / "T" / "0"
    units = snapshot(queue)
    if queue_is_lost:
        shutil.rmtree(tmp_path / "consumequeue")
    expected = [f"{number:03d}".encode() for number in range(100, 100 + since)]
    with open_store(tmp_path, config=config()) as store:
        assert bodies(store) == expected
        assert "repeated_queue_offset" in notes(store)
        assert snapshot(queue) == units
        put_is_reached(store)
    with open_store(tmp_path, config=config()) as store:
        assert bodies(store) == [*expected, b"999"]
        put_is_reached(store, "U")
