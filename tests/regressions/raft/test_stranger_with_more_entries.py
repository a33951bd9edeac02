"""A stranger that confirms more entries than a leader ever has is refused.

Symptom: `explore raft` reported committed entries that one member of three has.
Cause: the stranger's frame named one entry more than the leader had when the frame was made. The leader appended an
entry before it read the frame, so the frame was a valid confirmation. The protocol does not authenticate members.
Fix: the frame names an entry that is never reached (properties/raft/knocking.py).
Found by: `tornpage explore raft --seconds 60 --seed 994`.
"""

from tornpage.model.raft.operations import CutLinks, Knock, Propose, RaftOperation, RunNodes
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import replay_raft


def test_an_entry_appended_before_the_frame_is_read() -> None:
    operations: tuple[RaftOperation, ...] = (
        RunNodes(milliseconds=700),
        CutLinks(member=1),
        Propose(member=1),
        Knock(),
        Knock(member=1, greeting="more entries"),
        Propose(member=1),
        RunNodes(),
    )
    case = RaftCase(RaftSettings(nodes=True), operations)
    with choose_tracker("auto") as tracker:
        assert replay_raft(case, tracker=tracker) is None
