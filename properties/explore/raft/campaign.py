"""Run a campaign on Raft groups: drawn runs on recorded disks, and a canary.

A run is a part of the campaign (properties/campaign/engine.py). The members of some runs have stores. A state is a
member that was restarted after a crash, or the end of a run with a healed group. A campaign without findings must have
caught a planted bug, and must have met every kind of event and effect in `REQUIRED`. Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random

from tornpage.model.raft.operations import RaftOperation
from tornpage.properties.campaign.case_runs import CaseExplorer, CaseRun, CaseTally, Part, digest_of, repeated
from tornpage.properties.campaign.engine import Progress, explore, ignored
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.workers import Control
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.raft.draws import OPERATIONS_MAX, draw_event, draw_settings
from tornpage.properties.planted import RAFT_REPRODUCERS
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import RAFT_GROUPS, RaftFailure, replay_raft
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["CANARY", "REQUIRED", "RaftPlan", "RaftResult", "RaftRun", "draw_run", "explore_raft"]

CANARY = "LB06"
REQUIRED = (
    "elect", "leader elected", "propose", "commit raised", "log cut", "deliver", "delivered twice", "delivered late",
    "crash_member", "kill", "power", "inside an event", "writes lost", "entries lost", "restart_member", "transfer",
    "read answered", "stopped by a failed call", "put ok", "put unknown", "save_commit_end", "time_out_puts",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
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
    length: int = 0


RaftResult = CampaignResult[CaseTally, RaftFailure]
RaftRun = CaseRun[RaftCase]


def draw_run(settings: RaftSettings, seed: str, *, tracker: DirtyTracker) -> RaftRun:
    """Draw and carry out one run."""
    rng = Random(seed)
    drawn = draw_settings(settings, rng)
    length = rng.randrange(_OPERATIONS_MIN, OPERATIONS_MAX + 1)
    ran = RAFT_GROUPS.run(drawn, lambda trial: _drawn(trial, rng, length), tracker=tracker)
    trial, failure = ran.trial, ran.failure
    hit = Counter[str]() if trial is None else trial.hit
    ends = "" if trial is None else repr([node.state for node in trial.nodes])
    return CaseRun(hit, hit["restart_member"] + 1, digest_of(ran.case.token(), ends, ran.broken), failure)


def _drawn(trial: RaftTrial, rng: Random, length: int) -> Iterator[RaftOperation]:
    """Draw the events of a run."""
    cut_off: frozenset[int] = frozenset()
    for _ in range(length):
        if rng.random() < _NEW_PARTITION_SHARE:
            cut_off = frozenset(rng.sample(range(trial.settings.members), rng.randrange(trial.settings.members)))
        yield draw_event(trial, rng, cut_off)


@dataclass(frozen=True, slots=True)
class _RunJob:
    """Carry out runs in any process."""

    plan: RaftPlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[Part, Control], RaftRun]]:
        """Return the function that carries out a run."""
        with choose_tracker("auto") as tracker:
            yield partial(_carry_out, self.plan, tracker)


def _carry_out(plan: RaftPlan, tracker: DirtyTracker, part: Part, control: Control) -> RaftRun:
    return repeated(plan, part, lambda seed: draw_run(plan.settings, seed, tracker=tracker))


def _canary(tracker: DirtyTracker) -> str:
    """Return the canary if its reproducer breaks a guarantee."""
    return CANARY if replay_raft(RAFT_REPRODUCERS[CANARY], tracker=tracker) is not None else ""


def explore_raft(plan: RaftPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> RaftResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    explorer: CaseExplorer[RaftCase] = CaseExplorer(
        plan,
        _RunJob(plan),
        programs=lambda length: iter(()),
        canary=partial(_canary, tracker),
        required=REQUIRED,
        program=RAFT_GROUPS,
        tracker=tracker,
    )
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
