"""Run a case of a cluster again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings
from tornpage.properties.program.step_shrinking import TRIES_MAX, shrink_steps
from tornpage.properties.program.steps import described_step

__all__ = ["ClusterFailure", "replay_cluster", "shrink_cluster"]


@dataclass(frozen=True, slots=True)
class ClusterFailure:
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: ClusterCase
    broken: GuaranteeBroken
    lost_writes: int = 0

    def finding(self) -> Finding:
        """Return the entry of a run document."""
        return Finding.of_broken(
            self.broken,
            expected=self.broken.expected,
            found=self.broken.found,
            program=[described_step(operation) for operation in self.case.operations],
            settings=self.case.document()["settings"],
            losses=self.lost_writes,
            token=self.case.token(),
        )


def replay_cluster(case: ClusterCase, *, tracker: DirtyTracker) -> ClusterFailure | None:
    """Run a case and its end.

    Return its failure with the operations up to it, or None if all hold.
    """
    trial: ClusterTrial | None = None
    try:
        trial = ClusterTrial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as broken:
        performed = () if trial is None else tuple(trial.performed)
        return ClusterFailure(ClusterCase(case.settings, performed), broken, 0 if trial is None else trial.lost_writes)
    return None


def shrink_cluster(
    failure: ClusterFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> ClusterFailure:
    """Return the simplest case found that fails in the same way."""
    return shrink_steps(
        failure,
        replay=partial(replay_cluster, tracker=tracker),
        settings_like=_simpler_settings,
        tries_max=tries_max,
        is_over=is_over,
        watch=watch,
    )


def _simpler_settings(settings: ClusterSettings) -> Iterator[ClusterSettings]:
    for each in fields(ClusterSettings):
        plain = getattr(ClusterSettings(), each.name)
        if each.name not in ("bug", "disk", "nodes") and getattr(settings, each.name) != plain:
            yield replace(settings, **{each.name: plain})
    if settings.nodes > 2 and settings.quorum == 1:
        yield replace(settings, nodes=settings.nodes - 1)
