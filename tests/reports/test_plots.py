"""Test the returned axes: labels, units, scales, series, markers. Images are not compared."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from tornpage.reports.palette import FATES, SERIES, series_style
from tornpage.reports.plots.pagegrid import summarise_page_map
from tornpage.reports.plots.plots import plot_discovery, plot_frontier, plot_page_map, plot_put_latency, plot_stalls
from tornpage.reports.results.summaries import (
    summarise_discovery,
    summarise_frontier,
    summarise_put_latency,
    summarise_stalls,
)
from tornpage.reports.results.tables import Run, read_run


@pytest.fixture
def run(make_run: Callable[..., Any]) -> Run:
    return read_run(make_run())


@pytest.fixture
def ax() -> Axes:
    axes: Axes = Figure().add_subplot()
    return axes


def xs(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_ydata())]


def legend_of(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_put_latency_has_a_step_curve_per_policy_over_log_microseconds(run: Run, ax: Axes) -> None:
    assert run.put_latency is not None
    curves = summarise_put_latency(run.put_latency.rows)
    assert plot_put_latency(curves, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("put latency (µs)", "share of puts", "log")
    assert legend_of(ax) == [curve.policy for curve in curves]
    assert [xs(line) for line in ax.lines] == [list(curve.latency_us) for curve in curves]
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-post"}
    assert len({line.get_marker() for line in ax.lines}) == len({line.get_color() for line in ax.lines}) == len(curves)
    low, high = ax.get_xlim()
    assert low < min(curve.latency_us[0] for curve in curves) < max(curve.latency_us[-1] for curve in curves) < high


def test_frontier_has_a_marker_per_policy_and_rate_on_two_log_axes(run: Run, ax: Axes) -> None:
    assert run.at_risk is not None
    frontier = summarise_frontier(run.at_risk.rows)
    assert plot_frontier(frontier, ax=ax) is ax
    assert ax.get_xlabel() == "put latency, p99 (µs)"
    assert ax.get_ylabel() == "messages at risk (mean, line to p99)"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    points = [line for line in ax.lines if line.get_marker() != "None"]
    assert len(points) == len(run.at_risk.rows)
    assert len({(line.get_marker(), line.get_markersize()) for line in points}) == len(run.at_risk.rows)
    assert legend_of(ax) == [curve.policy for curve in frontier.curves] + [f"{rate}k messages/s" for rate in (1, 5, 20)]
    zeros = [line for line in points if ys(line)[0] == frontier.floor_messages]
    assert len(zeros) == 3
    ax.figure.canvas.draw()
    assert next(label.get_text() for label in ax.get_yticklabels()) == "0"


def test_stalls_have_a_strip_per_policy_with_every_roll(run: Run, ax: Axes) -> None:
    assert run.stalls is not None
    stalls = summarise_stalls(run.stalls.rows)
    assert plot_stalls(stalls, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_xscale()) == ("stall at a file roll (µs)", "log")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one-ahead", "on-demand"]
    strips = [line for line in ax.lines if line.get_marker() != "None"]
    assert [len(xs(line)) for line in strips] == [40, 40]
    assert len({line.get_marker() for line in strips}) == len({line.get_color() for line in strips}) == 2
    for place, strip in enumerate(strips):
        assert all(abs(y - place) <= 0.25 for y in ys(strip))
    medians = [xs(line)[0] for line in ax.lines if len(xs(line)) == 2][1::2]
    assert medians == [max(group.median_us, stalls.floor_us or 0) for group in stalls.groups]


def test_discovery_shows_images_recovered_logs_and_the_last_tenth(run: Run, ax: Axes) -> None:
    assert run.discovery is not None
    discovery = summarise_discovery(run.discovery.rows)
    assert discovery is not None
    assert plot_discovery(discovery, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("crash states explored", "distinct so far (count)")
    assert legend_of(ax) == [
        "every state new",
        "distinct disk images",
        "distinct recovered logs",
        "last tenth begins",
    ]
    images, recovered = ax.lines[1:3]
    assert ys(images) == list(discovery.images)
    assert images.get_marker() != recovered.get_marker()
    assert images.get_color() != recovered.get_color()
    assert xs(ax.lines[3]) == [9000, 9000]


def test_page_map_has_a_cell_per_page_and_fact_with_hatch_and_letter(run: Run, ax: Axes) -> None:
    assert run.page_map is not None
    (row,) = run.page_map.rows
    assert plot_page_map(summarise_page_map(row), ax=ax) is ax
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    fates = [page.fate for page in row.pages] + [fact.fate for fact in row.facts]
    assert len(cells) == len(fates)
    texts = [text.get_text() for text in ax.texts]
    for fate, style in FATES.items():
        assert texts.count(style.letter) == fates.count(fate)
        assert sum(cell.get_hatch() == style.hatch for cell in cells if style.hatch) == (
            fates.count(fate) if style.hatch else 0
        )
    assert {*texts} >= {"/store/commitlog/00000000000000016384", "create", "size", "unlink (2)"}
    assert legend_of(ax)[:2] == ["D: durable, 2 pages", "K: kept, 2 pages"]
    assert "4 KiB" in ax.get_xlabel()


def test_series_do_not_repeat_soon() -> None:
    looks = {(series_style(number).colour, series_style(number).marker) for number in range(42)}
    assert len(looks) == 42
    assert len({colour.light for colour in SERIES}) == len({colour.dark for colour in SERIES}) == len(SERIES)
