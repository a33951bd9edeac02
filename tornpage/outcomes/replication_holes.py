"""Run `bugs holes --replication` and `--raft`: show defects on RocketMQ's own jars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.peers.rocketmq.ha_holes import ReplicationHole
    from tornpage.peers.rocketmq.ha_lab import HaLab
    from tornpage.peers.rocketmq.installing import Release
    from tornpage.peers.rocketmq.raft_holes import RaftHole
    from tornpage.peers.rocketmq.raft_lab import RaftLab

    Hole = ReplicationHole | RaftHole
    Lab = HaLab | RaftLab

__all__ = ["RAFT_DEFECTS", "REPLICATION_DEFECTS", "raft_holes_outcome", "replication_holes_outcome"]

VERSION = "4.9.3"
REPLICATION_DEFECTS = 25
RAFT_DEFECTS = 10
"""Defects that have a schedule."""
_AT_ONCE = 3
"""Schedules at the same time. Most of their time is waiting. Those of Raft have three members each, and run alone."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Family:
    """The defects of one command, and how their schedules run."""

    holes: Mapping[str, Hole]
    wanted: Sequence[Hole]
    installed: Callable[[], Release]
    lab: Callable[[Release], Lab]
    jar: str
    at_once: int


def replication_holes_outcome(only: str, *, progress: Callable[[str], None]) -> tuple[Outcome, str]:
    """Run the schedules of defects of master and slave; return the outcome and its text.

    The verdict is "vacuous" if a schedule does not show its defect. It is "unknown" without Java or the release.
    """
    from tornpage.peers.rocketmq import installing
    from tornpage.peers.rocketmq.ha_holes import REPLICATION_HOLES, replication_holes_named
    from tornpage.peers.rocketmq.ha_lab import HaLab

    try:
        wanted = replication_holes_named(only)
    except KeyError as unknown:
        refuse(f"no defect {unknown.args[0]!r}; there are: {', '.join(REPLICATION_HOLES)}")
    return _run(
        _Family(
            REPLICATION_HOLES, wanted, lambda: installing.installed(VERSION), HaLab, f"RocketMQ {VERSION}", _AT_ONCE
        ),
        progress,
    )


def raft_holes_outcome(only: str, *, progress: Callable[[str], None]) -> tuple[Outcome, str]:
    """Run the schedules of defects of DLedger; return the outcome and its text.

    The verdicts are those of `replication_holes_outcome`. It is "broken" if the same events break a promise of members
    of this project.
    """
    from tornpage.peers.rocketmq import installing
    from tornpage.peers.rocketmq.raft_holes import RAFT_HOLES, raft_holes_named
    from tornpage.peers.rocketmq.raft_lab import RaftLab

    try:
        wanted = raft_holes_named(only)
    except KeyError as unknown:
        refuse(f"no defect {unknown.args[0]!r}; there are: {', '.join(RAFT_HOLES)}")
    return _run(
        _Family(
            RAFT_HOLES, wanted, lambda: installing.installed(VERSION, installing.DLEDGER), RaftLab, "DLedger 0.2.3", 1
        ),
        progress,
    )


def _run(family: _Family, progress: Callable[[str], None]) -> tuple[Outcome, str]:
    from tornpage.peers.errors import PeerUnavailable

    release: Release | None = None
    missing = ""
    try:
        release = family.installed()
    except PeerUnavailable as error:
        missing = str(error)
    started, interrupted = perf_counter(), False
    rows = {hole.id: _listed(hole) for hole in family.wanted}
    try:
        if release is not None:
            for hole, row in _rows(family, release):
                rows[hole.id] |= row
                progress(hole.id)
    except KeyboardInterrupt:
        interrupted = True
    return _outcome(list(rows.values()), family.jar, missing, perf_counter() - started, interrupted=interrupted)


def _rows(family: _Family, release: Release) -> Iterator[tuple[Hole, Row]]:
    """Yield the row of each schedule as it ends."""
    shown = [hole for hole in family.wanted if hole.schedule is not None]
    if family.at_once == 1:
        for hole in shown:
            yield hole, _shown(hole, release, family.lab)
        return
    with ThreadPoolExecutor(family.at_once) as pool:
        running: dict[Future[Row], Hole] = {pool.submit(_shown, hole, release, family.lab): hole for hole in shown}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _listed(hole: Hole) -> Row:
    result = "not shown here" if hole.schedule is None else "not run"
    return {
        "id": hole.id, "sentence": hole.sentence, "instead": hole.instead, "result": result, "why": hole.reason,
        "seconds": 0.0, "schedule": [],
    }  # fmt: skip


def _shown(hole: Hole, release: Release, lab_of: Callable[[Release], Lab]) -> Row:
    """Run the schedule of a defect, once more if it showed nothing or failed."""
    from tornpage.peers.errors import PeerFailed, PeerUnavailable

    started = perf_counter()
    row: Row = {}
    for _ in range(2):
        with lab_of(release) as lab:
            try:
                seen = hole.schedule(lab)  # type: ignore[misc, arg-type]  # a hole and its lab are of one family
                row = {"result": "not seen" if seen is None else "shown", "why": seen or "the schedule did not show it"}
            except PeerUnavailable as error:
                row = {"result": "not run", "why": str(error)}
            except (PeerFailed, OSError) as error:
                row = {"result": "harness", "why": f"{type(error).__name__}: {error}"}
            row["schedule"] = [event.strip() for event in lab.events]
        if row["result"] in ("shown", "not run"):
            break
    return row | _on_ours(hole) | {"seconds": perf_counter() - started}


def _on_ours(hole: Hole) -> Row:
    """Carry out the same events on members of this project, if the defect has that."""
    from tornpage.properties.contract import GuaranteeBroken

    ours = getattr(hole, "ours", None)
    if ours is None:
        return {}
    try:
        return {"ours": ours(), "ours_holds": True}
    except GuaranteeBroken as broken:
        return {"ours": str(broken), "ours_holds": False}


def _outcome(rows: Sequence[Row], jar: str, missing: str, seconds: float, *, interrupted: bool) -> tuple[Outcome, str]:
    found = {
        word: [row for row in rows if row["result"] == word] for word in ("shown", "not seen", "harness", "not run")
    }
    figures: dict[str, float | int] = {
        "defects": len(rows),
        "schedules": len([row for row in rows if row["result"] != "not shown here"]),
        "shown": len(found["shown"]),
        "seconds": seconds,
    }
    broken = [row for row in rows if not row.get("ours_holds", True)]
    if broken:
        verdict = "broken"
    elif missing or found["not run"]:
        verdict = "unknown"
    else:
        verdict = "harness" if found["harness"] else "vacuous" if found["not seen"] else "holds"
    findings = [
        {"code": "not-shown", "severity": "harness" if row["result"] == "harness" else "vacuous",
         "sentence": f"{row['id']}: {row['why']}"}
        for row in (*found["not seen"], *found["harness"])
    ]  # fmt: skip
    findings += [
        {"code": "ours", "severity": "broken", "sentence": f"{row['id']} on our members: {row['ours']}"}
        for row in broken
    ]
    if missing:
        findings.append({"code": "no-peer", "severity": "unknown", "sentence": missing})
    outcome = Outcome(
        "bugs holes", verdict, figures, ["seconds", "shown"], findings, extra={"rows": list(rows)},
        interrupted=interrupted,
    )  # fmt: skip
    return outcome, _text(rows, jar, figures, missing, interrupted=interrupted)


def _text(rows: Sequence[Row], jar: str, figures: dict[str, float | int], missing: str, *, interrupted: bool) -> str:
    lines = []
    for row in rows:
        lines += [f"{row['id']:<4} {row['result']:<15} {row['sentence']}", f"     {row['why']}"]
        lines += [f"       {event}" for event in row["schedule"]]
        lines.append(f"     here: {row['instead']}")
        lines += [f"     the same events here: {row['ours']}"] if "ours" in row else []
    told = f"{figures['shown']} of {counted(figures['schedules'], 'schedule')} showed their defect on {jar}"
    lines += ["", f"{told}; {counted(figures['defects'] - figures['schedules'], 'defect')} with a reason for none"]
    return "\n".join([*lines, *([missing] if missing else []), *(["interrupted"] if interrupted else [])])
