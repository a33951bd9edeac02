"""Simpler crashes: what a shrinker tries with the disasters of a case, the boldest first."""

from collections.abc import Iterator
from dataclasses import replace

from properties.campaign.variations import shorter, with_operation
from properties.program.case import Case, Crash, Open

__all__ = ["greater_losses", "nearer_crashes", "smaller_losses"]

_SECTORS = 8


def smaller_losses(case: Case) -> Iterator[Case]:
    """Restart in place of a crash, lose nothing, everything, fewer facts; older versions, fewer torn sectors."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash):
            if number < len(case.operations) - 1:
                yield with_operation(case, number, Open())
            for simpler in _smaller_loss(operation):
                yield with_operation(case, number, simpler)


def _smaller_loss(crash: Crash) -> Iterator[Crash]:
    if crash.later_ms:
        yield replace(crash, later_ms=0)
        yield replace(crash, later_ms=crash.later_ms // 2)
    if crash.kill:
        yield replace(crash, kill=False, others="kept")
        yield replace(crash, kill=False)
        return
    if crash.survived or crash.others == "kept":
        yield replace(crash, survived={}, others="lost")
    if crash.survived or crash.others == "lost":
        yield replace(crash, survived={}, others="kept")
    for items in shorter(tuple(crash.survived.items())):
        yield replace(crash, survived=dict(items))
    for name, choice in crash.survived.items():
        if choice:
            yield replace(crash, survived={**crash.survived, name: 0})
        if isinstance(choice, tuple):
            first, second, mask = choice
            for version in (first, second):
                yield replace(crash, survived={**crash.survived, name: version})
            for bit in range(_SECTORS):
                if mask >> bit & 1 and mask != 1 << bit:
                    yield replace(crash, survived={**crash.survived, name: (first, second, mask & ~(1 << bit))})


def greater_losses(case: Case) -> Iterator[Case]:
    """Lose everything in one of the power losses: no simpler for itself, but fewer operations may do then."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash) and (operation.survived or operation.others == "kept"):
            yield with_operation(case, number, Crash(back=operation.back))


def nearer_crashes(case: Case) -> Iterator[Case]:
    """Crash at rest, or nearer to the answer of the verb: parts of the way, then every place."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash):
            eighths = (operation.back * part // 8 for part in (0, 4, 6, 2, 7, 1, 3, 5))
            for back in dict.fromkeys((*eighths, *range(operation.back))):
                if back < operation.back:
                    yield with_operation(case, number, replace(operation, back=back))
