"""What does a change of members cost?

A member joins a group of three, and later another one leaves. Members learn of both at their next rebalance, since the
notices of the broker are lost. RocketMQ drops a queue at once, and its next owner begins at the progress that is stored
then: both may consume it until each has looked. With a hand-over the next owner waits until the former one has stored
its last progress. Strategies differ in the number of queues that change their owner.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tornpage.impl.consumer.allocation import STRATEGIES
from tornpage.sim.consumers.group import Consumption, run_group
from tornpage.sim.consumers.scenario import NS_PER_MS, GroupScenario, Member
from tornpage.sim.distributions import Exponential
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of
from tornpage.sim.streams import stream

__all__ = ["REBALANCE"]

_S = 1_000 * NS_PER_MS
QUEUES, THREADS = 12, 4
RATE = 60.0
SERVICE_MS = 50
PERIODS_S = (1, 2, 5, 10, 20, 40)
RUNS = 4


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per way of changing owners, strategy and period."""
    effort = min(1.0, setup.effort)
    runs, rate = max(1, round(RUNS * effort)), RATE * max(0.1, effort)
    for hands_over in (False, True):
        for strategy in STRATEGIES:
            way = "hand-over" if hands_over else "drop"
            progress(f"{way}, {strategy}")
            for period_s in PERIODS_S:
                seeds = range(setup.seed, setup.seed + runs)
                found = [_run(each, strategy, period_s, rate, hands_over=hands_over) for each in seeds]
                yield _row(f"{way}, {strategy}", way, strategy, period_s, found)


def _run(seed: int, strategy: str, period_s: int, rate: float, *, hands_over: bool) -> Consumption:
    """Run a join after two periods and a leave two periods later. Members have drawn phases."""
    phases = stream(seed, "phases").random(4)
    joins = [0.0, 1.0, 1.0, 2.0]
    begins = [round((join + phase) * period_s * _S) for join, phase in zip(joins, phases, strict=True)]
    begins[0] = 0
    leaves = round((4 + phases[0]) * period_s * _S)
    members = tuple(
        Member(name, THREADS, begin, leaves if name == "b" else None)
        for name, begin in zip(("a", "b", "c", "d"), begins, strict=True)
    )
    scenario = GroupScenario(
        queues=QUEUES,
        members=members,
        rate_per_s=rate,
        service=Exponential(float(SERVICE_MS * NS_PER_MS)),
        duration_ns=round((7 * period_s + 5) * _S),
        strategy=STRATEGIES[strategy],
        rebalance_ns=period_s * _S,
        notice=None,
        hands_over=hands_over,
    )
    return run_group(scenario, seed)


def _row(series: str, way: str, strategy: str, period_s: int, found: Sequence[Consumption]) -> Row:
    return {
        "series": series,
        "way": way,
        "strategy": strategy,
        "period_s": period_s,
        "repeated_mean": float(np.mean([run.duplicates for run in found])),
        "longest_wait_s": float(np.mean([run.waits_ms().max() for run in found])) / 1_000,
        "moved_mean": float(np.mean([run.moved for run in found])),
        "idle_percent": float(np.mean([100 * run.idle_share for run in found])),
    }


def caption(rows: Sequence[Row]) -> str:
    """Describe repeated messages, waits, and how many queues strategies move."""
    told = []
    for way, own in grouped(rows, "way").items():
        worst = max(own, key=lambda row: of(row, "repeated_mean"))
        slowest = max(own, key=lambda row: of(row, "longest_wait_s"))
        told.append(
            f"{way}: up to {number(of(worst, 'repeated_mean'))} messages are repeated on average "
            f"({worst['strategy']}, every {of(worst, 'period_s'):g} s), and one waits up to "
            f"{number(of(slowest, 'longest_wait_s'))} s ({slowest['strategy']}, every {of(slowest, 'period_s'):g} s)."
        )
    moved = [
        f"{number(float(np.mean([of(row, 'moved_mean') for row in own])))} with {strategy}"
        for strategy, own in grouped(rows, "strategy").items()
    ]
    told.append(f"Queues are taken {listed(moved)} times, the first {QUEUES} included.")
    return " ".join(told)


REBALANCE = Experiment(
    name="rebalance",
    title="A change of members",
    question="What does a change of members cost?",
    setting=f"{QUEUES} queues, {RATE:g} messages/s, listeners of {SERVICE_MS} ms, {THREADS} threads for each member. "
    "Three members, a fourth that joins, and one that leaves; no notices arrive.",
    chart=Chart(
        "lines",
        Axis("period_s", "time between two rebalances", "s", "log"),
        (
            Axis("repeated_mean", "repeated, mean", "messages"),
            Axis("longest_wait_s", "longest wait", "s", "log"),
        ),
        series="series",
    ),
    measure=measure,
    caption=caption,
)
