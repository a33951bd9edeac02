"""The input of a simulation: everything a run depends on except the seed."""

from dataclasses import asdict, dataclass, replace
from math import inf

from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.put_table import PutTable
from tornpage.sim.device.stalls import StallLaw
from tornpage.sim.distributions import Distribution
from tornpage.sim.log.log import BLANK_BYTES
from tornpage.sim.pair import Pair
from tornpage.sim.workload import ClosedLoop, Workload

__all__ = ["MESSAGES_MAX", "SHIPPED_SCRIPT", "ImpossibleScenario", "Pool", "Replica", "Scenario", "Writeback"]

GIB = 1 << 30

BUFFERS_TO_ROLL = 2
DEFAULT_COMMIT = CommitPolicy()

MESSAGES_MAX = 20_000_000
"""The limit of messages of one run.

Eight columns of 8 bytes each are 1.2 GiB, and summaries take twice as much again.
"""


SETTING_MAX = 2**31 - 1
"""The greatest value of a broker's settings and of a record's length: numbers of 32 bits."""
FILE_BYTES_MAX = 1 << 42
"""Far more than a broker allows: formulas need loads that fit one file."""

SPAN_MAX_NS = 10**17
"""Three years: the limit of a run and of each wait, so that times fit 64 bits."""


class ImpossibleScenario(ValueError):
    """The parts of a scenario do not fit together; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A transient store pool.

    Puts go to buffers of one file each, which the committer copies to the page cache.
    """

    buffers: int = 5
    """`transientStorePoolSize`."""
    commit: CommitPolicy = DEFAULT_COMMIT
    fast_fail: bool = False
    """`fastFailIfNoBufferInStorePool`: refuse a put if its file would have no buffer."""

    def __post_init__(self) -> None:
        if self.buffers < 1:
            raise ValueError(f"a pool of {self.buffers} buffers is impossible")
        if self.fast_fail and self.buffers < BUFFERS_TO_ROLL:
            raise ValueError(
                "a pool that fails fast needs 2 buffers: the file in use keeps one, the next needs another"
            )

    @property
    def name(self) -> str:
        """The pool in a few words: "5 buffers, 200 ms, 4 pages, 200 ms", then "fail fast"."""
        commit = self.commit
        return (
            f"{self.buffers} buffers, {commit.commit_interval_commit_log} ms, "
            f"{commit.commit_commit_log_least_pages} pages, {commit.commit_commit_log_thorough_interval} ms"
            f"{', fail fast' if self.fast_fail else ''}"
        )


@dataclass(frozen=True, slots=True)
class Replica:
    """A slave for whose answer a put waits (`brokerRole=SYNC_MASTER`).

    It receives what is in the master's page cache, in order, whether or not the master has flushed it. Source:
    `HAConnection`, `GroupTransferService`.
    """

    delay: Distribution
    """From the page cache of the master to the slave's answer at the master."""

    @property
    def mean_ns(self) -> float:
        """The mean of the delay."""
        return self.delay.mean_ns


@dataclass(frozen=True, slots=True)
class Writeback:
    """Settings of the kernel (`/proc/sys/vm`).

    The defaults are those of the measured machine (docs/disks/presets.md).
    """

    wake_ms: int = 5_000
    """`dirty_writeback_centisecs`: how often the age of pages is checked."""
    expire_ms: int = 30_000
    """`dirty_expire_centisecs`: the age from which a dirty page is written."""
    background_bytes: int = round(2.31 * GIB)
    """`dirty_background_ratio` of the available memory: above it, writing begins at once."""

    def __post_init__(self) -> None:
        for name, least in (("wake_ms", 1), ("expire_ms", 0), ("background_bytes", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; it has to be {least} or more")


SHIPPED_SCRIPT = Writeback(wake_ms=3_600_000, background_bytes=12 * GIB)
"""The settings of RocketMQ's system script: once an hour, and half of 24 GiB of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything a run depends on except the seed.

    `messages` and `duration_ns` both end the load. One may be None.
    """

    flush: FlushPolicy
    allocation: AllocationPolicy
    device: DeviceTimes
    workload: Workload
    file_bytes: int = 1 << 30
    """`mappedFileSizeCommitLog`."""
    pool: Pool | None = None
    """`transientStorePoolEnable`; None: puts go to the page cache."""
    replica: Replica | Pair | None = None
    """A second copy; a `Pair` has a link, rounds and a disk of its own."""
    writeback: Writeback | None = None
    """The kernel's own write-back; None: none."""
    puts: PutTable | None = None
    """Measured begins and durations of one thread's puts; None: those of the device."""
    stalls: StallLaw | None = None
    """Times at which the disk completes no request; None: only the syncs of the device."""
    messages: int | None = None
    duration_ns: int | None = None

    def __post_init__(self) -> None:
        self._require_bounds()
        largest = self.workload.sizes.largest_bytes
        if largest + BLANK_BYTES > self.file_bytes:
            raise ImpossibleScenario(
                f"a record of {largest} bytes does not fit a log file of {self.file_bytes} bytes, "
                f"which keeps {BLANK_BYTES} bytes for its end"
            )
        if self.pool is not None and self.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            raise ImpossibleScenario("SYNC_FLUSH leaves a transient store pool unused: take one of the two away")
        if self.writeback is not None and (self.pool is not None or self.is_warmed):
            raise ImpossibleScenario("kernel write-back is simulated without a pool and without warm-up only")
        if self.puts is not None and isinstance(self.workload, ClosedLoop):
            raise ImpossibleScenario("measured puts are those of one thread, and closed producers have one each")
        if self.replica is not None and isinstance(self.workload, ClosedLoop):
            raise ImpossibleScenario("only open producers can wait for a replica, closed ones wait for this store")
        if self.messages is None and self.duration_ns is None:
            raise ImpossibleScenario("a run needs an end: a number of messages or a duration")
        if min(self.messages or 1, self.duration_ns or 1) < 1 or 0 in (self.messages, self.duration_ns):
            raise ImpossibleScenario("a run needs at least one message and some time")
        expected = self.expected_messages
        if expected == inf:
            raise ImpossibleScenario("producers that need no time at all would send forever; bound the messages")
        if expected > MESSAGES_MAX:
            raise ImpossibleScenario(f"about {expected:.3g} messages are too many for one run; at most {MESSAGES_MAX}")

    def _require_bounds(self) -> None:
        """Refuse numbers that no broker allows and times beyond 64 bits.

        Raises ImpossibleScenario.
        """
        commit = () if self.pool is None else (self.pool.commit,)
        settings = {name: value for policy in (self.flush, *commit) for name, value in asdict(policy).items()}
        settings |= {} if self.pool is None else {"transient_store_pool_size": self.pool.buffers}
        settings |= {"the largest record": self.workload.sizes.largest_bytes}
        for name, value in settings.items():
            if isinstance(value, int) and value > SETTING_MAX:
                raise ImpossibleScenario(f"{name} is {value}; a broker takes {SETTING_MAX} at most")
        if self.file_bytes > FILE_BYTES_MAX:
            raise ImpossibleScenario(f"a log file of {self.file_bytes} bytes is impossible; {FILE_BYTES_MAX} at most")
        replica_ns = 0.0 if self.replica is None else self.replica.mean_ns
        kernel_ms = 0 if self.writeback is None else max(self.writeback.wake_ms, self.writeback.expire_ms)
        spans = {
            "the duration": self.duration_ns or 0,
            "the load": self.workload.lasts_ns(1 if self.duration_ns or not self.messages else self.messages),
            "the answer of a replica": replica_ns,
            "a wait of the kernel's write-back": kernel_ms * 1_000_000,
        }
        for what, span_ns in spans.items():
            if span_ns > SPAN_MAX_NS:
                at_most = f"{SPAN_MAX_NS / 1e9:.3g} s at most"
                raise ImpossibleScenario(f"{what} would last {span_ns / 1e9:.3g} s; {at_most}, so give a shorter one")

    @property
    def expected_messages(self) -> float:
        """The approximate number of messages of the run; an upper bound for a closed loop."""
        counted = inf if self.messages is None else float(self.messages)
        if self.duration_ns is None:
            return counted
        if not isinstance(self.workload, ClosedLoop):
            return min(counted, self.workload.expected_messages(self.duration_ns))
        lap_ns = self.workload.think.mean_ns + self.put_times.copy_ns(self.workload.sizes.smallest_bytes)
        if self.flush.answers_after_flush(wait_store_msg_ok=True):
            lap_ns += self.device.sync.mean_ns
        return min(counted, self.workload.producers * self.duration_ns / lap_ns if lap_ns else inf)

    @property
    def put_times(self) -> DeviceTimes:
        """The device as puts meet it: puts that wait for the disk make a request of group commit."""
        if self.device.waiting_put is None or not self.answers_after_flush:
            return self.device
        return replace(self.device, put=self.device.waiting_put)

    @property
    def is_warmed(self) -> bool:
        """Whether files come with every page touched."""
        return self.allocation.warm_up is not WarmUp.NONE

    @property
    def is_forced(self) -> bool:
        """Whether files come with every page on the disk."""
        sync = self.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH
        return sync and self.allocation.warm_up is WarmUp.TOUCH_AND_FORCE

    @property
    def answers_after_flush(self) -> bool:
        """Whether producers wait for the disk."""
        return self.flush.answers_after_flush(wait_store_msg_ok=True)
