"""Test campaigns on the compiled loops, which stores in use load after 20,000 records."""

from typing import Any

import pytest

from tornpage.impl.kernels import compiled
from tornpage.impl.message.dispatching import UNIT_BYTES, Dispatched, QueueRun
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.campaign import CrashResult, Plan, run_campaign
from tornpage.properties.program.case import Case, Settings

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def needs_the_loops() -> None:
    if not compiled.load_compiled_parts():
        pytest.skip("a compiled loop cannot be loaded: Numba, its cache or a library is missing")


def run(tracker: DirtyTracker, *, states: int, seed: int) -> CrashResult:
    plan = Plan(Settings(compiled=True), seed, states, failures_max=1)
    return run_campaign(plan, tracker=tracker, progress=lambda states, seconds: None)


def test_the_compiled_loops_keep_all_promises(tracker: DirtyTracker) -> None:
    result = run(tracker, states=250, seed=1)
    assert result.verdict is Verdict.HOLDS, (result.failure, result.faults, result.silent, result.canary)
    assert result.canary


def test_a_mistake_of_a_compiled_loop_is_found_and_its_token_uses_the_loop(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = compiled._twins("dispatch")
    dispatch = loops.dispatch_records

    def without_last_unit(*arguments: Any) -> Dispatched:
        given: Dispatched = dispatch(*arguments)
        return given._replace(runs=[cut for run in given.runs if (cut := _shorter(run)).units])

    monkeypatch.setattr(loops, "dispatch_records", without_last_unit)
    failure = run(tracker, states=250, seed=1).failure
    assert failure is not None
    case = Case.from_token(failure.case.token())
    assert case.settings.compiled


def _shorter(run: QueueRun) -> QueueRun:
    """Leave the last unit out of a run of several."""
    return run._replace(units=run.units[:-UNIT_BYTES]) if len(run.units) > UNIT_BYTES else run


def test_missing_loops_are_a_fault_of_the_lab_not_of_the_store(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_twins", lambda name: compiled._PLAIN[name])
    result = run(tracker, states=10, seed=1)
    assert result.verdict is Verdict.HARNESS
    assert "leave out --compiled" in str(result.faults)
