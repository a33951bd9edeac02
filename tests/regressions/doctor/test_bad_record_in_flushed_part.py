"""Symptom: one bad record in the flushed part of a killed store cost all records past it.

The store opened for writing, all later records went to `quarantine/`, and numbers and offsets began again.
Cause: without a durable floor every bad record of an unclean exit counted as a tear.
Fix: a record past the bad one with a store time that the checkpoint covers, less three seconds, was flushed; so was
all before it. The bad record is damage then, and the store serves the rest read-only. What the checkpoint does not
cover is a tear as before, and with a transient store pool the checkpoint proves nothing.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import bodies, change, config, forget_our_files, put
from tests.support.impl.killed import codes
from tests.support.impl.stores import SetClock, caught_up, open_store, snapshot
from tornpage.impl.message.message import PutResult


def killed(directory: Path, times: list[int], *, flushed: int) -> list[PutResult]:
    """Write one message at each time, flush after some of them, and end as by a kill."""
    clock = SetClock(1_700_000_000_000)
    results = []
    with open_store(directory, config=config(), clock=clock) as store:
        for number, time in enumerate(times):
            clock.now_ms = 1_700_000_000_000 + time
            results.append(put(store, number))
            if number + 1 == flushed:
                store.flush()
                caught_up(store)
                store._held.checkpoint.physic_msg_timestamp = results[-1].store_timestamp
                store._held.checkpoint.flush()
        caught_up(store)
        image = snapshot(directory)
    for name, data in image.items():
        if data is not None:
            (directory / name).write_bytes(data)
    assert (directory / "abort").exists() or (directory / "abort").write_bytes(b"") == 0
    forget_our_files(directory)
    return results


LATER = SetClock(1_800_000_000_000)
TIMES = [0, 1_000, 2_000, 3_000, 10_000, 10_001, 10_002]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_bad_record_before_a_flushed_one_is_damage(bad: int, tmp_path: Path) -> None:
    results = killed(tmp_path, TIMES, flushed=5)
    change(tmp_path, results[bad].offset + 90, b"rot")
    before = snapshot(tmp_path)
    with open_store(tmp_path, config=config(), clock=LATER) as store:
        assert store.read_only_reason is not None
        assert codes(store) == [("damage", "damaged_record")]
        assert bodies(store) == [f"{number:03d}".encode() for number in range(7) if number != bad]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("bad", [3, 4, 5, 6])
def test_within_the_last_seconds_it_is_a_tear(bad: int, tmp_path: Path) -> None:
    results = killed(tmp_path, TIMES, flushed=5)
    change(tmp_path, results[bad].offset + 90, b"rot")
    with open_store(tmp_path, config=config(), clock=LATER) as store:
        assert store.read_only_reason is None
        assert codes(store) == [("tear", "torn_tail")]
        assert bodies(store) == [f"{number:03d}".encode() for number in range(bad)]


def test_with_a_pool_the_checkpoint_proves_nothing(tmp_path: Path) -> None:
    results = killed(tmp_path, TIMES, flushed=5)
    change(tmp_path, results[1].offset + 90, b"rot")
    pooled = replace(config(), transient_store_pool_enable=True, transient_store_pool_size=2)
    with open_store(tmp_path, config=pooled, clock=LATER) as store:
        assert store.read_only_reason is None


def test_what_an_earlier_recovery_has_cut_proves_nothing(tmp_path: Path) -> None:
    """RocketMQ leaves cut records on the disk; they are older than the record before the end."""
    results = killed(tmp_path, [0, 20_000, 1_000, 2_000, 3_000], flushed=2)
    change(tmp_path, results[2].offset + 90, b"rot")
    with open_store(tmp_path, config=config(), clock=LATER) as store:
        assert store.read_only_reason is None
        assert codes(store) == [("tear", "torn_tail")]
