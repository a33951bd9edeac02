"""Test that wrong answers in the protocol of clients are found."""

from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.serving import operations
from tornpage.impl.serving.operations import Operations
from tornpage.model.replication.operations import AskNode, FailSyncOn, FlushNode, PutOn, RunAll
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.cluster_case import ClusterSettings


def carried_out(tracker: DirtyTracker) -> ClusterTrial:
    trial = ClusterTrial(ClusterSettings(), tracker=tracker)
    for operation in (PutOn(body_bytes=9, key="k", served=True), PutOn(), RunAll(4), AskNode(), AskNode(1)):
        trial.run(operation)
    return trial


def test_answers_are_those_of_the_store(tracker: DirtyTracker) -> None:
    trial = carried_out(tracker)
    assert trial.hit["ask_node"] == 2
    assert [each.store.max_offset_in_queue("T", 0) for each in trial.nodes] == [2, 2]


def test_status_of_a_store_that_stopped_writing_is_its_reason(tracker: DirtyTracker) -> None:
    trial = ClusterTrial(ClusterSettings(), tracker=tracker)
    for operation in (FailSyncOn(0), PutOn(), FlushNode(), AskNode()):
        trial.run(operation)
    assert "Input/output error" in str(trial.nodes[0].store.read_only_reason)


@pytest.mark.parametrize(
    ("where", "name", "wrong", "sentence"),
    [
        (Operations, "_get", lambda *_: {}, "the answer to get is not that of the store"),
        (Operations, "_queues", lambda *_: {"queues": []}, "the answer to queues"),
        (Operations, "_progress", lambda *_: {"offset": 7}, "the answer to progress"),
        (operations, "text_of", lambda fields, name: str(fields.get(name, "T")), "is not refused"),
        (operations, "number_of", lambda fields, name, default=0, *_: int(fields.get(name, default)), "is not refused"),
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
