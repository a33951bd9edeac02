"""Every interleaving of a small scenario that leaves one task, or one and then another, at a place it could go on."""

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
    """Yield each with what became of it, the one without a switch first."""
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
