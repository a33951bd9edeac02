"""Test the counters of puts and their warnings."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, SetClock, open_store
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.statistics.store_statistics import TopicCount


class JumpingClock(SetClock):
    """A clock that advances by the given steps, one per reading, and then stands still."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    def __call__(self) -> int:
        if self.steps:
            self.now_ms += self.steps.pop(0)
        return super().__call__()


def test_puts_are_counted_by_topic_and_in_bytes(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=SetClock(1000)) as store:
        first = store.put(MESSAGE)
        batch = store.put_batch(batch_of(b"one", b"two", b"three"))
        other = store.put_async(replace(MESSAGE, topic="Other")).result(timeout=0)
        delayed = store.put(replace(MESSAGE, properties="DELAY\x011"))
        found = store.statistics()
        assert found.message_count == 6
        assert found.failure_count == 0
        assert found.size_bytes == first.size_bytes + batch.size_bytes + other.size_bytes + delayed.size_bytes
        assert found.topics == (
            TopicCount("Other", 1, other.size_bytes),
            TopicCount("SCHEDULE_TOPIC_XXXX", 1, delayed.size_bytes),
            TopicCount("TopicTest", 4, first.size_bytes + batch.size_bytes),
        )
        assert (found.taken_ms, found.runtime_ms, found.latency_ms_max) == (1000, 0, 0)


def test_failures_are_puts_that_reached_the_log_and_are_not_in_it(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files, sync=True) as store:
        store.put(replace(MESSAGE, topic=""))
        store.put_batch(batch_of(b"one", properties="DELAY\x01x"))
        store.put_async(replace(MESSAGE, queue_id=-1))
        assert store.statistics().failure_count == 3
        store.running_flags.set(RunningFlag.NOT_WRITEABLE)
        store.put(MESSAGE)
        store.running_flags.clear(RunningFlag.NOT_WRITEABLE)
        assert store.statistics().failure_count == 3
        files.fail("allocate")
        store.put(MESSAGE)
        assert store.statistics().failure_count == 4
        files.mend()
        store.put(MESSAGE)
        files.fail("sync", part="commitlog")
        assert store.put(MESSAGE).status is PutStatus.FLUSH_DISK_TIMEOUT
        found = store.statistics()
        assert (found.failure_count, found.message_count) == (4, 2)


def test_latency_goes_from_the_entry_to_the_answer(tmp_path: Path) -> None:
    clock, runner = JumpingClock(), HandRunner()
    with open_store(tmp_path, sync=True, clock=clock, parts=Parts({ThreadRunner: runner})) as store:
        clock.steps = [0, 5, 7, 11]
        store.put(MESSAGE)
        assert store.statistics().latency_ms_max == 23
        answer = store.put_async(MESSAGE)
        clock.now_ms += 40
        runner.step()
        assert answer.done()
        assert store.statistics().latency_ms_max == 40
        clock.now_ms += 60_000
        store.put(MESSAGE)
        latency = store.statistics().put_latency
        assert latency is not None
        assert sum(latency.counts) == 3


def test_rates_follow_the_clock_of_the_store(tmp_path: Path) -> None:
    clock = SetClock()
    with open_store(tmp_path, clock=clock) as store:
        for _ in range(11):
            clock.now_ms += 1000
            store.put(MESSAGE)
            store.put(MESSAGE)
        found = store.statistics()
        assert found.rate_10s == pytest.approx(2, abs=0.2)
        assert found.rate_60s is None


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tornpage.store"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0, 0, 500], []),
        ([0, 501, 0], ["slow_put elapsed_ms=501 topic='TopicTest' body_bytes=4"]),
        (
            [0, 0, 501],
            [
                "slow_put elapsed_ms=501 topic='TopicTest' body_bytes=4",
                "slow_put_in_lock elapsed_ms=501 topic='TopicTest' body_bytes=4",
            ],
        ),
    ],
)
def test_slow_put_is_warned_about(
    steps: list[int], expected: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = JumpingClock()
    with caplog.at_level(logging.WARNING), open_store(tmp_path, clock=clock) as store:
        clock.steps = steps
        store.put(MESSAGE)
        assert warnings(caplog) == expected


def test_slow_disk_is_not_counted_as_time_in_the_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = JumpingClock()
    with caplog.at_level(logging.WARNING), open_store(tmp_path, sync=True, clock=clock) as store:
        clock.steps = [0, 0, 0, 700]
        store.put(MESSAGE)
        assert warnings(caplog) == ["slow_put elapsed_ms=700 topic='TopicTest' body_bytes=4"]


def test_slow_refusal_was_not_in_the_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = JumpingClock()
    with caplog.at_level(logging.WARNING), open_store(tmp_path, clock=clock) as store:
        clock.steps = [0, 900]
        store.put(Message("", None))
        assert warnings(caplog) == ["slow_put elapsed_ms=900 topic='' body_bytes=0"]


def test_refusals_in_a_row_are_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), open_store(tmp_path) as store:
        for _ in range(2):
            store.running_flags.set(RunningFlag.NOT_WRITEABLE)
            for _ in range(5):
                store.put(MESSAGE)
            store.running_flags.clear(RunningFlag.NOT_WRITEABLE)
            store.put(MESSAGE)
        assert warnings(caplog) == ["put_refused reason=flags bits=2 count=1"] * 2
