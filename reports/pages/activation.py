"""Show how often faults, rules and judges were hit, and which pairs of levels ran."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.activation_names import shown_name
from tornpage.reports.results.summaries import Activation
from tornpage.reports.results.tables import ActivationRow, PairsRow

__all__ = ["BAR", "FactorPairs", "LevelPairs", "MatrixGroup", "MatrixRow", "matrix_of", "pairs_of"]

BAR = 120
"""Length of the longest bar (units of the drawing)."""

_PREFIXES = (("rule_", "Rules: what histories do"), ("judge_", "Judges: what is asked of each recovered store"))
_OTHERS = "Faults, and the states they meet"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One name with its counts, and a bar (logarithm of 1 + count) for each of them."""

    fault: str
    armed: int
    fired: int
    mattered: int
    armed_bar: int
    fired_bar: int
    mattered_bar: int


@dataclass(frozen=True, slots=True)
class MatrixGroup:
    """Names of one kind; `cells` are in the order of the table."""

    name: str
    cells: tuple[MatrixRow, ...]

    @property
    def silent(self) -> int:
        """The number of names that never fired, or fired without effect."""
        return sum(not row.mattered for row in self.cells)


def matrix_of(activation: Activation) -> tuple[MatrixGroup, ...]:
    """Return the groups that have rows, faults first."""
    largest = max((max(row.armed, row.fired, row.mattered) for row in activation.rows), default=0)
    groups: dict[str, list[MatrixRow]] = {_OTHERS: [], **{name: [] for _, name in _PREFIXES}}
    for row in activation.rows:
        kind = next(((prefix, name) for prefix, name in _PREFIXES if row.fault.startswith(prefix)), ("", _OTHERS))
        groups[kind[1]].append(_cells(row, shown_name(row.fault).removeprefix("check: "), largest))
    return tuple(MatrixGroup(name, tuple(rows)) for name, rows in groups.items() if rows)


def _cells(row: ActivationRow, name: str, largest: int) -> MatrixRow:
    bars = [round(BAR * math.log1p(count) / math.log1p(largest or 1)) for count in (row.armed, row.fired, row.mattered)]
    return MatrixRow(name, row.armed, row.fired, row.mattered, *bars)


@dataclass(frozen=True, slots=True)
class LevelPairs:
    """One level of a factor: its pairs, those exercised, and a bar for their share."""

    level: str
    pairs: int
    exercised: int
    bar: int


@dataclass(frozen=True, slots=True)
class FactorPairs:
    """The levels of one factor."""

    factor: str
    levels: tuple[LevelPairs, ...]

    @property
    def missing(self) -> int:
        """The number of pairs that no run exercised."""
        return sum(level.pairs - level.exercised for level in self.levels)


def pairs_of(rows: Sequence[PairsRow]) -> tuple[FactorPairs, ...]:
    """Return the factors with their levels, those with most missing pairs first."""
    factors: dict[str, list[LevelPairs]] = {}
    for row in rows:
        bar = round(BAR * row.exercised / max(1, row.pairs))
        level = LevelPairs(row.level.replace("_", " "), row.pairs, row.exercised, bar)
        factors.setdefault(row.factor.replace("_", " "), []).append(level)
    found = [FactorPairs(name, tuple(levels)) for name, levels in factors.items()]
    return tuple(sorted(found, key=lambda factor: -factor.missing))
