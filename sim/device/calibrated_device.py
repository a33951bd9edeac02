"""Make a device of the simulator from measured samples."""

import numpy as np

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.empirical import Empirical
from tornpage.sim.device.gap_table import GapTable
from tornpage.sim.device.samples import MODES, PROBES, STATES, Rows, Samples
from tornpage.sim.device.sync_table import KNOT_SLOPE, SLOPE_BITS, Layer, SyncTable, TooFewSamples, layer_of
from tornpage.sim.distributions import NO_TIME, Constant, Distribution, Floats, Int64s

__all__ = ["device_of"]

KIB = 1 << 10
GIB = 1 << 30
ANSWERS_ENOUGH = 10
"""The number of answers at one place from which a median is taken."""
STALLED_BEYOND = 0.99
"""The quantile of requests above which a request fell into a stall of the machine.

The stall also held up the sync at the same time, and that sync is already measured.
"""


def device_of(samples: Samples, *, name: str, mode: str, read_ahead_bytes: int) -> DeviceTimes:
    """Return the device whose bytes reach the file by `mode`, one of MODES.

    The store's own costs (put, request, wake, turn) were measured with the mapped log. They are used for both modes.
    Raises TooFewSamples, which names what is missing.
    """
    sync = samples.syncs[samples.syncs["mode"] == MODES.index(mode)]
    measured = SyncTable.of(*(_layer(sync, mode, state) for state in ("written", "reserved")))
    small = sync[(sync["rate_per_s"] == 0) & (sync["state"] == STATES.index("reserved")) & (sync["pages"] <= 4)]
    copy_ns_per_kib = round(_median(samples, "copy", per=KIB))
    puts, requests, wakes = (_rows(samples, probe) for probe in ("put", "request", "wake"))
    requests = requests[requests["took_ns"] <= np.quantile(requests["took_ns"], STALLED_BEYOND)]
    whole_put = GapTable.of(requests["gap_ns"], requests["took_ns"])
    answering_ns, answer_ns = _answers(samples)
    turns = _rows(samples, "turn")
    touch_page_ns, stall = _touch(samples, read_ahead_bytes)
    commit_ns, commit_ns_per_kib = _commit(samples)
    return DeviceTimes(
        name=name,
        sync=Constant(int(np.median(small["took_ns"])) if len(small) else 0),
        sync_ns_per_kib=int(measured.reserved.knots[-1, KNOT_SLOPE] * KIB // PAGE_BYTES >> SLOPE_BITS),
        measured=measured,
        put=_put_table(puts, copy_ns_per_kib),
        waiting_put=_put_table(requests, copy_ns_per_kib),
        copy_ns_per_kib=copy_ns_per_kib,
        touch_page_ns=touch_page_ns,
        read_ahead_bytes=read_ahead_bytes if stall != NO_TIME else 0,
        read_ahead_stall=stall,
        create_ns=round(_median(samples, "create", per=1)),
        reserve_ns_per_gib=round(_median(samples, "reserve", per=GIB)),
        sync_directory_ns=round(_median(samples, "sync_directory", per=1)),
        commit_ns=commit_ns,
        commit_ns_per_kib=commit_ns_per_kib,
        wake=GapTable.of(wakes["gap_ns"], np.maximum(wakes["took_ns"] - whole_put.medians_ns(wakes["amount"]), 0)),
        answering_ns=answering_ns,
        turn=_law(turns["took_ns"] - turns["amount"] * answer_ns),
        answer_ns=answer_ns,
    )


def _layer(sync: Rows, mode: str, state: str) -> Layer:
    rows = sync[sync["state"] == STATES.index(state)]
    chosen = rows["rate_per_s"] == 0
    return layer_of(rows[chosen], rows[~chosen], what=f"{mode}, {state} blocks")


def _rows(samples: Samples, probe: str) -> Rows:
    rows: Rows = samples.probes[samples.probes["probe"] == PROBES.index(probe)]
    if len(rows) < 1:
        raise TooFewSamples(f"no {probe!r} was measured")
    return rows


def _put_table(rows: Rows, copy_ns_per_kib: int) -> GapTable:
    return GapTable.of(rows["gap_ns"], np.maximum(rows["took_ns"] - rows["amount"] * copy_ns_per_kib // KIB, 0))


def _median(samples: Samples, probe: str, *, per: int) -> float:
    """Return the median time per unit, from the rows with the largest amount."""
    rows = _rows(samples, probe)
    largest = int(rows["amount"].max())
    return float(np.median(rows["took_ns"][rows["amount"] == largest])) * per / largest


def _law(took_ns: Int64s) -> Empirical:
    return Empirical.of(np.maximum(took_ns, 0))


def _touch(samples: Samples, read_ahead_bytes: int) -> tuple[int, Distribution]:
    """Return the time of the first store into a reserved page, and the extra read-ahead time.

    The first store into a read-ahead window takes the extra time.
    """
    rows = _rows(samples, "touch")
    rows = rows[rows["state"] == STATES.index("reserved")]
    amount = int(rows["amount"].max())
    begins_window = (
        rows["position"] % read_ahead_bytes < amount if read_ahead_bytes > amount else np.zeros(len(rows), bool)
    )
    plain_ns = float(np.median(rows["took_ns"][~begins_window]))
    stalls = rows["took_ns"][begins_window] - round(plain_ns)
    return round(plain_ns * PAGE_BYTES / amount), _law(stalls) if len(stalls) else NO_TIME


def _commit(samples: Samples) -> tuple[int, int]:
    """Return the fixed time of a pwrite and its time per KiB.

    They are those of the line through the smallest and the largest size.
    """
    rows = _rows(samples, "pwrite")
    small, large = int(rows["amount"].min()), int(rows["amount"].max())
    small_ns, large_ns = (float(np.median(rows["took_ns"][rows["amount"] == size])) for size in (small, large))
    per_kib = max(large_ns - small_ns, 0.0) * KIB / max(large - small, 1)
    return max(round(small_ns - per_kib * small / KIB), 0), round(per_kib)


def _answers(samples: Samples) -> tuple[int, int]:
    """Return the delay of the first answer after a group commit, and of each further one."""
    rows = _rows(samples, "answer")
    points = [
        (float(place), float(np.median(rows["took_ns"][rows["amount"] == place])), float(count))
        for place, count in zip(*np.unique(rows["amount"], return_counts=True), strict=True)
        if count >= ANSWERS_ENOUGH
    ]
    first_ns = int(np.median(rows["took_ns"][rows["amount"] == rows["amount"].min()]))
    return max(first_ns, 0), max(round(_slope(np.array(points))), 0) if len(points) > 1 else 0


def _slope(points: Floats) -> float:
    """Return the slope of the line through rows (x, y, weight), by least squares."""
    x, y, weight = points.T
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    return float((weight * x * y).sum() / (weight * x * x).sum())
