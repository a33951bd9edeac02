"""Convert puts of driven slices for the simulator, and compute their messages at risk.

Only calibrating slices become a table. Slices under group commit make a table of their own, since their puts do more
than others, and share the interpreter with answers.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tornpage.bench.calibration.driven import Driven
from tornpage.bench.calibration.load_slices import samples_of
from tornpage.sim.device.put_table import AFTER_NS, BEFORE_NS, PutTable, lately_ns
from tornpage.sim.device.samples import Samples
from tornpage.sim.device.stalls import NEVER, StallLaw, StallSlice
from tornpage.sim.device.sync_table import TooFewSamples
from tornpage.sim.distributions import Int64s

__all__ = ["at_risk_mean", "disk_stalls_of", "durable_ns", "puts_of", "thread_stalls_of", "without_stalls"]

STALLED = 10
"""A sync that takes so many times the median of its kind met a stall of the disk."""
THREAD_STALLED_NS = 1_000_000
"""A put that begins so late, or takes so long, met a thread that did not run."""
SMALL_PAGES = 16
"""Stalls of larger syncs cannot be identified."""


def puts_of(slices: Sequence[Driven], stalls: StallLaw, *, tells_flushes: bool = False) -> PutTable:
    """Return the table of the puts of these slices, with the stalls of their thread.

    With `tells_flushes` the puts beside a flush have a table of their own, if there are enough of them. Raises
    TooFewSamples.
    """
    puts = _joined(_puts(one) for one in slices)
    runs = np.maximum(*puts[2:]) < THREAD_STALLED_NS
    if tells_flushes:
        near = np.concatenate([_beside_a_flush(one) for one in slices])
        try:
            return _table(puts, runs & ~near, stalls, beside=_table(puts, runs & near, NEVER))
        except TooFewSamples:
            pass
    return _table(puts, runs, stalls)


def _table(
    puts: Sequence[Int64s], chosen: NDArray[np.bool_], stalls: StallLaw, beside: PutTable | None = None
) -> PutTable:
    gap, lately, late, took = (column[chosen] for column in puts)
    return PutTable.of(gap_ns=gap, lately_ns=lately, late_ns=late, took_ns=took, stalls=stalls, beside=beside)


def _beside_a_flush(one: Driven) -> NDArray[np.bool_]:
    """Return which puts of a slice but the first could begin beside a flush."""
    ready_ns = np.maximum(one.due_ns[1:], one.written_ns[:-1])
    starts_ns, ends_ns = one.flushes["start_ns"] - BEFORE_NS, one.flushes["end_ns"] + AFTER_NS
    place = starts_ns.searchsorted(ready_ns, side="right") - 1
    return (place >= 0) & (ready_ns < np.append(ends_ns, 0)[place])


def thread_stalls_of(slices: Sequence[Driven]) -> StallLaw:
    """Return the stalls of the putting thread in these slices."""
    return StallLaw.of(_thread_stalls(one) for one in slices)


def _thread_stalls(one: Driven) -> StallSlice:
    """Return the stalls of one slice. Each begins when its put could have begun."""
    _, _, late, took = _puts(one)
    longest = np.maximum(late, took)
    return _stall_slice(one, (one.began_ns[1:] - late), longest, longest >= THREAD_STALLED_NS)


def _stall_slice(one: Driven, begins_ns: Int64s, lasts_ns: Int64s, stalled: NDArray[np.bool_]) -> StallSlice:
    """Return the stalls of a slice that begin before its last answer."""
    duration_ns = max(int(one.answered_ns.max(initial=0)), 1)
    stalled = stalled & (begins_ns >= 0) & (begins_ns <= duration_ns)
    return StallSlice(duration_ns, tuple(begins_ns[stalled].tolist()), tuple(lasts_ns[stalled].tolist()))


def _joined(parts: Iterable[tuple[Int64s, ...]]) -> list[Int64s]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


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


def disk_stalls_of(slices: Sequence[Driven]) -> StallLaw:
    """Return the disk stalls in these slices under group commit.

    Stalls depend on time: slices at 500 and at 4,000 puts a second meet equally many. If they were counted per sync, as
    part of its time, a busy load would make them rare for a quiet one.
    """
    samples = [samples_of(one, 0) for one in slices]
    stalled = _stalled(Samples.joined(samples))
    ends = np.cumsum([len(found.syncs) for found in samples])
    return StallLaw.of(
        _stall_slice(one, one.flushes["start_ns"][1:], found.syncs["took_ns"], own)  # samples leave the first sync out
        for one, found, own in zip(slices, samples, np.split(stalled, ends[:-1]), strict=True)
    )


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
