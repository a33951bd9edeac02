"""Stall anatomy: what do puts wait for?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tornpage.impl.config.policy import AllocationPolicy, WarmUp
from tornpage.sim.experiments.policies import ASYNC, POLICIES, SYNC, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, number, of, span_us
from tornpage.sim.results.anatomy import anatomy

__all__ = ["STALLS"]

RATE = 20_000.0
MESSAGES = 400_000
FILE_BYTES = 64 << 20
FLUSH_LOCK_SHARE = 0.87
"""The share of a sync by `mmap.flush` that holds the interpreter lock.

It is the middle of the measurements (0.83 to 0.91; docs/disks/presets.md, "Copies and wake-ups").
"""

_ON_DEMAND, _AHEAD = AllocationPolicy(files_ahead=0), AllocationPolicy()
CASES = (
    (StorePolicy("on demand, mmap.flush", ASYNC, allocation=_ON_DEMAND), FLUSH_LOCK_SHARE),
    (StorePolicy("on demand", ASYNC, allocation=_ON_DEMAND), 0.0),
    (StorePolicy("on demand + touch", ASYNC, allocation=replace(_ON_DEMAND, warm_up=WarmUp.TOUCH)), 0.0),
    (StorePolicy("one ahead", ASYNC, allocation=_AHEAD), 0.0),
    (StorePolicy("one ahead + touch", ASYNC, allocation=replace(_AHEAD, warm_up=WarmUp.TOUCH)), 0.0),
    (StorePolicy("sync + one ahead + force", SYNC, allocation=replace(_AHEAD, warm_up=WarmUp.TOUCH_AND_FORCE)), 0.0),
    (replace(POLICIES["pool + async 500 ms"], name="pool"), 0.0),
)
CAUSES = {
    "queue": "puts alone",
    "touch": "first touch of a page",
    "read_ahead": "read-ahead window",
    "allocation": "next file",
    "reprotect": "re-protect fault",
    "flush_lock": "flush lock",
}


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy and cause."""
    for policy, share in CASES:
        progress(policy.name)
        scenario = policy.scenario(setup.device, RATE, messages=setup.count(MESSAGES), file_bytes=FILE_BYTES)
        trace = setup.trace(scenario)
        found = anatomy(trace, flush_lock_share=share)
        for cause, name in CAUSES.items():
            took_ns = getattr(found, f"{cause}_ns")
            yield {"policy": policy.name, "cause": name, "us_per_put": took_ns / trace.messages / 1000}


def caption(rows: Sequence[Row]) -> str:
    """Describe the greatest cause of each policy."""
    told = []
    for name, own in grouped(rows, "policy").items():
        total = sum(of(row, "us_per_put") for row in own)
        worst = max(own, key=lambda row: of(row, "us_per_put"))
        if total == 0:
            told.append(f"{name}: no waits at all.")
            continue
        share = of(worst, "us_per_put") / total
        told.append(f"{name}: {span_us(total)} per put, {number(100 * share)} % of it {worst['cause']}.")
    return (
        " ".join(told)
        + " A cause includes the time that it makes other puts wait. Re-protect faults and the flush lock are counted "
        "from the trace (2.9 µs a fault; 87 % of a sync), not fed back into it. Time slices of other processes and the "
        "kernel's throttle of writers are not simulated."
    )


STALLS = Experiment(
    name="stalls",
    title="Stall anatomy",
    question="What do puts wait for, under each way of preparing files?",
    setting="Open load of 20,000 messages/s of 1 KiB, files of 64 MiB; fdatasync every 500 ms unless said otherwise.",
    chart=Chart(
        "shares",
        Axis("us_per_put", "share of put latency; at the bar's end: µs per put", "%"),
        (Axis("policy", "files", scale="names"),),
        series="cause",
    ),
    measure=measure,
    caption=caption,
)
