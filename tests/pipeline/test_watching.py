"""Test the progress of Spark: tasks of a stage are counted during their run.

A session that stops ends the watch silently.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from tornpage.pipeline.spark.interrupts import apart
from tornpage.pipeline.spark.watching import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Said = tuple[str, int, int, bool]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.pipeline.spark.watching._ASK_EVERY_S", 0.01)


def test_tasks_of_each_stage_are_counted(spark: SparkSession) -> None:
    told: list[Said] = []

    def work() -> None:
        for name, expected in (("one", 3), ("two", 0)):
            stage(name, expected)
            for _ in range(2):
                assert spark.sparkContext.parallelize(range(9), 3).count() == 9
            while (name, 6) not in {(said[0], said[1]) for said in told}:
                assert len(told) < 3_000, "it is never told that all tasks are done"

    with watched(spark, lambda *said: told.append(said)) as stage:
        apart(spark, work)
    assert list(dict.fromkeys(name for name, *_ in told)) == ["one", "two"]
    assert {is_all for name, *_, is_all in told if name == "one"} == {True}
    assert {is_all for name, *_, is_all in told if name == "two"} == {False}
    for name in ("one", "two"):
        done = [done for stage, done, *_ in told if stage == name]
        assert done == sorted(done)
    assert all(done <= known for _, done, known, _ in told)


def test_a_session_that_is_gone_ends_the_watch() -> None:
    session, was_asked = MagicMock(), Event()

    def asked() -> None:
        was_asked.set()
        raise AttributeError("'NoneType' object has no attribute 'sc'")

    session.sparkContext.statusTracker.side_effect = asked
    told: list[Said] = []
    with watched(session, lambda *said: told.append(said)) as stage:
        stage("one", 3)
        assert was_asked.wait(10)
    assert told == []
    assert session.sparkContext.statusTracker.call_count == 1
