"""Define bugs of Raft groups: votes, what a leader counts, what a follower appends, and the files of a member.

Their ids are those of the list that the Raft log is tested with. L numbers are defects of DLedger 0.2.3
(docs/replication/raft.md). LB10, LB11 and LB17 concern queues and index, which are not built on this log yet.
"""

from tornpage.impl.parts import Parts
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import AppendEntries, Envelope, LeadNow, Message, RequestVote, VoteAnswer
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.properties.planted.record import PlantedBug

__all__ = ["BUGS"]


class _AcknowledgesBeforeSync(RaftMember):
    """Confirm entries that are not durable yet (L1)."""

    def _take_entries(self, source: int, sent: AppendEntries) -> None:
        super()._take_entries(source, sent)
        if self.owes:
            self.owes = False
            self._confirm(source)


class _VoteNotDurable(HardState):
    """Keep a new vote in memory only (L2)."""

    def save(self, term: int, vote: int | None) -> None:
        if term == self.term:
            self.vote = vote
        else:
            super().save(term, vote)


class _CountsOldTerms(RaftMember):
    """Commit entries of earlier terms by their number, and begin a term without an entry (L3)."""

    def _may_commit(self, end: int) -> bool:
        return True

    def _begin_term(self) -> None:
        self._send_entries()


class _LongerLogWins(RaftMember):
    """Compare the lengths of the logs before the terms of their last entries."""

    def _is_new_enough(self, asked: RequestVote) -> bool:
        return (asked.end, asked.last_term) >= (self.log.end, self.last_term)


class _NoCheckOfTheEntryBefore(RaftMember):
    """Append entries after an entry of another term."""

    def _place_to_go_back_to(self, sent: AppendEntries) -> int | None:
        return self.log.end if sent.begin > self.log.end else None


class _CutsWithoutErasing(RaftLog):
    """Leave the bytes of cut entries in their files (L7)."""

    def _erase(self, begin: int, end: int) -> None:
        """Erase nothing."""


class _CommitsUnverified(RaftMember):
    """Take over the commit end of the leader for entries that were never compared with its log."""

    def _raise_commit(self, sent: AppendEntries) -> None:
        self.commit = max(self.commit, min(sent.commit, self.log.end))


class _HalfIsEnough(RaftMember):
    """Take half of the members for a majority."""

    def _is_majority(self, count: int) -> bool:
        return count >= self.members // 2

    def _majority_of(self, values: list[int]) -> int:
        return sorted(values, reverse=True)[max(0, self.members // 2 - 1)]


class _CountsOwnUnsynced(RaftMember):
    """Count the leader's own entries before they are durable."""

    def _own_end(self) -> int:
        return self.log.end


class _AnswersReadsAlone(RaftMember):
    """Answer a read at once, without asking whether another member leads by now (L19)."""

    def _finish_reads(self) -> None:
        self.answered += [self.visible] * len(self.reads)
        self.reads = ()


class _AppendsAgain(RaftMember):
    """Append entries of a repeated message again."""

    def _adopt(self, sent: AppendEntries) -> None:
        if sent.entries and sent.begin + len(sent.entries) <= self.log.end:
            self.log.append(sent.entries)
        else:
            super()._adopt(sent)


class _AnswersBeforeTheTerm(RaftMember):
    """Answer a candidate before its term is taken over, and forget the vote with the old term."""

    def receive(self, source: int, message: Message) -> list[Envelope]:
        if isinstance(message, RequestVote) and message.term > self.term and self._is_new_enough(message):
            self._send(source, VoteAnswer(message.term, granted=True))
            self._enter_term(message.term, None)
            return self._sent()
        return super().receive(source, message)


class _StandsInTheOldTerm(RaftMember):
    """Clear the vote and become a candidate of the same term when asked to lead."""

    def _take_leadership(self, asked: LeadNow) -> None:
        if asked.term == self.term and self.role != "leader":
            self._enter_term(self.term, self.me)
            self.role, self.votes = "candidate", frozenset((self.me,))
            for each in self._others():
                self._send(each, RequestVote(self.term, self.last_term, self.log.end))


class _AloneWithoutSync(RaftMember):
    """Let a group of one member commit entries before they are durable."""

    def _send_entries(self) -> None:
        super()._send_entries()
        if self.members == 1:
            self.commit = self.log.end


BUGS = (
    PlantedBug("LB01", "a follower confirms entries before they are durable", 15, Parts({RaftMember: _AcknowledgesBeforeSync})),
    PlantedBug("LB02", "a vote is not durable when it is sent", 15, Parts({HardState: _VoteNotDurable})),
    PlantedBug("LB03", "entries of earlier terms are committed by their number", 15, Parts({RaftMember: _CountsOldTerms})),
    PlantedBug("LB04", "a longer log wins over one with a later last term", 15, Parts({RaftMember: _LongerLogWins})),
    PlantedBug("LB05", "entries are appended after an entry of another term", 15, Parts({RaftMember: _NoCheckOfTheEntryBefore})),
    PlantedBug("LB06", "a cut leaves the bytes of its entries", 15, Parts({RaftLog: _CutsWithoutErasing})),
    PlantedBug("LB07", "a follower commits entries that it has not compared", 15, Parts({RaftMember: _CommitsUnverified})),
    PlantedBug("LB08", "half of the members count as a majority", 15, Parts({RaftMember: _HalfIsEnough})),
    PlantedBug("LB09", "a leader counts its own entries before they are durable", 15, Parts({RaftMember: _CountsOwnUnsynced})),
    PlantedBug("LB12", "a leader answers reads without a majority", 17, Parts({RaftMember: _AnswersReadsAlone})),
    PlantedBug("LB13", "a repeated message appends its entries again", 15, Parts({RaftMember: _AppendsAgain})),
    PlantedBug("LB14", "a vote is sent before its term is taken over", 15, Parts({RaftMember: _AnswersBeforeTheTerm})),
    PlantedBug("LB15", "a member that is asked to lead votes twice in a term", 15, Parts({RaftMember: _StandsInTheOldTerm})),
    PlantedBug("LB16", "a group of one commits entries before they are durable", 15, Parts({RaftMember: _AloneWithoutSync})),
)  # fmt: skip
