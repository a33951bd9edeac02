"""Test opened copies, wrong answers, impossible messages, and failed members."""

from typing import get_args

import pytest

from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.settings import RaftSettings as NodeSettings
from tornpage.model.raft.operations import (
    Answer,
    AnswerWrongly,
    Beat,
    CopyChange,
    Elect,
    FailSyncOf,
    Greeting,
    Knock,
    OpenCopy,
    Propose,
    RaftOperation,
    RunNodes,
    SyncLog,
)
from tornpage.model.raft.settings import CASES, DEFAULTS
from tornpage.properties.cluster.formats import settings_hold
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft import nodes
from tornpage.properties.raft.nodes import NodesTrial
from tornpage.properties.raft.trial import RaftTrial

ONE = RaftSettings(members=1, data_file_bytes=1024)
NODES = RaftSettings(members=3, nodes=True, batch_bytes=1 << 30)


def ran(tracker: DirtyTracker, settings: RaftSettings = ONE, entries: int = 12) -> RaftTrial:
    """Return a group of one with durable entries in two files."""
    trial = RaftTrial(settings, tracker=tracker)
    operations: list[RaftOperation] = [Elect(), SyncLog(), *[Propose()] * entries, SyncLog()]
    for operation in operations:
        trial.run(operation)
    return trial


@pytest.mark.parametrize("change", get_args(CopyChange))
@pytest.mark.parametrize("store", [False, True])
def test_a_changed_copy_is_judged(change: CopyChange, store: bool, tracker: DirtyTracker) -> None:
    trial = ran(tracker, RaftSettings(members=1, data_file_bytes=1024, store=store))
    before = trial.nodes[0].state
    for at in (0, 5, 77, 1_234):
        trial.run(OpenCopy(0, change, at))
    assert trial.hit[f"copy {change}"] == 4
    trial.run(Beat())
    assert trial.nodes[0].state == before


def test_an_entry_that_is_not_durable_may_be_lost(tracker: DirtyTracker) -> None:
    trial = ran(tracker)
    trial.run(Propose())
    trial.run(OpenCopy(0, "entry", 13))
    assert trial.hit["copy entry"] == 1


def test_a_log_that_ignores_damage_is_caught(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RaftLog, "_units_in_index", lambda self, sealed: self._begin)
    with pytest.raises(GuaranteeBroken, match="a log with damage is opened"):
        ran(tracker).run(OpenCopy(0, "entry", 3))


def test_another_file_of_the_commit_end_is_caught(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    save = CommitPoint.save
    monkeypatch.setattr(CommitPoint, "save", lambda self, commit, end: save(self, commit, end + 1))
    with pytest.raises(GuaranteeBroken, match="the file of the commit end has another content"):
        ran(tracker).run(OpenCopy(0, "bad commit end"))


@pytest.mark.parametrize("store", [False, True])
def test_a_member_takes_no_event_after_a_failed_one(store: bool, tracker: DirtyTracker) -> None:
    trial = ran(tracker, RaftSettings(members=1, store=store))
    for operation in (Propose(), FailSyncOf(), SyncLog()):
        trial.run(operation)
    assert trial.hit["stopped by a failed call"] == 1
    trial.finish()


def test_an_answer_of_another_shape_breaks_a_guarantee(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the search as a fault of the harness."""

    def parts_with_a_wrong_answer() -> None:
        raise KeyError("entries")

    monkeypatch.setattr(nodes, "parts_hold", parts_with_a_wrong_answer)
    with pytest.raises(GuaranteeBroken, match="a reader of parts raises KeyError: 'entries'"):
        NodesTrial(NODES, tracker=tracker)


@pytest.mark.parametrize("answer", get_args(Answer))
def test_a_wrong_answer_ends_its_link(answer: Answer, tracker: DirtyTracker) -> None:
    trial = NodesTrial(NODES, tracker=tracker)
    for operation in (RunNodes(3_000), AnswerWrongly(0, 1, answer), RunNodes(20)):
        trial.run(operation)
    assert trial.hit[f"wrong answer {answer}"] == 1


IMPOSSIBLE: tuple[Greeting, ...] = (
    "longest frame", "too long frame", "last term", "more entries", "later read", "second leader", "own last term",
    "entry for no file", "committed entry",
)  # fmt: skip


@pytest.mark.parametrize("greeting", IMPOSSIBLE)
def test_an_impossible_message_is_refused(greeting: Greeting, tracker: DirtyTracker) -> None:
    trial = NodesTrial(NODES, tracker=tracker)
    trial.run(RunNodes(3_000))
    roles = [(node.state.role, node.state.term) for node in trial.nodes]
    for number in range(3):
        trial.run(Knock(number, greeting))
        trial.run(RunNodes(300))
    assert trial.hit[f"knock {greeting}"]
    assert [(node.state.role, node.state.term) for node in trial.nodes] == roles


def test_another_default_is_caught() -> None:
    peers = ("10.0.0.1:1",)
    settings_hold(NodeSettings, DEFAULTS, CASES, peers=peers)
    with pytest.raises(GuaranteeBroken, match="the setting pending_max has another default"):
        settings_hold(NodeSettings, DEFAULTS | {"pending_max": 10_001}, CASES, peers=peers)
    with pytest.raises(GuaranteeBroken, match="are accepted"):
        settings_hold(NodeSettings, DEFAULTS, [({"pending_max": 1}, False)], peers=peers)
    with pytest.raises(GuaranteeBroken, match="are refused"):
        settings_hold(NodeSettings, DEFAULTS, [({"pending_max": 0}, True)], peers=peers)
