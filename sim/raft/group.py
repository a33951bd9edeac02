"""Run a Raft group, and return what it did.

Left out are the link of the clients, the discovery of a new leader by the clients, changes of the members, snapshots,
and the transfer of leadership. A put without an answer waits for the next leader.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.sim.distributions import Floats, Int64s
from tornpage.sim.events.bell import Bell, now_ns
from tornpage.sim.pair import Port, Way
from tornpage.sim.raft.member import Member, RaftMember, World
from tornpage.sim.raft.scenario import RaftScenario
from tornpage.sim.streams import stream

__all__ = ["Failover", "MemberKind", "RaftRun", "arrivals_of", "lost_in_group_cut", "lost_in_quorum_cut", "run_raft"]

MemberKind = Callable[[Environment, RaftScenario, int, int, World], Member]
"""Makes a member from its number, the seed, and its world."""
Ends = tuple[tuple[int, int, int], ...]
"""Changes of a member: time, entries in its page cache, entries on its disk."""


@dataclass(frozen=True, slots=True)
class Failover:
    """One kill of a leader."""

    killed_ns: int
    took_ns: int
    """From the kill to the first acknowledged put."""
    failed_elections: int
    """Terms in this time that had a candidate and no leader."""


@dataclass(frozen=True, slots=True)
class RaftRun:
    """What happened in a run."""

    scenario: RaftScenario
    arrived_ns: Int64s
    """When each answered put came, in the order of answers."""
    answered_ns: Int64s
    failovers: tuple[Failover, ...]
    false_elections: int
    """Elections that began while a leader ran."""
    unavailable_ns: int
    """The time from the end of the only leader to the next acknowledged put, summed up."""
    acknowledged: tuple[tuple[int, int], ...]
    """Time, and the end of the acknowledged entries."""
    ends: tuple[Ends, ...]
    retransmits: int

    @property
    def put_ms(self) -> Floats:
        """The time of each put in ms, in ascending order."""
        return np.sort(self.answered_ns - self.arrived_ns) / 1e6

    @property
    def puts_per_s(self) -> float:
        """The rate of acknowledged puts."""
        return len(self.answered_ns) / self.scenario.duration_ns * 1e9

    @property
    def failover_ms(self) -> Floats:
        """The time of each failover in ms, in ascending order."""
        return np.sort(np.array([each.took_ns for each in self.failovers], float)) / 1e6


class _Group:
    """The members, their links and their clients."""

    def __init__(self, env: Environment, scenario: RaftScenario, seed: int, kind: MemberKind) -> None:
        self._env, self._scenario, self._seed = env, scenario, seed
        ports = [Port() for _ in range(scenario.members)]
        self._ways = {
            (source, to): Way(scenario.link, seed, f"{source} to {to}", ports[source])
            for source in range(scenario.members)
            for to in range(scenario.members)
            if source != to
        }
        self.arrivals: list[int] = []
        self.answered: list[tuple[int, int]] = []
        self.acknowledged: list[tuple[int, int]] = []
        self.ends: list[list[tuple[int, int, int]]] = [[(0, 1, 1)] for _ in range(scenario.members)]
        self.failovers: list[Failover] = []
        self.false_elections = self.unavailable_ns = 0
        self._waiting: deque[int] = deque()
        self._candidates: set[int] = set()
        self._led: set[int] = set()
        self._leader: int | None = 0
        self._down_ns: int | None = None
        self._answers = Bell(env)
        self.members: list[Member] = [kind(env, scenario, number, seed, self) for number in range(scenario.members)]
        if scenario.clients:
            for _ in range(scenario.clients):
                self._put()
        else:
            env.process(self._arrivals())
        if scenario.kill_after_ns is not None:
            env.process(self._kills(scenario.kill_after_ns))

    # ---- clients -------------------------------------------------------------------------------------------------

    def _arrivals(self) -> ProcessGenerator:
        for at_ns in arrivals_of(self._scenario, self._seed).tolist():
            yield self._env.timeout(at_ns - now_ns(self._env))
            self._put()

    def _put(self) -> None:
        self._waiting.append(len(self.arrivals))
        self.arrivals.append(now_ns(self._env))
        if self._leader is not None:
            self.members[self._leader].wake()

    @property
    def has_puts(self) -> bool:
        """Whether puts wait for a leader."""
        return bool(self._waiting)

    def take(self, count_max: int) -> list[int]:
        """Return puts that wait, for a leader that appends them at once."""
        return [self._waiting.popleft() for _ in range(min(count_max, len(self._waiting)))]

    def give_back(self, puts: list[int]) -> None:
        """Let puts wait again that a former leader has not answered."""
        self._waiting.extendleft(reversed(puts))

    def answer(self, puts: list[int], end: int) -> None:
        """Take the acknowledgement of puts, the last of which is before `end` in the log."""
        now = now_ns(self._env)
        self.answered += [(self.arrivals[put], now) for put in puts]
        self.acknowledged.append((now, end))
        if self._down_ns is not None:
            self.unavailable_ns += now - self._down_ns
            self._down_ns = None
        self._answers.ring()
        if self._scenario.clients:
            for _ in puts:
                self._put()

    # ---- links and members ---------------------------------------------------------------------------------------

    def send(self, source: int, to: int, message: Any, size_bytes: int) -> None:
        """Send a message over the link of two members."""
        now = now_ns(self._env)
        arrives_ns = self._ways[source, to].send(now, size_bytes)
        event = self._env.timeout(arrives_ns - now)
        assert event.callbacks is not None
        event.callbacks.append(partial(self._deliver, source, to, message))

    def _deliver(self, source: int, to: int, message: Any, _: object) -> None:
        self.members[to].deliver(source, message)

    def note_election(self, term: int) -> None:
        """Notice a candidate of a term."""
        self._candidates.add(term)
        self.false_elections += self._leader is not None

    def note_leader(self, member: int, term: int) -> None:
        """Notice the leader of a term."""
        self._led.add(term)
        self._leader = member

    def note_step_down(self) -> None:
        """Notice that a leader leads no more."""
        self._leader = next((each.me for each in self.members if each.is_up and each.role == "leader"), None)
        if self._leader is None and self._down_ns is None:
            self._down_ns = now_ns(self._env)

    def note_ends(self, member: int, received: int, synced: int) -> None:
        """Notice what a member has in its page cache and on its disk."""
        if self._scenario.kill_after_ns is None:
            self.ends[member].append((now_ns(self._env), received, synced))

    @property
    def retransmits(self) -> int:
        """Lost segments."""
        return sum(way.retransmits for way in self._ways.values())

    # ---- kills ---------------------------------------------------------------------------------------------------

    def _kills(self, mean_ns: int) -> ProcessGenerator:
        """Kill the leader, start it again, wait for a put, and repeat after a pause."""
        pauses, env = stream(self._seed, "kills"), self._env
        while True:
            yield env.timeout(round(mean_ns * (0.5 + pauses.random())))
            yield from self._up()
            killed_ns, leader = now_ns(env), self._leading()
            terms = self._candidates - self._led
            leader.kill()
            back = env.process(self._restarted(leader))
            yield from self._up()
            failed = len(self._candidates - self._led - terms)
            self.failovers.append(Failover(killed_ns, now_ns(env) - killed_ns, failed))
            yield back

    def _leading(self) -> Member:
        assert self._leader is not None
        return self.members[self._leader]

    def _up(self) -> ProcessGenerator:
        """Wait for a leader, and for an acknowledged put since the end of the last one."""
        while self._leader is None or self._down_ns is not None:
            yield self._answers.wait()

    def _restarted(self, member: Member) -> ProcessGenerator:
        yield self._env.timeout(self._scenario.restart_ns)
        member.restart()
        for each in self.members:
            each.note_link(member.me)


def arrivals_of(scenario: RaftScenario, seed: int) -> Int64s:
    """Return the times of the puts of an open load."""
    random = stream(seed, "puts")
    count = int(random.poisson(scenario.rate_per_s * scenario.duration_ns / 1e9))
    return np.sort(random.integers(0, scenario.duration_ns, count, dtype=np.int64))


def run_raft(scenario: RaftScenario, seed: int, *, kind: MemberKind = RaftMember) -> RaftRun:
    """Simulate a group, whose members are of a `kind`. Member 0 leads at the begin."""
    env = Environment()
    group = _Group(env, scenario, seed, kind)
    env.run(until=scenario.duration_ns)
    rows = np.array(group.answered, np.int64).reshape(-1, 2)
    return RaftRun(
        scenario,
        rows[:, 0],
        rows[:, 1],
        tuple(group.failovers),
        group.false_elections,
        group.unavailable_ns,
        tuple(group.acknowledged),
        tuple(map(tuple, group.ends)),
        group.retransmits,
    )


# ---- what a crash loses ----------------------------------------------------------------------------------------------


def lost_in_quorum_cut(run: RaftRun, moments_ns: Int64s) -> Int64s:
    """Return what a power cut of one member and the loss of the leader take, at each moment.

    Counted are acknowledged entries.

    Only the leader and the followers that are furthest make up the quorum; the others have been away. One of these
    followers loses what it has not synced. Then the leader is killed, and the others elect this follower. A group of
    one member loses power.
    """
    acknowledged, received, synced = _at(run, moments_ns)
    if len(received) == 1:
        return np.asarray(np.maximum(acknowledged - synced[0], 0))
    confirmed = synced if run.scenario.acknowledge == "durable" else received
    order = np.argsort(-confirmed[1:], axis=0, kind="stable")
    kept = np.take_along_axis(synced[1:], order, axis=0)[: len(received) // 2].min(axis=0)
    return np.asarray(np.maximum(acknowledged - kept, 0))


def lost_in_group_cut(run: RaftRun, moments_ns: Int64s) -> Int64s:
    """Return how many acknowledged entries a power cut of all members takes at most.

    Any member may be elected whose log is not older than the logs of a majority.
    """
    acknowledged, _, synced = _at(run, moments_ns)
    return np.asarray(np.maximum(acknowledged - np.sort(synced, axis=0)[len(synced) // 2], 0))


def _at(run: RaftRun, moments_ns: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the acknowledged end, and received and synced ends of members, at moments."""
    acknowledged = np.array([(0, 1), *run.acknowledged], np.int64)
    ends = [np.array(each, np.int64) for each in run.ends]
    places = [each[:, 0].searchsorted(moments_ns, side="right") - 1 for each in ends]
    return (
        acknowledged[acknowledged[:, 0].searchsorted(moments_ns, side="right") - 1, 1],
        np.array([each[place, 1] for each, place in zip(ends, places, strict=True)]),
        np.array([each[place, 2] for each, place in zip(ends, places, strict=True)]),
    )
