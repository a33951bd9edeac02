"""Propose simplifications of a case, pass by pass, for shrinking.

Each pass yields candidates, the largest change first. The candidates of `SIMPLER` are simpler in themselves. A
candidate of `DETOURS` is not simpler, but may allow more operations to be left out.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from tornpage.model.message import record_bytes
from tornpage.model.operations import (
    AimFault,
    Call,
    Concurrent,
    Crash,
    Damage,
    Open,
    Operation,
    PullWhileDispatching,
    Put,
    PutBatch,
    Step,
)
from tornpage.model.payloads import message_of
from tornpage.properties.disk.journal import SECTORS
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.fault_language import simpler_rules

__all__ = ["DETOURS", "SIMPLER", "Pass"]


Item = TypeVar("Item")


def shorter(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Leave out runs of items, long ones first."""
    size = len(items)
    while size >= 1:
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
        size //= 2


def with_puts(case: Case, change: Callable[[Put], Put]) -> Case:
    """Change all single puts."""
    return replace(case, operations=tuple(change(o) if isinstance(o, Put) else o for o in case.operations))


def with_operation(case: Case, number: int, operation: Operation) -> Case:
    """Replace one operation by another."""
    return with_operations(case, number, (operation,))


def with_operations(case: Case, number: int, operations: Sequence[Operation], *, instead_of: int = 1) -> Case:
    """Replace `instead_of` operations from number `number` on."""
    kept, rest = case.operations[:number], case.operations[number + instead_of :]
    return replace(case, operations=(*kept, *operations, *rest))


def with_field(value: Any, name: str, content: object) -> Any:
    """Change one field."""
    return replace(value, **{name: content})


def smaller_losses(case: Case) -> Iterator[Case]:
    """Simplify crashes: a restart instead, then fewer losses and fewer torn sectors.

    Losses are tried in the order nothing, everything, fewer in-flight writes, older versions, fewer torn sectors.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash):
            if number < len(case.operations) - 1:
                yield with_operation(case, number, Open())
            for simpler in _smaller_loss(operation):
                yield with_operation(case, number, simpler)


def _smaller_loss(crash: Crash) -> Iterator[Crash]:
    if crash.fault_ends:
        yield replace(crash, fault_ends=False)
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
            for bit in range(SECTORS):
                if mask >> bit & 1 and mask != 1 << bit:
                    yield replace(crash, survived={**crash.survived, name: (first, second, mask & ~(1 << bit))})


def greater_losses(case: Case) -> Iterator[Case]:
    """Lose everything in one of the power losses.

    This is not simpler, but may need fewer operations.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash) and (operation.survived or operation.others == "kept"):
            yield with_operation(case, number, Crash(back=operation.back))


def nearer_crashes(case: Case) -> Iterator[Case]:
    """Crash at rest, or nearer to the answer of the operation.

    Parts of the distance are tried first, then every crash point.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Crash):
            eighths = (operation.back * part // 8 for part in (0, 4, 6, 2, 7, 1, 3, 5))
            for back in dict.fromkeys((*eighths, *range(operation.back))):
                if back < operation.back:
                    yield with_operation(case, number, replace(operation, back=back))


_BETWEEN_PAIRS = "\x02"
_FIELDS = tuple(field.name for field in fields(Put) if field.name not in ("op", "body_bytes"))


def merged_puts(case: Case) -> Iterator[Case]:
    """Merge adjacent puts into one larger put, long runs first.

    Later records keep their offsets.
    """
    for first, last in _runs(case):
        size = last - first
        while size > 1 or (size == 1 and isinstance(case.operations[first], PutBatch)):
            for start in range(first, last - size + 1, max(1, size // 2)):
                puts = [put for put in case.operations[start : start + size] if isinstance(put, Put | PutBatch)]
                for kept in dict.fromkeys((len(puts) - 1, 0)):
                    merged = _merged(puts, kept, trailer=case.settings.trailer)
                    yield with_operations(case, start, (merged,), instead_of=size)
            size //= 2


def _runs(case: Case) -> Iterator[tuple[int, int]]:
    """Yield the runs of adjacent puts and batches, as start and end."""
    for is_put, numbers in itertools.groupby(
        range(len(case.operations)), lambda number: isinstance(case.operations[number], Put | PutBatch)
    ):
        if is_put:
            run = list(numbers)
            yield run[0], run[-1] + 1


def _merged(puts: Sequence[Put | PutBatch], kept: int, *, trailer: bool) -> Put:
    """Return a put like number `kept` with the size of all of them."""
    singles = [[put] if isinstance(put, Put) else _singles(put) for put in puts]
    like = singles[kept][-1]
    all_bytes = sum(record_bytes(message_of(put), trailer=trailer) for one in singles for put in one)
    overhead_bytes = record_bytes(message_of(like), trailer=trailer) - like.body_bytes
    return replace(like, body_bytes=max(like.body_bytes, all_bytes - overhead_bytes))


def _singles(batch: PutBatch) -> list[Put]:
    """Return the messages of a batch as puts."""
    return [
        Put(
            batch.topic, batch.queue_id, member.body_bytes, properties=member.properties, sys_flag=batch.sys_flag,
            later=batch.later, advance_ms=batch.advance_ms,
        )
        for member in batch.members
    ] or [Put(batch.topic, batch.queue_id)]  # fmt: skip


def plainer_puts(case: Case) -> Iterator[Case]:
    """Set one field of all puts to its default, then all fields of one put."""
    plain = Put()
    for name in _FIELDS:
        yield with_puts(case, lambda put, name=name: with_field(put, name, getattr(plain, name)))  # type: ignore[misc]
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Put):
            yield with_operation(case, number, replace(plain, body_bytes=operation.body_bytes))


def simpler_puts(case: Case) -> Iterator[Case]:
    """Simplify one put after the other: default fields, fewer properties, then smaller bodies."""
    plain = Put()
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Put):
            for name in _FIELDS:
                if getattr(operation, name) != getattr(plain, name):
                    yield with_operation(case, number, with_field(operation, name, getattr(plain, name)))
            for pairs in shorter(operation.properties.split(_BETWEEN_PAIRS)):
                yield with_operation(case, number, replace(operation, properties=_BETWEEN_PAIRS.join(pairs)))
            for body_bytes in sorted({0, operation.body_bytes // 2, operation.body_bytes * 3 // 4}):
                if body_bytes < operation.body_bytes:
                    yield with_operation(case, number, replace(operation, body_bytes=body_bytes))


def simpler_batches(case: Case) -> Iterator[Case]:
    """Leave out messages of a batch, and set its other fields to their defaults."""
    plain = PutBatch()
    names = ("topic", "queue_id", "properties", "sys_flag", "born_v6", "store_v6", "later", "born_now", "advance_ms")
    for number, operation in enumerate(case.operations):
        if isinstance(operation, PutBatch):
            for members in shorter(operation.members):
                if members:
                    yield with_operation(case, number, replace(operation, members=members))
            for name in names:
                if getattr(operation, name) != getattr(plain, name):
                    yield with_operation(case, number, with_field(operation, name, getattr(plain, name)))
            for index, member in enumerate(operation.members):
                for field in fields(member):
                    if getattr(member, field.name) != field.default:
                        simpler = with_field(member, field.name, field.default)
                        members = (*operation.members[:index], simpler, *operation.members[index + 1 :])
                        yield with_operation(case, number, replace(operation, members=members))


def simpler_concurrency(case: Case) -> Iterator[Case]:
    """Simplify concurrent puts.

    Candidates run one producer after the other, use one switch, drop the clock jump, drop puts, drop switches, or have
    plainer messages.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Concurrent):
            yield with_operations(case, number, (*operation.first, *operation.second))
            for simpler in _simpler_meeting(operation):
                yield with_operation(case, number, simpler)


def _simpler_meeting(meeting: Concurrent) -> Iterator[Concurrent]:
    if sum(map(bool, meeting.schedule)) > 1:
        for before in range(_SWITCHES_MAX):
            yield replace(meeting, schedule=(*(0,) * before, 1))
    if meeting.jump_step or meeting.jump_ms:
        yield replace(meeting, jump_step=0, jump_ms=0)
    if meeting.commits:
        yield replace(meeting, commits=False)
    for name in ("first", "second", "schedule"):
        for fewer in shorter(getattr(meeting, name)):
            yield with_field(meeting, name, fewer)
    plain = Put(advance_ms=0)
    for name in ("first", "second"):
        producer = getattr(meeting, name)
        for index, put in enumerate(producer):
            for field in ("body_bytes", "properties", "topic"):
                if getattr(put, field) != getattr(plain, field):
                    simpler = with_field(put, field, getattr(plain, field))
                    yield with_field(meeting, name, (*producer[:index], simpler, *producer[index + 1 :]))


_SMALLER_FILES = (1024, 2048, 4096, 8192)
_SETTINGS_KEPT = ("file_bytes", "record_bytes_max", "disk", "bug", "target", "answer_seconds")
_CAPACITIES = {"queue_units": (1, 2, 4), "index_entries": (2, 3, 5, 10), "light_queues_max": (1,), "files_max": (2,)}


def simpler_settings(case: Case) -> Iterator[Case]:
    """Shrink log files, with smaller or unchanged messages, then reset each other setting.

    A foreign store has its own settings and none of these.
    """
    if case.settings.target:
        return
    for file_bytes in _SMALLER_FILES:
        if file_bytes < case.settings.file_bytes:
            smaller = replace(case, settings=replace(case.settings, file_bytes=file_bytes))
            ratio = file_bytes / case.settings.file_bytes
            yield with_puts(smaller, lambda put, r=ratio: _whole_scaled(put, case.settings, r))  # type: ignore[misc]
            yield with_puts(smaller, lambda put, r=ratio: replace(put, body_bytes=int(put.body_bytes * r)))  # type: ignore[misc]
            yield smaller
    default = Settings()
    for field in fields(Settings):
        usual = getattr(default, field.name)
        if field.name not in _SETTINGS_KEPT and getattr(case.settings, field.name) != usual:
            yield replace(case, settings=with_field(case.settings, field.name, usual))


def _whole_scaled(put: Put, settings: Settings, ratio: float) -> Put:
    """Scale the whole record instead of its body, so that as many fit into a file as before."""
    overhead_bytes = record_bytes(message_of(put), trailer=settings.trailer) - put.body_bytes
    scaled_bytes = round((put.body_bytes + overhead_bytes) * ratio) - overhead_bytes
    return replace(put, body_bytes=min(put.body_bytes, max(0, scaled_bytes)))


def smaller_capacities(case: Case) -> Iterator[Case]:
    """Make files full sooner. This is not simpler, but may need fewer operations."""
    if case.settings.target:
        return
    for name, sizes in _CAPACITIES.items():
        for size in sizes:
            if size < getattr(case.settings, name):
                yield replace(case, settings=with_field(case.settings, name, size))


Pass = Callable[[Case], Iterator[Case]]

_SWITCHES_MAX = 100
"""The number of yield points at which one switch is tried in place of several."""
_NEARER_MAX = 8
"""The number of crash points by which a crash moves closer when an operation before it is left out."""
_OF_THEIR_OWN = (AimFault, Call, Put, PutBatch, Concurrent, PullWhileDispatching, Crash, Step)
_CALL_BYTES = 8
"""The length of a simple value."""
_NOT_SIMPLIFIED = ("op", "file", "harm", "kind")


def fewer_operations(case: Case) -> Iterator[Case]:
    """Leave out runs of operations, long ones first."""
    for kept in shorter(case.operations):
        yield replace(case, operations=kept)


def fewer_before_a_crash(case: Case) -> Iterator[Case]:
    """Leave out operations before a crash inside an operation, and move the crash closer.

    With fewer operations before it, the last one has fewer crash points.
    """
    last = case.operations[-1] if case.operations else None
    if isinstance(last, Crash) and last.back > 1:
        before = case.operations[:-1]
        for kept in shorter(before):
            in_proportion = last.back * len(kept) // len(before)
            near = (last.back - less for less in range(1, _NEARER_MAX))
            for back in sorted({max(1, back) for back in (in_proportion, *near)}, reverse=True):
                yield replace(case, operations=(*kept, replace(last, back=back)))


def simpler_calls(case: Case) -> Iterator[Case]:
    """Simplify calls of other shapes.

    Candidates have one part instead of all, fewer parts, smaller values, a smaller number, or fewer names.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Call):
            yield from (with_operation(case, number, part) for part in operation.parts)
            for parts in shorter(operation.parts):
                if parts:
                    yield with_operation(case, number, replace(operation, parts=parts))
            for index, part in enumerate(operation.parts):
                for simpler in _simpler_call(part):
                    parts = (*operation.parts[:index], simpler, *operation.parts[index + 1 :])
                    yield with_operation(case, number, replace(operation, parts=parts))
            yield from (with_operation(case, number, simpler) for simpler in _simpler_call(operation))
    names = sorted({each.name for each in case.operations if isinstance(each, Call) and each.name})
    for name in names[1:]:
        renamed = [
            replace(each, name=names[0]) if isinstance(each, Call) and each.name == name else each
            for each in case.operations
        ]
        yield replace(case, operations=tuple(renamed))


def _simpler_call(call: Call) -> Iterator[Call]:
    for size_bytes in sorted({min(_CALL_BYTES, call.size_bytes), call.size_bytes // 2}):
        if _CALL_BYTES <= size_bytes < call.size_bytes:
            yield replace(call, size_bytes=size_bytes)
    yield from (replace(call, number=number) for number in sorted({0, 1, call.number // 2}) if number < call.number)


def simpler_steps(case: Case) -> Iterator[Case]:
    """Reduce the time before a step to zero or a half, and let group commit take the step."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Step):
            if operation.service != Step().service:
                yield with_operation(case, number, replace(operation, service=Step().service))
            for after_ms in sorted({0, operation.after_ms // 2}):
                if after_ms < operation.after_ms:
                    yield with_operation(case, number, replace(operation, after_ms=after_ms))


def plainer_operations(case: Case) -> Iterator[Case]:
    """Reset fields of reads, queries, corruptions and schedules to defaults, or halve numbers."""
    for number, operation in enumerate(case.operations):
        if not isinstance(operation, _OF_THEIR_OWN):
            for field in fields(operation):
                found = getattr(operation, field.name)
                if field.name not in _NOT_SIMPLIFIED and found != field.default:
                    yield with_operation(case, number, with_field(operation, field.name, field.default))
                    if isinstance(found, int) and found > 1:
                        yield with_operation(case, number, with_field(operation, field.name, found // 2))


def plainer_damage(case: Case) -> Iterator[Case]:
    """Flip a bit of the first record instead of damaging pages and files.

    Such damage needs more puts to matter.
    """
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Damage) and operation.kind != "flip":
            for record in sorted({0, operation.record}):
                yield with_operation(case, number, replace(operation, kind="flip", record=record, amount=0))


def simpler_faults(case: Case) -> Iterator[Case]:
    """Simplify I/O fault rules."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, AimFault):
            for simpler in simpler_rules(operation):
                yield with_operation(case, number, simpler)


def simpler_polling(case: Case) -> Iterator[Case]:
    """Use one switch between consumer and dispatch, or fewer switches."""
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
    simpler_calls,
    simpler_puts,
)
"""Each candidate is one removal or one simplification. A case from which none of them fails in the same way is
1-minimal."""

DETOURS: tuple[Pass, ...] = (greater_losses, smaller_capacities)
"""Changes that do not make a case simpler, but may allow fewer operations."""
