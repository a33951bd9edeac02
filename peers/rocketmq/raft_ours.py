"""Carry out schedules of raft_holes.py on members of this project, on recorded disks.

A broken promise of the group raises GuaranteeBroken. With a planted bug the same events have to break one.
"""

from tornpage.model.raft.operations import (
    CrashMember,
    Deliver,
    Elect,
    Propose,
    RaftOperation,
    RestartMember,
    SyncLog,
)
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["figure_8", "power_cut_of_a_follower"]


class _Group:
    """Hold a run of three members."""

    def __init__(self, trial: RaftTrial) -> None:
        self._trial = trial

    def run(self, *operations: RaftOperation) -> None:
        """Carry out events. Raises GuaranteeBroken."""
        for operation in operations:
            self._trial.run(operation)

    def sent(self, kind: str, source: int, to: int) -> None:
        """Deliver a message and its answer."""
        self.run(Deliver(source, to, kind), Deliver(to, source, f"{kind}_reply"))

    def elect(self, member: int, by: int) -> None:
        """Elect a member with the vote of another one."""
        self.run(Elect(member))
        self.sent("vote", member, by)

    def commit(self, member: int) -> int:
        """Return the end of the entries that a member takes for committed."""
        return int(self._trial.nodes[member].state.commit)

    def terms(self, member: int) -> list[int]:
        """Return the terms of all entries of a member."""
        return [entry.term for entry in self._trial.nodes[member].state.log]

    def end(self, member: int) -> int:
        """Return the end of the log of a member."""
        return int(self._trial.nodes[member].state.end)


def power_cut_of_a_follower(bug: str = "") -> str:
    """Cut the power of a follower and kill the leader, as in L1; return what was seen.

    Raises GuaranteeBroken.
    """
    with choose_tracker("auto") as tracker:
        group = _Group(
            RaftTrial(RaftSettings(bug=bug, disk="journal", judged="promises" if bug else "all"), tracker=tracker)
        )
        group.elect(0, by=1)
        group.run(SyncLog(0), Deliver(0, 1, "append"), SyncLog(1), Deliver(1, 0, "append_reply"))
        group.run(Propose(0), SyncLog(0))
        group.sent("append", 0, 1)
        waiting = group.commit(0)
        if bug:  # the follower has confirmed what is not on its disk
            group.run(CrashMember(1), CrashMember(0, kill=True), RestartMember(1))
            group.elect(1, by=2)
            return "the entry is lost, and no promise is broken"
        group.run(SyncLog(1), Deliver(1, 0, "append_reply"))
        acknowledged = group.commit(0)
        group.run(CrashMember(1), CrashMember(0, kill=True), RestartMember(1))
        group.elect(1, by=2)
        group.run(Deliver(1, 2, "append"), SyncLog(2))
        return (
            f"while the sync of the follower waits, {waiting} of 2 entries are committed; after the sync "
            f"{acknowledged} are, and after the power cut and the kill the new leader has {group.end(1) - 1} of them"
        )


def figure_8(bug: str = "") -> str:
    """Let an entry of an earlier term reach a majority, as in L3; return what was seen.

    Raises GuaranteeBroken.
    """
    with choose_tracker("auto") as tracker:
        group = _Group(RaftTrial(RaftSettings(bug=bug, judged="promises" if bug else "all"), tracker=tracker))
        group.elect(0, by=2)
        group.run(Propose(0), SyncLog(0), Elect(1))
        group.elect(1, by=2)
        group.run(Propose(1), Deliver(1, 0, "vote"))
        group.elect(0, by=2)
        group.sent("append", 0, 2)
        group.run(Deliver(0, 2, "append"), SyncLog(2), Deliver(2, 0, "append_reply"))
        term, counted = group.terms(2)[0], group.commit(0)
        group.run(Deliver(0, 1, "vote"))
        group.elect(1, by=2)
        return (
            f"the leader of term 3 does not count the entry of term {term} that a majority has durable: {counted} "
            "entries are committed, and a member without it leads term 4"
        )
