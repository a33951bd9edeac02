"""Enumerate the orders of a small program without equivalent ones.

Two orders are equivalent if one becomes the other by exchanging neighbouring steps of two tasks that conflict in no
location. They end in the same state. The search keeps a sleep set at each decision: the tasks whose next step was tried
there, and conflicts with no step since. A run in which only such tasks could continue repeats an earlier order.
Source: P. Godefroid, "Partial-order methods for the verification of concurrent systems", 1996, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tornpage.properties.scheduler.accesses import NOTHING, Access
from tornpage.properties.scheduler.trace import StepTrace

__all__ = ["SleepSets"]


@dataclass(slots=True)
class _Node:
    """A decision: the tasks that could continue, those asleep, and those tried."""

    runnable: tuple[int, ...]
    asleep: dict[int, Access]
    chosen: int
    tried: dict[int, Access] = field(default_factory=dict)


class SleepSets:
    """A chooser for run after run, until every order was run or is equivalent to one that was.

    The runs have to record accesses. `is_redundant` says whether the last run repeats an earlier order from some
    decision on. `runs` and `redundant` count.
    """

    def __init__(self) -> None:
        self.is_redundant = False
        self.runs = self.redundant = 0
        self._nodes: list[_Node] = []
        self._depth = 0
        self._seen = 0
        self._last_accesses: list[Access] = []

    def begin(self) -> bool:
        """Prepare the next run; return False if there is none."""
        if self.runs and not self._advance():
            return False
        self.is_redundant = False
        self._depth = self._seen = 0
        self.runs += 1
        return True

    def ended(self, trace: StepTrace) -> None:
        """Note the end of a run."""
        self._note(trace)
        self.redundant += self.is_redundant

    def choose(self, current: int | None, runnable: Sequence[int], trace: StepTrace) -> int:
        """Return the task to run.

        Up to the decision to change it is that of the last run, and afterwards the first task that is not asleep.
        """
        access = self._note(trace)
        depth, self._depth = self._depth, self._depth + 1
        if depth < len(self._nodes):
            return self._nodes[depth].chosen
        if self.is_redundant:
            return runnable[0]
        asleep = self._asleep_after(depth, access)
        awake = [task for task in runnable if task not in asleep]
        if not awake:
            self.is_redundant = True
            return runnable[0]
        self._nodes.append(_Node(tuple(runnable), asleep, awake[0]))
        return awake[0]

    def _asleep_after(self, depth: int, access: Access) -> dict[int, Access]:
        """Return the tasks asleep after the last decision and the step that followed it."""
        if not depth:
            return {}
        last = self._nodes[depth - 1]
        return {
            task: other
            for task, other in (last.asleep | last.tried).items()
            if task != last.chosen and not other.conflicts(access)
        }

    def _note(self, trace: StepTrace) -> Access:
        """Take the step since the last decision, and keep it for its task."""
        access = NOTHING
        for step in trace.accesses[self._seen :]:
            access = access.joined(step.access)
        self._seen = len(trace.accesses)
        if 0 < self._depth <= len(self._nodes):
            self._last_accesses[self._depth - 1 :] = [access]
        return access

    def _advance(self) -> bool:
        """Choose another task at the deepest decision that has one; return False if none has."""
        while self._nodes:
            node = self._nodes[-1]
            node.tried[node.chosen] = self._last_accesses[len(self._nodes) - 1]
            left = [task for task in node.runnable if task not in node.tried and task not in node.asleep]
            if left:
                node.chosen = left[0]
                del self._last_accesses[len(self._nodes) - 1 :]
                return True
            self._nodes.pop()
        return False
