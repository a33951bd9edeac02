"""Run a case of a consumer group again, and shrink it while it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

from tornpage.properties.consumers.host import BORN_MS
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.group_case import GroupCase, GroupSettings
from tornpage.properties.program.step_shrinking import TRIES_MAX, shrink_steps
from tornpage.properties.program.steps import described_step

__all__ = ["GroupFailure", "GroupMoment", "account_of", "replay_group", "shrink_group"]

AT_THE_END = "all faults end, and the group gets time"
_EVENTS_MAX = 60


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


@dataclass(frozen=True, slots=True)
class GroupMoment:
    """One operation and the events that it caused.

    `at_ms` is virtual time since the begin of the run.
    """

    text: str
    at_ms: int
    events: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def account_of(case: GroupCase, *, tracker: DirtyTracker) -> tuple[GroupFailure, list[GroupMoment]] | None:
    """Run a case and its end; return its failure and what happened, or None if all hold."""
    trial = GroupTrial(case.settings, tracker=tracker)
    moments: list[GroupMoment] = []
    for operation in (*case.operations, None):
        begun, broken = len(trial.trace), None
        try:
            if operation is None:
                trial.finish()
            else:
                trial.run(operation)
        except GuaranteeBroken as error:
            broken = error
        text = AT_THE_END if operation is None else described_step(trial.performed[-1])
        events = tuple(str(event) for event in trial.trace[begun:])
        moments.append(GroupMoment(text, trial.now_ms - BORN_MS, events[-_EVENTS_MAX:]))
        if broken is not None:
            failed = GroupCase(case.settings, tuple(trial.performed))
            return GroupFailure(failed, broken, trial.lost_writes), moments
    return None


def shrink_group(
    failure: GroupFailure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
) -> GroupFailure:
    """Return the simplest case found that fails in the same way."""
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
