"""One trial: one bug, one strategy, one seed of its own, one budget; and the row that remains of it."""

import logging
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Literal

from tornpage.properties.campaign.replay import signature
from tornpage.properties.campaign.resume import KeptRows
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.case import Settings
from tornpage.properties.score.hunt import hunt
from tornpage.properties.score.strategies import STRATEGIES

__all__ = ["CLOCKS", "PRELOAD", "TRIALS", "ClockName", "TrialEnd", "TrialKey", "TrialRow", "kept_trials", "run_trial"]

TRIALS = "trials.jsonl"

PRELOAD = ("tornpage.properties.score.trials",)
"""What a server of processes imports: all that a trial or a hunt needs."""

ClockName = Literal["wall", "cpu"]

CLOCKS = {"wall": perf_counter, "cpu": process_time}
"""Seconds of the wall, or of the processor: those that a trial has used itself, whatever else the machine does."""

TrialEnd = Literal["killed", "survived", "exhausted", "harness", "died", "hung"]


@dataclass(frozen=True, slots=True)
class TrialKey:
    """What a trial is: `number` counts the trials of a bug with a strategy, `base_seed` is that of the whole score."""

    bug: str
    strategy: str
    number: int
    base_seed: int

    @property
    def seed(self) -> int:
        """The seed of the trial: no two trials have the same draws."""
        named = f"{self.base_seed}/{self.bug}/{self.strategy}/{self.number}"
        return int.from_bytes(blake2b(named.encode(), digest_size=6).digest(), "big")


@dataclass(frozen=True, slots=True)
class TrialRow:
    """What became of a trial.

    `count` is what the strategy counts until then; `seconds`, of the `clock` that the budget is given in, end with the
    sighting, or with the budget. `wall_s` and `cpu_s` are what all of it took, the replays of what was seen included.
    `end` is `exhausted` where nothing was left to try; with `harness`, `died` and `hung` the trial says nothing for the
    strategy, and `why` tells.
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
        """What trial it is of."""
        return TrialKey(self.bug, self.strategy, self.number, self.base_seed)

    def answers(self, budget_s: float, clock: ClockName) -> bool:
        """Whether it says what happens within a budget: it was tried as long, or ended before."""
        if self.clock != clock:
            return False
        return self.budget_s >= budget_s or (self.end in ("killed", "exhausted") and self.seconds < budget_s)


def kept_trials(directory: Path | None) -> KeptRows[TrialRow]:
    """Return the trials that a directory holds. Raises BadRows and OSError."""
    return KeptRows(None if directory is None else directory / TRIALS, TrialRow)


def run_trial(key: TrialKey, budget_s: float, clock: ClockName) -> TrialRow:
    """Carry out a trial, in a process that has nothing else to do."""
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # what broken stores say is no news
    began = perf_counter(), process_time()
    known: dict[str, Any] = {**asdict(key), "budget_s": budget_s, "clock": clock}
    try:
        with choose_tracker("auto") as tracker:
            quarry = hunt(
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
