"""Simpler cases: what a shrinker tries, pass by pass; each yields candidates, the boldest first."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from properties.campaign.simpler_crashes import greater_losses, nearer_crashes, smaller_losses
from properties.campaign.simpler_puts import (
    merged_puts,
    plainer_puts,
    simpler_batches,
    simpler_concurrency,
    simpler_puts,
)
from properties.campaign.simpler_settings import simpler_settings, smaller_capacities
from properties.campaign.variations import shorter, with_field, with_operation
from properties.program.case import AimFault, Case, Concurrent, Crash, Damage, PullWhileDispatching, Put, PutBatch, Step
from properties.program.fault_operations import simpler_aims

__all__ = ["DETOURS", "SIMPLER", "Pass"]

Pass = Callable[[Case], Iterator[Case]]

_SWITCHES_MAX = 100
"""At how many yield points one switch is tried in place of several."""
_NEARER_MAX = 8
"""By how many places a crash comes nearer when an operation before it is left out."""
_OF_THEIR_OWN = (AimFault, Put, PutBatch, Concurrent, PullWhileDispatching, Crash, Step)
_NOT_SIMPLIFIED = ("op", "file", "harm", "kind")


def fewer_operations(case: Case) -> Iterator[Case]:
    """Leave out runs of operations, long ones first."""
    for kept in shorter(case.operations):
        yield replace(case, operations=kept)


def fewer_before_a_crash(case: Case) -> Iterator[Case]:
    """Leave out operations before a crash inside a verb, which has fewer places to crash at then."""
    last = case.operations[-1] if case.operations else None
    if isinstance(last, Crash) and last.back > 1:
        before = case.operations[:-1]
        for kept in shorter(before):
            in_proportion = last.back * len(kept) // len(before)
            near = (last.back - less for less in range(1, _NEARER_MAX))
            for back in sorted({max(1, back) for back in (in_proportion, *near)}, reverse=True):
                yield replace(case, operations=(*kept, replace(last, back=back)))


def simpler_steps(case: Case) -> Iterator[Case]:
    """No time passes before a step, or less, and group commit takes it."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Step):
            if operation.service != Step().service:
                yield with_operation(case, number, replace(operation, service=Step().service))
            for after_ms in sorted({0, operation.after_ms // 2}):
                if after_ms < operation.after_ms:
                    yield with_operation(case, number, replace(operation, after_ms=after_ms))


def plainer_operations(case: Case) -> Iterator[Case]:
    """Defaults for what is read, asked, harmed or scripted; smaller numbers."""
    for number, operation in enumerate(case.operations):
        if not isinstance(operation, _OF_THEIR_OWN):
            for field in fields(operation):
                found = getattr(operation, field.name)
                if field.name not in _NOT_SIMPLIFIED and found != field.default:
                    yield with_operation(case, number, with_field(operation, field.name, field.default))
                    if isinstance(found, int) and found > 1:
                        yield with_operation(case, number, with_field(operation, field.name, found // 2))


def plainer_damage(case: Case) -> Iterator[Case]:
    """A bit of the first record flipped in place of damage to pages and files, which takes more puts to matter."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Damage) and operation.kind != "flip":
            for record in sorted({0, operation.record}):
                yield with_operation(case, number, replace(operation, kind="flip", record=record, amount=0))


def simpler_faults(case: Case) -> Iterator[Case]:
    """Faults that are aimed more plainly."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, AimFault):
            for simpler in simpler_aims(operation):
                yield with_operation(case, number, simpler)


def simpler_polling(case: Case) -> Iterator[Case]:
    """One switch between consumer and dispatch, or fewer."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, PullWhileDispatching):
            if sum(map(bool, operation.schedule)) > 1:
                for before in range(_SWITCHES_MAX):
                    yield with_operation(case, number, replace(operation, schedule=(*(0,) * before, 1)))
            for fewer in shorter(operation.schedule):
                yield with_operation(case, number, replace(operation, schedule=fewer))


SIMPLER: tuple[Pass, ...] = (
    fewer_operations,
    smaller_losses,
    nearer_crashes,
    fewer_operations,
    fewer_before_a_crash,
    plainer_puts,
    simpler_settings,
    merged_puts,
    simpler_steps,
    plainer_operations,
    plainer_damage,
    simpler_faults,
    simpler_concurrency,
    simpler_polling,
    simpler_batches,
    simpler_puts,
)
"""Each candidate is one removal or one simplification; a case from which none of them fails in the same way is
1-minimal."""

DETOURS: tuple[Pass, ...] = (greater_losses, smaller_capacities)
"""Changes that make a case no simpler, but behind which fewer operations may do."""
