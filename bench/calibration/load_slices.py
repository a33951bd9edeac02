"""The real store under a load of the calibration: its syncs, and its own work around them.

| probe | measured from |
|---|---|
| put | an asynchronous store: from the begin of a put until it returns |
| request | a synchronous store: the same during a flush, so that the put wakes no thread |
| wake | from the begin of a put that finds the flusher asleep until its flush; `amount`: ns since the put before |
| answer | from the end of a flush to the first and to the last of its answers; `amount`: answers before it |
| turn | from the end of a flush to the begin of the next one, for which puts already wait; `amount`: its answers |
"""

from collections.abc import Iterator

import numpy as np

from tornpage.bench.calibration.driven import RECORD_BYTES, Driven, drive
from tornpage.impl.config.policy import PAGE_BYTES, AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.samples import MODES, PROBES, STATES, Samples
from tornpage.sim.distributions import Int64s
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import OpenPoisson, Sizes

__all__ = ["load_slice", "samples_of"]

FILE_BYTES = 32 << 20
TURN_NS, ANSWER_NS = 100_000, 15_000
"""The time after a flush, and after each of its answers, until its thread is asleep."""
LONG_NS = 1_000_000_000
"""The pause before the first put."""
FLUSH_MS = 20
"""The interval of an asynchronous store: short, so that a slice has some flushes."""

_WARM_UPS = {FlushDiskType.SYNC_FLUSH: WarmUp.NONE, FlushDiskType.ASYNC_FLUSH: WarmUp.POPULATE}
"""Syncs are measured on reserved blocks, puts without the first touch of pages.

The first touch has its own probe.
"""

Row = tuple[int, ...]


def load_slice(
    directory: str, flush: FlushDiskType, rate_per_s: int, seconds: float, rng: np.random.Generator, round_number: int
) -> Samples:
    """Return the samples of a new store under this open load.

    Raises HarnessError, StoreError, OSError.
    """
    scenario = Scenario(
        flush=FlushPolicy(flush, flush_interval_commit_log=FLUSH_MS),
        allocation=AllocationPolicy(files_ahead=0, warm_up=_WARM_UPS[flush]),
        device=PRESETS["vm-ext4"],
        workload=OpenPoisson(float(rate_per_s), Sizes.of(RECORD_BYTES)),
        file_bytes=FILE_BYTES,
        messages=min(round(rate_per_s * seconds), FILE_BYTES // RECORD_BYTES // 2),
    )
    return samples_of(drive(directory, scenario, int(rng.integers(1 << 32))), round_number)


def samples_of(driven: Driven, round_number: int) -> Samples:
    """Return the syncs of a slice of the real store, and the probes of the table above."""
    rate_per_s = round(driven.scenario.workload.rate_per_s)  # type: ignore[union-attr]  # driven by open loads only
    mode, state = MODES.index("mmap"), STATES.index("written" if driven.scenario.is_forced else "reserved")
    flushes = driven.flushes
    pages = -(-flushes["to_offset"] // PAGE_BYTES) - flushes["from_offset"] // PAGE_BYTES
    gaps = flushes["start_ns"][1:] - flushes["end_ns"][:-1]
    took = flushes["end_ns"] - flushes["start_ns"]
    syncs = [
        (round_number, mode, state, rate_per_s, *row)
        for row in zip(pages[1:].tolist(), gaps.tolist(), took[1:].tolist(), strict=True)
    ]
    rows = _group_commit(driven) if driven.scenario.answers_after_flush else _puts("put", driven, slice(None))
    return Samples.of(syncs, ((round_number, *row) for row in rows))


def _puts(probe: str, driven: Driven, seen: slice | Int64s) -> Iterator[Row]:
    number = PROBES.index(probe)
    for gap, took in zip(
        _rests_ns(driven)[seen].tolist(), (driven.written_ns - driven.began_ns)[seen].tolist(), strict=True
    ):
        yield number, 0, 0, RECORD_BYTES, gap, took


def _rests_ns(driven: Driven) -> Int64s:
    """Return the time from the previous put's begin to each put's begin."""
    return np.diff(driven.began_ns, prepend=-LONG_NS)


def _group_commit(driven: Driven) -> Iterator[Row]:
    flushes = driven.flushes
    starts, ends = flushes["start_ns"], flushes["end_ns"]
    running = np.searchsorted(starts, driven.began_ns, side="right") - 1
    while_flushing = np.flatnonzero((running >= 0) & (driven.written_ns <= ends[np.maximum(running, 0)]))
    yield from _puts("request", driven, while_flushing)
    yield from _answers(driven)
    rests = _rests_ns(driven)
    first = np.searchsorted(driven.end_offset, flushes["from_offset"][1:], side="right")
    for number, row in enumerate(first.tolist()):
        if row == len(driven.end_offset):
            break
        ended, begins = int(ends[number]), int(starts[number + 1])
        answers = int(flushes["to_offset"][number] - flushes["from_offset"][number]) // RECORD_BYTES
        began = int(driven.began_ns[row])
        if driven.written_ns[row] <= ended:
            yield PROBES.index("turn"), 0, 0, answers, 0, begins - ended
        elif began > ended + TURN_NS + answers * ANSWER_NS:
            yield PROBES.index("wake"), 0, 0, int(rests[row]), began - ended, begins - began


def _answers(driven: Driven) -> Iterator[Row]:
    """Yield the first and the last answer of each flush."""
    bounds = [
        np.searchsorted(driven.end_offset, driven.flushes[name], side="right") for name in ("from_offset", "to_offset")
    ]
    for first, end, ended in zip(*(bound.tolist() for bound in bounds), driven.flushes["end_ns"].tolist(), strict=True):
        for row in {first, end - 1} if end > first else ():
            yield PROBES.index("answer"), 0, 0, row - first, 0, int(driven.answered_ns[row]) - ended
