"""Search the programs of single parts in rounds.

Each round tries every program in one way, in a drawn order. The first rounds find most races: one preemption between
two lines, then one inside a line, then two between lines.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Final

from tornpage.properties.explore.interleavings.draws import draw_priorities
from tornpage.properties.explore.interleavings.programs.running import PROGRAMS, modules_of
from tornpage.properties.explore.interleavings.run import Ran
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.scheduler import Granularity, PreemptionSearch, SleepSets, bound_of

__all__ = ["PartTally", "part_searches"]

Search = Generator[Interleaving, Ran, None]

_BOUNDED: Final[tuple[tuple[Granularity, int, int], ...]] = (("line", 1, 250), ("opcode", 1, 500), ("line", 2, 1_500))
"""The yield points, the preemptions and the most runs of the first rounds."""

_EXHAUSTIVE_MAX: Final = 1_000
_DRAWN_OF_EACH: Final = 20


@dataclass
class PartTally:
    """Count the searches of part programs, and the runs by priorities.

    `completed` has, by number of preemptions, how many programs hold with all schedules of at most that number between
    lines. `exhausted` counts the programs of which every order was run, or is equivalent to one that was. `equivalent`
    counts the runs that repeated an order. `priorities` has, by number of tasks and depth, the runs and their most
    yield points.
    """

    completed: Counter[int] = field(default_factory=Counter)
    exhausted: int = 0
    equivalent: int = 0
    priorities: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def drawn(self, tasks: int, steps: int, depth: int) -> None:
        """Count a run by priorities."""
        runs, most = self.priorities.get((tasks, depth), (0, 0))
        self.priorities[tasks, depth] = runs + 1, max(most, steps)

    def bounds(self) -> list[dict[str, float]]:
        """Return the least probability of finding a bug, by number of tasks and depth.

        `bound` is that of one run, `bound_of_all` that of all runs together.
        """
        found = []
        for (tasks, depth), (runs, steps) in sorted(self.priorities.items()):
            bound = bound_of(tasks, steps, depth)
            each: dict[str, float] = {"tasks": tasks, "depth": depth, "steps": steps, "runs": runs}
            found.append({**each, "bound": bound, "bound_of_all": 1.0 - (1.0 - bound) ** runs})
        return found


def part_searches(rng: Random, tally: PartTally) -> Iterator[Search]:
    """Yield searches without end, each a generator of interleavings of one program."""
    programs = list(PROGRAMS)
    for granularity, preemptions, most in _BOUNDED:
        rng.shuffle(programs)
        for scenario in programs:
            yield _bounded(scenario, granularity, preemptions, most, tally)
    rng.shuffle(programs)
    for scenario in programs:
        yield _exhaustive(scenario, tally)
    for number in count():
        rng.shuffle(programs)
        for scenario in programs:
            yield _drawn(scenario, Random(f"{rng.random()} {number}"), tally)


def _plain(scenario: Scenario, granularity: Granularity = "line") -> Interleaving:
    return Interleaving(scenario, tuple(range(len(scenario.tasks))), (), modules_of(scenario), granularity)


def _bounded(scenario: Scenario, granularity: Granularity, preemptions: int, most: int, tally: PartTally) -> Search:
    """Yield the schedules with few preemptions."""
    search, plain = PreemptionSearch(preemptions), _plain(scenario, granularity)
    for number, schedule in enumerate(search.schedules()):
        if number == most:
            return
        search.ran((yield replace(plain, schedule=schedule)).trace)
    if granularity == "line":
        tally.completed[preemptions] += 1


def _exhaustive(scenario: Scenario, tally: PartTally) -> Search:
    """Yield one of each set of equivalent orders, as far as the sleep sets see."""
    search, plain = SleepSets(), _plain(scenario)
    while search.begin():
        if search.runs > _EXHAUSTIVE_MAX:
            return
        ran = yield replace(plain, chooser=search)
        search.ended(ran.trace)
        tally.equivalent += search.is_redundant
    tally.exhausted += 1


def _drawn(scenario: Scenario, rng: Random, tally: PartTally) -> Search:
    """Yield runs by priorities with yield points between bytecodes."""
    modules = modules_of(scenario)
    ran = yield _plain(scenario, "opcode")
    for _ in range(_DRAWN_OF_EACH):
        drawn = draw_priorities(scenario, rng, modules=modules, steps=ran.trace.steps, granularity="opcode")
        tally.drawn(scenario.task_count, ran.trace.steps, len(drawn.changes or ()) + 1)
        yield drawn
