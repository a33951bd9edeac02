"""Test the named experiments: complete, repeatable, true to formulas, right captions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.sim.support import MS
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.distributions import Constant, Exponential, LogNormal
from tornpage.sim.experiments import knee, pool, roll, warm_up
from tornpage.sim.experiments.devices import device_source
from tornpage.sim.experiments.failover import TIMEOUTS_MS
from tornpage.sim.experiments.frontier import FRONTIER, front
from tornpage.sim.experiments.knee import KNEE, knee_rate
from tornpage.sim.experiments.least_pages import LEAST_PAGES, boundary_rate
from tornpage.sim.experiments.policies import policies
from tornpage.sim.experiments.pool import POOL
from tornpage.sim.experiments.quorum import LINKS_COMPARED
from tornpage.sim.experiments.registry import EXPERIMENTS, UnknownExperiment, named
from tornpage.sim.experiments.replay import REPLAY
from tornpage.sim.experiments.roll import ROLL
from tornpage.sim.experiments.slow_disk import SLOW_DISK, scaled_sync
from tornpage.sim.experiments.stalls import STALLS
from tornpage.sim.experiments.values import Experiment, Result, Row, Setup, run_experiment
from tornpage.sim.experiments.warm_up import WARM_UP
from tornpage.sim.experiments.words import grouped, of

VM = PRESETS["vm-ext4"]
SMALL = Setup(VM, seed=1, effort=0.003)
ASKED_FOR = (
    "knee",
    "frontier",
    "stalls",
    "roll",
    "warm-up",
    "least-pages",
    "pool",
    "slow-disk",
    "replay",
    "second-copy",
    "consumer-window",
    "rebalance",
    "quorum",
    "failover",
)


pytestmark = pytest.mark.slow  # all experiments are drawn once, in some seconds


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Return the results of each experiment at a small effort."""
    return {one.name: run_experiment(one, SMALL, lambda step: None) for one in EXPERIMENTS}


def test_every_experiment_asked_for_is_there_once() -> None:
    assert tuple(one.name for one in EXPERIMENTS) == ASKED_FOR


@pytest.mark.parametrize("name", ASKED_FOR)
def test_an_experiment_has_all_that_a_figure_needs(name: str, results: dict[str, Result]) -> None:
    result = results[name]
    experiment, chart = result.experiment, result.experiment.chart
    assert experiment.question.endswith("?")
    assert experiment.setting.endswith(".")
    assert result.caption.endswith(".")
    axes = (chart.x, *chart.panels, *((chart.value,) if chart.value else ()))
    shown = {axis.column for axis in axes} | {chart.series, chart.panel_by, chart.label, chart.low, chart.high} - {""}
    assert result.rows
    assert {tuple(row) for row in result.rows} == {tuple(result.rows[0])}
    assert shown <= set(result.rows[0])
    for axis in axes:
        assert axis.label
        if axis.scale != "names" and chart.kind != "bars":
            assert axis.unit


@pytest.mark.parametrize("name", ["slow-disk", "stalls", "frontier"])
def test_equal_seeds_give_equal_results_and_others_do_not(name: str, results: dict[str, Result]) -> None:
    again = run_experiment(named(name), SMALL, lambda step: None)
    assert again == results[name]
    assert run_experiment(named(name), replace(SMALL, seed=2), lambda step: None).rows != again.rows


def test_a_wrong_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownExperiment, match=r"no experiment 'kne'; did you mean knee\?"):
        named("kne")
    with pytest.raises(UnknownExperiment, match="there are knee, frontier"):
        named("xyz")


def test_every_preset_says_where_its_numbers_are_from() -> None:
    disks = [name for name in PRESETS if "ms" not in name and "us" not in name]
    assert all("formulas" not in device_source(name) for name in disks if name != "consumer-nvme")
    assert "formulas" in device_source("constant-1ms")
    assert device_source("mine") == "given by its user"


# ---- formulas ------------------------------------------------------------------------------------------------------


def test_the_knee_lies_where_the_put_lock_is_full() -> None:
    """Puts of 100 µs fill the lock at 10,000/s (checks 2 and 12).

    3,000/s is far below that, 30,000/s above.
    """
    setup = Setup(PRESETS["put-100us"], seed=1, effort=0.02)
    rows = [row for row in knee.measure(setup, lambda step: None) if of(row, "rate_per_s") <= 3e4]
    for policy in knee.FLUSHES:
        own = [row for row in rows if row["policy"] == policy.name]
        assert knee_rate(own) in (1e4, 3e4)


def test_a_roll_without_a_file_ahead_takes_as_long_as_making_one(results: dict[str, Result]) -> None:
    """Check 15 without the term F/r: the file is made when it is needed."""
    for row in results["roll"].rows:
        if str(row["policy"]).startswith("on demand"):
            assert of(row, "longest_stall_us") == pytest.approx(1000 * of(row, "making_ms"), rel=1e-9)
        else:
            assert of(row, "longest_stall_us") == 0 or of(row, "making_ms") > of(row, "filling_ms")


def test_one_file_ahead_stalls_for_what_making_takes_longer_than_filling() -> None:
    """Check 15: max(0, T - F/r) at the first roll; 400 ms to make, 328 ms to fill.

    Later rolls have a backlog.
    """
    device = DeviceTimes(name="slow to make", sync=Constant(0), create_ns=400 * MS)
    [one_ahead] = [policy for policy in roll.CASES if policy.name == "one ahead"]
    trace = Setup(device, seed=1).trace(
        one_ahead.scenario(device, roll.RATE, messages=20_000, file_bytes=roll.FILE_BYTES)
    )
    [rolled] = trace.rolls
    filled_ns = int(trace.arrival_ns[rolled["row"]])
    assert int(rolled["ready_ns"] - rolled["asked_ns"]) == 400 * MS - filled_ns
    assert filled_ns == pytest.approx(roll.FILE_BYTES / 1024 / roll.RATE * 1e9, rel=0.03)


def test_the_boundary_of_the_page_rule_divides_the_map(results: dict[str, Result]) -> None:
    """Check 8; a factor of two away from the boundary nothing depends on chance."""
    assert boundary_rate(500) == 32.0
    for row in results["least-pages"].rows:
        rate, interval_ms = of(row, "rate_per_s"), of(row, "interval_ms")
        if rate >= 2 * boundary_rate(interval_ms):
            assert of(row, "exposed_max_ms") < 2 * interval_ms
        if rate <= boundary_rate(interval_ms) / 2:
            assert of(row, "exposed_p99_ms") > interval_ms
        assert of(row, "exposed_max_ms") < 10_000 + interval_ms + 100


def test_a_pool_is_empty_when_the_formula_says_give_or_take_two_buffers(results: dict[str, Result]) -> None:
    """Check 14."""
    for row in results["pool"].rows:
        burst = of(row, "burst_mib_per_s")
        off_mib = abs(of(row, "empty_s") - of(row, "formula_s")) * (burst - pool.COMMITTED_MIB_PER_S)
        assert off_mib < 2 * pool.FILE_BYTES / pool.MIB


def test_slower_disks_have_the_median_asked_for() -> None:
    laws = (Constant(7), Exponential(7.0), LogNormal(7.0, 0.5))
    devices = [scaled_sync(DeviceTimes(name="any", sync=law), 5e6) for law in laws]
    medians = [float(device.sync.quantile(np.array([0.5]))[0]) for device in devices]
    assert medians == pytest.approx([5e6] * 3)


def test_warming_up_writes_each_byte_once(results: dict[str, Result]) -> None:
    written = {row["method"]: row["simulated"] for row in results["warm-up"].rows if row["bill"] == warm_up.BYTES}
    assert written["none"] == 0
    assert {written[name] for name in warm_up.SIMULATED if name != "none"} == {1.0}
    assert written["mlock"] is None


# ---- captions ------------------------------------------------------------------------------------------------------


def planted(rows: Sequence[Row], **changes: object) -> list[Row]:
    """Return the rows with columns replaced by values or by a function of the row."""
    return [{**row, **{k: v(row) if callable(v) else v for k, v in changes.items()}} for row in rows]  # type: ignore[misc]


PLANTED: list[tuple[Experiment, dict[str, object], str]] = [
    (KNEE, {"put_p99_us": 5.0}, "pool + async 500 ms: p99 is 5 µs at 1,000/s and stays below 10 times"),
    (KNEE, {"put_p99_us": lambda row: row["rate_per_s"]}, "it exceeds 10 times that value between 10 k/s and 30 k/s"),
    (FRONTIER, {"lost_answered_max": 3}, "Every policy lost acknowledged messages"),
    (FRONTIER, {"put_p99_us": lambda row: 1.0 if row["policy"] == "sync" else 2.0}, "No policy beats sync (put p99 1"),
    (STALLS, {"us_per_put": 0.0}, "sync + one ahead + force: no waits at all."),
    (STALLS, {"us_per_put": lambda row: float(row["cause"] == "next file")}, "pool: 1 µs per put, 100 % of it next"),
    (ROLL, {"longest_stall_us": 0.0}, "on demand, on demand + touch, one ahead, one ahead + touch and sync"),
    (ROLL, {"longest_stall_us": 7e6}, "one ahead stalls for up to 7 s at a roll"),
    (ROLL, {"making_ms": 100.0}, "one ahead suffices up to 164 k/s"),
    (WARM_UP, {"simulated": lambda row: row["simulated"] and 9.0}, "differs from the measurement by half or more"),
    (LEAST_PAGES, {"exposed_p99_ms": 1.0}, "Below the boundary 0 of 27 cells delay flushes"),
    (LEAST_PAGES, {"exposed_p99_ms": 9e3}, "above it 0 of 24 do not"),
    (POOL, {"empty_s": None}, "16 buffers had a buffer for every file at 156, 188"),
    (POOL, {"empty_s": lambda row: 3 * row["formula_s"]}, "at most 28 buffers off"),
    (SLOW_DISK, {"put_p99_us": lambda row: (row["sync_p50_us"] > 900) == (row["policy"] == "sync")},
     "order changes on the way to 1 ms"),
    (REPLAY, {"simulated": 0.0}, "Issue 1372 is not reproduced: 0 µs"),
    (REPLAY, {"simulated": 0.0}, "Issue 2439 is not reproduced: every file has a buffer"),
    (REPLAY, {"simulated": 0.0}, "Issue 7524 is not reproduced"),
]  # fmt: skip


@pytest.mark.parametrize(("experiment", "changes", "told"), PLANTED, ids=lambda value: getattr(value, "name", None))
def test_a_caption_tells_its_rows(
    experiment: Experiment, changes: dict[str, object], told: str, results: dict[str, Result]
) -> None:
    rows = planted(results[experiment.name].rows, **changes)
    assert told in experiment.caption(rows)
    assert told not in results[experiment.name].caption


def test_the_front_has_no_policy_that_another_beats(results: dict[str, Result]) -> None:
    rows = results["frontier"].rows
    best = front(rows)
    assert best[-1]["policy"] == "sync"
    for one in best:
        for other in rows:
            if str(other["crash"]).startswith("power"):
                faster, younger = (of(other, c) < of(one, c) for c in ("put_p99_us", "lost_age_mean_ms"))
                assert not (faster and younger)


def test_policies_have_names_that_tell_them_apart() -> None:
    assert [policy.name for policy in policies("sync", "async 10 ms")] == ["sync", "async 10 ms"]
    with pytest.raises(KeyError):
        policies("none such")


# ---- Raft groups -----------------------------------------------------------------------------------------------------


def test_only_a_sync_before_the_answer_keeps_all_messages(results: dict[str, Result]) -> None:
    sync, flush = grouped(results["quorum"].rows, "policy").values()
    assert max(of(row, "lost_max") for row in sync) == 0
    assert max(of(row, "group_lost_max") for row in sync) == 0
    assert min(of(row, "lost_max") for row in flush if row["link"] == "same rack") > 0


def test_a_quorum_costs_a_round_trip(results: dict[str, Result]) -> None:
    round_trips_ms = {link.name: 2 * link.latency.mean_ns / 1e6 for link in LINKS_COMPARED}
    for own in grouped(results["quorum"].rows, "series").values():
        alone, *groups = own
        assert all(of(row, "put_p50_ms") > 0.8 * round_trips_ms[str(row["link"])] for row in groups)
        assert of(alone, "put_p50_ms") < of(groups[0], "put_p50_ms")


def test_a_failover_grows_with_the_time_out(results: dict[str, Result]) -> None:
    for own in grouped(results["failover"].rows, "series").values():
        assert [of(row, "timeout_ms") for row in own] == list(TIMEOUTS_MS)
        assert of(own[-1], "failover_p50_s") > 5 * of(own[0], "failover_p50_s")
        assert all(of(row, "failover_p50_s") > 0.5 * of(row, "timeout_ms") / 1_000 for row in own)
