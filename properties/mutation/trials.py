"""Run one strategy against one mutant in a process of its own, and return the row.

The store is imported inside the functions of this module only.
"""

import hashlib
import importlib
import logging
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count as count_from
from itertools import islice, zip_longest
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Literal

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.contract import raised_by_store
from tornpage.properties.mutation.loading import LoadedMutant, exchange_code, forget_store, load_beside, load_mutant
from tornpage.properties.mutation.mutants import Mutant, mutant_of

if TYPE_CHECKING:
    from tornpage.properties.campaign.coverage import Tally

__all__ = [
    "KILLED", "PRELOAD", "TRACE", "TRACED_RUNS", "TRACED_STATES", "TRACES", "TRIALS", "MutantEnd", "MutantKey",
    "MutantRow", "mutant_rows", "run_mutant_trial", "trace_digests",
]  # fmt: skip

TRIALS = "mutants.jsonl"
TRACE = "trace"
"""The name of the trial that compares the first crash states of a mutant with those of the original."""

TRACED_STATES = 2_000
TRACED_RUNS = {
    "trace cluster": 150,
    "trace consumers": 120,
    "trace raft": 250,
    "trace machine": 4,
    "trace interleavings": 1_000,
}
"""The trials that compare runs of other strategies, with their runs: about as long as the trial `trace`.

A run of the strategy `machine` is a turn of every machine.
"""
TRACES = (TRACE, *TRACED_RUNS)
"""All trials that compare a mutant with the original. The first one that differs ends the comparison."""
PRELOAD = ("tornpage.properties.mutation.trials", "tornpage.properties.mutation.ready")
"""The modules that a server process imports for trials. The last one imports the store."""

MutantEnd = Literal[
    "killed", "raised", "not imported", "survived", "exhausted", "unconfirmed", "harness", "died", "hung", "same",
    "different",
]  # fmt: skip
"""The end of a trial.

`killed`: a promise is broken that the original keeps. `raised`: a function or an object of the store raised what no
judge expects. `not imported`: the store cannot be imported. `survived` and `exhausted`: nothing found in the budget, or
nothing left to try. `unconfirmed`: the original breaks the promise as well, or the failure does not repeat. `harness`:
the search itself failed. `died` and `hung`: the process did. `same` and `different` are ends of the trials in `TRACES`.
"""

KILLED = frozenset({"killed", "raised", "not imported", "died", "hung"})
"""The ends that show a user of the harness that the store is wrong."""


@dataclass(frozen=True, slots=True)
class MutantKey:
    """Identify a trial: a mutant, a strategy or `trace`, and the seed of the whole sample."""

    mutant: str
    strategy: str
    base_seed: int

    @property
    def seed(self) -> int:
        """Return the seed of the trial's draws."""
        named = f"{self.base_seed}/{self.mutant}/{self.strategy}"
        return int.from_bytes(blake2b(named.encode(), digest_size=6).digest(), "big")


@dataclass(frozen=True, slots=True)
class MutantRow:
    """Hold the result of a trial.

    `seconds` are processor time of the search without imports. `is_reached` tells whether the changed statement ran.
    """

    mutant: str
    strategy: str
    base_seed: int
    budget_s: float
    end: MutantEnd
    seconds: float
    is_reached: bool = False
    count: int = 0
    wall_s: float = 0.0
    contract: int = 0
    sentence: str = ""
    token: str = ""
    why: str = ""

    @property
    def key(self) -> MutantKey:
        """Return the key of the trial."""
        return MutantKey(self.mutant, self.strategy, self.base_seed)

    def answers(self, budget_s: float) -> bool:
        """Return whether the row is valid for a budget: it was tried as long, or ended earlier."""
        return self.budget_s >= budget_s or (self.end != "survived" and self.seconds < budget_s)


def mutant_rows(directory: Path | None) -> ResumeRows[MutantRow]:
    """Return the trials in a directory. Raises BadRows and OSError."""
    return ResumeRows(None if directory is None else directory / TRIALS, MutantRow)


def run_mutant_trial(key: MutantKey, budget_s: float, digests: Sequence[str] = ()) -> MutantRow:
    """Place the mutant in this process, and search for it with the strategy.

    A trial of `TRACES` is compared with `digests`, those of the original.
    """
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # log output of broken stores is expected
    known: dict[str, Any] = {
        "mutant": key.mutant, "strategy": key.strategy, "base_seed": key.base_seed, "budget_s": budget_s,
    }  # fmt: skip
    began, mutant = perf_counter(), mutant_of(key.mutant)
    try:
        placed = _place(mutant)
    except Exception as error:
        return MutantRow(**known, end="not imported", seconds=0.0, is_reached=True, why=_last_line(error))
    started = process_time()
    try:
        found = _trace(known, digests) if key.strategy in TRACES else _search(key, budget_s, known)
    except Exception as error:
        end: MutantEnd = "raised" if raised_by_store(error) else "harness"
        found = {**known, "end": end, "seconds": round(process_time() - started, 3), "why": _last_line(error)}
    return MutantRow(**found, is_reached=placed.is_reached, wall_s=round(perf_counter() - began, 3))


def _place(mutant: Mutant) -> LoadedMutant:
    """Change the imported store, or import the changed one. Raises what the import raises."""
    from tornpage.properties.mutation.ready import RUN_AT_IMPORT, STRATEGIES

    placed = exchange_code(mutant, RUN_AT_IMPORT)
    if placed is not None:
        return placed
    del sys.modules[mutant.module]
    alone = load_beside(mutant)
    importlib.import_module(mutant.module)  # most mutants that cannot be imported end here, without the whole store
    sys.meta_path.remove(alone)
    forget_store()
    placed = load_mutant(mutant)
    importlib.import_module(STRATEGIES)
    return placed


def _search(key: MutantKey, budget_s: float, known: dict[str, Any]) -> dict[str, Any]:
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.program.case import Settings
    from tornpage.properties.score.strategies import STRATEGIES

    strategy = STRATEGIES[key.strategy]
    started = process_time()

    def spent() -> float:
        return process_time() - started

    count = 0
    with choose_tracker("auto") as tracker:
        sought = strategy.seek(Settings(), seed=key.seed, tracker=tracker, is_over=lambda: spent() >= budget_s)
        for count, detection in sought:
            seconds = spent()
            if detection is not None:
                broken = detection.broken
                told = {"contract": broken.contract, "sentence": broken.sentence, "token": detection.token()}
                end = "killed" if detection.replays(tracker) else "unconfirmed"
                return {**known, "end": end, "seconds": round(seconds, 3), "count": count, **told}
            if seconds >= budget_s:
                return {**known, "end": "survived", "seconds": budget_s, "count": count}
    end = "survived" if spent() >= budget_s else "exhausted"
    return {**known, "end": end, "seconds": round(min(spent(), budget_s), 3), "count": count}


def _trace(known: dict[str, Any], digests: Sequence[str]) -> dict[str, Any]:
    """Compare the states of the mutant with those of the original until they differ."""
    started = process_time()
    count, end = 0, "same"
    for digest, expected in zip_longest(trace_digests(known["strategy"]), digests):
        count += 1
        if digest != expected:
            end = "different"
            break
    return {**known, "end": end, "seconds": round(process_time() - started, 3), "count": count}


def trace_digests(name: str) -> Iterator[str]:
    """Yield a hash after each run of a trial of `TRACES`, of a fixed seed.

    The store that this process has imported is explored, which is the original unless a mutant was placed.
    """
    return _crash_digests() if name == TRACE else _run_digests(name.removeprefix(f"{TRACE} "), TRACED_RUNS[name])


def _run_digests(strategy: str, runs: int) -> Iterator[str]:
    """Yield a hash of each run: of what the run did, what happened in it, and what it broke."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.score.strategies import traced_runs

    with choose_tracker("auto") as tracker:
        for run in islice(traced_runs(strategy, tracker), runs):
            yield hashlib.sha256(run.encode()).hexdigest()[:32]


def _crash_digests() -> Iterator[str]:
    """Yield a hash after each run, up to 2,000 crash states.

    It covers images, recovered logs, coverage counts and broken promises of all runs so far.
    """
    from tornpage.properties.campaign.coverage import Tally
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.crashes.explore import explore_seed
    from tornpage.properties.program.case import Settings

    tally, broken = Tally(), hashlib.sha256()
    with choose_tracker("auto") as tracker:
        for number in count_from(0):
            run = explore_seed(f"trace:{number}", Settings(), tracker=tracker, tally=tally, strategy="covering")
            for failure in run:
                if failure is not None:
                    broken.update(f"{failure.broken.contract} {failure.broken.sentence}".encode())
                if tally.all_states >= TRACED_STATES:
                    break
            yield _digest(tally, broken.copy())
            if tally.all_states >= TRACED_STATES:
                return


def _digest(tally: "Tally", digest: "hashlib._Hash") -> str:
    for image in (*tally.images, *tally.recovered):
        digest.update(image)
    for counted in (tally.enabled, tally.hit, tally.effective, tally.evaluations):
        digest.update(repr(sorted((name, count) for name, count in counted.items() if count)).encode())
    return digest.hexdigest()[:32]


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()[:300]
