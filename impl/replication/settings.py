"""The settings of replication.

Names that begin with `ha_` are those of RocketMQ, in snake case.
"""

from dataclasses import dataclass

from tornpage.impl.errors import BadConfig

__all__ = ["ReplicationSettings"]

TRANSFER_BATCH_BYTES_MAX = 1 << 20
_COUNTS = (
    "ha_send_heartbeat_interval",
    "connections_max",
    "reconnect_interval",
    "poll_interval",
    "in_sync_replicas",
)


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """How a node replicates. Times are milliseconds of a monotonic clock.

    `ha_listen_address` is where a master listens, `ha_master_address` where a slave connects. A master accepts peers
    whose address is in `peers`; an empty tuple accepts every peer that reaches the listener, so keep the listener on
    loopback then.

    A put of a SYNC_MASTER waits until `in_sync_replicas` replicas have confirmed it. With `acknowledge` "received" a
    replica confirms what is in its page cache, with "durable" what it has synced. `send_flushed_only` sends only bytes
    that the master has synced.

    A slave whose log ends before the first byte that the master still has stops with a finding. With
    `discard_when_gone` it drops its log and begins where the log of the master begins.

    Raises BadConfig.
    """

    protocol: str = "tornpage"
    """Or "4.9.3", for a Java broker as the peer (impl/replication/classic.py)."""
    ha_listen_address: str = "127.0.0.1:10912"
    ha_master_address: str = ""
    ha_transfer_batch_size: int = 131_072
    """Bytes of the log in one frame, at most. 32 KiB in RocketMQ."""
    ha_send_heartbeat_interval: int = 5_000
    """Time without a sent byte after which a node sends a heartbeat."""
    ha_housekeeping_interval: int = 20_000
    """Time without a received byte after which a node ends the link."""
    peers: tuple[str, ...] = ()
    connections_max: int = 64
    reconnect_interval: int = 1_000
    """Time between two attempts of a slave to connect."""
    poll_interval: int = 5
    """Time between two rounds of the thread of a node."""
    in_sync_replicas: int = 1
    acknowledge: str = "received"
    send_flushed_only: bool = False
    discard_when_gone: bool = False

    def __post_init__(self) -> None:
        for name in (
            "ha_send_heartbeat_interval",
            "connections_max",
            "reconnect_interval",
            "poll_interval",
            "in_sync_replicas",
        ):
            if getattr(self, name) < 1:
                raise BadConfig(name, getattr(self, name), "use a number of at least 1")
        if not 1 <= self.ha_transfer_batch_size <= TRANSFER_BATCH_BYTES_MAX:
            remedy = f"use 1 to {TRANSFER_BATCH_BYTES_MAX} bytes"
            raise BadConfig("ha_transfer_batch_size", self.ha_transfer_batch_size, remedy)
        if self.ha_housekeeping_interval <= self.ha_send_heartbeat_interval:
            remedy = "use more than ha_send_heartbeat_interval, or idle links end"
            raise BadConfig("ha_housekeeping_interval", self.ha_housekeeping_interval, remedy)
        if self.protocol not in ("tornpage", "4.9.3"):
            raise BadConfig("protocol", self.protocol, 'use "tornpage" or "4.9.3"')
        if self.protocol == "4.9.3" and self.acknowledge == "durable":
            remedy = "a slave of 4.9.3 says what it has received, not what is durable"
            raise BadConfig("acknowledge", self.acknowledge, remedy)
        if self.acknowledge not in ("received", "durable"):
            raise BadConfig("acknowledge", self.acknowledge, 'use "received" or "durable"')
