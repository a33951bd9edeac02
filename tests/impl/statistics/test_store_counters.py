"""Test statistics on a settable clock: bucket limits, minutes, rates and warnings."""

import json
import logging

import pytest

from tornpage.impl.statistics.store_statistics import (
    REFUSALS_PER_WARNING,
    PutLatencyBuckets,
    PutRefusals,
    StoreStatistics,
    TopicCount,
    warn_if_slow,
    warn_if_slow_in_lock,
)

START_MS = 1_700_000_000_000
BUCKETS = [
    ("[<=0ms]", None, 0),
    ("[0~10ms]", 1, 9),
    ("[10~50ms]", 10, 49),
    ("[50~100ms]", 50, 99),
    ("[100~200ms]", 100, 199),
    ("[200~500ms]", 200, 499),
    ("[500ms~1s]", 500, 999),
    ("[1~2s]", 1_000, 1_999),
    ("[2~3s]", 2_000, 2_999),
    ("[3~4s]", 3_000, 3_999),
    ("[4~5s]", 4_000, 4_999),
    ("[5~10s]", 5_000, 9_999),
    ("[10s~]", 10_000, None),
]
"""Name, first and last latency."""


class Driven:
    """Statistics with a step each second."""

    def __init__(self) -> None:
        self.statistics = StoreStatistics(started_ms=START_MS)
        self.now_ms = START_MS

    def seconds(self, count: int, *, messages_each: int = 0) -> None:
        """Advance the clock by seconds, and append this many messages in each."""
        for _ in range(count):
            if messages_each:
                self.statistics.count_appended("t", messages_each, 10 * messages_each)
            self.now_ms += 1_000
            assert self.statistics.step(self.now_ms) == self.now_ms + 1_000

    def rates(self) -> tuple[float | None, float | None, float | None]:
        """Return the rates over 10, 60 and 600 seconds."""
        found = self.statistics.snapshot(self.now_ms)
        return found.rate_10s, found.rate_60s, found.rate_600s

    def minute(self) -> dict[str, int] | None:
        """Return the buckets of the previous minute that are not 0."""
        found = self.statistics.snapshot(self.now_ms).put_latency
        return None if found is None else {name: count for name, count in found.document().items() if count}


# ---- buckets ---------------------------------------------------------------------------------------------------------


def test_names_are_those_of_rocketmq() -> None:
    assert tuple(name for name, _, _ in BUCKETS) == PutLatencyBuckets.NAMES
    assert len(PutLatencyBuckets.LIMITS_MS) == len(BUCKETS) - 1


@pytest.mark.parametrize(
    ("elapsed_ms", "name"),
    [
        (elapsed_ms, name)
        for name, first_ms, last_ms in BUCKETS
        for elapsed_ms in (first_ms, last_ms)
        if elapsed_ms is not None
    ]
    + [(-1, "[<=0ms]"), (-(10**6), "[<=0ms]"), (10**9, "[10s~]")],
)
def test_a_latency_falls_into_its_bucket(elapsed_ms: int, name: str) -> None:
    assert PutLatencyBuckets.NAMES[PutLatencyBuckets.index_of(elapsed_ms)] == name
    driven = Driven()
    driven.statistics.record_put(elapsed_ms)
    driven.seconds(60)
    assert driven.minute() == {name: 1}


def test_the_distribution_is_that_of_the_previous_minute() -> None:
    driven = Driven()
    driven.statistics.record_put(0)
    driven.seconds(59)
    assert driven.minute() is None
    driven.statistics.record_put(700)
    driven.seconds(1)
    assert driven.minute() == {"[<=0ms]": 1, "[500ms~1s]": 1}
    driven.statistics.record_put(20)
    driven.seconds(59)
    assert driven.minute() == {"[<=0ms]": 1, "[500ms~1s]": 1}
    driven.seconds(1)
    assert driven.minute() == {"[10~50ms]": 1}
    driven.seconds(60)
    assert driven.minute() == {}


def test_the_maximum_is_kept_since_start() -> None:
    driven = Driven()
    for elapsed_ms, latency_ms_max in [(-3, 0), (0, 0), (9, 9), (4, 9), (700, 700), (10, 700)]:
        driven.statistics.record_put(elapsed_ms)
        driven.seconds(60)
        assert driven.statistics.snapshot(driven.now_ms).latency_ms_max == latency_ms_max


# ---- counts ----------------------------------------------------------------------------------------------------------


def test_messages_and_bytes_are_counted_by_topic() -> None:
    statistics = StoreStatistics(started_ms=START_MS)
    statistics.count_appended("b", 1, 100)
    statistics.count_appended("a", 3, 900)
    statistics.count_appended("b", 1, 200)
    statistics.record_failure()
    found = statistics.snapshot(START_MS + 5)
    assert found.topics == (TopicCount("a", 3, 900), TopicCount("b", 2, 300))
    assert (found.message_count, found.size_bytes, found.size_bytes_mean) == (5, 1_200, 240.0)
    assert (found.failure_count, found.taken_ms, found.runtime_ms) == (1, START_MS + 5, 5)


def test_nothing_counts_as_nothing() -> None:
    """RocketMQ returns one message where there is none, because it divides by the number."""
    found = StoreStatistics(started_ms=START_MS).snapshot(START_MS)
    assert (found.message_count, found.size_bytes, found.size_bytes_mean, found.failure_count) == (0, 0, 0.0, 0)
    assert (found.latency_ms_max, found.put_latency, found.topics) == (0, None, ())


def test_a_snapshot_does_not_change_any_more() -> None:
    driven = Driven()
    driven.statistics.count_appended("t", 1, 10)
    driven.statistics.record_put(3)
    driven.seconds(60)
    found = driven.statistics.snapshot(driven.now_ms)
    document = found.document()
    driven.statistics.count_appended("t", 1, 10)
    driven.statistics.record_put(3)
    driven.seconds(60)
    assert found.document() == document


def test_a_document_is_what_json_can_hold() -> None:
    driven = Driven()
    driven.statistics.count_appended("Ä", 2, 10)
    driven.statistics.record_put(3)
    assert json.loads(json.dumps(driven.statistics.snapshot(START_MS).document()))["put_latency"] is None
    driven.seconds(60)
    document = driven.statistics.snapshot(driven.now_ms).document()
    assert json.loads(json.dumps(document)) == document
    assert document == {
        "taken_ms": START_MS + 60_000,
        "runtime_ms": 60_000,
        "message_count": 2,
        "size_bytes": 10,
        "size_bytes_mean": 5.0,
        "failure_count": 0,
        "latency_ms_max": 3,
        "put_latency": {name: int(name == "[0~10ms]") for name, _, _ in BUCKETS},
        "rate_10s": 0.0,
        "rate_60s": 2 / 60,
        "rate_600s": None,
        "topics": {"Ä": {"message_count": 2, "size_bytes": 10}},
    }


# ---- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "known"),
    [(0, 0), (9, 0), (10, 1), (59, 1), (60, 2), (599, 2), (600, 3), (2_000, 3)],
)
def test_a_rate_is_known_after_its_time(seconds: int, known: int) -> None:
    driven = Driven()
    driven.seconds(seconds, messages_each=7)
    assert driven.rates() == (*[7.0] * known, *[None] * (3 - known))


def test_each_rate_has_its_own_window() -> None:
    driven = Driven()
    driven.seconds(540, messages_each=0)
    driven.seconds(50, messages_each=6)
    driven.seconds(10, messages_each=60)
    assert driven.rates() == (60.0, (50 * 6 + 10 * 60) / 60, (50 * 6 + 10 * 60) / 600)
    driven.seconds(10)
    assert driven.rates() == (0.0, (40 * 6 + 10 * 60) / 60, (50 * 6 + 10 * 60) / 600)
    driven.seconds(600)
    assert driven.rates() == (0.0, 0.0, 0.0)


def test_601_samples_are_kept() -> None:
    driven = Driven()
    driven.seconds(1, messages_each=600)
    driven.seconds(599)
    assert driven.rates()[2] == 1.0
    driven.seconds(1)
    assert driven.rates()[2] == 0.0


def test_a_step_before_its_time_does_nothing() -> None:
    driven = Driven()
    assert driven.statistics.due_ms == START_MS + 1_000
    driven.seconds(9, messages_each=1)
    for early_ms in (0, 1, 999):
        assert driven.statistics.step(driven.now_ms + early_ms) == driven.now_ms + 1_000
        assert driven.rates()[0] is None
    driven.seconds(1, messages_each=1)
    assert driven.rates()[0] == 1.0


def test_late_steps_keep_to_the_seconds_and_the_rate_to_the_time_that_passed() -> None:
    statistics = StoreStatistics(started_ms=START_MS)
    assert statistics.step(START_MS + 1_999) == START_MS + 2_000
    assert statistics.step(START_MS + 2_000) == START_MS + 3_000
    assert statistics.step(START_MS + 8_500) == START_MS + 9_000
    for second in range(9, 15):
        assert statistics.step(START_MS + 1_000 * second) == START_MS + 1_000 * (second + 1)
    statistics.count_appended("t", 200, 1)
    assert statistics.step(START_MS + 20_000) == START_MS + 21_000
    assert statistics.snapshot(START_MS + 20_000).rate_10s == 200 * 1000 / 20_000


def test_a_clock_that_was_set_back_begins_anew_and_keeps_the_counts() -> None:
    driven = Driven()
    driven.seconds(30, messages_each=5)
    driven.statistics.record_put(3)
    driven.now_ms = START_MS - 10_000
    assert driven.statistics.step(driven.now_ms) == driven.now_ms + 1_000
    found = driven.statistics.snapshot(driven.now_ms)
    assert (found.runtime_ms, found.message_count, found.rate_10s) == (0, 150, None)
    driven.seconds(59, messages_each=2)
    assert driven.rates() == (2.0, None, None)
    assert driven.minute() is None
    driven.seconds(1)
    assert driven.minute() == {"[0~10ms]": 1}


# ---- warnings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("elapsed_ms", "slow"), [(-1, False), (0, False), (500, False), (501, True), (60_000, True)])
def test_slow_is_more_than_half_a_second(elapsed_ms: int, slow: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert warn_if_slow(elapsed_ms, topic="a b", body_bytes=7) is slow
    assert warn_if_slow_in_lock(elapsed_ms, topic="a\nb", body_bytes=8) is slow
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("tornpage.store", "WARNING", f"slow_put elapsed_ms={elapsed_ms} topic='a b' body_bytes=7"),
        ("tornpage.store", "WARNING", f"slow_put_in_lock elapsed_ms={elapsed_ms} topic='a\\nb' body_bytes=8"),
    ][: 2 * slow]


def test_one_refused_put_in_many_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    refusals = PutRefusals()
    logged = [number for number in range(2 * REFUSALS_PER_WARNING + 1) if refusals.refused("flags", bits=16)]
    assert logged == [0, 50_000, 100_000]
    assert refusals.count == 100_001
    assert [record.getMessage() for record in caplog.records] == [
        f"put_refused reason=flags bits=16 count={number + 1}" for number in logged
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_role_and_flags_share_a_counter_that_starts_again_when_the_store_is_writeable() -> None:
    refusals = PutRefusals()
    assert refusals.refused("role", bits=0)
    assert not refusals.refused("flags", bits=2)
    refusals.writeable_again()
    assert refusals.count == 0
    assert refusals.refused("flags", bits=2)
    assert not refusals.refused("role", bits=0)
