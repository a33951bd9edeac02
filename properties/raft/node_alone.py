"""Run the node of a Raft member alone, and compare each step with a reference.

Groups of one to five members, time, messages, requests and failures are drawn. The member and its application are
scripted: they note each call, and change role, term and log as drawn. The reference is written from the head of
impl/raft/node.py:

| contract | what is judged |
|---|---|
| 8 | which events happen in a step, in which order, and what is sent and when |
| 8 | NOT_LEADER and NO_MAJORITY are answered as long as they are true; a transfer is answered once |
| 8 | a failure ends the member, and `failure` says why; a closed member asks the first one with the whole log to lead |
| 16 | elections and heartbeats happen at their times, and a node is due no later than the next of them |
| 16 | a leader without a majority sends no heartbeat, and a process that was stopped waits again for its leader |

The times of elections are drawn by the harness.
"""

import logging
import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Envelope, LeadNow, Message, RequestVote, VoteAnswer
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.settings import RaftSettings
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.raft.frames import PING, frame, frame_of_message, hello
from tornpage.properties.raft.links_alone import LonelyLink, LonelyNetwork

__all__ = ["node_program_holds", "nodes_alone_hold"]

_PROGRAMS = 20
_EVENTS = 70
_BEAT_MS, _MIN_MS, _MAX_MS, _LOOK_MS = 30, 60, 150, 100
_RECONNECT_MS, _SILENCE_MS = 7, 10_000
_TIMES_MS = (0, 1, 6, 7, 29, 30, 31, 59, 60, 61, 99, 100, 101, 149, 150, 151)
_SHARE_OF_LOST = 0.5
_SHARE_OF_FAILED_CLOSES = 0.3
_OF_MEMBERS = (3, 2, 4, 5, 1)
_EVENT_NAMES = ("receive", "election_timeout", "heartbeat", "transfer", "begin_requests", "sync")
_CLIENTS = "10.0.0.1:7"
_NO_MEMBER = 99
"""A number that no member has, so that a message to it cannot be sent."""

Call = tuple[object, ...]


class _Draws:
    """The random numbers of a node: drawn by the harness, and noted."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.drawn: list[int] = []

    def randint(self, low: int, high: int) -> int:
        """Draw the time of an election."""
        _is("the range of an election time-out", (low, high), (_MIN_MS, _MAX_MS))
        self.drawn.append(self._rng.choice((low, high, self._rng.randint(low, high))))
        return self.drawn[-1]


@dataclass
class _Member:
    """The part of a member that a node sees."""

    me: int
    members: int
    role: str = "follower"
    term: int = 1
    leader: int | None = None
    commit: int = 0
    visible: int = 0
    round: int = 0
    log: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(end=5, synced=5, term_at=lambda place: 1))


class _Application:
    """A scripted application.

    `calls` has what the node called, `sent` what each event returned. `changes` is called in each event, before it
    returns. `failing` is the name of an event that raises. With `sends_nowhere` it returns a message to no member.
    """

    def __init__(self, member: _Member, changes: Callable[[str], None]) -> None:
        self.member = member
        self.calls: list[Call] = []
        self.sent: list[Envelope] = []
        self.has_requests = False
        self.failing = ""
        self.sends_nowhere = False
        self.whole_at: frozenset[int] = frozenset()
        self.grants = False
        self._changes = changes

    def _event(self, name: str, *details: Any) -> list[Envelope]:
        self.calls.append((name, *details))
        if self.failing == name:
            if self.sends_nowhere:
                return [Envelope(_NO_MEMBER, LeadNow(1))]
            raise OSError(f"{name} fails")
        self._changes(name)
        others = [each for each in range(self.member.members) if each != self.member.me]
        if name == "receive" and self.grants:
            found = [Envelope(details[0], VoteAnswer(self.member.term, granted=True))]
        elif name == "transfer":
            found = [Envelope(details[0], LeadNow(self.member.term))] if details[0] in self.whole_at else []
        elif name == "heartbeat":
            found = [Envelope(each, AppendEntries(self.member.term, 1, 1, (), 0, 0)) for each in others]
        else:
            found = [Envelope(others[0], RequestVote(len(self.calls) + 1, 1, 1))] if others else []
        self.sent += found
        return found

    def receive(self, source: int, message: Message) -> list[Envelope]:
        """Take a message."""
        return self._event("receive", source, message)

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate."""
        return self._event("election_timeout")

    def heartbeat(self) -> list[Envelope]:
        """Send heartbeats."""
        return self._event("heartbeat")

    def sync(self) -> list[Envelope]:
        """Make the log durable."""
        self.member.log.synced = self.member.log.end
        return self._event("sync")

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member to lead, if it has the whole log."""
        return self._event("transfer", to)

    def begin_requests(self, now_ms: int, refusal: RaftStatus | None) -> list[Envelope]:
        """Begin or refuse requests."""
        return self._event("begin_requests", now_ms, refusal)

    def answer(self, now_ms: int) -> None:
        """Note the call."""
        self.calls.append(("answer", now_ms))

    def lose_role(self) -> None:
        """Note the call."""
        self.calls.append(("lose_role",))

    def stop(self) -> None:
        """Note the call."""
        self.calls.append(("stop",))


# ---- the program -----------------------------------------------------------------------------------------------------


def nodes_alone_hold() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        node_program_holds(seed)


def node_program_holds(seed: int) -> None:
    """Judge one drawn program. Raises GuaranteeBroken."""
    log = logging.getLogger("tornpage.raft")
    was_disabled, log.disabled = log.disabled, True  # the failed members are meant
    try:
        observed("a node", _Program(random.Random(f"node {seed}"), _OF_MEMBERS[seed % len(_OF_MEMBERS)]).run)
    finally:
        log.disabled = was_disabled


class _Program:
    """One drawn program beside the reference.

    The script of a step is drawn before it. `_change` carries it out inside of the calls, and the reference reads it
    afterwards: role, term and leader after each event.
    """

    def __init__(self, rng: random.Random, members: int) -> None:
        self._rng, self._members = rng, members
        self._me = rng.randrange(members)
        self._now_ms = rng.choice((0, 5_000))
        self._settings = RaftSettings(
            tuple(f"10.0.0.{1 + each}:9000" for each in range(members)), heartbeat_interval=_BEAT_MS,
            election_timeout_min=_MIN_MS, election_timeout_max=_MAX_MS, reconnect_interval=_RECONNECT_MS,
            silence_max=_SILENCE_MS,
        )  # fmt: skip
        self._others = [each for each in range(members) if each != self._me]
        self._member = _Member(self._me, members)
        self._application = _Application(self._member, self._change)
        self._states: list[tuple[str, int, int | None]] = []
        self._network = LonelyNetwork()
        self._lost = {rng.choice(self._others)} if self._others and rng.random() < _SHARE_OF_LOST else set[int]()
        self._network.unreachable = {self._settings.peers[each] for each in self._lost}
        self._draws = _Draws(rng)
        self._node = RaftNode(
            cast(Any, self._application), self._settings, network=self._network, rng=cast(random.Random, self._draws),
            now_ms=self._now_ms, clients=_CLIENTS,
        )  # fmt: skip
        self._incoming: dict[int, LonelyLink] = {}
        self._told: list[tuple[int, Message]] = []
        self._transfers: list[tuple[int, Future[Answered]]] = []
        self._seen: dict[int, int] = {}
        self._turns: list[tuple[str, int, int | None] | None] = []
        # the reference
        self._connect_ms = 0
        self._role, self._term = "follower", 1
        self._last_ms = self._resumed_ms = self._now_ms
        self._beat_ms = 0
        self._heard: dict[int, int] = {}
        self._elections = 0
        self._stated_refusal: RaftStatus | None = RaftStatus.NOT_LEADER
        self._draws_used = 0
        self._election_ms = self._now_ms
        self._redraw()

    def run(self) -> None:
        """Draw events and steps, then close the node or let it fail."""
        _is("a new node", (self._node.failure, self._node.elections, self._node.refusal),
            ("", 0, RaftStatus.NOT_LEADER))  # fmt: skip
        self._step(0)
        self._call_in()
        for _ in range(_EVENTS):
            self._draw_step()
        if self._rng.random() < 0.5:
            self._fail()
        else:
            self._close()

    def _call_in(self) -> None:
        """Let all other members connect and greet."""
        for each in self._others:
            link = LonelyLink(0)
            link.peer = f"10.0.0.{1 + each}:{4_000 + each}"
            link.inbox += hello(each, self._me, self._settings.group, f"clients-{each}")
            self._network.backlog.append(link)
            self._incoming[each] = link
        self._step(1)

    # ---- a step --------------------------------------------------------------------------------------------------

    def _draw_step(self) -> None:
        rng = self._rng
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            if self._others:
                self._tell(rng.choice(self._others))
        if rng.random() < 0.15:
            self._ask_transfer()
        self._application.has_requests = rng.random() < 0.1
        self._application.grants = rng.random() < 0.2
        self._application.whole_at = frozenset(each for each in self._others if rng.random() < 0.5)
        if rng.random() < 0.4:
            self._member.log.end += rng.randint(0, 1)
        # the changes of the next events; most change nothing
        self._turns = [self._drawn_turn() for _ in range(12)]
        self._step(rng.choice(_TIMES_MS[: rng.choice((5, 13, 16))]))

    def _drawn_turn(self) -> tuple[str, int, int | None] | None:
        rng = self._rng
        if rng.random() < 0.75:
            return None
        role = rng.choice(("follower", "candidate", "leader", "leader"))
        leader = self._me if role == "leader" else rng.choice((None, *self._others)) if self._others else None
        return role, rng.randint(0, 1), leader

    def _change(self, name: str) -> None:
        """Change role, term and leader inside of an event that may change them."""
        turn = self._turns.pop(0) if self._turns and name in ("receive", "election_timeout") else None
        if turn is not None:
            role, more, leader = turn
            self._member.role, self._member.leader = role, leader
            self._member.term += more
        self._states.append((self._member.role, self._member.term, self._member.leader))

    def _tell(self, source: int) -> None:
        """Let a message of a member arrive with the next step."""
        rng, term = self._rng, self._member.term
        message: Message = rng.choice(
            (
                AppendAnswer(term, True, 0, 0), AppendAnswer(term, True, 0, 0), AppendAnswer(term - 1, True, 0, 0),
                AppendEntries(term - 1, 0, 0, (), 0, 0), RequestVote(term + 5, 1, 1), VoteAnswer(term, True),
                AppendEntries(term + 9, 0, 0, (), 0, 0), LeadNow(term),
            )
        )  # fmt: skip
        if source in self._incoming:
            self._incoming[source].inbox += frame_of_message(message)
            self._told.append((source, message))

    def _ask_transfer(self) -> None:
        to = self._rng.randrange(self._members)
        self._transfers.append((to, self._node.transfer(to)))

    def _step(self, milliseconds: int) -> None:
        """Let time pass, step the node, and compare the step with the reference."""
        self._now_ms += milliseconds
        for link in self._network.made:
            if not link.is_closed:
                link.inbox += frame(PING)
        for link in self._incoming.values():
            link.inbox += frame(PING)
        self._states.clear()
        self._application.calls.clear()
        self._application.sent.clear()
        synced = self._member.log.synced
        start = self._member.role, self._member.term, self._member.leader
        due_ms = self._node.step(self._now_ms)
        _is("whether a node goes on", self._node.failure, "")
        wanted = self._stated(synced, start)
        _is(f"what a node of {self._members} does in a step", self._application.calls, wanted)
        _is("the number of elections", self._node.elections, self._elections)
        _is("why a node takes no requests", self._node.refusal, self._stated_refusal)
        _is("how often an election time is drawn", len(self._draws.drawn), self._draws_used)
        _is("when a node is due", due_ms, self._stated_due_ms())
        self._judge_sent()
        self._judge_status()

    # ---- the reference -------------------------------------------------------------------------------------------

    def _redraw(self) -> None:
        """State that the node waits for its leader from now on."""
        self._election_ms = self._now_ms
        if self._members > 1:
            self._draws_used += 1
            if len(self._draws.drawn) < self._draws_used:
                raise GuaranteeBroken(16, "a node does not draw the time of its next election")
            self._election_ms += self._draws.drawn[self._draws_used - 1]

    def _stated(self, synced: int, start: tuple[str, int, int | None]) -> list[Call]:
        """Return the calls that a step has to make."""
        now_ms, states = self._now_ms, iter(list(self._states))
        calls: list[Call] = []
        role, term, leader = start

        def event(*call: object) -> None:
            nonlocal role, term, leader
            calls.append(call)
            role, term, leader = next(states, (role, term, leader))

        def note_role() -> None:
            if (role, term) != (self._role, self._term):
                if self._role == "leader":
                    calls.append(("lose_role",))
                self._role, self._term = role, term
                if role == "leader":
                    self._heard = dict.fromkeys(self._others, now_ms)
                    self._beat_ms = now_ms + _BEAT_MS

        if now_ms - self._last_ms > _MIN_MS:
            self._resumed_ms = now_ms
            self._redraw()
        self._last_ms = now_ms
        if self._lost and now_ms >= self._connect_ms:
            self._connect_ms = now_ms + _RECONNECT_MS
        told, self._told = self._told, []
        for source in self._others:
            for message in (message for each, message in told if each == source):
                event("receive", source, message)
                is_leader = isinstance(message, AppendEntries) and leader == source
                if is_leader or self._application.grants:
                    self._redraw()
                note_role()
                if isinstance(message, AppendAnswer) and role == "leader" and message.term == term:
                    self._heard[source] = now_ms
        if role == "leader":
            if now_ms >= self._beat_ms:
                self._beat_ms = now_ms + _BEAT_MS
                if self._has_majority(now_ms) or now_ms - self._resumed_ms <= _MAX_MS:
                    event("heartbeat")
        elif now_ms >= self._election_ms:
            self._elections += 1
            self._redraw()
            event("election_timeout")
            note_role()
        self._state_transfers(event, lambda: self._refusal(role))
        self._stated_refusal = self._refusal(role)
        event("begin_requests", now_ms, self._stated_refusal)
        if synced < self._member.log.end:
            event("sync")
        calls.append(("answer", now_ms))
        return calls

    def _state_transfers(self, event: Callable[..., None], refusal: Callable[[], RaftStatus | None]) -> None:
        for to, answer in self._transfers:
            refused = refusal()
            if refused is None:
                event("transfer", to)
            accepted = RaftStatus.OK if to in self._application.whole_at else RaftStatus.BUSY
            _is("whether a transfer is answered", answer.done(), True)
            _is("the answer to a transfer", answer.result(0), Answered(refused or accepted))
        self._transfers.clear()

    def _has_majority(self, now_ms: int) -> bool:
        """Return whether a majority has answered this leader lately. It counts itself."""
        heard = sum(now_ms - at <= _MAX_MS for at in self._heard.values())
        return 2 * (1 + heard) > self._members

    def _refusal(self, role: str) -> RaftStatus | None:
        if role != "leader":
            return RaftStatus.NOT_LEADER
        return None if self._has_majority(self._now_ms) else RaftStatus.NO_MAJORITY

    def _stated_due_ms(self) -> int:
        if self._application.has_requests:
            return self._now_ms
        timer_ms = self._beat_ms if self._member.role == "leader" else self._election_ms
        return min(self._now_ms + _LOOK_MS, timer_ms, *([self._connect_ms] if self._lost else []))

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge_sent(self) -> None:
        """Judge the bytes of each link: what the events have returned, in this order."""
        for each in (each for each in self._others if each not in self._lost):
            link = next(link for link in self._network.made if link.peer == self._settings.peers[each])
            begin = self._seen.get(each, 0)
            new = bytes(link.outbox[begin:])
            self._seen[each] = len(link.outbox)
            greeting = b"" if begin else hello(self._me, each, self._settings.group, _CLIENTS)
            sent = b"".join(frame_of_message(found.message) for found in self._application.sent if found.to == each)
            _is(f"what is sent to {each}", new.replace(frame(PING), b""), greeting + sent)

    def _judge_status(self) -> None:
        member, leader = self._member, self._member.leader
        clients = f"clients-{leader}" if leader in self._incoming and leader != self._me else ""
        wanted = {
            "member": self._me, "members": list(self._settings.peers), "role": member.role, "term": member.term,
            "leader": leader, "leader_clients": clients, "end": member.log.end, "durable_end": member.log.synced,
            "commit_end": member.commit, "visible_end": member.visible, "elections": self._elections, "findings": [],
            "failure": "",
        }  # fmt: skip
        found = self._node.status()
        rows = [(row["member"], row["sends"]) for row in found.pop("peers")]
        sends = [(each, each not in self._lost) for each in self._others]
        _is("what a node shows", (found, rows), (wanted, sends))

    # ---- ends ----------------------------------------------------------------------------------------------------

    def _fail(self) -> None:
        """Let an event fail, or let it return what cannot be sent. The node ends, and says why."""
        nowhere = self._application.sends_nowhere = self._rng.random() < 0.3
        self._application.failing = name = self._rng.choice(("begin_requests", "sync", "receive", "transfer"))
        self._member.role, self._application.whole_at = "leader", frozenset(self._others)
        self._member.log.end += 1
        for each in self._others[:1]:
            self._tell(each)
        asked = [self._node.transfer(to) for to in range(self._members)]
        self._application.calls.clear()
        due_ms = self._node.step(self._now_ms)
        names = [call[0] for call in self._application.calls]
        if name not in names:  # a group of one receives nothing, and a leader without a majority transfers nothing
            return
        _is("the calls after a failure", names[names.index(name) :], [name, "stop"])
        wanted = f"KeyError: {_NO_MEMBER}" if nowhere else f"OSError: {name} fails"
        _is("the failure of a node", self._node.failure, wanted)
        _is("when a node that has failed is due", due_ms, self._now_ms + _LOOK_MS)
        _is("the answers of transfers", all(each.done() for each in asked), True)
        self._judge_over()

    def _close(self) -> None:
        """Close the node. A leader asks the first member with the whole log to lead."""
        fails = self._rng.random() < _SHARE_OF_FAILED_CLOSES
        whole = self._application.whole_at = frozenset(each for each in self._others if self._rng.random() < 0.4)
        self._application.failing = "transfer" if fails else ""
        asked = self._node.transfer(0)
        self._application.calls.clear()
        self._application.sent.clear()
        self._node.close(self._now_ms)
        to = min(whole, default=self._members - 1)
        to = 0 if fails else to
        wanted: list[Call] = [*(("transfer", each) for each in range(to + 1)), ("stop",)]
        _is("the failure of a closed node", self._node.failure, "OSError: transfer fails" if fails else "")
        _is("the calls of a close", self._application.calls, wanted)
        _is("the answer to a transfer", asked.result(0).status, RaftStatus.STOPPED)
        self._judge_sent()
        self._judge_over()

    def _judge_over(self) -> None:
        """Judge a node that has ended: it does nothing, answers at once, and keeps no link."""
        self._application.calls.clear()
        self._node.close(self._now_ms)
        due_ms = self._node.step(self._now_ms)
        answer = self._node.transfer(0)
        _is("the answer of a node that has ended", answer.done() and answer.result(0).status, RaftStatus.STOPPED)
        _is("what a node does after its end", (self._application.calls, due_ms), ([], self._now_ms + _LOOK_MS))
        links = (*self._network.made, *self._incoming.values())
        _is("the open links of a node that has ended", [each.peer for each in links if not each.is_closed], [])
        _is("whether a node listens after its end", self._network.is_listening, False)


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(16, f"{what} is another one", str(wanted)[:300], str(found)[:300])
