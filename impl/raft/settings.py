"""The settings of a member that runs as a process."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal

from tornpage.impl.errors import BadConfig
from tornpage.impl.raft.raft_log import DATA_FILE_BYTES, INDEX_FILE_BYTES
from tornpage.impl.replication.tcp import host_and_port

__all__ = ["MEMBERS_MAX", "RaftSettings"]

MEMBERS_MAX = 7
_COUNTS = (
    "heartbeat_interval",
    "election_timeout_min",
    "election_timeout_max",
    "answer_timeout",
    "reconnect_interval",
    "silence_max",
    "connections_max",
    "batch_bytes_max",
    "body_bytes_max",
    "pending_max",
    "pending_bytes_max",
    "recent_bytes_max",
    "unsent_bytes_max",
)
_FILE_BYTES_MIN, _FILE_BYTES_MAX = 4_096, 1 << 40


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """How a member runs. Times are milliseconds of a monotonic clock.

    `peers` are the addresses of all members in the order of their numbers, this one included. Each is an IPv4
    address and a port. All members have the same list.

    A follower that has received nothing from its leader for a time between `election_timeout_min` and
    `election_timeout_max`, drawn after each message, becomes a candidate. DLedger waits 6 s.

    Raises BadConfig.
    """

    peers: tuple[str, ...]
    content: Literal["entries", "messages"] = "entries"
    """What clients use: entries of bytes, or a message store."""
    heartbeat_interval: int = 150
    election_timeout_min: int = 600
    election_timeout_max: int = 1_200
    answer_timeout: int = 2_500
    """Time after which an append that is not committed is answered UNKNOWN. `maxWaitAckTimeMs` in DLedger."""
    reconnect_interval: int = 200
    silence_max: int = 5_000
    """Time without a received byte after which a link ends."""
    connections_max: int = 32
    batch_bytes_max: int = 256 << 10
    """Bytes of entries in one message, about."""
    body_bytes_max: int = 4 << 20
    """Bytes of the body of one entry. DLedger has the same limit."""
    pending_max: int = 10_000
    """Appends without an answer. `maxPendingRequestsNum` in DLedger."""
    pending_bytes_max: int = 64 << 20
    """Bytes of their bodies."""
    recent_bytes_max: int = 4 << 20
    """Bytes of new entries in memory, of which at most twice as many are kept."""
    unsent_bytes_max: int = 8 << 20
    """Bytes that wait for one member, about; further messages to it are dropped."""
    data_file_bytes: int = DATA_FILE_BYTES
    index_file_bytes: int = INDEX_FILE_BYTES

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value < 1 << 31:
                raise BadConfig(name, value, "use a whole number, 1 to 2,147,483,647")
        if self.election_timeout_min < 2 * self.heartbeat_interval:
            remedy = "use at least twice heartbeat_interval, or one late message starts an election"
            raise BadConfig("election_timeout_min", self.election_timeout_min, remedy)
        if self.election_timeout_max <= self.election_timeout_min:
            remedy = "use more than election_timeout_min, or all members become candidates at the same time"
            raise BadConfig("election_timeout_max", self.election_timeout_max, remedy)
        if self.silence_max <= self.election_timeout_max:
            raise BadConfig("silence_max", self.silence_max, "use more than election_timeout_max")
        for name in ("data_file_bytes", "index_file_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or not _FILE_BYTES_MIN <= value <= _FILE_BYTES_MAX:
                raise BadConfig(name, value, f"use {_FILE_BYTES_MIN} bytes to 1 TiB")
        self._check_peers()

    def _check_peers(self) -> None:
        if not 1 <= len(self.peers) <= MEMBERS_MAX:
            raise BadConfig("peers", self.peers, f"a group has 1 to {MEMBERS_MAX} members")
        if len(set(self.peers)) < len(self.peers):
            raise BadConfig("peers", self.peers, "two members have the same address")
        for each in self.peers:
            try:
                host, port = host_and_port(each)
                IPv4Address(host)
            except (OSError, ValueError):
                raise BadConfig("peers", each, "use IP:PORT for each member, with an IPv4 address") from None
            if not port:
                raise BadConfig("peers", each, "use a port that the other members know, not 0")

    @property
    def entry_body_bytes_max(self) -> int:
        """The longest body that an entry can have in these files."""
        return min(self.body_bytes_max, self.data_file_bytes - 64)

    @property
    def group(self) -> str:
        """What all members have to have in common, as a text."""
        return f"{','.join(self.peers)} with {self.content} in data files of {self.data_file_bytes} bytes"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The IP address of each member."""
        return tuple(host_and_port(each)[0] for each in self.peers)
