"""Summaries of a trace as frozen values; all times are us, as floats.

A quantile is the smallest observed value that the stated share does not exceed. "At risk" is what a power loss would
lose: written and not durable. Its means and quantiles are over time, from the first arrival to the last write. The time
after the load does not count.
"""

from dataclasses import dataclass
from math import ceil, isfinite

import numpy as np

from tornpage.sim.distributions import Int64s
from tornpage.sim.results.analytic import batch_means
from tornpage.sim.results.trace import Trace

__all__ = [
    "AtRisk",
    "FlushWork",
    "PoolWork",
    "PutLatency",
    "RollStalls",
    "figures",
    "quantile",
    "summarise_at_risk",
    "summarise_flushes",
    "summarise_pool",
    "summarise_put_latency",
    "summarise_roll_stalls",
]

US = 1000.0


@dataclass(frozen=True, slots=True)
class PutLatency:
    """Time from the moment at which a producer wanted to put to its answer."""

    messages: int
    mean_us: float
    mean_error_us: float
    """Standard error of the mean, from batch means; 0 for runs below 64 messages."""
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Losses by a power loss, over time, and how long each message was at risk."""

    messages_mean: float
    messages_p99: int
    messages_max: int
    bytes_mean: float
    bytes_p99: int
    bytes_max: int
    exposed_p50_us: float
    exposed_p99_us: float
    exposed_max_us: float


@dataclass(frozen=True, slots=True)
class PoolWork:
    """The work of a transient store pool, and its losses by a process kill.

    A kill loses what is not committed.
    """

    commits: int
    kill_messages_mean: float
    kill_messages_p99: int
    kill_bytes_max: int
    kill_bytes_mean: float
    files_without_buffer: int
    refused: int
    """Puts that were refused because no buffer was free."""


@dataclass(frozen=True, slots=True)
class FlushWork:
    """The work of flushes."""

    flushes: int
    """Syncs, each of one file."""
    rounds: int
    """Rounds with any sync; more files than one may need more syncs than rounds."""
    mean_batch: float
    """Messages per round; refused messages are in no round."""
    mean_us: float
    max_us: float
    busy_share: float
    """Share of the time up to the last sync in which one ran."""
    device_bytes: int
    kernel_bytes: int
    """Bytes of these that the kernel wrote by itself."""
    amplification: float
    """Bytes the device wrote for each byte of a record."""


@dataclass(frozen=True, slots=True)
class RollStalls:
    """The cost of a new file for the puts that held the lock."""

    rolls: int
    stalls: int
    """Rolls that had to wait."""
    mean_us: float
    """Over all rolls, including those that did not wait."""
    p99_us: float
    max_us: float
    total_us: float


def summarise_put_latency(trace: Trace) -> PutLatency:
    """Return the put latency of all messages that were stored."""
    latency_ns = (trace.put_ns - trace.arrival_ns)[trace.size > 0]
    estimate = batch_means(latency_ns)
    ordered = np.sort(latency_ns)
    p50, p90, p99, top = (quantile(ordered, share) / US for share in (0.5, 0.9, 0.99, 1.0))
    error = estimate.error if isfinite(estimate.error) else 0.0
    return PutLatency(len(latency_ns), estimate.mean / US, error / US, p50, p90, p99, top)


def summarise_at_risk(trace: Trace) -> AtRisk:
    """Return the amount at risk of power loss, weighted by its time."""
    if not trace.messages:
        return AtRisk(0.0, 0, 0, 0.0, 0, 0, 0.0, 0.0, 0.0)
    stored = np.minimum(trace.size, 1)
    messages = _over_time(trace, stored, trace.durable_ns)
    size_bytes = _over_time(trace, trace.size, trace.durable_ns)
    exposed = np.sort((trace.durable_ns - trace.written_ns)[trace.size > 0])
    return AtRisk(*messages, *size_bytes, *(quantile(exposed, share) / US for share in (0.5, 0.99, 1.0)))


def summarise_pool(trace: Trace) -> PoolWork:
    """Return the work of the pool; all is 0 without one."""
    pool, size_bytes = trace.scenario.pool, trace.size
    if pool is None or not trace.messages:
        return PoolWork(0, 0.0, 0, 0, 0.0, 0, 0)
    stored = np.minimum(size_bytes, 1)
    messages_mean, messages_p99, _ = _over_time(trace, stored, trace.committed_ns)
    bytes_mean, _, bytes_max = _over_time(trace, size_bytes, trace.committed_ns)
    return PoolWork(
        commits=len(trace.commits),
        kill_messages_mean=messages_mean,
        kill_messages_p99=messages_p99,
        kill_bytes_max=bytes_max,
        kill_bytes_mean=bytes_mean,
        files_without_buffer=trace.files_without_buffer,
        refused=int(np.count_nonzero(size_bytes == 0)),
    )


def summarise_flushes(trace: Trace) -> FlushWork:
    """Return the work of the flusher."""
    flushes = trace.flushes
    if not len(flushes):
        return FlushWork(0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)
    took_ns = flushes["end_ns"] - flushes["start_ns"]
    rounds = len(np.unique(flushes["round"]))
    back = trace.writebacks
    kernel_bytes = int((back["to_offset"] - back["from_offset"]).sum())
    device_bytes = int(flushes["device_bytes"].sum()) + kernel_bytes
    return FlushWork(
        flushes=len(flushes),
        rounds=rounds,
        mean_batch=int(np.count_nonzero(trace.size)) / rounds,
        mean_us=float(took_ns.mean()) / US,
        max_us=int(took_ns.max()) / US,
        busy_share=float(took_ns.sum() / max(int(flushes["end_ns"][-1]), 1)),
        device_bytes=device_bytes,
        kernel_bytes=kernel_bytes,
        amplification=device_bytes / int(trace.size.sum()),
    )


def summarise_roll_stalls(trace: Trace) -> RollStalls:
    """Return the stalls at file rolls."""
    waits = np.sort(trace.rolls["ready_ns"] - trace.rolls["asked_ns"])
    if not len(waits):
        return RollStalls(0, 0, 0.0, 0.0, 0.0, 0.0)
    return RollStalls(
        rolls=len(waits),
        stalls=int(np.count_nonzero(waits)),
        mean_us=float(waits.mean()) / US,
        p99_us=quantile(waits, 0.99) / US,
        max_us=int(waits[-1]) / US,
        total_us=int(waits.sum()) / US,
    )


def figures(trace: Trace) -> dict[str, float | int]:
    """Return all summaries by their names in documents and sweeps.

    The last part of each name is the unit.
    """
    put, risk = summarise_put_latency(trace), summarise_at_risk(trace)
    work, stalls, pool = summarise_flushes(trace), summarise_roll_stalls(trace), summarise_pool(trace)
    return {
        "messages": put.messages,
        "load_us": trace.load_ns / US,
        "put_mean_us": put.mean_us,
        "put_mean_error_us": put.mean_error_us,
        "put_p50_us": put.p50_us,
        "put_p90_us": put.p90_us,
        "put_p99_us": put.p99_us,
        "put_max_us": put.max_us,
        "at_risk_messages_mean": risk.messages_mean,
        "at_risk_messages_p99": risk.messages_p99,
        "at_risk_messages_max": risk.messages_max,
        "at_risk_bytes_mean": risk.bytes_mean,
        "at_risk_bytes_p99": risk.bytes_p99,
        "at_risk_bytes_max": risk.bytes_max,
        "exposed_p50_us": risk.exposed_p50_us,
        "exposed_p99_us": risk.exposed_p99_us,
        "exposed_max_us": risk.exposed_max_us,
        "kill_messages_mean": pool.kill_messages_mean,
        "kill_messages_p99": pool.kill_messages_p99,
        "kill_bytes_mean": pool.kill_bytes_mean,
        "kill_bytes_max": pool.kill_bytes_max,
        "put_refused": pool.refused,
        "commits": pool.commits,
        "files_without_buffer": pool.files_without_buffer,
        "flushes": work.flushes,
        "flush_rounds": work.rounds,
        "flush_batch_mean": work.mean_batch,
        "flush_mean_us": work.mean_us,
        "flush_max_us": work.max_us,
        "flush_busy_share": work.busy_share,
        "device_bytes": work.device_bytes,
        "kernel_bytes": work.kernel_bytes,
        "write_amplification": work.amplification,
        "rolls": stalls.rolls,
        "stalls": stalls.stalls,
        "stall_mean_us": stalls.mean_us,
        "stall_p99_us": stalls.p99_us,
        "stall_max_us": stalls.max_us,
        "stall_total_us": stalls.total_us,
    }


def quantile(ordered: Int64s, share: float) -> int:
    """Return the smallest of the sorted values that at least `share` of them do not exceed.

    The result is 0 without values.
    """
    if not len(ordered):
        return 0
    return int(ordered[max(ceil(share * len(ordered)) - 1, 0)])


def _over_time(trace: Trace, amount: Int64s, safe_ns: Int64s) -> tuple[float, int, int]:
    """Return mean, 99th percentile and maximum over time of what is written and not yet safe."""
    begin, end = int(trace.arrival_ns[0]), trace.load_ns
    times = np.concatenate((trace.written_ns, np.minimum(safe_ns, end)))
    steps = np.concatenate((amount, -amount))
    order = np.argsort(times, kind="stable")
    level = np.cumsum(steps[order])
    ends = np.append(times[order][1:], end)
    lasts = ends - times[order]
    seen = lasts > 0
    level, lasts = level[seen], lasts[seen]
    nothing = (end - begin) - int(lasts.sum())  # before the first write
    if end <= begin or not len(level):
        return 0.0, 0, 0
    mean = float(level.astype(np.float64) @ lasts) / (end - begin)
    level, lasts = np.append(level, 0), np.append(lasts, nothing)
    by_level = np.argsort(level, kind="stable")
    reached = np.cumsum(lasts[by_level])
    p99 = int(reached.searchsorted(ceil(0.99 * (end - begin)), side="left"))
    return mean, int(level[by_level[p99]]), int(level.max())
