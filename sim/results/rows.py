"""Rows of a trace for plots. Times are us, as floats."""

import numpy as np

from tornpage.sim.results.tables import quantile
from tornpage.sim.results.trace import Trace

__all__ = ["at_risk_rows", "flush_rows", "put_cdf_rows", "roll_rows"]

US = 1000.0
Row = dict[str, float]


def put_cdf_rows(trace: Trace, *, points: int = 200) -> list[Row]:
    """Return rows {share, put_us} from share 0 (the smallest) to 1.

    The steps are even, and ever finer near 1.
    """
    ordered = np.sort((trace.put_ns - trace.arrival_ns)[trace.size > 0])
    if not len(ordered):
        return []
    even = np.linspace(0, 1, points)
    finer = 1 - np.logspace(-2, -np.log10(max(len(ordered), 101)), points // 4)
    shares = np.unique(np.concatenate((even, finer)))
    return [{"share": float(share), "put_us": quantile(ordered, float(share)) / US} for share in shares]


def at_risk_rows(trace: Trace, *, points: int = 400) -> list[Row]:
    """Return rows {time_us, messages, bytes}: the losses of power losses at even moments."""
    if not trace.messages:
        return []
    moments = np.linspace(trace.arrival_ns[0], trace.load_ns, points).astype(np.int64)
    before, stored = (np.concatenate(([0], np.cumsum(each))) for each in (trace.size, np.minimum(trace.size, 1)))
    written = trace.written_ns.searchsorted(moments, side="right")
    durable = trace.durable_ns.searchsorted(moments, side="right")
    columns = zip(moments, stored[written] - stored[durable], before[written] - before[durable], strict=True)
    return [{"time_us": int(at) / US, "messages": int(count), "bytes": int(size)} for at, count, size in columns]


def roll_rows(trace: Trace) -> list[Row]:
    """Return rows {file_index, time_us, stall_us}, one per roll."""
    columns = (trace.rolls[name].tolist() for name in ("file_index", "asked_ns", "ready_ns"))
    return [
        {"file_index": file_index, "time_us": asked / US, "stall_us": (ready - asked) / US}
        for file_index, asked, ready in zip(*columns, strict=True)
    ]


def flush_rows(trace: Trace) -> list[Row]:
    """Return rows {round, start_us, end_us, file_index, messages, device_bytes}, one per sync."""
    flushes = trace.flushes
    rows: list[Row] = []
    for row in flushes[["round", "start_ns", "end_ns", "file_index", "messages", "device_bytes"]].tolist():
        number, start, end, file_index, messages, device_bytes = row
        rows.append(
            {
                "round": number,
                "start_us": start / US,
                "end_us": end / US,
                "file_index": file_index,
                "messages": messages,
                "device_bytes": device_bytes,
            }
        )
    return rows
