"""The comparison of our store with RocketMQ as a document, text and Markdown."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tornpage.bench.java.running import BesideJava, measure_beside
from tornpage.bench.java.shapes import FULL_WORK, SHAPES, Work
from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import REFERENCE, installed
from tornpage.properties.judge.rulings import counted

__all__ = ["beside_java"]


def beside_java(
    names: Sequence[str], place: str, *, seconds: float, work: Work = FULL_WORK
) -> tuple[Outcome, str, str]:
    """Measure some rows, or all; return the outcome, its text, and its table in Markdown.

    An unknown row, a directory that does not exist, and a missing release end the command.
    """
    known = [shape.name for shape in SHAPES]
    for name in names:
        if name not in known:
            refuse(f"{name!r} is no row; give one of {', '.join(known)}")
    if not os.path.isdir(place):
        refuse(f"{place} is no directory; name one that exists, on the disk to be measured")
    shapes = [shape for shape in SHAPES if not names or shape.name in names]
    try:
        release = installed(REFERENCE)
        with steps_progress("measuring", total=len(shapes)) as show:
            result = measure_beside(release, shapes, place, seconds=seconds, work=work, progress=show)
    except PeerUnavailable as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot measure in {place}: {error.strerror or error}; name another --directory")
    rows = [row.document() for row in result.rows]
    figures: dict[str, float | int] = {}
    for row in rows:
        figures |= {f"{row['name']}_{key}": row[key] for key in ("rate_ratio", "cpu_ratio") if row[key] is not None}
    findings = [
        {"code": "harness", "severity": "harness", "sentence": f"{name} failed: {reason}"}
        for name, reason in result.failed.items()
    ]
    if result.machine.is_memory_disk:
        sentence = f"{result.machine.file_system}: figures of synchronous puts show the code, not a disk"
        findings.append({"code": "memory-file-system", "severity": "note", "sentence": sentence})
    extra = {"peer": result.peer, "directory": place, "machine": asdict(result.machine), "rows": rows}
    outcome = Outcome(
        "bench java", "harness" if result.failed else None, figures, list(figures), findings, extra=extra,
        interrupted=result.interrupted,
    )  # fmt: skip
    return outcome, _text(result, rows, findings, place), _markdown(result, rows)


_HEAD = ("row", "RocketMQ", "tornpage", "ratio", "CPU RocketMQ", "CPU tornpage", "CPU ratio", "rounds")


def _cells(row: dict[str, Any]) -> list[str]:
    unit = "/s"
    cpu_ratio = "-" if row["cpu_ratio"] is None else f"{row['cpu_ratio']:.2f}"
    return [
        row["name"], _number(row["rocketmq_rate"]) + unit, _number(row["tornpage_rate"]) + unit,
        f"{row['rate_ratio']:.2f}", _number(row["rocketmq_cpu_us"]) + " us", _number(row["tornpage_cpu_us"]) + " us",
        cpu_ratio, str(row["rounds"]),
    ]  # fmt: skip


def _text(result: BesideJava, rows: Sequence[dict[str, Any]], findings: Sequence[dict[str, str]], place: str) -> str:
    table = [list(_HEAD), *map(_cells, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEAD))]
    lines = [
        f"{result.machine.processor}, {counted(result.machine.cores, 'core')}, {result.machine.python}, {result.peer}",
        f"{result.machine.file_system} at {place}; ratios are tornpage / RocketMQ, CPU is that of all threads per item",
        "",
        *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table),
    ]
    notes = [finding["sentence"] for finding in findings]
    if result.interrupted:
        notes.append("interrupted: the rows above are complete, the others were not measured")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _markdown(result: BesideJava, rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"{result.machine.processor}, {counted(result.machine.cores, 'core')}, {result.machine.python}, {result.peer}, "
        f"{result.machine.file_system}.",
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{'---|' * len(_HEAD)}",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
