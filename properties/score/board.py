"""Compute the scoreboard from trial rows, by bug and strategy, by strategy, and in total.

A strategy kills a bug within a time if at least half of its trials killed the bug by then. A trial that died, hung or
failed in the harness gives no information and is counted apart. `IN_TURNS` is not a strategy of its own. It
estimates a search that gives each strategy an equal slice of time. Its time is that of the first strategy to kill,
multiplied by the number of strategies.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tornpage.properties.score.plan import Plan
from tornpage.properties.score.strategies import STRATEGIES
from tornpage.properties.score.survival import Interval, Observed, bootstrap_quantile, product_limit
from tornpage.properties.score.trials import TrialRow

__all__ = ["IN_TURNS", "WITHIN_S", "Board", "BugScore", "StrategyScore", "board_of"]

IN_TURNS = "in turns"
WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class BugScore:
    """Score one bug with one strategy over `trials` trials.

    `lost` of them gave no information. Times are in seconds, counts in the unit of the strategy. Infinity means beyond
    the budget. `operations` and `token` belong to the shortest failure as it was found, before shrinking.
    """

    bug: str
    strategy: str
    trials: int
    kills: int
    lost: int
    exhausted: int
    median_s: Interval
    p95_s: Interval
    median_count: Interval
    p95_count: Interval
    others: int = 0
    signatures: tuple[tuple[int, str], ...] = ()
    operations: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class StrategyScore:
    """Score one strategy over all bugs.

    `survival` is (seconds, share of trials with the bug alive).
    """

    strategy: str
    bugs: int
    killed: int
    killed_within: int
    median_kill_s: float
    wins: int
    survival: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Board:
    """Hold the whole score.

    `best` is the score of the fastest strategy of each bug, killed or not.
    """

    budget_s: float
    within_s: float
    bugs: tuple[str, ...]
    scores: tuple[BugScore, ...]
    strategies: tuple[StrategyScore, ...]
    best: Mapping[str, BugScore]
    never_killed: tuple[str, ...]
    lost: Mapping[str, int] = field(default_factory=dict)

    @property
    def killed_within(self) -> int:
        """Return the number of bugs that at least one strategy kills in time."""
        return sum(score.median_s.value <= self.within_s for score in self.best.values())

    @property
    def median_kill_s(self) -> float:
        """Return the median over bugs of the fastest strategy's median.

        It is infinite if half of the bugs survive.
        """
        return _median([self.best[bug].median_s.value if bug in self.best else math.inf for bug in self.bugs])


def board_of(plan: Plan, rows: Iterable[TrialRow]) -> Board:
    """Return the board of the requested trials, as far as they are present."""
    bugs, strategies, budget_s = plan.bugs, plan.strategies, plan.budget_s
    found: defaultdict[tuple[str, str], dict[int, TrialRow]] = defaultdict(dict)
    for row in plan.asked(rows):
        found[row.bug, row.strategy][row.number] = row
    scores = [
        _bug_score(bug, strategy, list(found[bug, strategy].values()), budget_s)
        for bug in bugs
        for strategy in strategies
        if found[bug, strategy]
    ]
    turns = [score for bug in bugs for score in _in_turns(bug, strategies, found, budget_s)]
    best = {
        bug: min((score for score in scores if score.bug == bug), key=lambda score: score.median_s.value)
        for bug in bugs
        if any(score.bug == bug for score in scores)
    }
    within_s = min(WITHIN_S, budget_s)
    killed = {score.bug for score in scores if score.kills}
    return Board(
        budget_s=budget_s,
        within_s=within_s,
        bugs=bugs,
        scores=(*scores, *turns),
        strategies=tuple(
            _strategy_score(strategy, bugs, [*scores, *turns], found, best, budget_s, within_s)
            for strategy in (*strategies, *([IN_TURNS] if turns else []))
        ),
        best=best,
        never_killed=tuple(bug for bug in bugs if bug in best and bug not in killed),
        lost=Counter(row.end for rows in found.values() for row in rows.values() if _is_lost(row)),
    )


def _is_lost(row: TrialRow) -> bool:
    return row.end in ("died", "hung", "harness")


def _kill_s(row: TrialRow, budget_s: float) -> float:
    return row.seconds if row.end == "killed" and row.seconds < budget_s else math.inf


def _bug_score(bug: str, strategy: str, rows: Sequence[TrialRow], budget_s: float) -> BugScore:
    said = [row for row in rows if not _is_lost(row)]
    times = [_kill_s(row, budget_s) for row in said] or [math.inf]
    counts = [row.count if _kill_s(row, budget_s) < math.inf else math.inf for row in said] or [math.inf]
    kills = [row for row in said if _kill_s(row, budget_s) < math.inf]
    shortest = min(kills, key=lambda row: row.operations, default=None)
    return BugScore(
        bug,
        strategy,
        trials=len(rows),
        kills=len(kills),
        lost=len(rows) - len(said),
        exhausted=sum(row.end == "exhausted" for row in said),
        median_s=bootstrap_quantile(times, 0.5, seed=0),
        p95_s=bootstrap_quantile(times, 0.95, seed=0),
        median_count=bootstrap_quantile(counts, 0.5, seed=0),
        p95_count=bootstrap_quantile(counts, 0.95, seed=0),
        others=sum(row.others for row in rows),
        signatures=tuple(sorted({(row.contract, row.signature) for row in kills})),
        operations=shortest.operations if shortest else 0,
        token=shortest.token if shortest else "",
    )


def _in_turns(
    bug: str, strategies: Sequence[str], found: Mapping[tuple[str, str], Mapping[int, TrialRow]], budget_s: float
) -> Iterable[BugScore]:
    """Yield the score of all strategies in turns, if there are several and one tried the bug."""
    tried = {strategy: rows for strategy in strategies if (rows := found.get((bug, strategy)))}
    if len(strategies) < 2 or not tried:
        return
    times = []
    for number in sorted(set().union(*tried.values())):
        said = [rows[same] for strategy, rows in tried.items() if (same := _same(strategy, number)) in rows]
        first = min((_kill_s(row, budget_s) for row in said), default=math.inf) * len(strategies)
        times.append(first if first < budget_s else math.inf)
    nothing = Interval(math.inf, math.inf, math.inf)
    yield BugScore(
        bug,
        IN_TURNS,
        trials=len(times),
        kills=sum(time < math.inf for time in times),
        lost=0,
        exhausted=0,
        median_s=bootstrap_quantile(times, 0.5, seed=0),
        p95_s=bootstrap_quantile(times, 0.95, seed=0),
        median_count=nothing,
        p95_count=nothing,
    )


def _same(strategy: str, number: int) -> int:
    """Return the trial number that stands for this one.

    A strategy without a seed has a single trial.
    """
    return number if strategy not in STRATEGIES or STRATEGIES[strategy].is_seeded else 0


def _strategy_score(
    strategy: str,
    bugs: Sequence[str],
    scores: Sequence[BugScore],
    found: Mapping[tuple[str, str], Mapping[int, TrialRow]],
    best: Mapping[str, BugScore],
    budget_s: float,
    within_s: float,
) -> StrategyScore:
    own = {score.bug: score for score in scores if score.strategy == strategy}
    observed = [
        Observed(min(_kill_s(row, budget_s), budget_s), _kill_s(row, budget_s) < math.inf)
        for bug in bugs
        for row in found.get((bug, strategy), {}).values()
        if not _is_lost(row)
    ]
    return StrategyScore(
        strategy,
        bugs=len(own),
        killed=sum(score.kills > 0 for score in own.values()),
        killed_within=sum(score.median_s.value <= within_s for score in own.values()),
        median_kill_s=_median([own[bug].median_s.value if bug in own else math.inf for bug in bugs]),
        wins=sum(score.strategy == strategy and score.kills > 0 for score in best.values()),
        survival=tuple(product_limit(observed)),
    )


def _median(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2] if values else math.inf
