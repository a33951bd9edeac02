"""What the simulation commands do: points from options, outcomes and tables from points."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage import options
from tornpage.document import Outcome, refuse

if TYPE_CHECKING:
    from sim.sweep import Point, PointTables

__all__ = ["DEFAULT_RATE", "sim_run_outcome", "sim_sweep_outcome"]

TABLES = ("put_cdf", "at_risk", "rolls", "flushes")
"""Long tables of a point; each is a file beside `points.jsonl`. A document holds all but the last, one row per sync."""
DEFAULT_RATE = 10_000.0
DEFAULT_RATES = (1_000.0, 5_000.0, 20_000.0)


def sim_run_outcome(
    *,
    flush: str,
    interval_ms: int | None,
    least_pages: int | None,
    thorough_ms: int | None,
    allocation: str,
    rate: float | None,
    producers: int | None,
    device: str,
    out: str | None = None,
    **load: Any,
) -> tuple[Outcome, str]:
    """Simulate one point; return its outcome and its table."""
    from sim.sweep import run_tables

    if flush == "sync" and (interval_ms, least_pages, thorough_ms) != (None, None, None):
        refuse("--interval-ms, --least-pages and --thorough-ms go with --flush async: group commit has no timer")
    [point] = _points(
        flushes=[flush],
        intervals_ms=[] if interval_ms is None else [interval_ms],
        least_pages=[] if least_pages is None else [least_pages],
        thorough_ms=thorough_ms,
        allocations=[allocation],
        devices=[device],
        rates=[] if rate is None else [rate],
        producers=[] if producers is None else [producers],
        **load,
    )
    with _writer(out) as write:
        begin = perf_counter()
        tables = run_tables(point)
        seconds = perf_counter() - begin
        write(tables)
    numbers = _figures(tables)
    numbers["simulated_messages_per_s"] = numbers["messages"] / seconds
    words = {name: value for name, value in tables.row.items() if isinstance(value, str)}
    asked = {name: tables.row[name] for name in tables.row if name in _ASKED}
    extra = {"scenario": asked, "tables": {name: getattr(tables, name) for name in TABLES[:3]}, "law": words["law"]}
    timings = ["simulated_messages_per_s"]
    return Outcome("sim run", None, numbers, timings, seed=point.seed, extra=extra), _run_text(tables, numbers)


def sim_sweep_outcome(
    *,
    flushes: Sequence[str] = (),
    intervals_ms: Sequence[int] = (),
    least_pages: Sequence[int] = (),
    thorough_ms: int | None = None,
    allocations: Sequence[str] = (),
    devices: Sequence[str] = (),
    rates: Sequence[float] = (),
    producers: Sequence[int] = (),
    out: str | None = None,
    master: str | None = None,
    **load: Any,
) -> tuple[Outcome, str]:
    """Simulate a grid; return its outcome and its table. An interrupt keeps the points that are done."""
    if list(flushes) == ["sync"] and (intervals_ms or least_pages or thorough_ms is not None):
        refuse("--interval-ms, --least-pages and --thorough-ms go with --flush async: group commit has no timer")
    points = _points(
        flushes=flushes or ["sync", "async"],
        intervals_ms=intervals_ms,
        least_pages=least_pages,
        thorough_ms=thorough_ms,
        allocations=allocations or ["one-ahead", "on-demand"],
        devices=devices or ["vm-ext4"],
        rates=rates or ([] if producers else DEFAULT_RATES),
        producers=producers,
        **load,
    )
    rows: list[dict[str, Any]] = []
    interrupted, begin = False, perf_counter()
    try:
        if master is None:
            _run_here(points, out, rows)
        else:
            rows += _run_on_spark(points, out, master)
    except KeyboardInterrupt:
        interrupted = True
    messages = sum(int(row["messages"]) for row in rows)
    figures: dict[str, float | int] = {
        "points": len(points),
        "points_done": len(rows),
        "messages": messages,
        "simulated_messages_per_s": messages / (perf_counter() - begin),
    }
    outcome = Outcome(
        "sim sweep",
        None,
        figures,
        ["simulated_messages_per_s"],
        seed=points[0].seed,
        extra={"rows": rows},
        interrupted=interrupted,
    )
    return outcome, _sweep_text(rows, figures, out)


def _run_here(points: Sequence["Point"], out: str | None, rows: list[dict[str, Any]]) -> None:
    """Run the points one after another; `rows` grows with each, so that an interrupt keeps what is done."""
    from sim.sweep import run_tables

    with _writer(out) as write, options.steps_progress("simulating", total=len(points)) as show:
        for point in points:
            show(f"point {point.index + 1}")
            tables = run_tables(point)
            write(tables)
            rows.append(dict(tables.row))


def _run_on_spark(points: Sequence["Point"], out: str | None, master: str) -> list[dict[str, Any]]:
    """Run the points in Spark tasks; the rows are those of a serial run."""
    from pipeline.session import SparkUnavailable, require_java, require_packages, spark_session
    from pipeline.sweep import sweep

    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
        with spark_session("tornpage sim sweep", master=master, short=True) as spark:
            rows = sweep(spark, points, None if out is None else Path(out))
    except SparkUnavailable as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write {error.filename or out}: {error.strerror}; name another --out directory")
    failed = next((row for row in rows if "error" in row), None)
    if failed is not None:
        refuse(f"point {failed['point']} of the sweep failed: {failed['error']}")
    return rows


_ASKED = (
    "flush",
    "flush_disk_type",
    "flush_interval_ms",
    "flush_least_pages",
    "flush_thorough_ms",
    "allocation",
    "files_ahead",
    "warm",
    "device",
    "load",
    "rate_per_s",
    "producers",
    "think_mean_us",
    "size_bytes_min",
    "size_bytes_max",
    "file_bytes",
)
"""Columns of a point's row that say what was asked; the others are what came of it."""


def _points(
    *,
    flushes: Sequence[str],
    intervals_ms: Sequence[int],
    least_pages: Sequence[int],
    thorough_ms: int | None,
    allocations: Sequence[str],
    devices: Sequence[str],
    rates: Sequence[float],
    producers: Sequence[int],
    messages: int | None,
    seconds: float | None,
    size: int,
    size_max: int | None,
    file_size: int,
    warm: bool,
    think_us: float | None,
    seed: int,
) -> "list[Point]":
    """Return the grid that was asked for; refuse what is impossible."""
    from impl.policy import AllocationPolicy, WarmUp
    from sim.device import PRESETS
    from sim.distributions import Constant, Exponential
    from sim.sweep import grid
    from sim.workload import ClosedLoop, OpenPoisson, Sizes, Workload

    if seconds is not None and not isfinite(seconds):
        refuse(f"--seconds {seconds} has no end")
    if think_us is not None and not producers:
        refuse("--think-us goes with --producers: an open load does not wait for answers")
    for name in devices:
        if name not in PRESETS:
            refuse(f"no device {name!r}; there are {', '.join(PRESETS)}")
    try:
        sizes = Sizes(size, size if size_max is None else size_max)
        think = Exponential(think_us * 1000) if think_us else Constant(0)
        workloads: list[Workload] = [OpenPoisson(rate, sizes) for rate in rates]
        workloads += [ClosedLoop(count, sizes, think) for count in producers]
        warm_up = WarmUp.TOUCH_AND_FORCE if warm else WarmUp.NONE
        return grid(
            flushes=[
                policy for flush in flushes for policy in _flush_policies(flush, intervals_ms, least_pages, thorough_ms)
            ],
            allocations=[AllocationPolicy({"on-demand": 0, "one-ahead": 1}[name], warm_up) for name in allocations],
            devices=[PRESETS[name] for name in devices],
            workloads=workloads,
            file_bytes=[file_size],
            messages=100_000 if messages is None and seconds is None else messages,
            duration_ns=None if seconds is None else max(round(seconds * 1e9), 1),
            seeds=[seed],
        )
    except ValueError as error:
        refuse(str(error))


def _flush_policies(
    flush: str, intervals_ms: Sequence[int], least_pages: Sequence[int], thorough_ms: int | None
) -> list[Any]:
    from impl.policy import FlushDiskType, FlushPolicy

    if flush == "sync":
        return [FlushPolicy(FlushDiskType.SYNC_FLUSH)]
    default = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
    thorough = default.flush_commit_log_thorough_interval if thorough_ms is None else thorough_ms
    return [
        FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval, pages, thorough)
        for interval in intervals_ms or [default.flush_interval_commit_log]
        for pages in least_pages or [default.flush_commit_log_least_pages]
    ]


def _figures(tables: "PointTables") -> dict[str, float | int]:
    """Return the numbers of a point's row that were computed, not asked for."""
    skipped = {*_ASKED, "point", "seed"}
    if not tables.row["law"]:
        skipped |= {"law_mean_us", "law_errors"}
    return {name: value for name, value in tables.row.items() if name not in skipped and not isinstance(value, str)}


def _run_text(tables: "PointTables", numbers: dict[str, float | int]) -> str:
    row = tables.row
    lines = [
        f"flush {row['flush']}; allocation {row['allocation']}; device {row['device']}; load {row['load']}",
        f"{numbers['messages']:,} messages in {numbers['load_us'] / 1e6:,.3f} simulated s, "
        f"{numbers['simulated_messages_per_s']:,.0f} messages/s simulated",
        "",
        f"{'':<22}{'mean':>14}{'p50':>14}{'p90':>14}{'p99':>14}{'max':>14}",
        _line("put, us", [numbers.get(f"put_{part}_us") for part in ("mean", "p50", "p90", "p99", "max")]),
        _line("exposed, us", [None, *(numbers.get(f"exposed_{part}_us") for part in ("p50", "p90", "p99", "max"))]),
        *(
            _line(
                f"at risk, {what}",
                [numbers.get(f"at_risk_{what}_{part}") for part in ("mean", "p50", "p90", "p99", "max")],
            )
            for what in ("messages", "bytes")
        ),
        _line("flush, us", [numbers["flush_mean_us"], None, None, None, numbers["flush_max_us"]]),
        _line(
            "stall at a roll, us",
            [numbers["stall_mean_us"], None, None, numbers["stall_p99_us"], numbers["stall_max_us"]],
        ),
        "",
        f"{numbers['flushes']:,} flushes, {numbers['flush_batch_mean']:,.2f} messages a round, "
        f"busy {numbers['flush_busy_share']:.1%}; {numbers['write_amplification']:.2f} bytes written per byte",
        f"{numbers['rolls']:,} file rolls, {numbers['stalls']:,} of them stalled",
    ]
    if row["law"]:
        lines.append(
            f"{row['law']} formula: mean {_number(numbers['law_mean_us'])} us; this run is "
            f"{numbers['law_errors']:+.1f} standard errors ({_number(numbers['put_mean_error_us'])} us) from it"
        )
    return "\n".join(lines)


def _sweep_text(rows: Sequence[dict[str, Any]], figures: dict[str, float | int], out: str | None) -> str:
    head = (
        "put_p50_us",
        "put_p99_us",
        "at_risk_messages_mean",
        "at_risk_messages_p99",
        "flushes",
        "stalls",
        "stall_max_us",
    )
    titles = ("put p50", "put p99", "at risk", "at risk p99", "flushes", "stalls", "stall max")
    names = [(str(row["flush"]), str(row["allocation"]), f"{row['device']}, {row['load']}") for row in rows]
    widths = [max([len(name[column]) for name in names], default=0) + 2 for column in range(3)]
    lines = ["".join(f"{'':<{width}}" for width in widths) + "".join(f"{title:>13}" for title in titles)]
    for name, row in zip(names, rows, strict=True):
        left = "".join(f"{part:<{width}}" for part, width in zip(name, widths, strict=True))
        lines.append(left + "".join(f"{_number(row[column]):>13}" for column in head))
    lines += ["", "put and stalls in us; at risk: messages a power loss would take, mean and 99th percentile over time"]
    if figures["points_done"] < figures["points"]:
        lines.append(f"interrupted: {figures['points_done']} of {figures['points']} points were run")
    if out is not None:
        lines.append(f"rows in {out}")
    return "\n".join(lines)


def _line(title: str, values: Sequence[float | int | None]) -> str:
    return f"{title:<22}" + "".join(f"{'' if value is None else _number(value):>14}" for value in values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


@contextmanager
def _writer(out: str | None) -> "Iterator[Callable[[PointTables], None]]":
    """Yield a function that appends a point's rows to the files of `out`, which are begun anew."""
    if out is None:
        yield lambda tables: None
        return
    try:
        os.makedirs(out, exist_ok=True)
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(open(os.path.join(out, f"{name}.jsonl"), "w", encoding="utf-8"))
                for name in ("points", *TABLES)
            }

            def write(tables: "PointTables") -> None:
                files["points"].write(json.dumps(tables.row) + "\n")
                for name in TABLES:
                    files[name].writelines(json.dumps(row) + "\n" for row in getattr(tables, name))

            yield write
    except OSError as error:
        refuse(f"cannot write to {out}: {error.strerror or error}")
