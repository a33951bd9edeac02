"""Compare every number of a figure with the plainest way to compute it."""

import math
import random
from bisect import bisect_right
from typing import Any

import pytest

from tornpage.reports.plots.pagegrid import COLUMNS, LINES_MAX, summarise_page_map
from tornpage.reports.results.summaries import (
    QUANTILES,
    summarise_activation,
    summarise_discovery,
    summarise_frontier,
    summarise_put_latency,
    summarise_stalls,
)
from tornpage.reports.results.tables import (
    ActivationRow,
    DiscoveryRow,
    FactRow,
    LatencyRow,
    PageMapRow,
    PageRow,
    RiskRow,
    StallRow,
)


def cdf_rows(policy: str, samples: list[float]) -> list[LatencyRow]:
    ordered = sorted(samples)
    return [LatencyRow(policy, value, (place + 1) / len(ordered)) for place, value in enumerate(ordered)]


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_those_of_the_samples(seed: int) -> None:
    draw = random.Random(seed)
    samples = [draw.lognormvariate(3, 1.5) for _ in range(draw.randrange(1, 3000))]
    rows = cdf_rows("p", samples)
    draw.shuffle(rows)
    (curve,) = summarise_put_latency(rows)
    ordered = sorted(samples)
    assert curve.quantiles_us == tuple(ordered[math.ceil(round(q * len(ordered), 9)) - 1] for q in QUANTILES)


@pytest.mark.parametrize("seed", range(5))
def test_thinned_curve_stays_near_the_samples(seed: int) -> None:
    draw = random.Random(seed)
    ordered = sorted(draw.lognormvariate(3, 1.5) for _ in range(5000))
    (curve,) = summarise_put_latency(cdf_rows("p", ordered))
    assert len(curve.latency_us) < 600
    assert (curve.latency_us[0], curve.latency_us[-1]) == (ordered[0], ordered[-1])
    assert (curve.fraction[0], curve.fraction[-1]) == (0.0, 1.0)
    assert list(curve.fraction) == sorted(curve.fraction)
    for latency, fraction in zip(curve.latency_us[1:], curve.fraction[1:], strict=True):
        assert fraction == bisect_right(ordered, latency) / len(ordered)
    for before, after in zip(curve.latency_us[1:], curve.latency_us[2:], strict=False):
        skipped = [value for value in ordered if before < value < after]
        assert not skipped or max(skipped) / min(skipped) <= 10 ** (1 / 48) + 1e-9
    assert [curve.fraction[n] >= q for n, q in zip(curve.marked, QUANTILES, strict=True)] == [True] * 4


def test_a_latency_of_zero_is_drawn_as_a_nanosecond_and_an_unreached_quantile_is_none() -> None:
    (curve,) = summarise_put_latency([LatencyRow("p", 0, 0.4), LatencyRow("p", 8, 0.95)])
    assert list(curve.latency_us) == [0.001, 0.001, 8]
    assert list(curve.quantiles_us) == [8, 8, None, None]
    assert len(curve.marked) == 1


def test_policies_keep_the_order_of_their_rows() -> None:
    rows = [LatencyRow(policy, 1, 1) for policy in ("b", "a", "b", "c")]
    assert [curve.policy for curve in summarise_put_latency(rows)] == ["b", "a", "c"]


def test_frontier_orders_rates_and_puts_a_floor_below_every_positive_count() -> None:
    rows = [RiskRow("p", 20, 5, 0.3, 2), RiskRow("p", 10, 4, 0, 0), RiskRow("q", 10, 1, 7, 9)]
    frontier = summarise_frontier(rows)
    assert [curve.rate_per_s for curve in frontier.curves] == [(10, 20), (10,)]
    assert list(frontier.curves[0].put_p99_us) == [4, 5]
    assert list(frontier.curves[0].messages_p99) == [0, 2]
    assert list(frontier.rates_per_s) == [10, 20]
    assert frontier.floor_messages is not None
    assert 0 < frontier.floor_messages < 0.1
    assert summarise_frontier(rows[2:]).floor_messages is None
    assert summarise_frontier(rows[1:2]).floor_messages == 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 40, 41])
def test_quartiles_lie_between_neighbours(count: int) -> None:
    draw = random.Random(count)
    values = [draw.uniform(0, 900) for _ in range(count)]
    rows = [StallRow("one-ahead", roll, value) for roll, value in enumerate(values)]
    draw.shuffle(rows)
    (group,) = summarise_stalls(rows).groups
    ordered = sorted(values)

    def quantile(q: float) -> float:
        place = q * (count - 1)
        low = ordered[math.floor(place)]
        return low + (ordered[math.ceil(place)] - low) * (place - math.floor(place))

    assert group.stall_us == tuple(values)
    assert (group.low_us, group.median_us, group.high_us) == pytest.approx([quantile(q) for q in (0.25, 0.5, 0.75)])
    assert group.max_us == ordered[-1]


@pytest.mark.parametrize("seed", range(20))
def test_tail_counts_what_came_new_in_the_last_tenth(seed: int) -> None:
    draw = random.Random(seed)
    images, recovered, rows = 0, 0, []
    by_states = {0: (0, 0)}
    total = 10 * draw.randrange(1, 60)
    for states in range(1, total + 1):
        images += draw.random() < 30 / (30 + states)
        recovered += draw.random() < 5 / (5 + states)
        by_states[states] = (images, recovered)
        rows.append(DiscoveryRow(states, images, recovered))
    draw.shuffle(rows)
    discovery = summarise_discovery(rows)
    assert discovery is not None
    at_tail = by_states[total * 9 // 10]
    assert discovery.tail_images == pytest.approx(images - at_tail[0])
    assert discovery.tail_recovered == pytest.approx(recovered - at_tail[1])
    assert discovery.tail_images_per_1000 == pytest.approx(1000 * (images - at_tail[0]) / (total / 10))


def test_discovery_of_nothing_is_none() -> None:
    assert summarise_discovery([]) is None
    assert summarise_discovery([DiscoveryRow(0, 0, 0)]) is None


def test_activation_names_the_faults_that_did_nothing() -> None:
    rows = [ActivationRow("c", 1, 1, 1), ActivationRow("b", 5, 0, 0), ActivationRow("a", 5, 2, 0)]
    activation = summarise_activation(rows)
    assert [row.fault for row in activation.rows] == ["a", "b", "c"]
    assert (activation.never_fired, activation.never_mattered) == (("b",), ("a",))


def page_map_row(pages: list[PageRow], facts: tuple[str, ...] = (), **more: Any) -> PageMapRow:
    found = tuple(FactRow(fact, "lost") for fact in facts)
    return PageMapRow(("put()", "crash()"), 1, "posix-strict", tuple(pages), found, (), "it broke", "tp1-x", **more)


def test_page_grid_holds_every_page_once_at_its_place() -> None:
    fates = ("durable", "kept", "lost", "older", "torn")
    pages = [PageRow(f"/s/commitlog/{f}", n, 1, fates[(f + n) % 5]) for f in range(2) for n in range(35) if n != 20]
    random.Random(0).shuffle(pages)
    grid = summarise_page_map(page_map_row([PageRow("/s/lock", 0, 1, "lost"), *pages]))
    seen = {
        (line.file, line.first_page + place): fate
        for line in grid.lines
        for place, fate in enumerate(line.fates)
        if fate
    }
    assert seen == {("/s/lock", 0): "lost"} | {(page.file, page.number): page.fate for page in pages}
    assert grid.lines[-1].file == "/s/lock"
    assert grid.columns == COLUMNS
    assert dict(grid.fates) == {fate: sum(found == fate for found in seen.values()) for fate in fates}
    assert grid.lines_left_out == 0


def test_page_grid_puts_names_and_sizes_beside_their_file() -> None:
    facts = ("size /s/a b", "create /s/a b (2)", "rename /s/x /s/y", "directory operations")
    grid = summarise_page_map(page_map_row([PageRow("/s/a b", 0, 1, "lost")], facts))
    assert [(line.file, [what for what, _ in line.facts]) for line in grid.lines] == [
        ("/s/a b", ["size", "create (2)"]),
        ("/s/y", ["rename"]),
        ("all files", ["directory operations"]),
    ]


def test_page_grid_says_how_much_it_leaves_out() -> None:
    pages = [PageRow(f"/s/{number}", 0, 0, "durable") for number in range(LINES_MAX + 7)]
    grid = summarise_page_map(page_map_row(pages))
    assert (len(grid.lines), grid.lines_left_out) == (LINES_MAX, 7)
    assert summarise_page_map(page_map_row([])).lines == ()
