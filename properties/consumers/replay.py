"""Run a case of a consumer group again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.group_case import GroupCase, GroupSettings
from tornpage.properties.program.step_shrinking import TRIES_MAX, shrink_steps
from tornpage.properties.program.steps import described_step

__all__ = ["GroupFailure", "replay_group", "shrink_group"]


@dataclass(frozen=True, slots=True)
class GroupFailure:
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: GroupCase
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


def replay_group(case: GroupCase, *, tracker: DirtyTracker) -> GroupFailure | None:
    """Run a case and its end.

    Return its failure with the operations up to it, or None if all hold.
    """
    trial: GroupTrial | None = None
    try:
        trial = GroupTrial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
        trial.finish()
    except GuaranteeBroken as broken:
        performed = () if trial is None else tuple(trial.performed)
        return GroupFailure(GroupCase(case.settings, performed), broken, 0 if trial is None else trial.lost_writes)
    return None


def shrink_group(
    failure: GroupFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> GroupFailure:
    """Return the simplest case found that fails in the same way (`properties.program.step_shrinking`)."""
    return shrink_steps(
        failure,
        replay=partial(replay_group, tracker=tracker),
        settings_like=_simpler_settings,
        tries_max=tries_max,
        is_over=is_over,
        watch=watch,
    )


def _simpler_settings(settings: GroupSettings) -> Iterator[GroupSettings]:
    for each in fields(GroupSettings):
        plain = getattr(GroupSettings(), each.name)
        if each.name not in ("bug", "disk") and getattr(settings, each.name) != plain:
            yield replace(settings, **{each.name: plain})
    for name in ("members", "queues"):
        if getattr(settings, name) > 1:
            yield replace(settings, **{name: getattr(settings, name) - 1})
