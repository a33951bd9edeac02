"""The input of a simulation of consumers: queues, members, and the rules of the group.

Times are nanoseconds. Periods have the defaults of RocketMQ 4.9.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tornpage.impl.consumer.allocation import Strategy, averagely
from tornpage.sim.distributions import Constant, Int64s
from tornpage.sim.streams import Law, stream

__all__ = ["NS_PER_MS", "GroupScenario", "ImpossibleGroup", "Load", "Member", "SomeSlow", "draw_load", "rounded"]

NS_PER_MS = 1_000_000
_S = 1_000 * NS_PER_MS
_MS = Constant(NS_PER_MS)
MESSAGES_MAX = 5_000_000
"""The limit of messages of one run; each needs some events of SimPy."""


class ImpossibleGroup(ValueError):
    """The parts of a scenario do not fit together."""


@dataclass(frozen=True, slots=True)
class SomeSlow:
    """A share of the listener calls takes `slow_ns`, the others follow a law."""

    share: float
    slow_ns: int
    others: Law

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.slow_ns < 0:
            raise ValueError(f"a share of {self.share} calls of {self.slow_ns} ns is impossible")

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return `count` independent times."""
        return np.where(rng.random(count) < self.share, self.slow_ns, self.others.draw(rng, count))


@dataclass(frozen=True, slots=True)
class Member:
    """One client of the group. It leaves after a shutdown, or crashes; None: it stays."""

    name: str
    threads: int = 20
    """`consumeThreadMax`: listeners that run at the same time."""
    joins_ns: int = 0
    leaves_ns: int | None = None
    crashes_ns: int | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ImpossibleGroup(f"member {self.name} has {self.threads} threads")
        if self.leaves_ns is not None and self.crashes_ns is not None:
            raise ImpossibleGroup(f"member {self.name} both leaves and crashes")
        if min(self.joins_ns, self.ends_ns or self.joins_ns) < 0 or (self.ends_ns or self.joins_ns) < self.joins_ns:
            raise ImpossibleGroup(f"member {self.name} ends before it joins")

    @property
    def ends_ns(self) -> int | None:
        """When it leaves or crashes."""
        return self.leaves_ns if self.crashes_ns is None else self.crashes_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScenario:
    """Everything a run depends on except the seed.

    With `hands_over` a member gives a queue up as tornpage's library does: it waits for running listeners, stores the
    progress and releases the queue; the next owner waits for that. Without, it does as RocketMQ: it drops the queue,
    ignores later results, and the next owner begins at the progress that the broker has then.
    """

    queues: int
    members: tuple[Member, ...]
    rate_per_s: float
    """Messages of the topic, spread evenly over the queues."""
    service: Law
    """The time of one listener call, for one message."""
    duration_ns: int
    """Messages arrive until then, and the run ends then."""
    pull: Law = _MS
    """From a pull to its answer, if messages are there."""
    strategy: Strategy = averagely
    batch: int = 32
    """`pullBatchSize`."""
    prefetch: int = 1_000
    """`pullThresholdForQueue`: messages of one queue that a member caches."""
    span: int = 2_000
    """`consumeConcurrentlyMaxSpan`."""
    hold_ns: int = 15 * _S
    """`brokerSuspendMaxTimeMillis`: how long the broker holds a pull without messages."""
    pause_ns: int = 50 * NS_PER_MS
    """The pause of a pull after flow control."""
    persist_ns: int = 5 * _S
    """`persistConsumerOffsetInterval`."""
    first_persist_ns: int = 10 * _S
    rebalance_ns: int = 20 * _S
    """`rocketmq.client.rebalance.waitInterval`."""
    notice: Law | None = _MS
    """From a change of members to the rounds of the others; None: they learn of it at their next round only."""
    noticed_ns: int = 120 * _S
    """From a crash to its removal from the members. A closed connection is noticed at once."""
    hands_over: bool = True
    hand_over_ns: int = 30 * _S
    """How long a member waits for running listeners."""
    claim_ns: int = 1 * _S
    """From a refused claim of a queue to the next one."""

    def __post_init__(self) -> None:
        for name in ("queues", "batch", "prefetch", "span", "duration_ns", "persist_ns", "rebalance_ns", "claim_ns"):
            if getattr(self, name) < 1:
                raise ImpossibleGroup(f"{name} is {getattr(self, name)}; it has to be 1 or more")
        if not self.members or len({member.name for member in self.members}) < len(self.members):
            raise ImpossibleGroup("a group needs members, each with a name of its own")
        if not 0 < self.rate_per_s * self.duration_ns / 1e9 < MESSAGES_MAX:
            raise ImpossibleGroup(f"a load of {self.rate_per_s:g} messages/s needs 1 to {MESSAGES_MAX} messages")


@dataclass(frozen=True, slots=True)
class Load:
    """The messages of each queue: when each arrives, and how long its listener runs."""

    arrivals_ns: tuple[Int64s, ...]
    service_ns: tuple[Int64s, ...]

    @property
    def messages(self) -> int:
        """The number of all messages."""
        return sum(map(len, self.arrivals_ns))


def draw_load(scenario: GroupScenario, seed: int) -> Load:
    """Return the messages of a scenario: a Poisson stream for each queue."""
    per_queue = scenario.rate_per_s / scenario.queues
    mean = per_queue * scenario.duration_ns / 1e9
    arrivals, service = [], []
    for queue in range(scenario.queues):
        random = stream(seed, f"arrivals of queue {queue}")
        count = int(random.poisson(mean))
        arrivals.append(np.sort(random.integers(0, scenario.duration_ns, count, dtype=np.int64)))
        service.append(scenario.service.draw(stream(seed, f"service of queue {queue}"), count))
    return Load(tuple(arrivals), tuple(service))


def rounded(load: Load, unit_ns: int) -> Load:
    """Return a load with times in multiples of a unit; listeners run one unit or more."""

    def up(times: Sequence[Int64s], least: int) -> tuple[Int64s, ...]:
        return tuple(np.maximum(-(-each // unit_ns), least) * unit_ns for each in times)

    return Load(up(load.arrivals_ns, 0), up(load.service_ns, 1))
