"""Run operations of a cluster, and compare every node with the model (contract 15).

The model gives a set of legal states after each operation. What the nodes are seen to have picks among them. Nothing is
taken over from a node but its promises: the flushed offset, and the answers of puts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.model.replication import step as model
from tornpage.model.replication.operations import (
    AdvanceTime,
    AskNode,
    CallNode,
    ChangeRoles,
    CleanNode,
    CloseNode,
    ClusterOperation,
    CrashNode,
    FailCopy,
    FailFile,
    FailSyncOn,
    FlipBit,
    FlushNode,
    ForgeFrame,
    HealLink,
    LimitLink,
    PutOn,
    ResetLink,
    RestartNode,
    RunAll,
    SetNodeClock,
    StepNode,
)
from tornpage.model.replication.state import Replicated
from tornpage.properties.cluster import judge
from tornpage.properties.cluster.forging import CALLERS, FORGED
from tornpage.properties.cluster.formats import parts_hold
from tornpage.properties.cluster.network import MASTER, REPLICA, RecordedLink, RecordedNetwork
from tornpage.properties.cluster.nodes import (
    SLAVE_TIMEOUT_MS,
    ClusterClock,
    ClusterDisk,
    Node,
    OpenPut,
    address_of,
    message_of,
)
from tornpage.properties.cluster.served import ask_node, put_served
from tornpage.properties.cluster.traffic import Traffic
from tornpage.properties.cluster.wire import FrameScan
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.crashing import in_flight_at, killed_journal, lose_power
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.planted.registry import parts_of
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["ClusterTrial"]

_RUNS_MAX = 40
_ROUND_MS = 1_000
_DRAIN_ROUNDS = 200
_FRAMES = tuple(name for name in FORGED if name != "head")
_CALLERS = tuple(CALLERS)
_PUT_ROUNDS, _PUT_ROUND_MS = 60, 2


@dataclass(slots=True)
class _SeenLink:
    """How much of a link the lab has looked at."""

    link: RecordedLink
    acknowledgements: int = 0
    to_replica: FrameScan = field(default_factory=FrameScan)
    to_master: FrameScan = field(default_factory=FrameScan)


class ClusterTrial:
    """One run. Raises GuaranteeBroken if a promise does not hold.

    `performed` are the operations as carried out, `hit` counts operations and effects, `lost_writes` the in-flight
    writes that power losses took.
    """

    def __init__(self, settings: ClusterSettings, *, tracker: DirtyTracker, certify: bool = True) -> None:
        observed("a reader of parts", parts_hold)
        self.settings = settings
        self.performed: list[ClusterOperation] = []
        self.hit: Counter[str] = Counter()
        self.lost_writes = 0
        self.clock = ClusterClock()
        self.network = RecordedNetwork()
        self._tracker = tracker
        self._certify = certify
        parts = parts_of(settings.bug)
        self.nodes = [
            Node(number, settings, network=self.network, clock=self.clock, parts=parts, tracker=tracker)
            for number in range(settings.nodes)
        ]
        self._traffic = Traffic(self.network, self.clock, settings)
        self._identities = 0
        self._states = [model.initial(settings.nodes)]
        self._before = [self._states] * settings.nodes
        self._bytes: dict[int, bytes] = {}
        self._held: defaultdict[int, set[int]] = defaultdict(set)
        self._synced: defaultdict[int, set[int]] = defaultdict(set)
        self._records: dict[int, PutOn] = {}
        self._links: dict[int, _SeenLink] = {}
        self._confirming: set[int] = set()
        self._connected = set(range(settings.nodes))
        for node in self.nodes:
            self._restart(node)

    # ---- operations ----------------------------------------------------------------------------------------------

    def run(self, operation: ClusterOperation) -> None:
        """Carry out one operation and judge every node."""
        place = len(self.performed)
        self.performed.append(operation)
        match operation:
            case PutOn(node):
                self._on(node, lambda each: self._put(each, operation))
            case AskNode(node):
                self._on(node, lambda each: ask_node(each, operation))
            case StepNode(node):
                self._on(node, self._step)
            case RunAll(rounds):
                self._run_all(min(rounds, _RUNS_MAX))
            case FlushNode(node):
                self._on(node, self._flush)
            case AdvanceTime(by_ms):
                self.clock.now_ms += max(0, by_ms)
            case SetNodeClock(node, by_ms):
                self.nodes[node % len(self.nodes)].clock_ahead_ms += by_ms
            case FailFile(node):
                self._on(node, self._fail_file)
            case FailCopy(node):
                self._on(node, self._fail_copy)
            case FailSyncOn(node):
                self._on(node, lambda each: self._fail_sync(each, operation))
            case CallNode(node):
                self._on(node, lambda each: self._call(each, operation))
            case CleanNode(node):
                self._on(node, self._clean)
            case LimitLink() | HealLink() | ResetLink() | FlipBit() | ForgeFrame():
                self._change_link(operation)
            case CrashNode(node):
                if self._node(node).is_up:
                    self.performed[place] = self._crash(self._node(node), operation)
            case RestartNode(node):
                if not self._node(node).is_up:
                    self._restart(self._node(node))
            case CloseNode(node):
                self._on(node, self._close)
            case ChangeRoles(master, drained):
                self._change_roles(master % len(self.nodes), drained=drained)
        self.hit[operation.op] += 1

    def _node(self, number: int) -> Node:
        return self.nodes[number % len(self.nodes)]

    def _on(self, number: int, act: Callable[[Node], object]) -> None:
        node = self._node(number)
        if node.is_up:
            act(node)

    # ---- clients -------------------------------------------------------------------------------------------------

    def _put(self, node: Node, put: PutOn) -> None:
        self._begin(node)
        before, asks = node.end, node.acknowledged is not None
        by_call = partial(observed, "put", lambda: node.store.put_async(message_of(put)))
        answer: Future[PutResult] = put_served(node, put) if put.served else by_call()
        end = node.end
        if node.role == "slave":
            if not answer.done() or answer.result().status is not PutStatus.SERVICE_NOT_AVAILABLE or end != before:
                raise GuaranteeBroken(8, "a slave accepts a put", "SERVICE_NOT_AVAILABLE", str(answer))
            return
        if end > before:
            self._identities += 1
            is_stored = not answer.done() or answer.result().stored
            self._grow(node, put, before, end, is_stored=is_stored)
            if is_stored:
                node.puts.append(OpenPut(answer, end, self._identities, self.clock.now_ms, waits=True, asks=asks))
        self._look(node)

    def _grow(self, node: Node, put: PutOn, before: int, end: int, *, is_stored: bool) -> None:
        """Append what a put has appended: a record, the end of a file, or both."""
        file_bytes, identity = self.settings.file_bytes, self._identities
        begin = max(before, (end - 1) // file_bytes * file_bytes) if is_stored else end
        if begin > before:
            self._bytes[-identity] = judge.log_bytes(node, before, begin, file_bytes)
        if not is_stored:
            self._states = [model.end_file(each, node.number, end=end, identity=identity) for each in self._states]
            return
        self._records[identity] = put
        self._bytes[identity] = judge.log_bytes(node, begin, end, file_bytes)
        self._states = [model.put(each, node.number, begin=begin, end=end, identity=identity) for each in self._states]

    def _look_at_puts(self, node: Node, *, is_over: bool = False) -> None:
        """Judge the answers that have come (b), and requests past their deadline (e)."""
        left = []
        for put in node.puts:
            if not put.answer.done():
                left.append(put)
                continue
            status = put.answer.result().status
            self.hit[f"answered {status.name}"] += 1
            judge.answer_is_due(put, status, node, self.clock.now_ms, is_over=is_over)
            if status is PutStatus.PUT_OK:
                judge.confirmed_put_is_held(
                    self._synced if self.settings.acknowledge == "durable" else self._held,
                    put.identity,
                    master=node.number,
                    quorum=self.settings.quorum,
                )
        node.puts = left

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _run_all(self, rounds: int) -> None:
        for _ in range(rounds):
            for node in self.nodes:
                if node.is_up:
                    self._step(node)
            self.clock.now_ms += 1

    def _step(self, node: Node) -> None:
        """Let a node do one round, and find its state among the legal ones."""
        self._begin(node)
        end = node.end
        connected = {
            link.replica
            for link in self.network.links
            if link.address == address_of(node.number) and (not link.is_closed or link.waiting[MASTER])
        }
        traffic = self._traffic.before(node)
        observed("step", node.step)
        self._traffic.after(node, traffic)
        self.hit["log cut"] += node.end < end
        if node.role == "master":
            self._connected = connected
        judge.no_put_is_overdue(node.puts, self.clock.now_ms)
        states: Iterable[Replicated] = self._states
        if node.role == "master":
            states = [self._sent_by(each, node.number) for each in states]
        else:
            states = self._after_step_of_slave(list(states), node)
        self._states = list(states)
        self._look(node)
        if node.role == "master":
            judge.confirmed_put_is_answered(node, node.acknowledged, syncs=self.settings.master_syncs)

    def _sent_by(self, state: Replicated, master: int) -> Replicated:
        for replica, wire in enumerate(state.wires):
            if wire is not None and wire.master == master:
                state = model.send(state, replica)
        return state

    def _after_step_of_slave(self, states: list[Replicated], node: Node) -> Iterator[Replicated]:
        link, number = self._newest_link(node.number), node.number
        discards = self.settings.discard_when_gone
        if number in self._links:
            states = self._arrived(states, number)
        if link is not None and (number not in self._links or self._links[number].link is not link):
            # a cut opens the store again, and a new link may have begun in the same round
            cut = (after for each in states for after in model.cut(each, number, discards=discards))
            states = [*states, *cut]
            self._links[number] = _SeenLink(link)
            master = int(link.address.removeprefix("node-").partition(":")[0])
            states = [model.connect(each, number, master) for each in states]
            states = self._arrived(states, number)
        for state in states:
            yield state
            yield from model.receive(state, number)
            yield from model.cut(state, number, discards=discards)
            for joined in model.join(state, number):
                yield joined
                yield from model.receive(joined, number)

    def _arrived(self, states: list[Replicated], number: int) -> list[Replicated]:
        """Return the states after what has arrived on the link of a slave that the lab looks at."""
        seen = self._links[number]
        scan = seen.to_replica
        scan.read(seen.link.arrived[REPLICA], seen.link.forged[REPLICA])
        return [model.arrive(each, number, scan.data_end, is_answered=scan.is_answered) for each in states]

    def _newest_link(self, replica: int) -> RecordedLink | None:
        return next((link for link in reversed(self.network.links) if link.replica == replica), None)

    def _flush(self, node: Node) -> None:
        self._begin(node)
        observed("flush", node.store.flush)
        self._look(node)

    def _fail_file(self, node: Node) -> None:
        node.files.failing_allocations += 1
        node.files.allocation_code = 28

    def _fail_copy(self, node: Node) -> None:
        node.copies_to_fail += 1

    def _fail_sync(self, node: Node, failure: FailSyncOn) -> None:
        if failure.file == "generations":
            node.files.failing_generations = 1
        else:
            node.files.failing_syncs += 1

    def _call(self, node: Node, call: CallNode) -> None:
        self.hit["connection of no replica"] += self._traffic.call(node, replace(call, node=node.number))

    def _clean(self, node: Node) -> None:
        self._begin(node)
        begin, file_bytes = node.begin, self.settings.file_bytes
        observed("clean", node.clean)
        self.hit["log files deleted"] += node.begin > begin
        self._states = [
            after for each in self._states for after in model.clean(each, node.number, file_bytes=file_bytes)
        ]
        self._look(node)

    # ---- links ---------------------------------------------------------------------------------------------------

    def _change_link(self, operation: LimitLink | HealLink | ResetLink | FlipBit | ForgeFrame) -> None:
        replica = operation.replica % len(self.nodes)
        link = self._newest_link(replica)
        if link is None:
            return
        match operation:
            case LimitLink(_, to_master, size_bytes):
                link.room[MASTER if to_master else REPLICA] = max(0, size_bytes)
            case HealLink():
                for each in self.network.links:
                    if each.replica == replica:
                        each.room[:] = [None, None]
            case ResetLink(_, to_master_bytes, to_replica_bytes):
                if not link.is_closed:
                    self.hit["bytes lost by a reset"] += any(link.waiting)
                    link.reset(to_master_bytes=max(0, to_master_bytes), to_replica_bytes=max(0, to_replica_bytes))
            case ForgeFrame(_, to_master):
                if not link.is_closed and FORGED[operation.frame][0] in ("both", "master" if to_master else "replica"):
                    self._traffic.forge(link, operation, self.nodes[replica].end if self.nodes[replica].is_up else 0)
                    self.hit["frame forged"] += 1
            case FlipBit(_, to_master, bit):
                waiting = link.waiting[MASTER if to_master else REPLICA]
                if waiting:
                    at = bit % (8 * len(waiting))
                    waiting[at // 8] ^= 1 << at % 8
                    self._traffic.disturb()
                    self.hit["bit flipped"] += 1

    def waiting_bytes(self, flip: FlipBit) -> int:
        """Return how many bytes are under way where a bit is to be flipped."""
        link = self._newest_link(flip.replica % len(self.nodes))
        return 0 if link is None else len(link.waiting[MASTER if flip.to_master else REPLICA])

    # ---- nodes that go and come ----------------------------------------------------------------------------------

    def _crash(self, node: Node, crash: CrashNode) -> CrashNode:
        """Lose a node at a crash point of its last operation; return the crash as it was."""
        files = node.files
        event = self._crash_point(node, crash.back)
        back = len(files.events) - event if event else 0
        position = files.events[event - 1] if back else len(files.journal)
        for link in self.network.links_of(node.number, address_of(node.number)):
            if back and not link.is_closed:
                link.withdraw(MASTER if link.replica == node.number else REPLICA, event)
        self.network.drop(node.number, address_of(node.number), silently=crash.silent)
        loss: Literal["power", "kill"] = "kill" if crash.kill else "power"
        copies = {each.copies[node.number] for each in self._before[node.number]} if back else {None}
        self._states = list(
            dict.fromkeys(
                left
                for state in self._states
                for before in copies
                for left in model.crash(state, node.number, loss, file_bytes=self.settings.file_bytes, before=before)
            )
        )
        node.die()
        self.hit["silent"] += crash.silent
        self.hit[loss] += 1
        if crash.kill:
            journal = killed_journal(files, position)
            node.use_disk(ClusterDisk(files.base, tracker=self._tracker, journal=journal))
            return replace(crash, back=back, survived={}, others="lost")
        lost = lose_power(files, position, crash.survived, crash.others, disk=self.settings.disk, certify=self._certify)
        self.lost_writes += lost.lost_writes
        self.hit["writes lost"] += lost.lost_writes > 0
        node.use_disk(ClusterDisk(lost.image, tracker=self._tracker))
        return replace(crash, back=back, survived=lost.survived)

    def _crash_point(self, node: Node, back: int) -> int:
        """Return the number of events before the crash, 0 for a crash at rest.

        Bytes that another node has taken were sent before the crash.
        """
        if back <= 0:
            return 0
        least = node.last_event
        for link in self.network.links_of(node.number, address_of(node.number)):
            least = max(least, link.taken_event(MASTER if link.replica == node.number else REPLICA))
        return max(least, len(node.files.events) - back, 1) if least < len(node.files.events) else 0

    def in_flight(self, node: int, back: int) -> list[InFlightWrite]:
        """Return the in-flight writes of a node at a crash point of its last operation."""
        each = self._node(node)
        event = self._crash_point(each, back)
        position = each.files.events[event - 1] if event else len(each.files.journal)
        return in_flight_at(each.files, position, disk=self.settings.disk)

    def events_of(self, node: int) -> int:
        """Return the number of crash points of the last operation of a node."""
        each = self._node(node)
        return len(each.files.events) - each.last_event

    def _restart(self, node: Node) -> None:
        node.last_event = len(node.files.events)
        node.files.failing_syncs = 0
        if not self._open(node):
            return
        self._traffic.opened(node)
        self._identities += 1
        self._states = [model.open_as(each, node.number, node.role, identity=self._identities) for each in self._states]
        self._look(node, is_open=True)
        judge.nothing_past_the_end(node, self.settings.file_bytes)

    def _open(self, node: Node) -> bool:
        """Open a node, and return whether it is open.

        A failed sync of its generations ends the opening.
        """
        fails = node.files.failing_generations
        try:
            node.open()
        except GuaranteeBroken:
            raise
        except Exception as error:
            if node.files.failing_generations < fails and isinstance(error, OSError):
                node.die()
                self.hit["opening failed"] += 1
                return False
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
        if node.store.read_only_reason is not None:
            raise GuaranteeBroken(7, f"the store opens read-only: {node.store.read_only_reason}")
        return True

    def _close(self, node: Node) -> None:
        self._begin(node)
        assert node.replicated is not None
        failed = node.files.failed_syncs
        observed("close", node.replicated.close)
        is_synced = failed == node.files.failed_syncs and node.store.read_only_reason is None
        judge.all_puts_are_answered(node.puts)
        self._look_at_puts(node, is_over=True)
        self._states = [model.shut(each, node.number, synced=is_synced) for each in self._states]
        judge.nothing_is_left(node, self.network, self._traffic.first_link(node))
        node.die()
        if is_synced and not self.hit["fail_file"]:
            judge.exit_is_clean(node)

    def _change_roles(self, master: int, *, drained: bool) -> None:
        """Change all roles by hand; nodes that are down change when they restart."""
        old = next((node for node in self.nodes if node.role == "master" and node.is_up), None)
        if drained and old is not None and old.number != master:
            self._drain(old)
        for node in sorted(self.nodes, key=lambda each: each.number == master):
            before, node.master = node.role, master
            node.role = "master" if node.number == master else "slave"
            if node.is_up and before == node.role == "slave":
                assert node.replicated is not None
                node.replicated.follow(address_of(master))
                self._traffic.follows(node)
            elif node.is_up and before != node.role:
                self._close(node)
                self._restart(node)

    def _drain(self, old: Node) -> None:
        assert old.replicated is not None
        for _ in range(_DRAIN_ROUNDS):
            if not old.replicated.drain():
                break
            self._run_all(1)

    # ---- what is seen --------------------------------------------------------------------------------------------

    def _begin(self, node: Node) -> None:
        """Begin an operation in which a crash of the node may fall."""
        node.last_event = len(node.files.events)
        self._before[node.number] = list(self._states)

    def _look(self, node: Node, *, is_open: bool = False) -> None:
        """Compare a node with the legal states, and judge what it has said."""
        node.files.mark("returned")
        seen = [(each.begin, each.end) if each is node else None for each in self.nodes]
        legal = model.accepted(self._states, tuple(seen))
        if not legal:
            judge.end_is_not_legal(node, self._states, is_open=is_open)
        held = [each for each in legal if judge.holds(node, each.copies[node.number], self._bytes, self.settings)]
        if not held:
            judge.content_differs(node, legal[0].copies[node.number], self._bytes, self.settings)
        flushed = node.store.flushed_offset
        self._states = [model.flush(each, node.number, flushed) for each in held]
        for entry in self._states[0].copies[node.number].kept:
            self._held[entry.identity].add(node.number)
            if entry.end <= flushed:
                self._synced[entry.identity].add(node.number)
        self._look_at_acknowledgements(node)
        self._look_at_puts(node)

    def _look_at_acknowledgements(self, node: Node) -> None:
        """Judge what a replica has acknowledged (f), and what its master counts."""
        seen = self._links.get(node.number)
        if seen is not None and node.role == "slave":
            seen.to_master.read(seen.link.sent[MASTER], seen.link.forged[MASTER])
            sent = seen.to_master.acknowledgements
            for received, durable in sent[seen.acknowledgements :]:
                judge.acknowledged_is_there(node, received, durable)
                self._confirming.add(node.number)
            seen.acknowledgements = len(sent)
        if node.role == "master" and node.replicated is not None:
            replicas = (self._confirming & self._connected) - {node.number}
            judge.counted_is_acknowledged(_acknowledged(node.replicated), len(replicas), self.settings.quorum)

    # ---- the end of a run ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Heal everything, restart every node, and judge that all copies become equal (c, d, e)."""
        for link in self.network.links:
            link.room[:] = [None, None]
        for node in self.nodes:
            node.files.failing_allocations = node.files.failing_syncs = node.copies_to_fail = 0
            node.files.failing_generations = 0
            if node.is_up and node.store.read_only_reason is not None:
                self._close(node)
            if not node.is_up:
                self._restart(node)
        master = next(node for node in self.nodes if node.role == "master")
        if self.settings.send_flushed_only:
            self._flush(master)  # a failed put leaves the end of a file, which no later put makes durable
        for _ in range(_RUNS_MAX):
            self.clock.now_ms += _ROUND_MS
            for _ in range(4):
                for node in self.nodes:
                    self._step(node)
            if self._has_settled(master):
                break
        judge.no_put_is_overdue(master.puts, self.clock.now_ms)
        strange, gone = self._strange(master), self._gone(master)
        self.hit["no common generation"] += bool(strange)
        self.hit["bytes gone"] += bool(gone)
        judge.gone_is_stated(gone)
        judge.refusal_is_stated(strange)
        able = [each for each in self.nodes if each not in strange and each not in gone]
        judge.copies_are_equal(master, able, self.settings.file_bytes)
        if len(able) > self.settings.quorum:
            self._put_at_the_end(master, able)
        log = self._states[0].copies[master.number].log
        records = [(entry, self._records[entry.identity]) for entry in log if entry.identity > 0]
        for node in able:
            judge.queues_and_keys_hold_the_log(node, records)

    def _put_at_the_end(self, master: Node, able: list[Node]) -> None:
        """Put a message to a healed cluster.

        It has to be confirmed in time, and to reach all copies.
        """
        self._disturb_at_the_end(master, able)
        self._run_until(
            lambda: master.acknowledged is not None and not self._traffic.has_forged_bytes, _RUNS_MAX, _ROUND_MS
        )
        confirmed = self.hit["answered PUT_OK"]
        self._put(master, PutOn(body_bytes=40))
        self._run_until(lambda: not master.puts, _PUT_ROUNDS, _PUT_ROUND_MS, flushed=able)
        if self.hit["answered PUT_OK"] == confirmed:
            raise GuaranteeBroken(16, f"a healed cluster does not confirm a put in {_PUT_ROUNDS * _PUT_ROUND_MS} ms")
        self._run_until(lambda: self._have_all(master, able), _RUNS_MAX, _ROUND_MS, flushed=able)
        judge.copies_are_equal(master, able, self.settings.file_bytes)
        self._run_until(lambda: not self._traffic.has_visits, 2 * _RUNS_MAX, _ROUND_MS)

    def _disturb_at_the_end(self, master: Node, able: list[Node]) -> None:
        """Send a healed cluster a wrong frame, and let no replica connect to its master.

        Which ones follows from the run.
        """
        number = 7 * len(self.performed) + self._identities
        frame, caller = _FRAMES[number % len(_FRAMES)], _CALLERS[number % len(_CALLERS)]
        replica = next(node.number for node in able if node is not master)
        self._run_until(lambda: master.acknowledged is not None, _RUNS_MAX, _ROUND_MS)
        self._change_link(ForgeFrame(replica, FORGED[frame][0] == "master", 0, frame))
        self._call(master, CallNode(master.number, caller))
        for _ in range(2):
            for node in self.nodes:
                self._step(node)

    def _run_until(
        self, holds: Callable[[], bool], rounds: int, round_ms: int, *, flushed: Sequence[Node] = ()
    ) -> None:
        """Step all nodes until something holds, or for some rounds.

        Some nodes are flushed in each round.
        """
        for _ in range(rounds):
            if holds():
                return
            for node in self.nodes:
                self._step(node)
            for node in flushed:
                self._flush(node)
            self.clock.now_ms += round_ms

    @staticmethod
    def _have_all(master: Node, able: Sequence[Node]) -> bool:
        return all(node.end == master.end and not node.store.dispatch_behind_bytes for node in able)

    def _strange(self, master: Node) -> list[Node]:
        """Return the nodes without a generation in common with the master.

        If the legal states differ in that, a node is one of them if its master refuses it.
        """
        return [each for each in self.nodes if self._is_strange(each, master)]

    def _is_strange(self, node: Node, master: Node) -> bool:
        may_join = {model.may_join(each, node.number, master.number) for each in self._states}
        return False in may_join and (True not in may_join or judge.states_a_refusal(node))

    def _gone(self, master: Node) -> list[Node]:
        """Return the nodes that need bytes which the master has removed, and that keep their logs."""
        if self.settings.discard_when_gone:
            return []
        of = master.number
        return [each for each in self.nodes if any(model.is_gone(s, each.number, of) for s in self._states)]

    def _has_settled(self, master: Node) -> bool:
        """Return whether nothing is left to do on any node."""
        strange, gone, copies = self._strange(master), self._gone(master), self._states[0].copies
        return not master.puts and all(
            judge.states_a_refusal(node)
            if node in strange
            else judge.states_a_finding(node)
            if node in gone
            else not node.store.dispatch_behind_bytes
            and (
                copies[node.number].log == copies[master.number].log
                or not (copies[node.number].kept or copies[master.number].kept)
            )
            for node in self.nodes
        )


def _acknowledged(replicated: ReplicatedStore) -> int | None:
    offset: int | None = replicated.status()["acknowledged_offset"]
    return offset


assert SLAVE_TIMEOUT_MS < _ROUND_MS * _RUNS_MAX
