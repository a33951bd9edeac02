"""A member of a Raft group as a process: its files, its thread, its listener for clients."""

import random
from collections.abc import Callable
from dataclasses import replace

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.parts import Parts
from tornpage.impl.raft.application import Application
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.opening import OpenMember, require_member
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.raft.store_application import StoreApplication
from tornpage.impl.replication.node_thread import NodeThread, monotonic_ms
from tornpage.impl.replication.tcp import TcpNetwork, host_and_port
from tornpage.impl.serving.client_server import ClientServer
from tornpage.impl.serving.fields import Answer
from tornpage.impl.serving.raft_operations import RaftOperations
from tornpage.impl.serving.raft_store_operations import RaftStoreOperations
from tornpage.impl.serving.served_node import require_loopback

__all__ = ["ServedMember"]


class ServedMember:
    """One running member. `address` is that of its clients."""

    def __init__(
        self,
        directory: str,
        me: int,
        settings: RaftSettings,
        *,
        listen: str,
        may_leave_loopback: bool,
        files: Files,
        clock: Clock,
        parts: Parts,
        config: MessageStoreConfig | None = None,
        seed: int | None = None,
        now_ms: Callable[[], int] = monotonic_ms,
        when_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the member and connect it to its group.

        `listen` is the address for clients, always on loopback. Members on other machines need `may_leave_loopback`.
        `config` is that of a message store; the sizes of its log files and the time-out of its puts are in `settings`.
        `seed` draws the election time-outs; None draws other ones in each process. `now_ms` is monotonic time in
        milliseconds. `when_failed` is called once if the member ends by itself.

        Raises BadConfig for a forbidden address or a number outside the group, OSError for an address that is in use,
        and what `OpenMember` and `RaftStore.open` raise. A wrong address changes no file.
        """
        _check(me, settings, listen, may_leave_loopback=may_leave_loopback)
        self._when_failed = when_failed
        self._is_over = False
        self._parts, self._now_ms = parts, now_ms
        network = parts.of(TcpNetwork)()
        operations, self._close_files = self._opened(directory, me, settings, config, files, clock, parts, network.wake)
        self._operations = operations
        try:
            self._begin(operations.application, settings, listen, network, random.Random(seed))
        except BaseException:
            self._close_files()
            raise

    @staticmethod
    def _opened(
        directory: str,
        me: int,
        settings: RaftSettings,
        config: MessageStoreConfig | None,
        files: Files,
        clock: Clock,
        parts: Parts,
        wake: Callable[[], None],
    ) -> tuple[RaftOperations | RaftStoreOperations, Callable[[], str]]:
        """Open the files; return the operations of clients, and what closes the files.

        The latter returns why the end of the store is not a clean one, or an empty text.
        """
        if settings.content == "messages":
            require_member(files, directory, me, settings)
            config = replace(
                config or MessageStoreConfig(),
                mapped_file_size_commit_log=settings.data_file_bytes,
                slave_timeout=settings.answer_timeout,
            )
            store = StoreApplication(
                directory,
                me,
                config,
                settings,
                files=files,
                clock=clock,
                parts=parts,
                wake=wake,
            )
            return RaftStoreOperations(store), lambda: _closed(store)
        member_files = OpenMember(directory, me, settings, files=files, parts=parts)
        member = parts.of(RaftMember)(
            me,
            len(settings.peers),
            RecentEntries(member_files.log, settings.recent_bytes_max),
            member_files.hard_state,
            batch_bytes_max=settings.batch_bytes_max,
        )
        return RaftOperations(RaftEntries(member, settings, wake), member_files.log.body_at), lambda: _shut(
            member_files
        )

    def _begin(
        self, application: Application, settings: RaftSettings, listen: str, network: TcpNetwork, rng: random.Random
    ) -> None:
        self._clients = ClientServer(listen, self._operations, self._parts)
        try:
            self.address = self._clients.address
            self._node = RaftNode(
                application, settings, network=network, rng=rng, now_ms=self._now_ms(), clients=self.address
            )
        except BaseException:
            self._clients.close()
            raise
        self._operations.begin(self._node)
        self._thread = self._parts.of(NodeThread)(self._step, network, self._now_ms)

    @property
    def has_failed(self) -> bool:
        """Whether the member has ended by itself."""
        return bool(self._node.failure)

    def _step(self, now_ms: int) -> int:
        due_ms = self._node.step(now_ms)
        if self.has_failed and not self._is_over:
            self._is_over = True
            self._when_failed()
        return due_ms

    def status(self) -> Answer:
        """Return the state of the member."""
        return self._operations.status()

    def close(self) -> str:
        """End the member; return why its end is not a clean one, or an empty text."""
        self._thread.stop()
        self._node.close(self._now_ms())
        self._clients.close()
        try:
            reason = self._close_files()
        except OSError as error:
            reason = str(error)
        return self._node.failure or reason


def _closed(store: StoreApplication) -> str:
    store.close()
    return store.store.read_only_reason or ""


def _shut(files: OpenMember) -> str:
    files.close()
    return ""


def _check(me: int, settings: RaftSettings, listen: str, *, may_leave_loopback: bool) -> None:
    if not 0 <= me < len(settings.peers):
        raise BadConfig("raft_id", me, f"the group has members 0 to {len(settings.peers) - 1}")
    host_and_port(listen)
    require_loopback("listen", listen, "clients are served on loopback only; use a tunnel for others")
    if not may_leave_loopback:
        for each in settings.peers:
            require_loopback("raft_peers", each, "allow the network for members on other machines")
