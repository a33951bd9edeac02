"""Shrink a failing interleaving to fewer tasks, operations and switches.

Leaving something out renumbers the yield points, so a smaller scenario is searched again: with the old schedule first,
then with some drawn ones. At the end unneeded switches are removed one by one, and then in pairs of the switch that
leaves a task and the one that returns to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from tornpage.model.operations import Put
from tornpage.properties.campaign.replay import signature
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.draws import draw_interleaving
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario

__all__ = ["BrokenInterleaving", "shrink"]

_DRAWS = 10
_TRIES_MAX = 500
_TRIES_OF_SWITCHES = 400


@dataclass(frozen=True, slots=True)
class BrokenInterleaving:
    """Hold one broken promise, the interleaving that shows it, and the run of it."""

    interleaving: Interleaving
    broken: GuaranteeBroken
    ran: Ran


class _Shrinking:
    """Shrink one failure; `tries` counts the interleavings run."""

    def __init__(
        self, failure: BrokenInterleaving, tracker: DirtyTracker, took: Callable[[BrokenInterleaving], None]
    ) -> None:
        self.best = failure
        self._took = took
        self._wanted = signature(failure.broken)
        self._tracker = tracker
        self._tries = 0
        self._tries_max = _TRIES_MAX

    def run(self) -> BrokenInterleaving:
        """Return the smallest failure found."""
        self._fewest_switches()
        before = None
        while before is not self.best and self._tries < _TRIES_MAX:
            before = self.best
            self._tries_max = _TRIES_MAX
            self._smallest_scenario()
            self._tries_max += _TRIES_OF_SWITCHES
            self._fewest_switches()
        return self.best

    def _smallest_scenario(self) -> None:
        found = True
        while found and self._tries < self._tries_max:
            found = any(self._fails_too(smaller) for smaller in _smaller(self.best.interleaving.scenario))

    def _fewest_switches(self) -> None:
        self._fewer_switches()
        while self._leaves_two_out():
            self._fewer_switches()

    def _takes(self, interleaving: Interleaving) -> bool:
        """Take an interleaving that fails in the same way."""
        self._tries += 1
        ran = run_interleaving(interleaving, tracker=self._tracker)
        if ran.broken is None or signature(ran.broken) != self._wanted:
            return False
        self.best = BrokenInterleaving(interleaving, ran.broken, ran)
        self._took(self.best)
        return True

    def _fails_too(self, scenario: Scenario) -> bool:
        before = self.best.interleaving
        left = scenario.task_count
        order = tuple(number for number in before.order if number < left)
        if len(order) == len(before.order) and self._takes(replace(before, scenario=scenario)):
            return True
        rng = Random(f"shrink {scenario}")
        points = len(self.best.ran.trace.options)
        for _ in range(_DRAWS):
            if self._tries >= self._tries_max:
                return False
            drawn = draw_interleaving(scenario, rng, modules=before.modules, points=points)
            if self._takes(replace(drawn, granularity=before.granularity)):
                return True
        return False

    def _fewer_switches(self) -> None:
        """Leave switches out, many at once first.

        The schedule first ends at the last switch that was used.
        """
        self._takes(replace(self.best.interleaving, schedule=self.best.ran.trace.schedule))
        count = max(1, self.best.interleaving.switches // 2)
        while self._tries < self._tries_max:
            if not self._leaves_out(count):
                if count == 1:
                    return
                count //= 2

    def _leaves_out(self, count: int) -> bool:
        """Try to leave out `count` consecutive switches."""
        interleaving = self.best.interleaving
        switches = [at for at, number in enumerate(interleaving.schedule) if number]
        runs = (switches[start : start + count] for start in range(0, len(switches), count))
        return any(self._takes(replace(interleaving, schedule=_without(interleaving.schedule, run))) for run in runs)

    def _leaves_two_out(self) -> bool:
        """Try to leave out two switches: one that leaves a task, and one that returns to it."""
        interleaving = self.best.interleaving
        switches = [at for at, number in enumerate(interleaving.schedule) if number]
        return any(
            self._takes(replace(interleaving, schedule=_without(interleaving.schedule, pair)))
            for pair in combinations(switches, 2)
            if self._tries < self._tries_max
        )


def _without(schedule: tuple[int, ...], places: Sequence[int]) -> tuple[int, ...]:
    left = [0 if at in places else number for at, number in enumerate(schedule)]
    while left and not left[-1]:
        left.pop()
    return tuple(left)


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios with one task less, one operation less, or a plainer message.

    The program of a part is small, and some of its calls need others. It has none.
    """
    if scenario.part:
        return
    for number in range(len(scenario.tasks)):
        yield replace(scenario, tasks=(*scenario.tasks[:number], *scenario.tasks[number + 1 :]))
    for number in range(len(scenario.before)):
        yield replace(scenario, before=(*scenario.before[:number], *scenario.before[number + 1 :]))
    for number, task in enumerate(scenario.tasks):
        for at in range(len(task) if len(task) > 1 else 0):
            yield _with_task(scenario, number, (*task[:at], *task[at + 1 :]))
    for number, task in enumerate(scenario.tasks):
        for at, operation in enumerate(task):
            if isinstance(operation, Put) and operation.body_bytes:
                plainer = replace(operation, body_bytes=0)
                yield _with_task(scenario, number, (*task[:at], plainer, *task[at + 1 :]))


def _with_task(scenario: Scenario, number: int, task: tuple[object, ...]) -> Scenario:
    return replace(scenario, tasks=(*scenario.tasks[:number], task, *scenario.tasks[number + 1 :]))  # type: ignore[arg-type]


def shrink(
    failure: BrokenInterleaving,
    *,
    tracker: DirtyTracker,
    took: Callable[[BrokenInterleaving], None] = lambda smaller: None,
) -> BrokenInterleaving:
    """Return the smallest failure found; `took` receives each smaller one at once.

    The cost is up to 900 interleavings.
    """
    return _Shrinking(failure, tracker, took).run()
