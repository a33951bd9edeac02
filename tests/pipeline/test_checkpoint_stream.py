"""Test following a checkpoint: one row per change of its times, equal when read again."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.impl.retained import Retained
from tests.support.pipeline.following import Following, batch_rows

CHECKPOINT = "rocketmq-checkpoint"


def write(store: Path, *times: int, size_bytes: int = 4096) -> None:
    (store / "checkpoint").write_bytes(struct.pack(">qqq", *times).ljust(size_bytes, b"\0")[:size_bytes])


def times_of(following: Following) -> list[tuple[int, ...]]:
    return following.column("physic_timestamp", "logics_timestamp", "index_timestamp")


def test_a_row_comes_when_the_times_are_others(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    following = Following(CHECKPOINT, tmp_path)
    assert following.look()
    assert not following.look()
    following.restart()
    write(tmp_path, 1, 2, 3)
    assert not following.look()
    write(tmp_path, 4, 2, 3)
    assert following.look()
    assert times_of(following) == [(1, 2, 3), (4, 2, 3)]


def test_a_batch_is_the_same_when_the_file_is_another_meanwhile(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    following = Following(CHECKPOINT, tmp_path, columns="index_timestamp,store")
    start = following.offset
    following.look()
    end, rows = following.offset, following.rows
    (tmp_path / "checkpoint").unlink()
    assert following.between(following._ask, end, end) == []
    assert following.between(following._ask, start, end) == rows == [{"index_timestamp": 3, "store": str(tmp_path)}]


def test_what_is_wrong_is_told_once_by_the_second_look(tmp_path: Path) -> None:
    following = Following(CHECKPOINT, tmp_path)
    assert not following.look()
    assert following.look()
    assert [code for _, code, _ in following.problems] == ["CP_MISSING"]
    following.catch_up()
    write(tmp_path, 1, 2, 3, size_bytes=0)  # a store that starts
    assert not following.look()
    write(tmp_path, 1, 2, 3)
    following.catch_up()
    assert [code for _, code, _ in following.problems] == ["CP_MISSING"]
    write(tmp_path, 1, -2, 3)
    following.catch_up()
    write(tmp_path, 1, 2, 3, size_bytes=20)
    following.catch_up()
    assert [code for _, code, _ in following.problems] == ["CP_MISSING", "CP_NEGATIVE_TIME", "CP_BAD_SIZE"]
    assert times_of(following) == [(1, 2, 3), (1, -2, 3)]


def test_a_run_that_is_to_end_reads_what_was_there_when_it_began(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    following = Following(CHECKPOINT, tmp_path)
    following.stream.prepareForTriggerAvailableNow()
    write(tmp_path, 4, 5, 6)
    following.catch_up()
    assert times_of(following) == [(1, 2, 3)]
    (tmp_path / "checkpoint").unlink()
    following.restart()
    following.stream.prepareForTriggerAvailableNow()
    write(tmp_path, 7, 8, 9)
    following.catch_up()
    assert times_of(following) == [(1, 2, 3)]


def test_a_store_at_work_gives_its_times(tmp_path: Path) -> None:
    kept = Retained(tmp_path / "store")
    following = Following(CHECKPOINT, tmp_path / "store")
    with kept.store:
        for _ in range(3):
            kept.clock.now_ms += 1000
            kept.put(4)
            kept.settle()
            kept.runner.step("flush-queues", after_ms=60_000)
            following.catch_up()
    following.catch_up()
    assert len(following.rows) > 1
    assert following.rows[-1:] == batch_rows(CHECKPOINT, tmp_path / "store")
