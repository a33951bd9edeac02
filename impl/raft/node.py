"""Run a member of a group: timers, links, and one sync for a batch of events.

The caller steps the node: `step(now_ms)` does one round and never waits for a peer or a client. It waits for the syncs
of the log and of the term's file. One round

1. takes all messages that have arrived;
2. begins an election or sends heartbeats, if they are due;
3. begins the requests of clients, and sends their entries;
4. makes the log durable with one sync, then confirms or counts its entries;
5. answers clients.

A failed write or sync, and any other exception, ends the member: it sends nothing more, and `failure` says why.

A leader that a majority has not answered for `election_timeout_max` takes no entries and sends no heartbeats. Members
that receive from it, but cannot answer it, elect another one then.
"""

import logging
import random
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tornpage.impl.errors import StoreError
from tornpage.impl.raft.answers import Answered, RaftStatus, settle
from tornpage.impl.raft.application import Application
from tornpage.impl.raft.member import RaftRole
from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Envelope, Message, VoteAnswer
from tornpage.impl.raft.objections import objection
from tornpage.impl.raft.peers import Peers
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.link import Network

__all__ = ["RaftNode"]

_LOG = logging.getLogger("tornpage.raft")

_LOOK_MS = 100
"""The longest time between two steps."""


class RaftNode:
    """One member that runs.

    `clients` is the address that the other members tell clients. `refusal` is why the last step took no requests, None
    if it took them. `failure` is why the member has ended, else an empty text. `elections` counts those that it began.

    Raises OSError if the member cannot listen at its address.
    """

    def __init__(
        self,
        application: Application,
        settings: RaftSettings,
        *,
        network: Network,
        rng: random.Random,
        now_ms: int,
        clients: str = "",
    ) -> None:
        self.failure = ""
        self.elections = 0
        self.refusal: RaftStatus | None = RaftStatus.NOT_LEADER
        self._application = application
        self._member = member = application.member
        self._settings = settings
        self._rng = rng
        self._transfers: deque[tuple[int, Future[Answered]]] = deque()
        self._role: RaftRole = "follower"
        self._term = member.term
        self._heartbeat_ms = 0
        self._heard: list[int] = []
        self._last_ms = self._resumed_ms = now_ms
        self._is_closed = False
        self._await_leader(now_ms)
        self._peers = Peers(
            member.me,
            settings,
            network,
            clients=clients,
            objection=lambda source, message: objection(
                member, source, message, data_file_bytes=settings.data_file_bytes
            ),
        )

    def transfer(self, to: int) -> "Future[Answered]":
        """Ask a leader to give up its role to another member, which must have the whole log.

        The answer is OK after the member is asked to lead, and BUSY if it lacks entries. Any thread may call it.
        """
        answer: Future[Answered] = Future()
        if self._is_over:
            settle(answer, Answered(RaftStatus.STOPPED))
        else:
            self._transfers.append((to, answer))
        return answer

    @property
    def _is_over(self) -> bool:
        return bool(self.failure) or self._is_closed

    # ---- one round -----------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Do one round, and return the time at which the next is due."""
        if self._is_over:
            return now_ms + _LOOK_MS
        try:
            return self._step(now_ms)
        except Exception as error:  # whatever it is, the member may have done half of an event
            self._fail(error)
            return now_ms + _LOOK_MS

    def _step(self, now_ms: int) -> int:
        application, log = self._application, self._member.log
        if now_ms - self._last_ms > self._settings.election_timeout_min:
            self._resumed_ms = now_ms  # this process was stopped, which says nothing about the leader
            self._await_leader(now_ms)
        self._last_ms = now_ms
        for source, message in self._peers.step(now_ms):
            self._receive(source, message, now_ms)
        self._follow_timers(now_ms)
        self._take_transfers(now_ms)
        self.refusal = self._refusal(now_ms)
        self._send(application.begin_requests(now_ms, self.refusal), now_ms)
        self._peers.write()
        if log.synced < log.end:
            self._send(application.sync(), now_ms)
            self._peers.write()
        application.answer(now_ms)
        return self._due_ms(now_ms)

    def _due_ms(self, now_ms: int) -> int:
        if self._application.has_requests:
            return now_ms
        due = min(now_ms + _LOOK_MS, self._heartbeat_ms if self._member.role == "leader" else self._election_ms)
        connect_ms = self._peers.next_ms
        return due if connect_ms is None else min(due, connect_ms)

    def _send(self, envelopes: Sequence[Envelope], now_ms: int, *, at_once: bool = False) -> None:
        self._peers.send(envelopes, now_ms, at_once=at_once)

    # ---- messages and timers -------------------------------------------------------------------------------------

    def _receive(self, source: int, message: Message, now_ms: int) -> None:
        member = self._member
        sent = self._application.receive(source, message)
        has_leader = isinstance(message, AppendEntries) and member.leader == source
        if has_leader or any(map(_is_vote, sent)):
            self._await_leader(now_ms)
        self._note_role(now_ms)
        if isinstance(message, AppendAnswer) and member.role == "leader" and message.term == member.term:
            self._heard[source] = now_ms
        self._send(sent, now_ms)

    def _await_leader(self, now_ms: int) -> None:
        """Draw the time of the next election. A group of one waits for no leader."""
        settings = self._settings
        self._election_ms = now_ms
        if self._member.members > 1:
            self._election_ms += self._rng.randint(settings.election_timeout_min, settings.election_timeout_max)

    def _note_role(self, now_ms: int) -> None:
        """Notice a new role or a new term after an event."""
        member = self._member
        if (member.role, member.term) == (self._role, self._term):
            return
        if self._role == "leader":
            self._application.lose_role()
        if member.role != self._role or member.role == "leader":
            _LOG.info("role_changed member=n%d role=%s term=%d", member.me, member.role, member.term)
        self._role, self._term = member.role, member.term
        if member.role == "leader":
            self._heard = [now_ms] * member.members
            self._heartbeat_ms = now_ms + self._settings.heartbeat_interval

    def _follow_timers(self, now_ms: int) -> None:
        settings = self._settings
        if self._member.role == "leader":
            if now_ms >= self._heartbeat_ms:
                self._heartbeat_ms = now_ms + settings.heartbeat_interval
                if now_ms - max(self._majority_heard_ms(now_ms), self._resumed_ms) <= settings.election_timeout_max:
                    self._send(self._application.heartbeat(), now_ms, at_once=True)
        elif now_ms >= self._election_ms:
            self.elections += 1
            self._await_leader(now_ms)
            sent = self._application.election_timeout()
            self._note_role(now_ms)
            self._send(sent, now_ms)

    def _majority_heard_ms(self, now_ms: int) -> int:
        """Return the latest time since which a majority, this leader included, has answered."""
        heard = [now_ms if each == self._member.me else at for each, at in enumerate(self._heard)]
        return sorted(heard, reverse=True)[self._member.members // 2]

    # ---- requests ------------------------------------------------------------------------------------------------

    def _refusal(self, now_ms: int) -> RaftStatus | None:
        """Return why no request is taken now, or None."""
        if self._member.role != "leader":
            return RaftStatus.NOT_LEADER
        if now_ms - self._majority_heard_ms(now_ms) > self._settings.election_timeout_max:
            return RaftStatus.NO_MAJORITY
        return None

    def _take_transfers(self, now_ms: int) -> None:
        while self._transfers:
            to, answer = self._transfers[0]  # a failure answers it with the others
            self.refusal = self._refusal(now_ms)
            sent = [] if self.refusal is not None else self._application.transfer(to)
            self._send(sent, now_ms)
            self._transfers.popleft()
            settle(answer, Answered(self.refusal or (RaftStatus.OK if sent else RaftStatus.BUSY)))

    # ---- the end -------------------------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """End the member after a failed event: what it has written is not known."""
        is_expected = isinstance(error, OSError | StoreError)
        _LOG.error("member_failed member=n%d", self._member.me, exc_info=None if is_expected else error)
        self.failure = f"{type(error).__name__}: {error}"
        self._stop()

    def _stop(self) -> None:
        self._peers.close()
        self._application.stop()
        while self._transfers:
            settle(self._transfers.popleft()[1], Answered(RaftStatus.STOPPED))

    def close(self, now_ms: int) -> None:
        """End the member after its last step. A leader asks another member to lead. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.failure:
            return
        try:
            self._give_role_up(now_ms)
        except Exception as error:  # as in a step
            self._fail(error)
        else:
            self._stop()

    def _give_role_up(self, now_ms: int) -> None:
        """Ask the first member with the whole log to lead, if this one leads."""
        for each in range(self._member.members):
            sent = self._application.transfer(each)
            if sent:
                self._send(sent, now_ms)
                self._peers.write()
                return

    # ---- for operators -------------------------------------------------------------------------------------------

    @property
    def leader_clients(self) -> str:
        """The address at which the leader serves clients, an empty text if it is unknown."""
        leader = self._member.leader
        return "" if leader in (None, self._member.me) else self._peers.clients_of(leader)

    def status(self) -> dict[str, Any]:
        """Return the state of the member."""
        member = self._member
        return {
            "member": member.me,
            "members": list(self._settings.peers),
            "role": member.role,
            "term": member.term,
            "leader": member.leader,
            "leader_clients": self.leader_clients,
            "end": member.log.end,
            "durable_end": member.log.synced,
            "commit_end": member.commit,
            "visible_end": member.visible,
            "elections": self.elections,
            "peers": self._peers.rows(),
            "findings": self._peers.findings,
            "failure": self.failure,
        }


def _is_vote(envelope: Envelope) -> bool:
    return isinstance(envelope.message, VoteAnswer) and envelope.message.granted
