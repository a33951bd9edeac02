"""Describe a scenario: earlier operations and several concurrent tasks, as plain values.

Together with the schedule of an interleaving and the order of its tasks it is everything needed to run that
interleaving again.
"""

from dataclasses import dataclass, field

from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.properties.program.case import Settings

__all__ = ["Interleaving", "Scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Describe what tasks do. One task alone does `before`.

    Then each of `tasks` does its operations, and each of `services` its work when woken. `percent` is the disk usage
    from the start of the tasks on.
    """

    name: str
    settings: Settings = field(default_factory=Settings)
    before: tuple[Operation, ...] = ()
    tasks: tuple[tuple[Operation, ...], ...] = ()
    services: tuple[str, ...] = ("reput",)
    percent: int = 0

    @property
    def task_count(self) -> int:
        """Return the number of tasks, including services."""
        return len(self.tasks) + len(self.services)


@dataclass(frozen=True, slots=True)
class Interleaving:
    """Describe one interleaving of a scenario: the `order` of its tasks, and its `schedule`.

    The schedule has the task that continues at each yield point. Lines of `modules` are yield points, and so are all
    acquires and releases of locks.
    """

    scenario: Scenario
    order: tuple[int, ...]
    schedule: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def switches(self) -> int:
        """Return the number of switches away from a task that could have continued."""
        return sum(map(bool, self.schedule))
