"""The scoreboard of planted bugs: each strategy against each bug, and survival curves.

Rows, their summary and their drawing. The tables are `scoreboard.json` and `survival.json` of a run directory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.axes import Axes

from tornpage.reports.palette import series_style
from tornpage.reports.shape import Count, Positive
from tornpage.reports.text import counted, number, shortened

__all__ = [
    "SCORE_COLUMNS",
    "SMALL_COLUMNS",
    "ScoreBoard",
    "ScoreLine",
    "ScoreRow",
    "SmallFailureRow",
    "SurvivalCurve",
    "SurvivalRow",
    "plot_survival",
    "score_board",
    "score_cells",
    "small_cells",
    "small_sentence",
    "summarise_survival",
    "wrong_survival",
]

SCORE_COLUMNS = (
    "bug", "strategy", "kills", "trials", "median (s)", "its 95 % interval", "p95 (s)", "median count", "said",
)  # fmt: skip
SMALL_COLUMNS = ("bug", "strategy", "operations as met", "operations", "lost facts", "lost pages", "how small")
_NAME_LENGTH = 26
_MORE_BELOW = 0.9
"""How much wider (points) each curve is than the one drawn over it, so that equal curves are all seen."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One bug and one strategy.

    None is a time or a count over the budget. `lost` trials have no result.
    """

    bug: str
    strategy: str
    trials: Count
    kills: Count
    median_s: Positive | None
    median_s_low: Positive | None
    median_s_high: Positive | None
    p95_s: Positive | None
    median_count: Positive | None
    lost: Count = 0
    signatures: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """Whether all, some or none of the trials killed the bug."""
        return "none" if not self.kills else "all" if self.kills == self.trials else "some"


@dataclass(frozen=True, slots=True)
class SmallFailureRow:
    """The minimal reproducer of a bug.

    An empty token is a failure that could not be shrunk, and `ended` has the reason. `one_minimal` is None where it is
    unknown (interleavings).
    """

    bug: str
    strategy: str
    operations_met: Count
    operations: Count
    losses: Count
    lost_pages: Count
    one_minimal: bool | None
    ended: str
    token: str

    @property
    def how(self) -> str:
        """The result of the search."""
        if not self.token:
            return f"not shrunk: {self.ended}"
        if self.one_minimal is None:
            return "shrunk as far as possible"
        return "1-minimal" if self.one_minimal else f"not 1-minimal: end of {self.ended}"


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One bug: a row per strategy of the board, and the fastest strategy.

    None is a strategy that was not tried.
    """

    bug: str
    cells: tuple[ScoreRow | None, ...]
    fastest: str


@dataclass(frozen=True, slots=True)
class ScoreBoard:
    """Bugs by strategies, both in the order of the rows."""

    strategies: tuple[str, ...]
    rows: tuple[ScoreLine, ...]


@dataclass(frozen=True, slots=True)
class SurvivalRow:
    """A step of a survival curve.

    From `seconds` on, the share `alive` of the trials had not killed their bug.
    """

    strategy: str
    seconds: Positive
    alive: Positive


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """One strategy over all bugs; the last point is that of the budget."""

    strategy: str
    seconds: tuple[float, ...]
    alive: tuple[float, ...]

    @property
    def half_s(self) -> float | None:
        """When half of the trials had killed their bug, or None."""
        return next((time for time, alive in zip(self.seconds, self.alive, strict=True) if alive <= 0.5), None)


def wrong_survival(rows: Sequence[SurvivalRow]) -> str | None:
    """Return the error of the curves, or None: a share above 1, or one that rises."""
    for curve in summarise_survival(rows):
        if max(curve.alive) > 1:
            return f"strategy {curve.strategy!r} has more than all trials alive"
        if list(curve.alive) != sorted(curve.alive, reverse=True):
            return f"the share alive of strategy {curve.strategy!r} rises: this is no survival curve"
    return None


def summarise_survival(rows: Sequence[SurvivalRow]) -> tuple[SurvivalCurve, ...]:
    """Return a curve per strategy, in the order of the rows, times rising."""
    curves = []
    for strategy in dict.fromkeys(row.strategy for row in rows):
        steps = sorted((row.seconds, -row.alive) for row in rows if row.strategy == strategy)
        curves.append(SurvivalCurve(strategy, tuple(s for s, _ in steps), tuple(-alive for _, alive in steps)))
    return tuple(curves)


def plot_survival(curves: Sequence[SurvivalCurve], *, ax: Axes) -> Axes:
    """Draw the share of trials whose bug is alive over seconds, a step curve per strategy."""
    for place, curve in enumerate(curves):
        style = series_style(place)
        ax.plot(
            curve.seconds,
            curve.alive,
            drawstyle="steps-post",
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=max(1, len(curve.seconds) // 8),
            linewidth=1.3 + _MORE_BELOW * (len(curves) - 1 - place),
            label=shortened(curve.strategy, length=_NAME_LENGTH),
        )
    ax.set(xlabel="seconds of a trial", ylabel="share of trials, bug alive", ylim=(-0.02, 1.04), xlim=(0, None))
    if curves:
        legend = ax.legend(title="strategy", loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2, frameon=False)
        legend.set_alignment("left")
    return ax


def score_board(rows: Sequence[ScoreRow]) -> ScoreBoard:
    """Return the rows as a matrix."""
    strategies = tuple(dict.fromkeys(row.strategy for row in rows))
    bugs: dict[str, dict[str, ScoreRow]] = {}
    for row in rows:
        bugs.setdefault(row.bug, {})[row.strategy] = row
    return ScoreBoard(
        strategies,
        tuple(
            ScoreLine(bug, tuple(map(found.get, strategies)), _fastest(found.values())) for bug, found in bugs.items()
        ),
    )


def _fastest(rows: Iterable[ScoreRow]) -> str:
    killed = [row for row in rows if row.kills]
    return min(killed, key=_speed).strategy if killed else ""


def _speed(row: ScoreRow) -> float:
    return float("inf") if row.median_s is None else row.median_s


def score_cells(row: ScoreRow) -> tuple[str, ...]:
    """Return a row of the table, in the order of SCORE_COLUMNS."""
    interval = f"{_or_beyond(row.median_s_low)} to {_or_beyond(row.median_s_high)}"
    said = "; ".join(row.signatures) or (
        "nothing" if not row.lost else f"{counted(row.lost, 'trial')} without a result"
    )
    return (
        row.bug,
        row.strategy,
        number(row.kills),
        number(row.trials),
        _or_beyond(row.median_s),
        interval,
        _or_beyond(row.p95_s),
        _or_beyond(row.median_count),
        said,
    )


def small_cells(row: SmallFailureRow) -> tuple[str, ...]:
    """Return a row of the table, in the order of SMALL_COLUMNS."""
    counts = map(number, (row.operations, row.losses, row.lost_pages)) if row.token else ("", "", "")
    return (row.bug, row.strategy, number(row.operations_met), *counts, row.how)


def small_sentence(rows: Sequence[SmallFailureRow]) -> str:
    """Return a sentence about the median size of minimal reproducers."""
    made = [row for row in rows if row.token]
    if not made:
        return "None could be shrunk."
    operations, pages = median(row.operations for row in made), median(row.lost_pages for row in made)
    return (
        f"The shortest failure of {counted(len(made), 'bug')}, made small: in the middle "
        f"{counted(operations, 'operation')} and {counted(pages, 'lost page')}."
    )


def _or_beyond(value: float | None) -> str:
    return "beyond the budget" if value is None else number(value)
