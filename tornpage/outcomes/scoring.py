"""Run `tornpage bugs score`: trials in processes, the scoreboard as document and text."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress, trials_progress
from tornpage.properties.campaign.resume import BadRows, ResumeRows, ResumeWriteError
from tornpage.properties.judge.rulings import counted
from tornpage.properties.planted import PLANTED
from tornpage.properties.score.board import IN_TURNS, Board, BugScore, board_of
from tornpage.properties.score.plan import Plan, may_see, reason_why_not
from tornpage.properties.score.score import score
from tornpage.properties.score.shrunk import ShrunkRow, shortest_failures, shrink_all, shrunk_rows
from tornpage.properties.score.survival import Interval
from tornpage.properties.score.trials import TrialRow, trial_rows

__all__ = ["read_scoreboard", "read_small", "score_outcome"]


SLOWEST = 10
_MEASURED = ("killed", "median", "never", "wins", "small", "most")
"""The prefixes of figures that depend on the speed of the machine."""

Row = dict[str, Any]


def score_outcome(
    plan: Plan, *, workers: int, shrink_s: float, directory: Path | None, command: str
) -> tuple[Outcome, str]:
    """Run missing trials; return outcome and text. An interrupt keeps finished trials.

    After the trials the shortest failure of each bug is shrunk for up to `shrink_s` seconds (0 means not at all).
    """
    try:
        kept, kept_failures = trial_rows(directory), shrunk_rows(directory)
    except BadRows as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot read {error.filename}: {error.strerror}; name another --out directory")
    interrupted = False
    try:
        with trials_progress("scoring") as show:
            score(plan, workers=workers, kept=kept, may_see=may_see, progress=show)
        _make_small(plan, kept, kept_failures, shrink_s, workers)
    except ResumeWriteError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        interrupted = True
    board = board_of(plan, kept.rows)
    small = _small_of(plan, kept, kept_failures)
    source = f"scoreboard, {counted(plan.trials, 'trial')}, {plan.budget_s:g} s ({plan.clock})"
    caption = {"source": source, "seed": plan.base_seed, "command": command}
    figures = _figures(board) | small_figures(small)
    measured = [name for name in figures if name.startswith(_MEASURED)]
    findings = [*_findings(board), *small_findings(small)]
    in_harness = any(finding["severity"] == "harness" for finding in findings)
    outcome = Outcome(
        "bugs score",
        "harness" if in_harness else "holds" if not board.never_killed else "vacuous",
        figures,
        measured,
        findings,
        seed=plan.base_seed,
        extra={"rows": [_row(each) for each in board.scores], "small": small_rows(small)},
        interrupted=interrupted,
        tables={
            "scoreboard": {
                "rows": [_row(each) for each in board.scores if each.strategy != IN_TURNS],
                "caption": caption,
            },
            "survival": {"rows": _survival(board), "caption": caption},
            "small": {"rows": small_rows(small), "caption": caption},
        },
    )
    return outcome, _text(board, plan.strategies, small_text(small), interrupted=interrupted)


def _make_small(
    plan: Plan, kept: ResumeRows[TrialRow], small: ResumeRows[ShrunkRow], shrink_s: float, workers: int
) -> None:
    failures = shortest_failures(plan.asked(kept.rows)) if shrink_s else ()
    if not failures:
        return
    with steps_progress("shrinking", total=len(failures), unit="failures") as show:
        shrink_all(
            failures, budget_s=shrink_s, clock=plan.clock, workers=workers, known=small.rows, take=small.add,
            progress=show,
        )  # fmt: skip


def _small_of(plan: Plan, kept: ResumeRows[TrialRow], small: ResumeRows[ShrunkRow]) -> list[ShrunkRow]:
    """Return the latest shrunk form of each shortest failure of this plan."""
    by_failure = {row.met: row for row in small.rows if row.clock == plan.clock}
    shortest = (failure.token for failure in shortest_failures(plan.asked(kept.rows)))
    return [by_failure[token] for token in shortest if token in by_failure]


# ---- as a document ---------------------------------------------------------------------------------------------------


def _figures(board: Board) -> dict[str, float | int]:
    figures: dict[str, float | int] = {
        "bugs": len(board.bugs),
        "bugs_tried": len(board.best),
        "budget_s": board.budget_s,
        "within_s": board.within_s,
        "killed": sum(each.kills > 0 for each in board.best.values()),
        "killed_within_60_s": board.killed_within,
        "killed_within_60_s_percent": 100 * board.killed_within / max(len(board.bugs), 1),
        "never_killed": len(board.never_killed),
        "trials": sum(each.trials for each in board.scores if each.strategy != IN_TURNS),
    }
    medians = {"median_kill_s": board.median_kill_s}
    for each in board.strategies:
        name = each.strategy.replace(" ", "_")
        figures[f"killed_{name}"] = each.killed
        figures[f"killed_within_60_s_{name}"] = each.killed_within
        figures[f"wins_{name}"] = each.wins
        medians[f"median_kill_s_{name}"] = each.median_kill_s
    return figures | {f"trials_{end}": count for end, count in board.lost.items()} | _finite(medians)


def _finite(values: Mapping[str, float]) -> dict[str, float | int]:
    """Leave out values past the budget, since JSON has no infinity."""
    return {name: value for name, value in values.items() if value < math.inf}


def _findings(board: Board) -> list[Row]:
    never = [
        {
            "code": "never-killed",
            "severity": "vacuous",
            "sentence": f"{bug}: {PLANTED[bug].sentence}: no strategy kills it",
        }
        for bug in board.never_killed
    ]
    lost = [
        {
            "code": f"trials-{end}",
            "severity": "harness",
            "sentence": f"{counted(count, 'trial')} {end} and give no result",
        }
        for end, count in sorted(board.lost.items())
    ]
    return [*lost, *never]


def _row(each: BugScore) -> Row:
    return {
        "bug": each.bug,
        "strategy": each.strategy,
        "trials": each.trials,
        "kills": each.kills,
        "lost": each.lost,
        "exhausted": each.exhausted,
        **_of("median", each.median_s, each.median_count),
        **_of("p95", each.p95_s, each.p95_count),
        "contracts": sorted({contract for contract, _ in each.signatures}),
        "signatures": [text for _, text in each.signatures],
        "operations": each.operations,
        "token": each.token,
        "others": each.others,
    }


def _of(name: str, seconds: Interval, count: Interval) -> Row:
    """Return two intervals; None means past the budget."""
    return {
        f"{name}_s": _or_none(seconds.value),
        f"{name}_s_low": _or_none(seconds.low),
        f"{name}_s_high": _or_none(seconds.high),
        f"{name}_count": _or_none(count.value),
        f"{name}_count_low": _or_none(count.low),
        f"{name}_count_high": _or_none(count.high),
    }


def _or_none(value: float) -> float | None:
    return None if math.isinf(value) else value


def _survival(board: Board) -> list[Row]:
    return [
        {"strategy": each.strategy, "seconds": seconds, "alive": alive}
        for each in board.strategies
        if each.survival
        for seconds, alive in ((0.0, 1.0), *each.survival, (board.budget_s, each.survival[-1][1]))
    ]


# ---- as text ---------------------------------------------------------------------------------------------------------


def _text(board: Board, strategies: Sequence[str], small: Sequence[str], *, interrupted: bool) -> str:
    within = f"<{board.within_s:g} s"
    lines = [f"{'bug':<28}" + "".join(f"{name:>24}" for name in strategies) + "   fastest"]
    by_key = {(each.bug, each.strategy): each for each in board.scores}
    for bug in board.bugs:
        cells = [_cell(by_key.get((bug, name)), reason_why_not(bug, name)) for name in strategies]
        best = board.best.get(bug)
        fastest = best.strategy if best is not None and best.kills else "-"
        lines.append(f"{bug:<28}" + "".join(f"{cell:>24}" for cell in cells) + f"   {fastest}")
    lines += [
        "",
        "kills/trials, median seconds, p95 seconds; - means beyond the budget, . a strategy that cannot show the bug",
    ]
    lines += ["", f"{'strategy':<16}{'bugs':>6}{'killed':>8}{within:>8}{'wins':>6}{'median s':>10}"]
    for each in board.strategies:
        wins = "" if each.strategy == IN_TURNS else each.wins
        lines.append(
            f"{each.strategy:<16}{each.bugs:>6}{each.killed:>8}{each.killed_within:>8}{wins:>6}"
            f"{_seconds(each.median_kill_s):>10}"
        )
    slowest = sorted(board.best.values(), key=lambda each: -each.median_s.value)[:SLOWEST]
    lines += ["", "slowest: " + ", ".join(f"{each.bug} {_seconds(each.median_s.value)} s" for each in slowest)]
    killed = sum(each.kills > 0 for each in board.best.values())
    lines += [
        "",
        f"{killed} of {counted(len(board.bugs), 'bug')} killed, {board.killed_within} of them within "
        f"{board.within_s:g} s by a "
        f"single strategy; median {_seconds(board.median_kill_s)} s; budget {board.budget_s:g} s",
    ]
    lines += small
    if board.never_killed:
        lines.append(f"never killed: {', '.join(board.never_killed)}")
    for end, count in sorted(board.lost.items()):
        lines.append(f"{counted(count, 'trial')} {end} and give no result")
    if interrupted:
        lines.append("interrupted")
    return "\n".join(lines)


def _cell(each: BugScore | None, reason: str) -> str:
    if each is None:
        return "." if reason else "?"
    return f"{each.kills}/{each.trials} {_seconds(each.median_s.value)} {_seconds(each.p95_s.value)}"


def _seconds(value: float) -> str:
    return "-" if math.isinf(value) else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def read_small(directory: Path, bug: str) -> list[Row]:
    """Return the shrunk failure of a bug, or an empty list."""
    try:
        rows: list[Row] = json.loads((directory / "tables" / "small.json").read_text())["rows"]
        return [row for row in rows if row["bug"] == bug and row["token"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def read_scoreboard(directory: Path) -> list[Row]:
    """Return the rows of a score directory. Raises OSError, ValueError or KeyError."""
    rows: list[Row] = json.loads((directory / "tables" / "scoreboard.json").read_text())["rows"]
    return rows


# ---- shrunk failures -------------------------------------------------------------------------------------------------


_LARGEST = 5


def _made(rows: Sequence[ShrunkRow]) -> list[ShrunkRow]:
    return [row for row in rows if row.token]


def small_figures(rows: Sequence[ShrunkRow]) -> dict[str, float | int]:
    """Return counts of shrunk and 1-minimal failures, and medians of their size."""
    made = _made(rows)
    if not made:
        return {}
    return {
        "small_failures": len(made),
        "small_one_minimal": sum(row.one_minimal is True for row in made),
        "median_small_operations": median(row.operations for row in made),
        "median_small_lost_pages": median(row.lost_pages for row in made),
        "most_small_operations": max(row.operations for row in made),
        "most_small_lost_pages": max(row.lost_pages for row in made),
    }


def small_rows(rows: Sequence[ShrunkRow]) -> list[dict[str, Any]]:
    """Return them as a document has them."""
    return [asdict(row) for row in rows]


def small_findings(rows: Sequence[ShrunkRow]) -> list[dict[str, str]]:
    """Return what went wrong on the way: each names its bug."""
    return [
        {
            "code": f"small-{row.ended or 'harness'}",
            "severity": "harness",
            "sentence": f"{row.bug}: its failure could not be shrunk: {row.why or 'it does not show again'}",
        }
        for row in rows
        if not row.token
    ]


def small_text(rows: Sequence[ShrunkRow]) -> list[str]:
    """Return lines for people, none if nothing was made small."""
    made = _made(rows)
    if not made:
        return []
    figures = small_figures(rows)
    largest = sorted(made, key=lambda row: (-row.operations, row.bug))[:_LARGEST]
    return [
        f"shrunk: the shortest failure of {counted(len(made), 'bug')}; median {figures['median_small_operations']:g} "
        f"operations and {figures['median_small_lost_pages']:g} lost pages, "
        f"{figures['small_one_minimal']} are 1-minimal",
        "longest after shrinking: " + ", ".join(f"{row.bug} {row.operations}" for row in largest),
    ]
