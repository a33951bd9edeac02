"""Prediction against measurement: summaries and figures of `sim validate --out`.

Only rows of files are used. Errors are signed: to the right of 0 the prediction is too high. The floor is the
difference of random halves of the same measurement. No prediction can be more exact, so it is drawn as a
band around 0, or around equality.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tornpage.reports.errors import ReportError
from tornpage.reports.kinds import VALIDATION
from tornpage.reports.palette import GRID, INK, MUTED, series_style
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.svg import inline_svg
from tornpage.reports.results.tables import Caption
from tornpage.reports.text import number, shortened, tick

__all__ = [
    "Prediction",
    "Quantiles",
    "plot_prediction_errors",
    "plot_quantiles",
    "prediction_figures",
    "read_validation",
    "summarise_quantiles",
]

SHOWN = ("p50", "p90", "p99")
"""Errors in the figure; the table has more."""
ERROR_MAX = 1.0
"""Errors beyond this are drawn at the edge."""
_NAME_LENGTH = 34
_REMEDY = "run `tornpage sim validate --out` again"


@dataclass(frozen=True, slots=True)
class Prediction:
    """One held-out case: signed errors and floors by name ("p50", "ks", …), as shares."""

    case: str
    messages: int
    measured_us: tuple[float, ...]
    """p50, p90 and p99."""
    error: Mapping[str, float]
    floor: Mapping[str, float]
    passes: bool


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Latencies (µs) of one case at rising shares.

    They are measured, predicted, and of both halves of the measurement.
    """

    case: str
    share: tuple[float, ...]
    measured_us: tuple[float, ...]
    predicted_us: tuple[float, ...]
    low_us: tuple[float, ...]
    """The lower half at each share."""
    high_us: tuple[float, ...]


def read_validation(directory: Path) -> tuple[tuple[Prediction, ...], tuple[Quantiles, ...]]:
    """Read `scores.jsonl` and `quantiles.jsonl`.

    Raises ReportError, which names file, line and remedy.
    """
    scores, quantiles = (_rows(directory / name) for name in VALIDATION)
    try:
        predictions = tuple(_prediction(row) for row in scores)
        return predictions, summarise_quantiles(quantiles)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ReportError(str(directory), f"rows are not those of `sim validate` ({error!r})", _REMEDY) from error


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ReportError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}", _REMEDY) from error
    rows = []
    for place, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ReportError(str(path), f"line {place} is no row: {error}", _REMEDY) from error
    return rows


def _prediction(row: Mapping[str, Any]) -> Prediction:
    error = {name.removeprefix("error_"): float(row[name]) for name in row if name.startswith("error_")}
    floor = {name: float(row[f"floor_{name}"]) for name in error}
    measured = tuple(float(row[f"measured_{name}_us"]) for name in SHOWN)
    return Prediction(str(row["case"]), int(row["messages"]), measured, error, floor, bool(row["passes"]))


def summarise_quantiles(rows: Sequence[Mapping[str, Any]]) -> tuple[Quantiles, ...]:
    """Return the quantiles of each case, in the order of the rows."""
    found = []
    for case in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == case]
        halves = [sorted((float(row["even_us"]), float(row["odd_us"]))) for row in own]
        found.append(
            Quantiles(
                case,
                tuple(float(row["share"]) for row in own),
                tuple(float(row["measured_us"]) for row in own),
                tuple(float(row["predicted_us"]) for row in own),
                tuple(low for low, _ in halves),
                tuple(high for _, high in halves),
            )
        )
    return tuple(found)


def plot_prediction_errors(predictions: Sequence[Prediction], *, ax: Axes) -> Axes:
    """Draw the errors at p50, p90 and p99, a line per case, over bars of the floor at p50."""
    for place, one in enumerate(predictions):
        floor = min(abs(one.floor["p50"]), ERROR_MAX)
        ax.plot([-floor, floor], [place, place], color=GRID.light, linewidth=9, solid_capstyle="butt", zorder=1)
    for series, name in enumerate(SHOWN):
        style = series_style(series)
        ax.plot(
            [max(-ERROR_MAX, min(one.error[name], ERROR_MAX)) for one in predictions],
            range(len(predictions)),
            color=style.colour,
            marker=style.marker,
            linestyle="",
            label=name,
            zorder=3,
        )
    ax.axvline(0, color=MUTED.light, linewidth=0.8)
    ax.set_yticks(range(len(predictions)), [shortened(one.case, length=_NAME_LENGTH) for one in predictions])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:+.0f} %" if value else "0"))
    ax.set(xlabel="error of the prediction; bar: floor at p50", ylim=(len(predictions) - 0.5, -0.5))
    ax.set_xlim(-1.08 * ERROR_MAX, 1.08 * ERROR_MAX)
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=3, frameon=False, borderaxespad=0)
    return ax


def plot_quantiles(quantiles: Quantiles, *, ax: Axes) -> Axes:
    """Draw predicted over measured latency (µs, both log) at equal shares.

    Equality is a line, and the difference of the halves a band.
    """
    style = series_style(0)
    measured = list(quantiles.measured_us)
    every = [*measured, *quantiles.predicted_us]
    low, high = min(every) / 1.3, max(every) * 1.3
    ax.fill_between(measured, quantiles.low_us, quantiles.high_us, color=GRID.light, label="even and odd rounds")
    ax.plot([low, high], [low, high], color=MUTED.light, linewidth=1, linestyle=":", label="equal")
    ax.plot(measured, quantiles.predicted_us, color=style.colour, label="predicted")
    marked = [place for place, share in enumerate(quantiles.share) if share in (0.5, 0.9, 0.99)]
    ax.plot(
        [measured[place] for place in marked],
        [quantiles.predicted_us[place] for place in marked],
        color=INK.light,
        marker=style.marker,
        linestyle="",
        label="p50, p90, p99",
    )
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="measured latency (µs)", ylabel="predicted latency (µs)")
    ax.legend(loc="upper left", frameon=False)
    return ax


def prediction_figures(
    predictions: Sequence[Prediction], quantiles: Sequence[Quantiles], caption: Caption
) -> list[Drawing]:
    """Return the figure of all errors with its table, and one of quantiles for each case."""
    return [_errors_figure(predictions, caption), *(_quantiles_figure(one, caption) for one in quantiles)]


def _errors_figure(predictions: Sequence[Prediction], caption: Caption) -> Drawing:
    passed = sum(one.passes for one in predictions)
    sentence = (
        f"{passed} of {len(predictions)} configurations outside the calibration are predicted within 10 % at p50 "
        "and 15 % at p90, or within 1.5 times the floor. p99 is shown and does not count."
    )
    beyond = sum(abs(one.error[name]) > ERROR_MAX for one in predictions for name in SHOWN)
    if beyond:
        sentence += f" Marks at the edge are further off than {100 * ERROR_MAX:.0f} %: {beyond} here."
    columns = ("held out", "messages", *(f"{name}: error (floor)" for name in (*SHOWN, "ks", "flushes", "at_risk")))
    cells = tuple(
        (one.case, number(one.messages), *(_cell(one, name) for name in (*SHOWN, "ks", "flushes", "at_risk")))
        for one in predictions
    )
    title = "Prediction against measurement"
    svg = inline_svg(
        lambda ax: plot_prediction_errors(predictions, ax=ax),
        prefix="prediction",
        title=title,
        height_in=1.1 + 0.26 * max(len(predictions), 1),
    )
    return Drawing("prediction", title, svg, sentence, columns, cells, caption)


def _cell(one: Prediction, name: str) -> str:
    error, floor = one.error[name], one.floor[name]
    return f"{error:.3f} ({floor:.3f})" if name == "ks" else f"{100 * error:+.1f} % ({100 * floor:+.1f} %)"


def _quantiles_figure(one: Quantiles, caption: Caption) -> Drawing:
    shown = [place for place, share in enumerate(one.share) if share in (0.1, 0.5, 0.9, 0.99, 0.999)]
    cells = tuple(
        (
            f"p{100 * one.share[place]:g}",
            *map(number, (one.measured_us[place], one.predicted_us[place], one.low_us[place], one.high_us[place])),
        )
        for place in shown
    )
    columns = ("share", "measured (µs)", "predicted (µs)", "lower half (µs)", "higher half (µs)")
    name = "prediction-" + "".join(letter if letter.isalnum() else "-" for letter in one.case)
    sentence = "Each point is a share of the messages: on the line, prediction is measurement. The band is noise."
    svg = inline_svg(lambda ax: plot_quantiles(one, ax=ax), prefix=name, title=one.case, height_in=3.4)
    return Drawing(name, f"Predicted and measured: {one.case}", svg, sentence, columns, cells, caption)
