"""Define what a score measures: bugs, strategies, number of trials, and budget of a trial."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tornpage.properties.planted import PLANTED
from tornpage.properties.score.strategies import STRATEGIES
from tornpage.properties.score.trials import ClockName, TrialKey, TrialRow

__all__ = ["Plan", "may_see", "reason_why_not"]

_MANY_THREADS = frozenset({"interleavings"})
_OF_GROUPS = {
    "cluster": ("the bug needs two nodes", "this strategy runs nodes that replicate"),
    "consumers": ("the bug needs consumers", "this strategy runs consumer groups"),
    "raft": ("the bug needs a Raft group", "this strategy runs Raft groups"),
    "parts": ("", "this strategy runs parts of the store as they are"),
}
"""Strategies for the bugs of one kind only, why others cannot show those, and why they cannot show others."""


def may_see(bug: str, strategy: str) -> bool:
    """Return whether a strategy can show a bug.

    A bug that it cannot show is neither tried nor killed.
    """
    return not reason_why_not(bug, strategy)


def reason_why_not(bug: str, strategy: str) -> str:
    """Return why a strategy cannot show a bug, or an empty string if it can."""
    found = PLANTED[bug]
    if found.needs_group and found.needs_group != strategy:
        return _OF_GROUPS[found.needs_group][0]
    if strategy in _OF_GROUPS and found.needs_group != strategy:
        return _OF_GROUPS[strategy][1]
    if found.needs_threads and strategy not in _MANY_THREADS:
        return "the bug needs two threads, and this strategy runs one"
    return ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan `trials` of each bug with each strategy that can show it, within a budget each.

    A trial lasts up to `budget_s` seconds of the `clock`.
    """

    bugs: tuple[str, ...]
    strategies: tuple[str, ...]
    trials: int
    budget_s: float
    clock: ClockName
    base_seed: int

    def keys(self, may_see: Callable[[str, str], bool]) -> list[TrialKey]:
        """Return all trials; a strategy without a seed has one for each bug."""
        return [
            TrialKey(bug, strategy, number, self.base_seed)
            for number in range(self.trials)
            for strategy in self.strategies
            for bug in self.bugs
            if may_see(bug, strategy) and (number == 0 or STRATEGIES[strategy].is_seeded)
        ]

    def asked(self, rows: Iterable[TrialRow]) -> list[TrialRow]:
        """Return the rows of this plan that are valid for its budget, the last one of each trial."""
        found = {
            row.key: row
            for row in rows
            if row.bug in self.bugs
            and row.strategy in self.strategies
            and row.number < self.trials
            and row.base_seed == self.base_seed
            and row.answers(self.budget_s, self.clock)
        }
        return list(found.values())
