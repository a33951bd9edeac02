"""The figures of a page: each is a drawing, its caption, and its numbers as a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tornpage.reports.plots.pagegrid import PageGrid, summarise_page_map
from tornpage.reports.plots.plots import (
    legend_lines,
    plot_discovery,
    plot_frontier,
    plot_page_map,
    plot_put_latency,
    plot_stalls,
)
from tornpage.reports.plots.svg import inline_svg
from tornpage.reports.results.crash_images import ROW_IN, CrashImageRow, plot_crash_images, summarise_crash_images
from tornpage.reports.results.scoreboard import SurvivalRow, plot_survival, summarise_survival
from tornpage.reports.results.summaries import (
    QUANTILES,
    summarise_discovery,
    summarise_frontier,
    summarise_put_latency,
    summarise_stalls,
)
from tornpage.reports.results.tables import Caption, DiscoveryRow, LatencyRow, PageMapRow, RiskRow, StallRow, Table
from tornpage.reports.text import counted, number

__all__ = [
    "Drawing",
    "crash_images_figure",
    "discovery_figure",
    "drawing",
    "frontier_figure",
    "legend_in",
    "page_map_figure",
    "put_latency_figure",
    "stalls_figure",
    "survival_figure",
]

_PARTS_PER_LINE_IN = 0.17


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure for the page. `svg` is markup; the other text is not escaped yet.

    `sentence` describes the figure. `columns` and `cells` are the alternative for readers who do not see the drawing.
    """

    id: str
    title: str
    svg: str
    sentence: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    caption: Caption


def put_latency_figure(table: Table[LatencyRow]) -> Drawing:
    """Draw the CDF of put latency per flush policy; the table gives quantiles."""
    curves = summarise_put_latency(table.rows)
    cells = [(curve.policy, *(_or_beyond(value) for value in curve.quantiles_us)) for curve in curves]
    return drawing(
        "put-latency",
        "Put latency per flush policy",
        "Time from a put to its answer. Markers are the quantiles of the table.",
        lambda ax: plot_put_latency(curves, ax=ax),
        ("flush policy", *(f"p{100 * quantile:g} (µs)" for quantile in QUANTILES)),
        cells,
        table.caption,
        height_in=3.0 + legend_in([curve.policy for curve in curves]),
    )


def frontier_figure(table: Table[RiskRow]) -> Drawing:
    """Draw messages at risk over put latency p99."""
    frontier = summarise_frontier(table.rows)
    cells = [
        (curve.policy, number(rate), number(latency), number(mean), number(high))
        for curve in frontier.curves
        for rate, latency, mean, high in zip(
            curve.rate_per_s, curve.put_p99_us, curve.messages_mean, curve.messages_p99, strict=True
        )
    ]
    return drawing(
        "at-risk",
        "Messages at risk against put latency",
        "Cost of a policy (to the right) and messages that a power loss would lose (upwards).",
        lambda ax: plot_frontier(frontier, ax=ax),
        ("flush policy", "rate (messages/s)", "put p99 (µs)", "at risk, mean (messages)", "at risk, p99 (messages)"),
        cells,
        table.caption,
        height_in=3.1 + legend_in([curve.policy for curve in frontier.curves] + [""] * len(frontier.rates_per_s)),
    )


def stalls_figure(table: Table[StallRow]) -> Drawing:
    """Draw the stalls at file rolls per preallocation policy."""
    stalls = summarise_stalls(table.rows)
    cells = [
        (
            group.allocation,
            *map(number, (len(group.stall_us), group.low_us, group.median_us, group.high_us, group.max_us)),
        )
        for group in stalls.groups
    ]
    return drawing(
        "stalls",
        "Stall at a file roll per preallocation policy",
        "Every roll to a new log file is a marker; the bar spans the middle half, the line in it is the median.",
        lambda ax: plot_stalls(stalls, ax=ax),
        ("preallocation", "rolls", "lower quartile (µs)", "median (µs)", "upper quartile (µs)", "longest (µs)"),
        cells,
        table.caption,
        height_in=0.9 + 0.6 * len(stalls.groups),
    )


def discovery_figure(table: Table[DiscoveryRow]) -> Drawing | None:
    """Draw what the campaign discovered, or return None if it explored nothing."""
    discovery = summarise_discovery(table.rows)
    if discovery is None:
        return None
    columns = zip(discovery.states, discovery.images, discovery.recovered, strict=True)
    return drawing(
        "discovery",
        "Discovery: new outcomes over crash states",
        f"The last tenth of the effort brought {number(round(discovery.tail_images))} new disk images "
        f"({number(discovery.tail_images_per_1000)} per 1,000 states) and "
        f"{number(round(discovery.tail_recovered))} new recovered logs. A curve that has flattened has seen most of "
        "what these operations can show.",
        lambda ax: plot_discovery(discovery, ax=ax),
        ("crash states", "distinct disk images", "distinct recovered logs"),
        [tuple(number(value) for value in row) for row in columns],
        table.caption,
        height_in=3.0 + legend_in([""] * 4),
    )


def crash_images_figure(table: Table[CrashImageRow]) -> Drawing:
    """Draw what RocketMQ and tornpage kept of each crash image; the table has the counts."""
    images = summarise_crash_images(table.rows)
    cells = [
        (
            row.image,
            number(row.told),
            "does not start" if row.rocketmq_kept is None else number(row.rocketmq_kept),
            _numbers(row.rocketmq_broken),
            number(row.kept),
            number(row.in_quarantine),
            row.mode,
            _numbers(row.broken),
            _numbers(row.not_judged),
        )
        for row in table.rows
    ]
    return drawing(
        "crash-images",
        "Crash images: records kept by RocketMQ 4.9.3 and by tornpage",
        "Records left after the first start, as a share of the acknowledged ones. Beside the bars: "
        "the numbers of the contract that each store breaks.",
        lambda ax: plot_crash_images(images, ax=ax),
        (
            "image", "acknowledged", "kept by RocketMQ", "numbers it breaks", "kept by tornpage", "in quarantine",
            "opens", "numbers that tornpage breaks", "not judged",
        ),
        cells,
        table.caption,
        height_in=1.1 + ROW_IN * len(images),
    )  # fmt: skip


def survival_figure(table: Table[SurvivalRow]) -> Drawing:
    """Draw how long planted bugs live under each strategy."""
    curves = summarise_survival(table.rows)
    cells = [
        (curve.strategy, "beyond the budget" if curve.half_s is None else number(curve.half_s), number(curve.alive[-1]))
        for curve in curves
    ]
    return drawing(
        "survival",
        "How long planted bugs live",
        "All trials of all bugs that a strategy may find. A curve that falls early finds bugs soon. A curve that ends "
        "above zero shows the share of trials that used up their budget without a kill.",
        lambda ax: plot_survival(curves, ax=ax),
        ("strategy", "half are killed (s)", "alive at the budget (share)"),
        cells,
        table.caption,
        height_in=3.0 + legend_in([curve.strategy for curve in curves]),
    )


def page_map_figure(row: PageMapRow, caption: Caption, *, place: int) -> Drawing:
    """Draw the pages of a counterexample; `place` distinguishes several."""
    grid = summarise_page_map(row)
    cells = [(page.file, f"page {page.number}", number(page.versions), page.fate) for page in row.pages]
    cells += [(fact.fact, "name or size", "", fact.fate) for fact in row.facts]
    return drawing(
        f"page-map-{place}",
        "The disk at the power loss",
        _map_sentence(grid),
        lambda ax: plot_page_map(grid, ax=ax),
        ("file or fact", "part", "versions since its last sync", "fate"),
        cells,
        caption,
        height_in=0.55 + 2 * _PARTS_PER_LINE_IN * max(len(grid.lines), 1) + legend_in([""] * len(grid.fates)),
    )


def _map_sentence(grid: PageGrid) -> str:
    sentence = (
        "Durable: covered by a sync. Of other pages a power loss may keep any version: the newest (kept), that of the "
        "last sync (lost), one between (older), or a mixture by sector (torn)."
    )
    left_out = f" {counted(grid.lines_left_out, 'line')} did not fit; the table has all of them."
    return sentence + (left_out if grid.lines_left_out else "")


def drawing(
    id: str,
    title: str,
    sentence: str,
    draw: Callable[[Axes], object],
    columns: tuple[str, ...],
    cells: Sequence[tuple[str, ...]],
    caption: Caption,
    *,
    height_in: float,
) -> Drawing:
    """Draw a figure; its ids begin with `id`, and `cells` are its numbers as a table."""
    svg = inline_svg(draw, prefix=id, title=title, height_in=height_in)
    return Drawing(id, title, svg, sentence, columns, tuple(cells), caption)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def legend_in(labels: Sequence[str]) -> float:
    """Return the height (inches) of a legend with a title."""
    return 0.25 + 0.16 * legend_lines(labels)


def _or_beyond(value: float | None) -> str:
    return "beyond the curve" if value is None else number(value)
