"""Explore cases of several processes: clusters, consumer groups and Raft groups.

A run is a part of the campaign.

A campaign without findings must have caught its canary, and must have met everything that it requires. Otherwise it is
vacuous. A share of the runs is repeated and compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import count
from random import Random
from time import perf_counter
from typing import Any, Generic, TypeVar

from tornpage.properties.campaign.engine import Budget, CanaryTime
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Job, Launcher
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.lockstep.step_program import StepFailure, StepProgram
from tornpage.properties.program.case import Disk
from tornpage.properties.program.step_case import StepCase
from tornpage.properties.program.step_shrinking import identity_of

__all__ = ["CaseExplorer", "CasePlan", "CaseRun", "CaseTally", "Part", "digest_of", "possible_on"]

Part = int | tuple[Any, ...]
"""The number of a drawn run, or a whole program."""
_FAILURES_MAX = 3
_REPEATED_SHARE = 0.05
_OF_LOST_WRITES = frozenset({"writes lost"})
"""What never happens on the disk `kill`, where a crash loses no write."""

Case = TypeVar("Case", bound=StepCase[Any, Any])
Settings = TypeVar("Settings")


def possible_on(disk: Disk, required: Iterable[str]) -> tuple[str, ...]:
    """Return the required events and effects that can happen on a disk."""
    left_out = _OF_LOST_WRITES if disk == "kill" else frozenset[str]()
    return tuple(each for each in required if each not in left_out)


@dataclass(frozen=True)  # without slots: a call of `CasePlan[...]` fails with them in Python 3.11
class CasePlan(Generic[Settings]):
    """Plan a campaign. It ends at the limit of states, of seconds, or of different failures.

    With `length` the runs are not drawn: they are all programs of up to that many operations.
    """

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    workers: int = 1
    length: int = 0


@dataclass(frozen=True, slots=True)
class CaseRun(Generic[Case]):
    """The result of one run. `digest` is the same for each repetition."""

    hit: Counter[str]
    states: int
    digest: str
    failure: StepFailure[Case] | None = None
    is_repeated: bool = False
    differs: bool = False


@dataclass
class CaseTally:
    """Count what was run, and what happened in it."""

    runs: int = 0
    states: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    outcomes: set[str] = field(default_factory=set)


CarryOut = Callable[[Settings, Part, str, DirtyTracker], CaseRun[Case]]
"""Carry out a part with a seed. It must be picklable."""


@dataclass(frozen=True, slots=True)
class _CaseJob(Generic[Settings, Case]):
    """Carry out parts in any process, each with its own seed, and a share of them twice."""

    plan: CasePlan[Settings]
    carry_out: CarryOut[Settings, Case]

    @contextmanager
    def opened(self) -> Iterator[Callable[[Part, Control], CaseRun[Case]]]:
        """Return the function that carries out a part."""
        with choose_tracker("auto") as tracker:
            yield partial(self._run, tracker)

    def _run(self, tracker: DirtyTracker, part: Part, control: Control) -> CaseRun[Case]:
        seed = f"{self.plan.seed}:{part}"
        run = self.carry_out(self.plan.settings, part, seed, tracker)
        if Random(f"again {seed}").random() >= _REPEATED_SHARE:
            return run
        again = self.carry_out(self.plan.settings, part, seed, tracker)
        return replace(run, is_repeated=True, differs=again.digest != run.digest)


def digest_of(token: str, end: str, broken: GuaranteeBroken | None) -> str:
    """Return a digest of a case, of the end of its run, and of what it broke."""
    return blake2b(f"{token} {end} {broken}".encode(), digest_size=8).hexdigest()


class CaseExplorer(Generic[Case]):
    """Present runs as parts of a campaign.

    `programs` yields all programs up to a length. `canary` is the reproducer of the planted bug that the same engine
    must catch. `required` has to happen before a campaign may hold. `program` replays and shrinks a failure.
    """

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "first"

    def __init__(
        self,
        plan: CasePlan[Settings],
        carry_out: CarryOut[Settings, Case],
        *,
        programs: Callable[[int], Iterator[tuple[Any, ...]]],
        canary: Case,
        required: Iterable[str],
        program: StepProgram[Case, Any],
        tracker: DirtyTracker,
    ) -> None:
        self.job: Job[Part, CaseRun[Case]] = _CaseJob(plan, carry_out)
        self._plan, self._programs, self._required = plan, programs, tuple(required)
        self._canary = canary
        self._program, self._tracker = program, tracker
        self._tally = CaseTally()

    def parts(self) -> Iterator[Part]:
        """Yield runs until the requested number of states is reached, or all programs."""
        parts: Iterable[Part] = self._programs(self._plan.length) if self._plan.length else count()
        for number in parts:
            if self._plan.states is not None and self._tally.states >= self._plan.states:
                return
            yield number

    def canary(self) -> str:
        """Return the planted bug of the canary if its reproducer breaks a guarantee."""
        caught = self._program.replay(self._canary, tracker=self._tracker)
        return "" if caught is None else str(self._canary.settings.bug)

    def known(self, part: Part) -> CaseRun[Case] | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> CaseTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: CaseRun[Case]) -> int:
        """Return the number of states."""
        return made.states

    def take(
        self, result: CampaignResult[CaseTally, StepFailure[Case]], part: Part, made: CaseRun[Case] | Died[Part]
    ) -> bool:
        """Take the result of a run."""
        if isinstance(made, Died):
            result.faults.append(f"run {part} died: {made.how}")
            return False
        if self._plan.states is not None and self._tally.states >= self._plan.states:
            return False
        tally = self._tally
        tally.runs += 1
        tally.states += made.states
        tally.hit += made.hit
        tally.outcomes.add(made.digest)
        result.repeated += made.is_repeated
        if made.differs:
            result.faults.append(f"run {part} of seed {self._plan.seed} does not repeat")
        if made.failure is not None:
            result.meet(identity_of(made.failure.broken), made.failure, history=f"{self._plan.seed}:{part}")
        return len(result.found) < _FAILURES_MAX

    def conclude(self, result: CampaignResult[CaseTally, StepFailure[Case]]) -> None:
        """Report what never happened."""
        hit = result.tally.hit
        result.silent = [name for name in self._required if not hit[name]]
        counts = "\n".join(f"{name} {number}" for name, number in sorted(hit.items()))
        met = "\n".join(f"{each.failure.broken} {each.times}" for each in result.found)
        text = f"{result.tally.states}\n{counts}\n{met}\n{sorted(result.tally.outcomes)}"
        result.result_hash = blake2b(text.encode(), digest_size=16).hexdigest()

    def shrink(self, failure: StepFailure[Case], budget: Budget, watch: Watch) -> tuple[StepFailure[Case] | None, bool]:
        """Shrink a case if it fails again."""
        again = self._program.replay(failure.case, tracker=self._tracker)
        if again is None or identity_of(again.broken) != identity_of(failure.broken):
            return None, False
        started, limit = perf_counter(), budget.seconds
        small = self._program.shrink(
            again,
            tracker=self._tracker,
            tries_max=budget.tries_max,
            is_over=lambda: limit is not None and perf_counter() - started > limit,
            watch=watch,
        )
        return small, False

    def describe(self, failure: StepFailure[Case]) -> str:
        """Return the broken guarantee and its case."""
        return f"{failure.broken}; case: {failure.case.token()}"
