"""Run `tornpage bugs holes`: list known RocketMQ defects, or search for planted ones.

Each hunt is a process of its own, so that one that hangs or dies cannot stop the rest. With a directory each result is
a file there as soon as it is known, and a hunt that was made before with the same arguments is not made again.
"""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tornpage import __version__
from tornpage.cli.document import Outcome, refuse, warn
from tornpage.properties.campaign.replay import shrink
from tornpage.properties.campaign.workers import Died, JobPool, Plain
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.judge.rulings import counted
from tornpage.properties.program.case import Settings
from tornpage.properties.score.detections import CaseDetection, Detection
from tornpage.properties.score.holes import HOLES, Hole
from tornpage.properties.score.search import search
from tornpage.properties.score.trials import PRELOAD

__all__ = ["hunt_outcome", "list_outcome"]

SHRINK_TRIES_MAX = 400

GRACE_S = 90.0
"""Extra seconds of a search for its start and for shrinking."""

Row = dict[str, Any]


# ---- the list --------------------------------------------------------------------------------------------------------


def list_outcome(holes: Sequence[Hole]) -> tuple[Outcome, str]:
    """Return the catalogue and its text."""
    rows = [_listed(hole) for hole in holes]
    figures = _counts(holes)
    lines = []
    for hole in holes:
        what = f"planted as {hole.bug}, hunted by {hole.hunt.describe()}" if hole.is_hosted else f"not: {hole.reason}"
        lines += [f"{hole.id:<4} {hole.sentence}", f"     {what}"]
    lines += ["", _counted(figures)]
    return Outcome("bugs holes", None, figures, extra={"rows": rows}), "\n".join(lines)


def _listed(hole: Hole) -> Row:
    return {
        "id": hole.id,
        "paragraph": hole.heading,
        "sentence": hole.sentence,
        "contracts": list(hole.contracts),
        "instead": hole.instead,
        "bug": hole.bug,
        "hunt": hole.hunt.describe() if hole.is_hosted else "",
        "regression": hole.regression,
        "reason": hole.reason,
    }


def _counts(holes: Sequence[Hole]) -> dict[str, float | int]:
    return {
        "holes": len(holes),
        "paragraphs": len({hole.heading for hole in holes}),
        "hosted": sum(hole.is_hosted for hole in holes),
        "hosted_paragraphs": len({hole.heading for hole in holes} - {h.heading for h in holes if not h.is_hosted}),
    }


def _counted(figures: dict[str, float | int]) -> str:
    return (
        f"{counted(figures['holes'], 'hole')} in {counted(figures['paragraphs'], 'paragraph')}; "
        f"{figures['hosted']} can be planted here, "
        f"all of {counted(figures['hosted_paragraphs'], 'paragraph')}"
    )


# ---- the hunt --------------------------------------------------------------------------------------------------------


def hunt_outcome(
    holes: Sequence[Hole], *, seconds: float, seed: int, out: str | None, progress: Callable[[str], None]
) -> tuple[Outcome, str]:
    """Search for the holes that can be planted; return the outcome and its text."""
    directory = None if out is None else _prepared(out)
    rows: list[Row] = []
    interrupted = False
    hosted = [hole for hole in holes if hole.is_hosted]
    try:
        for hole in hosted:
            progress(f"{hole.id} {hole.bug}")
            row = _kept(directory, hole, seconds=seconds, seed=seed) or _hunted(hole, seconds=seconds, seed=seed)
            rows.append(row)
            _keep(directory, row)
    except KeyboardInterrupt:
        interrupted = True
    found = {row["id"] for row in rows if row["result"] == "found"}
    missed = [row for row in rows if row["result"] != "found"]
    figures = _counts(holes) | {
        "found": len(found),
        "found_paragraphs": len({hole.heading for hole in hosted} - {h.heading for h in holes if h.id not in found}),
        "seconds": sum(row["seconds"] for row in rows),
    }
    harness = any(row["result"] == "harness" for row in rows)
    verdict = "harness" if harness else "vacuous" if missed or not rows else "holds"
    findings = [_finding(row) for row in missed] + [_others(row) for row in rows if row.get("others")]
    outcome = Outcome(
        "bugs holes", verdict, figures, ["seconds", "found", "found_paragraphs"], findings, seed=seed,
        extra={"rows": rows}, interrupted=interrupted,
    )  # fmt: skip
    return outcome, _text(rows, figures, interrupted=interrupted)


def _finding(row: Row) -> Row:
    severity = "harness" if row["result"] == "harness" else "vacuous"
    return {"code": "not-found", "severity": severity, "sentence": f"{row['id']} ({row['bug']}): {row['why']}"}


def _others(row: Row) -> Row:
    sentence = (
        f"{row['id']}: {counted(row['others'], 'failure')} on the way that the store has without {row['bug']} as well"
    )
    return {"code": "fails-without-it", "severity": "note", "sentence": sentence}


def _hunted(hole: Hole, *, seconds: float, seed: int) -> Row:
    """Hunt one hole in a process of its own, which is ended when it does not end."""
    row = {**_listed(hole), "arguments": _arguments(hole, seconds=seconds, seed=seed), "tries": 0, "seconds": seconds}
    job = Plain(partial(_hunt_hole, seconds=seconds, seed=seed))
    with closing(JobPool(job, iter((hole.id,)), 1, seconds + GRACE_S, PRELOAD).results()) as results:
        _, found = next(results)
    if isinstance(found, Died):
        return row | {"result": "hung" if found.is_hung else "harness", "why": f"the hunt {found.how}"}
    return row | found


def _hunt_hole(hole_id: str, seconds: float, seed: int) -> Row:
    """Search for a hole, and return the fields of its row."""
    logging.getLogger("tornpage").addHandler(logging.NullHandler())
    hole = HOLES[hole_id]
    strategy = hole.hunt.strategy
    try:
        with choose_tracker("auto") as tracker:
            quarry = search(strategy, Settings(bug=hole.bug), seed=seed, seconds=seconds, tracker=tracker)
            told = None if quarry.sighting is None else _told(quarry.sighting, tracker)
    except HarnessError as error:
        return {"result": "harness", "why": str(error)}
    row: Row = {"tries": quarry.count, "seconds": quarry.seconds, "others": quarry.others}
    if told is None:
        return row | {"result": "not found", "why": f"not seen in {quarry.count:,} {strategy.counts}"}
    return row | {"result": "found", "why": told["sentence"], "operations": len(told["program"]), "failure": told}


def _told(sighting: Detection, tracker: DirtyTracker) -> Row:
    """Return a failure, shrunk while it still needs its bug."""
    assert isinstance(sighting, CaseDetection)
    small = CaseDetection(shrink(sighting.failure, tracker=tracker, tries_max=SHRINK_TRIES_MAX))
    return (small if small.needs_its_bug(tracker) else sighting).failure.finding().document()


# ---- what is kept ----------------------------------------------------------------------------------------------------


def _arguments(hole: Hole, *, seconds: float, seed: int) -> Row:
    """Return what a result depends on, besides the machine."""
    return {
        "bug": hole.bug,
        "hunt": hole.hunt.describe(),
        "seconds": seconds,
        "seed": seed,
        "version": __version__,
    }


def _prepared(out: str) -> Path:
    directory = Path(out)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"cannot write to {error.filename or out}: {error.strerror}; name another --out directory")
    return directory


def _file_of(directory: Path, hole_id: str) -> Path:
    return directory / f"hole-{hole_id}.json"


def _kept(directory: Path | None, hole: Hole, *, seconds: float, seed: int) -> Row | None:
    """Return the result of an earlier run with the same arguments, if it was found there."""
    if directory is None:
        return None
    try:
        row: Row = json.loads(_file_of(directory, hole.id).read_text())
        same = row["result"] == "found" and row["arguments"] == _arguments(hole, seconds=seconds, seed=seed)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return row if same else None


def _keep(directory: Path | None, row: Row) -> None:
    if directory is None:
        return
    path = _file_of(directory, row["id"])
    try:
        path.write_text(json.dumps(row, indent=1) + "\n")
    except OSError as error:
        warn(f"{path} not written: {error.strerror}; the result is printed")


def _text(rows: Sequence[Row], figures: dict[str, float | int], *, interrupted: bool) -> str:
    lines = [f"{'hole':<5}{'bug':<31}{'result':<10}{'tries':>8}{'seconds':>9}{'length':>8}  found by"]
    for row in rows:
        length = row.get("operations", "")
        lines.append(
            f"{row['id']:<5}{row['bug']:<31}{row['result']:<10}{row['tries']:>8,}{row['seconds']:>9.1f}{length:>8}"
            f"  {row['hunt']}"
        )
    for row in rows:
        lines += ["", f"{row['id']} ({row['bug']}): {row['why']}"]
        if "failure" in row:
            lines += [f"  {number}. {step}" for number, step in enumerate(row["failure"]["program"], 1)]
            lines.append(f"  tornpage replay {row['failure']['token']}")
    lines += ["", f"{figures['found']} of {counted(figures['hosted'], 'planted hole')} found; {_counted(figures)}"]
    if interrupted:
        lines.append("interrupted")
    return "\n".join(lines)
