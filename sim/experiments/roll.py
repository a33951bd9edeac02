"""The puts around a file roll, one panel per way of preparing files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.impl.config.policy import AllocationPolicy, WarmUp
from tornpage.sim.experiments.policies import ASYNC, RECORD_BYTES, SYNC, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of, per_s, span_us
from tornpage.sim.results.trace import Trace

__all__ = ["ROLL", "around_rolls"]

RATE = 50_000.0
FILE_BYTES = 16 << 20
ROLLS = 24
WINDOW_MS = 10
BINS = 80
NEAR_MS = 1.0
RISEN = 10.0
"""Puts near a roll are reported if they are 10 times slower than the slowest usual bin."""

_ON_DEMAND, _AHEAD = AllocationPolicy(files_ahead=0), AllocationPolicy()
CASES = (
    StorePolicy("on demand", ASYNC, allocation=_ON_DEMAND),
    StorePolicy("on demand + touch", ASYNC, allocation=replace(_ON_DEMAND, warm_up=WarmUp.TOUCH)),
    StorePolicy("one ahead", ASYNC, allocation=_AHEAD),
    StorePolicy("one ahead + touch", ASYNC, allocation=replace(_AHEAD, warm_up=WarmUp.TOUCH)),
    StorePolicy("sync + one ahead + force", SYNC, allocation=replace(_AHEAD, warm_up=WarmUp.TOUCH_AND_FORCE)),
)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy and time around the roll."""
    messages = setup.count(ROLLS * FILE_BYTES // RECORD_BYTES, least=3 * FILE_BYTES // RECORD_BYTES)
    for policy in CASES:
        progress(policy.name)
        trace = setup.trace(policy.scenario(setup.device, RATE, messages=messages, file_bytes=FILE_BYTES))
        made, rolls = trace.allocations, trace.rolls
        fixed: Row = {
            "policy": policy.name,
            "rolls": len(rolls),
            "longest_stall_us": int((rolls["ready_ns"] - rolls["asked_ns"]).max()) / 1000,
            "making_ms": float((made["ready_ns"] - made["start_ns"]).mean()) / 1e6,
            "filling_ms": FILE_BYTES / RECORD_BYTES / RATE * 1000,
            "lock_limit_per_s": 1e9 / max(setup.device.copy_ns(RECORD_BYTES), 1),
        }
        for at_ms, slowest_us in around_rolls(trace):
            yield {**fixed, "at_ms": at_ms, "put_max_us": slowest_us}


def around_rolls(trace: Trace) -> list[tuple[float, float]]:
    """Return (ms since the roll, slowest put in µs) of all rolls together.

    There is one entry per bin of arrival times with any put.
    """
    edges = np.linspace(-WINDOW_MS, WINDOW_MS, BINS + 1) * 1e6
    took = trace.put_ns - trace.arrival_ns
    slowest = np.full(BINS, -1, np.int64)
    for asked in trace.rolls["asked_ns"].tolist():
        first, end = trace.arrival_ns.searchsorted((asked + edges[0], asked + edges[-1]))
        bins = np.clip(np.searchsorted(edges, trace.arrival_ns[first:end] - asked, side="right") - 1, 0, BINS - 1)
        np.maximum.at(slowest, bins, took[first:end])
    centres = (edges[:-1] + edges[1:]) / 2e6
    return [(float(at), int(us) / 1000) for at, us in zip(centres, slowest, strict=True) if us >= 0]


def caption(rows: Sequence[Row]) -> str:
    """Describe which policies stall, and up to which rate one file ahead is enough."""
    firsts = [own[0] for own in grouped(rows, "policy").values()]
    still = [str(row["policy"]) for row in firsts if not of(row, "longest_stall_us")]
    told = [
        f"{row['policy']} stalls for up to {span_us(of(row, 'longest_stall_us'))} at a roll."
        for row in firsts
        if of(row, "longest_stall_us")
    ]
    if still:
        told.append(f"{listed(still)}: no roll waits.")
    for name, own in grouped(rows, "policy").items():
        near = [of(row, "put_max_us") for row in own if abs(of(row, "at_ms")) <= NEAR_MS]
        usual = float(np.median([of(row, "put_max_us") for row in own]))
        if name in still and near and max(near) > RISEN * usual:
            told.append(
                f"Under {name} puts right after a roll still take up to {span_us(max(near))}: they are the first to "
                "touch the pages of the new file."
            )
    for row in firsts:
        if "ahead" in str(row["policy"]):
            ends_at = FILE_BYTES / RECORD_BYTES / (of(row, "making_ms") / 1000)
            limit = of(row, "lock_limit_per_s")
            bound = f"at every rate of the put lock ({per_s(limit)})"
            if ends_at < limit:
                bound = f"up to {per_s(ends_at)}"
            told.append(
                f"{row['policy']} suffices {bound}: a file is made in {number(of(row, 'making_ms'))} ms, "
                f"filled here in {number(of(row, 'filling_ms'))} ms."
            )
    return " ".join(told)


ROLL = Experiment(
    name="roll",
    title="File rolls, close up",
    question="Is one file ahead enough?",
    setting="Open load of 50,000 messages/s of 1 KiB, files of 16 MiB, all rolls overlaid.",
    chart=Chart(
        "lines",
        Axis("at_ms", "since the roll", "ms"),
        (Axis("put_max_us", "slowest put", "µs", "log"),),
        panel_by="policy",
    ),
    measure=measure,
    caption=caption,
)
