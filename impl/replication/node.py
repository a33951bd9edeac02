"""A store with a role: master or slave, and the change between both.

A `ReplicatedStore` owns a `MessageStore`, and opens it again when its role changes or when its log has to be cut. The
caller steps it: `step(now_ms)` does one round and never blocks. `start` leaves that to a thread. An open as a master
begins a new generation. There is no election. An operator changes roles by hand:

1. `drain()` on the master refuses further puts and says what no replica has received yet.
2. `become(SLAVE, master=…)` on the old master, `become(ASYNC_MASTER or SYNC_MASTER)` on the chosen slave.

Source: `BrokerController.changeToSlave`, `changeToMaster`, which 4.9.3 uses with DLedger only.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.replication.classic import ClassicClient, ClassicConnection
from tornpage.impl.replication.client import ReplicaClient
from tornpage.impl.replication.cutting import cut_log
from tornpage.impl.replication.frames import FrameReader
from tornpage.impl.replication.generations import TOKEN_BYTES, GenerationsFile, common_point
from tornpage.impl.replication.link import Network, WaitingNetwork
from tornpage.impl.replication.node_thread import NodeThread, monotonic_ms
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.server import ReplicaConnection, ReplicaServer
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

__all__ = ["ReplicatedStore"]


def _nothing() -> None:
    """Wake no thread: the caller steps the node."""


def _random_token() -> bytes:
    return os.urandom(TOKEN_BYTES)


class ReplicatedStore:
    """One node; `open` creates it.

    `store` is its open store, another one after a change of role or a cut.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        settings: ReplicationSettings,
        *,
        files: Files,
        clock: Clock,
        network: Network,
        parts: Parts,
        now_ms: Callable[[], int],
        new_token: Callable[[], bytes],
    ) -> None:
        """Open a node; call `open` instead."""
        self._directory = directory
        self._config = config
        self._settings = settings
        self._files = files
        self._clock = clock
        self._network = network
        self._parts = parts
        self._now_ms = now_ms
        self._new_token = new_token
        self._server: ReplicaServer | None = None
        self._client: ReplicaClient | None = None
        self._guard = parts.of(make_guard)()
        self._thread: NodeThread | None = None
        self._wake: Callable[[], None] = _nothing
        self._cut_to: int | None = None
        self._open()

    @classmethod
    def open(
        cls,
        directory: str,
        config: MessageStoreConfig,
        settings: ReplicationSettings,
        *,
        files: Files,
        clock: Clock,
        network: Network,
        parts: Parts | None = None,
        now_ms: Callable[[], int] = monotonic_ms,
        new_token: Callable[[], bytes] = _random_token,
    ) -> "ReplicatedStore":
        """Open the store in a directory in the role of its configuration, and connect or listen.

        `now_ms` is monotonic time in milliseconds, `new_token` returns random bytes for identities. Raises what
        `MessageStore.open` raises, and OSError if the listener or the file of generations fails.
        """
        parts = parts or Parts()
        return parts.of(ReplicatedStore)(
            directory,
            config,
            settings,
            files=files,
            clock=clock,
            network=network,
            parts=parts,
            now_ms=now_ms,
            new_token=new_token,
        )

    # ---- opening and closing -------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Open store and network in the present role."""
        config, parts = self._config, self._parts
        self._requests = parts.of(ReplicaRequests)(
            self._now_ms, timeout_ms=config.slave_timeout, in_sync_replicas=self._settings.in_sync_replicas
        )
        requests = self._requests
        requests.wake = self._wake
        self.store = parts.of(MessageStore).open(
            self._directory,
            config,
            files=self._files,
            clock=self._clock,
            parts=parts.replacing({make_replicas: lambda: requests}),
        )
        try:
            self._generations = parts.of(GenerationsFile)(self._files, self._directory, new_token=self._new_token)
            self._generations.load()
            if self.role is BrokerRole.SLAVE:
                self._follow()
            elif self.store.read_only_reason is None:
                self._lead()
        except BaseException:
            self.store.close()
            raise

    def _lead(self) -> None:
        store, parts, is_classic = self.store, self._parts, self._settings.protocol == "4.9.3"
        listener = self._network.listen(self._settings.ha_listen_address)
        try:
            self._generations.begin(log_begin=store.min_offset, log_end=store.max_offset)
        except BaseException:
            listener.close()
            raise
        self._server = self._parts.of(ReplicaServer)(
            store,
            listener,
            self._requests,
            node=self._generations.node,
            generations=self._generations.entries,
            file_bytes=self._config.mapped_file_size_commit_log,
            settings=self._settings,
            connection=parts.of(ClassicConnection) if is_classic else parts.of(ReplicaConnection),
            reader=self._parts.of(FrameReader),
            compare=self._parts.of(common_point),
        )

    def _follow(self) -> None:
        parts, is_classic = self._parts, self._settings.protocol == "4.9.3"
        client = parts.of(ClassicClient) if is_classic else parts.of(ReplicaClient)
        self._client = client(
            self.store,
            self._network,
            self._generations,
            file_bytes=self._config.mapped_file_size_commit_log,
            settings=self._settings,
            syncs=self._config.flush_disk_type is FlushDiskType.SYNC_FLUSH,
            reader=self._parts.of(FrameReader),
        )

    def close(self) -> None:
        """End all links, answer all waiting puts, and close the store. Idempotent."""
        if self._thread is not None:
            self._thread.stop()
        with self._guard:
            self._close()

    def _close(self) -> None:
        self._leave()
        self.store.close()

    def _leave(self) -> None:
        if self._client is not None:
            self._client.end("this node is closing")
            self._client = None
        if self._server is not None:
            self._server.close()
            self._server = None
        self._requests.close()

    # ---- steps ---------------------------------------------------------------------------------------------------

    @property
    def role(self) -> BrokerRole:
        """The present role."""
        return self._config.broker_role

    @property
    def ha_address(self) -> str:
        """Where replicas connect to this node, with the port that was chosen; empty for a slave."""
        server = self._server  # read once, since a close removes it
        return "" if server is None else server.address

    @property
    def acknowledged_offset(self) -> int | None:
        """The offset that enough connected replicas have confirmed; None if too few are connected."""
        return self._requests.acknowledged_offset

    def start(self) -> None:
        """Step the node in a thread of its own from now on. Idempotent.

        The network must be one on which a thread can wait.
        """
        network = self._network
        assert isinstance(network, WaitingNetwork)
        self._wake = self._requests.wake = network.wake
        self._thread = self._thread or self._parts.of(NodeThread)(self.step, network, self._now_ms)

    def step(self, now_ms: int) -> int:
        """Do one round of replication; return when the next is due.

        Raises what an open raises if the log has to be cut.
        """
        with self._guard:
            self._step(now_ms)
            server = self._server
            if server is not None and server.has_more:
                return now_ms
            expects_more = server is not None and server.expects_more
        return now_ms + (1 if expects_more else self._settings.poll_interval)

    def _step(self, now_ms: int) -> None:
        if self._cut_to is not None:
            self._cut(self._cut_to)
        if self._server is not None:
            self._server.step(now_ms)
        if self._client is not None:
            self._client.step(now_ms)
            if self._client.cut_to is not None:
                self._cut(self._client.cut_to)

    def _cut(self, offset: int) -> None:
        """Close the store, cut its log and open it again.

        After a failure the next step begins again here.
        """
        self._cut_to = offset
        self._close()
        self._parts.of(cut_log)(self._files, self._directory, self._config, offset=offset)
        self._open()
        self._cut_to = None

    # ---- roles ---------------------------------------------------------------------------------------------------

    def become(self, role: BrokerRole, *, master: str = "") -> None:
        """Change the role: close the store and open it again.

        `master` is the address for a slave to connect to. Raises what `open` raises, for example if another process
        listens at the address of this node; the node has its old role then.
        """
        with self._guard:
            before = self._config, self._settings
            after = replace(self._config, broker_role=role), replace(self._settings, ha_master_address=master)
            self._close()
            self._config, self._settings = after
            try:
                self._open()
            except BaseException:
                self._config, self._settings = before
                self._open()
                raise

    def drain(self) -> int:
        """Refuse puts from now on; return how many bytes no counted replica has received yet.

        Step the node until this returns 0, or give up and lose these bytes at a change of roles. Without a counted
        replica all bytes of the log count.
        """
        store, server = self.store, self._server  # read once, since a change of roles replaces them
        store.running_flags.set(RunningFlag.NOT_WRITEABLE)
        received = None if server is None else server.most_received
        return store.max_offset - (store.min_offset if received is None else received)

    def follow(self, master: str) -> None:
        """Connect to another master. The link to the old one ends first (R20)."""
        with self._guard:
            self._settings = replace(self._settings, ha_master_address=master)
            if self._client is not None:
                self._client.end("the address of the master has changed")
                self._follow()

    def status(self) -> dict[str, Any]:
        """Return role, offsets, generations and connections as plain values."""
        with self._guard:
            return self._status()

    def _status(self) -> dict[str, Any]:
        store = self.store
        return {
            "role": self.role.value,
            "ha_address": self.ha_address,
            "node": self._generations.node.hex(),
            "min_offset": store.min_offset,
            "max_offset": store.max_offset,
            "flushed_offset": store.flushed_offset,
            "acknowledged_offset": self._requests.acknowledged_offset,
            "waiting_puts": self._requests.waiting,
            "generations": [
                {"number": each.number, "start": each.start, "token": each.token.hex()}
                for each in self._generations.entries
            ],
            "replicas": [] if self._server is None else [asdict(each) for each in self._server.replicas],
            "findings": [] if self._server is None else list(self._server.findings),
            "joined": self._client is not None and self._client.is_joined,
            "finding": "" if self._client is None else self._client.finding,
        }
