"""The cost of warm-up: what making pages ready costs, and what it saves.

The simulated methods are shown beside measurements of the machine of `vm-ext4` (docs/disks/presets.md, two runs each).
The measurements include methods that the store does not offer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tornpage.impl.config.policy import PAGE_BYTES, AllocationPolicy, FlushPolicy, WarmUp
from tornpage.sim.experiments.policies import ASYNC, RECORD_BYTES, SYNC, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of, span_us
from tornpage.sim.results.trace import Trace

__all__ = ["MEASURED", "WARM_UP", "device_bytes_of_warm_up"]

GIB = 1 << 30
RATE = 20_000.0
FILE_BYTES = 64 << 20
FILES = 6


@dataclass(frozen=True, slots=True)
class Measured:
    """Per GiB, both runs: seconds, and bytes written by the device for each byte."""

    seconds: tuple[float, float]
    device_share: float


MEASURED = {
    "touch (fallocated file)": Measured((0.18, 0.15), 1.00),
    "touch and force": Measured((0.55, 0.57), 1.12),
    "populate (fallocated file)": Measured((0.16, 0.41), 1.00),
    "touch (sparse file)": Measured((1.32, 1.83), 1.00),
    "MAP_POPULATE": Measured((0.70, 0.06), 0.0),
    "mlock": Measured((0.75, 0.06), 0.0),
    "zeros by 1 MiB writes": Measured((0.84, 0.45), 1.00),
}
"""Source: docs/disks/presets.md, "Allocation and warm-up"."""
SIMULATED: dict[str, tuple[FlushPolicy, WarmUp]] = {
    "none": (ASYNC, WarmUp.NONE),
    "touch (fallocated file)": (ASYNC, WarmUp.TOUCH),
    "touch and force": (SYNC, WarmUp.TOUCH_AND_FORCE),
    "populate (fallocated file)": (ASYNC, WarmUp.POPULATE),
}
SECONDS, BYTES, WORST = "warm-up, s per GiB", "written by the device for it, bytes per byte", "slowest store, µs"


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per method and bill."""
    messages = setup.count(FILES * FILE_BYTES // RECORD_BYTES, least=2 * FILE_BYTES // RECORD_BYTES)

    def simulated(flush: FlushPolicy, warm_up: WarmUp) -> Trace:
        policy = StorePolicy("", flush, allocation=AllocationPolicy(warm_up=warm_up))
        return setup.trace(policy.scenario(setup.device, RATE, messages=messages, file_bytes=FILE_BYTES))

    for method, (flush, warm_up) in SIMULATED.items():
        progress(method)
        trace = simulated(flush, warm_up)
        made = trace.allocations
        making_s = float((made["ready_ns"] - made["start_ns"]).mean()) / 1e9 * GIB / FILE_BYTES
        yield _row(method, SECONDS, making_s)
        yield _row(method, BYTES, device_bytes_of_warm_up(trace))
        held = trace.written_ns - trace.start_ns
        held[trace.rolls["row"]] -= trace.rolls["ready_ns"] - trace.rolls["asked_ns"]
        yield _row(method, WORST, int(held.max()) / 1000)
    for method in (name for name in MEASURED if name not in SIMULATED):
        yield _row(method, SECONDS, None)
        yield _row(method, BYTES, None)


def _row(method: str, bill: str, value: float | None) -> Row:
    known = MEASURED.get(method)
    both = None
    if known is not None and bill == SECONDS:
        both = known.seconds
    elif known is not None and bill == BYTES:
        both = (known.device_share, known.device_share)
    low, high = (None, None) if both is None else (min(both), max(both))
    return {"method": method, "bill": bill, "simulated": value, "measured_low": low, "measured_high": high}


def device_bytes_of_warm_up(trace: Trace) -> float:
    """Return the device bytes of the syncs that cover the warm-up, per byte of their files.

    Warm-up syncs its pages itself, or leaves them to the first flush of the file, which then writes all of it.
    """
    scenario, flushes = trace.scenario, trace.flushes
    if not scenario.is_warmed:
        return 0.0
    pages = -(-scenario.file_bytes // PAGE_BYTES)
    own = scenario.allocation.warm_up_syncs(file_pages=pages, flush_disk_type=scenario.flush.flush_disk_type)
    if own:
        return sum(own) * PAGE_BYTES / scenario.file_bytes
    _, firsts = np.unique(flushes["file_index"], return_index=True)
    return float(flushes["device_bytes"][firsts].mean()) / scenario.file_bytes


def caption(rows: Sequence[Row]) -> str:
    """Describe what warm-up costs and saves, and where the model differs from measurements."""
    bills = grouped(rows, "bill")
    costs = {str(row["method"]): row for row in bills[SECONDS]}
    slowest = {str(row["method"]): of(row, "simulated") for row in bills[WORST]}
    bare = slowest["none"]
    told = [f"Without warm-up the slowest store takes {span_us(bare)}."]
    for method, worst in slowest.items():
        if method != "none":
            told.append(
                f"{method} costs {number(of(costs[method], 'simulated'))} s per GiB and takes it to {span_us(worst)}."
            )
    off = [
        f"{method} ({number(of(row, 'simulated'))} s, measured {number(of(row, 'measured_low'))} to "
        f"{number(of(row, 'measured_high'))})"
        for method, row in costs.items()
        if row["simulated"] is not None
        and row["measured_low"] is not None
        and not of(row, "measured_low") / 1.5 <= of(row, "simulated") <= 1.5 * of(row, "measured_high")
    ]
    if off:
        told.append(f"The model differs from the measurement by half or more: {listed(off)}.")
    nothing = [str(row["method"]) for row in bills[BYTES] if row["measured_high"] == 0]
    if nothing:
        told.append(f"{listed(nothing)} wrote nothing to the device when measured: they prepare no blocks.")
    told.append("Stores after the first sync of a warmed file fault again (see the stall anatomy).")
    return " ".join(told)


WARM_UP = Experiment(
    name="warm-up",
    title="The warm-up bill",
    question="Is warming files up worth it?",
    setting="Open load of 20,000 messages/s of 1 KiB, files of 64 MiB; costs are per GiB.",
    chart=Chart(
        "bars",
        Axis("simulated", "simulated"),
        (Axis("method", "method", scale="names"),),
        panel_by="bill",
        low="measured_low",
        high="measured_high",
        range_label="measured on the machine of vm-ext4, two runs",
    ),
    measure=measure,
    caption=caption,
)
