"""Run the members of a Raft group by their nodes.

A node has timers, links and requests of clients. Strangers connect to it, which are connections that no correct member
makes.

All nodes run in one thread and in virtual time, on recorded disks. A node steps when it is due, when something has
arrived, or when a request woke it, as its thread would step it. After each event of a member the promises of the group
are judged. At the end of a run all links and processes work again. Then the group has to elect, commit, read, hand its
role over, and send nothing but heartbeats while no client asks.
"""

import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from tornpage.impl.raft.application import Application
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import AppendEntries, Envelope, VoteAnswer
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.opening import OpenMember
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings as NodeSettings
from tornpage.impl.raft.store_application import StoreApplication
from tornpage.model.raft.operations import (
    AnswerWrongly,
    BeginRead,
    CloseMember,
    CrashMember,
    CutLinks,
    EndLinks,
    FailSyncOf,
    HealLinks,
    Knock,
    OpenCopy,
    Propose,
    RaftOperation,
    RestartMember,
    RunNodes,
    StopNode,
    Transfer,
)
from tornpage.model.raft.queues import QUEUES
from tornpage.model.raft.state import Entry
from tornpage.properties.cluster.network import REPLICA, RecordedLink, RecordedNetwork
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.journal import FileRenamed, FileSynced
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft.clients import Clients, Now
from tornpage.properties.raft.formats import parts_hold
from tornpage.properties.raft.knocking import ANSWERS, BY_ROLE, KNOCKS, Caller, Visit
from tornpage.properties.raft.links import STRANGER, MemberNetwork, address_of
from tornpage.properties.raft.links_alone import link_programs_hold
from tornpage.properties.raft.logs_alone import log_alone_holds
from tornpage.properties.raft.node_alone import node_program_holds
from tornpage.properties.raft.requests import Requests, Shown
from tornpage.properties.raft.requests_alone import request_programs_hold
from tornpage.properties.raft.small_parts_alone import small_part_programs_hold
from tornpage.properties.raft.store_alone import store_program_holds
from tornpage.properties.raft.stores import MemberStore
from tornpage.properties.raft.translation import sent_of, state_of
from tornpage.properties.raft.trial import INDEX_FILE_BYTES, Node, RaftTrial, require_closed

__all__ = ["NodesTrial", "node_settings"]

_DIRECTORY = "/member"
_BODY_SIZES_BYTES = (64, 64, 300, 64, 900, 64, 1_500)
"""The sizes of the bodies of entries, in turns. The last one is above the limit of `node_settings`."""
_BODY_BYTES_MAX = 1_000
_SMALL_FILE_BYTES = 4_096
_BATCH_BYTES_MAX = 256 << 10
_BUSY_STEPS_MAX = 200
"""Steps of a node without a pause, one each millisecond, beside four for each entry that it may lack."""
_SERVICE_STEPS = 4
_LATE_MS = 250
_SLOW_MS = 60
"""The time between two bytes of a slow connection."""
_STOPPED_MS = 3_000
"""A time for which processes are stopped: longer than an election time-out, and shorter than a link may be silent."""
_HEALED_MS = 20_000
_REST_MS = 3_000
_PING_BYTES, _APPEND_BYTES = 16, 60
"""Bytes of a PING, and of an append without entries: a head of 16 bytes, 5 numbers of 8 and one of 4."""
_FORGED_TERM = 1_000_000
_BURST, _BURST_MS = 3, 100
_BATCH_EVERY = 4
"""Every fourth put of a store is a batch."""
_SAVE_MS = 3_000
_ANSWERS = tuple(ANSWERS)
_KNOCKS = tuple(name for name in KNOCKS if name != "many")
_WRONG = re.compile("refuses|may not come here|checksum|no frame has the kind|states [0-9]+ bytes|version")
"""Reasons for the end of a link that sound members do not have."""


def node_settings(settings: RaftSettings) -> NodeSettings:
    """Return the settings of the nodes of a case."""
    small: dict[str, int] = {}
    if settings.limits == "small":
        small = {
            "connections_max": 2 * settings.members + 1, "pending_max": 4, "pending_bytes_max": 2_000,
            "recent_bytes_max": 300, "unsent_bytes_max": 2_000,
        }  # fmt: skip
    return NodeSettings(
        peers=tuple(map(address_of, range(settings.members))),
        content="messages" if settings.store else "entries",
        batch_bytes_max=min(settings.batch_bytes, _BATCH_BYTES_MAX),
        body_bytes_max=_BODY_BYTES_MAX,
        data_file_bytes=max(settings.data_file_bytes, _SMALL_FILE_BYTES),
        index_file_bytes=INDEX_FILE_BYTES,
        **small,
    )


class _Events:
    """An application whose events are judged one by one."""

    def __init__(
        self,
        inner: Application,
        judged: Callable[[Callable[[], list[Envelope]]], list[Envelope]],
        note_leader: Callable[[], None],
        note_election: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._judged = judged
        self.note_leader = note_leader
        self._note_election = note_election

    @property
    def member(self) -> RaftMember:
        return self._inner.member

    def election_timeout(self) -> list[Envelope]:
        self._note_election()
        return self._judged(self._inner.election_timeout)

    def heartbeat(self) -> list[Envelope]:
        return self._judged(self._inner.heartbeat)

    def sync(self) -> list[Envelope]:
        return self._judged(self._inner.sync)

    def receive(self, source: int, message: Any) -> list[Envelope]:
        sent = self._judged(lambda: self._inner.receive(source, message))
        is_of_leader = isinstance(message, AppendEntries) and self.member.leader == source
        if is_of_leader or any(isinstance(each.message, VoteAnswer) and each.message.granted for each in sent):
            self.note_leader()
        return sent

    def transfer(self, to: int) -> list[Envelope]:
        return self._judged(lambda: self._inner.transfer(to))

    def begin_requests(self, now_ms: int, refusal: Any) -> Sequence[Envelope]:
        return self._judged(lambda: list(self._inner.begin_requests(now_ms, refusal)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Life:
    """One life of a member: its node, its files, its clients.

    `roles` counts the changes of role and term. `broken` is a promise that an event inside a step broke. `leader_ms` is
    the last time at which it led, or its election time-out began again, and `reset_ms` the last time of the latter.
    """

    def __init__(self, application: Any, log: RaftLog, close: Callable[[], None], settings: NodeSettings) -> None:
        self.application = application
        self.log = log
        self.close = close
        self.clients = Clients(settings)
        self.node: RaftNode
        self.requests: Requests
        self.elections = 0
        self.network: MemberNetwork
        self.due_ms = 0
        self.busy = 0
        self.stepped_ms = 0
        self.is_woken = True
        self.roles = 0
        self.has_failing_sync = False
        self.first_link = 0
        self.begun_ms = self.leader_ms = self.reset_ms = 0
        self.entries = 0
        self.answered: set[int] = set()
        self.broken: GuaranteeBroken | None = None


class NodesTrial(RaftTrial):
    """One run of nodes. Raises GuaranteeBroken if a promise does not hold."""

    def __init__(self, settings: RaftSettings, *, tracker: DirtyTracker, certify: bool = True) -> None:
        self.now_ms = 0
        self.cut: set[tuple[int, int]] = set()
        self._network = RecordedNetwork()
        self._lives: dict[int, _Life] = {}
        self._visits: dict[int, list[Visit]] = {}
        self._strange_links: set[RecordedLink] = set()
        self._wrong_answers: list[tuple[int, int, RecordedLink, str]] = []
        self._crowded_until_ms: dict[int, int] = {}
        self._lives_begun = 0
        observed("a reader of parts", parts_hold)
        self.node_settings = node_settings(settings)
        super().__init__(settings, tracker=tracker, certify=certify)
        self._bodies = self._known

    # ---- opening and closing -----------------------------------------------------------------------------------------

    def _open(self, node: Node) -> RaftMember:
        try:
            return self._opened(node)
        except GuaranteeBroken:
            raise
        except Exception as error:
            raise GuaranteeBroken(7, f"a member does not start: {type(error).__name__}: {error}") from error

    def _opened(self, node: Node) -> RaftMember:
        number, settings = node.number, self.node_settings
        life: _Life | None = None

        def wake() -> None:
            if life is not None:
                life.is_woken = True

        application: Any
        if self.settings.store:
            node.store = store = MemberStore(
                number, self.settings, _DIRECTORY, files=node.files, parts=self._parts, clock=self._clock,
                index_file_bytes=INDEX_FILE_BYTES,
                open_store=lambda config, parts: StoreApplication(
                    _DIRECTORY, number, config, settings, files=node.files, clock=self._clock, parts=parts, wake=wake
                ),
            )  # fmt: skip
            application, log, close = store.raft, store.log, store.raft.close
        else:
            files = OpenMember(_DIRECTORY, number, settings, files=node.files, parts=self._parts)
            log, close = files.log, files.close
            recent = RecentEntries(log, settings.recent_bytes_max)
            member = self._parts.of(RaftMember)(
                number, len(self.nodes), recent, files.hard_state, batch_bytes_max=settings.batch_bytes_max
            )
            application = RaftEntries(member, settings, wake)
        life = _Life(application, log, close, settings)
        node.member = application.member
        life.network = MemberNetwork(self._network, number, self.cut)
        self._lives_begun += 1
        life.node = RaftNode(
            _Events(
                application,
                lambda call: self._judge_event(node, call),
                lambda: self._note_leader(node),
                lambda: self._note_election(node),
            ),
            settings,
            network=life.network,
            rng=random.Random(self._lives_begun),
            now_ms=self.now_ms,
            clients=_clients_of(number),
        )
        life.requests = Requests(application, log, life.node, has_store=self.settings.store)
        life.due_ms, life.first_link = self.now_ms, len(self._network.links)
        life.begun_ms = life.leader_ms = life.reset_ms = life.stepped_ms = self.now_ms
        life.entries = len(node.files.journal)
        self._lives[number] = life
        assert node.member is not None
        return node.member

    def _life_of(self, node: Node) -> _Life | None:
        return self._lives.get(node.number) if node.member is not None else None

    def _end(self, node: Node, *, silently: bool) -> None:
        """Forget what ended with the process of a member."""
        self._lives.pop(node.number, None)
        self._forget_visits()
        self._network.drop(node.number, address_of(node.number), silently=silently)

    def _log_of(self, member: RaftMember) -> tuple[Entry, ...]:
        shown = type(member.log)
        if shown is RecentEntries:  # what the files have is judged, not what is in memory
            known = next(life.log for life in self._lives.values() if life.application.member is member)
            return super()._log_of(cast(RaftMember, _WithLog(known)))
        return super()._log_of(member)

    # ---- operations --------------------------------------------------------------------------------------------------

    def run(self, operation: RaftOperation) -> None:
        """Carry out one operation, and judge every member."""
        place = len(self.performed)
        self.performed.append(operation)
        self.hit[operation.op] += 1
        match operation:
            case RunNodes(milliseconds):
                self._pass_time(milliseconds)
            case StopNode(number, milliseconds):
                self._stop_nodes([self._node(number)], milliseconds)
            case HealLinks():
                self.cut.clear()
            case RestartMember(number):
                if self._node(number).member is None:
                    self._restart(self._node(number))
            case CrashMember(number):
                node = self._node(number)
                if node.member is not None:
                    silently = not operation.kill
                    self.performed[place] = self._crash(node, replace(operation, back=0))
                    self._end(node, silently=silently)
            case _:
                node = self._node(getattr(operation, "member", 0))
                life = self._life_of(node)
                if life is not None:
                    self._carry_out(node, life, operation)
                    self._look_at_requests(node)

    def _carry_out(self, node: Node, life: _Life, operation: RaftOperation) -> None:
        """Carry out an operation on a member that runs."""
        match operation:
            case Propose():
                self._ask_append(node, life)
            case BeginRead():
                life.clients.read(life.requests.read(), self._now(node, life))
            case Transfer(_, to):
                life.clients.transfer(life.requests.transfer(to % len(self.nodes)), self._now(node, life))
                life.is_woken = True
            case FailSyncOf():
                node.files.failing_syncs, life.has_failing_sync = 1, True
            case CutLinks(_, way):
                self._forget_visits()
                others = [each for each in range(len(self.nodes)) if each != node.number]
                self.cut |= {(each, node.number) for each in others if way != "out"}
                self.cut |= {(node.number, each) for each in others if way != "in"}
            case EndLinks(_, size_bytes):
                self._forget_visits()
                for link in self._network.links_of(node.number, address_of(node.number)):
                    if not link.is_closed:
                        link.reset(to_master_bytes=size_bytes, to_replica_bytes=size_bytes)
            case CloseMember():
                self._close(node, life)
            case Knock():
                self._knock(node, operation)
            case AnswerWrongly():
                self._answer_wrongly(node, life, operation)
            case OpenCopy():
                self._open_copy(node, operation)

    def _ask_append(self, node: Node, life: _Life) -> None:
        """Let a client put an entry, or a message."""
        self._payloads += 1
        payload = self._payloads
        if node.store is not None:
            if payload % _BATCH_EVERY == 0:
                self._put_batch(node, life, payload)
                return
            found = node.store.put(payload, life.requests.put if payload % 2 else None)
            life.is_woken = True
            if found is None:
                return
            _, answer, body = found
            if body:
                self._known.learn(payload, body)
            elif answer is None:
                raise GuaranteeBroken(8, "a put that was not appended has no answer")
            self._judge_now(node)
            return
        body = (payload.to_bytes(8, "big") * _BODY_BYTES_MAX)[: _size_of(payload)]
        self._known.learn(payload, body)
        life.clients.append(life.requests.append(body), payload, len(body), self._now(node, life))

    def _put_batch(self, node: Node, life: _Life, first: int) -> None:
        """Put one to three messages of a queue as a batch. Each becomes an entry, or none does."""
        assert node.store is not None
        payloads = [first + QUEUES * number for number in range(1 + first // _BATCH_EVERY % 3)]
        self._payloads = payloads[-1]
        answer, bodies = node.store.put_batch(payloads)
        life.is_woken = True
        if (answer is None and not bodies) or (bodies and len(bodies) != len(payloads)):
            raise GuaranteeBroken(8, f"a batch of {len(payloads)} messages has {len(bodies)} entries and {answer}")
        for payload, body in zip(payloads, bodies, strict=False):
            self._known.learn(payload, body)
        self.hit["batch appended"] += bool(bodies)
        self._judge_now(node)

    def _close(self, node: Node, life: _Life) -> None:
        life.node.close(self.now_ms)
        self._raise_broken(life)
        self._judge_clients(node, life, is_over=True)
        try:
            life.close()
        except OSError as error:
            if not life.has_failing_sync:
                raise GuaranteeBroken(8, f"a member does not close: {error}") from error
        except Exception as error:
            raise GuaranteeBroken(8, f"a member does not close: {type(error).__name__}: {error}") from error
        life.node.close(self.now_ms)
        self._judge_left(node, life)
        self._stop(node)
        node.before = node.state
        self.hit["closed"] += 1
        self.hit["stopped by a failed call"] -= 1
        self._end(node, silently=False)

    def _judge_left(self, node: Node, life: _Life) -> None:
        """Contract 8: a member that has ended keeps no file, link or address.

        It does nothing more.
        """
        require_closed(node.files)
        address = address_of(node.number)
        links = life.network.open_links
        if self._network.is_listening(address) or links:
            raise GuaranteeBroken(8, f"member {node.number} has ended, and keeps {links} links or its address")
        events, sent = len(node.files.events), [tuple(map(len, each.sent)) for each in self._network.links]
        due_ms = life.node.step(self.now_ms)
        if not self.now_ms < due_ms <= self.now_ms + _LATE_MS:
            raise GuaranteeBroken(16, f"a member that has ended is due after {due_ms - self.now_ms} ms")
        if events != len(node.files.events) or sent != [tuple(map(len, each.sent)) for each in self._network.links]:
            raise GuaranteeBroken(8, f"member {node.number} has ended, and still writes or sends")

    # ---- time --------------------------------------------------------------------------------------------------------

    def _pass_time(self, milliseconds: int, stopped: Sequence[Node] = ()) -> None:
        """Let time pass for all nodes but those whose processes are stopped."""
        until_ms = self.now_ms + milliseconds
        running = [node for node in self.nodes if node not in stopped]
        while self.now_ms < until_ms:
            lives = [life for life in map(self._life_of, running) if life is not None]
            due = [life.due_ms for life in lives]
            next_ms = self.now_ms + 1 if any(map(_is_ready, lives)) else min(due, default=until_ms)
            self._set_time(min(max(next_ms, self.now_ms + 1), until_ms))
            for node in running:
                life = self._life_of(node)
                if life is not None and (_is_ready(life) or life.due_ms <= self.now_ms):
                    self._step(node, life)
            self._judge_visits()

    def _stop_nodes(self, stopped: Sequence[Node], milliseconds: int) -> None:
        """Stop processes for a time, then let them go on."""
        self._forget_visits()
        for life in filter(None, map(self._life_of, stopped)):
            life.clients.process_was_stopped(milliseconds)
        self._pass_time(milliseconds, stopped)
        self.hit["stopped process"] += any(node.member is not None for node in stopped)

    def _set_time(self, now_ms: int) -> None:
        self._clock.now_ms += now_ms - self.now_ms
        self.now_ms = now_ms

    def _step(self, node: Node, life: _Life) -> None:
        life.is_woken = False
        if self.now_ms - life.stepped_ms > self.node_settings.election_timeout_min:
            life.leader_ms = life.reset_ms = self.now_ms  # the process was stopped, which says nothing about the leader
        life.busy = life.busy + 1 if self.now_ms <= life.stepped_ms + 1 else 1
        life.stepped_ms = self.now_ms
        self.hit["steps"] += 1
        if life.busy > _BUSY_STEPS_MAX + 4 * max(self._payloads, *(each.state.end for each in self.nodes), 0):
            raise GuaranteeBroken(16, f"member {node.number} steps {life.busy} times without a pause")
        life.due_ms = life.node.step(self.now_ms)
        self._raise_broken(life)
        if life.node.failure:
            self._fail(node, life)
            return
        self._judge_now(node)
        self._judge_served(node)
        self._judge_clients(node, life)
        self._judge_timers(node, life)

    def _judge_served(self, node: Node) -> None:
        """Let the services of a store follow an event, and judge what it serves and answers."""
        if node.store is not None:
            for _ in range(_SERVICE_STEPS):  # an event may commit entries of several files
                node.store.step_services()
            self._judge_store(node)

    def _raise_broken(self, life: _Life) -> None:
        if life.broken is not None:
            raise life.broken

    def _fail(self, node: Node, life: _Life) -> None:
        """Take the end of a member by itself. Only a failed sync may cause it."""
        if not life.has_failing_sync or node.files.failing_syncs:
            raise GuaranteeBroken(8, f"member {node.number} ends by itself: {life.node.failure}")
        self._judge_clients(node, life, is_over=True)
        with suppress(OSError):  # a failed member may fail again when it closes its files
            life.close()
        self._judge_left(node, life)
        self._stop(node)
        self._end(node, silently=False)

    # ---- judges ------------------------------------------------------------------------------------------------------

    def _judge_event(self, node: Node, call: Callable[[], list[Envelope]]) -> list[Envelope]:
        """Carry out an event of a member inside a step of its node."""
        life = self._lives.get(node.number)
        if life is None:
            return call()
        node.before = node.state
        try:
            sent = call()
        except OSError:
            node.state = state_of(life.application.member, self._log_of(life.application.member))
            raise
        try:
            self._judge_now(node)
            self._judge_served(node)
            self._last = node.number, self._seen, []
            self._judge_messages(node, sent_of(sent, self._bodies))
        except GuaranteeBroken as error:
            life.broken = life.broken or error
        return sent

    def _judge_now(self, node: Node) -> None:
        """Judge the promises of the group if a member has changed."""
        member, before = node.member, node.state
        assert member is not None
        seen_before = (before.role, before.term, before.commit, before.synced, before.end)
        seen_now = (member.role, member.term, member.commit, member.log.synced, member.log.end)
        if seen_now == seen_before and (before.vote, before.leader) == (member.hard_state.vote, member.leader):
            return
        node.state = after = state_of(member, self._log_of(member))
        node.before = after
        if after.term >= _FORGED_TERM:
            raise GuaranteeBroken(15, f"member {node.number} takes the term of a stranger")
        life = self._lives[node.number]
        life.roles += (after.role, after.term) != (before.role, before.term)
        self.hit["leader elected"] += after.role == "leader" and before.role != "leader"
        self.hit["log cut"] += after.log[: before.end] != before.log
        self.hit["commit raised"] += after.commit > before.commit
        self._look(node, before)

    def _now(self, node: Node, life: _Life, *, is_over: bool = False) -> Now:
        member = node.member
        return Now(
            self.now_ms, self._seen.committed, member is not None and member.role == "leader", life.roles, is_over
        )

    def _shown(self, node: Node, life: _Life) -> Shown:
        return Shown(
            node.state, self._seen.committed, self._bodies.body_of, _clients_of, self.node_settings.peers,
            life.elections, _DIRECTORY,
        )  # fmt: skip

    def _look_at_requests(self, node: Node) -> None:
        """Judge what a member that runs shows to its clients."""
        life = self._life_of(node)
        if life is not None:
            self._judge_now(node)
            life.requests.look(self._shown(node, life))

    def _judge_clients(self, node: Node, life: _Life, *, is_over: bool = False) -> None:
        life.requests.judge(self._shown(node, life))
        if is_over:
            life.requests.judge_ended()
        for word in life.clients.judge(self._now(node, life, is_over=is_over)):
            self.hit[word] += 1
            self.hit["read answered"] += word == "read OK"
        if not self.settings.store and life.application.waiting > self.node_settings.pending_max:
            raise GuaranteeBroken(8, f"{life.application.waiting} appends wait, above pending_max")

    # ---- strangers ---------------------------------------------------------------------------------------------------

    def _knock(self, node: Node, knock: Knock) -> None:
        me, members, greeting = node.number, len(self.nodes), knock.greeting
        other = (me + 1) % members
        if greeting not in KNOCKS or members == 1:
            return
        expected, bytes_of = KNOCKS[greeting]
        data = bytes_of(self._caller(node, other))
        if not data and greeting not in ("silent", "many"):
            return
        if greeting == "many":
            self._visits.pop(me, None)
            self._crowded_until_ms[me] = self.now_ms + self.node_settings.silence_max + _LATE_MS
        is_judged = self.now_ms >= self._crowded_until_ms.get(me, 0)
        sender = STRANGER if greeting == "stranger" else other
        many = self.node_settings.connections_max + 1 if greeting == "many" else 1
        for _ in range(many):
            end = self._network.connect(sender, address_of(me))
            if end is None:
                return
            self._strange_links.add(self._network.links[-1])
            end.send(data)
            if (sender, me) not in self.cut and is_judged:
                role = (node.state.role, node.state.term) if greeting in BY_ROLE else None
                self._visits.setdefault(me, []).append(Visit(greeting, end, expected, self.now_ms, [], role))
        self.hit[f"knock {greeting}"] += 1
        self._pass_time(2)
        life = self._life_of(node)
        links = [] if life is None else self._network.links[life.first_link :]
        links = [each for each in links if each.address == address_of(me)]
        count = sum(not each.is_closed for each in links) - self._network.waiting_at(address_of(me))
        if life is not None and count > self.node_settings.connections_max:
            raise GuaranteeBroken(8, f"member {me} has {count} connections, above connections_max")

    def _caller(self, node: Node, other: int) -> Caller:
        state, settings = node.state, self.node_settings
        longest = max(4_096, 44 + settings.batch_bytes_max + 12 + settings.body_bytes_max)
        return Caller(
            node.number, other, len(self.nodes), settings.group, _clients_of(other), state.log, state.commit,
            state.term, state.leader, longest, settings.data_file_bytes,
        )  # fmt: skip

    def _answer_wrongly(self, node: Node, life: _Life, wrong: AnswerWrongly) -> None:
        """Send a member something wrong on its newest link to another one.

        A stranger on the host of a member has links like those of that member.
        """
        me, to = node.number, wrong.to % len(self.nodes)
        mine = [each for each in self._network.links[life.first_link :] if each.replica == me and not each.is_closed]
        links = [each for each in mine if each not in self._strange_links]
        link = next((each for each in reversed(links) if each.address == address_of(to)), None)
        if link is None or wrong.answer not in ANSWERS or link.forged[REPLICA] is not None:
            return
        reason, data = ANSWERS[wrong.answer]
        link.forge(REPLICA, data)
        life.answered.add(to)
        if (to, me) not in self.cut:
            self._wrong_answers.append((me, to, link, reason))
        self.hit[f"wrong answer {wrong.answer}"] += 1

    def _judge_wrong_answers(self) -> None:
        """Contract 8: a wrong answer ends its link with a reason, once it has arrived."""
        for each in tuple(self._wrong_answers):
            me, to, link, reason = each
            if len(link.arrived[REPLICA]) < len(link.sent[REPLICA]) and not link.is_closed:
                continue
            self._wrong_answers.remove(each)
            row = next(row for row in self._lives[me].node.status()["peers"] if row["member"] == to)
            if link.is_closed and link.waiting[REPLICA]:
                continue  # the link ended before
            if not link.is_closed:
                raise GuaranteeBroken(8, f"member {me} keeps its link to {to} after a wrong answer", reason)
            if reason not in row["finding"] and "has ended the link" not in row["finding"]:
                raise GuaranteeBroken(8, f"member {me} gives another reason for the end of a link", reason, str(row))

    def _forget_visits(self) -> None:
        self._visits.clear()
        self._wrong_answers.clear()

    # ---- timers ------------------------------------------------------------------------------------------------------

    def _note_leader(self, node: Node) -> None:
        life = self._lives.get(node.number)
        if life is not None:
            life.leader_ms = life.reset_ms = self.now_ms

    def _note_election(self, node: Node) -> None:
        """Contract 16: a member waits for its leader before it begins an election.

        A group of one does not wait.
        """
        life = self._lives.get(node.number)
        if life is None:
            return
        waited_ms = self.now_ms - life.reset_ms
        life.elections += 1
        if len(self.nodes) > 1 and waited_ms < self.node_settings.election_timeout_min:
            raise GuaranteeBroken(16, f"member {node.number} begins an election after {waited_ms} ms")
        life.leader_ms = life.reset_ms = self.now_ms

    def _judge_timers(self, node: Node, life: _Life) -> None:
        """Contract 16: a member without a leader begins an election in time.

        It connects to each other member once in `reconnect_interval`.
        """
        settings, number, others = self.node_settings, node.number, len(self.nodes) - 1
        if node.state.role == "leader":
            life.leader_ms = self.now_ms
        waited_ms = self.now_ms - life.leader_ms
        limit_ms = (settings.election_timeout_max if others else 0) + _LATE_MS
        if waited_ms > limit_ms:
            raise GuaranteeBroken(16, f"member {number} begins no election for {waited_ms} ms without a leader")
        lived_ms, attempts = self.now_ms - life.begun_ms, life.network.attempts
        allowed = others * (1 + lived_ms // settings.reconnect_interval)
        if attempts > allowed:
            raise GuaranteeBroken(16, f"member {number} connects {attempts} times in {lived_ms} ms", str(allowed))
        for row in life.node.status()["peers"] if self.settings.limits == "usual" else ():
            is_wrong = row["member"] not in life.answered and _WRONG.search(row["finding"])
            if is_wrong:
                raise GuaranteeBroken(15, f"member {number} ends the link of a sound member: {row['finding']}")

    def _judge_visits(self) -> None:
        self._judge_wrong_answers()
        for each in (each for visits in self._visits.values() for each in visits if each.greeting == "slow"):
            if self.now_ms - (each.fed_ms or [each.since_ms])[-1] >= _SLOW_MS:
                each.fed_ms.append(self.now_ms)
                each.end.send(b"\0")
        silence_ms = self.node_settings.silence_max
        for number, visits in self._visits.items():
            for each in tuple(visits):
                waited_ms, state = self.now_ms - each.since_ms, self.nodes[number].state
                if each.role not in (None, (state.role, state.term)):
                    visits.remove(each)
                    continue
                at_once = each.expected.when == "at once"
                if each.end.is_over:
                    visits.remove(each)
                    arrived = each.end.receive(1 << 20) or b""
                    is_refusal = arrived[:1] == b"\x12"
                    if is_refusal is not each.expected.refused or (not at_once and waited_ms <= silence_ms):
                        raise GuaranteeBroken(
                            8, f"member {number} ends a connection ({each.greeting}) after {waited_ms} ms, "
                            f"{'with' if is_refusal else 'without'} a refusal",
                        )  # fmt: skip
                    if not self._lives[number].node.status()["findings"]:
                        raise GuaranteeBroken(7, f"member {number} names no reason for the end of a connection")
                elif waited_ms > (_LATE_MS if at_once else silence_ms + _LATE_MS):
                    raise GuaranteeBroken(8, f"member {number} keeps a connection ({each.greeting}) for {waited_ms} ms")

    # ---- the end of a run --------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Heal everything.

        The group has to elect, commit and answer within its bound (16), then to rest, then to hand its role over.
        """
        self.cut.clear()
        for node in self.nodes:
            node.files.failing_syncs = 0
            if node.member is None:
                self.run(RestartMember(node.number))
        for life in self._lives.values():
            life.has_failing_sync = False
        self._await("elects a leader with links to all members", self._has_settled)
        leader = self._leader()
        while _size_of(self._payloads + 1) > _BODY_BYTES_MAX:
            self._payloads += 1
        self._ask_append(leader, self._lives[leader.number])
        end = leader.state.end + (not self.settings.store)  # a store appends at once
        self._await("commits an entry at all members", lambda: self._all_have(end))
        leader = self._judge_burst(leader)
        self._judge_status(leader)
        for node in self.nodes:
            self._judge_store(node, is_whole=True)
            self._judge_files(node)
            self._judge_saves(node)
        self._judge_rest()
        self._judge_stop()
        self._copy_at_the_end()
        log_alone_holds(self._number)
        link_programs_hold(self._number)
        node_program_holds(self._number)
        request_programs_hold(self._number)
        small_part_programs_hold(self._number)
        store_program_holds(self._number)
        if len(self.nodes) > 1:
            self._disturb_at_the_end(leader)
            self._judge_hand_over(self._leader())

    def _disturb_at_the_end(self, leader: Node) -> None:
        """Let a stranger connect to a leader, and send it a wrong answer.

        Which ones follows from the run.
        """
        number = self._number
        others = [node.number for node in self.nodes if node is not leader]
        self._answer_wrongly(
            leader,
            self._lives[leader.number],
            AnswerWrongly(leader.number, others[number % len(others)], _ANSWERS[number % len(_ANSWERS)]),
        )
        self._knock(leader, Knock(leader.number, _KNOCKS[number % len(_KNOCKS)]))
        self._pass_time(2 * self.node_settings.reconnect_interval)
        silence_ms = self.node_settings.silence_max + 2 * _LATE_MS
        self._await("ends all wrong connections", lambda: not any(self._visits.values()), silence_ms)
        self._await("settles after wrong bytes", self._has_settled)

    def _judge_burst(self, leader: Node) -> Node:
        """Let clients ask a leader for some entries and reads at once. All are answered soon (16)."""
        life = self._lives[leader.number]
        for _ in range(_BURST):
            while _size_of(self._payloads + 1) > _BODY_BYTES_MAX:
                self._payloads += 1
            self._ask_append(leader, life)
            life.clients.read(life.requests.read(), self._now(leader, life))
        self._await(
            "answers a burst of requests",
            lambda: not life.clients.requests and (leader.store is None or not leader.store.waiting),
            _BURST_MS,
        )
        end = leader.state.end
        self._await("commits a burst at all members", lambda: self._all_have(end))
        return self._leader()

    def _judge_saves(self, node: Node) -> None:
        """Contract 16: a member saves its commit end once in 3 s."""
        life = self._lives[node.number]
        path = f"{self._log_directory(node)}/checkpoint"
        count = sum(
            isinstance(each, FileRenamed) and each.target == path for each in node.files.journal[life.entries :]
        )
        allowed = 2 + (self.now_ms - life.begun_ms) // _SAVE_MS
        if count > allowed:
            raise GuaranteeBroken(16, f"a member saves its commit end {count} times", str(allowed))

    def _log_directory(self, node: Node) -> str:
        return f"{_DIRECTORY}/dledger-n{node.number}"

    @property
    def _data_file_bytes(self) -> int:
        return self.settings.data_file_bytes if self.settings.store else self.node_settings.data_file_bytes

    def _await(self, what: str, holds: Callable[[], bool], limit_ms: int = _HEALED_MS) -> None:
        limit_ms += self.now_ms
        while not holds():
            if self.now_ms >= limit_ms:
                raise GuaranteeBroken(16, f"a healed group never {what}")
            self._pass_time(20)

    def _leader(self) -> Node:
        return max(self.nodes, key=lambda each: (each.state.role == "leader", each.state.term))

    def _has_settled(self) -> bool:
        leader = self._leader()
        rows = [row for life in self._lives.values() for row in life.node.status()["peers"]]
        return (
            leader.state.role == "leader"
            and self._lives[leader.number].application.member.transferee is None
            and self._lives[leader.number].node.refusal is None
            and all(row["sends"] and row["receives"] for row in rows)
            and self._all_have(leader.state.end)
            and not any(life.clients.requests for life in self._lives.values())
        )

    def _all_have(self, end: int) -> bool:
        leader = self._leader().state
        return leader.commit >= end and all(
            (node.state.log, node.state.visible, node.state.term, node.state.leader)
            == (leader.log, leader.end, leader.term, leader.leader)
            for node in self.nodes
        )

    def _judge_status(self, leader: Node) -> None:
        """Judge what operators are shown of a settled group."""
        for node in self.nodes:
            shown, state = self._lives[node.number].node.status(), node.state
            clients = "" if node is leader else _clients_of(leader.number)
            wanted = {
                "member": node.number, "role": state.role, "term": state.term, "leader": leader.number,
                "leader_clients": clients, "end": state.end, "durable_end": state.synced, "commit_end": state.commit,
                "visible_end": state.visible, "failure": "",
            }  # fmt: skip
            found = {name: shown[name] for name in wanted}
            if found != wanted:
                raise GuaranteeBroken(8, "a member shows another state", expected=str(wanted), found=str(found))

    def _judge_rest(self) -> None:
        """Let time pass without a request: heartbeats and pings are sent, and nothing else.

        So many bytes may go over a link: an append and an answer for each heartbeat, a PING each third of the silence.
        """
        self._pass_time(_REST_MS)
        terms = [node.state.term for node in self.nodes]
        links = [(link, tuple(map(len, link.sent))) for link in self._network.links if not link.is_closed]
        syncs, steps = self._syncs(), self.hit["steps"]
        self._pass_time(_REST_MS)
        settings = self.node_settings
        beats, pings = _REST_MS // settings.heartbeat_interval + 1, 3 * _REST_MS // settings.silence_max + 2
        allowed = beats * _APPEND_BYTES + pings * _PING_BYTES
        most = max((len(link.sent[way]) - begun[way] for link, begun in links for way in (0, 1)), default=0)
        if most > allowed:
            raise GuaranteeBroken(16, f"a group at rest sends {most} bytes over a link in {_REST_MS} ms, not {allowed}")
        looks, members = _REST_MS // 100 + 1, len(self.nodes)
        allowed = members * (looks + beats) + 2 * members * (beats + 3 * pings * members)
        if self.hit["steps"] - steps > allowed:
            raise GuaranteeBroken(16, f"a group at rest steps {self.hit['steps'] - steps} times, not {allowed}")
        if [node.state.term for node in self.nodes] != terms:
            raise GuaranteeBroken(16, "a group at rest holds an election")
        saves = 3 * members * (1 + _REST_MS // 3_000) if self.settings.store else 0
        if self._syncs() - syncs > saves:
            raise GuaranteeBroken(16, f"a group at rest syncs {self._syncs() - syncs} times, not {saves}")

    def _judge_stop(self) -> None:
        """Contract 16: a group whose processes were all stopped goes on without an election."""
        terms = [node.state.term for node in self.nodes]
        self._stop_nodes(self.nodes, _STOPPED_MS)
        self._pass_time(2 * self.node_settings.election_timeout_max)
        if [node.state.term for node in self.nodes] != terms:
            raise GuaranteeBroken(16, f"a group that was stopped for {_STOPPED_MS} ms holds an election")
        self._await("settles after a stop", self._has_settled)

    def _syncs(self) -> int:
        return sum(isinstance(entry, FileSynced) for node in self.nodes for entry in node.files.journal)

    def _judge_hand_over(self, leader: Node) -> None:
        """Let a leader give up its role, then close the next one.

        No election time-out may be needed.
        """
        soon_ms = self.node_settings.election_timeout_min - 100
        to = (leader.number + 1) % len(self.nodes)
        self.run(Transfer(leader.number, to))
        self._await("hands the role over", lambda: self.nodes[to].state.role == "leader", soon_ms)
        self._await("settles after a hand-over", self._has_settled)
        self.run(CloseMember(to))
        others = [node for node in self.nodes if node.number != to]
        if len(others) > len(self.nodes) // 2:
            self._await(
                "elects another leader after one has closed",
                lambda: any(node.state.role == "leader" for node in others),
                soon_ms,
            )
        self.run(RestartMember(to))
        self._await("settles after a member has closed", self._has_settled)


class _WithLog:
    """A member with another log."""

    def __init__(self, log: RaftLog) -> None:
        self.log = log


def _size_of(payload: int) -> int:
    """Return the size of the body of an entry."""
    return _BODY_SIZES_BYTES[payload % len(_BODY_SIZES_BYTES)]


def _is_ready(life: _Life) -> bool:
    return life.is_woken or life.network.is_ready


def _clients_of(number: int) -> str:
    return f"127.0.0.1:{2_000 + number}"
