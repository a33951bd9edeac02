"""One run: a `Scenario` and a seed in, a `Trace` out. Equal arguments give equal traces, on any day and in any process.

The store is found with its first log file in place and the files behind it asked for as the allocation policy says.
After the last message it runs on until everything is durable. Left out, beside what the device leaves out: producers
that do not wait for the disk (WAIT=false), answers that time out (`syncFlushTimeout`), and giving up on a file that is
not ready within 5 s.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment

from impl.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from sim import actors
from sim.device import Device, DeviceTimes
from sim.distributions import Int64s
from sim.log import BLANK_BYTES, Log
from sim.probe import Probe, Rows
from sim.streams import Draws, stream
from sim.workload import ClosedLoop, OpenPoisson, Workload

__all__ = [
    "ALLOCATION_DTYPE",
    "FLUSH_DTYPE",
    "MESSAGES_MAX",
    "ROLL_DTYPE",
    "ImpossibleScenario",
    "Scenario",
    "Trace",
    "run",
]

MESSAGES_MAX = 20_000_000
"""Messages that one run may hold: eight columns of 8 bytes each are 1.2 GiB, and summaries take as much again twice."""
NS_PER_S = 1_000_000_000


def _columns(names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in names.split()])


FLUSH_DTYPE = _columns("round start_ns end_ns file_index from_offset to_offset messages device_bytes")
"""One row per sync of one file, in time order; a round of several files has several rows."""
ROLL_DTYPE = _columns("file_index row asked_ns ready_ns")
"""One row per turn to a new file; the record `row` waited ready_ns - asked_ns for it, which may be 0."""
ALLOCATION_DTYPE = _columns("file_index requested_ns start_ns ready_ns")
"""One row per file that became ready while the run lasted."""


class ImpossibleScenario(ValueError):
    """The parts of a scenario do not go together; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything a run depends on but the seed. `messages` and `duration_ns` both end the load; one may be None."""

    flush: FlushPolicy
    allocation: AllocationPolicy
    device: DeviceTimes
    workload: Workload
    file_bytes: int = 1 << 30
    """`mappedFileSizeCommitLog`."""
    messages: int | None = None
    duration_ns: int | None = None

    def __post_init__(self) -> None:
        largest = self.workload.sizes.largest_bytes
        if largest + BLANK_BYTES > self.file_bytes:
            raise ImpossibleScenario(
                f"a record of {largest} bytes does not fit a log file of {self.file_bytes} bytes, "
                f"which keeps {BLANK_BYTES} bytes for its end"
            )
        if self.messages is None and self.duration_ns is None:
            raise ImpossibleScenario("a run needs an end: a number of messages or a duration")
        if min(self.messages or 1, self.duration_ns or 1) < 1 or 0 in (self.messages, self.duration_ns):
            raise ImpossibleScenario("a run needs at least one message and some time")
        expected = self.expected_messages
        if expected == inf:
            raise ImpossibleScenario("producers that need no time at all would send for ever; bound the messages")
        if expected > MESSAGES_MAX:
            raise ImpossibleScenario(f"about {expected:.3g} messages are too many for one run; at most {MESSAGES_MAX}")

    @property
    def expected_messages(self) -> float:
        """How many messages the run will have, about; a bound from above for a closed loop."""
        counted = inf if self.messages is None else float(self.messages)
        if self.duration_ns is None:
            return counted
        if isinstance(self.workload, OpenPoisson):
            return min(counted, self.workload.rate_per_s * self.duration_ns / NS_PER_S)
        lap_ns = self.workload.think.mean_ns + self.device.copy_ns(self.workload.sizes.smallest_bytes)
        if self.flush.answers_after_flush(wait_store_msg_ok=True):
            lap_ns += self.device.sync.mean_ns
        return min(counted, self.workload.producers * self.duration_ns / lap_ns if lap_ns else inf)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What happened. Row i of the columns is the i-th message to arrive; all times are ns since the start."""

    scenario: Scenario
    seed: int
    arrival_ns: Int64s
    start_ns: Int64s
    """When its put got the lock."""
    written_ns: Int64s
    """When it was in the page cache and the lock free again."""
    put_ns: Int64s
    """When its producer had the answer."""
    durable_ns: Int64s
    """When the sync that covers it returned."""
    offset: Int64s
    size: Int64s
    producer: Int64s
    """Number of the producer in a closed loop, else 0."""
    flushes: NDArray[np.void] = field(repr=False)
    """Rows of FLUSH_DTYPE."""
    rolls: NDArray[np.void] = field(repr=False)
    """Rows of ROLL_DTYPE."""
    allocations: NDArray[np.void] = field(repr=False)
    """Rows of ALLOCATION_DTYPE."""

    @property
    def messages(self) -> int:
        """How many messages were sent, all of them answered and durable."""
        return len(self.size)

    @property
    def load_ns(self) -> int:
        """How long the load lasted: until the last message was written."""
        return int(self.written_ns[-1]) if self.messages else 0

    def digest(self) -> str:
        """Return the SHA-256 of all columns and rows."""
        hasher = hashlib.sha256()
        for name in (*Log.COLUMNS, "put_ns", "flushes", "rolls", "allocations"):
            hasher.update(getattr(self, name).tobytes())
        return hasher.hexdigest()


def run(scenario: Scenario, seed: int, *, probe: Probe | None = None) -> Trace:
    """Simulate `scenario`. Cost: some microseconds per flush and per roll, tens of nanoseconds per open message.

    A closed loop costs some microseconds per message. `probe` is told what happens as well.
    """
    env = Environment()
    rows = Rows()
    log = _log(env, scenario, seed)
    _start_actors(env, log, scenario, seed, rows if probe is None else _Both(rows, probe))
    env.run(until=log.settled)
    columns = log.columns()
    waits = scenario.flush.answers_after_flush(wait_store_msg_ok=True)
    return Trace(
        scenario=scenario,
        seed=seed,
        **columns,
        put_ns=columns["durable_ns" if waits else "written_ns"].copy(),
        flushes=_table(rows.flushes, FLUSH_DTYPE),
        rolls=_table(rows.rolls, ROLL_DTYPE),
        allocations=_table(rows.allocations, ALLOCATION_DTYPE),
    )


def _log(env: Environment, scenario: Scenario, seed: int) -> Log:
    warm_up = scenario.allocation.warm_up
    return Log(
        env,
        Device(scenario.device, stream(seed, "put lock")),
        file_bytes=scenario.file_bytes,
        smallest_bytes=scenario.workload.sizes.smallest_bytes,
        rows=scenario.messages if scenario.messages is not None else 1 << 12,
        warmed=warm_up is not WarmUp.NONE,
        forced=warm_up is WarmUp.TOUCH_AND_FORCE and scenario.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH,
    )


def _start_actors(env: Environment, log: Log, scenario: Scenario, seed: int, probe: Probe) -> None:
    """Start the lock before those who use it; the order decides nothing but ties."""
    files = actors.Files(env)
    flush, allocation, file_bytes = scenario.flush, scenario.allocation, scenario.file_bytes
    env.process(actors.put_lock(env, log, files, policy=allocation, probe=probe))
    allocating = Device(scenario.device, stream(seed, "allocator"))
    env.process(
        actors.allocator(env, files, allocating, policy=allocation, flush=flush, file_bytes=file_bytes, probe=probe)
    )
    flushing = Device(scenario.device, stream(seed, "flusher"))
    sync = flush.flush_disk_type is FlushDiskType.SYNC_FLUSH
    flusher = actors.group_commit_flusher if sync else actors.timed_flusher
    env.process(flusher(env, log, flushing, policy=flush, probe=probe))
    match scenario.workload:
        case OpenPoisson() as workload:
            env.process(
                actors.open_producers(
                    env,
                    log,
                    workload=workload,
                    messages=scenario.messages,
                    duration_ns=scenario.duration_ns,
                    arrival_rng=stream(seed, "arrivals"),
                    size_rng=stream(seed, "sizes"),
                )
            )
        case ClosedLoop() as workload:
            turnstile = actors.Turnstile(scenario.messages, workload.producers)
            for number in range(workload.producers):
                env.process(
                    actors.closed_producer(
                        env,
                        log,
                        turnstile,
                        number=number,
                        workload=workload,
                        policy=flush,
                        duration_ns=scenario.duration_ns,
                        think=Draws(workload.think, stream(seed, f"think {number}")),
                        size_rng=stream(seed, f"sizes {number}"),
                    )
                )


@dataclass(frozen=True, slots=True)
class _Both:
    """A probe that tells two."""

    first: Probe
    second: Probe

    def flushed(self, row: tuple[int, int, int, int, int, int, int, int]) -> None:
        self.first.flushed(row)
        self.second.flushed(row)

    def rolled(self, row: tuple[int, int, int, int]) -> None:
        self.first.rolled(row)
        self.second.rolled(row)

    def allocated(self, row: tuple[int, int, int, int]) -> None:
        self.first.allocated(row)
        self.second.allocated(row)


def _table(rows: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> NDArray[np.void]:
    return np.array(rows, dtype=dtype)
