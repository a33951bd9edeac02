"""Run a campaign on clusters: drawn runs or all small programs, and a canary.

A run is a part of the campaign (properties/campaign/engine.py). A state is a crashed node that was opened again, or the
end of a run with a healed network. A campaign without findings must have caught a planted bug, and must have met every
kind of fault and answer in `REQUIRED`. Otherwise it is vacuous.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from random import Random

from tornpage.model.replication.operations import ClusterOperation
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
from tornpage.properties.cluster.replay import CLUSTERS, ClusterFailure
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.dirty import DirtyTracker
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
    "draw_run",
    "explore_cluster",
]

CANARY = "RB09"
REQUIRED = (
    "put_on", "crash_node", "kill", "power", "silent", "writes lost", "restart_node", "limit_link", "reset_link",
    "bytes lost by a reset", "bit flipped", "frame forged",
    "connection of no replica", "fail_sync_on", "log files deleted", "bytes gone",
    "change_roles", "close_node", "log cut", "answered PUT_OK",
    "answered FLUSH_SLAVE_TIMEOUT", "answered SLAVE_NOT_AVAILABLE",
)  # fmt: skip
"""What has to happen before a campaign of drawn runs may hold."""
REQUIRED_OF_ALL = (
    "put_on", "crash_node", "kill", "power", "writes lost", "restart_node", "limit_link", "reset_link", "change_roles",
    "log cut", "log files deleted", "answered PUT_OK", "answered SLAVE_NOT_AVAILABLE",
)  # fmt: skip
"""What has to happen before a campaign of all programs may hold."""


ClusterPlan = CasePlan[ClusterSettings]
ClusterRun = CaseRun[ClusterCase]
ClusterResult = CampaignResult[CaseTally, ClusterFailure]


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
    ran = CLUSTERS.run(settings, operations, tracker=tracker)
    trial, failure = ran.trial, ran.failure
    hit = Counter[str]() if trial is None else trial.hit
    hit[f"quorum {settings.quorum}"] += 1
    hit[f"confirmed when {settings.acknowledge}"] += 1
    ends = "" if trial is None else " ".join(str(each.end) if each.is_up else "down" for each in trial.nodes)
    digest = digest_of(ran.case.token(), ends, ran.broken)
    return CaseRun(hit, hit["crash_node"] + 1, digest, failure)


def _carry_out(settings: ClusterSettings, part: Part, seed: str, tracker: DirtyTracker) -> ClusterRun:
    if isinstance(part, int):
        return draw_run(settings, seed, tracker=tracker)
    return _run(settings, tracker, lambda _: part)


def explore_cluster(plan: ClusterPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> ClusterResult:
    """Run a campaign. An interrupt ends it and keeps its results."""
    required = REQUIRED if not plan.length else REQUIRED_OF_ALL
    quorums = () if plan.length else tuple(f"quorum {number}" for number in range(1, plan.settings.nodes))
    explorer = CaseExplorer(
        plan,
        _carry_out,
        programs=all_programs,
        canary=CLUSTER_REPRODUCERS[CANARY],
        required=possible_on(plan.settings.disk, (*required, *quorums)),
        program=CLUSTERS,
        tracker=tracker,
    )
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress)
