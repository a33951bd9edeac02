"""Run programs over several processes; hold, replay and shrink their failures.

A `StepProgram` is one kind of program: clusters, consumer groups or Raft groups. Its cases are read and written by
their class (properties/program/step_case.py). Its trial carries out operations and judges them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tornpage.properties.contract import GuaranteeBroken, reading_store
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.findings import Finding
from tornpage.properties.program.step_case import StepCase
from tornpage.properties.program.step_shrinking import TRIES_MAX, shrink_steps
from tornpage.properties.program.steps import described_step

__all__ = ["StepFailure", "StepProgram", "StepRun", "StepTrial"]


class StepTrial(Protocol):
    """Carry out the operations of one run."""

    performed: list[Any]
    lost_writes: int

    def run(self, operation: Any) -> None:
        """Carry out an operation. Raises GuaranteeBroken."""

    def finish(self) -> None:
        """Carry out the end of a run. Raises GuaranteeBroken."""


Case = TypeVar("Case", bound=StepCase[Any, Any])
Trial = TypeVar("Trial", bound=StepTrial)


@dataclass(frozen=True, slots=True)
class StepFailure(Generic[Case]):
    """Hold one broken promise and the case that shows it.

    `lost_writes` counts what its power losses took.
    """

    case: Case
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


@dataclass(frozen=True, slots=True)
class StepRun(Generic[Case, Trial]):
    """Hold what a run has done: its case, its trial, and its failure.

    The trial is None if the processes broke a promise when they were opened.
    """

    case: Case
    trial: Trial | None
    failure: StepFailure[Case] | None

    @property
    def broken(self) -> GuaranteeBroken | None:
        """Return the broken promise."""
        return None if self.failure is None else self.failure.broken


@dataclass(frozen=True, slots=True)
class StepProgram(Generic[Case, Trial]):
    """Describe one kind of program.

    It has the class of its cases, the class of its trial, and simpler settings for shrinking.
    """

    case: type[Case]
    trial: Callable[..., Trial]
    simpler_settings: Callable[[Any], Iterator[Any]]

    def run(
        self, settings: Any, operations: Callable[[Trial], Iterable[Any]], *, tracker: DirtyTracker
    ) -> StepRun[Case, Trial]:
        """Run operations, which may depend on the trial, and the end of a run.

        The case of a failure in the end of a run has the operations before the end. The end follows from them, so a
        replay comes to the same failure.
        """
        trial, broken, count = None, None, None
        try:
            with reading_store():
                trial = self.trial(settings, tracker=tracker)
                for operation in operations(trial):
                    trial.run(operation)
                count = len(trial.performed)
                trial.finish()
        except GuaranteeBroken as error:
            broken = error
        performed = () if trial is None else tuple(trial.performed)
        case = self.case(settings, performed if broken is None else performed[:count])
        lost_writes = 0 if trial is None else trial.lost_writes
        return StepRun(case, trial, None if broken is None else StepFailure(case, broken, lost_writes))

    def replay(self, case: Case, *, tracker: DirtyTracker) -> StepFailure[Case] | None:
        """Run a case and its end.

        Return its failure with the operations up to it, or None if all hold.
        """
        return self.run(case.settings, lambda _: case.operations, tracker=tracker).failure

    def shrink(
        self,
        failure: StepFailure[Case],
        *,
        tracker: DirtyTracker,
        tries_max: int = TRIES_MAX,
        is_over: Callable[[], bool] = lambda: False,
        watch: Callable[[int, int, int], None] = lambda tries, operations, losses: None,
    ) -> StepFailure[Case]:
        """Return the simplest case found that fails in the same way."""
        return shrink_steps(
            failure,
            replay=lambda case: self.replay(case, tracker=tracker),
            settings_like=self.simpler_settings,
            tries_max=tries_max,
            is_over=is_over,
            watch=watch,
        )
