"""Test sweeps: points are values, rows are plain, and the process makes no difference."""

import json
import multiprocessing
import pickle
from dataclasses import replace

import pytest

from tests.sim.support import ASYNC, ON_DEMAND, ONE_AHEAD, SYNC, scenario
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.sim import sweep
from tornpage.sim.device.device import PRESETS
from tornpage.sim.distributions import Exponential
from tornpage.sim.scenario import MESSAGES_MAX, ImpossibleScenario, Pool, Scenario
from tornpage.sim.sweep import Point, flush_name, grid, run_point, run_points
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes


def small_grid() -> list[Point]:
    return grid(
        flushes=[SYNC, ASYNC, FlushPolicy(FlushDiskType.ASYNC_FLUSH, 20)],
        allocations=[ONE_AHEAD, ON_DEMAND],
        devices=[PRESETS["vm-ext4"], PRESETS["exponential-1ms"]],
        workloads=[OpenPoisson(2_000.0, Sizes.of(512)), ClosedLoop(3, Sizes(100, 200), Exponential(1e6))],
        file_bytes=[1 << 14],
        messages=200,
    )


def test_a_grid_is_every_combination_once_in_order() -> None:
    points = small_grid()
    assert [point.index for point in points] == list(range(3 * 2 * 2 * 2))
    assert len({point.scenario for point in points}) == len(points)
    twice = grid(
        flushes=[SYNC, SYNC],
        allocations=[ONE_AHEAD],
        devices=[PRESETS["hdd"]],
        workloads=[OpenPoisson(1.0, Sizes.of(1))],
        file_bytes=[4096],
        messages=1,
        seeds=[1, 2],
    )
    assert [(point.scenario.flush, point.seed) for point in twice] == [(SYNC, 1), (SYNC, 2)]


def test_rows_have_the_same_columns_of_plain_types() -> None:
    rows = [tables.row for tables in run_points(small_grid())]
    columns = [{name: type(value) for name, value in row.items()} for row in rows]
    assert all(column == columns[0] for column in columns)
    assert set(columns[0].values()) == {str, int, float}
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert len({row["trace_sha256"] for row in rows}) > len(rows) // 2


def test_long_tables_name_their_point() -> None:
    for tables in run_points(small_grid()[:3]):
        for rows in (tables.put_cdf, tables.at_risk, tables.rolls, tables.flushes):
            assert rows
            assert {row["point"] for row in rows} == {tables.row["point"]}
            assert len({tuple(row) for row in rows}) == 1


def test_points_run_elsewhere_give_the_same_rows() -> None:
    points = small_grid()[::5]
    here = [run_point(point) for point in points]
    assert [run_point(pickle.loads(pickle.dumps(point))) for point in points] == here
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(run_point, points) == here


def test_a_large_grid_is_compiled_and_its_rows_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    small = small_grid()
    assert not any(point.is_compiled for point in small)
    [large] = grid(
        flushes=[SYNC],
        allocations=[ONE_AHEAD],
        devices=[PRESETS["hdd"]],
        workloads=[OpenPoisson(1.0, Sizes.of(1))],
        file_bytes=[4096],
        messages=sweep.WORTH_COMPILING,
    )
    assert large.is_compiled
    expected = [run_point(point) for point in small]
    monkeypatch.setattr(sweep, "run", pytest.fail)
    assert [run_point(replace(point, is_compiled=True)) for point in small] == expected


def test_a_compiled_grid_leaves_what_it_does_not_know_to_the_reference() -> None:
    pooled = replace(scenario(flush=ASYNC, messages=300), pool=Pool(3))
    rows = [run_point(Point(0, pooled, 1, is_compiled=each)) for each in (False, True)]
    assert rows[0] == rows[1]
    assert rows[0]["commits"] != 0


def test_a_law_stands_in_the_rows_where_it_is_exact() -> None:
    [exact, inexact] = grid(
        flushes=[SYNC],
        allocations=[ONE_AHEAD],
        devices=[PRESETS["constant-1ms"], PRESETS["vm-ext4"]],
        workloads=[OpenPoisson(1_000.0, Sizes.of(100))],
        file_bytes=[1 << 30],
        messages=20_000,
    )
    row = run_point(exact)
    assert row["law"] == "group commit"
    assert row["law_mean_us"] == pytest.approx(1365.5, abs=0.1)
    assert isinstance(row["law_errors"], float)
    assert abs(row["law_errors"]) < 4
    row = run_point(inexact)
    assert (row["law"], row["law_mean_us"], row["law_errors"]) == ("", 0.0, 0.0)


def test_names_say_what_the_policy_is() -> None:
    assert flush_name(SYNC) == "sync"
    assert flush_name(ASYNC) == "async 500 ms, 4 pages, 10000 ms"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"file_bytes": 1031}, "a record of 1024 bytes does not fit a log file of 1031 bytes"),
        ({"messages": None}, "a run needs an end"),
        ({"messages": 0}, "at least one message"),
        ({"messages": None, "duration_ns": 0}, "some time"),
        ({"messages": MESSAGES_MAX + 1}, "too many for one run"),
        ({"messages": None, "duration_ns": 10**15, "workload": 1e6}, "too many for one run"),
        (
            {
                "messages": None,
                "duration_ns": 5,
                "flush": ASYNC,
                "device": PRESETS["constant-1ms"],
                "workload": ClosedLoop(1, Sizes.of(1)),
            },
            "would send forever",
        ),
    ],
)
def test_impossible_scenarios_are_refused_with_a_reason(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(ImpossibleScenario, match=sentence):
        scenario(**wrong)  # type: ignore[arg-type]
    assert isinstance(scenario(file_bytes=1032), Scenario)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OpenPoisson(0.0, Sizes.of(1)),
        lambda: OpenPoisson(float("nan"), Sizes.of(1)),
        lambda: OpenPoisson(float("inf"), Sizes.of(1)),
        lambda: Sizes(0, 5),
        lambda: Sizes(6, 5),
        lambda: ClosedLoop(0, Sizes.of(1)),
        lambda: AllocationPolicy(-1),
    ],
)
def test_impossible_values_are_refused(wrong: "type[object]") -> None:
    with pytest.raises(ValueError, match=r"impossible|it has to be"):
        wrong()
