"""Run a member of a group: timers, links, a batch of events for each sync, and requests of clients.

The caller steps the node: `step(now_ms)` does one round and never waits for a peer or a client. It waits for the syncs
of the log and of the term's file. One round

1. takes all messages that have arrived;
2. begins an election or sends heartbeats, if they are due;
3. appends all entries that clients have asked for, as one batch, and sends them;
4. makes the log durable with one sync, then confirms or counts its entries;
5. answers clients.

Every thread may call `append`, `read` and `transfer`. A failed write or sync ends the member: it sends nothing more,
and `failure` says why.

A leader that a majority has not answered for `election_timeout_max` takes no entries and sends no heartbeats, so that
members that it cannot hear elect another one.
"""

import logging
import random
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from tornpage.impl.errors import StoreError
from tornpage.impl.parts import Parts
from tornpage.impl.raft.faces import HardStateFace, LogFace
from tornpage.impl.raft.member import RaftMember, RaftRole
from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Envelope, Message, VoteAnswer
from tornpage.impl.raft.peers import Peers
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.link import Network, WaitingNetwork

__all__ = ["Answered", "Application", "RaftNode", "RaftStatus"]

_LOG = logging.getLogger("tornpage.raft")

_LOOK_MS = 100
"""The longest time between two steps."""
_ENTRIES_PER_STEP = 1_024


class RaftStatus(StrEnum):
    """How a request of a client ended.

    After UNKNOWN an entry may be committed or not. After every other status but OK it never will be.
    """

    OK = "OK"
    NOT_LEADER = "NOT_LEADER"
    NO_MAJORITY = "NO_MAJORITY"
    BUSY = "BUSY"
    TOO_LARGE = "TOO_LARGE"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"


class Answered(NamedTuple):
    """The answer to a request.

    `place` is that of a committed entry, or the end of what a read may see; -1 without either.
    """

    status: RaftStatus
    place: int = -1
    term: int = -1


_UNKNOWN = Answered(RaftStatus.UNKNOWN)


class Application(Protocol):
    """What uses the committed entries of a member.

    The node calls it from the thread of its steps. A failure ends the member.
    """

    def advance(self, end: int) -> None:
        """Take the entries below `end`, which are committed and durable here. `end` never falls."""


@dataclass(slots=True)
class _Waiting:
    """An appended entry whose client waits."""

    place: int
    term: int
    until_ms: int
    size_bytes: int
    answer: "Future[Answered]"


class RaftNode:
    """One member that runs. `begin` connects it to its group.

    `failure` is why it has ended, else an empty text. `elections` counts those that it began.
    """

    def __init__(
        self,
        me: int,
        settings: RaftSettings,
        log: LogFace,
        hard_state: HardStateFace,
        *,
        network: Network,
        rng: random.Random,
        application: Application | None = None,
        parts: Parts | None = None,
    ) -> None:
        self.failure = ""
        self.elections = 0
        self.settings = settings
        self._log = RecentEntries(log, settings.recent_bytes_max)
        new_member = (parts or Parts()).of(RaftMember)
        self.member = new_member(
            me, len(settings.peers), self._log, hard_state, batch_bytes_max=settings.batch_bytes_max
        )
        self._network = network
        self._wake_network = network.wake if isinstance(network, WaitingNetwork) else _nothing
        self._rng = rng
        self._application = application
        self._peers: Peers | None = None
        self._appends: deque[tuple[bytes, Future[Answered]]] = deque()
        self._reads: deque[Future[Answered]] = deque()
        self._transfers: deque[tuple[int, Future[Answered]]] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._rounds: deque[tuple[int, list[Future[Answered]]]] = deque()  # when to give up, and the reads of a round
        self._role: RaftRole = "follower"
        self._term = self.member.term
        self._advanced = 0
        self._election_ms = 0
        self._heartbeat_ms = 0
        self._heard: list[int] = []
        self._last_ms = 0
        self._resumed_ms = 0
        self._is_closed = False

    def begin(self, now_ms: int, *, clients: str = "") -> None:
        """Listen, and connect to the other members. `clients` is the address that they tell clients.

        Raises OSError if the member cannot listen at its address.
        """
        self._peers = Peers(self.member.me, self.settings, self._network, clients=clients)
        self._last_ms = now_ms
        self._await_leader(now_ms)
        if self.member.members == 1:
            self._election_ms = now_ms

    # ---- requests of clients, from any thread --------------------------------------------------------------------

    def append(self, body: bytes) -> "Future[Answered]":
        """Ask for an entry. The answer comes after it is committed, or after `answer_timeout`.

        Raises ValueError for an empty body, which begins a term.
        """
        if not body:
            raise ValueError("an entry of a client has at least one byte")
        return self._asked(self._appends, body)

    def read(self) -> "Future[Answered]":
        """Ask for the end of the entries that a read may see. It has all entries that were acknowledged before."""
        answer: Future[Answered] = Future()
        self._reads.append(answer)
        self._wake()
        return answer

    def transfer(self, to: int) -> "Future[Answered]":
        """Ask a leader to give up its role to another member, which must have the whole log."""
        return self._asked(self._transfers, to)

    def _asked(self, queue: "deque[tuple[Any, Future[Answered]]]", asked: bytes | int) -> "Future[Answered]":
        answer: Future[Answered] = Future()
        queue.append((asked, answer))
        self._wake()
        return answer

    def _wake(self) -> None:
        self._wake_network()
        if self.failure or self._is_closed:
            self._refuse_all(RaftStatus.STOPPED)

    # ---- one round -----------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Do one round, and return the time at which the next is due."""
        if self.failure or self._is_closed or self._peers is None:
            return now_ms + _LOOK_MS
        try:
            return self._step(self._peers, now_ms)
        except (OSError, StoreError) as error:
            self._fail(f"{type(error).__name__}: {error}")
            return now_ms + _LOOK_MS

    def _step(self, peers: Peers, now_ms: int) -> int:
        has_stalled = now_ms - self._last_ms > self.settings.election_timeout_min
        self._last_ms = now_ms
        if has_stalled:  # of this process, so it says nothing about the leader
            self._resumed_ms = now_ms
            self._await_leader(now_ms)
        for source, message in peers.step(now_ms):
            self._receive(source, message, now_ms)
        self._follow_timers(now_ms)
        self._take_requests(now_ms)
        peers.write(now_ms)
        if self._log.synced < self._log.end:
            self._send(self.member.sync(), now_ms)
            peers.write(now_ms)
        self._answer(now_ms)
        return self._due_ms(peers, now_ms)

    def _due_ms(self, peers: Peers, now_ms: int) -> int:
        if self._appends or self._reads or self._transfers:
            return now_ms
        due = min(now_ms + _LOOK_MS, self._heartbeat_ms if self.member.role == "leader" else self._election_ms)
        connect_ms = peers.next_ms
        return due if connect_ms is None else min(due, connect_ms)

    def _send(self, envelopes: Sequence[Envelope] | None, now_ms: int, *, at_once: bool = False) -> None:
        assert self._peers is not None
        if envelopes:
            self._peers.send(list(envelopes), now_ms, at_once=at_once)

    # ---- messages and timers -------------------------------------------------------------------------------------

    def _receive(self, source: int, message: Message, now_ms: int) -> None:
        sent = self.member.receive(source, message)
        if isinstance(message, AppendEntries) and self.member.leader == source:
            self._await_leader(now_ms)
        elif isinstance(message, AppendAnswer) and self.member.role == "leader" and message.term == self.member.term:
            self._heard[source] = now_ms
        elif any(isinstance(each.message, VoteAnswer) and each.message.granted for each in sent):
            self._await_leader(now_ms)
        self._note_role(now_ms)
        self._send(sent, now_ms)

    def _await_leader(self, now_ms: int) -> None:
        """Draw the time of the next election."""
        settings = self.settings
        self._election_ms = now_ms + self._rng.randint(settings.election_timeout_min, settings.election_timeout_max)

    def _note_role(self, now_ms: int) -> None:
        """Notice a new role or term. Clients that wait get no answer from a leader of the past."""
        member = self.member
        if (member.role, member.term) == (self._role, self._term):
            return
        if self._role == "leader":
            self._give_up()
        if member.role != self._role or member.role == "leader":
            _LOG.info(
                "role_changed member=n%d role=%s term=%d end=%d", member.me, member.role, member.term, member.log.end
            )
        self._role, self._term = member.role, member.term
        if member.role == "leader":
            self._heard = [now_ms] * member.members
            self._heartbeat_ms = now_ms + self.settings.heartbeat_interval

    def _follow_timers(self, now_ms: int) -> None:
        member, settings = self.member, self.settings
        if member.role == "leader":
            if now_ms >= self._heartbeat_ms:
                self._heartbeat_ms = now_ms + settings.heartbeat_interval
                if now_ms - max(self._majority_heard_ms(now_ms), self._resumed_ms) <= settings.election_timeout_max:
                    self._send(member.heartbeat(), now_ms, at_once=True)
        elif now_ms >= self._election_ms:
            self.elections += 1
            self._await_leader(now_ms)
            sent = member.election_timeout()
            self._note_role(now_ms)
            self._send(sent, now_ms)

    def _majority_heard_ms(self, now_ms: int) -> int:
        """Return the latest time since which a majority, this leader included, has answered."""
        heard = [now_ms if each == self.member.me else at for each, at in enumerate(self._heard)]
        return sorted(heard, reverse=True)[self.member.members // 2]

    def _has_majority(self, now_ms: int) -> bool:
        return now_ms - self._majority_heard_ms(now_ms) <= self.settings.election_timeout_max

    # ---- requests ------------------------------------------------------------------------------------------------

    def _take_requests(self, now_ms: int) -> None:
        refusal = self._refusal(now_ms)
        if refusal is not None:
            self._refuse_all(refusal)
            return
        self._take_appends(now_ms)
        if self._reads:
            reads = [self._reads.popleft() for _ in range(len(self._reads))]
            self._rounds.append((now_ms + self.settings.answer_timeout, reads))
            self._send(self.member.read(), now_ms)
        while self._transfers:
            to, answer = self._transfers.popleft()
            sent = self.member.transfer(to)
            self._send(sent, now_ms)
            _set(answer, Answered(RaftStatus.OK if sent else RaftStatus.BUSY))

    def _refusal(self, now_ms: int) -> RaftStatus | None:
        """Return why no request is taken now."""
        if self.member.role != "leader":
            return RaftStatus.NOT_LEADER
        if not self._has_majority(now_ms):
            return RaftStatus.NO_MAJORITY
        return None

    def _take_appends(self, now_ms: int) -> None:
        settings = self.settings
        bodies: list[bytes] = []
        answers: list[Future[Answered]] = []
        size_bytes = 0
        while self._appends and len(bodies) < _ENTRIES_PER_STEP and size_bytes < settings.batch_bytes_max:
            body, answer = self._appends.popleft()
            if len(body) > settings.entry_body_bytes_max:
                _set(answer, Answered(RaftStatus.TOO_LARGE))
            elif (
                self.member.transferee is not None
                or len(self._waiting) + len(bodies) >= settings.pending_max
                or self._waiting_bytes + size_bytes + len(body) > settings.pending_bytes_max
            ):
                _set(answer, Answered(RaftStatus.BUSY))
            else:
                bodies.append(body)
                answers.append(answer)
                size_bytes += len(body)
        if not bodies:
            return
        place, term = self._log.end, self.member.term
        until_ms = now_ms + settings.answer_timeout
        self._waiting += (
            _Waiting(place + at, term, until_ms, len(body), answer)
            for at, (body, answer) in enumerate(zip(bodies, answers, strict=True))
        )
        self._waiting_bytes += size_bytes
        sent = self.member.propose(bodies)
        assert sent is not None
        self._send(sent, now_ms)

    def _refuse_all(self, status: RaftStatus) -> None:
        """Answer all requests that were not begun."""
        with suppress(IndexError):  # after the end of the member, two threads may do this
            while self._appends:
                _set(self._appends.popleft()[1], Answered(status))
            while self._transfers:
                _set(self._transfers.popleft()[1], Answered(status))
            while self._reads:
                _set(self._reads.popleft(), Answered(status))

    def _give_up(self) -> None:
        """Answer clients that wait for a role that has ended."""
        while self._waiting:
            _set(self._waiting.popleft().answer, _UNKNOWN)
        self._waiting_bytes = 0
        while self._rounds:
            for answer in self._rounds.popleft()[1]:
                _set(answer, Answered(RaftStatus.NOT_LEADER))

    def _answer(self, now_ms: int) -> None:
        """Answer clients whose entries are committed, whose reads are confirmed, or whose time is over."""
        member, waiting = self.member, self._waiting
        visible = member.visible
        if visible > self._advanced:
            self._advanced = visible
            if self._application is not None:
                self._application.advance(visible)
        while waiting and (waiting[0].place < member.commit or waiting[0].until_ms <= now_ms):
            first = waiting.popleft()
            self._waiting_bytes -= first.size_bytes
            is_committed = first.place < member.commit
            _set(first.answer, Answered(RaftStatus.OK, first.place, first.term) if is_committed else _UNKNOWN)
        for end in member.take_answered():
            for answer in self._rounds.popleft()[1]:
                _set(answer, Answered(RaftStatus.OK, end, member.term))
        for until_ms, answers in self._rounds:
            if until_ms <= now_ms:
                while answers:
                    _set(answers.pop(), Answered(RaftStatus.NO_MAJORITY))

    # ---- the end -------------------------------------------------------------------------------------------------

    def _fail(self, reason: str) -> None:
        """End the member after a failed call: what it has written is not known."""
        _LOG.error("member_failed member=n%d reason=%r", self.member.me, reason)
        self.failure = reason
        assert self._peers is not None
        self._peers.close()
        self._give_up()
        self._refuse_all(RaftStatus.STOPPED)

    def close(self, now_ms: int) -> None:
        """End the member after the last step. A leader asks another member to lead. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._peers is not None and not self.failure:
            others = (each for each in range(self.member.members) if each != self.member.me)
            for sent in map(self.member.transfer, others):
                if sent:
                    self._send(sent, now_ms)
                    self._peers.write(now_ms)
                    break
            self._peers.close()
        self._give_up()
        self._refuse_all(RaftStatus.STOPPED)

    # ---- for operators -------------------------------------------------------------------------------------------

    @property
    def leader_clients(self) -> str:
        """The address at which the leader serves clients, an empty text if it is unknown."""
        leader, peers = self.member.leader, self._peers
        return "" if leader is None or leader == self.member.me or peers is None else peers.clients_of(leader)

    def status(self) -> dict[str, Any]:
        """Return the state of the member."""
        member, peers = self.member, self._peers
        return {
            "member": member.me,
            "members": list(self.settings.peers),
            "role": member.role,
            "term": member.term,
            "leader": member.leader,
            "leader_clients": self.leader_clients,
            "end": self._log.end,
            "durable_end": self._log.synced,
            "commit_end": member.commit,
            "visible_end": member.visible,
            "waiting": len(self._waiting),
            "elections": self.elections,
            "peers": [] if peers is None else peers.rows(),
            "findings": [] if peers is None else peers.findings,
            "failure": self.failure,
        }


def _nothing() -> None:
    """Wake no thread: the caller steps the node."""


def _set(answer: "Future[Answered]", result: Answered) -> None:
    """Answer a client."""
    answer.set_result(result)
