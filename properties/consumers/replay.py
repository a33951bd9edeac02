"""Run a case of a consumer group again, and shrink it while it fails in the same way."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tornpage.properties.consumers.host import BORN_MS
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.step_program import StepFailure, StepProgram
from tornpage.properties.program.group_case import GroupCase, GroupSettings
from tornpage.properties.program.steps import described_step

__all__ = ["CONSUMER_GROUPS", "GroupFailure", "GroupMoment", "account_of", "replay_group"]

AT_THE_END = "all faults end, and the group gets time"
_EVENTS_MAX = 60

GroupFailure = StepFailure[GroupCase]


def _simpler_settings(settings: GroupSettings) -> Iterator[GroupSettings]:
    for each in fields(GroupSettings):
        plain = getattr(GroupSettings(), each.name)
        if each.name not in ("bug", "disk") and getattr(settings, each.name) != plain:
            yield replace(settings, **{each.name: plain})
    for name in ("members", "queues"):
        if getattr(settings, name) > 1:
            yield replace(settings, **{name: getattr(settings, name) - 1})


CONSUMER_GROUPS = StepProgram(GroupCase, GroupTrial, _simpler_settings)


def replay_group(case: GroupCase, *, tracker: DirtyTracker) -> GroupFailure | None:
    """Run a case and its end; promoted tests call this.

    Return its failure with the operations up to it, or None if all hold.
    """
    return CONSUMER_GROUPS.replay(case, tracker=tracker)


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
            return StepFailure(failed, broken, trial.lost_writes), moments
    return None
