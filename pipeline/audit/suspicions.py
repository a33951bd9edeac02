"""Turn suspicions about queues into findings: damage, a tear, or a live store.

Rules for a suspicion, the first match counts:

1. A light queue whose offsets began again at 0 after a restart: a note.
2. The store is live: suspicions at the moving ends of log or queue are left open in one note. The others are read a
   second time and are damage only if they are still there.
3. Unclean exit, and the record lies where recovery dispatches again: a tear.
4. Otherwise: damage.
"""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tornpage.pipeline.audit.findings import FINDINGS_MAX, AuditFinding, finding_of
from tornpage.pipeline.audit.stores import NEVER, StoreFacts, StorePlan
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.pipeline.rows.outline import QueueRow
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Severity
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.walk import decode_at

__all__ = ["Suspicion", "holes", "judged"]

_UNIT = struct.Struct(">qiq")
_TEAR_REMEDY = "none needed: recovery dispatches these records again when the store opens"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A run of units or records in a queue that do not fit; numbers are those of the first.

    `offset` is physical. `found` and `expected` are the two differing values. `other` names the queue of the record
    that the unit points to. `late`: recovery would dispatch it again. `beyond`: at the end of log or queue as they were
    read. `excused`: the light queue had begun again at 0.
    """

    store: int
    code: str
    topic: str
    queue_id: int
    queue_offset: int
    items: int
    offset: int | None
    late: bool
    beyond: bool
    excused: bool
    found: int | None = None
    expected: int | None = None
    other: str | None = None


def holes(
    plan: StorePlan, facts: StoreFacts, queues: Iterable[QueueRow], suspicions: Sequence[Suspicion]
) -> list[Suspicion]:
    """Return empty and pre-fill runs between used units, where the log has records for them.

    Pre-fill without such records is what tornpage's store writes: no message ever had these numbers.
    """
    missing: dict[QueueKey, list[range]] = defaultdict(list)
    for each in suspicions:
        if each.code == "CQ_MISSING":
            missing[each.topic, each.queue_id].append(range(each.queue_offset, each.queue_offset + each.items))
    found = []
    for row in queues:
        if row.kind not in ("empty", "prefill") or row.queue_offset is None:
            continue
        key = (row.topic, row.queue_id)
        end = row.queue_offset + row.items
        if row.queue_offset >= facts.next_offset.get(key, 0):
            continue
        is_between = row.kind == "empty" or (
            row.queue_offset >= facts.first_current.get(key, NEVER)
            and any(lost.start < end and row.queue_offset < lost.stop for lost in missing[key])
        )
        if is_between:
            late = facts.settled_end != NEVER and (row.offset is None or row.offset >= facts.settled_end)
            found.append(
                Suspicion(
                    plan.number,
                    "CQ_NOT_CONTIGUOUS",
                    *key,
                    row.queue_offset,
                    row.items or 1,
                    None,
                    late,
                    False,
                    False,
                )
            )
    return found


def judged(plan: StorePlan, facts: StoreFacts, suspicions: Iterable[Suspicion]) -> list[AuditFinding]:
    """Return the findings of a store's queues."""
    known = (each for each in suspicions if not _is_unread(plan, facts, each))
    ordered = sorted(
        known,
        key=lambda each: (_is_mild(facts, each), each.topic, each.queue_id, each.queue_offset, each.code, each.late),
    )
    findings: list[AuditFinding] = []
    listed: Counter[str] = Counter()
    moving = 0
    for suspicion in ordered:
        if suspicion.excused:
            severity: Severity = "note"
        elif facts.may_move:
            if suspicion.beyond or not _is_still_there(plan, suspicion):
                moving += suspicion.items
                continue
            severity = "damage"
        else:
            severity = "tear" if suspicion.late else "damage"
        finding = _finding(plan, suspicion, severity)
        listed[finding.code] += 1
        if listed[finding.code] <= FINDINGS_MAX:
            findings.append(finding)
    for code in sorted(code for code, count in listed.items() if count > FINDINGS_MAX):
        worst: Severity = "damage" if any(f.code == code and f.severity == "damage" for f in findings) else "note"
        detail = f"{code}, more than {FINDINGS_MAX}"
        findings.append(finding_of(plan.name, "CQ_MORE_FINDINGS", worst, "consumequeue", detail=detail))
    if moving:
        detail = f"{moving} units or records are not consistent yet"
        findings.append(finding_of(plan.name, "CQ_TAIL_MOVING", "note", "consumequeue", detail=detail))
    return findings


def _is_mild(facts: StoreFacts, suspicion: Suspicion) -> bool:
    """Return whether a suspicion is no damage.

    Damage is listed first, so that the limit of findings hides none.
    """
    return suspicion.excused or (suspicion.beyond if facts.may_move else suspicion.late)


def _is_unread(plan: StorePlan, facts: StoreFacts, suspicion: Suspicion) -> bool:
    """Return whether the missing side of a suspicion may be in an unreadable file.

    That file has a finding itself.
    """
    if suspicion.code == "CQ_POINTS_NOWHERE":
        return any(suspicion.offset in unread for unread in facts.unread_log)
    if suspicion.code != "CQ_MISSING" or not facts.unread_queues:
        return False
    label, _ = plan.place_of((suspicion.topic, suspicion.queue_id), suspicion.queue_offset)
    queue = f"{os.path.dirname(label)}/"
    return any(f"{unread}/".startswith(queue) or queue.startswith(f"{unread}/") for unread in facts.unread_queues)


def _finding(plan: StorePlan, suspicion: Suspicion, severity: Severity) -> AuditFinding:
    key = (suspicion.topic, suspicion.queue_id)
    file, position = plan.place_of(key, suspicion.queue_offset)
    return finding_of(
        plan.name,
        "CQ_LIGHT_RESTARTED" if suspicion.excused else suspicion.code,
        severity,
        file,
        offset=suspicion.offset,
        position=position,
        key=key,
        queue_offset=suspicion.queue_offset,
        items=suspicion.items,
        detail=_detail(suspicion),
        remedy=_TEAR_REMEDY if severity == "tear" else "",
    )


def _detail(suspicion: Suspicion) -> str:
    first = suspicion.queue_offset
    last = first + suspicion.items - 1
    which = f"queue offset {first}" if suspicion.items == 1 else f"queue offsets {first} to {last}"
    parts = [which]
    if suspicion.offset is not None:
        parts.append(f"physical offset {suspicion.offset}")
    if suspicion.expected is not None or suspicion.found is not None:
        parts.append(f"found {suspicion.found}, expected {suspicion.expected}")
    if suspicion.other is not None:
        parts.append(f"the record belongs to {suspicion.other}")
    if suspicion.items > 1:
        parts[1:] = [f"the first: {', '.join(parts[1:])}"] if parts[1:] else []
    return ", ".join(parts)


def _is_still_there(plan: StorePlan, suspicion: Suspicion) -> bool:
    """Read a unit of a live store again; return False if it has changed."""
    key = (suspicion.topic, suspicion.queue_id)
    label, position = plan.place_of(key, suspicion.queue_offset)
    unit = b""
    for file in plan.queue_files:
        if file.label == label:
            try:
                with file.path.open("rb") as opened:
                    opened.seek(position)
                    unit = opened.read(UNIT_BYTES)
            except OSError:
                return False
    if len(unit) < UNIT_BYTES:
        return suspicion.code == "CQ_MISSING"
    offset, _, _ = _UNIT.unpack(unit)
    if suspicion.code == "CQ_MISSING":
        return bool(offset != suspicion.offset)
    if suspicion.code == "CQ_NOT_CONTIGUOUS":
        return not unit.strip(b"\0")
    if suspicion.code == "CQ_POINTS_NOWHERE" and _record_begins_at(plan, offset):
        return False
    return bool(offset == suspicion.offset)


def _record_begins_at(plan: StorePlan, offset: int) -> bool:
    """Read a place in the log again that was being written; return whether a record is there.

    The result is True if the place cannot be read.
    """
    for file in plan.view.files:
        position = offset - file.base_offset
        if 0 <= position < plan.view.file_bytes:
            try:
                with FileSource(file.path, size_bytes_max=plan.view.file_bytes) as source:
                    item = decode_at(source, position, file.base_offset, plan.view.file_bytes, None)
            except OSError:
                return True
            return isinstance(item, Record)
    return bool(plan.view.files) and offset >= plan.view.files[-1].base_offset + plan.view.file_bytes
