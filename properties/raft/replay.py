"""Run a case of a Raft group again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.program.step_shrinking import TRIES_MAX, shrink_steps
from tornpage.properties.program.steps import described_step
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["RaftFailure", "replay_raft", "shrink_raft"]


@dataclass(frozen=True, slots=True)
class RaftFailure:
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: RaftCase
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


def replay_raft(case: RaftCase, *, tracker: DirtyTracker) -> RaftFailure | None:
    """Run a case and its end.

    Return its failure with the events up to it, or None if all hold.
    """
    trial: RaftTrial | None = None
    try:
        trial = RaftTrial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as broken:
        performed = () if trial is None else tuple(trial.performed)
        return RaftFailure(RaftCase(case.settings, performed), broken, 0 if trial is None else trial.lost_writes)
    return None


def shrink_raft(
    failure: RaftFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> RaftFailure:
    """Return the simplest case found that fails in the same way."""
    return shrink_steps(
        failure,
        replay=partial(replay_raft, tracker=tracker),
        settings_like=_simpler_settings,
        tries_max=tries_max,
        is_over=is_over,
        watch=watch,
    )


def _simpler_settings(settings: RaftSettings) -> Iterator[RaftSettings]:
    if settings.store:
        yield replace(settings, store=False, data_file_bytes=RaftSettings().data_file_bytes)
    if settings.data_file_bytes != RaftSettings().data_file_bytes:
        yield replace(settings, data_file_bytes=RaftSettings().data_file_bytes)
    if settings.batch_bytes != RaftSettings().batch_bytes:
        yield replace(settings, batch_bytes=RaftSettings().batch_bytes)
    if settings.members > 3:
        yield replace(settings, members=settings.members - 1)
