"""Search the programs of single parts in turns.

In a turn each part gets a few programs that were not tried before, and each of these a few drawn schedules. The mistake
of a part shows in some of its programs only, and there in many schedules. So few schedules of many programs find more
than all schedules of a few. After each turn some of the programs that the benches name are searched to their bounds.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from random import Random
from typing import Final

from tornpage.properties.explore.interleavings.draws import draw_priorities
from tornpage.properties.explore.interleavings.programs.running import PROGRAMS, modules_of, programs_by_part
from tornpage.properties.explore.interleavings.run import Ran
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.scheduler import Granularity, PreemptionSearch, SleepSets, bound_of

__all__ = ["PartTally", "first_search", "part_searches"]

Search = Generator[Interleaving, Ran, None]

_FIRST: Final[tuple[Granularity, int, int]] = ("shared opcode", 1, 400)
_SECOND: Final[tuple[Granularity, int, int]] = ("line", 2, 1_500)
"""The yield points, the preemptions and the most runs of each search of a round."""

_SAMPLED: Final = 12
"""The schedules of each program of a turn, with at most `_SAMPLED_PREEMPTIONS` preemptions."""

_SAMPLED_PREEMPTIONS: Final = 2
_SEARCHES_AFTER_A_TURN: Final = 1

_EXHAUSTIVE_MAX: Final = 1_000
_DRAWN_OF_EACH: Final = 20


@dataclass
class PartTally:
    """Count the searches of part programs, and the runs by priorities.

    `completed` has, by number of preemptions, how many programs hold with all schedules of at most that number: one
    before any shared bytecode, two between lines. `sampled` counts the programs of turns. `exhausted` counts the
    programs of which every order was run, or is equivalent to one that was. `equivalent` counts the runs that repeated
    an order. `priorities` has, by number of tasks and depth, the runs and their most yield points.
    """

    completed: Counter[int] = field(default_factory=Counter)
    exhausted: int = 0
    sampled: int = 0
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
    parts, rounds = programs_by_part(Random(f"{rng.random()} drawn")), _rounds(list(PROGRAMS), rng, tally)
    while True:
        rng.shuffle(parts)
        for programs, number in parts:
            for scenario in islice(programs, number):
                tally.sampled += 1
                yield _sampled(scenario, Random(f"{rng.random()} sampled"))
        yield from islice(rounds, _SEARCHES_AFTER_A_TURN)


def _sampled(scenario: Scenario, rng: Random) -> Search:
    """Yield some schedules of a program, before any shared bytecode."""
    search, plain = PreemptionSearch(_SAMPLED_PREEMPTIONS, rng), _plain(scenario, _FIRST[0])
    for schedule in islice(search.schedules(), _SAMPLED):
        search.ran((yield replace(plain, schedule=schedule)).trace)


def _rounds(programs: list[Scenario], rng: Random, tally: PartTally) -> Iterator[Search]:
    """Yield searches of the programs that the benches name.

    A round tries each program in one way.
    """
    rng.shuffle(programs)
    for scenario in programs:
        yield first_search(scenario, tally)
    rng.shuffle(programs)
    for scenario in programs:
        yield _bounded(scenario, _SECOND, tally)
    rng.shuffle(programs)
    for scenario in programs:
        yield _exhaustive(scenario, tally)
    for number in count():
        rng.shuffle(programs)
        for scenario in programs:
            yield _by_priorities(scenario, Random(f"{rng.random()} {number}"), tally)


def _plain(scenario: Scenario, granularity: Granularity = "line") -> Interleaving:
    return Interleaving(scenario, tuple(range(len(scenario.tasks))), (), modules_of(scenario), granularity)


def first_search(scenario: Scenario, tally: PartTally) -> Search:
    """Yield the schedules with at most one preemption, before any shared bytecode."""
    return _bounded(scenario, _FIRST, tally)


def _bounded(scenario: Scenario, bounds: tuple[Granularity, int, int], tally: PartTally) -> Search:
    """Yield the schedules with few preemptions."""
    granularity, preemptions, most = bounds
    search, plain = PreemptionSearch(preemptions), _plain(scenario, granularity)
    for number, schedule in enumerate(search.schedules()):
        if number == most:
            return
        search.ran((yield replace(plain, schedule=schedule)).trace)
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


def _by_priorities(scenario: Scenario, rng: Random, tally: PartTally) -> Search:
    """Yield runs by priorities with yield points before shared bytecodes."""
    modules, granularity = modules_of(scenario), _FIRST[0]
    ran = yield _plain(scenario, granularity)
    for _ in range(_DRAWN_OF_EACH):
        drawn = draw_priorities(scenario, rng, modules=modules, steps=ran.trace.steps, granularity=granularity)
        tally.drawn(scenario.task_count, ran.trace.steps, len(drawn.changes or ()) + 1)
        yield drawn
