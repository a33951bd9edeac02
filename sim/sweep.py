"""A grid of policies and loads: points are values, `run_point` is a pure function of one.

The rows of a point do not depend on the process that runs it. A point can be pickled and sent to another process. All
points of a grid share their seeds, so that policies are compared under the same arrivals and sizes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.actors.producers import Progress, without_progress
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.results import alarms, crashes, rows, tables
from tornpage.sim.results.analytic import Estimate, put_law
from tornpage.sim.results.trace import Trace
from tornpage.sim.run import run
from tornpage.sim.scenario import Pool, Replica, Scenario, Writeback
from tornpage.sim.workload import ClosedLoop, Workload

__all__ = ["Cell", "Point", "PointTables", "flush_name", "grid", "run_point", "run_points", "run_tables", "simulate"]

WORTH_COMPILING = 2_000_000
"""The number of messages of a grid from which the compiled engine is loaded.

Loading takes a second, and far longer the first time.
"""
Cell = str | int | float
Row = dict[str, Cell]
TablesProgress = Callable[[int, str], None]
"""Called with the number of messages sent, and the name of the table being made."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a grid; `index` is its place in it."""

    index: int
    scenario: Scenario
    seed: int
    crashes: int = 0
    """The number of crashes at moments drawn evenly from the load, besides `crash_at_ns`."""
    crash_at_ns: tuple[int, ...] = ()
    is_compiled: bool = False
    """Whether to use the compiled engine if it supports the point; the row is the same."""


@dataclass(frozen=True, slots=True)
class PointTables:
    """A point's row, and its long tables for plots.

    Each long row begins with the point's index as `point`.
    """

    row: Row
    put_cdf: list[Row]
    at_risk: list[Row]
    rolls: list[Row]
    flushes: list[Row]
    put_histogram: list[Row]
    crashes: list[Row]
    crash_figures: dict[str, float | int]
    """The summary of the crashes; empty without crashes."""


def grid(
    *,
    flushes: Sequence[FlushPolicy],
    allocations: Sequence[AllocationPolicy],
    devices: Sequence[DeviceTimes],
    workloads: Sequence[Workload],
    file_bytes: Sequence[int],
    pools: Sequence[Pool | None] = (None,),
    replica: Replica | None = None,
    writeback: Writeback | None = None,
    messages: int | None = None,
    duration_ns: int | None = None,
    seeds: Sequence[int] = (0,),
) -> list[Point]:
    """Return every combination once, in the order of the arguments.

    A large grid uses the compiled engine. Raises ImpossibleScenario.
    """
    combinations = dict.fromkeys(product(flushes, allocations, pools, devices, workloads, file_bytes, seeds))
    chosen = [
        (
            Scenario(
                flush=flush,
                allocation=allocation,
                pool=pool,
                replica=replica,
                writeback=writeback,
                device=device,
                workload=workload,
                file_bytes=size,
                messages=messages,
                duration_ns=duration_ns,
            ),
            seed,
        )
        for flush, allocation, pool, device, workload, size, seed in combinations
    ]
    is_compiled = sum(scenario.expected_messages for scenario, _ in chosen) >= WORTH_COMPILING
    return [Point(index, scenario, seed, is_compiled=is_compiled) for index, (scenario, seed) in enumerate(chosen)]


def run_point(point: Point) -> Row:
    """Run one point; return its row.

    The row has the settings, the figures of `tables.figures`, and the law that the point must meet. The columns and
    their types are the same for all points: strings, ints, floats, none missing. `law` is empty where no formula is
    exact; then `law_mean_us` and `law_errors` are 0.
    """
    return _row(point, simulate(point))


def run_tables(point: Point, progress: TablesProgress = lambda messages, table: None) -> PointTables:
    """Run one point; return its row as `run_point` does, and its long tables.

    Their columns: `put_cdf` point, share, put_us; `at_risk` point, time_us, messages, bytes; `rolls` point, file_index,
    time_us, stall_us; `flushes` point, round, start_us, end_us, file_index, messages, device_bytes; `put_histogram`
    point, bucket, from_ms, messages; `crashes` point, at_us, then messages, bytes, age_us and answered of each failure.
    """
    trace = simulate(point, lambda messages: progress(messages, ""))
    drawn = crashes.crash_moments(trace, point.crashes, seed=point.seed)
    moments = np.sort(np.concatenate((drawn, np.array(point.crash_at_ns, np.int64))))
    lost = crashes.losses(trace, moments)

    def made(name: str, make: Callable[[], Sequence[Mapping[str, Cell]]]) -> list[Row]:
        progress(len(trace.put_ns), name)
        return [{"point": point.index, **row} for row in make()]

    progress(len(trace.put_ns), "figures")
    return PointTables(
        row=_row(point, trace),
        put_cdf=made("put_cdf", lambda: rows.put_cdf_rows(trace)),
        at_risk=made("at_risk", lambda: rows.at_risk_rows(trace)),
        rolls=made("rolls", lambda: rows.roll_rows(trace)),
        flushes=made("flushes", lambda: rows.flush_rows(trace)),
        put_histogram=made("put_histogram", lambda: alarms.put_histogram_rows(trace)),
        crashes=made("crashes", lambda: crashes.loss_rows(lost)),
        crash_figures=crashes.figures(lost) if len(moments) else {},
    )


def run_points(points: Sequence[Point]) -> Iterator[PointTables]:
    """Run the points one after another in this process, yielding each when it is done."""
    for point in points:
        yield run_tables(point)


def flush_name(policy: FlushPolicy) -> str:
    """Return the policy in a few words: "sync", or "async 500 ms, 4 pages, 10000 ms"."""
    if policy.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        return "sync"
    kind = "async" if policy.flush_commit_log_timed else "woken"
    return (
        f"{kind} {policy.flush_interval_commit_log} ms, {policy.flush_commit_log_least_pages} pages, "
        f"{policy.flush_commit_log_thorough_interval} ms"
    )


def simulate(point: Point, progress: Progress = without_progress) -> Trace:
    """Run a point with the wanted engine if it supports it: the traces are equal."""
    if not point.is_compiled:
        return run(point.scenario, point.seed, progress=progress)
    try:
        from tornpage.sim.fast import can_run_fast, run_fast
    except (ImportError, RuntimeError):  # no Numba for this Python, or no place for its compiled code
        return run(point.scenario, point.seed, progress=progress)
    return (run_fast if can_run_fast(point.scenario) else run)(point.scenario, point.seed, progress=progress)


def _row(point: Point, trace: Trace) -> Row:
    scenario = point.scenario
    flush, workload, figures = scenario.flush, scenario.workload, tables.figures(trace)
    timed = flush.flush_disk_type is FlushDiskType.ASYNC_FLUSH
    law = put_law(scenario)
    measured = Estimate(figures["put_mean_us"], figures["put_mean_error_us"])
    known = law is not None and measured.error > 0
    return {
        "point": point.index,
        "seed": point.seed,
        "flush": flush_name(flush),
        "flush_disk_type": flush.flush_disk_type.value,
        "flush_interval_ms": flush.flush_interval_commit_log if timed else 0,
        "flush_least_pages": flush.flush_commit_log_least_pages if timed else 0,
        "flush_timed": int(timed and flush.flush_commit_log_timed),
        "flush_thorough_ms": flush.flush_commit_log_thorough_interval if timed else 0,
        "pool": scenario.pool.name if scenario.pool else "",
        "pool_buffers": scenario.pool.buffers if scenario.pool else 0,
        "replica_mean_us": scenario.replica.mean_ns / 1000 if scenario.replica else 0.0,
        "writeback_wake_ms": scenario.writeback.wake_ms if scenario.writeback else 0,
        "writeback_expire_ms": scenario.writeback.expire_ms if scenario.writeback else 0,
        "writeback_background_bytes": scenario.writeback.background_bytes if scenario.writeback else 0,
        "allocation": scenario.allocation.name,
        "files_ahead": scenario.allocation.files_ahead,
        "warm": int(scenario.allocation.warm_up is not WarmUp.NONE),
        "device": scenario.device.name,
        "load": workload.name,
        "rate_per_s": 0.0 if isinstance(workload, ClosedLoop) else float(workload.rate_per_s),
        "producers": workload.producers if isinstance(workload, ClosedLoop) else 0,
        "think_mean_us": workload.think.mean_ns / 1000 if isinstance(workload, ClosedLoop) else 0.0,
        "size_bytes_min": workload.sizes.smallest_bytes,
        "size_bytes_max": workload.sizes.largest_bytes,
        "file_bytes": scenario.file_bytes,
        **figures,
        **alarms.figures(trace),
        "law": law.name if law else "",
        "law_mean_us": law.mean_ns / 1000 if law else 0.0,
        "law_errors": measured.errors_from(law.mean_ns / 1000) if law and known else 0.0,
        "trace_sha256": trace.digest(),
    }
