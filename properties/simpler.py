"""Simpler cases: what a shrinker tries, pass by pass; each yields candidates, the boldest first."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from model.message import record_bytes
from properties.bodies import message_of
from properties.case import (
    Case,
    Clean,
    ClockStep,
    CommitOffset,
    Concurrent,
    Crash,
    DelayOffsetsAre,
    DeleteTopics,
    GetMessage,
    HarmDerived,
    HoldBuffer,
    OffsetByTime,
    Operation,
    PullHeld,
    PullWhileDispatching,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    Settings,
    Step,
)

__all__ = ["SIMPLER"]

Item = TypeVar("Item")

_SMALLER_FILES = (1024, 4096, 8192)
_SWITCHES_MAX = 100
"""At how many yield points one switch is tried in place of several."""


def _fewer_operations(case: Case) -> Iterator[Case]:
    """Leave out runs of operations, long ones first."""
    for kept in _shorter(case.operations):
        yield replace(case, operations=kept)


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
    for name in (
        "trailer",
        "sync_flush",
        "files_max",
        "role",
        "multi_dispatch",
        "light_queues",
        "light_queues_max",
        "delay_levels",
        "fast_fail",
        "pool_buffers",
        "files_ahead",
        "least_pages",
        "log_paths",
        "queue_units",
        "queue_ext",
        "index",
        "index_slots",
        "index_entries",
        "java_delays",
    ):
        if getattr(case.settings, name) != getattr(default, name):
            yield replace(case, settings=_with(case.settings, name, getattr(default, name)))


def _simpler_steps(case: Case) -> Iterator[Case]:
    """No time passes before a step, or less, and group commit takes it."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Step):
            if operation.service != Step().service:
                yield _with_operation(case, number, replace(operation, service=Step().service))
            for after_ms in sorted({0, operation.after_ms // 2}):
                if after_ms < operation.after_ms:
                    yield _with_operation(case, number, replace(operation, after_ms=after_ms))


def _simpler_reads(case: Case) -> Iterator[Case]:
    """Defaults for what is read, and for what is harmed; smaller numbers."""
    for number, operation in enumerate(case.operations):
        if isinstance(
            operation,
            GetMessage
            | QueryKey
            | OffsetByTime
            | HarmDerived
            | Clean
            | DeleteTopics
            | HoldBuffer
            | PullHeld
            | ClockStep
            | DelayOffsetsAre
            | CommitOffset
            | QueryOffsets,
        ):
            for field in fields(operation):
                found = getattr(operation, field.name)
                if field.name not in ("op", "file", "harm") and found != field.default:
                    yield _with_operation(case, number, _with(operation, field.name, field.default))
                    if isinstance(found, int) and found > 1:
                        yield _with_operation(case, number, _with(operation, field.name, found // 2))


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


def _simpler_batches(case: Case) -> Iterator[Case]:
    """Fewer messages in a batch, and defaults for what it has besides."""
    plain = PutBatch()
    for number, operation in enumerate(case.operations):
        if isinstance(operation, PutBatch):
            for members in _shorter(operation.members):
                if members:
                    yield _with_operation(case, number, replace(operation, members=members))
            for name in ("topic", "queue_id", "properties", "sys_flag", "born_v6", "store_v6", "later", "advance_ms"):
                if getattr(operation, name) != getattr(plain, name):
                    yield _with_operation(case, number, _with(operation, name, getattr(plain, name)))
            for index, member in enumerate(operation.members):
                for field in fields(member):
                    if getattr(member, field.name) != field.default:
                        simpler = _with(member, field.name, field.default)
                        members = (*operation.members[:index], simpler, *operation.members[index + 1 :])
                        yield _with_operation(case, number, replace(operation, members=members))


def _simpler_concurrency(case: Case) -> Iterator[Case]:
    """One producer after the other, one switch, no jump, fewer puts, fewer switches, plainer messages."""
    plain = Put(advance_ms=0)
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Concurrent):
            puts = (*operation.first, *operation.second)
            yield replace(case, operations=(*case.operations[:number], *puts, *case.operations[number + 1 :]))
            if sum(map(bool, operation.schedule)) > 1:
                for before in range(_SWITCHES_MAX):
                    yield _with_operation(case, number, replace(operation, schedule=(*(0,) * before, 1)))
            if operation.jump_step or operation.jump_ms:
                yield _with_operation(case, number, replace(operation, jump_step=0, jump_ms=0))
            if operation.commits:
                yield _with_operation(case, number, replace(operation, commits=False))
            for name in ("first", "second", "schedule"):
                for shorter in _shorter(getattr(operation, name)):
                    yield _with_operation(case, number, _with(operation, name, shorter))
            for name in ("first", "second"):
                producer = getattr(operation, name)
                for index, put in enumerate(producer):
                    for field in ("body_bytes", "properties", "topic"):
                        if getattr(put, field) != getattr(plain, field):
                            simpler = (
                                *producer[:index],
                                _with(put, field, getattr(plain, field)),
                                *producer[index + 1 :],
                            )
                            yield _with_operation(case, number, _with(operation, name, simpler))


def _simpler_polling(case: Case) -> Iterator[Case]:
    """One switch between consumer and dispatch, or fewer."""
    for number, operation in enumerate(case.operations):
        if isinstance(operation, PullWhileDispatching):
            if sum(map(bool, operation.schedule)) > 1:
                for before in range(_SWITCHES_MAX):
                    yield _with_operation(case, number, replace(operation, schedule=(*(0,) * before, 1)))
            for shorter in _shorter(operation.schedule):
                yield _with_operation(case, number, replace(operation, schedule=shorter))


def _shorter(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Leave out runs of items, long ones first."""
    size = len(items)
    while size >= 1:
        for start in range(0, len(items) - size + 1, max(1, size // 2)):
            yield (*items[:start], *items[start + size :])
        size //= 2


def _with_puts(case: Case, change: Callable[[Put], Put]) -> Case:
    return replace(case, operations=tuple(change(o) if isinstance(o, Put) else o for o in case.operations))


def _with_operation(case: Case, number: int, operation: Operation) -> Case:
    return replace(case, operations=(*case.operations[:number], operation, *case.operations[number + 1 :]))


def _with(value: Any, name: str, content: object) -> Any:
    return replace(value, **{name: content})


SIMPLER: tuple[Callable[[Case], Iterator[Case]], ...] = (
    _fewer_operations,
    _merged_puts,
    _simpler_settings,
    _simpler_crashes,
    _simpler_steps,
    _simpler_reads,
    _simpler_concurrency,
    _simpler_polling,
    _simpler_batches,
    _simpler_puts,
)
