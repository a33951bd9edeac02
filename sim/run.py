"""One run: from a `Scenario` and a seed to a `Trace`; equal arguments give equal traces.

At the start the first log file exists, and the files after it are requested by the allocation policy. After the last
message the run continues until everything is durable. Left out, beside what the device leaves out, are producers that
do not wait for the disk (WAIT=false), answers that time out (`syncFlushTimeout`), and giving up on a file that is not
ready within 5 s.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.config.policy import FlushDiskType, FlushPolicy
from tornpage.sim.actors.answers import answers_ns
from tornpage.sim.actors.committer import committer
from tornpage.sim.actors.flushers import group_commit_flusher, timed_flusher, woken_flusher
from tornpage.sim.actors.preallocation import Files, allocator, put_lock
from tornpage.sim.actors.producers import (
    Progress,
    Turnstile,
    arrivals,
    closed_producer,
    open_producers,
    watched,
    without_progress,
)
from tornpage.sim.actors.writeback import writeback
from tornpage.sim.device.device import Device
from tornpage.sim.device.put_table import Serving
from tornpage.sim.device.stalls import Stalls
from tornpage.sim.distributions import Int64s
from tornpage.sim.events.probe import Probe, Rows
from tornpage.sim.log.log import Log
from tornpage.sim.log.pooled_log import Buffers, PooledLog
from tornpage.sim.results.trace import ALLOCATION_DTYPE, COMMIT_DTYPE, FLUSH_DTYPE, ROLL_DTYPE, WRITEBACK_DTYPE, Trace
from tornpage.sim.scenario import Scenario
from tornpage.sim.streams import Draws, stream
from tornpage.sim.workload import ClosedLoop, OpenLoad

__all__ = ["open_arrivals", "run"]


def run(scenario: Scenario, seed: int, *, probe: Probe | None = None, progress: Progress = without_progress) -> Trace:
    """Simulate `scenario`.

    Cost: some microseconds per flush and per roll, tens of nanoseconds per open message, some microseconds per message
    of a closed loop. `probe` also receives the events, and `progress` now and then the number of messages sent.
    """
    env = Environment()
    rows = Rows()
    buffers = None if scenario.pool is None else Buffers(scenario.pool.buffers)
    log = _log(env, scenario, seed, buffers)
    _start_actors(env, log, buffers, scenario, seed, rows if probe is None else _Both(rows, probe), progress)
    env.run(until=log.settled)
    columns = {"committed_ns": log.written_ns[: log.arrived_rows].copy(), **log.columns()}
    flushes = _table(rows.flushes, FLUSH_DTYPE)
    return Trace(
        scenario=scenario,
        seed=seed,
        **columns,
        put_ns=answers_ns(scenario, seed, columns, flushes),
        flushes=flushes,
        rolls=_table(rows.rolls, ROLL_DTYPE),
        allocations=_table(rows.allocations, ALLOCATION_DTYPE),
        commits=_table(rows.commits, COMMIT_DTYPE),
        writebacks=_table(rows.writebacks, WRITEBACK_DTYPE),
    )


def _log(env: Environment, scenario: Scenario, seed: int, buffers: Buffers | None) -> Log:
    options: dict[str, Any] = {
        "file_bytes": scenario.file_bytes,
        "smallest_bytes": scenario.workload.sizes.smallest_bytes,
        "rows": scenario.messages if scenario.messages is not None else 1 << 12,
        "warmed": scenario.is_warmed,
        "forced": scenario.is_forced,
        "serving": None if scenario.puts is None else Serving(scenario.puts, stream(seed, "serving")),
    }
    device = Device(scenario.put_times, stream(seed, "put lock"))
    return Log(env, device, **options) if buffers is None else PooledLog(env, device, buffers=buffers, **options)


def _start_actors(
    env: Environment,
    log: Log,
    buffers: Buffers | None,
    scenario: Scenario,
    seed: int,
    probe: Probe,
    progress: Progress,
) -> None:
    """Start the actors.

    Ranks (`sim.events.turns`) decide which acts first at one moment, not the order of starts.
    """
    pool = scenario.pool
    files = Files(env, buffers, fast_fail=pool is not None and pool.fast_fail)
    if pool is not None:
        assert isinstance(log, PooledLog)
        committing = Device(scenario.device, stream(seed, "committer"))
        env.process(committer(env, log, committing, policy=pool.commit, probe=probe))
    flush, allocation, file_bytes = scenario.flush, scenario.allocation, scenario.file_bytes
    env.process(put_lock(env, log, files, policy=allocation, probe=probe))
    allocating = Device(scenario.device, stream(seed, "allocator"))
    env.process(allocator(env, files, allocating, policy=allocation, flush=flush, file_bytes=file_bytes, probe=probe))
    if scenario.writeback is not None:
        env.process(writeback(env, log, scenario.device, settings=scenario.writeback, probe=probe))
    stalls = None if scenario.stalls is None else Stalls(scenario.stalls, stream(seed, "disk stalls"))
    flushing = Device(scenario.device, stream(seed, "flusher"), stalls)
    env.process(_flusher(flush)(env, log, flushing, policy=flush, probe=probe))
    workload = scenario.workload
    if isinstance(workload, ClosedLoop):
        turnstile = Turnstile(scenario.messages, workload.producers, progress)
        for number in range(workload.producers):
            env.process(
                closed_producer(
                    env,
                    log,
                    turnstile,
                    number=number,
                    policy=flush,
                    duration_ns=scenario.duration_ns,
                    think=Draws(workload.think, stream(seed, f"think {number}")),
                    sizes=Draws(workload.sizes, stream(seed, f"sizes {number}")),
                )
            )
    else:
        blocks = watched(open_arrivals(scenario, workload, seed), progress)
        env.process(open_producers(env, log, blocks=blocks))


def open_arrivals(scenario: Scenario, workload: OpenLoad, seed: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Return the blocks of arrivals and sizes of an open load."""
    return arrivals(
        workload,
        messages=scenario.messages,
        duration_ns=scenario.duration_ns,
        arrival_rng=stream(seed, "arrivals"),
        size_rng=stream(seed, "sizes"),
    )


def _flusher(policy: FlushPolicy) -> Callable[..., ProcessGenerator]:
    if policy.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        return group_commit_flusher
    return timed_flusher if policy.flush_commit_log_timed else woken_flusher


@dataclass(frozen=True, slots=True)
class _Both:
    """A probe that passes everything to two probes."""

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

    def committed(self, row: tuple[int, int, int, int, int, int, int]) -> None:
        self.first.committed(row)
        self.second.committed(row)

    def written_back(self, row: tuple[int, int, int, int]) -> None:
        self.first.written_back(row)
        self.second.written_back(row)


def _table(rows: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> NDArray[np.void]:
    return np.array(rows, dtype=dtype)
