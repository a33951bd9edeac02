"""Test that wrong answers to a pull consumer are found."""

from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.consumer.connection import DirectConnection
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.model.consumers.operations import Join, Produce, ReadBroker, RunGroup, StepBroker
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.group_case import GroupSettings

_CALL = PullConsumer._call


def _reaches_every_broker(self: PullConsumer, broker_name: str, *rest: Any) -> Any:
    return _CALL(self, "broker-a", *rest)


def carried_out(tracker: DirtyTracker) -> GroupTrial:
    trial = GroupTrial(GroupSettings(queues=1), tracker=tracker)
    puts = (Produce(), Produce(), StepBroker(), Join(), RunGroup(8, 6_000))
    for operation in (*puts, ReadBroker(offset=1), ReadBroker(), ReadBroker(offset=3)):
        trial.run(operation)
    return trial


def test_answers_are_those_of_the_store(tracker: DirtyTracker) -> None:
    trial = carried_out(tracker)
    assert trial.hit["read_broker"] == 3
    assert trial.host.store.consumer_offsets("T")["P"] == {0: 2}


@pytest.mark.parametrize(
    ("where", "name", "wrong", "sentence"),
    [
        (PullConsumer, "_call", _reaches_every_broker, "the error of an unknown broker"),
        (DirectConnection, "close", lambda self: None, "the error of a closed connection"),
        (QueueLag, "diff", property(lambda self: self.max_offset), "the lag of a group"),
    ],
)
def test_wrong_answer_is_found(
    tracker: DirtyTracker,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    name: str,
    wrong: Callable[..., Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(where, name, wrong)
    with pytest.raises(GuaranteeBroken, match=f"contract 8: .*{sentence}"):
        carried_out(tracker)
