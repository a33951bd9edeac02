"""The judges of parts of a Raft member have to reject wrong parts."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.errors import BadConfig
from tornpage.impl.put.rewriting import delayed
from tornpage.impl.raft import entry_codec, objections, opening, raft_store, settings
from tornpage.impl.raft.answers import Answered, RaftStatus, settle
from tornpage.impl.raft.appended_puts import AppendedPuts
from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.open_files import OpenFiles
from tornpage.impl.raft.peers import Peers, _Receiver, _Sender, _Silence
from tornpage.impl.raft.raft_commit_log import RaftCommitLog
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.raft_store import RaftStore
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.store_application import StoreApplication
from tornpage.impl.raft.wire import hello_of
from tornpage.impl.replication.framing import Frame, Framing
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.topic_cleaning import TopicCleaning
from tornpage.model.raft.operations import (
    CutLinks,
    Elect,
    Knock,
    OpenCopy,
    Propose,
    RaftOperation,
    RunNodes,
    StopNode,
    SyncLog,
)
from tornpage.model.raft.settings import CASES, DEFAULTS
from tornpage.properties.cluster.formats import settings_hold
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft import formats
from tornpage.properties.raft.impossible import impossible_messages_hold
from tornpage.properties.raft.links_alone import links_alone_hold
from tornpage.properties.raft.logs_alone import log_alone_holds, log_opens_in_blocks
from tornpage.properties.raft.node_alone import nodes_alone_hold
from tornpage.properties.raft.nodes import NodesTrial
from tornpage.properties.raft.open_files_alone import open_files_hold
from tornpage.properties.raft.requests_alone import requests_alone_hold
from tornpage.properties.raft.small_parts_alone import small_parts_alone_hold
from tornpage.properties.raft.store_alone import store_alone_holds
from tornpage.properties.raft.store_limits import store_limits_hold
from tornpage.properties.raft.trial import RaftTrial

NODES = RaftSettings(members=3, nodes=True, batch_bytes=1 << 30)


def logs_hold() -> None:
    for seed in range(60):
        log_alone_holds(seed)


def member_settings_hold() -> None:
    settings_hold(settings.RaftSettings, DEFAULTS, CASES, peers=("10.0.0.1:1", "10.0.0.2:2"))


def take_greeting(receiver: _Receiver, greeting: Frame) -> None:
    """Believe a greeting."""
    receiver.hello = hello_of(greeting.body)


def take_first_transfers(node: RaftNode, now_ms: int) -> None:
    """Forget a transfer before its message is sent, so that a failure does not answer it."""
    while node._transfers:
        to, answer = node._transfers.popleft()
        node.refusal = node._refusal(now_ms)
        sent = [] if node.refusal is not None else node._application.transfer(to)
        node._send(sent, now_ms)
        settle(answer, Answered(node.refusal or (RaftStatus.OK if sent else RaftStatus.BUSY)))


def do_nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


JUDGES = (
    logs_hold, log_opens_in_blocks, open_files_hold, links_alone_hold, nodes_alone_hold, impossible_messages_hold,
    store_limits_hold, formats._codec_holds, requests_alone_hold, small_parts_alone_hold, store_alone_holds,
)  # fmt: skip


@pytest.mark.parametrize("judge", JUDGES)
def test_parts_of_a_member_hold(judge: Callable[[], None]) -> None:
    judge()


@pytest.mark.parametrize(
    ("judge", "owner", "name", "wrong"),
    [
        (logs_hold, RaftLog, "_erase", do_nothing),
        (logs_hold, RaftLog, "_cut_index", do_nothing),
        (logs_hold, RaftLog, "_remove_files_after", do_nothing),
        (logs_hold, RaftLog, "_require_usable", do_nothing),
        (log_opens_in_blocks, RaftLog, "_skim", lambda log, position: position),
        (logs_hold, OpenFiles, "_close_oldest", do_nothing),
        (open_files_hold, OpenFiles, "_close_oldest", do_nothing),
        (open_files_hold, OpenFiles, "_forget", do_nothing),
        (open_files_hold, OpenFiles, "note_written", do_nothing),
        (links_alone_hold, _Silence, "check", do_nothing),
        (links_alone_hold, _Sender, "note", do_nothing),
        (links_alone_hold, _Sender, "_awaits_answer", lambda *_: False),
        (links_alone_hold, _Receiver, "_greet", take_greeting),
        (links_alone_hold, Peers, "_end_others", do_nothing),
        (links_alone_hold, Framing, "check_time", do_nothing),
        (nodes_alone_hold, RaftNode, "_note_role", do_nothing),
        (nodes_alone_hold, RaftNode, "_await_leader", do_nothing),
        (nodes_alone_hold, RaftNode, "_majority_heard_ms", lambda node, now_ms: now_ms),
        (nodes_alone_hold, RaftNode, "_majority_heard_ms", lambda node, now_ms: min(node._heard)),
        (nodes_alone_hold, RaftNode, "_give_role_up", do_nothing),
        (nodes_alone_hold, RaftNode, "_refusal", do_nothing),
        (nodes_alone_hold, RaftNode, "_take_transfers", take_first_transfers),
        (store_alone_holds, RaftStore, "_give_up", do_nothing),
        (store_alone_holds, RaftStore, "_fail", do_nothing),
        (store_alone_holds, RaftStore, "_require_open", do_nothing),
        (store_alone_holds, RaftCommitLog, "rebuild_numbers", do_nothing),
        (store_alone_holds, AppendedPuts, "committed", lambda *_: []),
        (requests_alone_hold, RaftEntries, "_is_full", lambda *_: False),
        (requests_alone_hold, RaftEntries, "lose_role", do_nothing),
        (requests_alone_hold, RaftEntries, "_refuse", do_nothing),
        (requests_alone_hold, RaftEntries, "has_requests", property(lambda entries: bool(entries._appends))),
        (requests_alone_hold, StoreApplication, "_refuse", do_nothing),
        (requests_alone_hold, StoreApplication, "has_requests", property(lambda store: bool(store._asked))),
        (requests_alone_hold, StoreApplication, "_send", lambda store, sent: store._sent.extend(sent)),
        (small_parts_alone_hold, AppendedPuts, "give_up", lambda _: []),
        (small_parts_alone_hold, RecentEntries, "_forget", do_nothing),
        (small_parts_alone_hold, CommitPoint, "save", do_nothing),
        (small_parts_alone_hold, opening, "_has_entries", lambda *_: True),
        (small_parts_alone_hold, opening, "require_member", do_nothing),
        (impossible_messages_hold, objections, "BLANK_BYTES_MIN", 9),
        (store_limits_hold, raft_store, "_refuse_delays", delayed),
        (store_limits_hold, raft_store, "_KeepsAllFiles", CleanCommitLog),
        (store_limits_hold, raft_store, "_KeepsAllTopics", TopicCleaning),
        (store_limits_hold, raft_store, "_UNSUPPORTED", ()),
        (store_limits_hold, raft_store.RaftStore, "_give_up", do_nothing),
        (store_limits_hold, RaftCommitLog, "_send_all", do_nothing),
        (store_limits_hold, RaftCommitLog, "_note_appended", do_nothing),
        (member_settings_hold, settings, "BadConfig", lambda name, value, remedy: BadConfig(value, name, remedy)),
        (formats._codec_holds, entry_codec, "_seal", lambda *_: 1),
    ],
)  # fmt: skip
def test_a_wrong_part_of_a_member_is_rejected(
    judge: Callable[[], None], owner: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(GuaranteeBroken):
        judge()


@pytest.mark.parametrize("is_damage", [True, False])
def test_a_left_unit_of_dledger_is_judged(
    is_damage: bool, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = RaftTrial(RaftSettings(members=1, data_file_bytes=1024), tracker=tracker)
    operations: list[RaftOperation] = [Elect(), SyncLog(), *[Propose()] * 12, SyncLog()]
    for operation in operations:
        trial.run(operation)
    copies = [OpenCopy(0, "no checksums, later unit", at) for at in range(12)]
    for each in copies:
        trial.run(each)
    monkeypatch.setattr(RaftLog, "_was_entry", lambda *_, **__: is_damage)
    with pytest.raises(GuaranteeBroken):
        deque(map(trial.run, copies))


def run(tracker: DirtyTracker, *operations: RaftOperation) -> NodesTrial:
    trial = NodesTrial(NODES, tracker=tracker)
    for operation in (RunNodes(3_000), Propose(0), Propose(1), Propose(2), RunNodes(200), *operations):
        trial.run(operation)
    return trial


@pytest.mark.parametrize("milliseconds", [150, 1_500, 7_000])
def test_a_stopped_process_goes_on(milliseconds: int, tracker: DirtyTracker) -> None:
    trial = run(tracker, *(StopNode(member, milliseconds) for member in range(3)), RunNodes(500))
    trial.finish()
    assert trial.hit["stopped process"] == 4  # the last one is that of the end of a run


def test_a_member_that_was_stopped_may_not_begin_an_election(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong node takes its own stop for the silence of its leader, and begins an election."""
    step = RaftNode._step

    def without_a_look(node: RaftNode, now_ms: int) -> int:
        node._last_ms = now_ms
        return step(node, now_ms)

    monkeypatch.setattr(RaftNode, "_step", without_a_look)
    with pytest.raises(GuaranteeBroken, match="begins an election after 0 ms"):
        run(tracker, CutLinks(0), CutLinks(1), CutLinks(2), *(StopNode(each, 3_000) for each in range(3)))


def test_a_slow_connection_has_to_end(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tracker, Knock(0, "slow"), RunNodes(6_000))
    monkeypatch.setattr(Framing, "check_time", do_nothing)
    with pytest.raises(GuaranteeBroken, match=r"keeps a connection \(slow\)"):
        run(tracker, Knock(0, "slow"), RunNodes(6_000))
