"""Render planted bugs for `tornpage bugs list` and `tornpage bugs show`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tornpage.cli.document import Outcome, refuse
from tornpage.outcomes.scoring import read_scoreboard, read_small
from tornpage.properties.judge.rulings import counted
from tornpage.properties.planted import PLANTED, Origin, PlantedBug
from tornpage.properties.program.case import Case, describe
from tornpage.properties.program.steps import described_step
from tornpage.properties.promises import PROMISES
from tornpage.properties.score.holes import HOLES, Hole
from tornpage.properties.score.plan import reason_why_not
from tornpage.properties.score.strategies import STRATEGIES
from tornpage.render.counterexample import program_lines

__all__ = ["list_outcome", "show_outcome"]

Row = dict[str, Any]


def list_outcome(group: str) -> tuple[Outcome, str]:
    """Return all bugs, or those of a group sorted by kind."""
    bugs = [bug for bug in PLANTED.values() if group in ("", bug.group)]
    bugs.sort(key=lambda bug: bug.kind if group else "")
    rows = [_listed(bug) for bug in bugs]
    width = max(len(bug.id) for bug in bugs)
    lines = [f"{'bug':<{width}}  contract  {'origin':<12}{'strategies':<32}what is wrong"]
    for bug, row in zip(bugs, rows, strict=True):
        origin, strategies = _short_origin(row), ", ".join(row["strategies"])
        shown = "all" if len(row["strategies"]) == len(STRATEGIES) else strategies
        kind = f"{bug.kind}: " if group else ""
        lines.append(f"{bug.id:<{width}}  {bug.contract:>8}  {origin:<12}{shown:<32}{kind}{bug.sentence}")
    return Outcome("bugs list", None, {"bugs": len(rows)}, extra={"rows": rows}), "\n".join(lines)


def show_outcome(bug: PlantedBug, scores: Path | None) -> tuple[Outcome, str]:
    """Return one bug: sentence, origin, and the scores of a directory, if given."""
    rows = [] if scores is None else [row for row in _scores(scores) if row["bug"] == bug.id]
    found = {**_listed(bug), "promise": PROMISES[bug.contract], "group": bug.group, "kind": bug.kind, "scores": rows}
    found["smallest"] = _smallest(bug)
    lines = [bug.id, f"  {bug.sentence}", "", f"  breaks contract {bug.contract}: {PROMISES[bug.contract]}"]
    if bug.group:
        lines.append(f"  {bug.group}: {bug.kind}")
    lines += [f"  {line}" for line in _told_origins(bug)]
    lines += ["", *_told_smallest(bug)]
    lines += ["", *_told_scores(bug, rows, given=scores is not None)]
    lines += _told_failure(rows, [] if scores is None else read_small(scores, bug.id))
    return Outcome("bugs show", None, {}, extra={"bug": found}), "\n".join(lines)


def _smallest(bug: PlantedBug) -> Row | None:
    """Return the minimal reproducer and its contract, or None where threads have to meet."""
    case = bug.reproducer
    if bug.cluster_reproducer is not None:
        cluster = bug.cluster_reproducer
        operations = [described_step(each) for each in cluster.operations]
        return {"operations": operations, "breaks": bug.shown_contract, "token": cluster.token()}
    several = bug.group_reproducer or bug.raft_reproducer
    if several is not None:
        operations = [described_step(each) for each in several.operations]
        return {"operations": operations, "breaks": bug.shown_contract, "token": several.token()}
    if case is None:
        return None
    return {
        "operations": [describe(operation) for operation in case.operations],
        "breaks": bug.shown_contract,
        "token": case.token(),
    }


def _told_smallest(bug: PlantedBug) -> list[str]:
    smallest, case = _smallest(bug), bug.reproducer
    if smallest is None:
        return ["  minimal reproducer: none, because two threads have to meet (docs/interleaving.md)"]
    besides = "" if smallest["breaks"] == bug.contract else f", which breaks contract {smallest['breaks']} first"
    return [f"  minimal reproducer{besides}:", *_program(smallest, case), f"    tornpage replay {smallest['token']}"]


def _program(smallest: Row, case: Case | None) -> list[str]:
    """Return the lines of a reproducer."""
    if case is not None:
        return program_lines(case)
    return [f"    {number}. {each}" for number, each in enumerate(smallest["operations"], 1)]


def _told_failure(rows: Sequence[Row], small: Sequence[Row]) -> list[str]:
    """Return the shortest failure, shrunk if possible, or nothing."""
    if small:
        told = (
            f"{counted(small[0]['operations'], 'operation')} and {counted(small[0]['lost_pages'], 'lost page')}, shrunk"
        )
        return ["", f"  shortest failure, {told}:", f"    tornpage replay {small[0]['token']}"]
    met = min((row for row in rows if row["kills"] and row["token"]), key=lambda row: row["operations"], default=None)
    if met is None:
        return []
    told = f"{counted(met['operations'], 'operation')} as found by {met['strategy']}"
    return ["", f"  shortest failure, {told}:", f"    tornpage replay {met['token']}"]


def _listed(bug: PlantedBug) -> Row:
    return {
        "id": bug.id,
        "contract": bug.contract,
        "sentence": bug.sentence,
        "rocketmq": [] if bug.origin is None else [bug.origin.id],
        "holes": [hole.id for hole in _holes(bug)],
        "strategies": [name for name in STRATEGIES if not reason_why_not(bug.id, name)],
    }


def _holes(bug: PlantedBug) -> Sequence[Hole]:
    return [HOLES[hole] for hole in bug.holes]


def _short_origin(row: Row) -> str:
    return ", ".join([*row["holes"], *(name for name in row["rocketmq"] if name != row["id"])]) or (
        "RocketMQ" if row["rocketmq"] else "own"
    )


def _told_origins(bug: PlantedBug) -> list[str]:
    origin = bug.origin
    if origin is None and not bug.holes:
        return ["made for this tester; no release of RocketMQ is known to have it"]
    lines = [] if origin is None else [f"{origin.id}: {origin.title} ({_history(origin)})"]
    for hole in _holes(bug):
        lines += [f"hole {hole.id}: 4.9.3: {hole.sentence}", f"  here: {hole.instead}"]
    return lines


def _history(origin: Origin) -> str:
    still = {"yes": "present in 4.9.3", "no": "not in 4.9.3"}.get(origin.in_493, f"4.9.3: {origin.in_493}")
    fixed = origin.fixed_in if " " in origin.fixed_in else f"fixed in {origin.fixed_in}"
    return f"{fixed}; {still}"


def _told_scores(bug: PlantedBug, rows: Sequence[Row], *, given: bool) -> list[str]:
    why = [f"  {name} cannot show it: {reason}" for name in STRATEGIES if (reason := reason_why_not(bug.id, name))]
    if not given:
        return [*why, "  how fast it is killed: tornpage bugs score --out DIR, then tornpage bugs show ID --scores DIR"]
    lines = [f"  {'strategy':<16}{'kills':>8}{'median s':>10}{'p95 s':>8}{'median count':>14}"]
    for row in rows:
        cells = [_or_dash(row[name]) for name in ("median_s", "p95_s", "median_count")]
        kills = f"{row['kills']}/{row['trials']}"
        lines.append(f"  {row['strategy']:<16}{kills:>8}{cells[0]:>10}{cells[1]:>8}{cells[2]:>14}")
    return [*lines, *why] if rows else [*why, "  no trials in that directory"]


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _scores(directory: Path) -> list[Row]:
    try:
        return read_scoreboard(directory)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        refuse(f"{directory} is not a directory written by `tornpage bugs score --out`: it has no table scoreboard")
