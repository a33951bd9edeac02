"""A node with all services of its store and a listener for clients: what a process serves."""

from ipaddress import IPv4Address

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.parts import Parts
from tornpage.impl.raft.opening import require_no_member
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.replication.tcp import TcpNetwork, host_and_port
from tornpage.impl.serving.client_server import ClientServer
from tornpage.impl.serving.fields import Answer
from tornpage.impl.serving.operations import Operations

__all__ = ["ServedNode", "require_loopback"]


class ServedNode:
    """One running node.

    `address` is that of its clients, `ha_address` that of its replicas, empty for a slave.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        settings: ReplicationSettings,
        *,
        listen: str,
        may_leave_loopback: bool,
        files: Files,
        clock: Clock,
        parts: Parts,
    ) -> None:
        """Open the store in its role and begin to serve.

        `listen` is the address for clients, always on loopback. Replicas of other machines need `may_leave_loopback`
        and their addresses in `peers`. Raises BadConfig for a forbidden address, OSError for one without a port or one
        that is in use, BadDirectory for the directory of a member of a group, and what `MessageStore.open` raises. A
        wrong address changes no file.
        """
        _check(config, settings, listen, may_leave_loopback=may_leave_loopback)
        require_no_member(files, directory)
        self._node = ReplicatedStore.open(
            directory, config, settings, files=files, clock=clock, network=parts.of(TcpNetwork)(), parts=parts
        )
        try:
            self._operations = Operations(self._node)
            self._clients = ClientServer(listen, self._operations, parts)
        except BaseException:
            self._node.close()
            raise
        self.address = self._clients.address
        self._node.start()

    @property
    def ha_address(self) -> str:
        """The address at which replicas connect."""
        return self._node.ha_address

    def status(self) -> Answer:
        """Return the status of the node and of its store."""
        return self._operations.status()

    def close(self) -> str | None:
        """End the node; return why its end is not a clean one, or None."""
        self._clients.close()
        self._node.close()
        return self._node.store.read_only_reason


def _check(config: MessageStoreConfig, settings: ReplicationSettings, listen: str, *, may_leave_loopback: bool) -> None:
    if config.broker_role is BrokerRole.SLAVE and not settings.ha_master_address:
        raise BadConfig("master", "", "a SLAVE needs the address of its master")
    for address in (listen, settings.ha_listen_address, settings.ha_master_address):
        if address:
            host_and_port(address)
    require_loopback("listen", listen, "clients are served on loopback only; use a tunnel for others")
    for peer in settings.peers:
        if not _is_address(peer):
            raise BadConfig("peers", peer, "use IPv4 addresses without a port, as the listener sees them")
    if not may_leave_loopback:
        require_loopback("ha_listen", settings.ha_listen_address, "allow the network and name the peers")
    elif not settings.peers and not _is_loopback(_host(settings.ha_listen_address)):
        raise BadConfig("peers", (), "name the addresses of the replicas; a listener off loopback has to know them")


def require_loopback(name: str, address: str, remedy: str) -> None:
    """Raise BadConfig unless an address is on loopback."""
    if not _is_loopback(_host(address)):
        raise BadConfig(name, address, remedy)


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _is_loopback(host: str) -> bool:
    return host in ("", "localhost") or (_is_address(host) and IPv4Address(host).is_loopback)


def _is_address(text: str) -> bool:
    """Return whether a text is an IPv4 address, as links are IPv4."""
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
