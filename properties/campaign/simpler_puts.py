"""Simpler puts: what a shrinker tries with the messages of a case, the boldest first."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from model.message import record_bytes
from properties.campaign.variations import shorter, with_field, with_operation, with_operations, with_puts
from properties.program.bodies import message_of
from properties.program.case import Case, Concurrent, Put, PutBatch

__all__ = ["merged_puts", "plainer_puts", "simpler_batches", "simpler_concurrency", "simpler_puts"]

_BETWEEN_PAIRS = "\x02"
_FIELDS = tuple(field.name for field in fields(Put) if field.name not in ("op", "body_bytes"))
_SWITCHES_MAX = 100
"""At how many yield points one switch is tried in place of several."""


def merged_puts(case: Case) -> Iterator[Case]:
    """Put one larger message instead of several neighbours, long runs first, so that what follows stays where it is."""
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
    """Yield where puts and batches follow each other: from, until."""
    for is_put, numbers in itertools.groupby(
        range(len(case.operations)), lambda number: isinstance(case.operations[number], Put | PutBatch)
    ):
        if is_put:
            run = list(numbers)
            yield run[0], run[-1] + 1


def _merged(puts: Sequence[Put | PutBatch], kept: int, *, trailer: bool) -> Put:
    """Return a put like number `kept`, of the size of all of them."""
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
    """Defaults for a field of all puts at once, then of all fields of one."""
    plain = Put()
    for name in _FIELDS:
        yield with_puts(case, lambda put, name=name: with_field(put, name, getattr(plain, name)))  # type: ignore[misc]
    for number, operation in enumerate(case.operations):
        if isinstance(operation, Put):
            yield with_operation(case, number, replace(plain, body_bytes=operation.body_bytes))


def simpler_puts(case: Case) -> Iterator[Case]:
    """One put after the other: default fields, fewer properties, then smaller bodies."""
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
    """Fewer messages in a batch, and defaults for what it has besides."""
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
    """One producer after the other, one switch, no jump, fewer puts, fewer switches, plainer messages."""
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
