"""Perturb minimal reproducers of planted bugs, and run them on the store without a bug.

A minimal reproducer leads to a place where a guarantee is hard to keep. Cases one or two changes away are hard too: the
store must hold there, and the tester must not take a right answer for a wrong one.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tornpage.model.operations import Crash, Operation
from tornpage.properties.planted.registry import REPRODUCERS
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_stories import draw_fault_rule

__all__ = ["perturbed_reproducer"]

Change = Callable[[list[Operation], Random], list[Operation]]

_CASES = tuple(REPRODUCERS.values())
_BY_KIND: dict[type, list[Operation]] = {}
for _case in _CASES:
    for _operation in _case.operations:
        _BY_KIND.setdefault(type(_operation), []).append(_operation)
_KINDS = tuple(_BY_KIND)
_SETTINGS_TO_MIX = (
    "sync_flush", "trailer", "disk", "role", "pool_buffers", "files_ahead", "queue_units", "queue_ext", "bit_maps",
    "log_paths", "multi_dispatch", "light_queues", "light_queues_max", "index", "index_slots", "index_entries",
    "least_pages", "delay_levels", "java_delays", "pending_copies",
)  # fmt: skip
_CHANGES_MAX = 3
_BACK_MAX = 24
"""Crash points before an answer at which a crash may fall; an operation with fewer uses what it has."""


def perturbed_reproducer(rng: Random) -> Case:
    """Return a reproducer without its bug and with one to three changes.

    A third of the cases also take two settings from another reproducer.
    """
    case = rng.choice(_CASES)
    operations = list(case.operations)
    for _ in range(rng.randint(1, _CHANGES_MAX)):
        operations = rng.choice(_CHANGES)(operations, rng)
    settings = replace(case.settings, bug="")
    return Case(_mixed(settings, rng) if rng.random() < 1 / 3 else settings, tuple(operations))


def _mixed(settings: Settings, rng: Random) -> Settings:
    """Return the settings with two values taken from another reproducer."""
    other = rng.choice(_CASES).settings
    return replace(settings, **{name: getattr(other, name) for name in rng.sample(_SETTINGS_TO_MIX, 2)})


def _with_another(operations: list[Operation], rng: Random) -> list[Operation]:
    """Insert an operation, drawing its kind first.

    Most reproducers put and few corrupt anything.
    """
    place = rng.randint(0, len(operations))
    return [*operations[:place], rng.choice(_BY_KIND[rng.choice(_KINDS)]), *operations[place:]]


def _with_one_again(operations: list[Operation], rng: Random) -> list[Operation]:
    if not operations:
        return operations
    place = rng.randint(0, len(operations))
    return [*operations[:place], rng.choice(operations), *operations[place:]]


def _without_one(operations: list[Operation], rng: Random) -> list[Operation]:
    left_out = rng.randrange(len(operations)) if operations else 0
    return [*operations[:left_out], *operations[left_out + 1 :]]


def _ending_as_another(operations: list[Operation], rng: Random) -> list[Operation]:
    other = rng.choice(_CASES).operations
    return [*operations[: rng.randint(0, len(operations))], *other[rng.randrange(len(other)) :]]


def _with_a_fault(operations: list[Operation], rng: Random) -> list[Operation]:
    """Insert an I/O fault rule."""
    place = rng.randint(0, len(operations))
    return [*operations[:place], draw_fault_rule(rng.choice(tuple(EFFECTS)), rng), *operations[place:]]


def _crashing_elsewhere(operations: list[Operation], rng: Random) -> list[Operation]:
    """Move each crash, and keep its surviving in-flight writes, or all, or none."""
    return [_moved(each, rng) if isinstance(each, Crash) else each for each in operations]


def _moved(crash: Crash, rng: Random) -> Crash:
    survived = crash.survived if rng.random() < 1 / 2 else {}
    return replace(crash, back=rng.randint(0, _BACK_MAX), others=rng.choice(("kept", "lost")), survived=survived)


_CHANGES: tuple[Change, ...] = (
    _with_another, _with_another, _with_another, _with_one_again, _without_one, _ending_as_another,
    _crashing_elsewhere, _with_a_fault, _with_a_fault,
)  # fmt: skip
