"""Test fresh interpreters that hold a store: a second one is refused.

A killed one leaves all acknowledged messages.
"""

import sys
from pathlib import Path

import pytest

from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.explore.kills.restarts import RestartResult, RestartTally, run_restarts

PROGRAM = str(Path(__file__).parents[3] / "support" / "properties" / "broken_holder.py")


def broken_run(directory: Path, store: str) -> RestartResult:
    return run_restarts(1, seed=2, directory=directory, holder=(sys.executable, "-P", PROGRAM, store))


@pytest.mark.slow
def test_a_store_outlives_its_processes_one_at_a_time(tmp_path: Path) -> None:
    result = run_restarts(1, seed=1, directory=tmp_path)
    assert result.found == []
    assert result.tally == RestartTally(restarts=1, refused=1, killed=1, processes=4, messages=result.tally.messages)
    assert result.tally.messages > 1
    assert result.verdict is Verdict.HOLDS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("store", "contract", "sentence"),
    [
        ("everybody-in", 14, "a second process opens the store"),
        ("touches-first", 14, "has already touched the store"),
        ("nobody-in", 14, "although no process holds the store"),
        ("marker-forgotten", 7, "the abort marker is wrong while the first process has the store open"),
        ("marker-stays", 7, "the abort marker is wrong after a clean exit"),
        ("answered-twice", 2, "serves other messages than those acknowledged"),
    ],
)
def test_a_store_that_breaks_a_promise_is_named(tmp_path: Path, store: str, contract: int, sentence: str) -> None:
    result = broken_run(tmp_path, store)
    assert result.verdict is Verdict.BROKEN
    assert result.failure is not None
    assert result.failure.contract == contract
    assert sentence in result.failure.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_says_nothing_is_the_harness_at_fault(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="holder has"):
        broken_run(tmp_path, "mute")
    assert list(tmp_path.iterdir()) == []


def test_no_restarts_are_vacuous(tmp_path: Path) -> None:
    assert run_restarts(0, seed=1, directory=tmp_path).verdict is Verdict.VACUOUS


@pytest.mark.slow
def test_an_interrupt_keeps_what_there_is_and_leaves_nobody(tmp_path: Path) -> None:
    def interrupted(restarts: int) -> None:
        raise KeyboardInterrupt

    result = run_restarts(5, seed=1, directory=tmp_path, progress=interrupted)
    assert (result.interrupted, result.tally.restarts, result.failure) == (True, 1, None)
    assert list(tmp_path.iterdir()) == []
