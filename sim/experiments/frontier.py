"""Which latency buys which safety? Crashes are moments of a trace.

The trace has the losses of every moment.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tornpage.sim.experiments.policies import POLICIES, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Overlay, Progress, Row, Setup
from tornpage.sim.experiments.words import listed, number, of, span_ms, span_us
from tornpage.sim.results.crashes import crash_moments, losses
from tornpage.sim.results.tables import quantile
from tornpage.sim.results.trace import Trace

__all__ = ["CHART", "FAILURES", "FRONTIER", "RATE", "caption", "front", "loss_row", "overlays", "simulated_row"]

RATE = 1_000.0
MESSAGES = 100_000
CRASHES = 1_000
FAILURES = {"power": "power loss", "kill": "process kill"}


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy and kind of failure that can lose its messages."""
    for policy in POLICIES.values():
        progress(policy.name)
        trace = setup.trace(policy.scenario(setup.device, RATE, messages=setup.count(MESSAGES, least=4_000)))
        moments = crash_moments(trace, setup.count(CRASHES), seed=setup.seed)
        for failure in FAILURES if policy.pool else ("power",):
            yield simulated_row(policy, trace, moments, failure)


def simulated_row(
    policy: StorePolicy, trace: Trace, moments: "np.ndarray[tuple[int], np.dtype[np.int64]]", failure: str
) -> Row:
    """Return the row of a policy whose simulated store crashes at these moments."""
    lost = losses(trace, moments)
    return loss_row(
        policy.name,
        f"{FAILURES[failure]}, simulated",
        put_p99_us=quantile(np.sort(trace.put_ns - trace.arrival_ns), 0.99) / 1000,
        messages=lost[f"{failure}_messages"].tolist(),
        size_bytes=lost[f"{failure}_bytes"].tolist(),
        ages_ms=(lost[f"{failure}_age_ns"] / 1e6).tolist(),
        answered=lost[f"{failure}_answered"].tolist(),
    )


def loss_row(
    policy: str,
    crash: str,
    *,
    put_p99_us: float,
    messages: Sequence[int],
    size_bytes: Sequence[int],
    ages_ms: Sequence[float],
    answered: Sequence[int],
) -> Row:
    """Return the row of a policy from its losses; the lists have one entry per crash."""
    return {
        "policy": policy,
        "crash": crash,
        "crashes": len(messages),
        "put_p99_us": put_p99_us,
        "lost_messages_mean": float(np.mean(messages)),
        "lost_messages_max": max(messages),
        "lost_bytes_mean": float(np.mean(size_bytes)),
        "lost_age_mean_ms": float(np.mean(ages_ms)),
        "lost_age_max_ms": max(ages_ms),
        "lost_answered_max": max(answered),
    }


def front(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of power losses on the front, fastest first.

    No other row is better than one of these in latency and age at once.
    """
    power = [row for row in rows if row["crash"] == f"{FAILURES['power']}, simulated"]
    kept: list[Row] = []
    for row in sorted(power, key=lambda row: (of(row, "put_p99_us"), of(row, "lost_age_mean_ms"))):
        if not kept or of(row, "lost_age_mean_ms") < of(kept[-1], "lost_age_mean_ms"):
            kept.append(row)
    return kept


def overlays(rows: Sequence[Row]) -> tuple[Overlay, ...]:
    """Draw the front in both panels."""
    best = front(rows)
    x = tuple(of(row, "put_p99_us") for row in best)
    panels = ("lost_messages_mean", "lost_age_mean_ms")
    return tuple(
        Overlay("Pareto front", x, tuple(of(row, column) for row in best), panel) for panel, column in enumerate(panels)
    )


def caption(rows: Sequence[Row]) -> str:
    """Describe the front, policies that lose acknowledged messages, and losses by a kill."""
    best = front(rows)
    told = [
        "No policy beats "
        + listed(
            [
                f"{row['policy']} (put p99 {span_us(of(row, 'put_p99_us'))}, a power loss loses "
                f"{number(of(row, 'lost_messages_mean'))} messages, the oldest {span_ms(of(row, 'lost_age_mean_ms'))} "
                "old, on average)"
                for row in best
            ]
        )
        + " in latency and age at once."
    ]
    lossless = {str(row["policy"]) for row in rows if str(row["crash"]).startswith(FAILURES["power"])}
    lossless -= {str(row["policy"]) for row in rows if of(row, "lost_answered_max")}
    told.append(
        f"Only {listed(sorted(lossless))} never lost an acknowledged message."
        if lossless
        else "Every policy lost acknowledged messages."
    )
    kills = [row for row in rows if row["crash"] == f"{FAILURES['kill']}, simulated"]
    told += [
        f"A process kill loses {number(of(row, 'lost_messages_mean'))} messages of {row['policy']} on average, "
        "and none of the others."
        for row in kills
    ]
    return " ".join(told)


CHART = Chart(
    "points",
    Axis("put_p99_us", "put latency, p99", "µs", "log"),
    (
        Axis("lost_messages_mean", "lost, mean", "messages", "log"),
        Axis("lost_age_mean_ms", "age of the oldest lost, mean", "ms", "log"),
    ),
    series="crash",
    label="policy",
)
FRONTIER = Experiment(
    name="frontier",
    title="The loss-latency frontier",
    question="Which latency buys which safety?",
    setting="Open load of 1,000 messages/s of 1 KiB, files of 1 GiB; crashes at moments drawn evenly from the load.",
    chart=CHART,
    measure=measure,
    caption=caption,
    overlays=overlays,
)
