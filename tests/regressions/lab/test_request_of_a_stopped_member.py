"""A request was expected in time of a member whose process was stopped.

Symptom: `explore raft` said that "a request (append) has no answer after 2751 ms".
Cause: the process was stopped after the request was asked. The member begins it after that, and
has `answer_timeout` from then on.
Fix: the time for which a process is stopped does not count for its open requests.
"""

from tornpage.model.raft.operations import CutLinks, Propose, RaftOperation, RunNodes, StopNode
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
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
