"""The input of a simulation of a Raft group.

These are members, disks, links, timers, load and kills.

Times are nanoseconds. The defaults of the timers are those of `impl/raft`.
"""

from dataclasses import dataclass
from typing import Literal

from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.stalls import StallLaw
from tornpage.sim.distributions import Constant, Distribution
from tornpage.sim.pair import Link

__all__ = ["NS_PER_MS", "ImpossibleRaftGroup", "RaftScenario"]

NS_PER_MS = 1_000_000
MEMBERS_MAX = 9
_TURN = Constant(50_000)
MESSAGES_MAX = 1_000_000


class ImpossibleRaftGroup(ValueError):
    """The parts of a scenario do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftScenario:
    """Everything a run depends on except the seed.

    With `acknowledge` "durable" members confirm and count entries after a sync. With "received" they do so after a copy
    to the page cache, and sync every `flush_ns`, as DLedger.

    A load is either open, with `rate_per_s` messages of a Poisson stream, or closed, with `clients` that put one
    message after the other.
    """

    members: int
    link: Link
    device: DeviceTimes
    duration_ns: int
    stalls: StallLaw | None = None
    """Stalls of each disk, apart from those of the others."""
    acknowledge: Literal["durable", "received"] = "durable"
    flush_ns: int = 10 * NS_PER_MS
    """`flushFileInterval` of DLedger."""
    rate_per_s: float = 0.0
    clients: int = 0
    size_bytes: int = 1_024
    batch_bytes: int = 256 << 10
    """The size of the entries of one message and of one round of the leader, about."""
    turn: Distribution = _TURN
    """The wake-up of the thread of a member before each round."""
    heartbeat_ns: int = 150 * NS_PER_MS
    election_min_ns: int = 600 * NS_PER_MS
    election_max_ns: int = 1_200 * NS_PER_MS
    """A member without a message of a leader for a time between these two becomes a candidate."""
    kill_after_ns: int | None = None
    """From the first acknowledged put of a leader to its kill, on average; None: no member is killed."""
    restart_ns: int = 2_000 * NS_PER_MS
    """From the kill of a member to its restart."""

    def __post_init__(self) -> None:
        if not 1 <= self.members <= MEMBERS_MAX:
            raise ImpossibleRaftGroup(f"{self.members} members; use 1 to {MEMBERS_MAX}")
        for name in ("duration_ns", "flush_ns", "size_bytes", "batch_bytes", "heartbeat_ns", "restart_ns"):
            if getattr(self, name) < 1:
                raise ImpossibleRaftGroup(f"{name} is {getattr(self, name)}; it has to be 1 or more")
        if not self.heartbeat_ns < self.election_min_ns <= self.election_max_ns:
            raise ImpossibleRaftGroup("elections need longer time-outs than heartbeats, in ascending order")
        if bool(self.rate_per_s) == bool(self.clients) or self.rate_per_s < 0 or self.clients < 0:
            raise ImpossibleRaftGroup("a load has either a rate or clients")
        if self.rate_per_s * self.duration_ns / 1e9 > MESSAGES_MAX:
            raise ImpossibleRaftGroup(f"the load has more than {MESSAGES_MAX} messages")
        if self.kill_after_ns is not None and self.members < 3:
            raise ImpossibleRaftGroup("a group needs 3 members to continue after a kill")
