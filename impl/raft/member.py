"""Run one member of a Raft group: elections, replication, commit, reads, transfers.

A member does nothing by itself. Its caller calls a method for each event: a time-out, a message, a completed sync, a
request of a client. The method returns the messages to send. A term and a vote are durable before it returns.

Differences from DLedger 0.2.3, by number of its defect:

* an entry is confirmed after it is durable, by followers and by the leader itself (L1);
* a term and a vote are durable before they are sent (L2);
* only entries of the leader's own term are counted, and a leader begins its term with an entry of its own (L3);
* a follower compares the entry before the first sent one, not the entry itself, and cuts only at a difference;
* terms are compared before logs (L11), and a refused append is always answered (L12);
* reads of a leader wait for a round of a majority (L19).

Source: Ongaro and Ousterhout 2014, figure 2; their section 8 for reads; Ongaro's thesis, section 3.10, for transfers.
"""

from collections.abc import Iterable
from typing import Literal

from tornpage.impl.raft.faces import HardStateFace, LogFace
from tornpage.impl.raft.messages import (
    AppendAnswer,
    AppendEntries,
    Carried,
    Envelope,
    LeadNow,
    Message,
    RequestVote,
    VoteAnswer,
)

__all__ = ["BATCH_BYTES_MAX", "RaftMember", "RaftRole"]

RaftRole = Literal["follower", "candidate", "leader"]

BATCH_BYTES_MAX = 1 << 20
"""About how many bytes of bodies one message carries."""


class RaftMember:
    """One member of a group of `members`, numbered from 0.

    `commit` is the end of the committed entries, `visible` that of those that readers may see. `answered` has the ends
    that finished reads may see, in order; the caller takes them with `take_answered`.
    """

    def __init__(
        self,
        me: int,
        members: int,
        log: LogFace,
        hard_state: HardStateFace,
        *,
        batch_bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        self.me = me
        self.members = members
        self.log = log
        self.hard_state = hard_state
        self.role: RaftRole = "follower"
        self.leader: int | None = None
        self.commit = 0
        self.verified = 0
        self.owes = False
        self.round = 0
        self.votes: frozenset[int] = frozenset()
        self.next_begins: list[int] = []
        self.matched: list[int] = []
        self.rounds: list[int] = []
        self.reads: tuple[int, ...] = ()
        self.transferee: int | None = None
        self.answered: list[int] = []
        self._batch_bytes_max = batch_bytes_max
        self._out: list[Envelope] = []

    @property
    def term(self) -> int:
        """The term of the member."""
        return self.hard_state.term

    @property
    def visible(self) -> int:
        """The end of the entries that readers may see: committed, and durable here."""
        return min(self.commit, self.log.synced)

    @property
    def last_term(self) -> int:
        """The term of the last entry, 0 for an empty log."""
        return self.log.term_at(self.log.end - 1) if self.log.end else 0

    # ---- events --------------------------------------------------------------------------------------------------

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate of a new term, unless leader.

        Raises OSError if the term cannot be made durable.
        """
        if self.role != "leader":
            self._stand()
        return self._sent()

    def heartbeat(self) -> list[Envelope]:
        """Send every other member what it lacks.

        A transfer of leadership that has not succeeded by then is over.
        """
        if self.role == "leader":
            self.transferee = None
            self._send_entries()
        return self._sent()

    def propose(self, bodies: Iterable[bytes]) -> list[Envelope] | None:
        """Append entries of clients, or return None if this member takes none.

        Raises OSError of the log.
        """
        if self.role != "leader" or self.transferee is not None:
            return None
        self.log.append([Carried(self.term, body) for body in bodies])
        self._send_entries()
        return self._sent()

    def sync(self) -> list[Envelope]:
        """Make the log durable, then confirm or count its entries.

        Raises OSError; nothing is confirmed then.
        """
        self.log.sync()
        if self.role == "leader":
            self._count()
        elif self.owes and self.leader is not None:
            self.owes = False
            self._confirm(self.leader)
        return self._sent()

    def read(self) -> list[Envelope] | None:
        """Begin a read of what is committed, or return None if this member is not leader."""
        if self.role != "leader":
            return None
        self.round += 1
        self.reads = (*self.reads, self.round)
        self._send_entries()
        self._finish_reads()
        return self._sent()

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member with the whole log to lead. Until the next heartbeat no entry is taken."""
        if self.role == "leader" and to != self.me and self.matched[to] == self.log.end:
            self.transferee = to
            self._send(to, LeadNow(self.term))
        return self._sent()

    def receive(self, source: int, message: Message) -> list[Envelope]:
        """Take a message of another member. Raises OSError of the log or of the term's file."""
        if message.term > self.term:
            self._enter_term(message.term, None)
        match message:
            case RequestVote():
                self._consider(source, message)
            case VoteAnswer():
                self._count_vote(source, message)
            case AppendEntries():
                self._take_entries(source, message)
            case AppendAnswer():
                self._take_answer(source, message)
            case LeadNow():
                if message.term == self.term and self.role != "leader":
                    self._stand()
        return self._sent()

    def take_answered(self) -> list[int]:
        """Return the ends that reads may see which finished since the last call."""
        answered, self.answered = self.answered, []
        return answered

    # ---- elections -----------------------------------------------------------------------------------------------

    def _enter_term(self, term: int, vote: int | None) -> None:
        """Become a follower of a new term. The term and the vote are durable then."""
        self.hard_state.save(term, vote)
        self.role, self.leader, self.transferee = "follower", None, None
        self.verified, self.owes, self.round = 0, False, 0
        self.votes, self.reads = frozenset(), ()
        self.next_begins, self.matched, self.rounds = [], [], []

    def _stand(self) -> None:
        self._enter_term(self.term + 1, self.me)
        self.role, self.votes = "candidate", frozenset((self.me,))
        if self._is_majority(1):
            self._lead()
            return
        for each in self._others():
            self._send(each, RequestVote(self.term, self.last_term, self.log.end))

    def _consider(self, source: int, asked: RequestVote) -> None:
        may_vote = asked.term == self.term and self.hard_state.vote in (None, source)
        granted = may_vote and self._is_new_enough(asked)
        if granted and self.hard_state.vote is None:
            self.hard_state.save(self.term, source)
        self._send(source, VoteAnswer(self.term, granted))

    def _is_new_enough(self, asked: RequestVote) -> bool:
        """Return whether a candidate's log has everything that may be committed here."""
        if asked.last_term != self.last_term:
            return asked.last_term > self.last_term
        return asked.end >= self.log.end

    def _count_vote(self, source: int, answer: VoteAnswer) -> None:
        if self.role == "candidate" and answer.granted and answer.term == self.term:
            self.votes |= {source}
            if self._is_majority(len(self.votes)):
                self._lead()

    def _lead(self) -> None:
        self.role, self.leader, self.votes = "leader", self.me, frozenset()
        self.next_begins = [self.log.end] * self.members
        self.matched, self.rounds = [0] * self.members, [0] * self.members
        self.log.append([Carried(self.term, b"")])  # earlier entries are committed with it
        self._send_entries()

    # ---- entries at a follower -----------------------------------------------------------------------------------

    def _take_entries(self, source: int, sent: AppendEntries) -> None:
        if sent.term < self.term:
            self._send(source, AppendAnswer(self.term, False, 0, 0))
            return
        self.role, self.leader, self.votes = "follower", source, frozenset()
        self.round = max(self.round, sent.round)
        refused_at = self._place_to_go_back_to(sent)
        if refused_at is not None:
            self._send(source, AppendAnswer(self.term, False, refused_at, self.round))
            return
        self._adopt(sent)
        self.verified = max(self.verified, sent.begin + len(sent.entries))
        self.commit = max(self.commit, min(sent.commit, self.verified))
        self.owes = self.log.synced < self.verified
        if not self.owes:
            self._confirm(source)

    def _place_to_go_back_to(self, sent: AppendEntries) -> int | None:
        """Return where the leader has to go back to, or None if the entry before is equal."""
        if sent.begin > self.log.end:
            return self.log.end
        if sent.begin and self.log.term_at(sent.begin - 1) != sent.previous_term:
            return sent.begin - 1
        return None

    def _adopt(self, sent: AppendEntries) -> None:
        """Append what is missing here.

        From the first entry of another term on, the log is cut before.
        """
        for at, entry in enumerate(sent.entries):
            place = sent.begin + at
            if place < self.log.end and self.log.term_at(place) == entry.term:
                continue
            if place < self.log.end:
                self.log.cut(place)
            self.log.append(sent.entries[at:])
            return

    def _confirm(self, leader: int) -> None:
        self._send(leader, AppendAnswer(self.term, True, self.verified, self.round))

    # ---- entries at a leader -------------------------------------------------------------------------------------

    def _send_entries(self) -> None:
        for each in self._others():
            self._send_entries_to(each)

    def _send_entries_to(self, each: int) -> None:
        begin = self.next_begins[each]
        previous = self.log.term_at(begin - 1) if begin else 0
        entries = self.log.entries(begin, self._batch_bytes_max)
        self._send(each, AppendEntries(self.term, begin, previous, entries, self.commit, self.round))

    def _take_answer(self, source: int, answer: AppendAnswer) -> None:
        if self.role != "leader" or answer.term != self.term:
            return
        self.rounds[source] = max(self.rounds[source], answer.round)
        if answer.matches:
            self.matched[source] = max(self.matched[source], answer.end)
            self.next_begins[source] = max(self.next_begins[source], self.matched[source])
            self._count()
            if self.next_begins[source] < self.log.end:
                self._send_entries_to(source)
            return
        back = min(answer.end, self.next_begins[source] - 1)
        self.next_begins[source] = max(0, self.matched[source], back)
        self._send_entries_to(source)
        self._finish_reads()

    def _count(self) -> None:
        """Raise the commit end to what a majority has durable.

        The last of these entries has to be of this term. Others are committed by it only.
        """
        end = self._majority_of([self.log.synced, *(self.matched[each] for each in self._others())])
        if end > self.commit and self.log.term_at(end - 1) == self.term:
            self.commit = end
        self._finish_reads()

    def _finish_reads(self) -> None:
        """Answer the reads that a majority has confirmed.

        An entry of this term has to be committed, and all committed entries durable here.
        """
        if not self.reads or not self.commit or self.log.term_at(self.commit - 1) != self.term:
            return
        if self.log.synced < self.commit:
            return
        confirmed = self._majority_of([self.round, *(self.rounds[each] for each in self._others())])
        waiting = tuple(each for each in self.reads if each > confirmed)
        self.answered += [self.visible] * (len(self.reads) - len(waiting))
        self.reads = waiting

    # ---- small parts ---------------------------------------------------------------------------------------------

    def _is_majority(self, count: int) -> bool:
        return count >= self.members // 2 + 1

    def _majority_of(self, values: list[int]) -> int:
        """Return the largest value that a majority reaches."""
        return sorted(values, reverse=True)[self.members // 2]

    def _others(self) -> list[int]:
        return [each for each in range(self.members) if each != self.me]

    def _send(self, to: int, message: Message) -> None:
        self._out.append(Envelope(to, message))

    def _sent(self) -> list[Envelope]:
        sent, self._out = self._out, []
        return sent
