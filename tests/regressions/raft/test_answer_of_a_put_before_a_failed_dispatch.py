"""A committed put is answered, also if the dispatch after it fails.

Symptom: a put waited forever for a member that had failed.
Cause: an event that commits a put takes it from the waiting ones. If a sync failed during the dispatch of the same
event, the answers collected so far were lost.
Fix: the answers are collected where the failure leaves them (impl/raft/raft_store.py, `RaftStore._follow`).
Found by: `tornpage bugs mutate --seed 3`, as a failure of the store without a mutant.
"""

from tornpage.model.raft.operations import BeginRead, Deliver, Elect, FailSyncOf, Propose, RaftOperation, SyncLog
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import replay_raft


def test_a_committed_put_is_answered_by_a_member_that_fails() -> None:
    operations: tuple[RaftOperation, ...] = (
        Elect(member=1),
        Deliver(source=1, to=2, kind="vote"),
        Deliver(source=2, to=1, kind="vote_reply"),
        BeginRead(member=1),
        Propose(member=1),
        Deliver(source=1, to=2, kind="append"),
        SyncLog(member=2),
        SyncLog(member=1),
        FailSyncOf(member=1),
        Deliver(source=2, to=1, kind="append_reply"),
    )
    case = RaftCase(RaftSettings(batch_bytes=1 << 30, store=True), operations)
    with choose_tracker("auto") as tracker:
        assert replay_raft(case, tracker=tracker) is None
