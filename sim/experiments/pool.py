"""How long must a burst be until a transient store pool has no buffer left?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.impl.config.policy import CommitPolicy
from tornpage.sim.experiments.policies import POLICIES
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Overlay, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of
from tornpage.sim.results.trace import Trace
from tornpage.sim.scenario import Pool
from tornpage.sim.workload import OpenPoisson, Sizes

__all__ = ["POOL", "empty_s", "formula_s"]

MIB = 1 << 20
FILE_BYTES = 8 * MIB
RECORD_BYTES = 32 << 10
COMMITTED_MIB_PER_S = 125
"""The speed of the committer when the kernel throttles it to a gp3 volume."""
OVER = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0)
"""Rates of the burst, as multiples of the committer's rate."""
BUFFERS = (3, 5, 8, 16)
AHEAD = 2
"""Files requested before they are needed; each takes a buffer."""


def formula_s(buffers: int, mib_per_s: float) -> float:
    """Return the time to an empty pool: P F / (r - c).

    P leaves out the buffers of files ahead. Source: docs/disks/presets.md, formula 5.
    """
    return (buffers - AHEAD) * FILE_BYTES / MIB / (mib_per_s - COMMITTED_MIB_PER_S)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per pool and rate."""
    device = replace(setup.device, commit_ns_per_kib=10**9 // (COMMITTED_MIB_PER_S * 1024))
    for buffers in BUFFERS:
        progress(f"{buffers} buffers")
        policy = replace(POLICIES["pool + async 500 ms"], pool=Pool(buffers, CommitPolicy(10)))
        for over in OVER:
            mib_per_s = over * COMMITTED_MIB_PER_S
            load = OpenPoisson(mib_per_s * MIB / RECORD_BYTES, Sizes.of(RECORD_BYTES))
            lasts_s = 1.5 * formula_s(buffers, mib_per_s) + 6 * FILE_BYTES / MIB / COMMITTED_MIB_PER_S
            scenario = policy.scenario(device, load, duration_ns=round(lasts_s * 1e9), file_bytes=FILE_BYTES)
            found = empty_s(setup.trace(scenario))
            yield {
                "pool": f"{buffers} buffers",
                "buffers": buffers,
                "burst_mib_per_s": mib_per_s,
                "empty_s": found,
                "formula_s": formula_s(buffers, mib_per_s),
            }


def empty_s(trace: Trace) -> float | None:
    """Return when the first file without a buffer was begun; None if all files had one."""
    made = trace.allocations
    files = np.unique(trace.offset // trace.scenario.file_bytes)
    without = np.setdiff1d(files, trace.commits["file_index"])
    begun = made["start_ns"][np.isin(made["file_index"], without)]
    return int(begun.min()) / 1e9 if len(begun) else None


def overlays(rows: Sequence[Row]) -> tuple[Overlay, ...]:
    """Draw the formula for each pool."""
    curves = []
    for name, own in grouped(rows, "pool").items():
        bursts = [of(row, "burst_mib_per_s") for row in own]
        rates = np.geomspace(min(bursts), max(bursts), 24)
        x = tuple(float(rate) for rate in rates)
        buffers = int(of(own[0], "buffers"))
        curves.append(Overlay(f"formula, {name}", x, tuple(formula_s(buffers, rate) for rate in x)))
    return tuple(curves)


def caption(rows: Sequence[Row]) -> str:
    """Describe how long pools last, and the error of the formula in files."""
    told, off = [], []
    for name, own in grouped(rows, "pool").items():
        lasting = [row for row in own if row["empty_s"] is None]
        emptied = [row for row in own if row["empty_s"] is not None]
        off += [
            abs(of(row, "empty_s") - of(row, "formula_s")) * (of(row, "burst_mib_per_s") - COMMITTED_MIB_PER_S)
            for row in emptied
        ]
        if emptied:
            slowest, quickest = (pick(emptied, key=lambda row: of(row, "burst_mib_per_s")) for pick in (min, max))
            told.append(
                f"{name}: {number(of(slowest, 'empty_s'))} s at {number(of(slowest, 'burst_mib_per_s'))} MiB/s, "
                f"{number(of(quickest, 'empty_s'))} s at {number(of(quickest, 'burst_mib_per_s'))} MiB/s."
            )
        if lasting:
            rates = [number(of(row, "burst_mib_per_s")) for row in lasting]
            told.append(f"{name} had a buffer for every file at {listed(rates)} MiB/s.")
    if off:
        told.append(
            f"The formula (P - {AHEAD}) F / (r - c) is at most {number(max(off) * MIB / FILE_BYTES)} buffers off, "
            f"since buffers return whole; P F / (r - c) is too large, since {AHEAD} files are "
            f"requested ahead and take a buffer each."
        )
    told.append(f"The committer writes {COMMITTED_MIB_PER_S} MiB/s here, as on a throttled volume.")
    return " ".join(told)


POOL = Experiment(
    name="pool",
    title="Pool exhaustion",
    question="How many buffers does a burst need?",
    setting="Buffers of 8 MiB, records of 32 KiB, a committer of 125 MiB/s; a burst from the start that does not end.",
    chart=Chart(
        "lines",
        Axis("burst_mib_per_s", "rate of the burst", "MiB/s", "log"),
        (Axis("empty_s", "until no buffer is free", "s", "log"),),
        series="pool",
    ),
    measure=measure,
    caption=caption,
    overlays=overlays,
)
