"""Losses of a crash at any moment of a trace.

A kill loses what no commit has covered, a power loss what no sync has covered. A crash may come at any nanosecond, and
a trace has the losses of all of them, so that no run is needed for each. Pages that the kernel has written by itself
count as lost, since no barrier covers them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tornpage.sim.distributions import Int64s
from tornpage.sim.results.tables import quantile
from tornpage.sim.results.trace import Trace
from tornpage.sim.streams import stream

__all__ = ["LOSS_DTYPE", "CrashLosses", "crash_moments", "figures", "loss_rows", "losses", "summarise_losses"]

US = 1000.0
FAILURES = ("kill", "power")
COLUMNS = ("messages", "bytes", "age_ns", "answered")
LOSS_DTYPE: np.dtype[Any] = np.dtype(
    [
        ("at_ns", np.int64),
        *(
            (f"{failure}_{what}", np.int64)
            for failure in FAILURES
            for what in ("messages", "bytes", "age_ns", "answered")
        ),
    ]
)
"""One row per moment.

`age_ns` is for how long the oldest lost message had been stored. `answered` counts lost messages whose puts were
acknowledged.
"""


@dataclass(frozen=True, slots=True)
class CrashLosses:
    """Losses by crashes of one kind, over all moments."""

    crashes: int
    share_with_loss: float
    messages_mean: float
    messages_p99: int
    messages_max: int
    bytes_mean: float
    bytes_max: int
    age_p99_us: float
    age_max_us: float
    answered_max: int


def crash_moments(trace: Trace, count: int, *, seed: int) -> Int64s:
    """Return `count` moments in order, drawn evenly from the load of a trace.

    The load lasts from the first arrival to the last put.
    """
    if not trace.messages:
        return np.zeros(0, np.int64)
    return np.sort(stream(seed, "crashes").integers(trace.arrival_ns[0], trace.load_ns, count, endpoint=True))


def losses(trace: Trace, at_ns: Int64s) -> NDArray[np.void]:
    """Return a row of LOSS_DTYPE for each moment."""
    table = np.zeros(len(at_ns), LOSS_DTYPE)
    table["at_ns"] = at_ns
    stored = np.concatenate(([0], np.cumsum(np.minimum(trace.size, 1))))
    size_bytes = np.concatenate(([0], np.cumsum(trace.size)))
    written = trace.written_ns.searchsorted(at_ns, side="right")
    # a refusal is answered at once, though puts before it still wait for a replica: it is no acknowledgement
    told = np.maximum.accumulate(np.where(trace.size > 0, trace.put_ns, 0))
    answered = np.minimum(told.searchsorted(at_ns, side="right"), written)
    for failure, column in zip(FAILURES, (trace.committed_ns, trace.durable_ns), strict=True):
        safe = column.searchsorted(at_ns, side="right")
        lost = stored[written] - stored[safe]
        table[f"{failure}_messages"] = lost
        table[f"{failure}_bytes"] = size_bytes[written] - size_bytes[safe]
        table[f"{failure}_answered"] = stored[np.maximum(answered, safe)] - stored[safe]
        if trace.messages:
            oldest = np.minimum(stored.searchsorted(stored[safe], side="right") - 1, trace.messages - 1)
            table[f"{failure}_age_ns"] = np.where(lost > 0, at_ns - trace.written_ns[oldest], 0)
    return table


def summarise_losses(table: NDArray[np.void], failure: str) -> CrashLosses:
    """Return a summary of the losses of one kind ("kill" or "power")."""
    messages, size_bytes, age, answered = (np.sort(table[f"{failure}_{what}"]) for what in COLUMNS)
    if not len(table):
        return CrashLosses(0, 0.0, 0.0, 0, 0, 0.0, 0, 0.0, 0.0, 0)
    return CrashLosses(
        crashes=len(table),
        share_with_loss=float(np.count_nonzero(messages) / len(table)),
        messages_mean=float(messages.mean()),
        messages_p99=quantile(messages, 0.99),
        messages_max=int(messages[-1]),
        bytes_mean=float(size_bytes.mean()),
        bytes_max=int(size_bytes[-1]),
        age_p99_us=quantile(age, 0.99) / US,
        age_max_us=int(age[-1]) / US,
        answered_max=int(answered[-1]),
    )


def figures(table: NDArray[np.void]) -> dict[str, float | int]:
    """Return both summaries by their names in documents."""
    named: dict[str, float | int] = {"crashes": len(table)}
    for failure in FAILURES:
        found = summarise_losses(table, failure)
        for name in found.__slots__:
            if name != "crashes":
                named[f"{failure}_crash_{name}"] = getattr(found, name)
    return named


def loss_rows(table: NDArray[np.void]) -> list[dict[str, float]]:
    """Return rows for plots: the columns of LOSS_DTYPE, times in us."""
    names = table.dtype.names or ()
    return [
        {
            f"{name[:-2]}us" if name.endswith("_ns") else name: value / US if name.endswith("_ns") else value
            for name, value in zip(names, row, strict=True)
        }
        for row in table.tolist()
    ]
