"""Convert puts of driven slices for the simulator, and compute their messages at risk.

Only calibrating slices become a table. Slices under group commit make a table of their own, since their puts do more
than others, and share the interpreter with answers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tornpage.bench.calibration.driven import Driven
from tornpage.sim.device.put_table import PutTable, lately_ns
from tornpage.sim.device.samples import Samples
from tornpage.sim.device.stalls import StallLaw
from tornpage.sim.distributions import Int64s

__all__ = ["at_risk_mean", "disk_stalls_of", "durable_ns", "puts_of", "thread_stalls_of", "without_stalls"]

STALLED = 10
"""A sync that takes so many times the median of its kind met a stall of the disk."""
THREAD_STALLED_NS = 1_000_000
"""A put that begins so late, or takes so long, met a thread that did not run."""
SMALL_PAGES = 16
"""Stalls of larger syncs cannot be identified."""


def puts_of(slices: Sequence[Driven], stalls: StallLaw) -> PutTable:
    """Return the table of the puts of these slices, with the stalls of their thread.

    Raises TooFewSamples.
    """
    gap, lately, late, took = _all_puts(slices)
    runs = np.maximum(late, took) < THREAD_STALLED_NS
    return PutTable.of(gap_ns=gap[runs], lately_ns=lately[runs], late_ns=late[runs], took_ns=took[runs], stalls=stalls)


def thread_stalls_of(slices: Sequence[Driven]) -> StallLaw:
    """Return the stalls of the putting thread in these slices."""
    _, _, late, took = _all_puts(slices)
    longest = np.maximum(late, took)
    return StallLaw.of(longest[longest >= THREAD_STALLED_NS], seconds=_seconds(slices))


def _all_puts(slices: Sequence[Driven]) -> list[Int64s]:
    parts = [_puts(one) for one in slices]
    return [np.concatenate([part[place] for part in parts]) for place in range(4)]


def _puts(one: Driven) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return gap, recent mean gap, lateness and duration of all puts of a slice but the first.

    The slice waited for the first put.
    """
    free_ns, due_ns = one.written_ns[:-1], one.due_ns[1:]
    gap = np.maximum(due_ns - free_ns, 0)
    late = one.began_ns[1:] - np.maximum(due_ns, free_ns)
    return gap, lately_ns(one.due_ns)[1:], late, (one.written_ns - one.began_ns)[1:]


def without_stalls(found: Samples) -> Samples:
    """Return the samples without the syncs that met a stall."""
    return Samples(found.syncs[~_stalled(found)], found.probes)


def disk_stalls_of(loads: Samples, slices: Sequence[Driven]) -> StallLaw:
    """Return the disk stalls in these slices under group commit, which made the loads.

    Stalls depend on time: slices at 500 and at 4,000 puts a second meet equally many. If they were counted per sync, as
    part of its time, a busy load would make them rare for a quiet one.
    """
    met = loads.syncs["took_ns"][_stalled(loads)]
    return StallLaw.of(met, seconds=_seconds(slices))


def _seconds(slices: Sequence[Driven]) -> float:
    return sum(float(one.answered_ns.max(initial=0)) for one in slices) / 1e9


def _stalled(found: Samples) -> NDArray[np.bool_]:
    """Return which syncs met a stall.

    Their kind is the state of their blocks, since a journal may make one of them slow.
    """
    is_small, state, took_ns = found.syncs["pages"] <= SMALL_PAGES, found.syncs["state"], found.syncs["took_ns"]
    stalled = np.zeros(len(took_ns), bool)
    for kind in np.unique(state[is_small]):
        own = is_small & (state == kind)
        stalled |= own & (took_ns > STALLED * np.median(took_ns[own]))
    return stalled


def durable_ns(one: Driven) -> Int64s:
    """Return when each message of a slice was durable.

    Messages that no flush of the load covered are never durable.
    """
    ends = np.append(one.flushes["end_ns"], np.iinfo(np.int64).max)
    covered = np.searchsorted(one.flushes["to_offset"], one.end_offset, side="left")
    return ends[covered]


def at_risk_mean(begin_ns: int, end_ns: int, written_ns: Int64s, safe_ns: Int64s) -> float:
    """Return the mean number of messages from begin to end that were written and not yet safe."""
    exposed_ns = np.minimum(safe_ns, end_ns) - np.minimum(written_ns, end_ns)
    return float(exposed_ns.sum()) / (end_ns - begin_ns) if end_ns > begin_ns else 0.0
