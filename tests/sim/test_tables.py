"""Test summaries against brute force: levels by counting, quantiles by sorting.

Levels are counted at every nanosecond that matters.
"""

from itertools import pairwise
from math import ceil

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, ON_DEMAND, SYNC, scenario
from tornpage.impl.config.policy import FlushDiskType, FlushPolicy
from tornpage.sim.distributions import Exponential
from tornpage.sim.results.analytic import batch_means
from tornpage.sim.results.rows import at_risk_rows, flush_rows, put_cdf_rows, roll_rows
from tornpage.sim.results.tables import (
    figures,
    summarise_at_risk,
    summarise_flushes,
    summarise_put_latency,
    summarise_roll_stalls,
)
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop, OpenPoisson, Sizes

SIZES = Sizes(10, 3_000)
CASES = {
    "sync": scenario(workload=OpenPoisson(9_000.0, SIZES), messages=150, file_bytes=20_000, allocation=ON_DEMAND),
    "async": scenario(
        flush=FlushPolicy(FlushDiskType.ASYNC_FLUSH, 3, 2, 20),
        workload=OpenPoisson(9_000.0, SIZES),
        messages=150,
        file_bytes=20_000,
        allocation=ON_DEMAND,
    ),
    "closed": scenario(workload=ClosedLoop(5, SIZES, Exponential(3e5)), messages=150, file_bytes=20_000),
    "one message": scenario(messages=1),
}


@pytest.fixture(params=CASES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return run(CASES[request.param], 3)


def at_risk_at(trace: Trace, moment_ns: int) -> tuple[int, int]:
    """Count messages and bytes that are written at this time and not durable."""
    lost = (trace.written_ns <= moment_ns) & (moment_ns < trace.durable_ns)
    return int(lost.sum()), int(trace.size[lost].sum())


def by_brute_force(trace: Trace, column: int) -> tuple[float, int, int]:
    """Return mean, p99 and maximum over time of the data at risk.

    The input is a list of (level, duration).
    """
    begin, end = int(trace.arrival_ns[0]), int(trace.written_ns[-1])
    moments = sorted({begin, end, *trace.written_ns.tolist(), *trace.durable_ns.tolist()})
    moments = [moment for moment in moments if begin <= moment <= end]
    spans = [(at_risk_at(trace, here)[column], there - here) for here, there in pairwise(moments)]
    total = end - begin
    levels = sorted({level for level, _ in spans})
    p99 = next(top for top in levels if sum(lasts for level, lasts in spans if level <= top) >= ceil(0.99 * total))
    return sum(level * lasts for level, lasts in spans) / total, p99, levels[-1]


def test_at_risk_is_what_counting_finds(trace: Trace) -> None:
    risk = summarise_at_risk(trace)
    for column, found in enumerate(
        [
            (risk.messages_mean, risk.messages_p99, risk.messages_max),
            (risk.bytes_mean, risk.bytes_p99, risk.bytes_max),
        ]
    ):
        expected = by_brute_force(trace, column)
        assert found[0] == pytest.approx(expected[0], rel=1e-12)
        assert found[1:] == expected[1:]


def test_at_risk_obeys_littles_law(trace: Trace) -> None:
    """Mean number at risk x time = sum of the times at risk, exactly (check 9 of the anchors).

    This holds on any path.
    """
    end = trace.load_ns
    exposed = np.minimum(trace.durable_ns, end) - trace.written_ns
    load_ns = end - int(trace.arrival_ns[0])
    assert summarise_at_risk(trace).messages_mean * load_ns == pytest.approx(exposed.sum(), rel=1e-9)


def test_at_risk_rows_are_moments_of_the_trace(trace: Trace) -> None:
    rows = at_risk_rows(trace, points=50)
    assert len(rows) == 50
    assert rows[-1]["time_us"] == trace.load_ns / 1000
    for row in rows:
        assert (row["messages"], row["bytes"]) == at_risk_at(trace, round(row["time_us"] * 1000))


def test_put_quantiles_are_values_that_were_seen(trace: Trace) -> None:
    ordered = sorted((trace.put_ns - trace.arrival_ns).tolist())
    put = summarise_put_latency(trace)
    for share, found in ((0.5, put.p50_us), (0.9, put.p90_us), (0.99, put.p99_us), (1.0, put.max_us)):
        expected = next(value for rank, value in enumerate(ordered, 1) if rank >= share * len(ordered))
        assert found == expected / 1000
    assert put.mean_us == pytest.approx(sum(ordered) / len(ordered) / 1000)
    assert put.messages == len(ordered)


def test_cdf_rows_climb_from_the_least_to_the_greatest(trace: Trace) -> None:
    rows = put_cdf_rows(trace)
    assert (rows[0]["share"], rows[-1]["share"]) == (0.0, 1.0)
    latency = (trace.put_ns - trace.arrival_ns) / 1000
    assert (rows[0]["put_us"], rows[-1]["put_us"]) == (latency.min(), latency.max())
    for row, after in pairwise(rows):
        assert row["share"] < after["share"]
        assert row["put_us"] <= after["put_us"]
    for row in rows:
        assert (latency <= row["put_us"]).mean() >= row["share"] - 1e-12


def test_flush_and_roll_summaries_repeat_their_rows(trace: Trace) -> None:
    work, rows = summarise_flushes(trace), flush_rows(trace)
    assert work.flushes == len(rows)
    assert work.mean_batch == sum(row["messages"] for row in rows) / len({row["round"] for row in rows})
    assert work.device_bytes == sum(row["device_bytes"] for row in rows)
    assert work.busy_share == pytest.approx(
        sum(row["end_us"] - row["start_us"] for row in rows) / max(row["end_us"] for row in rows)
    )
    waits = [row["stall_us"] for row in roll_rows(trace)]
    stalls = summarise_roll_stalls(trace)
    assert stalls.rolls == len(waits)
    assert stalls.stalls == sum(wait > 0 for wait in waits)
    assert stalls.max_us == max(waits, default=0.0)
    assert stalls.total_us == pytest.approx(sum(waits))


def test_figures_are_plain_numbers_with_one_type_each(trace: Trace) -> None:
    one, two = figures(trace), figures(run(CASES["sync"], 99))
    assert {name: type(value) for name, value in one.items()} == {name: type(value) for name, value in two.items()}
    assert {type(value) for value in one.values()} == {int, float}


def test_a_run_without_messages_has_empty_tables() -> None:
    trace = run(Scenario(**{**fields_of(CASES["sync"]), "messages": None, "duration_ns": 1}), 3)  # type: ignore[arg-type]
    assert put_cdf_rows(trace) == at_risk_rows(trace) == roll_rows(trace) == flush_rows(trace) == []
    assert not any(figures(trace).values())


def fields_of(case: Scenario) -> dict[str, object]:
    return {name: getattr(case, name) for name in case.__dataclass_fields__}


def test_batch_means_tell_neighbours_from_independent_values() -> None:
    """Values in runs of 100 equal ones are worth 100 times fewer.

    Their standard error is 10 times wider.
    """
    rng = np.random.default_rng(1)
    single = rng.integers(0, 1000, 32_000)
    runs = np.repeat(rng.integers(0, 1000, 320), 100)
    assert 4 < batch_means(runs).error / batch_means(single).error < 25
    assert batch_means(single[:10]).error == float("inf")


def test_answers_of_an_async_store_do_not_wait() -> None:
    slow = scenario(flush=ASYNC, device=Exponential(50.0 * MS))
    assert summarise_put_latency(run(slow, 1)).max_us == 0
    assert summarise_put_latency(run(scenario(flush=SYNC, device=Exponential(50.0 * MS)), 1)).p50_us > 10_000
