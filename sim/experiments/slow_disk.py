"""Does the order of policies change on a slower disk?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.distributions import Constant, Exponential, LogNormal
from tornpage.sim.experiments.policies import policies
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, of, span_us
from tornpage.sim.results.tables import quantile

__all__ = ["SLOW_DISK", "scaled_sync"]

SYNC_US = (20, 50, 100, 200, 500, 700, 1_000, 2_000, 5_000, 10_000)
RATE = 5_000.0
MESSAGES = 100_000
FLUSHES = policies("sync", "woken at 4 pages", "async 10 ms", "async 500 ms", "pool + async 500 ms")


def scaled_sync(device: DeviceTimes, p50_ns: float) -> DeviceTimes:
    """Return a device whose syncs have this median, with everything else unchanged.

    Raises TypeError for an unknown law.
    """
    sync: Constant | Exponential | LogNormal
    match device.sync:
        case Constant():
            sync = Constant(round(p50_ns))
        case Exponential():
            sync = Exponential(p50_ns / float(np.log(2)))
        case LogNormal(_, sigma):
            sync = LogNormal(p50_ns, sigma)
        case other:
            raise TypeError(f"no rule to scale a sync that follows {type(other).__name__}")
    return replace(device, sync=sync)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy and disk."""
    for sync_us in SYNC_US:
        progress(f"a sync of {sync_us} µs")
        device = scaled_sync(setup.device, sync_us * 1000)
        for policy in FLUSHES:
            trace = setup.trace(policy.scenario(device, RATE, messages=setup.count(MESSAGES)))
            took = np.sort(trace.put_ns - trace.arrival_ns)
            safe = np.sort(trace.durable_ns - trace.arrival_ns)
            yield {
                "policy": policy.name,
                "sync_p50_us": sync_us,
                "put_p99_us": quantile(took, 0.99) / 1000,
                "durable_p99_us": quantile(safe, 0.99) / 1000,
            }


def caption(rows: Sequence[Row]) -> str:
    """Describe whether the order changes, and the effect of the slowest disk on each policy.

    Policies are ordered by answer and by durability.
    """
    told = [
        _order(rows, "put_p99_us", "until the answer"),
        _order(rows, "durable_p99_us", "until a message is on the disk"),
    ]
    untouched = []
    for name, own in grouped(rows, "policy").items():
        first, last = own[0], own[-1]
        if of(last, "put_p99_us") <= 1.1 * of(first, "put_p99_us"):
            untouched.append(name)
            continue
        told.append(
            f"{name}: answered within {span_us(of(first, 'put_p99_us'))} at a sync of "
            f"{span_us(of(first, 'sync_p50_us'))}, {span_us(of(last, 'put_p99_us'))} at "
            f"{span_us(of(last, 'sync_p50_us'))}."
        )
    if untouched:
        told.append(
            f"The disk does not affect the answers of {'; '.join(untouched)}: puts do not wait for syncs there."
        )
    return " ".join(told)


def _order(rows: Sequence[Row], column: str, what: str) -> str:
    orders = {}
    for own in grouped(rows, "sync_p50_us").values():
        order = tuple(str(row["policy"]) for row in sorted(own, key=lambda row: of(row, column)))
        orders[of(own[0], "sync_p50_us")] = order
    disks = sorted(orders)
    changes = [at for before, at in pairwise(disks) if orders[before] != orders[at]]
    if not changes:
        return f"By the p99 {what} the order is the same on every disk: {' < '.join(orders[disks[0]])}."
    return (
        f"By the p99 {what} the order changes on the way to {', '.join(map(span_us, changes))}: from "
        f"{' < '.join(orders[disks[0]])} to {' < '.join(orders[disks[-1]])}."
    )


SLOW_DISK = Experiment(
    name="slow-disk",
    title="What if the disk were slower?",
    question="Does the order of policies change on a slower disk?",
    setting="Open load of 5,000 messages/s of 1 KiB; only the median of a sync differs.",
    chart=Chart(
        "lines",
        Axis("sync_p50_us", "sync, p50", "µs", "log"),
        (
            Axis("put_p99_us", "until the answer, p99", "µs", "log"),
            Axis("durable_p99_us", "until it is on the disk, p99", "µs", "log"),
        ),
        series="policy",
    ),
    needs_law=True,
    measure=measure,
    caption=caption,
)
