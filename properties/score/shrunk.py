"""Shrink the shortest failure of each killed bug, so that it can be understood.

Each is shrunk in a process of its own, like a trial. A case is shrunk as `tornpage shrink` does it, within a time
limit, and so are cases of several nodes. An interleaving is shrunk as after its detection, within a number of tries.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tornpage.properties.campaign.replay import replay, shrink
from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.campaign.workers import Died, JobPool, Plain
from tornpage.properties.cluster.replay import CLUSTERS
from tornpage.properties.consumers.replay import CONSUMER_GROUPS
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.explore.interleavings.shrink import shrink as shrink_interleaving
from tornpage.properties.explore.interleavings.token import from_token as interleaving_of
from tornpage.properties.lockstep.step_program import StepProgram
from tornpage.properties.program.case import TOKEN_PREFIX as CASE_PREFIX
from tornpage.properties.program.case import Case
from tornpage.properties.raft.replay import RAFT_GROUPS
from tornpage.properties.score.detections import InterleavingDetection
from tornpage.properties.score.trials import CLOCKS, PRELOAD, ClockName, TrialRow

__all__ = ["SMALL", "ShrunkRow", "TakeRow", "shortest_failures", "shrink_all", "shrunk_rows"]

SMALL = "small.jsonl"

_SLACK_S = 60.0
_WALL_OF_CPU_MAX = 20
_TRIES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class ShrunkRow:
    """Hold the result of shrinking one failure, identified by its original token `met`.

    `budget_s` is the time limit in seconds. `losses` counts the pages, sizes and names that its power losses lost,
    `lost_pages` the pages among them. `one_minimal` is None where it is not known. `ended` says
    what ended the shrinking early ("time", "tries"), that the failure did not show again ("holds"), or how the process
    ended ("died", "hung").
    """

    bug: str
    strategy: str
    met: str
    budget_s: float
    clock: ClockName
    operations_met: int
    operations: int = 0
    losses: int = 0
    lost_pages: int = 0
    one_minimal: bool | None = None
    ended: str = ""
    tries: int = 0
    seconds: float = 0.0
    token: str = ""
    why: str = ""

    def answers(self, budget_s: float, clock: ClockName) -> bool:
        """Return whether this much time adds nothing: the row had as much, or did not need it."""
        return self.clock == clock and (self.budget_s >= budget_s or (bool(self.token) and not self.ended))


TakeRow = Callable[[ShrunkRow], None]


def shrunk_rows(directory: Path | None) -> ResumeRows[ShrunkRow]:
    """Return the shrunk failures in a directory. Raises BadRows and OSError."""
    return ResumeRows(None if directory is None else directory / SMALL, ShrunkRow)


def shortest_failures(rows: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """Return the kill with the fewest operations of each bug, in the order of first kills."""
    shortest: dict[str, TrialRow] = {}
    for row in rows:
        if row.end == "killed" and (row.bug not in shortest or _rank(row) < _rank(shortest[row.bug])):
            shortest[row.bug] = row
    return tuple(shortest.values())


def _rank(row: TrialRow) -> tuple[object, ...]:
    return row.operations, len(row.token), row.strategy, row.number


def shrink_all(
    failures: Sequence[TrialRow],
    *,
    budget_s: float,
    clock: ClockName,
    workers: int,
    known: Iterable[ShrunkRow],
    take: TakeRow,
    progress: Callable[[str], None],
) -> None:
    """Shrink the failures that are not `known` yet, and pass each to `take` when it ends.

    `progress` is called with the bug of each failure when it starts, and with those that are known. A keyboard
    interrupt ends the running ones and is raised to the caller.
    """
    have = {row.met for row in known if row.answers(budget_s, clock)}
    limit_s = budget_s * (_WALL_OF_CPU_MAX if clock == "cpu" else 1) + _SLACK_S
    missing = [failure for failure in failures if failure.token not in have]
    for failure in failures:
        if failure.token in have:
            progress(failure.bug)

    def begun() -> Iterator[TrialRow]:
        for failure in missing:
            progress(failure.bug)
            yield failure

    job = Plain(partial(_made_small, budget_s=budget_s, clock=clock))
    with closing(JobPool(job, begun(), workers, limit_s, PRELOAD).results()) as results:
        for failure, made in results:
            if isinstance(made, Died):
                ended = "hung" if made.is_hung else "died"
                made = replace(_row_of(failure, budget_s, clock), ended=ended, why=made.how)
            take(made)


def _row_of(failure: TrialRow, budget_s: float, clock: ClockName) -> ShrunkRow:
    return ShrunkRow(failure.bug, failure.strategy, failure.token, budget_s, clock, failure.operations)


def _made_small(failure: TrialRow, budget_s: float, clock: ClockName) -> ShrunkRow:
    """Shrink one failure in a process of its own."""
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # log output of broken stores is expected
    row = _row_of(failure, budget_s, clock)
    with choose_tracker("auto") as tracker:
        if failure.token.startswith(CASE_PREFIX):
            return _small_case(row, tracker)
        for program in _STEP_PROGRAMS:
            if failure.token.startswith(program.case.FORM.prefix):
                return _small_steps(row, program, tracker)
        return _small_interleaving(row, tracker)


def _small_case(row: ShrunkRow, tracker: DirtyTracker) -> ShrunkRow:
    found = replay(Case.from_token(row.met), tracker=tracker)
    if found is None:
        return replace(row, ended="holds")
    small = shrink(found, tracker=tracker, tries_max=_TRIES_MAX, seconds=row.budget_s, clock=CLOCKS[row.clock])
    return replace(
        row,
        operations=len(small.case.operations),
        losses=small.losses,
        lost_pages=small.lost_pages,
        one_minimal=small.one_minimal,
        ended=small.ended,
        tries=small.tries,
        seconds=small.seconds,
        token=small.case.token(),
    )


_STEP_PROGRAMS: tuple[StepProgram[Any, Any], ...] = (CLUSTERS, CONSUMER_GROUPS, RAFT_GROUPS)


def _small_steps(row: ShrunkRow, program: StepProgram[Any, Any], tracker: DirtyTracker) -> ShrunkRow:
    """Shrink a case of several nodes. It is not known whether the result is minimal."""
    began = CLOCKS[row.clock]()
    found = program.replay(program.case.from_token(row.met), tracker=tracker)
    if found is None:
        return replace(row, ended="holds")
    is_late, tries = False, 0

    def is_over() -> bool:
        nonlocal is_late
        is_late = is_late or CLOCKS[row.clock]() - began > row.budget_s
        return is_late

    def watch(tried: int, operations: int, losses: int) -> None:
        nonlocal tries
        tries = tried

    small = program.shrink(found, tracker=tracker, tries_max=_TRIES_MAX, is_over=is_over, watch=watch)
    return replace(
        row,
        operations=len(small.case.operations),
        losses=small.lost_writes,
        ended="time" if is_late else "",
        tries=tries,
        seconds=CLOCKS[row.clock]() - began,
        token=small.case.token(),
    )


def _small_interleaving(row: ShrunkRow, tracker: DirtyTracker) -> ShrunkRow:
    began = CLOCKS[row.clock]()
    interleaving, _ = interleaving_of(row.met)
    ran = run_interleaving(interleaving, tracker=tracker)
    if ran.broken is None:
        return replace(row, ended="holds")
    small = InterleavingDetection(
        shrink_interleaving(BrokenInterleaving(interleaving, ran.broken, ran), tracker=tracker)
    )
    seconds = CLOCKS[row.clock]() - began
    return replace(row, operations=small.operations, seconds=seconds, token=small.token())
