"""Test tables of measured durations: draws come from their bin, moved by the growth curve."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.made_samples import made_calibration
from tests.sim.support import ASYNC, MS, SYNC, US, scenario, syncs
from tornpage.impl.config.policy import FlushPolicy
from tornpage.sim.device.device import PRESETS
from tornpage.sim.device.empirical import Empirical, Uniform32
from tornpage.sim.device.gap_table import ENOUGH, GAP_BINS, GAP_EDGES_NS, GapTable
from tornpage.sim.device.sync_table import Layer, SyncTable, TooFewSamples, grown_ns, layer_of
from tornpage.sim.distributions import Exponential
from tornpage.sim.fast import run_fast
from tornpage.sim.run import run
from tornpage.sim.workload import ClosedLoop, Sizes

SWEEP = syncs(11, 1_200)
NO_LOAD = SWEEP[:0]
SAMPLED = ([1, 2, 4, 8, 16, 64, 256], [0, 30 * US, 300 * US, 5 * MS])


def table_of(layer: Layer) -> SyncTable:
    return SyncTable.of(layer, layer)


def drawn(table: SyncTable, pages: int, gap_ns: int, count: int = 1_000) -> np.ndarray:
    draws = Uniform32().draw(np.random.default_rng(5), count).tolist()
    return np.array([table.took_ns(draw, pages=pages, gap_ns=gap_ns, reserved_only=True) for draw in draws])


def check_bins(table: SyncTable) -> None:
    """Each measured pair of pages and gap gives its own measurement."""
    for pages in SAMPLED[0]:
        for gap_ns in SAMPLED[1]:
            measured = SWEEP["took_ns"][(SWEEP["pages"] == pages) & (SWEEP["gap_ns"] == gap_ns)]
            assert set(drawn(table, pages, gap_ns).tolist()) == set(measured.tolist())


def test_a_draw_gives_what_was_measured_after_a_like_pause_with_as_many_pages() -> None:
    check_bins(table_of(layer_of(SWEEP, NO_LOAD, what="x")))


@pytest.mark.parametrize("wrong", ["pages", "gap", "count"])
def test_the_comparison_sees_a_wrong_bin(wrong: str) -> None:
    layer = layer_of(SWEEP, NO_LOAD, what="x")
    bins = layer.bins.copy()
    if wrong == "count":
        bins[:, 1] -= 1
    else:
        bins = np.roll(bins, GAP_BINS if wrong == "pages" else 1, axis=0)
    with pytest.raises(AssertionError):
        check_bins(table_of(layer._replace(bins=bins)))


def test_a_load_takes_the_place_of_chosen_syncs_where_it_has_enough() -> None:
    load = syncs(12, 2_000, rate_per_s=500)
    load["pages"], load["gap_ns"] = 2, 30 * US
    thin = load[: ENOUGH - 1].copy()
    thin["pages"], thin["gap_ns"] = 8, 5 * MS
    table = table_of(layer_of(SWEEP, np.concatenate((load, thin)), what="x"))
    assert set(drawn(table, 2, 30 * US).tolist()) <= set(load["took_ns"].tolist())
    mixed = SWEEP["took_ns"][(SWEEP["pages"] == 8) & (SWEEP["gap_ns"] == 5 * MS)].tolist() + thin["took_ns"].tolist()
    assert set(drawn(table, 8, 5 * MS).tolist()) <= set(mixed)


def test_an_empty_bin_takes_the_nearest_one_moved_by_the_growth_curve() -> None:
    table = table_of(layer_of(SWEEP, NO_LOAD, what="x"))
    knots = table.reserved.knots
    nearest = SWEEP["took_ns"][(SWEEP["pages"] == 2) & (SWEEP["gap_ns"] == 0)]
    more_ns = grown_ns(knots, 3) - grown_ns(knots, 2)
    assert set(drawn(table, 3, 0).tolist()) <= set((nearest + more_ns).tolist())
    assert np.median(drawn(table, 10_000, 0)) > np.median(drawn(table, 256, 0))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(ENOUGH, 400), st.integers(1, 1 << 20), st.integers(0, 1 << 40))
def test_no_sync_is_shorter_than_all_measured_and_the_curve_never_goes_down(
    seed: int, count: int, pages: int, gap_ns: int
) -> None:
    rows = syncs(seed, count)
    table = table_of(layer_of(rows, rows[:0], what="x"))
    took = drawn(table, pages, gap_ns, 50)
    assert took.min() >= rows["took_ns"].min()
    curve = [grown_ns(table.written.knots, at) for at in (1, 2, 3, 5, 16, 64, 300, 5_000, pages, pages + 1)]
    assert curve[:8] == sorted(curve[:8])
    assert curve[8] <= curve[9]


def test_too_few_samples_are_told() -> None:
    with pytest.raises(TooFewSamples, match="29 syncs of chosen size were measured for mmap, reserved blocks"):
        layer_of(SWEEP[:29], SWEEP, what="mmap, reserved blocks")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 10 * MS), st.integers(0, MS)), min_size=1, max_size=200),
    st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.integers(-5, 10 * MS)), min_size=1, max_size=20),
)
def test_one_and_many_puts_are_drawn_alike(rows: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    table = GapTable.of(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))
    draws, gaps = (np.array(column, np.int64) for column in zip(*asked, strict=True))
    one_by_one = [table.took_ns(draw, gap) for draw, gap in asked]
    assert one_by_one == table.took_many_ns(draws, gaps).tolist()
    assert set(one_by_one) <= {took for _, took in rows}


def test_a_put_takes_what_was_measured_after_a_like_rest() -> None:
    edges = np.array((0, *GAP_EDGES_NS), np.int64)
    gaps = np.repeat(edges, ENOUGH)
    table = GapTable.of(gaps, gaps + 7)
    assert [table.took_ns(9, int(gap)) for gap in edges] == (edges + 7).tolist()


def test_equal_tables_are_equal_and_others_are_not() -> None:
    layer, other = layer_of(SWEEP, NO_LOAD, what="x"), layer_of(SWEEP[1:], NO_LOAD, what="x")
    assert table_of(layer) == table_of(layer_of(SWEEP.copy(), NO_LOAD, what="x")) != table_of(other)
    assert hash(table_of(layer)) == hash(table_of(layer))


def test_draws_in_two_goes_are_draws_in_one() -> None:
    for law in (Uniform32(), Empirical((3, 5, 9))):
        once = law.draw(np.random.default_rng(3), 1000)
        rng = np.random.default_rng(3)
        assert once.tolist() == [*law.draw(rng, 333), *law.draw(rng, 667)]
    assert Uniform32().draw(np.random.default_rng(3), 1000).min() >= 0


def test_a_measured_law_answers_of_its_values() -> None:
    law = Empirical.of(np.array([4, 1, 3, 2] * 5_000))
    assert (law.mean_ns, law.second_moment_ns2, len(law.values_ns)) == (2.5, 7.5, 2_000)
    assert law.cdf(np.array([0.0, 2.0, 9.0])).tolist() == [0.0, 0.5, 1.0]
    assert law.quantile(np.array([0.25, 0.26, 0.99])).tolist() == [1.0, 2.0, 4.0]
    assert law.residual_cdf(np.array([0.0, 1.0, 4.0])).tolist() == [0.0, 0.4, 1.0]
    assert law.laplace(0.0) == 1.0
    with pytest.raises(ValueError, match="at least"):
        Empirical(())


@pytest.mark.parametrize(
    "flush", [SYNC, ASYNC, replace(ASYNC, flush_commit_log_timed=False)], ids=["sync", "timed", "woken"]
)
def test_engines_agree_on_a_calibrated_disk_beyond_every_block(flush: FlushPolicy) -> None:
    """More puts, wakes, syncs and turns than are drawn at once."""
    device = made_calibration().device()
    quick = replace(flush, flush_interval_commit_log=1, flush_commit_log_least_pages=1)
    case = scenario(flush=quick, device=device, workload=4_000.0, file_bytes=1 << 22, messages=18_000)
    assert run(case, 3).digest() == run_fast(case, 3).digest()
    loop = replace(case, workload=ClosedLoop(9, Sizes(100, 3_000), Exponential(50_000.0)), messages=3_000)
    assert run(loop, 3).digest() == run_fast(loop, 3).digest()


@pytest.mark.parametrize("part", ["measured", "put", "waiting_put", "wake", "turn", "answering_ns", "answer_ns"])
def test_each_part_of_a_calibration_shows_in_both_engines(part: str) -> None:
    device, other = made_calibration(1).device(), made_calibration(2).device()
    changed = getattr(device, part) + 1 if part.endswith("_ns") else getattr(other, part)
    if part in ("put", "waiting_put"):
        changed = GapTable.of(np.zeros(1, np.int64), np.array([77_777]))
    elif part in ("turn", "wake"):
        changed = GapTable.of(np.zeros(1, np.int64), np.array([55])) if part == "wake" else Exponential(9_000.0)
    flush = ASYNC if part == "put" else SYNC
    case = scenario(flush=flush, device=device, messages=2_000)
    mutated = replace(case, device=replace(device, **{part: changed}))
    assert run(mutated, 3).digest() == run_fast(mutated, 3).digest() != run(case, 3).digest()


def test_a_preset_draws_what_it_drew_before_there_were_calibrations() -> None:
    case = scenario(device=PRESETS["vm-ext4"], messages=500)
    assert run(case, 7).digest() == "d7e4efa004f9fc477493de8fbf0a22166d9b168240df73dc95bf801de44d4435"
