"""Run events of a Raft group on recorded disks, and judge every member.

Contracts 15, 16 and 17 are judged. With stores the contracts of `properties.raft.stores` are judged as well.

Each member of the store takes the same events as its model, and both have to agree. After a crash the term, the vote
and the log that a member reads from its disk have to be legal. What they are is taken over, since a crash has many
legal outcomes. The promises of the group are judged over the states of all members.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from tornpage.impl.errors import StoreError
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Carried, Envelope
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.model.raft import member as model
from tornpage.model.raft import promises
from tornpage.model.raft.operations import (
    Beat,
    BeginRead,
    CopyChange,
    CrashMember,
    Deliver,
    Elect,
    FailSyncOf,
    OpenCopy,
    Propose,
    RaftOperation,
    RestartMember,
    SaveCommitEnd,
    SyncLog,
    TimeOutPuts,
    Transfer,
)
from tornpage.model.raft.promises import Seen
from tornpage.model.raft.state import Entry, Member, Message
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import chosen, fitted
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.images import InFlightWrite, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import ProcessKilled
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.planted.registry import parts_of
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft.copies import Copied, files_differ, open_copy
from tornpage.properties.raft.files import laid_out
from tornpage.properties.raft.logs_alone import log_alone_holds
from tornpage.properties.raft.stores import PUT_TIMEOUT_MS, LabClock, MemberStore, StoreJudge
from tornpage.properties.raft.translation import (
    PLAIN_BODIES,
    Bodies,
    KnownBodies,
    entry_of,
    message_of,
    sent_of,
    state_of,
)

__all__ = ["INDEX_FILE_BYTES", "Key", "Node", "RaftTrial", "require", "require_closed", "require_legal"]

_DIRECTORY = "/member"
INDEX_FILE_BYTES = 1 << 12
_KEPT_MESSAGES = 4
_ROUNDS_OF_AN_END = 60
_CHANGES: tuple[CopyChange, ...] = get_args(CopyChange)

Key = tuple[int, int, str]
"""Source, receiver and kind of a message."""


@dataclass(slots=True)
class Node:
    """One member: its disk, and the member if it runs, with its store if it has one.

    `state` is the model's, `before` that before its last event.
    """

    number: int
    files: RecordingFiles
    state: Member = field(default_factory=Member)
    before: Member = field(default_factory=Member)
    last_event: int = 0
    member: RaftMember | None = None
    store: MemberStore | None = None
    reads: deque[int] = field(default_factory=deque)
    """How many entries were acknowledged when each waiting read began."""

    @property
    def events(self) -> Any:
        """What takes the events of a member that runs: its store, or the member itself."""
        return self.member if self.store is None else self.store


class RaftTrial:
    """One run. Raises GuaranteeBroken if a promise does not hold.

    `performed` are the events as carried out, `hit` counts events and effects, `fresh` has messages that were not
    delivered, `lost_writes` counts the in-flight writes that power losses took.
    """

    def __init__(self, settings: RaftSettings, *, tracker: DirtyTracker, certify: bool = True) -> None:
        self.settings = settings
        self.performed: list[RaftOperation] = []
        self.hit: Counter[str] = Counter()
        self.lost_writes = 0
        self.messages: dict[Key, deque[Message]] = {}
        self.fresh: dict[Key, None] = {}
        self._tracker = tracker
        self._certify = certify
        self._parts: Parts = parts_of(settings.bug)
        self._payloads = 0
        self._seen = Seen()
        self._last: tuple[int, Seen, list[Key]] = -1, Seen(), []
        self._clock = LabClock()
        self._known = KnownBodies()
        self._bodies: Bodies = self._known if settings.store else PLAIN_BODIES
        self._judge = StoreJudge()
        self.nodes = [Node(number, RecordingFiles(EMPTY_DISK, tracker=tracker)) for number in range(settings.members)]
        for node in self.nodes:
            self._open(node)

    # ---- events --------------------------------------------------------------------------------------------------

    def run(self, operation: RaftOperation) -> None:
        """Carry out one event and judge every member."""
        place = len(self.performed)
        self.performed.append(operation)
        self._clock.now_ms += 1
        self.hit[operation.op] += 1
        match operation:
            case CrashMember(number):
                node = self._node(number)
                if node.member is not None:
                    self.performed[place] = self._crash(node, operation)
            case RestartMember(number):
                if self._node(number).member is None:
                    self._restart(self._node(number))
            case OpenCopy(number):
                self._open_copy(self._node(number), operation)
            case FailSyncOf(number):
                self._node(number).files.failing_syncs = int(self._node(number).member is not None)
            case Deliver(source, to, kind, back):
                self._deliver(source % len(self.nodes), self._node(to), kind, back)
            case _:
                node = self._node(getattr(operation, "member", 0))
                if node.member is not None:
                    self._let(node, operation)

    def _node(self, number: int) -> Node:
        return self.nodes[number % len(self.nodes)]

    def _place(self, node: Node) -> model.Place:
        return model.Place(node.number, len(self.nodes), self.settings.batch_bytes)

    def _let(self, node: Node, operation: RaftOperation) -> None:
        """Let a member take an event that is no message."""
        place, state, events = self._place(node), node.state, node.events
        match operation:
            case Elect():
                self._both(node, model.elect(place, state), events.election_timeout)
            case Beat():
                self._both(node, model.beat(place, state), events.heartbeat)
            case SyncLog():
                self._both(node, model.synced(place, state), events.sync)
            case Propose():
                self._payloads += 1
                payload = self._payloads
                self._both(node, model.propose(place, state, payload), lambda: self._put(node, payload))
            case BeginRead():
                if state.role == "leader":
                    node.reads.append(len(self._seen.committed))
                self._both(node, model.read(place, state), events.begin_read if node.store else events.read)
            case Transfer(_, to):
                receiver = to % len(self.nodes)
                self._both(node, model.transfer(place, state, receiver), lambda: events.transfer(receiver))
            case SaveCommitEnd():
                if node.store is not None:
                    self._both(node, model.Result(state), node.store.save_commit_end)
            case TimeOutPuts():
                if node.store is not None:
                    self._clock.now_ms += PUT_TIMEOUT_MS
                    self._both(node, model.Result(state), list)

    def _put(self, node: Node, payload: int) -> list[Envelope] | None:
        """Let a client put an entry, or a message to the store of a member."""
        member, store = node.member, node.store
        assert member is not None
        if store is None:
            return member.propose([self._bodies.body_of(payload)])
        put = store.put(payload)
        assert put is not None
        sent, answer, body = put
        if body:
            self._known.learn(payload, body)
            if self.settings.judged == "all":
                self._judge.judge_number(node.state.log, payload, body)
        elif answer is None or answer.status is not PutStatus.NOT_LEADER:
            raise GuaranteeBroken(8, f"a put that was not appended is answered {answer}")
        return sent

    def _deliver(self, source: int, node: Node, kind: str, back: int) -> None:
        key = source, node.number, kind
        sent = self.messages.get(key)
        if not sent or node.member is None:
            return
        events, message = node.events, sent[-1 - back % len(sent)]
        if back % len(sent) == 0:
            if key not in self.fresh:
                self.hit["delivered twice"] += 1
            self.fresh.pop(key, None)
        else:
            self.hit["delivered late"] += 1
        expected = model.receive(self._place(node), node.state, source, message)
        self._both(node, expected, lambda: events.receive(source, message_of(message, self._bodies)))

    def _both(self, node: Node, expected: model.Result, call: Callable[[], list[Envelope] | None]) -> None:
        """Carry out an event on the member and compare it with what the model expects."""
        member = node.member
        assert member is not None
        node.before, node.last_event = node.state, len(node.files.events)
        self._last = node.number, self._seen, []
        try:
            sent = sent_of(call() or [], self._bodies)
            if node.store is not None:
                node.store.step_services()
        except GuaranteeBroken:
            raise
        except OSError as error:
            node.state = expected.member
            self._judge_failed(node, error)
            self._stop(node)
            return
        except Exception as error:
            raise GuaranteeBroken(8, f"a member raises {type(error).__name__}: {error}") from error
        answered = tuple(node.events.take_answered())
        after = state_of(member, self._log_of(member))
        before, node.state = node.state, after
        self._judge_messages(node, sent)
        self._look(node, before)
        self._judge_reads(node, answered)
        self._judge_store(node)
        if self.settings.judged == "all" and (after, sent, answered) != tuple(expected):
            raise GuaranteeBroken(15, _difference(node.number, expected, after, sent, answered))
        if expected.member.role == "leader" and before.role != "leader":
            self.hit["leader elected"] += 1
        if expected.member.end < before.end or expected.member.log[: before.end] != before.log:
            self.hit["log cut"] += 1
        if expected.member.commit > before.commit:
            self.hit["commit raised"] += 1
        self.hit["read answered"] += len(answered)

    def _log_of(self, member: RaftMember) -> tuple[Entry, ...]:
        log = cast(RaftLog, member.log)
        try:
            return tuple(entry_of(each, self._bodies) for each in log.entries(0, 1 << 40))
        except (OSError, StoreError) as error:
            raise GuaranteeBroken(3, f"the log of an open member cannot be read: {error}") from error

    def _judge_failed(self, node: Node, error: OSError) -> None:
        """Contract 8: a member whose event has failed takes no more events, and writes nothing.

        A failed write of the term or of the commit end leaves the log usable.
        """
        member, files, store = node.member, node.files, node.store
        assert member is not None
        files.failing_syncs, events = 0, len(files.events)
        if "checkpoint" in str(error) or (store is None and "currterm" in str(error)):
            return
        if store is None:
            log = cast(RaftLog, member.log)
            calls: list[Callable[[], object]] = [lambda: log.append([Carried(1 << 20, b"x")])]
            calls += [log.sync] if log.synced < log.end else []
        else:
            raft = store.raft
            calls = [raft.election_timeout, raft.heartbeat, raft.sync, raft.begin_read, lambda: raft.transfer(0)]
            store.judge_failed()
        for call in calls:
            try:
                call()
            except OSError:
                continue
            raise GuaranteeBroken(8, "a member takes an event after one that has failed")
        if len(files.events) != events:
            raise GuaranteeBroken(8, "a member writes after an event that has failed")

    def _open_copy(self, node: Node, operation: OpenCopy) -> None:
        """Open a changed copy of the directory of a member that runs."""
        if node.member is None:
            return
        state = node.state
        copied = Copied(
            RecordingFiles(node.files.base, tracker=self._tracker, journal=(*node.files.journal, ProcessKilled())),
            self._log_directory(node), self._entries_of(state), state.synced, self._data_file_bytes, INDEX_FILE_BYTES,
            state.term, state.vote, self._parts,
        )  # fmt: skip
        if open_copy(copied, operation.change, operation.at):
            self.hit[f"copy {operation.change}"] += 1

    def _copy_at_the_end(self) -> None:
        """Open a changed copy of a member. Which member and which change follows from the run."""
        number = self._number
        node = self.nodes[number % len(self.nodes)]
        self._open_copy(node, OpenCopy(node.number, _CHANGES[number % len(_CHANGES)], number * 31))

    @property
    def _number(self) -> int:
        """A number that differs between runs."""
        return 7 * len(self.performed) + self._payloads + self.hit["restart_member"]

    def _entries_of(self, state: Member) -> list[tuple[int, bytes]]:
        return [(entry.term, self._bodies.body_of(entry.payload)) for entry in state.log]

    def _log_directory(self, node: Node) -> str:
        return f"{_DIRECTORY}/dledger-n{node.number}" if self.settings.store else _DIRECTORY

    @property
    def _data_file_bytes(self) -> int:
        return self.settings.data_file_bytes

    def _judge_files(self, node: Node) -> None:
        """Contract 3: the files of a log have the bytes of its entries, and zeros after them."""
        shown = laid_out(self._entries_of(node.state), self._data_file_bytes, INDEX_FILE_BYTES, units=node.state.synced)
        path = files_differ(node.files, self._log_directory(node), shown)
        if path:
            raise GuaranteeBroken(3, f"{path} of member {node.number} does not have the bytes of the format")

    def _stop(self, node: Node) -> None:
        """End the process of a member after a failed call. It sends nothing of its last event."""
        self.hit["stopped by a failed call"] += 1
        node.files.failing_syncs = 0
        node.files = RecordingFiles(
            node.files.base, tracker=self._tracker, journal=(*node.files.journal, ProcessKilled())
        )
        node.member = node.store = None
        node.reads.clear()

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge_messages(self, node: Node, sent: tuple[tuple[int, Message], ...]) -> None:
        for to, message in sent:
            key = node.number, to, message.kind
            self.messages.setdefault(key, deque(maxlen=_KEPT_MESSAGES)).append(message)
            self.fresh[key] = None
            self._last[2].append(key)
            broken: list[str] = []
            if message.kind == "vote":
                self._seen, broken = promises.vote(self._seen, node.number, message.term, node.number)
            elif message.kind == "vote_reply" and message.granted:
                self._seen, broken = promises.vote(self._seen, node.number, message.term, to)
            require(broken)

    def _look(self, node: Node, before: Member, *, is_up: bool = True) -> None:
        after = [each.state for each in self.nodes]
        earlier = [before if each is node else each.state for each in self.nodes]
        up = [is_up if each is node else each.member is not None for each in self.nodes]
        self._seen, broken = promises.look(self._seen, earlier, after, up)
        require(broken)

    def _judge_reads(self, node: Node, answered: tuple[int, ...]) -> None:
        if node.state.role != "leader":
            node.reads.clear()
        for end in answered:
            for sentence in promises.read_is_fresh(node.reads.popleft() if node.reads else 0, end):
                raise GuaranteeBroken(17, sentence)

    def _judge_store(self, node: Node, *, is_whole: bool = False) -> None:
        store = node.store
        if store is None:
            return
        try:
            for answer in self._judge.judge_answers(store, node.state, self._clock()):
                self.hit[f"put {answer}"] += 1
            self._judge.look(store, node.state, is_whole=is_whole)
        except GuaranteeBroken:
            raise
        except Exception as error:
            raise GuaranteeBroken(8, f"a read of a store raises {type(error).__name__}: {error}") from error

    # ---- crashes -------------------------------------------------------------------------------------------------

    def _crash(self, node: Node, crash: CrashMember) -> CrashMember:
        """Lose a member; return the crash as it was."""
        files = node.files
        files.failing_syncs = 0
        back = self._back(node, crash.back)
        position = files.events[len(files.events) - back - 1] if back else len(files.journal)
        if back:
            _, self._seen, sent = self._last
            for key in sent:
                self.messages[key].pop()
                self.fresh.pop(key, None)
            self.hit["inside an event"] += 1
        else:
            node.before = node.state
        node.member = node.store = None
        node.reads.clear()
        self._last = -1, self._seen, []
        self.hit["kill" if crash.kill else "power"] += 1
        if crash.kill:
            journal = (*files.journal[:position], ProcessKilled())
            node.files = RecordingFiles(files.base, tracker=self._tracker, journal=journal)
            self._kept_by_kill(node)
            return replace(crash, back=back, survived={}, others="lost")
        state = disk_state(files.base, files.journal, position, disk=self.settings.disk)
        writes = in_flight_writes(state)
        choices = chosen(writes, crash.survived, crash.others)
        image = compose(state, choices)
        if self._certify:
            assert_legal(files.base, files.journal, position, choices, image, disk=self.settings.disk)
        lost = sum(choices.get(each.name, 0) != each.alternatives - 1 for each in writes)
        self.lost_writes += lost
        self.hit["writes lost"] += lost > 0
        node.files = RecordingFiles(image, tracker=self._tracker)
        return replace(crash, back=back, survived=fitted(writes, crash.survived, crash.others))

    def _kept_by_kill(self, node: Node) -> None:
        """Count all entries as durable, since a kill loses no written byte."""
        node.before, node.state = (each._replace(synced=each.end) for each in (node.before, node.state))

    def _back(self, node: Node, back: int) -> int:
        """Return how many disk events of the last event a crash undoes."""
        if back <= 0 or self._last[0] != node.number:
            return 0
        return min(back, max(0, len(node.files.events) - max(1, node.last_event)))

    def in_flight(self, number: int, back: int) -> list[InFlightWrite]:
        """Return the in-flight writes of a member at a crash point of its last event."""
        node = self._node(number)
        undone = self._back(node, back)
        position = node.files.events[len(node.files.events) - undone - 1] if undone else len(node.files.journal)
        return in_flight_writes(disk_state(node.files.base, node.files.journal, position, disk=self.settings.disk))

    def events_of(self, number: int) -> int:
        """Return the number of disk events of the last event, if it was one of this member."""
        node = self._node(number)
        return len(node.files.events) - node.last_event if self._last[0] == node.number else 0

    def _open(self, node: Node) -> RaftMember:
        node.last_event = len(node.files.events)
        try:
            if self.settings.store:
                return self._open_store(node)
            if node.files.stat(_DIRECTORY) is None:
                node.files.make_directory(_DIRECTORY)
                node.files.sync_directory("/")
            hard_state = self._parts.of(HardState)(node.files, _DIRECTORY)
            log = self._parts.of(RaftLog)(
                node.files,
                _DIRECTORY,
                data_file_bytes=self.settings.data_file_bytes,
                index_file_bytes=INDEX_FILE_BYTES,
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"a member does not start: {type(error).__name__}: {error}") from error
        node.member = self._parts.of(RaftMember)(
            node.number, len(self.nodes), log, hard_state, batch_bytes_max=self.settings.batch_bytes
        )
        return node.member

    def _open_store(self, node: Node) -> RaftMember:
        """Open the store of a member. Its Raft log lies in a folder of the directory."""
        node.store = MemberStore(
            node.number,
            self.settings,
            _DIRECTORY,
            files=node.files,
            parts=self._parts,
            clock=self._clock,
            index_file_bytes=INDEX_FILE_BYTES,
        )
        node.member = node.store.raft.member
        return node.member

    def _restart(self, node: Node) -> None:
        old, before = node.state, node.before
        member = self._open(node)
        found = state_of(member, self._log_of(member))
        require_legal(node.number, before, old, found)
        if found.end < old.end:
            self.hit["entries lost"] += 1
        node.state = node.before = found
        self._last = -1, self._seen, []
        self._look(node, found._replace(), is_up=False)
        if node.store is not None:
            node.store.step_services()
        self._judge_store(node)

    # ---- the end of a run ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Restart all members and let every message arrive.

        A leader has to commit a new entry (16).
        """
        for node in self.nodes:
            node.files.failing_syncs = 0
            if node.member is None:
                self.run(RestartMember(node.number))
        self.messages.clear()
        self.fresh.clear()
        for turn in range(_ROUNDS_OF_AN_END):
            leading = [node for node in self.nodes if node.state.role == "leader"]
            leader = max(leading, key=lambda each: each.state.term, default=None)
            if leader is None:
                self.run(Elect(turn))
            else:
                self.run(Beat(leader.number))
            self._let_all_arrive()
            if leader is not None and turn == 2 * len(self.nodes):
                self.run(Propose(leader.number))
            elif leader is not None and turn > 2 * len(self.nodes) and self._is_settled(leader.state):
                for node in self.nodes:
                    self._judge_store(node, is_whole=True)
                    self._judge_files(node)
                self._copy_at_the_end()
                log_alone_holds(self._number)
                self._close_at_the_end()
                return
        raise GuaranteeBroken(16, "a healed group does not agree on one log within its bound of rounds")

    def _close_at_the_end(self) -> None:
        """Close each member. None of its files stays open."""
        for node in self.nodes:
            assert node.member is not None
            try:
                node.store.raft.close() if node.store is not None else cast(RaftLog, node.member.log).close()
            except Exception as error:
                raise GuaranteeBroken(8, f"a member does not close: {type(error).__name__}: {error}") from error
            require_closed(node.files)

    def _let_all_arrive(self) -> None:
        """Deliver new messages and sync logs until nothing is under way, or for some rounds."""
        for _ in range(_ROUNDS_OF_AN_END):
            for key in tuple(self.fresh):
                self.run(Deliver(*key))
            for node in self.nodes:
                if node.state.synced < node.state.end:
                    self.run(SyncLog(node.number))
            if not self.fresh:
                return

    def _is_settled(self, leader: Member) -> bool:
        return all(
            node.state.log == leader.log and node.state.commit == leader.end and node.state.term == leader.term
            for node in self.nodes
        )


def require_closed(files: RecordingFiles) -> None:
    """Contract 8: a member that has ended has no file open, mapped or locked."""
    if files.leaks():
        raise GuaranteeBroken(8, "a member that has ended keeps files open", found=str(files.leaks()))


def require(broken: list[str]) -> None:
    if broken:
        raise GuaranteeBroken(15, broken[0])


def require_legal(number: int, before: Member, after: Member, found: Member) -> None:
    """Require that a member has read a legal term, vote and log from its disk.

    `before` and `after` are the states before and after the event in which the crash fell.
    """
    hard = (found.term, found.vote)
    between = {(before.term, before.vote), (after.term, after.vote)}
    if after.term != before.term:
        between.add((after.term, None))
    if hard not in between:
        raise GuaranteeBroken(
            15,
            f"member {number} restarts with another term or vote",
            expected=str(sorted(map(str, between))),
            found=str(hard),
        )
    if found.commit > max(before.visible, after.visible):
        raise GuaranteeBroken(
            15, f"member {number} restarts with a commit end of {found.commit}, above the visible one"
        )
    common = next(
        (at for at, (one, other) in enumerate(zip(before.log, after.log, strict=False)) if one != other),
        min(before.end, after.end),
    )
    least = max(min(before.synced, common), min(after.synced, common) if before is after else 0)
    is_legal = any(found.log == row[: found.end] for row in (before.log, after.log))
    if found.end < least or not is_legal:
        raise GuaranteeBroken(
            15,
            f"member {number} restarts with {found.end} entries, {least} were durable"
            + ("" if is_legal else ", and has an entry that it never had at this place"),
        )


def _difference(
    me: int,
    expected: model.Result,
    after: Member,
    sent: tuple[tuple[int, Message], ...],
    answered: tuple[int, ...],
) -> str:
    for name, wanted, found in zip(Member._fields, expected.member, after, strict=True):
        if wanted != found:
            return f"member {me} has {name} {found}, and the model {wanted}"
    if sent != expected.sent:
        return f"member {me} sends {sent}, and the model {expected.sent}"
    return f"member {me} answers reads with {answered}, and the model with {expected.answered}"
