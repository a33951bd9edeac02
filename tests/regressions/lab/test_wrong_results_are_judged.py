"""Symptom: a search of a broken store ended as an error of the harness.

Cause: `put_async` and `pull_async` were taken to return futures. The calls of a part program that run one after the
other, whose results are the expected ones, were not judged. The status of an answer was taken to be one.
Fix: another answer than a future, or an answer without a status, breaks contract 8. A guarantee broken without any
interleaving is a detection.
"""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tornpage.impl.store import MessageStore
from tornpage.model.operations import PullHeld, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.interleavings.programs.bench import sequential_results
from tornpage.properties.explore.interleavings.programs.running import PROGRAMS, bench_of, modules_of
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving
from tornpage.properties.program.case import Case, Settings


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


@pytest.mark.parametrize(("verb", "operation"), [("put_async", Put(later=True)), ("pull_async", PullHeld())])
def test_asynchronous_call_without_a_future_breaks_contract_8(
    verb: str, operation: Any, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MessageStore, verb, lambda *_, **__: None)
    failure = replay(Case(Settings(), (operation,)), tracker=tracker)
    assert failure is not None
    assert (failure.broken.contract, failure.broken.sentence) == (8, f"{verb} returns no future")


def test_put_that_is_answered_without_a_status_breaks_contract_8(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = MessageStore.put
    monkeypatch.setattr(MessageStore, "put", lambda *given: put(*given)._replace(status=cast(Any, None)))
    failure = replay(Case(Settings(), (Put(),)), tracker=tracker)
    assert failure is not None
    assert (failure.broken.contract, failure.broken.sentence) == (8, "a put is answered without a status")


def test_part_that_is_wrong_without_interleaving_is_a_detection(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = next(each for each in PROGRAMS if not bench_of(each).threads)

    def state(_: object) -> object:
        raise GuaranteeBroken(17, "a save leaves out an entry")

    monkeypatch.setattr(bench_of(scenario), "state", state)
    sequential_results.cache_clear()
    order = tuple(range(len(scenario.tasks)))
    ran = run_interleaving(Interleaving(scenario, order, (), modules_of(scenario), "line"), tracker=tracker)
    sequential_results.cache_clear()
    assert ran.broken is not None
    assert ran.broken.contract == 17
