"""Hunt one planted bug for a while: histories crashed at every event, or a machine, in a setting that makes it likely.

What is drawn and judged is what campaigns and machines always draw and judge (properties/explore.py,
properties/check.py); only settings of the store may be fixed. The first failure that the store does not have without
the bug ends the hunt; it has to replay, and is made small.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter
from typing import Any

from properties.case import Settings
from properties.check import MACHINES, check
from properties.explore import explore_seed
from properties.recorder.dirty import DirtyTracker
from properties.replay import Failure, replay, shrink
from properties.tally import Tally
from properties.verdict import HarnessError

__all__ = ["Hunt", "Quarry", "hunt"]

SHRINK_TRIES_MAX = 400
_EXAMPLES_MAX = 1_000_000
_SEEDS_APART = 1_000


@dataclass(frozen=True, slots=True)
class Hunt:
    """How a bug is hunted: with a machine, or by exploring if none is named.

    A machine takes up to `steps` steps before it starts over; settings that are `fixed` are not drawn. Exploring sets
    the clock back by `clock_back_ms` once in each life.
    """

    machine: str = ""
    steps: int = 25
    fixed: Mapping[str, Any] = field(default_factory=dict)
    clock_back_ms: int = 0

    @property
    def tries_are(self) -> str:
        """What is counted: crash states, or operations of a machine."""
        return "operations" if self.machine else "states"

    def describe(self) -> str:
        """Return it as a person reads it."""
        engine = f"check --machine {self.machine}" if self.machine else "explore"
        steps = [f"{self.steps} steps"] if self.machine and self.steps != Hunt().steps else []
        clock = [f"clock set back by {self.clock_back_ms // 1000} s"] if self.clock_back_ms else []
        return ", ".join([engine, *steps, *(f"{name}={value}" for name, value in self.fixed.items()), *clock])


@dataclass(frozen=True, slots=True)
class Quarry:
    """What a hunt came to: crash states or operations tried, seconds until it was seen or given up, the failure.

    `others` counts failures on the way that the store has without the bug as well: they are none of the bug's.
    """

    tries: int
    seconds: float
    failure: Failure | None
    others: int = 0


class _TimeIsUp(KeyboardInterrupt):
    """Ends a machine, which otherwise ends by examples only; Hypothesis takes it for a user's interrupt."""


def hunt(bug: str, how: Hunt, *, seed: int, seconds: float, tracker: DirtyTracker) -> Quarry:
    """Hunt a planted bug for so many seconds; making its failure small comes on top.

    Raises HarnessError when a failure does not replay from its own case.
    """
    seen, started = _by_machine if how.machine else _by_exploring, perf_counter()
    for others, (tries, failure) in enumerate(seen(bug, how, seed, started + seconds, tracker)):
        elapsed = perf_counter() - started
        if failure is None:
            return Quarry(tries, elapsed, None, others)
        again = replay(failure.case, tracker=tracker)
        if again is None:
            raise HarnessError(f"a failure does not replay: {failure.broken}; {failure.case.token()}")
        if _is_its_own(again, tracker):
            small = shrink(again, tracker=tracker, tries_max=SHRINK_TRIES_MAX)
            return Quarry(tries, elapsed, small if _is_its_own(small, tracker) else again, others)
    raise AssertionError("a hunt ends with a failure or with its time")


def _is_its_own(failure: Failure, tracker: DirtyTracker) -> bool:
    """Whether the case holds in the store without the bug."""
    case = failure.case
    return replay(replace(case, settings=replace(case.settings, bug="")), tracker=tracker) is None


def _by_exploring(
    bug: str, how: Hunt, seed: int, until: float, tracker: DirtyTracker
) -> Iterator[tuple[int, Failure | None]]:
    """Yield each failure with the states so far, history after history, and None when the time is up."""
    tally = Tally()
    for number in count():
        for failure in explore_seed(
            f"{seed}:{number}",
            Settings(bug=bug),
            tracker=tracker,
            tally=tally,
            fixed=how.fixed,
            clock_back_ms=how.clock_back_ms,
        ):
            if failure is not None:
                yield tally.all_states, failure
            if perf_counter() >= until:
                yield tally.all_states, None
                return


def _by_machine(
    bug: str, how: Hunt, seed: int, until: float, tracker: DirtyTracker
) -> Iterator[tuple[int, Failure | None]]:
    """Yield each failure with the operations so far, and None when the time is up."""
    assert how.machine in MACHINES
    before = operations = 0

    def progress(done: int) -> None:
        nonlocal operations
        operations = before + done
        if perf_counter() >= until:
            raise _TimeIsUp

    for number in count():
        try:
            result = check(
                bug=bug,
                examples=_EXAMPLES_MAX,
                steps=how.steps,
                start_seed=seed + number * _SEEDS_APART,
                tracker=tracker,
                machines=[how.machine],
                progress=progress,
                shrink_tries_max=0,
                fixed=how.fixed,
            )
        except _TimeIsUp:
            yield operations, None
            return
        before = operations
        yield operations, result.failure
