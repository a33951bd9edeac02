"""Define bugs of Raft groups: votes, counts of a leader, appends, and files.

Their ids are those of the list that the Raft log is tested with. L numbers are defects of DLedger 0.2.3
(docs/replication/raft.md). LB10, LB11, LB17 and LB18 are bugs of the store on the log.
"""

from collections.abc import Callable, Sequence

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.log.log_files import file_name
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_answers import PendingAnswer
from tornpage.impl.raft.committed_files import CommittedFiles
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import AppendEntries, Envelope, LeadNow, Message, RequestVote, VoteAnswer
from tornpage.impl.raft.raft_commit_log import RaftCommitLog, RaftPutAnswers
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.model.raft.operations import RAFT_OPERATIONS, CrashMember, Deliver, RaftOperation
from tornpage.properties.planted.record import PlantedBug
from tornpage.properties.program.raft_case import RaftSettings

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

    def _lead(self) -> None:
        self.role, self.leader, self.votes = "leader", self.me, frozenset()
        self.next_begins = [self.log.end] * self.members
        self.matched, self.rounds = [0] * self.members, [0] * self.members
        self._send_entries()

    def _count(self) -> None:
        ends = [self.log.synced, *(self.matched[each] for each in self._others())]
        self.commit = max(self.commit, self._majority_of(ends))
        self._finish_reads()


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
    """Commit entries that were never compared with those of the leader."""

    def heartbeat(self) -> list[Envelope]:
        if self.role == "leader":
            self.transferee = None
            for each in self._others():
                self._send_entries_to(each)
                self._send(each, AppendEntries(self.term, 0, 0, (), self.commit, self.round))
        return self._sent()

    def _take_entries(self, source: int, sent: AppendEntries) -> None:
        super()._take_entries(source, sent)
        if sent.term == self.term:
            self.commit = max(self.commit, min(sent.commit, self.log.end))


class _HalfIsEnough(RaftMember):
    """Take half of the members for a majority that has an entry durable."""

    def _count(self) -> None:
        ends = sorted([self.log.synced, *(self.matched[each] for each in self._others())], reverse=True)
        end = ends[max(0, self.members // 2 - 1)]
        if end > self.commit and self.log.term_at(end - 1) == self.term:
            self.commit = end
        self._finish_reads()


class _CountsOwnUnsynced(RaftMember):
    """Count the leader's own entries before they are durable."""

    def _count(self) -> None:
        end = self._majority_of([self.log.end, *(self.matched[each] for each in self._others())])
        if end > self.commit and self.log.term_at(end - 1) == self.term:
            self.commit = end
        self._finish_reads()


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

    def receive(self, source: int, message: Message) -> list[Envelope]:
        if not isinstance(message, LeadNow) or message.term != self.term or self.role == "leader":
            return super().receive(source, message)
        self._enter_term(self.term, self.me)
        self.role, self.votes = "candidate", frozenset((self.me,))
        for each in self._others():
            self._send(each, RequestVote(self.term, self.last_term, self.log.end))
        return self._sent()


class _AloneWithoutSync(RaftMember):
    """Let a group of one member commit entries before they are durable."""

    def _lead(self) -> None:
        super()._lead()
        if self.members == 1:
            self.commit = self.log.end


class _KeepsNumbersOfCutEntries(RaftCommitLog):
    """Never lower the counter of a queue after a cut (L5)."""

    def rebuild_numbers(self, dispatched_end: int, queue_ends: Sequence[tuple[QueueKey, int]]) -> None:
        table = self._queue_offsets
        before = [(key, table.next_offset(key)) for key in table.known()]
        super().rebuild_numbers(dispatched_end, queue_ends)
        for key, number in before:
            table.learn_maximum(key, number)


class _DispatchesUncommitted(ReputMessages):
    """Give uncommitted entries to queues and index, which no cut reaches (L10)."""

    def note_readable(self, _end_offset: int = 0) -> None:
        if self.wake is not None:
            self.wake()

    def drain(self) -> None:
        files = self._log
        if not isinstance(files, CommittedFiles):  # a store without a group has no uncommitted entries
            super().drain()
            return
        visible_end = files.readable_end
        files.show(max(visible_end, files.raft_log.end_position_of(files.raft_log.end)))
        super().drain()
        files.show(visible_end)


class _GivesNumberBackWhenLate(RaftPutAnswers):
    """Give the number of a late put to the next put, although its entry may be committed."""

    def settle(
        self, result: PutResult, *, waits: bool, on_answer: Callable[[PutResult], None]
    ) -> PutResult | PendingAnswer:
        put, table = self._commit_log.appended(), self._commit_log._queue_offsets

        def answered(answer: PutResult) -> None:
            if answer.status is PutStatus.OUTCOME_UNKNOWN and put.key is not None:
                table.advance(put.key, put.number)
            on_answer(answer)

        return super().settle(result, waits=waits, on_answer=answered)


class _KeepsFilesMapped(CommittedFiles):
    """Keep data files without visible entries mapped. A cut may have removed them."""

    def show(self, end: int) -> None:
        while end > (base := self.mapped[-1].end_offset if self.mapped else 0):
            self.adopt(f"{self.directories.paths[0]}/{file_name(base)}", writable=False)
        self._visible_end = end


def _events(text: str) -> tuple[RaftOperation, ...]:
    """Return the events of a schedule.

    `elect 1, vote 1 2` is an election of member 1, and the delivery of its message to member 2.
    """
    events: list[RaftOperation] = []
    for name, *numbers in (each.split() for each in text.split(",")):
        if name == "crash_member":
            events.append(CrashMember(int(numbers[0]), others="kept" if numbers[1:] else "lost"))
        elif name in RAFT_OPERATIONS:
            events.append(RAFT_OPERATIONS[name](*map(int, numbers)))
        else:
            events.append(Deliver(int(numbers[0]), int(numbers[1]), name))
    return tuple(events)


def _bug(
    bug_id: str,
    sentence: str,
    parts: Parts,
    operations: tuple[RaftOperation, ...],
    *,
    members: int = 3,
    batch_bytes: int = 1,
    contract: int = 15,
    store: bool = False,
    data_file_bytes: int = 4096,
) -> PlantedBug:
    """Return a bug with its minimal reproducer.

    The reproducer judges the promises of the group, and no single step.
    """
    settings = RaftSettings(
        members=members, batch_bytes=batch_bytes, judged="promises", store=store, data_file_bytes=data_file_bytes
    )
    return PlantedBug(bug_id, sentence, contract, parts, raft=(settings, operations))


_ALL = 1 << 30
"""So many bytes that one message carries all entries."""

BUGS = (
    _bug(
        "LB01",
        "a follower confirms entries before they are durable",
        Parts({RaftMember: _AcknowledgesBeforeSync}),
        _events("elect 1, vote 1 2, vote_reply 2 1, append 1 0, append_reply 0 1, sync_log 1"),
    ),
    _bug(
        "LB02",
        "a vote is not durable when it is sent",
        Parts({HardState: _VoteNotDurable}),
        _events("elect 1, vote 1 2, crash_member 2, restart_member 2"),
        batch_bytes=_ALL,
    ),
    _bug(
        "LB03",
        "entries of earlier terms are committed by their number",
        Parts({RaftMember: _CountsOldTerms}),
        _events(
            "elect 0, vote 0 2, vote_reply 2 0, propose 0, sync_log 0, elect 1, elect 1, vote 1 2, vote_reply 2 "
            "1, propose 1, vote 1 0, elect 0, vote 0 2, vote_reply 2 0, append 0 2, append_reply 2 0, append 0 2, "
            "sync_log 2, append_reply 2 0, vote 0 1, elect 1, vote 1 2, vote_reply 2 1"
        ),
    ),
    _bug(
        "LB04",
        "a longer log wins over one with a later last term",
        Parts({RaftMember: _LongerLogWins}),
        _events(
            "elect 0, vote 0 2, vote 0 1, vote_reply 2 0, elect 1, vote 1 0, elect 0, vote 0 1, vote_reply 1 0, "
            "append 0 2, elect 2, vote 2 1, vote_reply 1 2, sync_log 2, append 2 1, sync_log 1, append_reply 1 2, "
            "elect 1, vote 1 0, elect 0, vote 0 1, vote_reply 1 0"
        ),
    ),
    _bug(
        "LB05",
        "entries are appended after an entry of another term",
        Parts({RaftMember: _NoCheckOfTheEntryBefore}),
        _events(
            "elect 0, vote 0 2, vote_reply 2 0, elect 1, elect 1, vote 1 2, vote_reply 2 1, crash_member 1 kept, "
            "restart_member 1, elect 1, vote 1 0, vote_reply 0 1, append 1 0"
        ),
        batch_bytes=_ALL,
    ),
    _bug(
        "LB06",
        "a cut leaves the bytes of its entries",
        Parts({RaftLog: _CutsWithoutErasing}),
        (
            *_events("elect 0, vote 0 1, vote_reply 1 0, elect 1, vote 1 2, vote_reply 2 1, append 1 0"),
            CrashMember(0, survived={"page /member/data/00000000000000000000 0": 1}, others="kept"),
            *_events("restart_member 0"),
        ),
    ),
    _bug(
        "LB07",
        "a follower commits entries that it has not compared",
        Parts({RaftMember: _CommitsUnverified}),
        _events(
            "elect 2, vote 2 0, vote 2 1, vote_reply 1 2, elect 0, vote 0 1, vote_reply 1 0, append 0 1, sync_log "
            "0, sync_log 1, append_reply 1 0, beat 0, append 0 2"
        ),
        batch_bytes=_ALL,
    ),
    _bug(
        "LB08",
        "entries are committed once half of the members have them durable",
        Parts({RaftMember: _HalfIsEnough}),
        _events("elect 0, vote 0 1, vote_reply 1 0, sync_log 0"),
    ),
    _bug(
        "LB09",
        "a leader counts its own entries before they are durable",
        Parts({RaftMember: _CountsOwnUnsynced}),
        _events("elect 2, vote 2 1, vote_reply 1 2, append 2 1, sync_log 1, append_reply 1 2"),
    ),
    _bug(
        "LB10",
        "the number of a cut entry is not given again",
        Parts({RaftCommitLog: _KeepsNumbersOfCutEntries}),
        _events(
            "elect 1, vote 1 0, vote_reply 0 1, propose 1, elect 0, propose 1, vote 0 2, vote_reply 2 0, append 0 1, "
            "elect 1, vote 1 2, vote_reply 2 1, propose 1, append 1 0, sync_log 0, sync_log 1, sync_log 2, "
            "append_reply 0 1"
        ),
        batch_bytes=_ALL,
        contract=4,
        store=True,
    ),
    _bug(
        "LB11",
        "queues and index have entries that are not committed, and are not cut with the log",
        Parts({ReputMessages: _DispatchesUncommitted}),
        _events("elect 1, vote 1 2, vote_reply 2 1, propose 1"),
        contract=4,
        store=True,
    ),
    _bug(
        "LB12",
        "a leader answers reads without a majority",
        Parts({RaftMember: _AnswersReadsAlone}),
        _events(
            "elect 2, vote 2 0, vote_reply 0 2, append 2 0, sync_log 0, append_reply 0 2, append 2 1, sync_log 1, "
            "append_reply 1 2, begin_read 2"
        ),
        batch_bytes=_ALL,
        contract=17,
    ),
    _bug(
        "LB13",
        "a repeated message appends its entries again",
        Parts({RaftMember: _AppendsAgain}),
        _events(
            "elect 2, vote 2 1, vote_reply 1 2, append 2 1, append 2 1, elect 1, vote 1 2, vote_reply 2 1, append "
            "1 2, append_reply 2 1, append 1 2, append 1 2, sync_log 1, sync_log 2, append_reply 2 1, append 1 2, "
            "append_reply 2 1"
        ),
    ),
    _bug(
        "LB14",
        "a vote is sent before its term is taken over",
        Parts({RaftMember: _AnswersBeforeTheTerm}),
        _events("elect 2, vote 2 0, elect 1, vote 1 0"),
        batch_bytes=_ALL,
    ),
    _bug(
        "LB15",
        "a member that is asked to lead votes twice in a term",
        Parts({RaftMember: _StandsInTheOldTerm}),
        _events(
            "elect 2, vote 2 0, vote_reply 0 2, append 2 0, sync_log 0, append_reply 0 2, transfer 2 0, "
            "transfer_now 2 0"
        ),
        batch_bytes=_ALL,
    ),
    _bug(
        "LB16",
        "a group of one commits entries before they are durable",
        Parts({RaftMember: _AloneWithoutSync}),
        _events("elect 0"),
        members=1,
        batch_bytes=_ALL,
    ),
    _bug(
        "LB17",
        "the number of a put that was too late is given again",
        Parts({RaftPutAnswers: _GivesNumberBackWhenLate}),
        _events(
            "elect 0, vote 0 1, vote_reply 1 0, propose 0, time_out_puts 0, propose 0, propose 0, append 0 1, "
            "sync_log 0, sync_log 1, append_reply 1 0"
        ),
        batch_bytes=_ALL,
        contract=4,
        store=True,
    ),
    _bug(
        "LB18",
        "a reader keeps a data file that a cut has removed",
        Parts({CommittedFiles: _KeepsFilesMapped}),
        _events(
            "elect 2, vote 2 0, vote_reply 0 2, propose 2, propose 2, propose 2, propose 2, propose 2, sync_log 2, "
            "crash_member 2, restart_member 2, elect 0, vote 0 1, vote_reply 1 0, propose 0, propose 0, propose 0, "
            "propose 0, propose 0, append 0 1, append 0 2, sync_log 0, sync_log 1, sync_log 2, append_reply 1 0, "
            "beat 0, append 0 2"
        ),
        batch_bytes=_ALL,
        contract=4,
        store=True,
        data_file_bytes=1024,
    ),
)
