"""Run `tornpage bugs holes --replication`: show defects on RocketMQ's own jar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse

if TYPE_CHECKING:
    from tornpage.peers.rocketmq.ha_holes import ReplicationHole
    from tornpage.peers.rocketmq.installing import Release

__all__ = ["REPLICATION_DEFECTS", "replication_holes_outcome"]

VERSION = "4.9.3"
REPLICATION_DEFECTS = 25
"""Defects that have a schedule."""
_AT_ONCE = 3
"""Schedules at the same time. Most of their time is waiting."""

Row = dict[str, Any]


def replication_holes_outcome(only: str, *, progress: Callable[[str], None]) -> tuple[Outcome, str]:
    """Run the schedules of some defects, or of all; return the outcome and its text.

    The verdict is "vacuous" if a schedule does not show its defect. It is "unknown" without Java or the release.
    """
    from tornpage.peers.errors import PeerUnavailable
    from tornpage.peers.rocketmq.ha_holes import REPLICATION_HOLES, replication_holes_named
    from tornpage.peers.rocketmq.installing import installed

    try:
        holes = replication_holes_named(only)
    except KeyError as unknown:
        refuse(f"no defect {unknown.args[0]!r}; there are: {', '.join(REPLICATION_HOLES)}")
    release: Release | None = None
    missing = ""
    try:
        release = installed(VERSION)
    except PeerUnavailable as error:
        missing = str(error)
    started, interrupted = perf_counter(), False
    rows = {hole.id: _listed(hole) for hole in holes}
    shown = [hole for hole in holes if hole.schedule is not None]
    if release is not None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            running: dict[Future[Row], str] = {pool.submit(_shown, hole, release): hole.id for hole in shown}
            try:
                for done in as_completed(running):
                    rows[running[done]] |= done.result()
                    progress(running[done])
            except KeyboardInterrupt:
                interrupted = True
                pool.shutdown(cancel_futures=True)
    return _outcome(list(rows.values()), missing, perf_counter() - started, interrupted=interrupted)


def _listed(hole: ReplicationHole) -> Row:
    result = "not shown here" if hole.schedule is None else "not run"
    return {
        "id": hole.id, "sentence": hole.sentence, "instead": hole.instead, "result": result, "why": hole.reason,
        "seconds": 0.0, "schedule": [],
    }  # fmt: skip


def _shown(hole: ReplicationHole, release: Release) -> Row:
    """Run the schedule of a defect, once more if it showed nothing or failed."""
    from tornpage.peers.errors import PeerFailed
    from tornpage.peers.rocketmq.ha_lab import HaLab

    assert hole.schedule is not None
    started = perf_counter()
    row: Row = {}
    for _ in range(2):
        with HaLab(release) as lab:
            try:
                seen = hole.schedule(lab)
                row = {"result": "not seen" if seen is None else "shown", "why": seen or "the schedule did not show it"}
            except (PeerFailed, OSError) as error:
                row = {"result": "harness", "why": f"{type(error).__name__}: {error}"}
            row["schedule"] = [event.strip() for event in lab.events]
        if row["result"] == "shown":
            break
    return row | {"seconds": perf_counter() - started}


def _outcome(rows: Sequence[Row], missing: str, seconds: float, *, interrupted: bool) -> tuple[Outcome, str]:
    found = {
        word: [row for row in rows if row["result"] == word] for word in ("shown", "not seen", "harness", "not run")
    }
    figures: dict[str, float | int] = {
        "defects": len(rows),
        "schedules": len([row for row in rows if row["result"] != "not shown here"]),
        "shown": len(found["shown"]),
        "seconds": seconds,
    }
    if missing or found["not run"]:
        verdict = "unknown"
    else:
        verdict = "harness" if found["harness"] else "vacuous" if found["not seen"] else "holds"
    findings = [
        {"code": "not-shown", "severity": "harness" if row["result"] == "harness" else "vacuous",
         "sentence": f"{row['id']}: {row['why']}"}
        for row in (*found["not seen"], *found["harness"])
    ]  # fmt: skip
    if missing:
        findings.append({"code": "no-peer", "severity": "unknown", "sentence": missing})
    outcome = Outcome(
        "bugs holes", verdict, figures, ["seconds", "shown"], findings, extra={"rows": list(rows)},
        interrupted=interrupted,
    )  # fmt: skip
    return outcome, _text(rows, figures, missing, interrupted=interrupted)


def _text(rows: Sequence[Row], figures: dict[str, float | int], missing: str, *, interrupted: bool) -> str:
    lines = []
    for row in rows:
        lines += [f"{row['id']:<4} {row['result']:<15} {row['sentence']}", f"     {row['why']}"]
        lines += [f"       {event}" for event in row["schedule"]]
        lines.append(f"     here: {row['instead']}")
    told = f"{figures['shown']} of {figures['schedules']} schedules showed their defect on RocketMQ {VERSION}"
    lines += ["", f"{told}; {figures['defects'] - figures['schedules']} defects have a reason for none"]
    return "\n".join([*lines, *([missing] if missing else []), *(["interrupted"] if interrupted else [])])
