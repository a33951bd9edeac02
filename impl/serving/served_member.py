"""A member of a Raft group as a process: its files, its thread, its listener for clients."""

import random
import time
from collections.abc import Callable

from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import Files
from tornpage.impl.parts import Parts
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.opening import OpenMember
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.node_thread import NodeThread
from tornpage.impl.replication.tcp import TcpNetwork, host_and_port
from tornpage.impl.serving.client_server import ClientServer
from tornpage.impl.serving.fields import Answer
from tornpage.impl.serving.raft_operations import RaftOperations
from tornpage.impl.serving.served_node import require_loopback

__all__ = ["ServedMember"]


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


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
        parts: Parts,
        seed: int | None = None,
        when_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the member and connect it to its group.

        `listen` is the address for clients, always on loopback. Members on other machines need `may_leave_loopback`.
        `seed` draws the election time-outs; None draws other ones in each process. `when_failed` is called once if
        the member ends by itself.

        Raises BadConfig for a forbidden address or a number outside the group, OSError for an address that is in use,
        and what `OpenMember` raises. A wrong address changes no file.
        """
        _check(me, settings, listen, may_leave_loopback=may_leave_loopback)
        self._when_failed = when_failed
        self._is_over = False
        self._open = OpenMember(directory, me, settings, files=files, parts=parts)
        network = TcpNetwork()
        try:
            self._node = RaftNode(
                me,
                settings,
                self._open.log,
                self._open.hard_state,
                network=network,
                rng=random.Random(seed),
                parts=parts,
            )
            self._operations = RaftOperations(self._node, self._open.log.body_at)
            self._clients = ClientServer(listen, self._operations)
            try:
                self._node.begin(_monotonic_ms(), clients=self._clients.address)
            except BaseException:
                self._clients.close()
                raise
        except BaseException:
            self._open.close()
            raise
        self.address = self._clients.address
        self._thread = NodeThread(self._step, network, _monotonic_ms)

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
        self._node.close(_monotonic_ms())
        self._clients.close()
        self._open.close()
        return self._node.failure


def _check(me: int, settings: RaftSettings, listen: str, *, may_leave_loopback: bool) -> None:
    if not 0 <= me < len(settings.peers):
        raise BadConfig("raft_id", me, f"the group has members 0 to {len(settings.peers) - 1}")
    require_loopback("listen", listen, "clients are served on loopback only; use a tunnel for others")
    host_and_port(listen)
    if not may_leave_loopback:
        for each in settings.peers:
            require_loopback("raft_peers", each, "allow the network for members on other machines")
