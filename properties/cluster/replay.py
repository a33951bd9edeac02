"""Run a case of a cluster again, and shrink it while it fails in the same way."""

from collections.abc import Iterator
from dataclasses import fields, replace

from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.step_program import StepFailure, StepProgram
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings

__all__ = ["CLUSTERS", "ClusterFailure", "replay_cluster"]

ClusterFailure = StepFailure[ClusterCase]


def _simpler_settings(settings: ClusterSettings) -> Iterator[ClusterSettings]:
    for each in fields(ClusterSettings):
        plain = getattr(ClusterSettings(), each.name)
        if each.name not in ("bug", "disk", "nodes") and getattr(settings, each.name) != plain:
            yield replace(settings, **{each.name: plain})
    if settings.nodes > 2 and settings.quorum == 1:
        yield replace(settings, nodes=settings.nodes - 1)


CLUSTERS = StepProgram(ClusterCase, ClusterTrial, _simpler_settings)


def replay_cluster(case: ClusterCase, *, tracker: DirtyTracker) -> ClusterFailure | None:
    """Run a case and its end; promoted tests call this.

    Return its failure with the operations up to it, or None if all hold.
    """
    return CLUSTERS.replay(case, tracker=tracker)
