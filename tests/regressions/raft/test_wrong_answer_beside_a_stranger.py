"""A wrong answer goes to a link of a member, not to that of a stranger on its host.

Symptom: `explore raft` reported that a member ends a silent connection with a refusal.
Cause: the lab looked for the newest link from the host of a member. After a stranger had connected from that host, its
link was taken, and the forged refusal of the lab arrived at the stranger.
Fix: links of strangers get no wrong answers (properties/raft/nodes.py).
Found by: `tornpage explore raft --seconds 150 --seed 204`.
"""

from tornpage.model.raft.operations import AnswerWrongly, Knock, RaftOperation, RunNodes
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import replay_raft


def test_a_silent_stranger_gets_no_forged_refusal() -> None:
    operations: tuple[RaftOperation, ...] = (RunNodes(), Knock(member=2), AnswerWrongly(to=2))
    case = RaftCase(RaftSettings(nodes=True), operations)
    with choose_tracker("auto") as tracker:
        assert replay_raft(case, tracker=tracker) is None
