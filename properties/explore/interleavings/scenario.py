"""A scenario: what was done before, and what several tasks then do at once, as a readable value.

With the schedule of an interleaving and the order of its tasks it is all that is needed to run that interleaving again.
"""

from dataclasses import dataclass, field

from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.properties.program.case import Settings

__all__ = ["Interleaving", "Scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`before` is done by one task alone; then each of `tasks` does its operations, and each of `services` what it is
    woken for. `percent` is how full the disk is from the begin of the tasks on.
    """

    name: str
    settings: Settings = field(default_factory=Settings)
    before: tuple[Operation, ...] = ()
    tasks: tuple[tuple[Operation, ...], ...] = ()
    services: tuple[str, ...] = ("reput",)
    percent: int = 0

    @property
    def task_count(self) -> int:
        """How many tasks run, those of services included."""
        return len(self.tasks) + len(self.services)


@dataclass(frozen=True, slots=True)
class Interleaving:
    """One scenario, the `order` in which its tasks are numbered, and who goes on at each yield point (`schedule`).

    Lines of `modules` are yield points; acquires and releases of locks always are.
    """

    scenario: Scenario
    order: tuple[int, ...]
    schedule: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def switches(self) -> int:
        """How often the schedule leaves a task that could have gone on, or takes another one than the first."""
        return sum(map(bool, self.schedule))
