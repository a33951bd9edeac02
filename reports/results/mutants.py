"""Read the results of `bugs mutate`: mutants, and kill rates by package and by operator.

A rate leaves out the mutants that are presumed equivalent. Intervals are Wilson intervals of 95 %. The unit tests have
a rate of their own, on the mutants that they were run on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tornpage.reports.results.intervals import interval
from tornpage.reports.shape import Count, Positive
from tornpage.reports.text import counted, number

__all__ = [
    "RATE_COLUMNS",
    "SURVIVOR_COLUMNS",
    "MutantRow",
    "MutantSummary",
    "rate_rows",
    "summarise_mutants",
    "survivor_rows",
]

RATE_COLUMNS = (
    "mutants",
    "killed",
    "presumed equivalent",
    "kill rate",
    "its interval",
    "unit tests",
    "their interval",
)
SURVIVOR_COLUMNS = ("kind", "mutant", "line", "before", "after")
_EQUIVALENT, _NO_RESULT = "presumed equivalent", "no result"
_SURVIVED = ("difference not judged", "not compared", "not reached", _EQUIVALENT)
"""The kinds of survivors, the most telling first."""
_TEXT_MAX = 120


@dataclass(frozen=True, slots=True)
class MutantRow:
    """One mutant: its change, and whether the strategies and the unit tests killed it."""

    mutant: str
    package: str
    operator: str
    line: Count
    before: str
    after: str
    verdict: str
    strategy: str = ""
    seconds: Positive | None = None
    unit_tests: str = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """Killed mutants of those that count, with the interval of the share."""

    killed: int
    total: int

    @property
    def said(self) -> str:
        """The share in percent, or a dash without any mutant."""
        return f"{100 * self.killed / self.total:.0f} %" if self.total else "–"

    @property
    def interval(self) -> str:
        """The interval in percent, or a dash without any mutant."""
        low, high = interval(self.killed, self.total)
        return f"{100 * low:.0f} to {100 * high:.0f} %" if self.total else "–"


@dataclass(frozen=True, slots=True)
class MutantSummary:
    """The rates over all mutants, the survivors by kind, and the weakest packages."""

    mutants: int
    all: Rate
    countable: Rate
    unit_tests: Rate
    survivors: tuple[tuple[str, int], ...]
    weakest: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        said = (
            f"The strategies killed {self.countable.said} (95 %: {self.countable.interval}) of "
            f"{counted(self.countable.total, 'mutant')} that are not presumed equivalent."
        )
        if self.unit_tests.total:
            said += f" The unit tests killed {self.unit_tests.said} of {number(self.unit_tests.total)}."
        return said


def summarise_mutants(rows: Sequence[MutantRow]) -> MutantSummary:
    """Return the rates of all mutants with a result."""
    ended = _ended(rows)
    killed = sum(row.verdict == "killed" for row in ended)
    packages = {name: _countable(own) for name, own in _grouped(ended, lambda row: row.package).items()}
    weak = sorted((rate.killed / rate.total, name) for name, rate in packages.items() if rate.total >= 5)
    return MutantSummary(
        len(rows),
        Rate(killed, len(ended)),
        _countable(ended),
        _of_unit_tests(ended),
        tuple((kind, count) for kind in _SURVIVED if (count := sum(row.verdict == kind for row in ended))),
        tuple(f"{name} ({packages[name].said})" for share, name in weak[:3] if share < 1),
    )


def rate_rows(rows: Sequence[MutantRow], key: Callable[[MutantRow], str]) -> list[tuple[str, ...]]:
    """Return a row of cells for each package or operator, the largest first."""
    groups = sorted(_grouped(_ended(rows), key).items(), key=lambda group: (-len(group[1]), group[0]))
    return [(name, *_cells(own)) for name, own in groups]


def _cells(own: Sequence[MutantRow]) -> tuple[str, ...]:
    rate, tests = _countable(own), _of_unit_tests(own)
    equivalent = sum(row.verdict == _EQUIVALENT for row in own)
    counts = map(number, (len(own), rate.killed, equivalent))
    return (*counts, rate.said, rate.interval, tests.said, tests.interval)


def survivor_rows(rows: Sequence[MutantRow]) -> list[tuple[str, ...]]:
    """Return the mutants that nothing killed, by kind."""
    kept = [row for row in rows if row.verdict in _SURVIVED]
    kept.sort(key=lambda row: (_SURVIVED.index(row.verdict), row.mutant))
    return [(row.verdict, row.mutant, str(row.line), _short(row.before), _short(row.after)) for row in kept]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[: _TEXT_MAX - 1]}…"


def _ended(rows: Sequence[MutantRow]) -> list[MutantRow]:
    return [row for row in rows if row.verdict != _NO_RESULT]


def _countable(rows: Sequence[MutantRow]) -> Rate:
    killed = sum(row.verdict == "killed" for row in rows)
    return Rate(killed, sum(row.verdict != _EQUIVALENT for row in rows))


def _of_unit_tests(rows: Sequence[MutantRow]) -> Rate:
    """Return the rate of the unit tests.

    It leaves out the mutants presumed equivalent that they did not kill.
    """
    tried = [row for row in rows if row.unit_tests]
    killed = sum(row.unit_tests == "killed" for row in tried)
    return Rate(killed, sum(row.verdict != _EQUIVALENT or row.unit_tests == "killed" for row in tried))


def _grouped(rows: Sequence[MutantRow], key: Callable[[MutantRow], str]) -> dict[str, list[MutantRow]]:
    groups: dict[str, list[MutantRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
