"""Compare the statistics of puts and reads over more than ten minutes of samples."""

import math
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from tornpage.impl.io.files import DiskUsage
from tornpage.impl.read.runtime_info import runtime_info
from tornpage.impl.statistics.read_statistics import DiskFall, ReadRates, ReadStatistics, ReadStatisticsSnapshot
from tornpage.impl.statistics.store_statistics import (
    REFUSALS_PER_WARNING,
    SLOW_PUT_MS,
    PutLatencyBuckets,
    PutRefusals,
    StatisticsSnapshot,
    StoreStatistics,
    TopicCount,
    warn_if_slow,
    warn_if_slow_in_lock,
)
from tornpage.model.broker.statistics import PutCounts, Samples
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value

__all__ = ["check"]

_STEADY_SECONDS = 605
_EVENTS = 120
_LATENCIES_MS = (
    0,
    0,
    0,
    1,
    9,
    10,
    49,
    50,
    99,
    100,
    199,
    200,
    500,
    999,
    1_000,
    2_000,
    3_000,
    4_000,
    5_000,
    9_999,
    10_000,
)
_PAUSES_MS = (0, 1, 500, 999, 1_000, 1_000, 1_001, 2_500, 20_000, 60_000, 61_000)
_SLOW_MS, _REFUSALS = 500, 50_000
_SPANS_MS = (0, 999, 1_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000, 90_061_000)
_BLOCKS = 1_000


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    started_ms = rng.randrange(1_000, 1_000_000)
    times = _times(rng, started_ms)
    _puts(rng, started_ms, times)
    _reads(rng, started_ms, times)
    for elapsed_ms in (0, _SLOW_MS, _SLOW_MS + 1):
        for slow in (warn_if_slow, warn_if_slow_in_lock):
            what = f"whether {elapsed_ms} ms are slow"
            is_answered(what, elapsed_ms > _SLOW_MS, slow, elapsed_ms, topic="T", body_bytes=1)
    is_value("the limit of slow puts", _SLOW_MS, SLOW_PUT_MS)
    _refusals()
    for span_ms in (*_SPANS_MS, rng.randrange(1 << 36)):
        _runtime(rng, span_ms)


def _times(rng: random.Random, started_ms: int) -> list[tuple[int, bool]]:
    """Return the times of events, and after which of them the statistics are compared."""
    now_ms, times = started_ms, list[tuple[int, bool]]()
    for number in range(_STEADY_SECONDS):
        now_ms += 1_000
        times.append((now_ms, number % 50 == 0 or number > _STEADY_SECONDS - 7))
    for _ in range(_EVENTS):
        now_ms += -rng.randrange(1, 90_000) if rng.random() < 0.02 else rng.choice(_PAUSES_MS)
        times.append((now_ms, True))
    return times


def _puts(rng: random.Random, started_ms: int, times: list[tuple[int, bool]]) -> None:
    found, expected = StoreStatistics(started_ms=started_ms), PutCounts(started_ms)
    for now_ms, compares in times:
        for _ in range(rng.randrange(3)):
            topic, messages, size_bytes = rng.choice(("T", "U")), rng.choice((1, 1, 3)), rng.randrange(900)
            latency_ms = rng.choice(_LATENCIES_MS)
            found.count_appended(topic, messages, size_bytes)
            found.record_put(latency_ms)
            expected.append(topic, messages, size_bytes)
            expected.answer(latency_ms)
        if rng.random() < 0.1:
            found.record_failure()
            expected.failures += 1
        found.step(now_ms)
        expected.event(now_ms)
        if compares:
            _put_snapshot(found, expected, now_ms)


def _put_snapshot(found: StoreStatistics, expected: PutCounts, now_ms: int) -> None:
    taken = found.snapshot(now_ms)
    minute = None if expected.minute is None else PutLatencyBuckets(expected.minute)
    topics = tuple(
        TopicCount(topic, expected.messages[topic], expected.size_bytes[topic]) for topic in sorted(expected.messages)
    )
    messages, size_bytes = sum(expected.messages.values()), sum(expected.size_bytes.values())
    for name, value in (
        ("taken_ms", now_ms),
        ("runtime_ms", max(0, now_ms - expected.started_ms)),
        ("message_count", messages),
        ("size_bytes", size_bytes),
        ("size_bytes_mean", size_bytes / messages if messages else 0.0),
        ("failure_count", expected.failures),
        ("latency_ms_max", expected.latency_ms_max),
        ("put_latency", minute),
        ("topics", topics),
        *zip(("rate_10s", "rate_60s", "rate_600s"), expected.samples.rates(0), strict=True),
    ):
        is_value(f"the statistic {name} of puts", value, getattr(taken, name))
    for name, value in (("due_ms", expected.samples.due_ms), ("stepped_ms", expected.samples.taken[-1][0])):
        is_value(f"the time {name} of the statistics", value, getattr(found, name))


def _reads(rng: random.Random, started_ms: int, times: list[tuple[int, bool]]) -> None:
    found, samples = ReadStatistics(started_ms=started_ms), Samples(started_ms, counts=3)
    hit = missed = transferred = latency_ms_max = 0
    falls: dict[tuple[str, int, str], int] = {}
    for now_ms, compares in times:
        messages, elapsed_ms = rng.choice((0, 1, 32)), rng.choice(_LATENCIES_MS)
        found.count(messages=messages, elapsed_ms=elapsed_ms, now_ms=now_ms)
        hit, missed, transferred = hit + (messages > 0), missed + (messages == 0), transferred + messages
        latency_ms_max = max(latency_ms_max, elapsed_ms)
        samples.event(now_ms, (hit, missed, transferred))
        if rng.random() < 0.05:
            key, behind_bytes = (rng.choice(("T", "U")), rng.randrange(2), rng.choice(("g", "h"))), rng.randrange(99)
            found.record_disk_fall(*key, behind_bytes)
            falls[key] = behind_bytes
        if not compares:
            continue
        if rng.random() < 0.3:
            now_ms += rng.choice((1, 1_000))
            samples.event(now_ms, (hit, missed, transferred))
        taken = found.snapshot(now_ms)
        for name, value in (
            ("found_count", hit),
            ("miss_count", missed),
            ("transferred_count", transferred),
            ("latency_ms_max", latency_ms_max),
            ("found", ReadRates(*samples.rates(0))),
            ("miss", ReadRates(*samples.rates(1))),
            ("total", ReadRates(*samples.rates(0, 1))),
            ("transferred", ReadRates(*samples.rates(2))),
            ("disk_fall", tuple(DiskFall(*key, falls[key]) for key in sorted(falls))),
        ):
            is_value(f"the statistic {name} of reads", value, getattr(taken, name))


def _refusals() -> None:
    """Compare which refused puts are logged: the first, and each 50,000th after it."""
    is_value("the refusals for each warning", _REFUSALS, REFUSALS_PER_WARNING)
    refusals = PutRefusals()
    is_value("the refused puts of a new store", 0, refusals.count)
    for count, is_logged in ((0, True), (1, False), (_REFUSALS - 1, False), (_REFUSALS, True), (_REFUSALS + 1, False)):
        refusals.count = count
        is_answered(f"whether refusal {count} is logged", is_logged, refusals.refused, "flags", bits=2)
        is_value("the number of refusals", count + 1, refusals.count)
    refusals.writeable_again()
    is_answered("whether the next refusal is logged", True, refusals.refused, "role", bits=0)


def _runtime(rng: random.Random, span_ms: int) -> None:
    """Compare each text of the runtime information of a store with three disks.

    The used share of a disk is rounded up to a whole percent.
    """
    drawn = [rng.choice((0.0, 0.5, 1.0, 1_000.25)) for _ in range(3 * 5)]
    rates = [
        [None if number % 3 >= known else rate for number, rate in enumerate(drawn[at : at + 3])]
        for at, known in zip(range(0, 15, 3), rng.choices(range(4), k=5), strict=True)
    ]
    counts = tuple(rng.randrange(5) for _ in PutLatencyBuckets.NAMES)
    latency = rng.choice((None, PutLatencyBuckets(counts)))
    count, size_bytes, failures, slowest_ms, slowest_read_ms = (rng.randrange(1_000) for _ in range(5))
    put_10s, put_60s, put_600s = rates[0]
    puts = StatisticsSnapshot(
        7 + span_ms, span_ms, count, size_bytes, failures, slowest_ms, latency, put_10s, put_60s, put_600s, topics=()
    )
    found, miss, total, transferred = (ReadRates(*each) for each in rates[1:])
    reads = ReadStatisticsSnapshot(1, 2, 3, slowest_read_ms, found, miss, total, transferred, disk_fall=())
    free: dict[str, int | None] = {path: rng.choice((0, 1, 500, 999, _BLOCKS, None)) for path in ("a", "b", "queues")}

    def usage(path: str) -> DiskUsage:
        blocks = free[path]
        if blocks is None:
            raise OSError(5, "no usage", path)
        return DiskUsage(_BLOCKS, blocks)

    log = SimpleNamespace(min_offset=rng.randrange(99), max_offset=100, directories=SimpleNamespace(paths=("a", "b")))
    span = timedelta(milliseconds=span_ms)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    used = {
        path: -1.0 if blocks is None else math.ceil(100 - 100 * blocks / _BLOCKS) / 100 for path, blocks in free.items()
    }
    expected = {
        "bootTimestamp": "7",
        "runtime": f"[ {span.days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]",
        "putMessageEntireTimeMax": str(slowest_ms),
        "putMessageTimesTotal": str(count),
        "putMessageFailedTimes": str(failures),
        "putMessageSizeTotal": str(size_bytes),
        "putMessageDistributeTime": ""
        if latency is None
        else " ".join(f"{name}:{number}" for name, number in zip(PutLatencyBuckets.NAMES, counts, strict=True)),
        "putMessageAverageSize": str(size_bytes / count if count else 0.0),
        "getMessageEntireTimeMax": str(slowest_read_ms),
        "commitLogMinOffset": str(log.min_offset),
        "commitLogMaxOffset": "100",
        "commitLogDiskRatio_a": str(used["a"]),
        "commitLogDiskRatio_b": str(used["b"]),
        "commitLogDiskRatio": str(min(used["a"], used["b"])),
        "consumeQueueDiskRatio": str(used["queues"]),
    }
    names = ("putTps", "getFoundTps", "getMissTps", "getTotalTps", "getTransferedTps")
    expected |= {
        name: " ".join(str(rate) for rate in each if rate is not None) for name, each in zip(names, rates, strict=True)
    }
    files = cast(Any, SimpleNamespace(disk_usage=usage))
    what = f"the runtime information after {span_ms} ms"
    is_answered(what, expected, runtime_info, puts, reads, cast(Any, log), files=files, queues_directory="queues")
