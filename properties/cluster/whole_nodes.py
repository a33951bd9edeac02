"""Judge served nodes and members from their opening to their end, once in a process.

A node runs as `tornpage serve` runs it, with recorded files, links in memory and threads that are stepped by hand:

| contract | what is judged |
|---|---|
| 8 | a wrong address, number or directory is refused, and then no file has changed and nothing listens |
| 8 | a client gets what it asked for, and a put or an append of a node that runs is answered OK |
| 8 | a node changes its role and its master as a client asks, or stays as it is |
| 15 | a master accepts peers that it knows, up to its limit, and names the others in its findings |
| 8 | a closed node has no file open, no address, no link and no thread, and what was put is there in the next life |
| 14 | a second node in the directory is refused |
| 16 | a member that ends by itself says so once, and its close tells why |
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig, BadDirectory, StoreInUse
from tornpage.impl.io.files import OpenFile
from tornpage.impl.parts import Parts
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.node_thread import NodeThread
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.serving.served_member import ServedMember
from tornpage.impl.serving.served_node import ServedNode
from tornpage.properties.cluster.client_lines import ClientLink, ClientNetwork
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["whole_members_hold", "whole_nodes_hold"]

_HERE, _PEER, _HA = "127.0.0.1:5", "127.0.0.1:6", "127.0.0.1:7"
_FILE_BYTES = 4_096
_NOW_MS = 1_700_000_000_000
_STEPS = 12
_FINDINGS_MAX = 100
_DEFAULT_MAX = 32
"""Messages of an answer to a client that states no limit."""
_SYNCS_OF_A_CLOSE = 6
"""Syncs that a closing member makes, at most. Each of them fails once."""
_CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=_FILE_BYTES, mapped_file_size_consume_queue=400, mapped_files_ahead=0,
    max_hash_slot_num=16, max_index_num=64, time_zone="UTC",
)  # fmt: skip
_SETTINGS = RaftSettings((_PEER,), data_file_bytes=_FILE_BYTES, index_file_bytes=_FILE_BYTES)
_LISTENS: tuple[tuple[str, type[Exception] | None], ...] = (
    (":5", None), ("localhost:5", None), ("127.9.9.9:5", None), ("10.0.0.1:5", BadConfig), ("host:5", BadConfig),
    ("0.0.0.0:5", BadConfig), ("127.0.0.1:x", OSError), ("127.0.0.1:65536", OSError), ("localhost", OSError),
)  # fmt: skip
"""Addresses for clients, and how each is refused."""

Refusal = type[Exception] | None
_OK: dict[str, Any] = {"id": None, "ok": True}
Contents = Literal["entries", "messages"]


class _Thread:
    """A thread that is stepped by hand."""

    def __init__(self, step: Callable[[int], int], network: ClientNetwork, name: str) -> None:
        self.step = step
        self.network = network
        self.name = name
        self.is_stopped = False

    def stop(self) -> None:
        """End the thread."""
        self.is_stopped = True


class _Disk(RecordingFiles):
    """A recorded disk on which one sync of a file fails."""

    has_failed = False
    _failing = 0

    def fail_sync(self, number: int) -> None:
        """Let the sync with this number fail, counted from 1. 0 lets none fail."""
        self._failing, self.has_failed = number, False

    def sync(self, file: OpenFile) -> None:
        """Sync, or fail."""
        self._failing -= 1
        if not self._failing:
            self.has_failed, self.failing_syncs = True, 1
        super().sync(file)


class _Machine:
    """A machine with one disk, on which nodes run one after the other."""

    def __init__(self, tracker: CompareTracker) -> None:
        self.files = _Disk(EMPTY_DISK, tracker=tracker)
        self.now_ms = _NOW_MS
        self.networks: list[ClientNetwork] = []
        self.threads: list[_Thread] = []
        self._attempts: list[str] = []
        self.used: set[str] = set()
        self._services: list[HandDriven] = []
        self.parts = Parts({TcpNetwork: self._network, NodeThread: self._thread, ThreadRunner: self._runner})

    def clock(self) -> int:
        """Return the time in milliseconds."""
        return self.now_ms

    def _network(self) -> ClientNetwork:
        self.networks.append(ClientNetwork("", self._attempts, self.used))
        return self.networks[-1]

    def _thread(
        self, step: Callable[[int], int], network: ClientNetwork, now_ms: Callable[[], int], *, name: str = "node"
    ) -> _Thread:
        if network not in self.networks or now_ms() <= 0:
            raise GuaranteeBroken(16, "a thread of a node waits on another network")
        self.threads.append(_Thread(step, network, name))
        return self.threads[-1]

    def _runner(self, service: Service) -> HandDriven:
        self._services.append(HandDriven(service, self.clock))
        return self._services[-1]

    @property
    def attempts(self) -> list[str]:
        """The addresses to which nodes have tried to connect."""
        return self._attempts

    def step(self, count: int = _STEPS) -> None:
        """Step all threads and services that run."""
        for _ in range(count):
            self.now_ms += 400
            for thread in self.threads:
                if not thread.is_stopped:
                    due_ms = observed("a step", partial(thread.step, self.now_ms))
                    if due_ms < self.now_ms:
                        raise GuaranteeBroken(16, "a thread of a node is due before its step")
            for service in tuple(self._services):
                if not service.is_stopped and service.will_step(self.now_ms):
                    service.step()

    def ask(self, address: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """Let a new client ask, and return the answers."""
        network = next((each for each in self.networks if each.is_listening and each.address == address), None)
        if network is None:
            raise GuaranteeBroken(8, f"no node listens at {address}")
        link = ClientLink(0)
        network.backlog.append(link)
        link.inbox += b"".join(json.dumps(each).encode() + b"\n" for each in requests)
        self.step()
        return [json.loads(each) for each in bytes(link.outbox).split(b"\n")[:-1]]

    def require_closed(self) -> None:
        """Contract 8: nothing of a closed node is left."""
        listening = [each.address for each in self.networks if each.is_listening]
        running = [each.name for each in self.threads if not each.is_stopped]
        services = [each for each in self._services if not each.is_stopped and each.due_ms is not None]
        if self.files.leaks() or listening or running or services:
            raise GuaranteeBroken(
                8, "a closed node keeps files, addresses, threads or services",
                found=f"{self.files.leaks()} {listening} {running} {len(services)}",
            )  # fmt: skip

    def refuses(self, make: Callable[[], Any], kind: Refusal, what: str, *, is_empty: bool = True) -> None:
        """Contract 8: a wrong node is refused and changes nothing. A right one opens and closes."""
        paths = self.files.paths()
        try:
            made = make()
        except Exception as error:
            if kind is None or not isinstance(error, kind):
                raise GuaranteeBroken(8, f"{what} is refused with {type(error).__name__}: {error}") from error
            if is_empty and (self.files.paths() != paths or self.files.events):
                raise GuaranteeBroken(8, f"{what} is refused, and files have changed") from error
            self.require_closed()
            return
        if kind is not None:
            raise GuaranteeBroken(8, f"{what} is accepted", kind.__name__)
        observed("close", made.close)
        self.require_closed()

    def refuses_second(self, make: Callable[[], object]) -> None:
        """Contract 14: a second node in the directory of one that runs is refused.

        It changes nothing.
        """
        before = self._state()
        try:
            make()
        except StoreInUse:
            pass
        except Exception as error:
            raise GuaranteeBroken(14, f"a second node is refused with {type(error).__name__}: {error}") from error
        else:
            raise GuaranteeBroken(14, "a directory has two nodes", "StoreInUse")
        if self._state() != before:
            raise GuaranteeBroken(14, "a refused second node leaves something", str(before), str(self._state()))

    def _state(self) -> tuple[object, ...]:
        listening = [each.address for each in self.networks if each.is_listening]
        return self.files.leaks(), self.files.sizes(), listening, len(self.threads)


@contextmanager
def _machine() -> Iterator[_Machine]:
    with CompareTracker() as tracker:
        yield _Machine(tracker)


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:300], str(found)[:300])


# ---- members ---------------------------------------------------------------------------------------------------------


def _member(
    machine: _Machine, content: Contents = "entries", *, me: int = 0, listen: str = _HERE, far: bool = False,
    peers: tuple[str, ...] = (_PEER,), when_failed: Callable[[], None] = lambda: None,
) -> ServedMember:  # fmt: skip
    return ServedMember(
        "/n", me, replace(_SETTINGS, content=content, peers=peers), listen=listen, may_leave_loopback=far,
        files=machine.files, clock=machine.clock, parts=machine.parts, seed=3, now_ms=machine.clock,
        config=_CONFIG if content == "messages" else None, when_failed=when_failed,
    )  # fmt: skip


def whole_members_hold() -> None:
    """Judge members with entries and with messages. Raises GuaranteeBroken."""
    far = ("10.0.0.1:6",)
    cases: list[tuple[dict[str, Any], Refusal]] = [({"listen": listen}, kind) for listen, kind in _LISTENS]
    cases += [({"me": -1}, BadConfig), ({"me": 1}, BadConfig), ({"peers": far}, BadConfig)]
    cases += [({"peers": far, "far": True}, None), ({"peers": (_PEER, *far)}, BadConfig)]
    cases += [({"far": True, "listen": "10.0.0.1:5"}, BadConfig), ({"peers": (_PEER, _HA), "me": 1}, None)]
    for options, kind in cases:
        with _machine() as machine:
            machine.refuses(partial(_member, machine, **options), kind, f"a member with {options}")
    contents: tuple[Contents, ...] = ("entries", "messages")
    for content in contents:
        with _machine() as machine:
            _used_addresses_are_refused(machine, partial(_member, machine, content), (_HERE, _PEER))
        for number in range(1, _SYNCS_OF_A_CLOSE + 1):
            with _machine() as machine:
                _member_closes_badly(machine, content, number)
        with _machine() as machine:
            member = observed("an opening", partial(_member, machine, content))
            network = next(each for each in machine.networks if each.address == _PEER)
            _findings_are_bounded(machine, network, member.status)
            _is("the end of a member", observed("close", member.close), "")
            machine.require_closed()
        with _machine() as machine:
            _member_runs(machine, content)
        with _machine() as machine:
            _member_fails(machine, content)


def _member_runs(machine: _Machine, content: Contents) -> None:
    """Let a group of one take requests in two lives."""
    put = {"op": "append"} if content == "entries" else {"op": "put", "topic": "T", "queue": 2}
    for life in (1, 2):
        member = observed("an opening", partial(_member, machine, content))
        machine.refuses_second(lambda: _member(machine, content))
        _is("the address of a member", member.address, _HERE)
        machine.step()
        status = member.status()
        _is("the role of a group of one", (status["role"], status["member"], status["failure"]), ("leader", 0, ""))
        answers = machine.ask(_HERE, {**put, "body": f"b{life}", "id": 1}, {"op": "status", "id": 2})
        by_id = {each["id"]: each for each in answers}
        _is("the answer to a put", [by_id[1]["ok"], by_id[2]["ok"]], [True, True])
        if content == "entries":
            (read,) = machine.ask(_HERE, {"op": "read"})
            shown = [each["body"] for each in read["entries"] if each["body64"]]
        else:
            (got,) = machine.ask(_HERE, {"op": "get", "topic": "T", "queue": 2})
            shown = [each["body"] for each in got["messages"]]
        _is("what a client reads", shown, [f"b{each}" for each in range(1, life + 1)])
        if member.has_failed:
            raise GuaranteeBroken(8, "a member that runs says that it has failed")
        _is("the end of a member", observed("close", member.close), "")
        machine.require_closed()
    other: Contents = "messages" if content == "entries" else "entries"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"content": other}, "a member with other content"),
        ({"content": content, "me": 1, "peers": (_PEER, _HA)}, "another member in the directory"),
    ]
    for options, what in wrong:
        machine.refuses(partial(_member, machine, **options), BadDirectory, what, is_empty=False)
    machine.refuses(lambda: _node(machine), BadDirectory, "a node in the directory of a member", is_empty=False)


def _used_addresses_are_refused(machine: _Machine, make: Callable[[], Any], addresses: tuple[str, ...]) -> None:
    """Contract 8: an address that another process uses is refused. Nothing stays open.

    The next opening succeeds.
    """
    for address in addresses:
        machine.used.add(address)
        machine.refuses(make, OSError, f"a node at the used address {address}", is_empty=False)
        machine.used.clear()
    machine.refuses(make, None, "a node after used addresses")


def _member_closes_badly(machine: _Machine, content: Contents, number: int) -> None:
    """Let one sync of a closing member fail.

    It tells why its exit is not a clean one, closes everything, and loses nothing.
    """
    put = {"op": "append"} if content == "entries" else {"op": "put", "topic": "T"}
    member = observed("an opening", partial(_member, machine, content))
    machine.step()
    (answer,) = machine.ask(_HERE, {**put, "body": "kept"})
    machine.files.fail_sync(number)
    told = observed("close", member.close)
    has_failed = machine.files.has_failed
    machine.files.fail_sync(0)
    is_unclean = any(path.endswith("/abort") for path in machine.files.paths())
    if (is_unclean and not told) or (told and not has_failed):
        raise GuaranteeBroken(8, f"a member tells {told!r} of an exit, of which sync {number} has failed: {has_failed}")
    machine.require_closed()
    member = observed("an opening", partial(_member, machine, content))
    machine.step()
    read = {"op": "read"} if content == "entries" else {"op": "get", "topic": "T"}
    (found,) = machine.ask(_HERE, read)
    rows = found["entries"] if content == "entries" else found["messages"]
    _is("what a failed close has lost", [each["body"] for each in rows if each["body64"]], ["kept"] * answer["ok"])
    _is("the end of a member", observed("close", member.close), "")
    machine.require_closed()


def _member_fails(machine: _Machine, content: Contents) -> None:
    """Let a sync of a member fail.

    It ends by itself, says so once, and tells why when it is closed.
    """
    failures: list[int] = []
    made = partial(_member, machine, content, when_failed=lambda: failures.append(1))
    member = observed("an opening", made)
    machine.step()
    machine.files.failing_syncs = 1
    put = {"op": "append"} if content == "entries" else {"op": "put", "topic": "T"}
    answers = machine.ask(_HERE, {**put, "body": "x"})
    machine.step()
    _is("the number of reports of a failure", (failures, member.has_failed), ([1], True))
    if any(each["ok"] for each in answers) or not member.status()["failure"]:
        raise GuaranteeBroken(8, "a member that has failed answers OK, or does not say why", found=str(answers))
    failure = member.status()["failure"]
    _is("the end of a failed member", observed("close", member.close), failure)
    machine.require_closed()


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _node(
    machine: _Machine, *, role: BrokerRole = BrokerRole.ASYNC_MASTER, listen: str = _HERE, far: bool = False,
    ha: str = _HA, master: str = "", peers: tuple[str, ...] = (), connections_max: int = 64,
) -> ServedNode:  # fmt: skip
    settings = ReplicationSettings(
        ha_listen_address=ha, ha_master_address=master, peers=peers, connections_max=connections_max
    )
    return ServedNode(
        "/n", replace(_CONFIG, broker_role=role), settings, listen=listen, may_leave_loopback=far,
        files=machine.files, clock=machine.clock, parts=machine.parts,
    )  # fmt: skip


def whole_nodes_hold() -> None:
    """Judge masters and slaves. Raises GuaranteeBroken."""
    slave, far = BrokerRole.SLAVE, "10.0.0.1:7"
    cases: list[tuple[dict[str, Any], Refusal]] = [({"listen": listen}, kind) for listen, kind in _LISTENS]
    cases += [
        ({"role": slave}, BadConfig), ({"role": slave, "master": _PEER}, None), ({"role": slave, "master": far}, None),
        ({"role": slave, "master": "m"}, OSError), ({"ha": "127.0.0.1:x"}, OSError), ({"ha": far}, BadConfig),
        ({"ha": far, "far": True}, BadConfig), ({"ha": far, "far": True, "peers": ("10.0.0.2",)}, None),
        ({"far": True}, None), ({"peers": ("10.0.0.2",)}, None), ({"peers": ("10.0.0.2:5",)}, BadConfig),
        ({"peers": ("10.0.0.2", "host")}, BadConfig), ({"far": True, "listen": far}, BadConfig),
    ]  # fmt: skip
    for options, kind in cases:
        with _machine() as machine:
            machine.refuses(partial(_node, machine, **options), kind, f"a node with {options}")
    with _machine() as machine:
        for life in (1, 2):
            node = observed("an opening", partial(_node, machine))
            machine.refuses_second(lambda: _node(machine))
            _is("the addresses of a node", (node.address, node.ha_address), (_HERE, _HA))
            (put,) = machine.ask(_HERE, {"op": "put", "topic": "T", "body": f"b{life}"})
            (got,) = machine.ask(_HERE, {"op": "get", "topic": "T"})
            _is("the answer to a put", (put["ok"], put["status"]), (True, "PUT_OK"))
            _is("what a client reads", [each["body"] for each in got["messages"]],
                [f"b{each}" for each in range(1, life + 1)])  # fmt: skip
            status = node.status()
            (asked,) = machine.ask(_HERE, {"op": "status"})
            for name in ("role", "store", "read_only_reason"):
                _is(f"the {name} of a node", asked[name], status[name])
            _is("the end of a node", observed("close", node.close), None)
            machine.require_closed()
    with _machine() as machine:
        _used_addresses_are_refused(machine, partial(_node, machine), (_HERE, _HA))
    with _machine() as machine:
        _roles_change(machine)
    with _machine() as machine:
        _strangers_are_refused(machine)
    with _machine() as machine:
        _defaults_hold(machine)
    with _machine() as machine:
        node = _node(machine, role=slave, master=_PEER)
        (refused,) = machine.ask(_HERE, {"op": "put", "topic": "T", "body": "x"})
        _is("the answer of a slave", (refused["ok"], node.ha_address), (False, ""))
        _is("the end of a slave", observed("close", node.close), None)
        machine.require_closed()


def _roles_change(machine: _Machine) -> None:
    """Let clients change the role and the master of a node."""
    node, other = _node(machine), "127.0.0.1:8"
    machine.ask(_HERE, {"op": "put", "topic": "T", "body": "first"})
    (drained,) = machine.ask(_HERE, {"op": "drain"})
    (refused,) = machine.ask(_HERE, {"op": "put", "topic": "T", "body": "x"})
    size_bytes = node.status()["max_offset"]
    _is("what a master without replicas has left", (drained, refused["ok"]), ({**_OK, "left": size_bytes}, False))
    steps: tuple[tuple[dict[str, Any], str, str, tuple[str, ...]], ...] = (
        ({"op": "become", "role": "SLAVE", "master": _PEER}, "SLAVE", "", (_PEER,)),
        ({"op": "follow", "master": other}, "SLAVE", "", (other,)),
        ({"op": "follow", "master": "m"}, "SLAVE", "", (other,)),
        ({"op": "become", "role": "SLAVE"}, "SLAVE", "", (other,)),
        ({"op": "become", "role": "KING", "master": _PEER}, "SLAVE", "", (other,)),
        ({"op": "become", "role": "SYNC_MASTER"}, "SYNC_MASTER", _HA, ()),
        ({"op": "become", "role": "SLAVE", "master": _PEER}, "SLAVE", "", (_PEER,)),
        ({"op": "become", "role": "ASYNC_MASTER"}, "ASYNC_MASTER", _HA, ()),
    )
    for request, role, address, masters in steps:
        attempts = machine.attempts
        attempts.clear()
        (answer,) = machine.ask(_HERE, {**request, "id": 3})
        is_known = role == request.get("role", role) and request.get("master", "") in ("", *masters)
        is_known = is_known and not (role == "SLAVE" and request["op"] == "become" and "master" not in request)
        _is(f"whether {request} is done", answer["ok"], is_known)
        status = node.status()
        shown = {name: status[name] for name in ("role", "ha_address")}
        _is(f"the role after {request}", shown, {"role": role, "ha_address": address})
        if is_known:
            _is(f"the answer to {request}", {name: answer[name] for name in shown}, shown)
        _is(f"the masters after {request}", tuple(sorted(set(attempts))), masters)
        (put,) = machine.ask(_HERE, {"op": "put", "topic": "T", "body": role})
        _is(f"the answer to a put after {request}", put["ok"], role == "ASYNC_MASTER")
    machine.ask(_HERE, {"op": "become", "role": "SLAVE", "master": _PEER})
    machine.used.add(_HA)
    (answer,) = machine.ask(_HERE, {"op": "become", "role": "SYNC_MASTER"})
    refusal = {"id": None, "ok": False, "error": f"the address is in use ({_HA})"}
    _is("a change of roles at a used address", answer, refusal)
    _is("the role after a change that failed", node.status()["role"], "SLAVE")
    machine.used.clear()
    (answer,) = machine.ask(_HERE, {"op": "become", "role": "ASYNC_MASTER"})
    _is("the role after a change that is repeated", (answer["ok"], answer.get("role")), (True, "ASYNC_MASTER"))
    (got,) = machine.ask(_HERE, {"op": "get", "topic": "T"})
    bodies = [each["body"] for each in got["messages"]]
    _is("what was put in all roles", bodies, ["first", "SYNC_MASTER", "ASYNC_MASTER"])
    _is("the end of a node", observed("close", node.close), None)
    machine.require_closed()


def _defaults_hold(machine: _Machine) -> None:
    """Let clients leave fields out.

    An answer has up to 32 messages, those of queue 0 from the first one on.
    """
    node = _node(machine)
    put = {"op": "put", "topic": "T", "keys": "k"}
    machine.ask(_HERE, *({**put, "body": f"b{number}"} for number in range(_DEFAULT_MAX + 3)))
    machine.ask(_HERE, {**put, "queue": 1, "body": "other", "keys": "o"})
    (got, found) = machine.ask(_HERE, {"op": "get", "topic": "T"}, {"op": "query", "topic": "T", "key": "k"})
    _is(
        "what a get without limits returns",
        [each["body"] for each in got["messages"]],
        [f"b{each}" for each in range(_DEFAULT_MAX)],
    )
    _is("the number of messages of a query without a limit", len(found["messages"]), _DEFAULT_MAX)
    (one, other) = machine.ask(_HERE, {"op": "get", "topic": "T", "max": 1}, {"op": "get", "topic": "T", "queue": 1})
    _is("one message", [each["body"] for each in (*one["messages"], *other["messages"])], ["b0", "other"])
    (first, second) = machine.ask(
        _HERE, {"op": "commit", "topic": "T", "group": "g", "offset": 3}, {"op": "progress", "topic": "T", "group": "g"}
    )
    _is("the progress of a group", (first["ok"], second["offset"]), (True, 3))
    _is("the end of a node", observed("close", node.close), None)
    machine.require_closed()


def _findings_are_bounded(machine: _Machine, network: ClientNetwork, status: Callable[[], dict[str, Any]]) -> None:
    """Contract 8: let many strangers connect. The last 100 reasons are kept, the newest last."""
    peers = [f"10.9.9.9:{number}" for number in range(_FINDINGS_MAX + 5)]
    for count in (_FINDINGS_MAX - 1, len(peers)):
        for peer in peers[:count]:
            link = ClientLink(0)
            link.peer = peer
            network.backlog.append(link)
        machine.step(1)
        found = status()["findings"][-count:]
        wanted = [True] * min(count, _FINDINGS_MAX)
        shown = [
            each.startswith(f"{peer}: ") for each, peer in zip(found, peers[:count][-_FINDINGS_MAX:], strict=False)
        ]
        _is(f"the findings about {count} strangers", shown, wanted)
        most = len(status()["findings"])
    _is("the number of findings", most, _FINDINGS_MAX)


def _strangers_are_refused(machine: _Machine) -> None:
    """Let a stranger and known hosts connect, up to the limit and above it."""
    known, most = "10.0.0.2", 3
    node = _node(machine, ha="10.0.0.1:7", far=True, peers=(known, "10.0.0.3"), connections_max=most)
    network = next(each for each in machine.networks if each.address == "10.0.0.1:7")
    hosts = ("10.0.0.9", known, "10.0.0.20", known, "10.0.0.3", known, "10.0.0.3")
    links: list[ClientLink] = []
    kept = 0
    for host in hosts:
        link = ClientLink(0)
        link.peer = f"{host}:{4_000 + len(links)}"
        links.append(link)
        network.backlog.append(link)
        findings = list(node.status()["findings"])
        machine.step(1)
        is_accepted = host in (known, "10.0.0.3") and kept < most
        kept += is_accepted
        _is(f"the connection of {link.peer}", link.is_closed, not is_accepted)
        new = node.status()["findings"][len(findings) :]
        _is(
            f"the findings about {link.peer}",
            [each.startswith(f"{link.peer}: ") for each in new],
            [True] * (not is_accepted),
        )
    _is("the number of connections", len(node.status()["replicas"]), most)
    _findings_are_bounded(machine, network, node.status)
    links[1].has_left = True
    late = ClientLink(0)
    late.peer = f"{known}:5000"
    machine.step(1)
    network.backlog.append(late)
    machine.step(1)
    _is("a connection after another one has ended", (late.is_closed, links[1].is_closed), (False, True))
    _is("the end of a node", observed("close", node.close), None)
    _is("the connections of a closed node", [each.is_closed for each in (*links, late)], [True] * (len(links) + 1))
    machine.require_closed()
