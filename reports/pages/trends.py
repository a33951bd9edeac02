"""The page of trends over a history of runs: speed, coverage, and causes over time.

Runs are compared only with runs of their kind (command and series). A last run counts as unusual if it lies outside
three times the usual scatter of those before it (median absolute deviation), so that noise raises no alarm.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tornpage.reports.errors import ReportError
from tornpage.reports.pages.downloads import inlined
from tornpage.reports.pages.gaps import Headline
from tornpage.reports.pages.templating import rendered
from tornpage.reports.pages.tiles import Tile
from tornpage.reports.palette import series_style
from tornpage.reports.plots.figures import Drawing, drawing, legend_in
from tornpage.reports.results.history import HistoryRow, read_history
from tornpage.reports.results.tables import Caption
from tornpage.reports.text import counted, number, shortened

__all__ = ["PAGE", "Trend", "build_trends", "causes_over_time", "plot_trend", "render_trends", "trend_of"]

PAGE = "trends.html"
_RUNS_SHOWN_MAX = 500
_ENOUGH = 5
"""The number of earlier runs from which a usual range is computed."""
_MEASURES = (
    ("states_per_s", "Speed", "crash states per second"),
    ("distinct_recovered", "Coverage", "distinct recovered logs"),
    ("median_kill_s", "Kills of planted bugs", "median seconds to a kill"),
)
_NAME_LENGTH = 40
_SHOW_NOTHING = ("vacuous", "unknown")
"""The verdicts of runs that show nothing."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One measure of the runs of one kind.

    It has places in the list of all runs, values, and the usual range if it is known.
    """

    kind: str
    places: tuple[int, ...]
    values: tuple[float, ...]
    low: float | None
    high: float | None

    @property
    def said(self) -> str:
        """How the last run compares with those before it."""
        if self.low is None or self.high is None:
            return "too few runs for a usual range"
        last = self.values[-1]
        where = "below" if last < self.low else "above" if last > self.high else "within"
        return f"last run {where} the usual {number(self.low)} to {number(self.high)}"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause, the number of runs with it, and the first and last of them."""

    cause: str
    runs: int
    first: HistoryRow
    last: HistoryRow
    is_open: bool


def build_trends(directory: Path, out: Path | None) -> Path:
    """Write the page of a history, by default into its directory. Raises ReportError."""
    path = directory / PAGE if out is None else out
    text = render_trends(read_history(directory))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise ReportError(str(path), what, "name another --out file") from error
    return path


def headline_of(rows: Sequence[HistoryRow]) -> Headline:
    """Return the banner: the verdicts of the newest run of each kind.

    A run with a planted bug is expected to be broken, and is counted apart.
    """
    newest = [row for row in {row.kind: row for row in rows}.values() if not _is_planted(row)]
    if not newest:
        return Headline("no runs", "The history has no run without a planted bug.", "unsure")
    counts = dict(_counts([row.verdict or "not judged" for row in newest]))
    kinds = f"{counted(len(newest), 'kind')} of runs"
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    sentence = f"The newest run of each of {kinds}: {said}."
    vacuous = [row for row in rows if row.verdict in _SHOW_NOTHING]
    if vacuous:
        sentence += f" {len(vacuous)} of all {counted(len(rows), 'run')} were vacuous or undecided, and show nothing."
    if counts.get("broken") or counts.get("harness"):
        return Headline("broken", sentence, "bad")
    if set(counts) - {"holds", "not judged"}:
        return Headline("not everything was shown", sentence, "unsure")
    return Headline("holds", sentence, "unsure" if vacuous else "good")


def _is_planted(row: HistoryRow) -> bool:
    return " bug " in f" {row.series} "


def render_trends(rows: Sequence[HistoryRow]) -> str:
    """Return the page of some runs, the oldest first."""
    data = json.dumps([asdict(row) for row in rows], indent=1).encode()
    return rendered(
        "trends.html",
        ("copy.js", "filter.js"),
        headline=headline_of(rows),
        tiles=_tiles(rows),
        figures=[_figure(rows, *measure) for measure in _MEASURES if trend_of(rows, measure[0])],
        causes=causes_over_time(rows),
        runs=list(reversed(rows))[:_RUNS_SHOWN_MAX],
        left_out=max(0, len(rows) - _RUNS_SHOWN_MAX),
        verdicts=_counts([row.verdict or "not judged" for row in rows]),
        downloads=[inlined("history.json", data)],
    )


def trend_of(rows: Sequence[HistoryRow], measure: str) -> tuple[Trend, ...]:
    """Return a trend per kind of run that has the measure, in the order of their first runs."""
    kinds: dict[str, list[tuple[int, float]]] = {}
    for place, row in enumerate(rows, 1):
        value = getattr(row, measure)
        if value is not None:
            kinds.setdefault(row.kind, []).append((place, float(value)))
    return tuple(_trend(kind, points) for kind, points in kinds.items())


def _trend(kind: str, points: Sequence[tuple[int, float]]) -> Trend:
    places, values = zip(*points, strict=True)
    before = values[:-1]
    low = high = None
    if len(before) >= _ENOUGH:
        median = statistics.median(before)
        scatter = 3 * 1.4826 * statistics.median(abs(value - median) for value in before)
        low, high = max(0.0, median - scatter), median + scatter
    return Trend(kind, places, values, low, high)


def causes_over_time(rows: Sequence[HistoryRow]) -> tuple[CauseRow, ...]:
    """Return the causes, the most recent first; open ones are in the newest run of their kind."""
    newest = {row.kind: row for row in rows}
    found: dict[str, list[HistoryRow]] = {}
    for row in rows:
        for cause in dict.fromkeys(row.causes):
            found.setdefault(cause, []).append(row)
    told = [
        CauseRow(cause, len(some), some[0], some[-1], any(cause in newest[row.kind].causes for row in some))
        for cause, some in found.items()
    ]
    return tuple(sorted(told, key=lambda row: (row.last.started, row.runs), reverse=True))


def plot_trend(trends: Sequence[Trend], *, label: str, ax: Axes) -> Axes:
    """Draw a measure over the runs, a line per kind.

    A bar at the right is the usual range of its newest run.
    """
    for place, trend in enumerate(trends):
        style = series_style(place)
        name = shortened(trend.kind, length=_NAME_LENGTH)
        ax.plot(trend.places, trend.values, color=style.colour, linestyle=style.line, marker=style.marker, label=name)
        if trend.low is not None and trend.high is not None:
            ax.vlines(trend.places[-1], trend.low, trend.high, colors=style.colour, linewidth=6, alpha=0.25)
    ax.set(xlabel="run, the newest at the right", ylabel=label, ylim=(0, None))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend = ax.legend(title="kind of run", loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False)
    legend.set_alignment("left")
    return ax


def _figure(rows: Sequence[HistoryRow], measure: str, title: str, label: str) -> Drawing:
    trends = trend_of(rows, measure)
    cells = [
        (
            trend.kind,
            number(len(trend.values)),
            number(trend.values[-1]),
            number(statistics.median(trend.values)),
            trend.said,
        )
        for trend in trends
    ]
    return drawing(
        f"trend-{measure.replace('_', '-')}",
        title,
        "One point per run. The bar at the newest run is the usual range of earlier runs of its kind.",
        lambda ax: plot_trend(trends, label=label, ax=ax),
        ("kind of run", "runs", f"newest ({label})", "median", "comparison"),
        cells,
        Caption("history of runs"),
        height_in=2.9 + legend_in(["x" * 30 for _ in trends]),
    )


def _tiles(rows: Sequence[HistoryRow]) -> tuple[Tile, ...]:
    if not rows:
        return (Tile("0", "runs"),)
    broken = sum(row.verdict == "broken" for row in rows)
    planted = sum(row.verdict == "broken" and _is_planted(row) for row in rows)
    vacuous = sum(row.verdict in _SHOW_NOTHING for row in rows)
    open_causes = sum(cause.is_open and not _is_planted(cause.last) for cause in causes_over_time(rows))
    return (
        Tile(number(len(rows)), "runs", f"{rows[0].started[:10]} to {rows[-1].started[:10]}"),
        Tile(
            number(broken),
            "broken runs",
            f"{number(planted)} of them with a planted bug" if planted else "",
            "bad" if broken > planted else "",
        ),
        Tile(
            number(vacuous),
            "vacuous or undecided runs",
            "they show nothing" if vacuous else "",
            "unsure" if vacuous else "",
        ),
        Tile(
            number(open_causes),
            "causes open",
            "newest runs still have them" if open_causes else "no newest run without a planted bug has one",
            "bad" if open_causes else "" if vacuous else "good",
        ),
        Tile(number(sum(row.states or 0 for row in rows)), "crash states judged"),
        Tile(number(len({row.version for row in rows})), "versions", f"newest {rows[-1].version}"),
    )


def _counts(words: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple((word, words.count(word)) for word in dict.fromkeys(words))
