"""Run a campaign on clusters: drawn runs or all small programs, and a canary.

A run is a part of the campaign (properties/campaign/engine.py). A state is a crashed node that was opened again, or the
end of a run with a healed network. A campaign without findings must have caught a planted bug, and must have met every
kind of fault and answer in `REQUIRED`. Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain, count
from random import Random
from time import perf_counter

from tornpage.model.replication.operations import ClusterOperation
from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore, ignored
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.cluster.replay import ClusterFailure, identity_of, replay_cluster, shrink_cluster
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.cluster.draws import (
    OPERATIONS_MAX,
    draw_beginning,
    draw_operation,
    draw_settings,
)
from tornpage.properties.explore.cluster.programs import all_programs
from tornpage.properties.planted import CLUSTER_REPRODUCERS
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings

__all__ = [
    "CANARY",
    "REQUIRED",
    "REQUIRED_OF_ALL",
    "ClusterPlan",
    "ClusterResult",
    "ClusterRun",
    "ClusterTally",
    "draw_run",
    "explore_cluster",
]

CANARY = "RB09"
REQUIRED = (
    "put_on", "crash_node", "kill", "power", "silent", "writes lost", "restart_node", "limit_link", "reset_link",
    "bytes lost by a reset", "bit flipped", "forge_frame", "fail_sync_on", "log files deleted", "bytes gone",
    "change_roles", "close_node", "log cut", "answered PUT_OK",
    "answered FLUSH_SLAVE_TIMEOUT", "answered SLAVE_NOT_AVAILABLE",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
REQUIRED_OF_ALL = (
    "put_on", "crash_node", "kill", "power", "writes lost", "restart_node", "limit_link", "reset_link", "change_roles",
    "log cut", "log files deleted", "answered PUT_OK", "answered SLAVE_NOT_AVAILABLE",
)  # fmt: skip
"""What has to happen before a campaign of all programs may hold."""
Part = int | tuple[ClusterOperation, ...]
"""The number of a drawn run, or a whole program."""
_FAILURES_MAX = 3
_REPEATED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Plan a campaign. It ends at the limit of states, of seconds, or of different failures.

    With `length` the runs are not drawn: they are all programs of up to that many operations.
    """

    settings: ClusterSettings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    workers: int = 1
    length: int = 0


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The result of one run. `digest` is the same for each repetition."""

    hit: Counter[str]
    states: int
    digest: str
    failure: ClusterFailure | None = None
    is_repeated: bool = False
    differs: bool = False


@dataclass
class ClusterTally:
    """Count what was run.

    `quorums` counts runs by the number of replicas that a put waits for.
    """

    runs: int = 0
    states: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    outcomes: set[str] = field(default_factory=set)


ClusterResult = CampaignResult[ClusterTally, ClusterFailure]


def draw_run(settings: ClusterSettings, seed: str, *, tracker: DirtyTracker) -> ClusterRun:
    """Draw and carry out one run."""
    rng = Random(seed)
    drawn = draw_settings(settings, rng)
    begin = draw_beginning(drawn, rng)
    length = rng.randrange(6, OPERATIONS_MAX + 1) - len(begin)
    return _run(drawn, tracker, lambda trial: chain(begin, (draw_operation(trial, rng) for _ in range(max(0, length)))))


def _run(
    settings: ClusterSettings,
    tracker: DirtyTracker,
    operations: Callable[[ClusterTrial], Iterable[ClusterOperation]],
) -> ClusterRun:
    trial, broken = None, None
    try:
        trial = ClusterTrial(settings, tracker=tracker)
        for operation in operations(trial):
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as error:
        broken = error
    case = ClusterCase(settings, () if trial is None else tuple(trial.performed))
    hit = Counter[str]() if trial is None else trial.hit
    hit[f"quorum {settings.quorum}"] += 1
    hit[f"confirmed when {settings.acknowledge}"] += 1
    ends = "" if trial is None else " ".join(str(each.end) if each.is_up else "down" for each in trial.nodes)
    digest = blake2b(f"{case.token()} {ends} {broken}".encode(), digest_size=8).hexdigest()
    failure = None if broken is None else ClusterFailure(case, broken, 0 if trial is None else trial.lost_writes)
    return ClusterRun(hit, hit["crash_node"] + 1, digest, failure)


@dataclass(frozen=True, slots=True)
class _RunJob:
    """Carry out runs in any process."""

    plan: ClusterPlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[Part, Control], ClusterRun]]:
        """Return the function that carries out a run."""
        with choose_tracker("auto") as tracker:
            yield partial(_carry_out, self.plan, tracker)


def _carry_out(plan: ClusterPlan, tracker: DirtyTracker, part: Part, control: Control) -> ClusterRun:
    seed = f"{plan.seed}:{part}"

    def carried_out() -> ClusterRun:
        if isinstance(part, int):
            return draw_run(plan.settings, seed, tracker=tracker)
        return _run(plan.settings, tracker, lambda _: part)

    run = carried_out()
    if Random(f"again {seed}").random() >= _REPEATED_SHARE:
        return run
    again = carried_out()
    return ClusterRun(
        run.hit, run.states, run.digest, run.failure, is_repeated=True, differs=again.digest != run.digest
    )


class _Explorer:
    """Present runs as parts of a campaign."""

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "first"

    def __init__(self, plan: ClusterPlan, tracker: DirtyTracker) -> None:
        self.job = _RunJob(plan)
        self._plan, self._tracker = plan, tracker
        self._tally = ClusterTally()

    def parts(self) -> Iterator[Part]:
        """Yield runs until the requested number of states is reached, or all programs."""
        for number in all_programs(self._plan.length) if self._plan.length else count():
            if self._plan.states is not None and self._tally.states >= self._plan.states:
                return
            yield number

    def known(self, part: Part) -> ClusterRun | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> ClusterTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: ClusterRun) -> int:
        """Return the number of states."""
        return made.states

    def take(self, result: ClusterResult, part: Part, made: ClusterRun | Died[Part]) -> bool:
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
        return CANARY if replay_cluster(CLUSTER_REPRODUCERS[CANARY], tracker=self._tracker) is not None else ""

    def conclude(self, result: ClusterResult) -> None:
        """Report what never happened."""
        hit = result.tally.hit
        required = list(REQUIRED_OF_ALL) if self._plan.length else list(REQUIRED)
        if not self._plan.length:
            required += [f"quorum {number}" for number in range(1, self._plan.settings.nodes)]
        result.silent = [name for name in required if not hit[name]]
        counts = "\n".join(f"{name} {number}" for name, number in sorted(hit.items()))
        met = "\n".join(f"{each.failure.broken} {each.times}" for each in result.found)
        text = f"{result.tally.states}\n{counts}\n{met}\n{sorted(result.tally.outcomes)}"
        result.result_hash = blake2b(text.encode(), digest_size=16).hexdigest()

    def shrink(self, failure: ClusterFailure, budget: Budget, watch: Watch) -> tuple[ClusterFailure | None, bool]:
        """Shrink a case if it fails again."""
        again = replay_cluster(failure.case, tracker=self._tracker)
        if again is None or identity_of(again.broken) != identity_of(failure.broken):
            return None, False
        started, limit = perf_counter(), budget.seconds
        return (
            shrink_cluster(
                again,
                tracker=self._tracker,
                tries_max=budget.tries_max,
                is_over=lambda: limit is not None and perf_counter() - started > limit,
                watch=watch,
            ),
            False,
        )

    def describe(self, failure: ClusterFailure) -> str:
        """Return the broken guarantee and its case."""
        return f"{failure.broken}; case: {failure.case.token()}"


def explore_cluster(plan: ClusterPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> ClusterResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    explorer = _Explorer(plan, tracker)
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
