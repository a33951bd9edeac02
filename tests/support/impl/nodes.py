"""Nodes over loopback, stepped by the test."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.replication.link import Network
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.replication.tcp import TcpNetwork

__all__ = ["FILE_BYTES", "PATIENCE_S", "free_address", "node_config", "open_node", "step_until"]

FILE_BYTES = 16_384
PATIENCE_S = 30.0


def free_address() -> str:
    """Return an address of loopback at which nothing listens."""
    listener = TcpNetwork().listen("127.0.0.1:0")
    listener.close()
    return listener.address


def node_config(role: BrokerRole) -> MessageStoreConfig:
    """Return the configuration of a small node."""
    return MessageStoreConfig(
        mapped_file_size_commit_log=FILE_BYTES,
        broker_role=role,
        mapped_files_ahead=0,
        mapped_file_size_consume_queue=2_000,
        max_hash_slot_num=16,
        max_index_num=64,
    )


def open_node(
    directory: Path,
    role: BrokerRole,
    address: str,
    *,
    network: Network | None = None,
    parts: Parts | None = None,
    **settings: Any,
) -> ReplicatedStore:
    """Open a node: a master listens at the address, a slave connects to it."""
    is_slave = role is BrokerRole.SLAVE
    addresses: dict[str, Any] = {"ha_master_address": address} if is_slave else {"ha_listen_address": address}
    return ReplicatedStore.open(
        str(directory),
        node_config(role),
        ReplicationSettings(reconnect_interval=10, poll_interval=1, **addresses, **settings),
        files=OsFiles(),
        clock=lambda: time.time_ns() // 1_000_000,
        network=network or TcpNetwork(),
        parts=parts,
    )


def step_until(holds: Callable[[], bool], *nodes: ReplicatedStore) -> None:
    """Step nodes in turn until a condition holds."""
    limit = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < limit
        for node in nodes:
            node.step(time.monotonic_ns() // 1_000_000)
