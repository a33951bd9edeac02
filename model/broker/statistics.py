"""Specify the statistics of puts and reads: samples, rates, minutes and latencies.

1. The first event at or after each full second takes a sample: its time, and the counts at that time. Seconds are
   counted from the start. Late events take one sample, and the next second is the first full one after it.
2. A rate over N seconds is the difference of two samples that are N samples apart, divided by their time. It is None
   while there are too few samples.
3. If the clock was set back before the last sample, the samples and the minute restart at the next event.
4. A put belongs to the minute that ends with the first sample a minute or more after its begin. The buckets of the last
   complete minute are reported.
5. A bucket has the latencies from its lower limit on and below its upper limit.

Source: `StoreStatsService`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["BACK", "PutCounts", "Samples", "bucket_of"]

BACK = (10, 60, 600)
"""The seconds of the rates."""

_SECOND_MS, _MINUTE_MS = 1_000, 60_000
_LIMITS_MS = (1, 10, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 10_000)


def bucket_of(latency_ms: int) -> int:
    """Return the number of the bucket of a latency."""
    return sum(latency_ms >= limit for limit in _LIMITS_MS)


@dataclass
class Samples:
    """The samples since `started_ms`, with any number of counts."""

    started_ms: int
    counts: int = 1
    taken: list[tuple[int, Sequence[int]]] = field(default_factory=list)
    due_ms: int = 0

    def __post_init__(self) -> None:
        self.taken.append((self.started_ms, (0,) * self.counts))
        self.due_ms = self.started_ms + _SECOND_MS

    def event(self, now_ms: int, counts: Sequence[int]) -> tuple[bool, bool]:
        """Return whether an event takes a sample, and whether the clock was set back before it."""
        is_back = now_ms < self.taken[-1][0]
        if is_back:
            self.taken, self.due_ms = [], now_ms
        if now_ms < self.due_ms:
            return False, is_back
        self.taken.append((now_ms, tuple(counts)))
        while self.due_ms <= now_ms:
            self.due_ms += _SECOND_MS
        return True, is_back

    def rates(self, *columns: int) -> tuple[float | None, ...]:
        """Return the rates of some counts together, over the seconds of `BACK`."""
        return tuple(self._rate(back, columns) for back in BACK)

    def _rate(self, back: int, columns: Sequence[int]) -> float | None:
        if len(self.taken) < back + 1:
            return None
        (first_ms, first), (last_ms, last) = self.taken[len(self.taken) - 1 - back], self.taken[-1]
        return sum(last[column] - first[column] for column in columns) * 1000 / (last_ms - first_ms)


@dataclass
class PutCounts:
    """The statistics of puts since `started_ms`."""

    started_ms: int
    messages: dict[str, int] = field(default_factory=dict)
    size_bytes: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    latency_ms_max: int = 0
    minute: tuple[int, ...] | None = None
    _running: list[int] = field(default_factory=list)
    _minute_ms: int = 0

    def __post_init__(self) -> None:
        self.samples, self._minute_ms = Samples(self.started_ms), self.started_ms

    def append(self, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that were appended to a topic."""
        self.messages[topic] = self.messages.get(topic, 0) + messages
        self.size_bytes[topic] = self.size_bytes.get(topic, 0) + size_bytes

    def answer(self, latency_ms: int) -> None:
        """Count the answer to a put."""
        self._running.append(bucket_of(latency_ms))
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)

    def event(self, now_ms: int) -> None:
        """Take a sample if one is due."""
        is_taken, is_back = self.samples.event(now_ms, (sum(self.messages.values()),))
        if is_back:
            self._minute_ms = now_ms
        if is_taken and now_ms - self._minute_ms >= _MINUTE_MS:
            self.minute = tuple(self._running.count(bucket) for bucket in range(len(_LIMITS_MS) + 1))
            self._running, self._minute_ms = [], now_ms
