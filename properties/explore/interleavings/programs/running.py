"""Run an interleaving of a part program and judge it; list the programs of all parts."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, cycle, islice, zip_longest
from random import Random

from tornpage.properties.contract import GuaranteeBroken, HarnessError, reading_store
from tornpage.properties.explore.interleavings.locks import ThreadTask, controlled_locks
from tornpage.properties.explore.interleavings.programs import files, groups, nodes, stores, tables, waiting
from tornpage.properties.explore.interleavings.programs.bench import (
    Bench,
    Result,
    differs,
    run_calls,
    sequential_results,
)
from tornpage.properties.explore.interleavings.programs.drawing import drawn_programs
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.scheduler import Chooser, StepTrace, run_stepped

__all__ = ["BENCHES", "PROGRAMS", "bench_of", "draw_programs", "modules_of", "programs_by_part", "run_program"]

POINTS_MAX = 20_000
_ORDERS_MAX = {False: 60, True: 6}
"""The most orders of whole calls of a drawn program, by whether its bench is slow."""

BENCHES = {
    **tables.BENCHES,
    **waiting.BENCHES,
    **files.BENCHES,
    **groups.BENCHES,
    **stores.BENCHES,
    **nodes.BENCHES,
}
"""The benches by name."""

PROGRAMS: tuple[Scenario, ...] = tuple(
    scenario
    for bench in BENCHES.values()
    for scenario in bench.programs  # type: ignore[attr-defined]
)
"""The programs of all benches."""


def bench_of(scenario: Scenario) -> type[Bench]:
    """Return the bench of a program. Raises HarnessError for an unknown name."""
    found = BENCHES.get(scenario.part)
    if found is None:
        raise HarnessError(f"the store has no part program {scenario.part!r}")
    return found  # type: ignore[return-value]


def modules_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the modules whose lines are yield points in a program."""
    return bench_of(scenario).modules


def programs_by_part(rng: Random) -> list[tuple[Iterator[Scenario], int]]:
    """Return the programs of each part without end, and how many of them a turn takes.

    The programs that a bench names come between drawn ones until all were taken. A turn takes two programs, or a tenth
    of all pairs of a larger menu. Of a slow bench it takes one. A program that cannot end in any order of whole calls
    is left out.
    """
    benches: dict[str, type[Bench]] = BENCHES  # type: ignore[assignment]
    return [
        (_programs_of(name, Random(f"{rng.random()} {name}")), 1 if make.is_slow else max(2, len(make.menu) ** 2 // 20))
        for name, make in benches.items()
    ]


def _programs_of(name: str, rng: Random) -> Iterator[Scenario]:
    """Yield the programs that a bench names, between drawn ones.

    Without a menu the named ones are repeated.
    """
    make: type[Bench] = BENCHES[name]  # type: ignore[assignment]
    named = list(make.programs)
    rng.shuffle(named)
    drawn = drawn_programs(name, make.menu, rng, orders_max=_ORDERS_MAX[make.is_slow]) if make.menu else cycle(named)
    for scenario in chain.from_iterable(zip_longest(named if make.menu else (), drawn)):
        completed = scenario if scenario is None or scenario in named else make.completed(scenario)
        if completed is not None and _can_end(completed):
            yield completed


def draw_programs(rng: Random) -> Iterator[Scenario]:
    """Yield programs of all benches without end, in turns."""
    parts = programs_by_part(rng)
    while True:
        rng.shuffle(parts)
        for programs, number in parts:
            yield from islice(programs, number)


def _can_end(scenario: Scenario) -> bool:
    """Return whether some order of whole calls ends, which a call that waits may prevent."""
    make = bench_of(scenario)
    try:
        return bool(make.threads or sequential_results(make, scenario))  # type: ignore[arg-type]
    except GuaranteeBroken:
        return True  # its search reports that


def run_program(
    interleaving: Interleaving, schedule: "Sequence[int] | Chooser", trace: StepTrace
) -> tuple[GuaranteeBroken | None, Result]:
    """Run a program on a new part; return the broken guarantee, if any, and the result."""
    scenario = interleaving.scenario
    make = bench_of(scenario)
    answers: list[list[str]] = [[] for _ in scenario.tasks]
    result = Result((), "")
    try:
        with reading_store():
            wanted = sequential_results(make, scenario) if not make.threads else None  # type: ignore[arg-type]
        with reading_store(), controlled_locks():
            bench = make()
            run_calls(bench, 0, scenario.before, [[]])
            _run(bench, interleaving, schedule, answers, trace)
            result = Result(tuple(map(tuple, answers)), _state(bench))
    except GuaranteeBroken as broken:
        return broken, result
    return (None if wanted is None else differs(result, wanted, scenario)), result


def _state(bench: Bench) -> str:
    """Return the end state. Raises GuaranteeBroken if it cannot be observed."""
    try:
        return repr(bench.state())
    except (GuaranteeBroken, HarnessError):
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"the end state cannot be observed: {type(error).__name__}: {error}") from error


def _run(
    bench: Bench,
    interleaving: Interleaving,
    schedule: "Sequence[int] | Chooser",
    answers: list[list[str]],
    trace: StepTrace,
) -> None:
    tasks = interleaving.scenario.tasks
    left = [len(tasks)]
    threads = [ThreadTask() for _ in range(bench.threads)]

    def client(number: int) -> None:
        try:
            run_calls(bench, number, tasks[number], answers)
        finally:
            left[0] -= 1
            if not left[0]:
                for thread in threads:
                    thread.give_up()

    clients = [partial(client, number) for number in range(len(tasks))]
    calls: list[Callable[[], None]] = [clients[number] for number in interleaving.order]
    calls += [thread.run for thread in threads]
    outcomes = run_stepped(
        calls,
        schedule,
        modules=interleaving.modules,
        granularity=interleaving.granularity,
        points_max=POINTS_MAX,
        trace=trace,
    )
    for outcome in outcomes:
        if isinstance(outcome.error, GuaranteeBroken | HarnessError | KeyboardInterrupt):
            raise outcome.error
        if outcome.error is not None:
            raise GuaranteeBroken(8, f"a task ends with {type(outcome.error).__name__}: {outcome.error}")
