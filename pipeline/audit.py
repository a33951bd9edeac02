"""Audit stores: does every record of the log have its unit in the right queue, and does every unit mean its record?

Two ways with one answer. `audit_store` reads a store in this process and compares in memory: for small stores and
where there is no Spark. `audit` lets Spark read the files of many stores in tasks and join log and queues; only the
outline (`pipeline.stores`) and what does not fit come back to the driver. Both share the reading of files and the
wording of findings (`pipeline.suspicions`), not the comparison.

Nothing is written, locked or recovered. A store at work is read like any other; what moves is left open.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from pipeline.findings import AuditFinding, verdict_of
from pipeline.sources import LogRow, QueueRow, commit_log, consume_queue, log_rows, queue_rows
from pipeline.stores import NEVER, QueueKey, StoreFacts, StorePlan, facts_of, plan_store
from pipeline.suspicions import Suspicion, holes, judged
from properties.decode.findings import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StoreAudit", "audit", "audit_store"]

StorePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class StoreAudit:
    """What the audit of one store found: findings by file and place, and counts."""

    store: str
    findings: tuple[AuditFinding, ...]
    figures: dict[str, int]

    @property
    def verdict(self) -> Verdict:
        """Return broken, unknown or holds."""
        return verdict_of(self.findings)


class _Expected(NamedTuple):
    """A unit that the log asks for."""

    queue_offset: int
    offset: int
    size: int
    tags_code: int
    is_delayed: bool
    store_timestamp: int
    is_light: bool


def audit_store(store_dir: StorePath, *, file_bytes: int | None = None) -> StoreAudit:
    """Audit one store in this process. Cost: memory for one row per record and unit.

    `file_bytes` is the configured size of a log file. Raises properties.inspection.InspectError.
    """
    plan = plan_store(0, store_dir, file_bytes=file_bytes)
    log = list(chain.from_iterable(map(log_rows, plan.log_parts)))
    queues = list(chain.from_iterable(map(queue_rows, plan.queue_parts)))
    facts = facts_of(plan, (row for row in log if row.kind != "record"), queues)
    suspicions = _grouped(_compared(plan, facts, log, queues)) if plan.has_queues else []
    return _audited(plan, facts, queues, suspicions)


def audit(spark: SparkSession, store_dirs: Sequence[StorePath], *, file_bytes: int | None = None) -> list[StoreAudit]:
    """Audit stores with Spark; the answers are in the order of `store_dirs` and equal to those of `audit_store`.

    The directories must be visible to the driver and to all workers. Raises properties.inspection.InspectError.
    """
    from pyspark import StorageLevel

    from pipeline.joins import suspicions_of

    plans = [plan_store(number, path, file_bytes=file_bytes) for number, path in enumerate(store_dirs)]
    log = commit_log(spark, [part for plan in plans for part in plan.log_parts]).persist(StorageLevel.DISK_ONLY)
    queues = consume_queue(spark, [part for plan in plans for part in plan.queue_parts]).persist(StorageLevel.DISK_ONLY)
    try:
        log_outline = _by_store(map(LogRow._make, log.filter("kind != 'record'").collect()))
        queue_outline = _by_store(map(QueueRow._make, queues.filter("kind != 'unit'").collect()))
        facts = [facts_of(plan, log_outline[plan.number], queue_outline[plan.number]) for plan in plans]
        suspicions: dict[int, list[Suspicion]] = defaultdict(list)
        if any(plan.has_queues for plan in plans):
            for row in suspicions_of(spark, log, queues, plans, facts).collect():
                suspicions[row["store"]].append(Suspicion(**row.asDict()))
    finally:
        log.unpersist()
        queues.unpersist()
    return [_audited(plan, facts[plan.number], queue_outline[plan.number], suspicions[plan.number]) for plan in plans]


def _by_store(rows: Iterable[LogRow] | Iterable[QueueRow]) -> dict[int, list]:  # type: ignore[type-arg]
    found = defaultdict(list)
    for row in rows:
        found[row.store].append(row)
    return found


def _audited(
    plan: StorePlan, facts: StoreFacts, queues: Iterable[QueueRow], suspicions: Iterable[Suspicion]
) -> StoreAudit:
    findings = [*plan.findings, *facts.findings]
    findings += judged(plan, facts, [*holes(plan, facts, queues), *suspicions])
    findings.sort(key=lambda finding: finding.order)
    severities = Counter(finding.severity for finding in findings)
    counts = {"damages": severities["damage"], "tears": severities["tear"], "notes": severities["note"]}
    return StoreAudit(plan.name, tuple(findings), facts.figures | counts | {"findings": len(findings)})


def _compared(
    plan: StorePlan, facts: StoreFacts, log: Iterable[LogRow], queues: Iterable[QueueRow]
) -> Iterator[Suspicion]:
    """Yield every unit and record that does not fit, one by one."""
    expected: dict[QueueKey, dict[int, _Expected]] = defaultdict(dict)
    owners: dict[int, str] = {}
    for row in log:
        if row.kind == "record":
            owners[row.offset or 0] = f"{row.topic}/{row.queue_id}"
            for key, unit in _expected_units(row):
                expected[key][unit.offset] = unit
    found: dict[QueueKey, dict[int, list[QueueRow]]] = defaultdict(lambda: defaultdict(list))
    for each in queues:
        key = (each.topic, each.queue_id)
        if each.kind == "unit" and (each.queue_offset or 0) >= facts.first_current.get(key, NEVER):
            found[key][each.offset or 0].append(each)
    for key in expected.keys() | found.keys():
        yield from _queue_compared(plan.number, facts, key, expected[key], found[key], owners)


def _expected_units(row: LogRow) -> Iterator[tuple[QueueKey, _Expected]]:
    for place in row.places or ():
        unit = _Expected(
            place["queue_offset"],
            row.offset or 0,
            row.size or 0,
            row.tags_code or 0,
            bool(row.is_delayed),
            row.store_timestamp or 0,
            place["is_light"],
        )
        yield (place["topic"], place["queue_id"]), unit


def _queue_compared(
    store: int,
    facts: StoreFacts,
    key: QueueKey,
    expected: dict[int, _Expected],
    found: dict[int, list[QueueRow]],
    owners: dict[int, str],
) -> Iterator[Suspicion]:
    restarted_at = _restarted_at(expected.values())
    delay_ms = _usual_delay_ms(expected, found)
    next_offset = facts.next_offset.get(key, 0)

    def suspicion(
        code: str,
        queue_offset: int,
        offset: int,
        found: int | None = None,
        expected: int | None = None,
        other: str | None = None,
        *,
        beyond: bool = False,
    ) -> Suspicion:
        late = offset >= facts.settled_end
        may_be_excused = code in ("CQ_MISSING", "CQ_WRONG_OFFSET", "CQ_DUPLICATE")
        excused = may_be_excused and restarted_at is not None and offset >= restarted_at
        return Suspicion(store, code, *key, queue_offset, 1, offset, late, beyond, excused, found, expected, other)

    for offset, wanted in expected.items():
        if offset not in found:
            beyond = wanted.queue_offset >= next_offset
            yield suspicion("CQ_MISSING", wanted.queue_offset, offset, beyond=beyond)
    for offset, units in found.items():
        wanted_here = expected.get(offset)
        if wanted_here is None:
            for unit in units:
                queue_offset = unit.queue_offset or 0
                if offset in owners:
                    yield suspicion("CQ_WRONG_QUEUE", queue_offset, offset, other=owners[offset])
                else:
                    yield suspicion("CQ_POINTS_NOWHERE", queue_offset, offset, beyond=offset >= facts.log_end)
            continue
        best, *others = sorted(
            units,
            key=lambda u, w=wanted_here: (u.size != w.size, u.queue_offset != w.queue_offset, u.queue_offset),  # type: ignore[misc]
        )
        for unit in others:
            yield suspicion("CQ_DUPLICATE", unit.queue_offset or 0, offset)
        differs = _difference(best, wanted_here, delay_ms)
        if differs is not None:
            code, one, other_side = differs
            yield suspicion(code, best.queue_offset or 0, offset, one, other_side)


def _difference(unit: QueueRow, wanted: _Expected, delay_ms: int | None) -> tuple[str, int | None, int | None] | None:
    """Return (code, found, expected) of the first thing that is wrong with a unit."""
    if unit.size != wanted.size:
        return "CQ_WRONG_SIZE", unit.size, wanted.size
    if unit.queue_offset != wanted.queue_offset:
        return "CQ_WRONG_OFFSET", unit.queue_offset, wanted.queue_offset
    if unit.tags_code is None:
        return "CQ_EXT_UNREADABLE", unit.ext_address, None
    tags_code: int | None = wanted.tags_code
    if wanted.is_delayed:
        tags_code = None if delay_ms is None else wanted.store_timestamp + delay_ms
    return None if unit.tags_code == tags_code else ("CQ_WRONG_TAGS_CODE", unit.tags_code, tags_code)


def _restarted_at(units: Iterable[_Expected]) -> int | None:
    """Return the physical offset from which a light queue's offsets do not go up any more."""
    highest = -1
    for unit in sorted((unit for unit in units if unit.is_light), key=lambda unit: unit.offset):
        if unit.queue_offset <= highest:
            return unit.offset
        highest = unit.queue_offset
    return None


def _usual_delay_ms(expected: dict[int, _Expected], found: dict[int, list[QueueRow]]) -> int | None:
    """Return the delay that most units of a delay level's queue have: it is whole seconds, and nowhere in the store."""
    delays: Counter[int] = Counter()
    for offset, units in found.items():
        wanted = expected.get(offset)
        if wanted is not None and wanted.is_delayed:
            delays.update(unit.tags_code - wanted.store_timestamp for unit in units if unit.tags_code is not None)
    possible = [delay for delay in delays if delay >= 0 and delay % 1000 == 0]
    return min(possible, key=lambda delay: (-delays[delay], delay), default=None)


def _grouped(suspicions: Iterable[Suspicion]) -> list[Suspicion]:
    """Return suspicions of one kind with queue offsets in a row as one."""
    kinds: dict[tuple[object, ...], list[Suspicion]] = defaultdict(list)
    for each in suspicions:
        kinds[each.code, each.topic, each.queue_id, each.late, each.beyond, each.excused, each.other].append(each)
    groups: list[Suspicion] = []
    for members in kinds.values():
        members.sort(key=lambda each: (each.queue_offset, each.offset))
        runs: dict[int, list[Suspicion]] = defaultdict(list)
        for number, each in enumerate(members):
            runs[each.queue_offset - number].append(each)
        groups += [_run(run) for run in runs.values()]
    return groups


def _run(members: list[Suspicion]) -> Suspicion:
    return replace(members[0], items=len(members))
