"""Run the simulation commands: simulate points, and print outcomes and tables."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import counted_progress, simulation_progress
from tornpage.outcomes.simulation_points import points_of
from tornpage.properties.judge.rulings import counted
from tornpage.run.directory import RUN_FILE, write_run
from tornpage.run.writing import refuse_foreign, unwritable

if TYPE_CHECKING:
    from tornpage.sim.sweep import Point, PointTables

__all__ = ["TABLES", "sim_run_outcome", "sim_sweep_outcome"]


TABLES = ("put_cdf", "at_risk", "rolls", "flushes", "put_histogram", "crashes")
"""Long tables of a point; each is a file beside `points.jsonl`. `flushes`, one row per sync, stands in no document."""


def sim_run_outcome(
    *,
    asked: dict[str, Any],
    crashes: int = 0,
    crash_at_ms: Sequence[float] = (),
    out: str | None = None,
) -> tuple[Outcome, str]:
    """Simulate one point; return its outcome and its table. `asked` is what `points_of` takes."""
    [point], findings = points_of(**asked)
    from tornpage.sim.sweep import run_tables

    point = replace(point, crashes=crashes, crash_at_ns=tuple(round(at * 1e6) for at in crash_at_ms))
    with _writer(out) as write, simulation_progress(point.scenario.expected_messages) as show:
        begin = perf_counter()
        tables = run_tables(point, show)
        seconds = perf_counter() - begin
        write(tables)
    numbers = _figures(tables)
    numbers["simulated_messages_per_s"] = numbers["messages"] / seconds
    words = {name: value for name, value in tables.row.items() if isinstance(value, str)}
    scenario = {name: tables.row[name] for name in tables.row if name in _ASKED}
    shown = {name: getattr(tables, name) for name in TABLES if name != "flushes"}
    extra = {"scenario": scenario, "tables": shown, "law": words["law"]}
    outcome = Outcome("sim run", None, numbers, ["simulated_messages_per_s"], findings, seed=point.seed, extra=extra)
    if out is not None:
        write_run(Path(out), outcome)
    return outcome, run_text(tables, numbers, findings)


def sim_sweep_outcome(
    *,
    asked: dict[str, Any],
    out: str | None = None,
    master: str | None = None,
    resume: bool = False,
) -> tuple[Outcome, str]:
    """Simulate a grid; return outcome and table. An interrupt keeps finished points."""
    points, findings = points_of(**asked)
    from tornpage.pipeline.sweep.pareto import pareto

    rows: list[dict[str, Any]] = []
    best: list[int] | None = None
    interrupted, stopped, begin = False, "", perf_counter()
    try:
        if master is None:
            _run_here(points, out, rows)
        else:
            rows, best, stopped = _run_on_spark(points, out, master, resume=resume)
    except KeyboardInterrupt:
        interrupted = True
        rows = rows if master is None or out is None else _kept_points(Path(out))
    failed = [row for row in rows if "error" in row]
    failures = [_failed_point(row, out) for row in failed]
    if stopped:
        failures.append({"code": "stopped", "severity": "harness", "sentence": f"{stopped}; {_again(out)}"})
    rows = [row for row in rows if "error" not in row]
    messages = sum(int(row["messages"]) for row in rows)
    figures: dict[str, float | int] = {
        "points": len(points),
        "points_done": len(rows),
        "points_failed": len(failed),
        "messages": messages,
        "simulated_messages_per_s": messages / (perf_counter() - begin),
    }
    outcome = Outcome(
        "sim sweep",
        "harness" if failures else None,
        figures,
        ["simulated_messages_per_s"],
        [*findings, *failures],
        seed=points[0].seed,
        extra={"rows": rows, "pareto": pareto(rows) if best is None else best},
        interrupted=interrupted,
    )
    if out is not None:
        write_run(Path(out), outcome)
    said = [f"{finding['severity']}: {finding['sentence']}" for finding in failures]
    return outcome, "\n".join([sweep_text(rows, figures, out, findings), *said])


def _kept_points(out: Path) -> list[dict[str, Any]]:
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.sweep.sweep import stored_points

    try:
        return stored_points(out)
    except OutputTaken as error:
        refuse(str(error))


def _failed_point(row: dict[str, Any], out: str | None) -> dict[str, Any]:
    sentence = f"point {row['point']} of the sweep failed: {row['error']}; {_again(out)}"
    return {"code": "point-failed", "severity": "harness", "sentence": sentence}


def _again(out: str | None) -> str:
    return "name an --out directory, to run it again with --resume" if out is None else "run it again with --resume"


def _run_here(points: Sequence["Point"], out: str | None, rows: list[dict[str, Any]]) -> None:
    """Run the points one after the other, and add each to `rows`."""
    from tornpage.sim.sweep import run_tables

    total = sum(point.scenario.expected_messages for point in points)
    before = 0.0
    with _writer(out) as write, counted_progress("simulating", total=total, unit="messages") as show:
        for point in points:
            tables = run_tables(point, partial(_sent, show, before, f"point {point.index + 1} of {len(points)}"))
            write(tables)
            rows.append(dict(tables.row))
            before += point.scenario.expected_messages


def _sent(show: Callable[[float, str], None], before: float, name: str, messages: int, _table: str) -> None:
    show(before + messages, name)


def _run_on_spark(
    points: Sequence["Point"], out: str | None, master: str, *, resume: bool
) -> tuple[list[dict[str, Any]], list[int] | None, str]:
    """Run the points in Spark tasks; return the rows and the Pareto points.

    Where Spark fails these are the rows that are kept; with them comes why it stopped early (empty: it did not).
    """
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.spark.interrupts import apart
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures
    from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages, spark_session
    from tornpage.pipeline.sweep.pareto import pareto_in_spark, points_frame
    from tornpage.pipeline.sweep.sweep import prepare_sweep, sweep

    try:
        if out is not None:
            prepare_sweep(Path(out), points, resume=resume)
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
        kept = None if out is None else Path(out)
        try:
            with (
                counted_progress("simulating", total=len(points), unit="points") as show,
                spark_session("tornpage sim sweep", master=master, short=True) as spark,
            ):
                rows = sweep(spark, points, kept, progress=lambda done: show(done, ""))
                return rows, apart(spark, lambda: pareto_in_spark(points_frame(spark, rows))), ""
        except spark_failures() as error:
            return [] if out is None else _kept_points(Path(out)), None, reason_of(error)
    except (OutputTaken, SparkUnavailable) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write {error.filename or out}: {error.strerror}; name another --out directory")


_ASKED = (
    "flush",
    "flush_disk_type",
    "flush_interval_ms",
    "flush_least_pages",
    "flush_timed",
    "flush_thorough_ms",
    "pool",
    "pool_buffers",
    "replica_mean_us",
    "writeback_wake_ms",
    "writeback_expire_ms",
    "writeback_background_bytes",
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
"""Columns of a point's row with its settings; the others are results."""


def _figures(tables: "PointTables") -> dict[str, float | int]:
    """Return the numbers of a point's row that were computed, not asked for."""
    skipped = {*_ASKED, "point", "seed"}
    if not tables.row["law"]:
        skipped |= {"law_mean_us", "law_errors"}
    row = {name: value for name, value in tables.row.items() if name not in skipped and not isinstance(value, str)}
    return row | tables.crash_figures


@contextmanager
def _writer(out: str | None) -> "Iterator[Callable[[PointTables], None]]":
    """Yield a function that appends a point's rows to the emptied files of `out`.

    An earlier run document is removed.
    """
    if out is None:
        yield lambda tables: None
        return
    ours = [*(f"{name}.jsonl" for name in ("points", *TABLES)), RUN_FILE, "index.html"]
    refuse_foreign(Path(out), ours, option="--out")
    try:
        os.makedirs(out, exist_ok=True)
        Path(out, RUN_FILE).unlink(missing_ok=True)
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
        refuse(unwritable(error, out, option="--out"))


# ---- text ------------------------------------------------------------------------------------------------------------


def run_text(tables: "PointTables", numbers: Mapping[str, float | int], findings: Sequence[Mapping[str, Any]]) -> str:
    """Return one point as a table."""
    row = tables.row
    lines = [
        f"flush {row['flush']}; allocation {row['allocation']}; device {row['device']}; load {row['load']}",
        f"{counted(numbers['messages'], 'message')} in {numbers['load_us'] / 1e6:,.3f} simulated s, "
        f"{numbers['simulated_messages_per_s']:,.0f} messages/s simulated",
        "",
        f"{'':<22}{'mean':>14}{'p50':>14}{'p90':>14}{'p99':>14}{'max':>14}",
        _line("put, us", [numbers.get(f"put_{part}_us") for part in ("mean", "p50", "p90", "p99", "max")]),
        _line(
            "oldest unflushed, us",
            [None, *(numbers.get(f"exposed_{part}_us") for part in ("p50", "p90", "p99", "max"))],
        ),
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
        f"{counted(numbers['flushes'], 'flush', 'flushes')}, {numbers['flush_batch_mean']:,.2f} messages a round, "
        f"busy {numbers['flush_busy_share']:.1%}; {numbers['write_amplification']:.2f} bytes written per byte",
        f"{counted(numbers['rolls'], 'file roll')}, {numbers['stalls']:,} of them stalled",
    ]
    if row["law"]:
        lines.append(
            f"{row['law']} formula: mean {_number(numbers['law_mean_us'])} us; this run is "
            f"{numbers['law_errors']:+.1f} standard errors ({_number(numbers['put_mean_error_us'])} us) from it"
        )
    if row["pool"]:
        lines.append(
            f"pool of {row['pool']}: {counted(numbers['commits'], 'commit')}, a process kill takes "
            f"{_number(numbers['kill_messages_mean'])} messages on average; "
            f"{counted(numbers['put_refused'], 'put')} refused, "
            f"{counted(numbers['files_without_buffer'], 'file')} without a buffer"
        )
    lines += [_crash_line(failure, numbers) for failure in ("kill", "power") if numbers.get("crashes")]
    raised = {name: count for name, count in numbers.items() if name.startswith("alarm_") and count}
    lines += [f"alarm: {name[6:].replace('_', ' ')}, {count:,} times" for name, count in raised.items()]
    lines += [f"{finding['severity']}: {finding['sentence']}" for finding in findings]
    return "\n".join(lines)


def _crash_line(failure: str, numbers: Mapping[str, float | int]) -> str:
    what = {"kill": "a process kill", "power": "a power loss"}[failure]
    return (
        f"{what} at {counted(numbers['crashes'], 'moment')}: {numbers[f'{failure}_crash_share_with_loss']:.0%} "
        "lose messages; "
        f"mean {_number(numbers[f'{failure}_crash_messages_mean'])}, "
        f"worst {numbers[f'{failure}_crash_messages_max']:,} ({numbers[f'{failure}_crash_answered_max']:,} "
        f"acknowledged), oldest {numbers[f'{failure}_crash_age_max_us'] / 1000:,.1f} ms"
    )


def sweep_text(
    rows: Sequence[dict[str, Any]],
    figures: dict[str, float | int],
    out: str | None,
    findings: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return a grid as a table."""
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
        lines.append(f"interrupted: {figures['points_done']} of {counted(figures['points'], 'point')} run")
    if out is not None:
        lines.append(f"rows in {out}")
    lines += [f"{finding['severity']}: {finding['sentence']}" for finding in findings]
    return "\n".join(lines)


def _line(title: str, values: Sequence[float | int | None]) -> str:
    return f"{title:<22}" + "".join(f"{'' if value is None else _number(value):>14}" for value in values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"
