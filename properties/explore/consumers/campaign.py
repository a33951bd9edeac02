"""Run a campaign on consumer groups: drawn runs or all small programs, and a canary.

A run is a part of the campaign (properties/campaign/case_runs.py). A state is a crashed broker that was opened again,
or the end of a run without faults. A campaign without findings must have caught a planted bug, and must have met every
kind of fault and answer in `REQUIRED`. Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from random import Random

from tornpage.model.consumers.operations import GroupOperation
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
from tornpage.properties.consumers.replay import CONSUMER_GROUPS, GroupFailure
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.consumers.draws import (
    OPERATIONS_MAX,
    draw_beginning,
    draw_operations,
    draw_settings,
)
from tornpage.properties.explore.consumers.programs import all_programs, settings_of_programs
from tornpage.properties.planted import GROUP_REPRODUCERS
from tornpage.properties.program.group_case import GroupCase, GroupSettings

__all__ = ["CANARY", "REQUIRED", "REQUIRED_OF_ALL", "GroupPlan", "GroupResult", "GroupRun", "draw_run", "explore_group"]

CANARY = "CB01"
REQUIRED = (
    "produce", "join", "leave", "left in order", "kill_member", "silent", "hang_member",
    "crash_broker", "kill", "power",
    "writes lost", "records lost", "restart_broker", "request lost", "answer lost", "repeated", "parked",
    "partition_member", "busy query_offset", "busy send_back", "busy pull", "busy update_offset", "handed over",
    "sent back", "retry consumed", "listener success", "listener later",
    "refused FENCED", "add_queue", "allocate", "local crash", "files deleted", "slow_service",
    "orderly", "concurrent", "manual", "commit_progress", "drop_connection", "unsubscribed", "run_direct",
    "direct success", "direct failure", "direct leave", "direct close", "direct kill", "try_consumer_settings",
    "use_broker", "use_cache", "use_member_part", "use_members", "use_owners", "use_state_files",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
REQUIRED_OF_ALL = (
    "produce", "join", "leave", "kill_member", "crash_broker", "kill", "power", "restart_broker", "handed over",
    "sent back", "listener success", "listener later",
)  # fmt: skip
"""What has to happen before a campaign of all programs may hold."""
_OF_CONCURRENT = frozenset({"sent back"})
"""Orderly members try a failed message again in its place. No program is long enough for the last try."""


GroupPlan = CasePlan[GroupSettings]
GroupResult = CampaignResult[CaseTally, GroupFailure]
GroupRun = CaseRun[GroupCase]


def draw_run(settings: GroupSettings, seed: str, *, tracker: DirtyTracker) -> GroupRun:
    """Draw and carry out one run."""
    rng = Random(seed)
    drawn = draw_settings(settings, rng)
    begin = draw_beginning(drawn, rng)
    length = rng.randrange(6, OPERATIONS_MAX + 1)
    return _run(drawn, tracker, lambda trial: chain(begin, _drawn(trial, rng, length)))


def _drawn(trial: GroupTrial, rng: Random, length: int) -> Iterator[GroupOperation]:
    """Draw operations until a run has a length."""
    while len(trial.performed) < length:
        yield from draw_operations(trial, rng)


def _run(
    settings: GroupSettings,
    tracker: DirtyTracker,
    operations: Callable[[GroupTrial], Iterable[GroupOperation]],
) -> GroupRun:
    ran = CONSUMER_GROUPS.run(settings, operations, tracker=tracker)
    trial, failure = ran.trial, ran.failure
    hit = Counter[str]() if trial is None else trial.hit
    hit["manual" if settings.is_manual else "orderly" if settings.is_orderly else "concurrent"] += 1
    ends = "" if trial is None else f"{trial.now_ms} {len(trial.trace)} {sorted(trial.group.progress.items())}"
    return CaseRun(hit, hit["crash_broker"] + 1, digest_of(ran.case.token(), ends, ran.broken), failure)


def _carry_out(settings: GroupSettings, part: Part, seed: str, tracker: DirtyTracker) -> GroupRun:
    if isinstance(part, int):
        return draw_run(settings, seed, tracker=tracker)
    return _run(settings_of_programs(settings), tracker, lambda _: part)


def _required(plan: GroupPlan) -> tuple[str, ...]:
    if not plan.length:
        return possible_on(plan.settings.disk, REQUIRED)
    left_out = _OF_CONCURRENT if plan.settings.is_orderly else frozenset()
    return possible_on(plan.settings.disk, (each for each in REQUIRED_OF_ALL if each not in left_out))


def explore_group(plan: GroupPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> GroupResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    explorer = CaseExplorer(
        plan,
        _carry_out,
        programs=all_programs,
        canary=GROUP_REPRODUCERS[CANARY],
        required=_required(plan),
        program=CONSUMER_GROUPS,
        tracker=tracker,
    )
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
