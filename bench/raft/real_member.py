"""A member of `impl/raft` as an actor of a simulated group.

The decisions are those of `impl.raft.member.RaftMember`: elections, conflicts of logs, confirmations and commits.
Clock, disk and links are simulated. The rounds of the thread and the limit of one unanswered batch for each follower
are those of a member that runs as a process.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.raft.member import RaftMember, RaftRole
from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Carried, Envelope, VoteAnswer
from tornpage.properties.raft.memory import MemoryHardState, MemoryLog
from tornpage.sim.events.bell import Bell, now_ns
from tornpage.sim.raft.member import HARD_STATE_BYTES, World, disk_of_member, message_bytes
from tornpage.sim.raft.scenario import RaftScenario
from tornpage.sim.streams import Draws, stream

__all__ = ["RealMember", "UnsupportedPolicy"]


class UnsupportedPolicy(ValueError):
    """The member has no setting for a part of the scenario."""


class _HardState(MemoryHardState):
    """Count what was made durable."""

    def __init__(self, term: int, vote: int | None) -> None:
        super().__init__(term, vote)
        self.saves = 0

    def save(self, term: int, vote: int | None) -> None:
        """Keep a term and a vote."""
        super().save(term, vote)
        self.saves += 1


class _Log(MemoryLog):
    """Count what was appended."""

    appended = 0

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries."""
        super().append(entries)
        self.appended += len(entries)


class RealMember:
    """One member, its disk and its thread. Raises UnsupportedPolicy."""

    def __init__(self, env: Environment, scenario: RaftScenario, me: int, seed: int, world: World) -> None:
        if scenario.acknowledge != "durable":
            raise UnsupportedPolicy("a member confirms durable entries only")
        self.me = me
        self.is_up = True
        self._env, self._scenario, self._world = env, scenario, world
        self._entries_max = max(1, scenario.batch_bytes // scenario.size_bytes)
        self._body = bytes(scenario.size_bytes)
        self._device = disk_of_member(scenario, me, seed)
        self._turns = Draws(scenario.turn, stream(seed, f"turns of member {me}"))
        self._timeouts = stream(seed, f"elections of member {me}")
        self._bell = Bell(env)
        self._inbox: deque[tuple[int, Any]] = deque()
        self._life = self._last_sync_ns = 0
        self._unanswered: dict[int, tuple[int, int]] = {}
        self._pending: deque[tuple[int, int]] = deque()
        self._heartbeat_ns = scenario.heartbeat_ns
        self._election_ns = 0
        self._hard_state = _HardState(1, 0)
        self._member = self._open([Carried(1, b"")])
        self._let_lead()
        self._was: tuple[RaftRole, int] = self._member.role, self._member.term
        self._await_leader()
        env.process(self._thread(self._life))

    def _open(self, rows: list[Carried]) -> RaftMember:
        scenario = self._scenario
        self._log = _Log(rows, len(rows), self._entries_max)
        return RaftMember(self.me, scenario.members, self._log, self._hard_state, batch_bytes_max=scenario.batch_bytes)

    def _let_lead(self) -> None:
        """Begin after the election of member 0 in term 1.

        Its first entry is committed everywhere.
        """
        member, members = self._member, self._scenario.members
        member.leader = 0
        member.commit = member.verified = 1
        if self.me == 0:
            member.role = "leader"
            member.next_begins, member.matched, member.rounds = [1] * members, [1] * members, [0] * members

    @property
    def role(self) -> RaftRole:
        """The role of the member."""
        return self._member.role

    # ---- from outside --------------------------------------------------------------------------------------------

    def deliver(self, source: int, message: Any) -> None:
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
        if self._member.role == "leader":
            self._give_up()
        self._member.role = "follower"
        self._inbox.clear()
        self._unanswered.clear()

    def restart(self) -> None:
        """Start the process again; its recovery makes the log durable."""
        self.is_up = True
        self._member = self._open(self._log.rows)
        self._was = "follower", self._member.term
        self._hard_state.saves = 0
        self._await_leader()
        self._env.process(self._thread(self._life))

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
            out = [
                envelope
                for source, message in [self._inbox.popleft() for _ in range(len(self._inbox))]
                for envelope in self._receive(source, message)
            ]
            out += self._follow_timers()
            yield from self._spent()
            if life != self._life:
                return
            self._send(out)
            if self._member.role == "leader":
                out = self._take_puts()
                yield from self._spent()
                if life != self._life:
                    return
                self._send(out)
            if self._log.synced < self._log.end:
                yield env.timeout(self._sync_ns())
                if life != self._life:
                    return
                self._send(self._filtered(self._member.sync()))
                self._note_ends()
            self._answer_puts()

    def _has_work(self) -> bool:
        puts = self._member.role == "leader" and self._world.has_puts
        return bool(self._inbox) or puts or now_ns(self._env) >= self._due_ns()

    def _due_ns(self) -> int:
        return self._heartbeat_ns if self._member.role == "leader" else self._election_ns

    def _spent(self) -> ProcessGenerator:
        """Wait for the copies of new entries, and for the syncs of the term's file."""
        saves = self._hard_state.saves
        took_ns = self._log.appended * self._scenario.device.copy_ns(self._scenario.size_bytes)
        for _ in range(saves):
            gap_ns = now_ns(self._env) + took_ns - self._last_sync_ns
            sync_ns = self._device.sync_ns(HARD_STATE_BYTES, gap_ns=gap_ns, reserved_only=False)
            took_ns += self._device.held_up_ns(now_ns(self._env) + took_ns, sync_ns)
        if saves:
            self._last_sync_ns = now_ns(self._env) + took_ns
        self._hard_state.saves = self._log.appended = 0
        if took_ns:
            yield self._env.timeout(took_ns)

    def _sync_ns(self) -> int:
        log = self._member.log
        size_bytes = (log.end - log.synced) * self._scenario.size_bytes
        now = now_ns(self._env)
        took_ns = self._device.sync_ns(size_bytes, gap_ns=now - self._last_sync_ns, reserved_only=True)
        took_ns = self._device.held_up_ns(now, took_ns)
        self._last_sync_ns = now + took_ns
        return took_ns

    # ---- messages and timers -------------------------------------------------------------------------------------

    def _receive(self, source: int, message: Any) -> list[Envelope]:
        member = self._member
        sent = member.receive(source, message)
        is_of_leader = isinstance(message, AppendEntries) and member.leader == source
        if is_of_leader or any(isinstance(each.message, VoteAnswer) and each.message.granted for each in sent):
            self._await_leader()
        self._note_role()
        if isinstance(message, AppendAnswer):
            waits_for = self._unanswered.get(source)
            if waits_for is not None and (not message.matches or message.end >= waits_for[0]):
                del self._unanswered[source]
        elif isinstance(message, AppendEntries):
            self._note_ends()
        return self._filtered(sent)

    def _await_leader(self) -> None:
        low, high = self._scenario.election_min_ns, self._scenario.election_max_ns
        self._election_ns = now_ns(self._env) + low + int(self._timeouts.random() * (high - low))

    def _follow_timers(self) -> list[Envelope]:
        if now_ns(self._env) < self._due_ns():
            return []
        if self._member.role == "leader":
            self._heartbeat_ns = now_ns(self._env) + self._scenario.heartbeat_ns
            return self._filtered(self._member.heartbeat(), is_heartbeat=True)
        self._await_leader()
        sent = self._member.election_timeout()
        self._note_role()
        self._world.note_election(self._member.term)
        return self._filtered(sent)

    def _note_role(self) -> None:
        member, was = self._member, self._was
        if (member.role, member.term) == was:
            return
        self._was = member.role, member.term
        if was[0] == "leader":
            self._give_up()
        if member.term != was[1]:
            self._unanswered.clear()
        if member.role == "leader":
            self._heartbeat_ns = now_ns(self._env) + self._scenario.heartbeat_ns
            self._world.note_leader(self.me, member.term)

    def _give_up(self) -> None:
        self._world.give_back([put for _, put in self._pending])
        self._world.note_step_down()
        self._pending.clear()

    def _filtered(self, envelopes: list[Envelope], *, is_heartbeat: bool = False) -> list[Envelope]:
        """Leave out entries for followers that have not answered the last batch."""
        now, kept = now_ns(self._env), []
        for to, message in envelopes:
            sent = message
            if isinstance(sent, AppendEntries):
                if to in self._unanswered and now - self._unanswered[to][1] <= self._scenario.election_max_ns:
                    sent = sent._replace(entries=())
                if sent.entries:
                    self._unanswered[to] = sent.begin + len(sent.entries), now
                elif not is_heartbeat:
                    continue
            kept.append(Envelope(to, sent))
        return kept

    def _send(self, envelopes: list[Envelope]) -> None:
        for to, message in envelopes:
            entries = len(message.entries) if isinstance(message, AppendEntries) else 0
            self._world.send(self.me, to, message, message_bytes(entries, self._scenario.size_bytes))

    def _note_ends(self) -> None:
        self._world.note_ends(self.me, self._log.end, self._log.synced)

    # ---- puts ----------------------------------------------------------------------------------------------------

    def _take_puts(self) -> list[Envelope]:
        puts = self._world.take(self._entries_max)
        if not puts:
            return []
        begin = self._log.end
        self._pending.extend((begin + at, put) for at, put in enumerate(puts))
        sent = self._member.propose([self._body] * len(puts))
        assert sent is not None
        self._note_ends()
        return self._filtered(sent)

    def _answer_puts(self) -> None:
        done = []
        while self._pending and self._pending[0][0] < self._member.commit:
            done.append(self._pending.popleft()[1])
        if done:
            self._world.answer(done, self._member.commit)
