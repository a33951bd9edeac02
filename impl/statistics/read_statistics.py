"""The statistics of reads.

Source: `StoreStatsService` (gets), `BrokerStatsManager` (disk fall). Times are milliseconds. A lock protects the
counts, since reads come from many threads and a count must be exact.
"""

import threading
from collections import deque
from dataclasses import dataclass

__all__ = ["DiskFall", "ReadRates", "ReadStatistics", "ReadStatisticsSnapshot"]

_SAMPLE_INTERVAL_MS = 1_000
_SAMPLES_MAX = 601


@dataclass(frozen=True, slots=True)
class ReadRates:
    """Events per second over the last 10, 60 and 600 samples, one a second.

    A rate is None while there are fewer samples.
    """

    rate_10s: float | None
    rate_60s: float | None
    rate_600s: float | None


@dataclass(frozen=True, slots=True)
class DiskFall:
    """Bytes of the log between the last read of a group in a queue and the end of the log."""

    topic: str
    queue_id: int
    group: str
    behind_bytes: int


@dataclass(frozen=True, slots=True)
class ReadStatisticsSnapshot:
    """The statistics at one time; counts and the maximum are since start."""

    found_count: int
    """`getMessageTimesTotalFound`: reads by queue that returned a message."""
    miss_count: int
    """`getMessageTimesTotalMiss`: reads by queue that returned none."""
    transferred_count: int
    """`getMessageTransferedMsgCount`: messages returned by them."""
    latency_ms_max: int
    """`getMessageEntireTimeMax`, milliseconds."""
    found: ReadRates
    miss: ReadRates
    total: ReadRates
    transferred: ReadRates
    disk_fall: tuple[DiskFall, ...]
    """Sorted by topic, queue and group."""


class ReadStatistics:
    """Counts since `started_ms`; the first read or snapshot of each second takes a sample."""

    def __init__(self, *, started_ms: int) -> None:
        self._guard = threading.Lock()
        self._found = self._missed = self._transferred = 0
        self._latency_ms_max = 0
        self._disk_fall: dict[tuple[str, int, str], int] = {}
        self._due_ms = started_ms + _SAMPLE_INTERVAL_MS
        self._samples: deque[tuple[int, int, int, int]] = deque([(started_ms, 0, 0, 0)], _SAMPLES_MAX)

    def count(self, *, messages: int, elapsed_ms: int, now_ms: int) -> None:
        """Count one read by queue that returned `messages` messages."""
        with self._guard:
            if messages:
                self._found += 1
                self._transferred += messages
            else:
                self._missed += 1
            if elapsed_ms > self._latency_ms_max:
                self._latency_ms_max = elapsed_ms
            if not self._samples[-1][0] <= now_ms < self._due_ms:
                self._sample(now_ms)

    def record_disk_fall(self, topic: str, queue_id: int, group: str, behind_bytes: int) -> None:
        """Record how many bytes before the end of the log a group has read."""
        with self._guard:
            self._disk_fall[topic, queue_id, group] = behind_bytes

    def _sample(self, now_ms: int) -> None:
        if now_ms < self._samples[-1][0]:  # the clock was set back: the samples restart
            self._samples.clear()
            self._due_ms = now_ms
        self._samples.append((now_ms, self._found, self._missed, self._transferred))
        self._due_ms += _SAMPLE_INTERVAL_MS * ((now_ms - self._due_ms) // _SAMPLE_INTERVAL_MS + 1)

    def snapshot(self, now_ms: int) -> ReadStatisticsSnapshot:
        """Return the statistics; the cost grows with the number of groups and queues."""
        with self._guard:
            if not self._samples[-1][0] <= now_ms < self._due_ms:
                self._sample(now_ms)
            return ReadStatisticsSnapshot(
                found_count=self._found,
                miss_count=self._missed,
                transferred_count=self._transferred,
                latency_ms_max=self._latency_ms_max,
                found=self._rates(1),
                miss=self._rates(2),
                total=self._rates(1, 2),
                transferred=self._rates(3),
                disk_fall=tuple(DiskFall(*key, fall_bytes) for key, fall_bytes in sorted(self._disk_fall.items())),
            )

    def _rates(self, *columns: int) -> ReadRates:
        return ReadRates(*(self._rate(back, columns) for back in (10, 60, 600)))

    def _rate(self, samples_back: int, columns: tuple[int, ...]) -> float | None:
        if len(self._samples) <= samples_back:
            return None
        first, last = self._samples[-1 - samples_back], self._samples[-1]
        return sum(last[column] - first[column] for column in columns) * 1000 / (last[0] - first[0])
