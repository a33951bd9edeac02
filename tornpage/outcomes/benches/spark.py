"""Scans and audits of a large store as a document, text and Markdown."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tornpage.bench.figures import Skipped
from tornpage.bench.spark.running import SparkRun, measure_spark
from tornpage.bench.spark.shapes import OLD_BYTES, SHAPES
from tornpage.bench.spark.stores import FILE_BYTES
from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted

__all__ = ["on_spark"]

_Row = Mapping[str, Any]


def on_spark(
    names: Sequence[str],
    place: str,
    *,
    store: str | None,
    log_bytes: int,
    rounds: int,
    file_bytes: int = FILE_BYTES,
) -> tuple[Outcome, str, str]:
    """Measure some rows, or all; return the outcome, its text, and its table in Markdown.

    An unknown row and a directory or store that does not exist end the command.
    """
    known = [shape.name for shape in SHAPES]
    for name in names:
        if name not in known:
            refuse(f"{name!r} is no row; give one of {', '.join(known)}")
    for path, option in ((place, "--directory"), (store, "--store")):
        if path is not None and not os.path.isdir(path):
            refuse(f"{path} is no directory; name another {option}")
    shapes = [shape for shape in SHAPES if not names or shape.name in names]
    steps = len(shapes) + (store is None and "make" not in names and bool(names))
    try:
        with steps_progress("measuring", total=steps) as show:
            run = measure_spark(
                shapes,
                place,
                store=None if store is None else os.path.abspath(store),
                log_bytes=log_bytes,
                rounds=rounds,
                file_bytes=file_bytes,
                progress=show,
            )
    except Skipped as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot measure in {place}: {error.strerror or error}; name another --directory")
    rows = [row.document() for row in run.rows]
    figures: dict[str, float | int] = {"messages": run.messages, "record_bytes": run.record_bytes}
    for row in rows:
        figures |= {f"{row['name']}_{key}": row[key] for key in ("wall_s", "cpu_s", "peak_mb")}
    notes = [
        {"code": "skipped", "severity": "note", "sentence": f"{name} was skipped: {reason}"}
        for name, reason in run.skipped.items()
    ]
    failures = [
        {"code": "harness", "severity": "harness", "sentence": f"{name} failed: {reason}"}
        for name, reason in run.failed.items()
    ]
    extra = {"directory": place, "store": store, "machine": asdict(run.machine), "rows": rows}
    outcome = Outcome(
        "bench spark", "harness" if failures else None, figures, list(figures), [*notes, *failures], extra=extra,
        interrupted=run.interrupted,
    )  # fmt: skip
    return outcome, _text(run, rows, [*notes, *failures], place), _markdown(run, rows)


_HEAD = (
    "row", "old s", "old MB/s", "old CPU s", "old MB", "s", "MB/s", "CPU s", "driver", "JVM", "workers", "MB",
)  # fmt: skip


def _cells(row: _Row, *, name: str) -> list[str]:
    numbers = ("old_wall_s", "old_mb_per_s", "old_cpu_s", "old_peak_mb", "wall_s", "mb_per_s", "cpu_s", "driver_cpu_s",
               "jvm_cpu_s", "workers_cpu_s", "peak_mb")  # fmt: skip
    return [row[name], *(_number(row[key]) for key in numbers)]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _machine(run: SparkRun, store: str) -> str:
    machine = run.machine
    return (
        f"{machine.processor}, {counted(machine.cores, 'core')}, {machine.kernel}, {machine.python}; {store} of "
        f"{counted(run.messages, 'message')}, {run.record_bytes / 1e9:.2f} GB of records"
    )


def _text(run: SparkRun, rows: Sequence[_Row], findings: Sequence[Mapping[str, str]], place: str) -> str:
    table = [list(_HEAD), *(_cells(row, name="name") for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEAD))]
    lines = [
        _machine(run, "a store"),
        f"{run.machine.file_system} at {place}; old is 2026-11-23 with {OLD_BYTES / 1e9:.2f} GB of records",
        "",
        *("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table),
    ]
    notes = [finding["sentence"] for finding in findings]
    if run.interrupted:
        notes.append("interrupted: the rows above are complete, the others were not measured")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _markdown(run: SparkRun, rows: Sequence[_Row]) -> str:
    lines = [
        f"{_machine(run, 'a store')}, {run.machine.file_system}.",
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|---|{'---:|' * (len(_HEAD) - 1)}",
        *(f"| {' | '.join(_cells(row, name='what'))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"
