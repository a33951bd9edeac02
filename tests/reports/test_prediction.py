"""Test figures of predictions: the content of the axes, and refused rows."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tornpage.reports.errors import ReportError
from tornpage.reports.plots.prediction import (
    Prediction,
    Quantiles,
    plot_prediction_errors,
    plot_quantiles,
    prediction_figures,
    read_validation,
)
from tornpage.reports.results.tables import Caption

NAMES = ("p50", "p90", "p99", "ks", "demerit", "flushes", "at_risk")
SHARES = (0.1, 0.5, 0.9, 0.99)


@pytest.fixture
def ax() -> Axes:
    axes: Axes = Figure().add_subplot()
    return axes


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the results of two cases.

    One was predicted 5 % too high, one missed by 300 % at p99.
    """
    scores, quantiles = [], []
    for case, p99 in (("group <b>commit</b>", 0.05), ("pool", 3.0)):
        errors = dict.fromkeys(NAMES, 0.05) | {"p99": p99}
        row = {"case": case, "messages": 5_000, "passes": p99 < 1}
        row |= {f"measured_{name}_us": 100.0 for name in NAMES[:3]}
        row |= {f"error_{name}": value for name, value in errors.items()}
        row |= {f"floor_{name}": -0.02 for name in NAMES}
        scores.append(row)
        for share in SHARES:
            at = 100.0 / (1 - share)
            quantiles.append(
                {"case": case, "share": share, "measured_us": at, "predicted_us": 1.05 * at}
                | {"even_us": 1.1 * at, "odd_us": 0.9 * at}
            )
    for name, rows in (("scores", scores), ("quantiles", quantiles)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_rows_are_read_as_they_were_written(directory: Path) -> None:
    predictions, quantiles = read_validation(directory)
    assert [(one.case, one.passes) for one in predictions] == [("group <b>commit</b>", True), ("pool", False)]
    assert predictions[1].error["p99"] == 3.0
    assert predictions[0].floor["p50"] == -0.02
    assert quantiles[0].share == SHARES
    assert quantiles[0].low_us == pytest.approx([0.9 * value for value in quantiles[0].measured_us])


def test_errors_have_a_marker_for_each_quantile_and_stay_inside_the_figure(directory: Path, ax: Axes) -> None:
    predictions: tuple[Prediction, ...] = read_validation(directory)[0]
    assert plot_prediction_errors(predictions, ax=ax) is ax
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["p50", "p90", "p99"]
    marks = {line.get_label(): list(np.asarray(line.get_xdata())) for line in ax.lines}
    assert marks["p99"] == [0.05, 1.0], "what is far off stands at the edge"
    assert ax.get_xlabel() == "error of the prediction; bar: floor at p50"
    assert len({line.get_marker() for line in ax.lines if line.get_label() in ("p50", "p90", "p99")}) == 3


def test_quantiles_are_drawn_on_two_log_axes_of_one_range_with_band_and_equality(directory: Path, ax: Axes) -> None:
    one: Quantiles = read_validation(directory)[1][0]
    plot_quantiles(one, ax=ax)
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlim()) == ("log", "log", ax.get_ylim())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("measured latency (µs)", "predicted latency (µs)")
    drawn = {line.get_label(): line for line in ax.lines}
    assert list(np.asarray(drawn["predicted"].get_xdata())) == list(one.measured_us)
    assert list(np.asarray(drawn["predicted"].get_ydata())) == list(one.predicted_us)
    assert len(np.asarray(drawn["p50, p90, p99"].get_xdata())) == 3
    assert len(ax.collections) == 1


def test_figures_tell_their_numbers_in_a_table_and_carry_no_markup_of_a_name(directory: Path) -> None:
    predictions, quantiles = read_validation(directory)
    errors, first, _ = prediction_figures(predictions, quantiles, Caption("measurement", 1, "sim validate"))
    assert "1 of 2 configurations" in errors.sentence
    assert errors.sentence.endswith("Marks at the edge are further off than 100 %: 1 here."), "3 looked as 1 does"
    near = prediction_figures(predictions[:1], quantiles, Caption("measurement", 1, "sim validate"))[0]
    assert "edge" not in near.sentence
    assert errors.cells[1][:5] == ("pool", "5,000", "+5.0 % (-2.0 %)", "+5.0 % (-2.0 %)", "+300.0 % (-2.0 %)")
    assert [cell[0] for cell in first.cells] == ["p10", "p50", "p90", "p99"]
    assert "<b>" not in errors.svg + first.svg
    assert first.id.replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: path.write_text("{}\n{"), "line 2 is no row"),
        (lambda path: path.write_text('{"case": 1}\n'), "not those of `sim validate`"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "cannot be read"),
    ],
    ids=["missing", "torn", "other rows", "no text"],
)
def test_files_that_hold_no_validation_are_named_with_a_remedy(directory: Path, spoil: object, said: str) -> None:
    spoil(directory / "scores.jsonl")  # type: ignore[operator]
    with pytest.raises(ReportError, match=said) as caught:
        read_validation(directory)
    assert "sim validate --out" in str(caught.value)
