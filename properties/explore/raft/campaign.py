"""Run a campaign on Raft groups: drawn runs on recorded disks, and a canary.

A run is a part of the campaign (properties/campaign/engine.py). A state is a member that was restarted after a crash,
or the end of a run with a healed group. A campaign without findings must have caught a planted bug, and must have met
every kind of event and effect in `REQUIRED`. Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import count
from random import Random
from time import perf_counter

from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore, ignored
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.raft.draws import OPERATIONS_MAX, draw_event, draw_settings
from tornpage.properties.planted import RAFT_REPRODUCERS
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import RaftFailure, identity_of, replay_raft, shrink_raft
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["CANARY", "REQUIRED", "RaftPlan", "RaftResult", "RaftRun", "RaftTally", "draw_run", "explore_raft"]

CANARY = "LB06"
REQUIRED = (
    "elect", "leader elected", "propose", "commit raised", "log cut", "deliver", "delivered twice", "delivered late",
    "crash_member", "kill", "power", "inside an event", "writes lost", "entries lost", "restart_member", "transfer",
    "read answered", "stopped by a failed call",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
_FAILURES_MAX = 3
_REPEATED_SHARE = 0.05
_OPERATIONS_MIN = 20
_NEW_PARTITION_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class RaftPlan:
    """Plan a campaign. It ends at the limit of states, of seconds, or of different failures."""

    settings: RaftSettings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    workers: int = 1


@dataclass(frozen=True, slots=True)
class RaftRun:
    """The result of one run. `digest` is the same for each repetition."""

    hit: Counter[str]
    states: int
    digest: str
    failure: RaftFailure | None = None
    is_repeated: bool = False
    differs: bool = False


@dataclass
class RaftTally:
    """Count what was run."""

    runs: int = 0
    states: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    outcomes: set[str] = field(default_factory=set)


RaftResult = CampaignResult[RaftTally, RaftFailure]


def draw_run(settings: RaftSettings, seed: str, *, tracker: DirtyTracker) -> RaftRun:
    """Draw and carry out one run."""
    rng = Random(seed)
    drawn = draw_settings(settings, rng)
    trial, broken = None, None
    try:
        trial = RaftTrial(drawn, tracker=tracker)
        cut_off: frozenset[int] = frozenset()
        for _ in range(rng.randrange(_OPERATIONS_MIN, OPERATIONS_MAX + 1)):
            if rng.random() < _NEW_PARTITION_SHARE:
                cut_off = frozenset(rng.sample(range(drawn.members), rng.randrange(drawn.members)))
            trial.run(draw_event(trial, rng, cut_off))
        trial.finish()
    except GuaranteeBroken as error:
        broken = error
    case = RaftCase(drawn, () if trial is None else tuple(trial.performed))
    hit = Counter[str]() if trial is None else trial.hit
    ends = "" if trial is None else repr([node.state for node in trial.nodes])
    digest = blake2b(f"{case.token()} {ends} {broken}".encode(), digest_size=8).hexdigest()
    failure = None if broken is None else RaftFailure(case, broken, 0 if trial is None else trial.lost_writes)
    return RaftRun(hit, hit["restart_member"] + 1, digest, failure)


@dataclass(frozen=True, slots=True)
class _RunJob:
    """Carry out runs in any process."""

    plan: RaftPlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, Control], RaftRun]]:
        """Return the function that carries out a run."""
        with choose_tracker("auto") as tracker:
            yield partial(_carry_out, self.plan, tracker)


def _carry_out(plan: RaftPlan, tracker: DirtyTracker, part: int, control: Control) -> RaftRun:
    seed = f"{plan.seed}:{part}"
    run = draw_run(plan.settings, seed, tracker=tracker)
    if Random(f"again {seed}").random() >= _REPEATED_SHARE:
        return run
    again = draw_run(plan.settings, seed, tracker=tracker)
    return RaftRun(run.hit, run.states, run.digest, run.failure, is_repeated=True, differs=again.digest != run.digest)


class _Explorer:
    """Present runs as parts of a campaign."""

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "first"

    def __init__(self, plan: RaftPlan, tracker: DirtyTracker) -> None:
        self.job = _RunJob(plan)
        self._plan, self._tracker = plan, tracker
        self._tally = RaftTally()

    def parts(self) -> Iterator[int]:
        """Yield runs until the requested number of states is reached."""
        for number in count():
            if self._plan.states is not None and self._tally.states >= self._plan.states:
                return
            yield number

    def known(self, part: int) -> RaftRun | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> RaftTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: RaftRun) -> int:
        """Return the number of states."""
        return made.states

    def take(self, result: RaftResult, part: int, made: RaftRun | Died[int]) -> bool:
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

    def canary(self) -> str:
        """Return the canary if its reproducer breaks a guarantee."""
        return CANARY if replay_raft(RAFT_REPRODUCERS[CANARY], tracker=self._tracker) is not None else ""

    def conclude(self, result: RaftResult) -> None:
        """Report what never happened."""
        hit = result.tally.hit
        result.silent = [name for name in REQUIRED if not hit[name]]
        counts = "\n".join(f"{name} {number}" for name, number in sorted(hit.items()))
        met = "\n".join(f"{each.failure.broken} {each.times}" for each in result.found)
        text = f"{result.tally.states}\n{counts}\n{met}\n{sorted(result.tally.outcomes)}"
        result.result_hash = blake2b(text.encode(), digest_size=16).hexdigest()

    def shrink(self, failure: RaftFailure, budget: Budget, watch: Watch) -> tuple[RaftFailure | None, bool]:
        """Shrink a case if it fails again."""
        again = replay_raft(failure.case, tracker=self._tracker)
        if again is None or identity_of(again.broken) != identity_of(failure.broken):
            return None, False
        started, limit = perf_counter(), budget.seconds
        small = shrink_raft(
            again,
            tracker=self._tracker,
            tries_max=budget.tries_max,
            is_over=lambda: limit is not None and perf_counter() - started > limit,
            watch=watch,
        )
        return small, False

    def describe(self, failure: RaftFailure) -> str:
        """Return the broken guarantee and its case."""
        return f"{failure.broken}; case: {failure.case.token()}"


def explore_raft(plan: RaftPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> RaftResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    explorer = _Explorer(plan, tracker)
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
