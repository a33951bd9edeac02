"""The matrix of releases as a document, as text, and as a page in Markdown."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import counted_progress
from tornpage.peers.errors import PeerUnavailable
from tornpage.properties.judge.rulings import counted
from tornpage.properties.scratch import memory_directory, scratch_directory

if TYPE_CHECKING:
    from tornpage.peers.matrix.running import Cell, Matrix
    from tornpage.peers.rocketmq.installing import Release

__all__ = ["MatrixRequest", "matrix_outcome", "matrix_page", "run_request"]

_PLAN = "plan.json"
_MADE = {_PLAN, "stores", "cells"}


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """What a user asked for. Without `versions` all installed releases take part."""

    versions: tuple[str, ...]
    operations: int
    seed: int
    workers: int
    out: str | None
    resume: bool


def run_request(request: MatrixRequest) -> "tuple[Matrix, list[str]]":
    """Run the matrix; return it and the releases that are not installed.

    A release that was named and cannot run ends the command.
    """
    from tornpage.peers.matrix.running import MatrixPlan, run_matrix

    releases, missing = _releases(request.versions)
    plan = MatrixPlan(releases, request.operations, request.seed, request.workers)
    total = 2 * 2 + 3 * len(releases) + len(releases)
    with (
        _directory(request, plan.identity()) as directory,
        counted_progress("comparing", total=total, unit="stores and readers") as show,
    ):
        done = 0

        def progress(name: str) -> None:
            nonlocal done
            done += 1
            show(done, name)

        return run_matrix(plan, directory, progress=progress), missing


def _releases(versions: Sequence[str]) -> "tuple[list[Release], list[str]]":
    from tornpage.peers.rocketmq.installing import VERSIONS, installed, is_installed, require_version

    try:
        for version in versions:
            require_version(version)
        chosen = [v for v in VERSIONS if v in versions] if versions else [v for v in VERSIONS if is_installed(v)]
        if not chosen:
            raise PeerUnavailable("no release is installed; run `tornpage peer install rocketmq all` first")
        found = [installed(version) for version in chosen]
    except PeerUnavailable as error:
        refuse(str(error))
    return found, [] if versions else [version for version in VERSIONS if version not in chosen]


@contextmanager
def _directory(request: MatrixRequest, identity: dict[str, Any]) -> Iterator[Path]:
    """Yield the directory of the stores: that of `--out`, or a temporary one in memory."""
    if request.out is None:
        with scratch_directory("tornpage-matrix-", below=memory_directory()) as made:
            yield Path(made)
        return
    directory = Path(request.out)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        foreign = sorted({path.name for path in directory.iterdir() if not path.name.startswith("copies-")} - _MADE)
        if foreign:
            refuse(f"{directory} holds {foreign[0]}, which is no part of a matrix; name a new --out directory")
        plan = directory / _PLAN
        if request.resume and plan.exists() and json.loads(plan.read_text()) != identity:
            refuse(f"{directory} holds a matrix of other releases, operations, seed or driver; run without --resume")
        if not request.resume:
            for name in _MADE - {_PLAN}:
                shutil.rmtree(directory / name, ignore_errors=True)
        plan.write_text(json.dumps(identity) + "\n")
    except (OSError, ValueError) as error:
        refuse(f"cannot use {directory}: {getattr(error, 'strerror', None) or error}; name another --out directory")
    yield directory


def matrix_outcome(matrix: "Matrix", request: MatrixRequest, missing: Sequence[str]) -> tuple[Outcome, str]:
    """Return the outcome and the text of a matrix.

    The verdict is broken if a difference has no reason, a reading failed, or our store has a finding on a healthy
    store.
    """
    from tornpage.peers.matrix.known import FINDINGS, KNOWN, OURS

    bad = [cell for cell in matrix.cells if cell.is_bad]
    known: Counter[str] = Counter()
    for cell in matrix.cells:
        known.update(cell.known)
    findings = [{"code": "matrix", "severity": "broken", "sentence": _sentence(cell)} for cell in bad]
    findings += [
        {"code": "skipped", "severity": "note", "sentence": f"RocketMQ {version} is not installed"}
        for version in missing
    ]
    reasons = {each.name: each.reason for each in KNOWN} | FINDINGS
    figures = {
        "releases": len({name for cell in matrix.cells for name in (cell.reader, cell.writer)} - {OURS}),
        "readings": len(matrix.cells),
        "comparisons": sum(cell.comparisons for cell in matrix.cells),
        "differences_known": sum(known.values()),
        "differences_unexplained": sum(cell.unexplained for cell in matrix.cells),
        "readings_failed": sum(bool(cell.error) for cell in matrix.cells),
        "readings_with_findings": sum(bool(cell.findings) for cell in matrix.cells),
    }
    extra = {
        "cells": [cell.document() for cell in matrix.cells],
        "known": [{"name": name, "count": known[name], "reason": text} for name, text in reasons.items()],
    }
    verdict = "broken" if bad else "holds" if matrix.cells else "vacuous"
    outcome = Outcome(
        "peer matrix", verdict, figures, findings=findings, seed=request.seed, extra=extra,
        interrupted=matrix.interrupted,
    )  # fmt: skip
    return outcome, _text(matrix, outcome, known, reasons)


def _sentence(cell: "Cell") -> str:
    who = f"{_name(cell.writer)} {cell.checksum} {cell.ending}".replace("  ", " ")
    how = f"{who}, read by {_name(cell.reader)}{' again' if cell.again else ''}"
    if cell.error:
        return f"{how}: {cell.error}"
    if cell.unexplained:
        return f"{how}: {counted(cell.unexplained, 'difference')} without a reason; {cell.sentences[0]}"
    return f"{how}: findings {', '.join(cell.findings)}"


def _name(store: str) -> str:
    return "our store" if store == "tornpage" else store


def _text(matrix: "Matrix", outcome: Outcome, known: Counter[str], reasons: dict[str, str]) -> str:
    figures = outcome.figures
    lines = [*_table(matrix, plain=True), ""]
    lines += [f"{name}, {known[name]}: {text}" for name, text in reasons.items() if known[name]]
    lines += [finding["sentence"] for finding in outcome.findings]
    lines += [
        "",
        f"{counted(figures['comparisons'], 'comparison')} in {counted(figures['readings'], 'reading')}: "
        f"{counted(figures['differences_known'], 'known difference')}, {figures['differences_unexplained']:,} "
        "without a reason",
        f"verdict: {'interrupted' if matrix.interrupted else outcome.verdict}",
    ]
    return "\n".join(lines)


_COLUMNS = (
    ("reads ours, closed", lambda cell, v: (cell.writer, cell.reader, cell.ending) == ("tornpage", v, "closed")),
    ("reads ours, killed", lambda cell, v: (cell.writer, cell.reader, cell.ending) == ("tornpage", v, "killed")),
    ("read by ours, closed", lambda cell, v: (cell.writer, cell.reader, cell.ending) == (v, "tornpage", "closed")),
    ("read by ours, killed", lambda cell, v: (cell.writer, cell.reader, cell.ending) == (v, "tornpage", "killed")),
    ("read by ours, expired", lambda cell, v: (cell.writer, cell.reader, cell.ending) == (v, "tornpage", "expired")),
    ("reads the releases", lambda cell, v: cell.reader == v and cell.writer != "tornpage"),
    ("read by the releases", lambda cell, v: cell.writer == v and cell.reader != "tornpage"),
)


def _table(matrix: "Matrix", *, plain: bool) -> list[str]:
    """Return a row for each release: unexplained, compared and known differences."""
    versions = list(dict.fromkeys(cell.reader for cell in matrix.cells if cell.reader != "tornpage"))
    head = ["release", *(name for name, _ in _COLUMNS)]
    rows = [[version, *(_figure(matrix.cells, chosen, version) for _, chosen in _COLUMNS)] for version in versions]
    if not plain:
        return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]


def _figure(cells: "Sequence[Cell]", chosen: Any, version: str) -> str:
    mine = [cell for cell in cells if chosen(cell, version)]
    if any(cell.error for cell in mine):
        return "failed"
    known = sum(sum(cell.known.values()) for cell in mine)
    text = f"{sum(cell.unexplained for cell in mine):,} of {sum(cell.comparisons for cell in mine):,}"
    return f"{text} (+{known} known)" if known else text


def matrix_page(matrix: "Matrix", outcome: Outcome, command: str) -> str:
    """Return the part of the page that a run writes, in Markdown."""
    lines = [f"`{command}`", "", *_table(matrix, plain=False), ""]
    lines += [
        f"{counted(outcome.figures['comparisons'], 'comparison')} in "
        f"{counted(outcome.figures['readings'], 'reading')}: "
        f"{counted(outcome.figures['differences_unexplained'], 'difference')} without a reason, "
        f"{outcome.figures['differences_known']:,} known ones.",
        "",
        "| known difference | count | reason |",
        "|---|---|---|",
    ]
    lines += [f"| `{each['name']}` | {each['count']} | {each['reason']} |" for each in outcome.extra["known"]]
    return "\n".join(lines) + "\n"
