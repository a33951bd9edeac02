"""A request was expected in time of a member whose process was stopped.

Symptom: `explore raft` said that "a request (append) has no answer after 2751 ms".
Cause: the process was stopped after the request was asked. The member begins it after that, and
has `answer_timeout` from then on.
Fix: the time for which a process is stopped does not count for its open requests.
"""

from concurrent.futures import Future

import pytest

from tornpage.impl.raft.settings import RaftSettings as NodeSettings
from tornpage.model.raft.operations import CutLinks, Propose, RaftOperation, RunNodes, StopNode
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.clients import Clients, Now
from tornpage.properties.raft.replay import replay_raft


def test_a_stopped_member_has_the_time_of_its_stop_for_an_answer() -> None:
    operations: tuple[RaftOperation, ...] = (
        RunNodes(milliseconds=6000),
        Propose(member=1),
        StopNode(member=1, milliseconds=700),
        CutLinks(member=1),
        RunNodes(milliseconds=6000),
    )
    with choose_tracker("auto") as tracker:
        assert replay_raft(RaftCase(RaftSettings(nodes=True), operations), tracker=tracker) is None


def test_a_stopped_member_that_never_answers_is_found() -> None:
    settings, asked_ms, stopped_ms = NodeSettings(("127.0.0.1:1", "127.0.0.1:2")), 1_000, 700
    clients = Clients(settings)
    clients.read(Future(), Now(asked_ms, (), True, 0))
    clients.process_was_stopped(stopped_ms)
    clients.judge(Now(asked_ms + stopped_ms + settings.answer_timeout, (), True, 0))
    with pytest.raises(GuaranteeBroken, match="has no answer"):
        clients.judge(Now(asked_ms + stopped_ms + settings.answer_timeout + 1_000, (), True, 0))
