"""The statistics of puts: messages, failures, latencies, rates.

And the warnings about puts. Names and limits are those of `StoreStatsService` 4.9.3. Times are milliseconds. No method
reads a clock or takes a lock; each says which lock it needs.
"""

import logging
from bisect import bisect_right
from collections import Counter, deque
from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = [
    "REFUSALS_PER_WARNING",
    "SLOW_PUT_MS",
    "PutLatencyBuckets",
    "PutRefusals",
    "StatisticsSnapshot",
    "StoreStatistics",
    "TopicCount",
    "warn_if_slow",
    "warn_if_slow_in_lock",
]

SLOW_PUT_MS = 500
"""A warning is logged if a put, or its part under the put lock, takes longer, in milliseconds."""
REFUSALS_PER_WARNING = 50_000
"""The first refused put is logged, and then one in that many."""

_SAMPLE_INTERVAL_MS = 1_000
_MINUTE_MS = 60_000
_SAMPLES_MAX = 601
_LIMITS_MS = (1, 10, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 10_000)
_LOG = logging.getLogger("tornpage.store")


@dataclass(frozen=True, slots=True)
class PutLatencyBuckets:
    """Counts of puts by latency, flush and replica included.

    Source: `StoreStatsService.putMessageDistributeTime`. Bucket i counts latencies below `LIMITS_MS[i]` and not below
    the limit before it; the last one has no limit.
    """

    NAMES: ClassVar[tuple[str, ...]] = (
        "[<=0ms]",
        "[0~10ms]",
        "[10~50ms]",
        "[50~100ms]",
        "[100~200ms]",
        "[200~500ms]",
        "[500ms~1s]",
        "[1~2s]",
        "[2~3s]",
        "[3~4s]",
        "[4~5s]",
        "[5~10s]",
        "[10s~]",
    )
    LIMITS_MS: ClassVar[tuple[int, ...]] = _LIMITS_MS

    counts: tuple[int, ...]

    @classmethod
    def index_of(cls, elapsed_ms: int) -> int:
        """Return the bucket of a latency."""
        return bisect_right(_LIMITS_MS, elapsed_ms)

    def document(self) -> dict[str, int]:
        """Return the counts by name."""
        return dict(zip(self.NAMES, self.counts, strict=True))


@dataclass(frozen=True, slots=True)
class TopicCount:
    """The messages and bytes appended to one topic since start."""

    topic: str
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StatisticsSnapshot:
    """The statistics at one time; counts and the maximum are since start.

    `put_latency` is the distribution of the last complete minute. A rate is messages per second, up to the last sample,
    over as many samples as its name has seconds. Both are None while there are too few samples.
    """

    taken_ms: int
    runtime_ms: int
    message_count: int
    """`putMessageTimesTotal`; 0 while there is none, where RocketMQ says 1."""
    size_bytes: int
    """`putMessageSizeTotal`."""
    failure_count: int
    """`putMessageFailedTimes`."""
    latency_ms_max: int
    """`putMessageEntireTimeMax`."""
    put_latency: PutLatencyBuckets | None
    rate_10s: float | None
    rate_60s: float | None
    rate_600s: float | None
    topics: tuple[TopicCount, ...]
    """By name."""

    @property
    def size_bytes_mean(self) -> float:
        """`putMessageAverageSize` in bytes; 0 while there is no message."""
        return self.size_bytes / self.message_count if self.message_count else 0.0

    def document(self) -> dict[str, object]:
        """Return the statistics as JSON values."""
        return {
            "taken_ms": self.taken_ms,
            "runtime_ms": self.runtime_ms,
            "message_count": self.message_count,
            "size_bytes": self.size_bytes,
            "size_bytes_mean": self.size_bytes_mean,
            "failure_count": self.failure_count,
            "latency_ms_max": self.latency_ms_max,
            "put_latency": None if self.put_latency is None else self.put_latency.document(),
            "rate_10s": self.rate_10s,
            "rate_60s": self.rate_60s,
            "rate_600s": self.rate_600s,
            "topics": {
                count.topic: {"message_count": count.message_count, "size_bytes": count.size_bytes}
                for count in self.topics
            },
        }


class StoreStatistics:
    """Counts since `started_ms`. Source: `StoreStatsService`.

    The counters have no lock of their own, and adding to one is not atomic. Call `count_appended` under the put lock,
    and `record_failure`, `step` and `snapshot` under one common lock of the caller. `record_put` needs no lock: it
    appends the latency to a deque, which is thread-safe, and `step` and `snapshot` count it. Calls of different kinds
    may overlap: a snapshot may then count a message and not yet its bytes.

    `due_ms` is when `step` is due. `stepped_ms` is the time of its last work: an earlier time means that the clock was
    set back.
    """

    __slots__ = (
        "_answers",
        "_buckets",
        "_failure_count",
        "_latency_ms_max",
        "_message_count",
        "_minute_ms",
        "_previous_minute",
        "_samples",
        "_started_ms",
        "_topics",
        "due_ms",
        "record_put",
        "stepped_ms",
    )

    def __init__(self, *, started_ms: int) -> None:
        self._started_ms = started_ms
        self._message_count = 0
        self._topics: dict[str, list[int]] = {}  # message count and bytes, changed in place
        self._failure_count = 0
        self._latency_ms_max = 0
        self._buckets = [0] * len(PutLatencyBuckets.NAMES)
        self._answers: deque[int] = deque()
        self.record_put = self._answers.append
        """Records the latency in milliseconds of a single or batch put when it is answered."""
        self._previous_minute: PutLatencyBuckets | None = None
        self._minute_ms = started_ms
        self._samples: deque[tuple[int, int]] = deque([(started_ms, 0)], _SAMPLES_MAX)  # time and message count
        self.stepped_ms = started_ms
        self.due_ms = started_ms + _SAMPLE_INTERVAL_MS

    def count_appended(self, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that are in the log, flushed or not; a batch is one call.

        Needs the put lock.
        """
        self._message_count += messages
        try:
            counts = self._topics[topic]
        except KeyError:
            counts = self._topics[topic] = [0, 0]
        counts[0] += messages
        counts[1] += size_bytes

    def _count_answers(self) -> None:
        """Count the latencies recorded since the last call. Needs the caller's lock."""
        answers, buckets = self._answers, self._buckets
        taken = Counter([answers.popleft() for _ in range(len(answers))])  # later ones are for the next call
        for elapsed_ms, count in taken.items():
            buckets[bisect_right(_LIMITS_MS, elapsed_ms)] += count
            self._latency_ms_max = max(self._latency_ms_max, elapsed_ms)

    def record_failure(self) -> None:
        """Count a put that reached the log and was not appended. Needs the caller's lock."""
        self._failure_count += 1

    def step(self, now_ms: int) -> int:
        """Take the due sample, and change the buckets after a minute.

        Return when the next step is due, in ms. After a late step the rates span more time, and they are divided by it.
        After the clock was set back, samples and minute restart. An interrupt of a step leaves at least one sample.
        """
        is_restart = now_ms < self._samples[-1][0]
        if is_restart:
            self._minute_ms = self.due_ms = now_ms
        if now_ms < self.due_ms:
            return self.due_ms
        self.stepped_ms = now_ms
        self._count_answers()
        sample = now_ms, self._message_count
        if is_restart:
            self._samples = deque([sample], _SAMPLES_MAX)
        else:
            self._samples.append(sample)
        if now_ms - self._minute_ms >= _MINUTE_MS:
            ended, self._buckets = self._buckets, [0] * len(self._buckets)
            self._previous_minute = PutLatencyBuckets(tuple(ended))
            self._minute_ms = now_ms
        self.due_ms += _SAMPLE_INTERVAL_MS * ((now_ms - self.due_ms) // _SAMPLE_INTERVAL_MS + 1)
        return self.due_ms

    def snapshot(self, now_ms: int) -> StatisticsSnapshot:
        """Return the statistics; the cost grows with the number of topics."""
        self._count_answers()
        topics = [TopicCount(topic, *counts) for topic, counts in list(self._topics.items())]
        return StatisticsSnapshot(
            taken_ms=now_ms,
            runtime_ms=max(0, now_ms - self._started_ms),
            message_count=self._message_count,
            size_bytes=sum(count.size_bytes for count in topics),
            failure_count=self._failure_count,
            latency_ms_max=self._latency_ms_max,
            put_latency=self._previous_minute,
            rate_10s=self._rate(10),
            rate_60s=self._rate(60),
            rate_600s=self._rate(600),
            topics=tuple(sorted(topics, key=lambda count: count.topic)),
        )

    def _rate(self, samples_back: int) -> float | None:
        if len(self._samples) <= samples_back:
            return None
        first_ms, first_count = self._samples[-1 - samples_back]
        last_ms, last_count = self._samples[-1]
        return (last_count - first_count) * 1000 / (last_ms - first_ms)


def warn_if_slow(elapsed_ms: int, *, topic: str, body_bytes: int) -> bool:
    """Log a put whose answer was slow; return whether it was.

    Source: `DefaultMessageStore.asyncPutMessage`.
    """
    if elapsed_ms <= SLOW_PUT_MS:
        return False
    _LOG.warning("slow_put elapsed_ms=%d topic=%r body_bytes=%d", elapsed_ms, topic, body_bytes)
    return True


def warn_if_slow_in_lock(elapsed_ms: int, *, topic: str, body_bytes: int) -> bool:
    """Log a put that held the put lock for long; return whether it did.

    Source: `CommitLog.asyncPutMessage`.
    """
    if elapsed_ms <= SLOW_PUT_MS:
        return False
    _LOG.warning("slow_put_in_lock elapsed_ms=%d topic=%r body_bytes=%d", elapsed_ms, topic, body_bytes)
    return True


class PutRefusals:
    """Consecutive puts refused by role or flags.

    The first is logged, and each 50,000th after it.

    `count` is the number since the store was last writeable, so an accepted put calls `writeable_again` only if it is
    above 0. There is no lock: a lost count or an extra warning does no harm.
    Source: `DefaultMessageStore.checkStoreStatus`, `printTimes`.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def refused(self, reason: Literal["role", "flags"], *, bits: int) -> bool:
        """Count a refused put; return whether it was logged.

        `bits` are those of the running flags.
        """
        warns = self.count % REFUSALS_PER_WARNING == 0
        self.count += 1
        if warns:
            _LOG.warning("put_refused reason=%s bits=%d count=%d", reason, bits, self.count)
        return warns

    def writeable_again(self) -> None:
        """Restart the count, so that the next refusal is logged."""
        self.count = 0
