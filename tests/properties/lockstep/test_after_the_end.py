"""Test that a store which answers after its end, or in a forked child, is found."""

from collections.abc import Iterator

import pytest

from tornpage.impl.put.put_answers import LightFuture
from tornpage.impl.read.read_buffer import ReadBuffer
from tornpage.impl.service import lifecycle
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.model.operations import Close, Flush, HoldBuffer, OpenTwice, Put, ReleaseBuffer, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings


@pytest.fixture
def trial() -> Iterator[Lockstep]:
    with choose_tracker("auto") as tracker:
        found = lockstep_of(Settings(sync_flush=True), tracker=tracker)
        for operation in (Put(), Flush(), Step(service="reput")):
            found.run(operation)
        yield found


def test_store_that_is_closed_or_forked_is_refused(trial: Lockstep) -> None:
    for operation in (OpenTwice(), HoldBuffer(), ReleaseBuffer(), Put(later=True), Close()):
        trial.run(operation)


def test_answers_of_a_closed_store_are_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lifecycle, "require_open", lambda found: None)
    with pytest.raises(GuaranteeBroken, match="of a closed store is answered"):
        trial.run(Close())


def test_store_that_a_child_may_use_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_OPEN", set())
    with pytest.raises(GuaranteeBroken, match="a forked child uses the store of its parent"):
        trial.run(OpenTwice())


def test_buffer_with_a_wrong_state_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadBuffer, "released", property(lambda buffer: True))
    with pytest.raises(GuaranteeBroken, match="has another state or place"):
        trial.run(HoldBuffer())


def test_future_that_cannot_be_waited_for_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LightFuture, "_wait", lambda future, timeout: None)
    with pytest.raises(GuaranteeBroken, match="a future of put_async that waits has another result"):
        trial.run(Put(later=True))
