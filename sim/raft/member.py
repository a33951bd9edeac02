"""One member of a group: a thread that takes messages, follows timers, syncs and sends.

A round of the thread, as in `impl/raft`:

1. wake up, and take all messages that have arrived;
2. begin an election or send heartbeats, if they are due;
3. append the puts that wait, and send entries to each follower without an unanswered batch;
4. sync the log, then confirm or count its entries;
5. answer puts.

A new term and a vote are synced before anything is sent that depends on them. The log is the list of the terms of its
entries, so that elections and conflicts are decided as in a real group.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.sim.device.device import Device
from tornpage.sim.device.stalls import Stalls
from tornpage.sim.events.bell import Bell, now_ns
from tornpage.sim.raft.scenario import RaftScenario
from tornpage.sim.streams import Draws, stream

__all__ = [
    "Answer",
    "Append",
    "Member",
    "Message",
    "RaftMember",
    "Vote",
    "VoteAnswer",
    "World",
    "disk_of_member",
    "message_bytes",
    "size_of",
]

HEADER_BYTES = 64
HARD_STATE_BYTES = 32
_MESSAGES_PER_ROUND = 4_096


@dataclass(frozen=True, slots=True)
class Vote:
    """Ask for a vote."""

    term: int
    last_term: int
    end: int


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    """Answer a candidate."""

    term: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Append:
    """Send entries, given by their terms."""

    term: int
    begin: int
    previous_term: int
    terms: tuple[int, ...]
    commit: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Confirm the first `end` entries, or ask for entries from there on."""

    term: int
    matches: bool
    end: int


Message = Vote | VoteAnswer | Append | Answer


def size_of(message: Message, entry_bytes: int) -> int:
    """Return the size of a message on a link."""
    return message_bytes(len(message.terms) if isinstance(message, Append) else 0, entry_bytes)


def message_bytes(entries: int, entry_bytes: int) -> int:
    """Return the size of a message with so many entries."""
    return HEADER_BYTES + entries * entry_bytes


def disk_of_member(scenario: RaftScenario, me: int, seed: int) -> Device:
    """Return the disk of a member, with stalls of its own."""
    stalls = None if scenario.stalls is None else Stalls(scenario.stalls, stream(seed, f"stalls of member {me}"))
    return Device(scenario.device, stream(seed, f"disk of member {me}"), stalls)


class World(Protocol):
    """The links and the clients of a group, and the observer of its members."""

    @property
    def has_puts(self) -> bool:
        """Whether puts wait for a leader."""

    def take(self, count_max: int) -> list[int]:
        """Return puts that wait, for a leader that appends them at once."""

    def give_back(self, puts: list[int]) -> None:
        """Let puts wait again that a former leader has not answered."""

    def answer(self, puts: list[int], end: int) -> None:
        """Take the acknowledgement of puts, the last of which is before `end` in the log."""

    def send(self, source: int, to: int, message: Any, size_bytes: int) -> None:
        """Send a message over the link of two members."""

    def note_election(self, term: int) -> None:
        """Notice a candidate of a term."""

    def note_leader(self, member: int, term: int) -> None:
        """Notice the leader of a term."""

    def note_step_down(self) -> None:
        """Notice that a leader leads no more."""

    def note_ends(self, member: int, received: int, synced: int) -> None:
        """Notice what a member has in its page cache and on its disk."""


class Member(Protocol):
    """One member, as its group uses it."""

    @property
    def me(self) -> int:
        """Its number."""

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""

    @property
    def role(self) -> Literal["follower", "candidate", "leader"]:
        """Its role."""

    def deliver(self, source: int, message: Any) -> None:
        """Take a message that has arrived."""

    def wake(self) -> None:
        """Look at the puts that wait."""

    def note_link(self, other: int) -> None:
        """Forget what was sent to a member that has started again: its new link has lost that."""

    def kill(self) -> None:
        """End the process. Its page cache stays."""

    def restart(self) -> None:
        """Start the process again; its recovery makes the log durable."""


class RaftMember:
    """The actors of one member: its thread, and a flush on a clock if that is the policy."""

    def __init__(self, env: Environment, scenario: RaftScenario, me: int, seed: int, world: World) -> None:
        self.me = me
        self.is_up = True
        self.term, self.vote = 1, 0
        self.log = [1]
        self.synced = self.commit = self.verified = 1
        self.role: Literal["follower", "candidate", "leader"] = "leader" if me == 0 else "follower"
        self.leader: int | None = 0
        self._env, self._scenario, self._world = env, scenario, world
        self._majority = scenario.members // 2 + 1
        self._others = [each for each in range(scenario.members) if each != me]
        self._device = disk_of_member(scenario, me, seed)
        self._turns = Draws(scenario.turn, stream(seed, f"turns of member {me}"))
        self._timeouts = stream(seed, f"elections of member {me}")
        self._bell = Bell(env)
        self._inbox: deque[tuple[int, Message]] = deque()
        self._out: list[tuple[int, Message]] = []
        self._life = 0
        self._saves = self._copied = self._synced_bytes = self._last_sync_ns = 0
        self._owes = False
        self._votes: set[int] = set()
        self._next = [1] * scenario.members
        self._matched = [1] * scenario.members
        self._unanswered: dict[int, tuple[int, int]] = {}
        self._pending: deque[tuple[int, int]] = deque()
        self._heartbeat_ns = scenario.heartbeat_ns
        self._election_ns = 0
        self._await_leader()
        self._begin()

    # ---- from outside --------------------------------------------------------------------------------------------

    def deliver(self, source: int, message: Message) -> None:
        """Take a message that has arrived."""
        if self.is_up:
            self._inbox.append((source, message))
            self._bell.ring()

    def wake(self) -> None:
        """Look at the puts that wait."""
        self._bell.ring()

    def note_link(self, other: int) -> None:
        """Forget what was sent to a member that has started again: its new link has lost that."""
        self._unanswered.pop(other, None)

    def kill(self) -> None:
        """End the process. Its page cache stays."""
        self.is_up = False
        self._life += 1
        if self.role == "leader":
            self._give_up()
        self.role = "follower"
        self._inbox.clear()
        self._out.clear()
        self._unanswered.clear()

    def restart(self) -> None:
        """Start the process again; its recovery makes the log durable."""
        self.is_up = True
        self.role, self.leader = "follower", None
        self._owes = False
        self.synced, self.commit, self.verified = len(self.log), 0, 0
        self._saves = self._copied = 0
        self._await_leader()
        self._begin()

    def _begin(self) -> None:
        self._env.process(self._thread(self._life))
        if self._scenario.acknowledge == "received":
            self._env.process(self._flusher(self._life))

    # ---- the thread ----------------------------------------------------------------------------------------------

    def _thread(self, life: int) -> ProcessGenerator:
        env = self._env
        while life == self._life:
            while not self._has_work():
                yield self._bell.wait_until(self._due_ns(), 0)
                if life != self._life:
                    return
            yield env.timeout(self._turns.next())
            if life != self._life:
                return
            for source, message in [self._inbox.popleft() for _ in range(min(len(self._inbox), _MESSAGES_PER_ROUND))]:
                self._receive(source, message)
            self._follow_timers()
            yield from self._spent()
            if life != self._life:
                return
            self._send_out()
            if self.role == "leader":
                self._take_puts()
                yield from self._spent()
                if life != self._life:
                    return
                self._send_out()
            if self._scenario.acknowledge == "durable" and self.synced < len(self.log):
                yield env.timeout(self._sync_ns())
                if life != self._life:
                    return
                self._note_synced(len(self.log))
                self._send_out()
            self._answer_puts()

    def _has_work(self) -> bool:
        puts = self.role == "leader" and self._world.has_puts
        return bool(self._inbox) or puts or now_ns(self._env) >= self._due_ns()

    def _due_ns(self) -> int:
        return self._heartbeat_ns if self.role == "leader" else self._election_ns

    def _spent(self) -> ProcessGenerator:
        """Wait for the copies and for the syncs of the term's file since the last call."""
        took_ns, self._copied = self._copied * self._scenario.device.copy_ns(self._scenario.size_bytes), 0
        for _ in range(self._saves):
            gap_ns = now_ns(self._env) + took_ns - self._last_sync_ns
            sync_ns = self._device.sync_ns(HARD_STATE_BYTES, gap_ns=gap_ns, reserved_only=False)
            took_ns += self._device.held_up_ns(now_ns(self._env) + took_ns, sync_ns)
        if self._saves:
            self._last_sync_ns = now_ns(self._env) + took_ns
        self._saves = 0
        if took_ns:
            yield self._env.timeout(took_ns)

    def _send_out(self) -> None:
        out, self._out = self._out, []
        for to, message in out:
            self._world.send(self.me, to, message, size_of(message, self._scenario.size_bytes))

    # ---- disk ----------------------------------------------------------------------------------------------------

    def _sync_ns(self) -> int:
        """Return how long a sync of all entries takes that begins now."""
        size_bytes = (len(self.log) - self.synced) * self._scenario.size_bytes
        now = now_ns(self._env)
        took_ns = self._device.sync_ns(size_bytes, gap_ns=now - self._last_sync_ns, reserved_only=True)
        took_ns = self._device.held_up_ns(now, took_ns)
        self._last_sync_ns = now + took_ns
        return took_ns

    def _note_synced(self, end: int) -> None:
        self.synced = min(end, len(self.log))
        self._world.note_ends(self.me, len(self.log), self.synced)
        if self.role == "leader":
            self._count()
        elif self._owes and self.leader is not None:
            self._owes = False
            self._out.append((self.leader, Answer(self.term, True, self.verified)))

    def _flusher(self, life: int) -> ProcessGenerator:
        """Sync the log on a clock, whether or not entries were confirmed."""
        phase_ns = int(self._timeouts.random() * self._scenario.flush_ns)
        yield self._env.timeout(phase_ns)
        while life == self._life:
            end = len(self.log)
            if self.synced < end:
                yield self._env.timeout(self._sync_ns())
                if life != self._life:
                    return
                self.synced = max(self.synced, min(end, len(self.log)))
                self._world.note_ends(self.me, len(self.log), self.synced)
            yield self._env.timeout(self._scenario.flush_ns)

    # ---- timers and elections ------------------------------------------------------------------------------------

    def _await_leader(self) -> None:
        low, high = self._scenario.election_min_ns, self._scenario.election_max_ns
        self._election_ns = now_ns(self._env) + low + int(self._timeouts.random() * (high - low))

    def _follow_timers(self) -> None:
        if now_ns(self._env) < self._due_ns():
            return
        if self.role == "leader":
            self._heartbeat_ns = now_ns(self._env) + self._scenario.heartbeat_ns
            self._send_entries(heartbeat=True)
            return
        self._await_leader()
        self._enter(self.term + 1, self.me)
        self._world.note_election(self.term)
        self.role, self._votes = "candidate", {self.me}
        if self._majority == 1:
            self._lead()
        last_term = self.log[-1]
        self._out += [(each, Vote(self.term, last_term, len(self.log))) for each in self._others]

    def _enter(self, term: int, vote: int) -> None:
        """Become a follower of a new term; -1 is no vote."""
        self.term, self.vote = term, vote
        self._saves += 1
        was_leader = self.role == "leader"
        self.role, self.leader = "follower", None
        if was_leader:
            self._give_up()
        self.verified, self._owes = 0, False
        self._unanswered.clear()

    def _give_up(self) -> None:
        """Leave the puts without an answer to the next leader."""
        self._world.give_back([put for _, put in self._pending])
        self._world.note_step_down()
        self._pending.clear()

    def _lead(self) -> None:
        self.role, self.leader = "leader", self.me
        self._next = [len(self.log)] * self._scenario.members
        self._matched = [0] * self._scenario.members
        self.log.append(self.term)
        self._copied += 1
        self._heartbeat_ns = now_ns(self._env) + self._scenario.heartbeat_ns
        self._send_entries()
        self._world.note_leader(self.me, self.term)

    # ---- messages ------------------------------------------------------------------------------------------------

    def _receive(self, source: int, message: Message) -> None:
        if message.term > self.term:
            self._enter(message.term, -1)
        match message:
            case Vote():
                self._consider(source, message)
            case VoteAnswer():
                if self.role == "candidate" and message.granted and message.term == self.term:
                    self._votes.add(source)
                    if len(self._votes) >= self._majority:
                        self._lead()
            case Append():
                self._take_entries(source, message)
            case Answer():
                self._take_answer(source, message)

    def _consider(self, source: int, asked: Vote) -> None:
        is_new = (asked.last_term, asked.end) >= (self.log[-1], len(self.log))
        granted = asked.term == self.term and self.vote in (-1, source) and is_new
        if granted and self.vote == -1:
            self.vote = source
            self._saves += 1
        if granted:
            self._await_leader()
        self._out.append((source, VoteAnswer(self.term, granted)))

    def _take_entries(self, source: int, sent: Append) -> None:
        if sent.term < self.term:
            self._out.append((source, Answer(self.term, False, 0)))
            return
        self.role, self.leader = "follower", source
        self._await_leader()
        end = len(self.log)
        if sent.begin > end or (sent.begin and self.log[sent.begin - 1] != sent.previous_term):
            self._out.append((source, Answer(self.term, False, end if sent.begin > end else sent.begin - 1)))
            return
        for at, term in enumerate(sent.terms):
            place = sent.begin + at
            if place >= len(self.log) or self.log[place] != term:
                del self.log[place:]
                self.synced = min(self.synced, place)
                self.log += sent.terms[at:]
                self._copied += len(sent.terms) - at
                break
        self.verified = max(self.verified, sent.begin + len(sent.terms))
        self.commit = max(self.commit, min(sent.commit, self.verified))
        self._world.note_ends(self.me, len(self.log), self.synced)
        self._owes = self._scenario.acknowledge == "durable" and self.synced < self.verified
        if not self._owes:
            self._out.append((source, Answer(self.term, True, self.verified)))

    def _send_entries(self, *, heartbeat: bool = False) -> None:
        for each in self._others:
            self._send_entries_to(each, heartbeat=heartbeat)

    def _send_entries_to(self, each: int, *, heartbeat: bool = False) -> None:
        """Send what a member lacks, unless it has not answered the last batch."""
        begin, now, scenario = self._next[each], now_ns(self._env), self._scenario
        terms: tuple[int, ...] = ()
        if each not in self._unanswered or now - self._unanswered[each][1] > scenario.election_max_ns:
            terms = tuple(self.log[begin : begin + max(1, scenario.batch_bytes // scenario.size_bytes)])
        if terms:
            self._unanswered[each] = begin + len(terms), now
        if terms or heartbeat:
            previous = self.log[begin - 1] if begin else 0
            self._out.append((each, Append(self.term, begin, previous, terms, self.commit)))

    def _take_answer(self, source: int, answer: Answer) -> None:
        waits_for = self._unanswered.get(source)
        if waits_for is not None and (not answer.matches or answer.end >= waits_for[0]):
            del self._unanswered[source]
        if self.role != "leader" or answer.term != self.term:
            return
        if answer.matches:
            self._matched[source] = max(self._matched[source], answer.end)
            self._next[source] = max(self._next[source], self._matched[source])
            self._count()
            if self._next[source] < len(self.log):
                self._send_entries_to(source)
            return
        self._next[source] = max(0, self._matched[source], min(answer.end, self._next[source] - 1))
        self._send_entries_to(source)

    # ---- puts ----------------------------------------------------------------------------------------------------

    def _take_puts(self) -> None:
        puts = self._world.take(max(1, self._scenario.batch_bytes // self._scenario.size_bytes))
        if not puts:
            return
        begin = len(self.log)
        self._pending.extend((begin + at, put) for at, put in enumerate(puts))
        self.log += [self.term] * len(puts)
        self._copied += len(puts)
        self._send_entries()
        self._world.note_ends(self.me, len(self.log), self.synced)
        if self._scenario.acknowledge == "received":
            self._count()

    def _count(self) -> None:
        """Raise the commit end to what a majority has confirmed."""
        own = self.synced if self._scenario.acknowledge == "durable" else len(self.log)
        ends = sorted([own, *(self._matched[each] for each in self._others)], reverse=True)
        end = ends[self._majority - 1]
        if end > self.commit and self.log[end - 1] == self.term:
            self.commit = end

    def _answer_puts(self) -> None:
        done = []
        while self._pending and self._pending[0][0] < self.commit:
            done.append(self._pending.popleft()[1])
        if done:
            self._world.answer(done, self.commit)
