"""Run a campaign on Raft groups: drawn runs on recorded disks, and a canary.

A run is a part of the campaign (properties/campaign/engine.py). The members of some runs have stores. A state is a
member that was restarted after a crash, or the end of a run with a healed group. A campaign without findings must have
caught a planted bug, and must have met every kind of event and effect that its settings permit (`required_of`).
Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from tornpage.model.raft.operations import RaftOperation
from tornpage.properties.campaign.case_runs import (
    CaseExplorer,
    CasePlan,
    CaseRun,
    CaseTally,
    Part,
    digest_of,
    possible_on,
)
from tornpage.properties.campaign.engine import Progress, explore, ignored
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.raft.draws import OPERATIONS_MAX, draw_event, draw_node_event, draw_settings
from tornpage.properties.planted import RAFT_REPRODUCERS
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import RAFT_GROUPS, RaftFailure
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["CANARY", "REQUIRED", "RaftPlan", "RaftResult", "RaftRun", "draw_run", "explore_raft", "required_of"]

CANARY = "LB06"
REQUIRED = (
    "elect", "leader elected", "propose", "commit raised", "log cut", "deliver", "delivered twice", "delivered late",
    "crash_member", "kill", "power", "inside an event", "writes lost", "entries lost", "restart_member", "transfer",
    "read answered", "stopped by a failed call", "put ok", "put unknown", "save_commit_end", "time_out_puts",
    "run_nodes", "cut_links", "heal_links", "end_links", "knock", "close_member", "append OK", "append UNKNOWN",
    "read OK", "transfer OK", "open_copy", "answer_wrongly", "stop_node",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
_OF_SEVERAL = frozenset({"log cut", "deliver", "delivered twice", "delivered late", "transfer OK"})
"""A group of one sends no message, hands its role to no other member, and has no other log to follow."""
_OF_ENTRIES = frozenset({"append OK", "append UNKNOWN"})
"""Answers of members without a store. A member with a store answers puts."""
_OPERATIONS_MIN = 20
_NEW_PARTITION_SHARE = 0.05


RaftPlan = CasePlan[RaftSettings]
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
    if trial.settings.nodes:
        for _ in range(length):
            yield from draw_node_event(trial, rng)
        return
    cut_off: frozenset[int] = frozenset()
    for _ in range(length):
        if rng.random() < _NEW_PARTITION_SHARE:
            cut_off = frozenset(rng.sample(range(trial.settings.members), rng.randrange(trial.settings.members)))
        yield draw_event(trial, rng, cut_off)


def _carry_out(settings: RaftSettings, part: Part, seed: str, tracker: DirtyTracker) -> RaftRun:
    return draw_run(settings, seed, tracker=tracker)


def required_of(settings: RaftSettings) -> tuple[str, ...]:
    """Return what has to happen before a campaign with these settings may hold."""
    left_out = set[str]()
    if settings.members == 1:
        left_out |= _OF_SEVERAL
    if settings.store:
        left_out |= _OF_ENTRIES
    return possible_on(settings.disk, (each for each in REQUIRED if each not in left_out))


def explore_raft(plan: RaftPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> RaftResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    explorer = CaseExplorer(
        plan,
        _carry_out,
        programs=lambda length: iter(()),
        canary=RAFT_REPRODUCERS[CANARY],
        required=required_of(plan.settings),
        program=RAFT_GROUPS,
        tracker=tracker,
    )
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
