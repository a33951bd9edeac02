"""Choose the next task during a run.

`Priorities` is probabilistic concurrency testing. Each task has a priority, and the runnable task with the highest one
runs. At each of `d - 1` change points the running task gets a priority below all others. If a bug needs d ordered
events, one run with random priorities and change points finds it with a probability of at least `1 / (n k^(d-1))`, with
n tasks and k steps. Source: S. Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding
bugs", ASPLOS 2010.
"""

from collections.abc import Sequence
from typing import Protocol

from tornpage.properties.scheduler.trace import StepTrace

__all__ = ["Chooser", "Priorities", "bound_of"]


class Chooser(Protocol):
    """Chooses at each yield point, wait and end of a task."""

    def choose(self, current: int | None, runnable: Sequence[int], trace: StepTrace) -> int:
        """Return the number of the task that runs next.

        `current` is the task that can continue, None if there is none. `trace` has what happened before.
        """
        ...


class Priorities:
    """Run the runnable task with the highest priority.

    Args:
        changes: The yield points, counted from 1, at which the running task gets a priority below all first ones. The
            task of the first of them gets the lowest priority, wherever its yield point is.

    Task 0 begins with the highest priority, and the others follow by number.
    """

    def __init__(self, changes: Sequence[int]) -> None:
        self._changes = sorted(((step, len(changes) - at) for at, step in enumerate(changes)), reverse=True)
        self._lowered: dict[int, int] = {}

    def choose(self, current: int | None, runnable: Sequence[int], trace: StepTrace) -> int:
        """Return the runnable task with the highest priority."""
        while self._changes and trace.steps >= self._changes[-1][0]:
            _, lowered = self._changes.pop()
            if current is not None:
                self._lowered[current] = lowered
        return min(runnable, key=lambda task: (self._lowered.get(task, 0), task))


def bound_of(tasks: int, steps: int, depth: int) -> float:
    """Return the least probability with which one run finds a bug of a depth."""
    return 1.0 / float(max(1, tasks) * max(1, steps) ** (depth - 1))
