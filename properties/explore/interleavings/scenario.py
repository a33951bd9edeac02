"""Describe a scenario: earlier operations and several concurrent tasks, as plain values.

Together with the schedule of an interleaving and the order of its tasks it is everything needed to run that
interleaving again.
"""

from dataclasses import dataclass, field, replace

from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.program.case import Settings
from tornpage.properties.scheduler import Chooser, Granularity, StepTrace

__all__ = ["Interleaving", "Scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Describe what tasks do. One task alone does `before`.

    Then each of `tasks` does its operations, and each of `services` its work when woken. `percent` is the disk usage
    from the start of the tasks on. If `part` is not empty, it names a program of one part of the store. All operations
    are then calls of that part, and there is no store.
    """

    name: str
    settings: Settings = field(default_factory=Settings)
    before: tuple[Operation | PartCall, ...] = ()
    tasks: tuple[tuple[Operation | PartCall, ...], ...] = ()
    services: tuple[str, ...] = ("reput",)
    percent: int = 0
    part: str = ""

    @property
    def task_count(self) -> int:
        """Return the number of tasks, including services."""
        return len(self.tasks) + len(self.services)


@dataclass(frozen=True, slots=True)
class Interleaving:
    """Describe one interleaving of a scenario: the `order` of its tasks, and its `schedule`.

    The schedule has the task that continues at each yield point. Lines of `modules` are yield points, and so are all
    acquires and releases of locks. `granularity` is what a yield point is in the lines of `modules`. With `changes` the
    tasks run by priority in place of a schedule: these are the yield points at which the running task gets a lower one.
    A `chooser` takes the place of both, and is not part of a token.
    """

    scenario: Scenario
    order: tuple[int, ...]
    schedule: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()
    granularity: Granularity = "line"
    changes: tuple[int, ...] | None = None
    chooser: Chooser | None = field(default=None, compare=False, repr=False)

    @property
    def switches(self) -> int:
        """Return the number of switches away from a task that could have continued."""
        return sum(map(bool, self.schedule))

    def task_of(self, number: int) -> int:
        """Return the task of a number of the run. A thread that a part starts follows the tasks."""
        return self.order[number] if number < len(self.order) else number

    def as_run(self, trace: StepTrace) -> "Interleaving":
        """Return the same interleaving with the schedule that a run of it followed."""
        return replace(self, schedule=trace.schedule, changes=None, chooser=None)
