"""Audit a store: check log, queues and index, and whether they agree.

There are two ways with one answer. `audit_store` reads a store in this process and compares arrays. It is for small
stores, of which many are audited side by side in the tasks of `pipeline.audit.audit_spark.audit_each`.
`pipeline.audit.audit_spark.audit_joined` writes rows to Parquet and joins them with bounded memory, for a store of any
size. Both share the reading of files and the wording of findings (`pipeline.audit.suspicions`,
`pipeline.audit.index_judging`), but not the comparison.

An audit writes nothing to a store, takes no lock and recovers nothing. A live store is read like any other; its moving
parts are left open.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tornpage.pipeline.audit.findings import AuditFinding, verdict_of
from tornpage.pipeline.audit.index_compare import IndexSuspicion, compare_index
from tornpage.pipeline.audit.index_judging import index_judged
from tornpage.pipeline.audit.queue_compare import compare_queues
from tornpage.pipeline.audit.reused_topics import reused_finding, reused_topics
from tornpage.pipeline.audit.store_rows import Progress, StoreRows, read_store, without_progress
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan, facts_of, plan_store
from tornpage.pipeline.audit.summary import StoreSummary, summary_of
from tornpage.pipeline.audit.suspicions import Suspicion, holes, judged
from tornpage.pipeline.rows.index_reading import IndexRow
from tornpage.pipeline.rows.outline import QueueRow
from tornpage.properties.decode.findings import Verdict

__all__ = ["StoreAudit", "StorePath", "audit_plan", "audit_rows", "audit_store", "audited", "without_reused"]

StorePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class StoreAudit:
    """The result of the audit of one store: findings by file and place, and counts.

    `summary` is None where rows are joined on Spark.
    """

    store: str
    findings: tuple[AuditFinding, ...]
    figures: dict[str, int]
    summary: StoreSummary | None = field(default=None, compare=False)

    @property
    def verdict(self) -> Verdict:
        """Return broken, unknown or holds."""
        return verdict_of(self.findings)


def audit_store(
    store_dir: StorePath, *, file_bytes: int | None = None, slots: int | None = None, drops_joined: bool = False
) -> StoreAudit:
    """Audit one store in this process. Cost: memory for one row per record, unit and key.

    `file_bytes` is the configured size of a log file, and `slots` the number of slots of an index file. They are used
    where the bytes do not show them. `drops_joined` is as in `parse_properties`. Raises
    properties.inspect.InspectError.
    """
    return audit_plan(plan_store(0, store_dir, file_bytes=file_bytes, slots=slots, drops_joined=drops_joined))


def audit_plan(plan: StorePlan, progress: Progress = without_progress) -> StoreAudit:
    """Audit the store of a plan in this process; report the bytes read to `progress`."""
    return audit_rows(plan, read_store(plan, progress))[0]


def audit_rows(plan: StorePlan, rows: StoreRows) -> tuple[StoreAudit, StoreFacts]:
    """Audit the rows that were read of a store."""
    facts = facts_of(plan, rows.log_outline, rows.queue_outline)
    rows = without_reused(plan, facts, rows)
    suspicions = _queue_suspicions(plan, facts, rows) if plan.has_queues else []
    index_suspicions = compare_index(
        plan.number,
        plan.index.parts,
        plan.index.gaps,
        log_min=facts.log_min,
        records=rows.records,
        keys=rows.keys,
        entries=rows.entries,
    )
    found = audited(plan, facts, rows.queue_outline, rows.index_outline, suspicions, index_suspicions)
    return replace(found, summary=summary_of(plan, facts, rows)), facts


def without_reused(plan: StorePlan, facts: StoreFacts, rows: StoreRows) -> StoreRows:
    """Leave out units of topics that were deleted and used again; add a note about each."""
    reused = reused_topics(rows.wanted, rows.units, rows.numbers.keys)
    if not reused:
        return rows
    facts.findings += [reused_finding(plan.name, topic, offset) for topic, offset in sorted(reused.items())]
    below = np.array([reused.get(topic, 0) for topic, _ in rows.numbers.keys], "i8")
    return replace(rows, wanted=rows.wanted[rows.wanted["offset"] >= below[rows.wanted["queue"]]])


def audited(
    plan: StorePlan,
    facts: StoreFacts,
    queues: Iterable[QueueRow],
    index: Sequence[IndexRow],
    suspicions: Sequence[Suspicion],
    index_suspicions: Sequence[IndexSuspicion],
) -> StoreAudit:
    """Return findings and counts of a store, from its suspicions."""
    findings = [*plan.findings, *facts.findings]
    findings += judged(plan, facts, [*holes(plan, facts, queues, suspicions), *suspicions])
    checkpoint = plan.view.checkpoint
    findings += index_judged(
        plan.name,
        plan.index,
        rows=index,
        suspicions=[each for each in index_suspicions if not _is_unread(facts, each)],
        may_move=facts.may_move or any(row.changed for row in index),
        promised=checkpoint is not None and checkpoint.index_timestamp > 0,
    )
    findings.sort(key=lambda finding: finding.order)
    severities = Counter(finding.severity for finding in findings)
    counts = {"damages": severities["damage"], "tears": severities["tear"], "notes": severities["note"]}
    return StoreAudit(plan.name, tuple(findings), facts.figures | counts | {"findings": len(findings)})


def _is_unread(facts: StoreFacts, suspicion: IndexSuspicion) -> bool:
    """Return whether an entry points into an unreadable log file, which has a finding itself."""
    is_nowhere = suspicion.code == "IX_POINTS_NOWHERE"
    return is_nowhere and any(suspicion.offset in unread for unread in facts.unread_log)


def _queue_suspicions(plan: StorePlan, facts: StoreFacts, rows: StoreRows) -> list[Suspicion]:
    return compare_queues(
        plan.number, facts, rows.numbers.keys, records=rows.records, wanted=rows.wanted, units=rows.units
    )
