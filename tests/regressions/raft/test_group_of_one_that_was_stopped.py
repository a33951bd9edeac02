"""A group of one that was stopped before its first step leads at once.

Symptom: a member without others took no request for up to `election_timeout_max` after its process had been stopped.
Cause: a process that was stopped waits for its leader again. A group of one did so too, which has no other leader.
Fix: a group of one never waits for a leader (impl/raft/node.py).
Found by: `tornpage bugs mutate --seed 1`, as a failure of the store without a mutant.
"""

from tornpage.model.raft.operations import StopNode
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import replay_raft


def test_a_group_of_one_waits_for_no_leader_after_a_stop() -> None:
    with choose_tracker("auto") as tracker:
        assert replay_raft(RaftCase(RaftSettings(members=1, nodes=True), (StopNode(),)), tracker=tracker) is None
