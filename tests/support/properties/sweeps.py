"""Run every interleaving of a small scenario with one or two task switches.

A switch leaves a task at a place where it could continue.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario

__all__ = ["sweep"]


def sweep(
    scenario: Scenario,
    *,
    tracker: DirtyTracker,
    modules: Sequence[str] = (),
    order: Sequence[int] | None = None,
    switches: int = 1,
) -> Iterator[tuple[Interleaving, Ran]]:
    """Yield each interleaving with its result, the one without a switch first."""
    numbers = tuple(range(scenario.task_count)) if order is None else tuple(order)
    yield from _switched(Interleaving(scenario, numbers, (), tuple(modules)), 0, switches, tracker)


def _switched(
    before: Interleaving, start: int, switches: int, tracker: DirtyTracker
) -> Iterator[tuple[Interleaving, Ran]]:
    ran = run_interleaving(before, tracker=tracker)
    yield before, ran
    options = bytes(ran.trace.options)
    for at in range(start, len(options) if switches else 0):
        for other in range(1, options[at]):
            schedule = (*before.schedule, *(0,) * (at - len(before.schedule)), other)
            yield from _switched(replace(before, schedule=schedule), at + 1, switches - 1, tracker)
