"""Test the progress of a simulation: reported by both engines, for every kind of load.

It has no effect on the run.
"""

from collections.abc import Callable

import pytest

from tests.sim.support import ASYNC, MS, SYNC, open_load, scenario
from tornpage.impl.config.policy import FlushPolicy
from tornpage.sim.actors import producers
from tornpage.sim.distributions import Constant
from tornpage.sim.fast import run_fast
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario
from tornpage.sim.sweep import Point, run_tables
from tornpage.sim.workload import ClosedLoop, Sizes, Workload

MESSAGES = 5_000
LOADS: dict[str, Workload] = {
    "open": open_load(20_000.0),
    "closed": ClosedLoop(5, Sizes(100, 3_000), Constant(10_000)),
}


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "ARRIVALS_AT_ONCE", 1_000)
    monkeypatch.setattr(producers, "PORTION", 1_000)
    monkeypatch.setattr("tornpage.sim.fast.PRODUCER_DRAWS", 1_000)


@pytest.mark.parametrize("flush", [SYNC, ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("engine", [run, run_fast], ids=["events", "compiled"])
def test_messages_are_counted_and_the_trace_is_the_same(
    engine: Callable[..., Trace], load: str, flush: FlushPolicy
) -> None:
    asked: Scenario = scenario(workload=LOADS[load], flush=flush, messages=MESSAGES)
    told: list[int] = []
    watched = engine(asked, 3, progress=told.append)
    assert watched.digest() == run(asked, 3).digest()
    assert told == sorted(told)
    assert len(told) >= 4
    assert MESSAGES // 2 < told[-1] <= MESSAGES


def test_messages_are_counted_where_time_ends_them() -> None:
    asked = scenario(workload=LOADS["closed"], flush=ASYNC, messages=None, duration_ns=40 * MS)
    told: list[int] = []
    trace = run(asked, 3, progress=told.append)
    assert len(told) > 3
    assert told[-1] <= len(trace.put_ns)
    assert trace.digest() == run_fast(asked, 3).digest()


def test_tables_are_named_when_they_are_made() -> None:
    told: list[tuple[int, str]] = []
    point = Point(0, scenario(workload=LOADS["open"], flush=SYNC, messages=MESSAGES), 3)
    made = run_tables(point, lambda messages, table: told.append((messages, table)))
    assert made == run_tables(point)
    named = [(messages, table) for messages, table in told if table]
    assert told[-len(named) :] == named
    tables = ["put_cdf", "at_risk", "rolls", "flushes", "put_histogram", "crashes"]
    assert [table for _, table in named] == ["figures", *tables]
    assert {messages for messages, _ in named} == {MESSAGES}
