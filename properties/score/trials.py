"""Run one trial: one bug, one strategy, one seed and one budget, and return its row."""

import logging
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Literal

from tornpage.properties.campaign.replay import signature
from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.case import Settings
from tornpage.properties.score.search import search
from tornpage.properties.score.strategies import STRATEGIES

__all__ = ["CLOCKS", "PRELOAD", "TRIALS", "ClockName", "TrialEnd", "TrialKey", "TrialRow", "run_trial", "trial_rows"]

TRIALS = "trials.jsonl"

PRELOAD = ("tornpage.properties.score.trials",)
"""The modules that a server process imports for trials."""

ClockName = Literal["wall", "cpu"]

CLOCKS = {"wall": perf_counter, "cpu": process_time}
"""Seconds of the wall clock, or of the processor time of the trial itself, whatever else the machine does."""

TrialEnd = Literal["killed", "survived", "exhausted", "harness", "died", "hung"]


@dataclass(frozen=True, slots=True)
class TrialKey:
    """Identify a trial: `number` counts the trials of a bug with a strategy.

    `base_seed` is the seed of the whole score.
    """

    bug: str
    strategy: str
    number: int
    base_seed: int

    @property
    def seed(self) -> int:
        """Return the seed of the trial. No two trials have the same draws."""
        named = f"{self.base_seed}/{self.bug}/{self.strategy}/{self.number}"
        return int.from_bytes(blake2b(named.encode(), digest_size=6).digest(), "big")


@dataclass(frozen=True, slots=True)
class TrialRow:
    """Hold the result of a trial.

    `count` is the strategy's count at the end. `seconds`, measured by `clock` like the budget, end with the detection
    or with the budget. `wall_s` and `cpu_s` are the whole cost, including replays of detections. `end` is `exhausted`
    if nothing was left to try. With `harness`, `died` and `hung` the trial gives no information about the strategy, and
    `why` gives the cause.
    """

    bug: str
    strategy: str
    number: int
    base_seed: int
    clock: ClockName
    budget_s: float
    end: TrialEnd
    seconds: float
    count: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    others: int = 0
    contract: int = 0
    signature: str = ""
    operations: int = 0
    token: str = ""
    why: str = ""

    @property
    def key(self) -> TrialKey:
        """Return the key of the trial."""
        return TrialKey(self.bug, self.strategy, self.number, self.base_seed)

    def answers(self, budget_s: float, clock: ClockName) -> bool:
        """Return whether the row is valid for a budget: it was tried as long, or ended earlier."""
        if self.clock != clock:
            return False
        return self.budget_s >= budget_s or (self.end in ("killed", "exhausted") and self.seconds < budget_s)


def trial_rows(directory: Path | None) -> ResumeRows[TrialRow]:
    """Return the trials in a directory. Raises BadRows and OSError."""
    return ResumeRows(None if directory is None else directory / TRIALS, TrialRow)


def run_trial(key: TrialKey, budget_s: float, clock: ClockName) -> TrialRow:
    """Run a trial in a process of its own."""
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # log output of broken stores is expected
    began = perf_counter(), process_time()
    known: dict[str, Any] = {**asdict(key), "budget_s": budget_s, "clock": clock}
    try:
        with choose_tracker("auto") as tracker:
            quarry = search(
                STRATEGIES[key.strategy],
                Settings(bug=key.bug),
                seed=key.seed,
                seconds=budget_s,
                tracker=tracker,
                clock=CLOCKS[clock],
            )
    except HarnessError as error:
        return TrialRow(**known, end="harness", seconds=budget_s, why=str(error))
    known |= {"count": quarry.count, "others": quarry.others}
    known |= {"wall_s": perf_counter() - began[0], "cpu_s": process_time() - began[1]}
    if quarry.sighting is None:
        return TrialRow(**known, end=quarry.end, seconds=min(quarry.seconds, budget_s))
    broken = quarry.sighting.broken
    return TrialRow(
        **known,
        end="killed",
        seconds=quarry.seconds,
        contract=broken.contract,
        signature=signature(broken)[1],
        operations=quarry.sighting.operations,
        token=quarry.sighting.token(),
    )
