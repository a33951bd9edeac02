"""Count the warnings and refusals of RocketMQ 4.9.3 in a run, by its own thresholds.

A simulated producer is never refused by them. The counts show how many sends a broker would have refused, while the run
continues as if it had not. Source: `CommitLog.asyncPutMessage`, `BrokerFastFailure`, `FlushRealTimeService`,
`CommitRealTimeService`, `AllocateMappedFileService`, `StoreStatsService`.
"""

from dataclasses import asdict, dataclass

import numpy as np

from tornpage.sim.results.trace import Trace

__all__ = ["PUT_BUCKETS", "Alarms", "alarms", "figures", "put_histogram_rows"]

MS = 1_000_000
LOCK_HELD_MS = 500
PAGE_CACHE_BUSY_MS = 1_000
SEND_QUEUE_MS = 200
SLOW_MS = 500
CREATE_MS = 10
CREATE_WAIT_MS = 5_000

PUT_BUCKETS = (
    ("[<=0ms]", 0),
    ("[0~10ms]", 1),
    ("[10~50ms]", 10),
    ("[50~100ms]", 50),
    ("[100~200ms]", 100),
    ("[200~500ms]", 200),
    ("[500ms~1s]", 500),
    ("[1~2s]", 1_000),
    ("[2~3s]", 2_000),
    ("[3~4s]", 3_000),
    ("[4~5s]", 4_000),
    ("[5~10s]", 5_000),
    ("[10s~]", 10_000),
)
"""Names of the put latency buckets, and the whole ms at which each begins."""


@dataclass(frozen=True, slots=True)
class Alarms:
    """How often each alarm would have been raised."""

    lock_held_over_200_ms: int
    lock_held_over_500_ms: int
    """"[NOTIFYME]putMessage in lock cost time"; includes waits for a file, under the lock."""
    lock_held_over_1000_ms: int
    """From here on the page cache counts as busy (`osPageCacheBusyTimeOutMills`)."""
    page_cache_busy_sends: int
    """Puts that waited while it was busy: "[PCBUSY_CLEAN_QUEUE]"."""
    send_queue_time_outs: int
    """Puts that waited longer than 200 ms (`waitTimeMillsInSendQueue`): "[TIMEOUT_CLEAN_QUEUE]"."""
    flushes_over_500_ms: int
    """"Flush data to disk costs"; whole rounds."""
    commits_over_500_ms: int
    """"Commit data to file costs"."""
    creations_over_10_ms: int
    """"create mappedFile spent time(ms)"."""
    creation_time_outs: int
    """Puts that waited for a file longer than 5 s: "create mmap timeout"."""


def alarms(trace: Trace) -> Alarms:
    """Count the alarms of a run."""
    held_ns, waited_ns = trace.written_ns - trace.start_ns, trace.start_ns - trace.arrival_ns
    busy = np.flatnonzero(held_ns > PAGE_CACHE_BUSY_MS * MS)
    behind = trace.arrival_ns.searchsorted(trace.written_ns[busy], side="left") - (busy + 1)
    rolls, made, commits = trace.rolls, trace.allocations, trace.commits
    return Alarms(
        lock_held_over_200_ms=_above(held_ns, SEND_QUEUE_MS),
        lock_held_over_500_ms=_above(held_ns, LOCK_HELD_MS),
        lock_held_over_1000_ms=len(busy),
        page_cache_busy_sends=int(np.maximum(behind, 0).sum()),
        send_queue_time_outs=_above(waited_ns, SEND_QUEUE_MS),
        flushes_over_500_ms=_above(_round_times(trace), SLOW_MS),
        commits_over_500_ms=_above(commits["end_ns"] - commits["start_ns"], SLOW_MS),
        creations_over_10_ms=_above(made["ready_ns"] - made["start_ns"], CREATE_MS),
        creation_time_outs=_above(rolls["ready_ns"] - rolls["asked_ns"], CREATE_WAIT_MS),
    )


def figures(trace: Trace) -> dict[str, int]:
    """Return the alarms by their names in documents and sweeps."""
    return {f"alarm_{name}": count for name, count in asdict(alarms(trace)).items()}


def put_histogram_rows(trace: Trace) -> list[dict[str, str | int]]:
    """Return rows {bucket, from_ms, messages}: RocketMQ's put latency distribution.

    It covers the whole run. Latency is from the arrival at the store to the answer, in whole ms, as in the store's
    statistics.
    """
    took_ms = (trace.put_ns - trace.arrival_ns)[trace.size > 0] // MS
    firsts = np.array([first for _, first in PUT_BUCKETS])
    counts = np.bincount(firsts.searchsorted(took_ms, side="right") - 1, minlength=len(firsts)).tolist()
    return [
        {"bucket": name, "from_ms": first, "messages": count}
        for (name, first), count in zip(PUT_BUCKETS, counts, strict=True)
    ]


def _round_times(trace: Trace) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return how long each round with a sync took, first start to last end."""
    flushes = trace.flushes
    if not len(flushes):
        return np.zeros(0, np.int64)
    first = np.flatnonzero(np.concatenate(([True], np.diff(flushes["round"]) > 0)))
    last = np.append(first[1:], len(flushes)) - 1
    took: np.ndarray[tuple[int], np.dtype[np.int64]] = flushes["end_ns"][last] - flushes["start_ns"][first]
    return took


def _above(values_ns: "np.ndarray[tuple[int], np.dtype[np.int64]]", limit_ms: int) -> int:
    return int(np.count_nonzero(values_ns > limit_ms * MS))
