"""The simulator of consumers against the library in virtual time, on three groups.

Both consume the same messages: equal arrivals, and equal times of listeners. Compared are the mean lag, the highest lag
and the repeated messages. The library runs in one process with its broker, so pulls and notices take no time here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tornpage.bench.compared import Compared
from tornpage.bench.consumers.virtual import consume
from tornpage.sim.consumers.group import Consumption, run_group
from tornpage.sim.consumers.scenario import NS_PER_MS, GroupScenario, Member, SomeSlow, draw_load, rounded
from tornpage.sim.distributions import Constant, Exponential

__all__ = ["GROUPS", "Group", "compared", "validate_groups"]

_S = 1_000 * NS_PER_MS
_SAMPLES_NS = 100 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class Group:
    """One configuration. Figures are means over `seeds` runs."""

    name: str
    scenario: GroupScenario
    seeds: int = 1


def _scenario(members: tuple[Member, ...], duration_s: int, **changes: object) -> GroupScenario:
    given = {"queues": 8, "rate_per_s": 100.0, "service": Exponential(60.0 * NS_PER_MS), **changes}
    return GroupScenario(
        members=members,
        duration_ns=duration_s * _S,
        pull=Constant(0),
        notice=Constant(0),
        **given,  # type: ignore[arg-type]
    )


GROUPS = (
    Group("steady", _scenario((Member("a", 4), Member("b", 4)), 60)),
    Group(
        "join and leave",
        _scenario(
            (Member("a", 4, leaves_ns=80 * _S), Member("b", 4), Member("c", 4, joins_ns=40 * _S)), 120, rate_per_s=90.0
        ),
    ),
    Group(
        "crash",
        _scenario(
            (Member("a"), Member("b"), Member("c", crashes_ns=45 * _S)), 90, noticed_ns=10 * _S,
            service=SomeSlow(0.005, 15 * _S, Exponential(50.0 * NS_PER_MS)),
        ),
        seeds=3,
    ),
)  # fmt: skip


def validate_groups(
    seed: int, progress: Callable[[str], None], groups: tuple[Group, ...] = GROUPS
) -> Iterator[Compared]:
    """Yield the figures of each group."""
    for group in groups:
        pairs = []
        for number in range(group.seeds):
            progress(f"{group.name}, {number + 1} of {group.seeds}")
            pairs.append(_both(group.scenario, seed + number))
        yield from compared(group.name, pairs)


def _both(scenario: GroupScenario, seed: int) -> tuple[Consumption, Consumption]:
    load = rounded(draw_load(scenario, seed), NS_PER_MS)
    return run_group(scenario, seed, load=load), consume(scenario, load)


def compared(name: str, pairs: list[tuple[Consumption, Consumption]]) -> Iterator[Compared]:
    """Yield the figures of one group, from runs of the simulator and of the library."""
    figures: dict[str, Callable[[Consumption], float]] = {
        "mean_lag": lambda run: run.mean_lag(),
        "highest_lag": _highest_lag,
        "repeated_messages": lambda run: run.duplicates,
        "listener_runs": lambda run: len(run.runs),
    }
    for figure, of in figures.items():
        simulated, measured = (sum(of(pair[side]) for pair in pairs) / len(pairs) for side in (0, 1))
        yield Compared(name, figure, simulated, measured)


def _highest_lag(run: Consumption) -> float:
    return float(run.lag(np.arange(0, run.scenario.duration_ns, _SAMPLES_NS, dtype=np.int64)).max())
