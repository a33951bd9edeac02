"""Run a case again, and make it small.

A failure is told from others by its contract number and its sentence without the numbers in it; shrinking never
wanders from one to another.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from model.message import record_bytes
from properties.bodies import message_of
from properties.case import Case, Crash, Operation, Put, Settings
from properties.recorder.dirty import DirtyTracker
from properties.trial import Trial
from properties.verdict import GuaranteeBroken

__all__ = ["Failure", "replay", "shrink", "signature"]

_SMALLER_FILES = (1024, 4096, 8192)


@dataclass(frozen=True, slots=True)
class Failure:
    """One broken promise and the case that shows it."""

    case: Case
    broken: GuaranteeBroken


def replay(case: Case, *, tracker: DirtyTracker) -> Failure | None:
    """Carry a case out; return the failure with the operations up to it, or None when every promise holds."""
    trial: Trial | None = None
    try:
        trial = Trial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
    except GuaranteeBroken as broken:
        done = tuple(trial.performed) if trial is not None else ()
        return Failure(Case(case.settings, done), broken)
    return None


def signature(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what makes two failures the same: the promise, and the sentence without numbers and paths."""
    return broken.contract, re.sub(r"/\S+|\d+", "", broken.sentence)


def shrink(failure: Failure, *, tracker: DirtyTracker, tries_max: int = 2_000) -> Failure:
    """Return the smallest case found that fails in the same way; cost: up to `tries_max` replays."""
    wanted = signature(failure.broken)
    tries = 0

    def failing(case: Case) -> Failure | None:
        nonlocal tries
        tries += 1
        again = replay(case, tracker=tracker)
        return again if again is not None and signature(again.broken) == wanted else None

    best = failing(failure.case) or failure
    improved = True
    while improved and tries < tries_max:
        improved = False
        for simpler in (_fewer_operations, _merged_puts, _simpler_settings, _simpler_crashes, _simpler_puts):
            smaller = _reduce(best, simpler, failing, lambda: tries < tries_max)
            improved |= smaller is not best
            best = smaller
    return best


def _reduce(
    best: Failure,
    simpler: Callable[[Case], Iterator[Case]],
    failing: Callable[[Case], Failure | None],
    may_go_on: Callable[[], bool],
) -> Failure:
    """Take the first candidate that still fails, and start over from it, until none does."""
    found = True
    while found and may_go_on():
        found = False
        for candidate in simpler(best.case):
            smaller = failing(candidate)
            if smaller is not None and smaller.case != best.case:
                best, found = smaller, True
                break
            if not may_go_on():
                break
    return best


def _fewer_operations(case: Case) -> Iterator[Case]:
    """Leave out runs of operations, long ones first."""
    length = len(case.operations)
    size = length
    while size >= 1:
        for start in range(0, length - size + 1, max(1, size // 2)):
            kept = case.operations[:start] + case.operations[start + size :]
            yield replace(case, operations=kept)
        size //= 2


def _merged_puts(case: Case) -> Iterator[Case]:
    """Put one larger message instead of two neighbours, so that what follows stays where it is."""
    for number, (first, second) in enumerate(itertools.pairwise(case.operations)):
        if isinstance(first, Put) and isinstance(second, Put):
            overhead_bytes = record_bytes(message_of(first), trailer=case.settings.trailer) - first.body_bytes
            merged = replace(second, body_bytes=first.body_bytes + overhead_bytes + second.body_bytes)
            yield replace(case, operations=(*case.operations[:number], merged, *case.operations[number + 2 :]))


def _simpler_settings(case: Case) -> Iterator[Case]:
    for file_bytes in _SMALLER_FILES:
        if file_bytes < case.settings.file_bytes:
            smaller = _with(case.settings, "file_bytes", file_bytes)
            ratio = file_bytes / case.settings.file_bytes
            yield _with_puts(
                replace(case, settings=smaller),
                lambda put, r=ratio: replace(put, body_bytes=int(put.body_bytes * r)),  # type: ignore[misc]
            )
            yield replace(case, settings=smaller)
    default = Settings()
    for name in ("trailer", "sync_flush", "files_max"):
        if getattr(case.settings, name) != getattr(default, name):
            yield replace(case, settings=_with(case.settings, name, getattr(default, name)))


def _simpler_crashes(case: Case) -> Iterator[Case]:
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash):
            for simpler in _simpler_crash(operation):
                yield _with_operation(case, number, simpler)


def _simpler_crash(crash: Crash) -> Iterator[Crash]:
    """Fewer survivors, no tears, older versions, nearer to the answer."""
    if crash.kill:
        yield replace(crash, kill=False)
    if crash.survived:
        yield replace(crash, survived={})
    for name, choice in crash.survived.items():
        yield replace(crash, survived={k: v for k, v in crash.survived.items() if k != name})
        if isinstance(choice, tuple):
            for version in choice[:2]:
                yield replace(crash, survived={**crash.survived, name: version})
            first, second, mask = choice
            for bit in range(8):
                if mask >> bit & 1 and mask != 1 << bit:
                    yield replace(crash, survived={**crash.survived, name: (first, second, mask & ~(1 << bit))})
    for back in range(crash.back):
        yield replace(crash, back=back)


def _simpler_puts(case: Case) -> Iterator[Case]:
    """All puts at once, then one by one: default fields, then smaller bodies."""
    plain = Put()
    for field in fields(Put):
        if field.name not in ("op", "body_bytes"):
            yield _with_puts(case, lambda put, name=field.name: _with(put, name, getattr(plain, name)))  # type: ignore[misc]
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Put):
            for field in fields(Put):
                if field.name not in ("op", "body_bytes") and getattr(operation, field.name) != getattr(
                    plain, field.name
                ):
                    yield _with_operation(case, number, _with(operation, field.name, getattr(plain, field.name)))
            for body_bytes in sorted({0, operation.body_bytes // 2, operation.body_bytes * 3 // 4}):
                if body_bytes < operation.body_bytes:
                    yield _with_operation(case, number, replace(operation, body_bytes=body_bytes))


def _with_puts(case: Case, change: Callable[[Put], Put]) -> Case:
    return replace(case, operations=tuple(change(o) if isinstance(o, Put) else o for o in case.operations))


def _with_operation(case: Case, number: int, operation: Operation) -> Case:
    return replace(case, operations=(*case.operations[:number], operation, *case.operations[number + 1 :]))


def _with(value: Any, name: str, content: object) -> Any:
    return replace(value, **{name: content})
