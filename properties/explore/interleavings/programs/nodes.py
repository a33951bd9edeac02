"""Benches of nodes: a store with a role and its links, and the store of a Raft member."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, cast
from zlib import crc32

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import AppendAnswer, Envelope, RequestVote, VoteAnswer
from tornpage.impl.raft.open_files import FILES_MAX, OpenFiles
from tornpage.impl.raft.raft_store import Membership, RaftStore
from tornpage.impl.replication.client import ReplicaClient
from tornpage.impl.replication.cutting import cut_log
from tornpage.impl.replication.generations import Generation, GenerationsFile
from tornpage.impl.replication.link import Network
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.server import ReplicaServer
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.programs.bench import Bench, Failing, require_rule, slow
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry
from tornpage.properties.explore.interleavings.programs.stores import LockedDisk
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.scheduler import CooperativeLock

__all__ = ["BENCHES"]


def _guard() -> CooperativeLock:
    return CooperativeLock("guard")


# ---- a store with a role ---------------------------------------------------------------------------------------------

_ROLES = (BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER, BrokerRole.SLAVE)
_LOG_END = 100
_POLL_MS = 5


class _Machine:
    """The directory and the network of one node: which stores, listeners and links are open."""

    def __init__(self) -> None:
        self.stores: list[object] = []
        self.links: list[object] = []
        self.cuts = 0
        self.failing = Failing()
        self.failing_closes = Failing()
        self.cut_to: int | None = None

    def require_open(self, store: object) -> None:
        """Check that a store is open while it is used. Raises GuaranteeBroken."""
        require_rule(store in self.stores, "a link uses a closed store", contract=11)


class _Flags:
    def __init__(self) -> None:
        self.flags: set[object] = set()

    def set(self, flag: object) -> None:
        self.flags.add(flag)


class _Store(MessageStore):
    """Stand in for the store of a node. Two may not be open in one directory."""

    machine: _Machine

    def __init__(self, machine: _Machine) -> None:
        self.machine = machine
        self.running_flags = cast(Any, _Flags())

    read_only_reason = None
    min_offset, max_offset, flushed_offset = 0, _LOG_END, _LOG_END

    def close(self) -> None:
        slow("a store is closed")
        if self.machine.failing_closes.is_due():
            raise OSError(5, "planned failure")
        if self in self.machine.stores:
            self.machine.stores.remove(self)


class _Linked:
    """Stand in for the server of a master or the client of a slave. One call runs at a time."""

    what = ""

    def __init__(self, store: _Store) -> None:
        self.machine = store.machine
        self.store = store
        self.inside = ""
        self.is_over = False
        require_rule(not self.machine.links, f"a node opens a {self.what} before it has ended the old link")
        self.machine.links.append(self)

    def begin(self, call: str) -> None:
        require_rule(not self.inside, f"{call} of a {self.what} runs during {self.inside}")
        self.inside = call
        slow(f"{call} of a {self.what}")
        self.inside = ""

    def end(self, _reason: str) -> None:
        self.begin("end")
        if not self.is_over:
            self.is_over = True
            self.machine.links.remove(self)

    def step(self, _now_ms: int) -> None:
        require_rule(not self.is_over, f"a {self.what} is stepped after its end", contract=11)
        self.machine.require_open(self.store)
        self.begin("step")
        self.machine.require_open(self.store)


class _Server(_Linked):
    what = "server"
    has_more = expects_more = False
    replicas: tuple[object, ...] = ()
    findings: tuple[str, ...] = ()
    most_received = 60
    address = "node:1"

    def __init__(self, store: _Store, *_args: object, **_named: object) -> None:
        super().__init__(store)

    def close(self) -> None:
        self.end("")


class _Client(_Linked):
    what = "client"
    is_joined = True

    def __init__(self, store: _Store, *_args: object, settings: ReplicationSettings, **_named: object) -> None:
        super().__init__(store)
        self.finding = settings.ha_master_address

    @property
    def cut_to(self) -> int | None:
        return self.machine.cut_to


class _Generations:
    node = b"n"

    def __init__(self, *_args: object, **_named: object) -> None:
        self.entries: tuple[Generation, ...] = ()

    def load(self) -> None:
        slow("the generations are read")

    def begin(self, *, log_begin: int, log_end: int) -> None:
        slow("a generation begins")
        self.entries = (Generation(1, log_begin, b"t"),)


class _Listening:
    def listen(self, _address: str) -> "_Listening":
        return self

    def close(self) -> None:
        return None


class NodeBench(Bench):
    """A store with a role.

    One thread steps it. Others change its role, ask for its status and close it.
    """

    modules = ("tornpage.impl.replication.node",)

    def __init__(self) -> None:
        self.machine = machine = _Machine()

        class Store(_Store):
            @classmethod
            def open(cls, *_args: object, **_named: object) -> "_Store":  # type: ignore[override]
                require_rule(not machine.stores, "a store is opened twice in one directory", contract=11)
                store = _Store(machine)
                machine.stores.append(store)
                slow("a store is opened")
                if machine.failing.is_due():
                    store.close()
                    raise OSError(28, "planned failure")
                return store

        def cut(*_args: object, offset: int, **_named: object) -> None:
            require_rule(not machine.stores, "the log of an open store is cut", contract=11)
            slow("a log is cut")
            machine.cuts += 1
            machine.cut_to = None

        parts = Parts().replacing(
            {
                make_guard: _guard,
                MessageStore: Store,
                ReplicaServer: partial(_Server),
                ReplicaClient: partial(_Client),
                GenerationsFile: partial(_Generations),
                cut_log: cut,
            }
        )
        self.node = ReplicatedStore.open(
            "/s",
            MessageStoreConfig(broker_role=BrokerRole.ASYNC_MASTER),
            ReplicationSettings(ha_master_address="m0"),
            files=cast(Any, None),
            clock=lambda: 0,
            network=cast(Network, _Listening()),
            parts=parts,
            now_ms=lambda: 0,
            new_token=lambda: b"t",
        )

    def step(self) -> int:
        return self.node.step(0)

    def become(self, role: int) -> None:
        self.node.become(_ROLES[role], master=f"m{role}")

    def become_fails(self, role: int) -> str:
        """Change the role while the next open fails; return whether that raised."""
        with self.machine.failing.planned():
            try:
                self.node.become(_ROLES[role], master="m9")
            except OSError:
                return "failed"
        return "changed"

    def _close_fails(self, role: int) -> None:
        """Check that a node keeps its role if the close of its store fails in a change of roles.

        Raises GuaranteeBroken.
        """
        before = self.node.role
        with self.machine.failing_closes.planned(), suppress(OSError):
            self.node.become(_ROLES[role], master="m9")
        require_rule(self.node.role is before, "a node has another role after a change that failed", contract=8)

    def follow(self, master: int) -> None:
        self.node.follow(f"m{master}")

    def cut(self, offset: int) -> None:
        """Let the master ask for a cut in the next step of a client."""
        self.machine.cut_to = offset

    def status(self) -> object:
        found = self.node.status()
        return found["role"], found["ha_address"], found["joined"], found["finding"], found["acknowledged_offset"]

    def look(self) -> None:
        """Look at what needs no lock. It may belong to any moment of a change of roles."""
        self.node.drain()
        require_rule(self.node.ha_address in ("", _Server.address), "a node has an unknown address")
        require_rule(self.node.acknowledged_offset is None, "a node without replicas has a confirmed offset")

    def close(self) -> None:
        self.node.close()

    def state(self) -> object:
        found = self.status()
        machine, node = self.machine, self.node
        links = [type(each).__name__ for each in machine.links]
        self._require_works()
        node.close()
        node.close()
        require_rule(not machine.stores, "a closed node leaves a store open", contract=11)
        require_rule(not machine.links, "a closed node leaves a link open", contract=11)
        return found, links, machine.cuts

    def _require_works(self) -> None:
        """Check that the node still changes its role, and keeps it after a failed change.

        Raises GuaranteeBroken.
        """
        self.machine.cut_to = None
        for role, other in ((BrokerRole.SLAVE, 1), (BrokerRole.SYNC_MASTER, 2)):
            self.node.become(role, master="m1")
            self.become_fails(other)
            self._close_fails(other)
            self.node.become(role, master="m1")
            self.node.step(0)
            found = self.node.status()
            is_slave = role is BrokerRole.SLAVE
            wanted = (role.value, "" if is_slave else _Server.address, is_slave, "m1" if is_slave else "")
            seen = (found["role"], found["ha_address"], found["joined"], found["finding"])
            require_rule(seen == wanted, "a node has another role than its last one", found=seen)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("step", role="thread"),
        entry("cut", (40,), role="thread").then("step"),
        entry("become", (0, 2)),
        entry("become_fails", (1, 2)),
        entry("follow", (3, 4)),
        entry("status"),
        entry("look"),
        entry("close"),
    )


# ---- the store of a Raft member --------------------------------------------------------------------------------------


class _Disk(LockedDisk):
    """A recorded disk on which the next sync of one task may fail."""

    def sync(self, file: OpenFile) -> None:
        self.failing_syncs = int(self.failing.is_due())
        super().sync(file)


class RaftStoreBench(Bench):
    """The store of a Raft member.

    Clients put, and events come from timers, links and the disk.
    """

    modules: ClassVar[tuple[str, ...]] = (
        "tornpage.impl.raft.raft_store",
        "tornpage.impl.raft.raft_commit_log",
        "tornpage.impl.raft.appended_puts",
        "tornpage.impl.raft.member",
    )
    members = 1
    is_slow = True

    def __init__(self) -> None:
        self.runners: dict[str, SteppedRunner] = {}
        self.disk = _Disk()
        self.disk.make_directory(ROOT)
        self.sent: list[Envelope] = []
        self.puts: list[Future[PutResult]] = []
        self.reads: list[Future[int | None]] = []
        config = MessageStoreConfig(
            mapped_file_size_commit_log=1024,
            mapped_file_size_consume_queue=60,
            message_index_enable=False,
            time_zone="UTC",
        )
        self.store = RaftStore.open(
            ROOT,
            config,
            Membership(0, self.members, index_file_bytes=320),
            files=self.disk,
            clock=lambda: BORN_TIMESTAMP,
            send=self.sent.extend,
            parts=stepped_parts(Parts(), runner=self._runner),
        )
        self.is_closed = False
        self.elect()

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.runners[service.name] = SteppedRunner(service, lambda: BORN_TIMESTAMP)
        return runner

    @property
    def member(self) -> RaftMember:
        return self.store.member

    def _event(self, *calls: Callable[[], list[Envelope]]) -> None:
        """Carry out calls of the member as one event.

        A member that has failed or is closed takes none.
        """
        with suppress(OSError):
            self.sent.extend(self.store._event(lambda: [each for call in calls for each in call()]))

    def elect(self) -> None:
        """Become leader, with the vote of another member if there are others."""
        member = self.member
        if self.members == 1:
            self._event(member.election_timeout)
        else:
            self._event(member.election_timeout, lambda: member.receive(1, VoteAnswer(member.term, True)))

    def put(self, queue: int) -> None:
        self.puts.append(self.store.store.put_async(Message("T", b"1", queue_id=queue)))

    def sync(self) -> None:
        """Make the log durable; another member confirms it."""
        member = self.member
        if self.members == 1:
            self._event(member.sync)
        else:
            self._event(member.sync, lambda: member.receive(1, self._confirmation()))

    def _confirmation(self) -> AppendAnswer:
        return AppendAnswer(self.member.term, True, self.member.log.end, self.member.round)

    def lose(self) -> None:
        """Lose the role to a member with a higher term."""
        member = self.member
        self._event(lambda: member.receive(2, RequestVote(member.term + 1, 0, 0)))

    def read(self) -> None:
        with suppress(OSError):
            begun = self.store.begin_read()
            if begun is not None:
                self.reads.append(begun[0])
                self.sent.extend(begun[1])

    def fail(self) -> None:
        """Let a sync of the log fail."""
        with self.disk.failing.planned():
            self.sync()

    def save(self) -> None:
        with suppress(OSError):  # of a member that has failed or is closed
            self.store.save_commit_end()

    def close(self) -> None:
        self.is_closed = True
        self.store.close()

    def state(self) -> object:
        statuses = sorted(_put_text(each) for each in self.puts)
        reads = sorted(str(each.result(0)) if each.done() else "waits" for each in self.reads)
        sent = sorted(f"{each.to} {type(each.message).__name__} {crc32(repr(each).encode()):x}" for each in self.sent)
        saved = self._saved()
        self._require_answers()
        self.store.close()
        self.store.close()
        left = self._unanswered()
        require_rule(not left, "a closed member leaves a request without an answer", contract=16, found=left)
        require_rule(
            not self.disk.broken, "a member uses its directory without the lock", contract=14, found=self.disk.broken
        )
        if self.is_closed:  # a close is several steps, and events may come between them
            return "closed"
        return statuses, reads, sent, saved, self._saved()

    def _saved(self) -> int:
        self.disk.is_examined = True
        try:
            return CommitPoint(self.disk, f"{ROOT}/dledger-n0").commit
        finally:
            self.disk.is_examined = False

    def _require_answers(self) -> None:
        """Check that a leader answers what its group has confirmed. Raises GuaranteeBroken."""
        if self.member.role != "leader" or self.store._failure or self.is_closed:
            return
        self.sync()
        left = self._unanswered()
        require_rule(not left, "a confirmed request has no answer", contract=16, found=left)

    def _unanswered(self) -> int:
        return sum(not each.done() for each in self.puts) + sum(not each.done() for each in self.reads)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (0, 1)),
        entry("sync"),
        entry("read"),
        entry("sync").then("save"),
        entry("save"),
        entry("put", (0,)).then("sync").then("put", (0,)),
        entry("close"),
        entry("fail"),
    )


class RaftSavesBench(RaftStoreBench):
    """Saves of the visible end of a member.

    At the begin one entry is not saved, and another one is not durable.
    """

    modules = (
        "tornpage.impl.raft.raft_store",
        "tornpage.impl.raft.commit_point",
        "tornpage.impl.raft.properties_file",
    )

    def __init__(self) -> None:
        super().__init__()
        self.put(0)
        self.sync()
        self.put(0)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("save"),
        entry("sync").then("save"),
        entry("put", (0,)).then("sync").then("save"),
        entry("close"),
    )


class RaftGroupBench(RaftStoreBench):
    """The store of a member whose group has three members."""

    members = 3

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (0, 1)),
        entry("sync"),
        entry("read"),
        entry("lose"),
        entry("lose").then("elect"),
        entry("close"),
    )


# ---- the open files of a Raft log ------------------------------------------------------------------------------------


class _Handle:
    """An open file of `_Handles`."""

    def __init__(self, path: str) -> None:
        self.path = path


class _Handles:
    """Stand in for a disk that counts open files."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.open_files: list[_Handle] = []

    def stat(self, path: str) -> object:
        return path if path in self.names else None

    def create(self, path: str) -> _Handle:
        require_rule(path not in self.names, "a file is created twice", found=path)
        self.names.add(path)
        return self.open(path, writable=True)

    def open(self, path: str, *, writable: bool) -> _Handle:
        slow("a file is opened")
        self.open_files.append(_Handle(path))
        return self.open_files[-1]

    def close(self, handle: _Handle) -> None:
        require_rule(handle in self.open_files, "a file is closed twice", contract=11, found=handle.path)
        self.open_files.remove(handle)


class OpenFilesBench(Bench):
    """The open files of a Raft log, of which the oldest are closed.

    One task is the member, which writes, syncs and removes files. All others read. As many files as may stay open are
    open at the begin. Which of them are closed depends on the schedule, so rules judge the end.
    """

    modules = ("tornpage.impl.raft.open_files",)

    def __init__(self) -> None:
        self.disk = _Handles()
        self.files = OpenFiles(cast(Files, self.disk))
        self.written: dict[str, _Handle] = {}
        for number in range(FILES_MAX):
            self.use(number)

    def use(self, number: int) -> None:
        """Read a file, which has to stay open meanwhile."""
        with self.files.opened(str(number), creates=True) as file:
            slow("a file is read")
            self._require_open(cast(Any, file), "a file is closed while it is read")

    def write(self, number: int) -> None:
        path = str(number)
        with self.files.opened(path, creates=True) as file:
            self.files.note_written(path)
            slow("a file is written")
            self.written.setdefault(path, cast(Any, file))

    def sync(self, number: int) -> None:
        """Sync a file. The descriptor that wrote has to report a failed write."""
        path = str(number)
        with self.files.opened(path, creates=True) as file:
            wrote = self.written.pop(path, file)
            require_rule(wrote is file, "a file with bytes that are not durable was closed", contract=2, found=path)
            slow("a file is synced")
            self.files.note_durable(path)

    def forget(self, number: int) -> None:
        path = str(number)
        self.written.pop(path, None)
        self.files.forget(path)
        self.disk.names.discard(path)

    def close(self) -> None:
        self.written.clear()
        self.files.close()

    def _require_open(self, file: _Handle, sentence: str, contract: int = 11) -> None:
        require_rule(file in self.disk.open_files, sentence, contract=contract, found=file.path)

    def state(self) -> object:
        for file in self.written.values():
            self._require_open(file, "a file with bytes that are not durable was closed", contract=2)
        paths = [each.path for each in self.disk.open_files]
        require_rule(len(paths) == len({*paths}), "a file is open twice", contract=11, found=sorted(paths))
        self.use(0)  # the files above the limit are closed after the last use of one
        count, most = len(self.disk.open_files), FILES_MAX + len(self.written)
        require_rule(count <= most, "more files stay open than may", contract=11, found=f"{count} of {most}")
        self.files.close()
        left = [each.path for each in self.disk.open_files]
        require_rule(not left, "a closed log leaves files open", contract=11, found=left)
        return sorted(self.written)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("use", (0, 1, FILES_MAX)),
        entry("use", (0, FILES_MAX + 1)),
        entry("write", (0, FILES_MAX), role="member"),
        entry("write", (0, FILES_MAX), role="member").then("sync", (0, FILES_MAX)),
        entry("forget", (0, FILES_MAX), role="member"),
        entry("close", role="member"),
    )


def _put_text(answer: "Future[PutResult]") -> str:
    if not answer.done():
        return "waits"
    found = answer.result(0)
    if not found.stored and found.status is not PutStatus.OUTCOME_UNKNOWN:
        return "refused"
    return f"{found.status.name} {found.offset} {found.queue_offset}"


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "node": NodeBench,
    "raft store": RaftStoreBench,
    "raft saves": RaftSavesBench,
    "raft group": RaftGroupBench,
    "open files": OpenFilesBench,
}
