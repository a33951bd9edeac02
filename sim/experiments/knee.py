"""At which load does each flush policy break?"""

from collections.abc import Iterator, Sequence

import numpy as np

from tornpage.sim.experiments.policies import policies
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, of, per_s, span_us
from tornpage.sim.results.tables import quantile

__all__ = ["KNEE", "knee_rate"]

RATES = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 6e5, 1e6, 1.2e6, 1.4e6, 1.6e6, 2e6)
MESSAGES = 1_000_000
"""Enough for a thousand puts slower than the p99.9."""
BROKEN = 10.0
"""A policy has broken where its p99 is this many times that at the smallest rate."""
FLUSHES = policies("sync", "woken at 4 pages", "async 500 ms", "pool + async 500 ms")


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy and rate."""
    for policy in FLUSHES:
        for rate in RATES:
            progress(f"{policy.name}, {rate:g} messages/s")
            trace = setup.trace(policy.scenario(setup.device, rate, messages=setup.count(MESSAGES)))
            took = np.sort(trace.put_ns - trace.arrival_ns)
            yield {
                "policy": policy.name,
                "rate_per_s": rate,
                "messages": trace.messages,
                "put_p50_us": quantile(took, 0.5) / 1000,
                "put_p99_us": quantile(took, 0.99) / 1000,
                "put_p999_us": quantile(took, 0.999) / 1000,
            }


def knee_rate(rows: Sequence[Row]) -> float | None:
    """Return the first of the rising rates at which one policy breaks; None without one."""
    limit = BROKEN * of(rows[0], "put_p99_us")
    return next((of(row, "rate_per_s") for row in rows if of(row, "put_p99_us") > limit), None)


def caption(rows: Sequence[Row]) -> str:
    """Describe the knee of each policy."""
    told = []
    for name, own in grouped(rows, "policy").items():
        knee, first = knee_rate(own), own[0]
        begins = f"{name}: p99 is {span_us(of(first, 'put_p99_us'))} at {per_s(of(first, 'rate_per_s'))}"
        if knee is None:
            end = per_s(of(own[-1], "rate_per_s"))
            told.append(f"{begins} and stays below {BROKEN:g} times that value up to {end}.")
        else:
            before = max((of(row, "rate_per_s") for row in own if of(row, "rate_per_s") < knee), default=knee)
            told.append(f"{begins}; it exceeds {BROKEN:g} times that value between {per_s(before)} and {per_s(knee)}.")
    few = min((of(row, "messages") for row in rows), default=0) < MESSAGES
    note = " Fewer than 1,000 puts are above the p99.9: do not trust it." if few else ""
    return " ".join(told) + note


KNEE = Experiment(
    name="knee",
    title="The knee: put latency as the load grows",
    question="Where does each flush policy break?",
    setting="Open random load of records of 1 KiB, files of 1 GiB made one ahead, 1,000,000 puts a point.",
    chart=Chart(
        "lines",
        Axis("rate_per_s", "offered load", "messages/s of 1 KiB", "log"),
        (
            Axis("put_p50_us", "put p50", "µs", "log"),
            Axis("put_p99_us", "put p99", "µs", "log"),
            Axis("put_p999_us", "put p99.9", "µs", "log"),
        ),
        series="policy",
    ),
    measure=measure,
    caption=caption,
)
