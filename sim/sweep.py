"""A grid of policies and loads: points are values, `run_point` is a pure function of one. Whoever runs them, wherever,
gets the same rows; a point can be pickled and sent to another process.

All points of a grid share their seeds, so that policies are compared under the same arrivals and sizes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from impl.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from sim import tables
from sim.analytic import Estimate, put_law
from sim.device import DeviceTimes
from sim.run import Scenario, Trace, run
from sim.workload import ClosedLoop, OpenPoisson, Workload

__all__ = ["Cell", "Point", "PointTables", "flush_name", "grid", "run_point", "run_points", "run_tables"]

Cell = str | int | float
Row = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a grid; `index` is its place in it."""

    index: int
    scenario: Scenario
    seed: int


@dataclass(frozen=True, slots=True)
class PointTables:
    """A point's row, and its long tables for plots; each long row begins with the point's index as `point`."""

    row: Row
    put_cdf: list[Row]
    at_risk: list[Row]
    rolls: list[Row]
    flushes: list[Row]


def grid(
    *,
    flushes: Sequence[FlushPolicy],
    allocations: Sequence[AllocationPolicy],
    devices: Sequence[DeviceTimes],
    workloads: Sequence[Workload],
    file_bytes: Sequence[int],
    messages: int | None = None,
    duration_ns: int | None = None,
    seeds: Sequence[int] = (0,),
) -> list[Point]:
    """Return every combination once, in the order of the arguments. Raises ImpossibleScenario."""
    combinations = dict.fromkeys(product(flushes, allocations, devices, workloads, file_bytes, seeds))
    return [
        Point(
            index,
            Scenario(
                flush=flush,
                allocation=allocation,
                device=device,
                workload=workload,
                file_bytes=size,
                messages=messages,
                duration_ns=duration_ns,
            ),
            seed,
        )
        for index, (flush, allocation, device, workload, size, seed) in enumerate(combinations)
    ]


def run_point(point: Point) -> Row:
    """Run one point; return its row: what was asked, the figures of `tables.figures`, the law it has to meet.

    The columns and their types are the same for all points: strings, ints, floats, none missing. `law` is empty where
    no formula is exact; then `law_mean_us` and `law_errors` are 0.
    """
    return _row(point, run(point.scenario, point.seed))


def run_tables(point: Point) -> PointTables:
    """Run one point; return its row as `run_point` does, and its long tables.

    Their columns: `put_cdf` point, share, put_us; `at_risk` point, time_us, messages, bytes; `rolls` point, file_index,
    time_us, stall_us; `flushes` point, round, start_us, end_us, file_index, messages, device_bytes.
    """
    trace = run(point.scenario, point.seed)

    def numbered(rows: Sequence[dict[str, float]]) -> list[Row]:
        return [{"point": point.index, **row} for row in rows]

    return PointTables(
        row=_row(point, trace),
        put_cdf=numbered(tables.put_cdf_rows(trace)),
        at_risk=numbered(tables.at_risk_rows(trace)),
        rolls=numbered(tables.roll_rows(trace)),
        flushes=numbered(tables.flush_rows(trace)),
    )


def run_points(points: Sequence[Point]) -> Iterator[PointTables]:
    """Run the points one after another in this process, yielding each when it is done."""
    for point in points:
        yield run_tables(point)


def flush_name(policy: FlushPolicy) -> str:
    """Return the policy in a few words: "sync", or "async 500 ms, 4 pages, 10000 ms"."""
    if policy.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        return "sync"
    return (
        f"async {policy.flush_interval_commit_log} ms, {policy.flush_commit_log_least_pages} pages, "
        f"{policy.flush_commit_log_thorough_interval} ms"
    )


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
        "flush_thorough_ms": flush.flush_commit_log_thorough_interval if timed else 0,
        "allocation": scenario.allocation.name,
        "files_ahead": scenario.allocation.files_ahead,
        "warm": int(scenario.allocation.warm_up is not WarmUp.NONE),
        "device": scenario.device.name,
        "load": workload.name,
        "rate_per_s": float(workload.rate_per_s) if isinstance(workload, OpenPoisson) else 0.0,
        "producers": workload.producers if isinstance(workload, ClosedLoop) else 0,
        "think_mean_us": workload.think.mean_ns / 1000 if isinstance(workload, ClosedLoop) else 0.0,
        "size_bytes_min": workload.sizes.smallest_bytes,
        "size_bytes_max": workload.sizes.largest_bytes,
        "file_bytes": scenario.file_bytes,
        **figures,
        "law": law.name if law else "",
        "law_mean_us": law.mean_ns / 1000 if law else 0.0,
        "law_errors": measured.errors_from(law.mean_ns / 1000) if law and known else 0.0,
        "trace_sha256": trace.digest(),
    }
