"""Judge files of consume queues by name and size, and note those that the log outlived."""

from __future__ import annotations

from collections.abc import Sequence

from tornpage.pipeline.audit.findings import AuditFinding, finding_of
from tornpage.pipeline.rows.outline import QueueRow
from tornpage.properties.decode.consumequeue import UNIT_BYTES, QueueFile
from tornpage.properties.decode.findings import Severity

__all__ = ["outlived_files", "queue_files_judged"]


def queue_files_judged(name: str, files: Sequence[QueueFile], size: int, *, may_be_torn: bool) -> list[AuditFinding]:
    """Judge the sizes and names of all queue files."""
    findings: list[AuditFinding] = []
    severity: Severity = "tear" if may_be_torn else "damage"
    before: QueueFile | None = None
    for file in files:
        key = (file.topic, file.queue_id)
        if file.size_bytes < size or file.size_bytes % UNIT_BYTES:
            detail = f"{file.size_bytes} bytes instead of {size}"
            findings.append(
                finding_of(
                    name, "CQ_SHORT_FILE", severity, file.label, position=file.size_bytes, key=key, detail=detail
                )
            )
        elif file.size_bytes > size:
            detail = f"{file.size_bytes} bytes, others have {size}"
            findings.append(finding_of(name, "CQ_MIXED_SIZES", "damage", file.label, key=key, detail=detail))
        if before is not None and (before.topic, before.queue_id) == key and before.base + size != file.base:
            detail = f"it begins at byte {file.base} of the queue, the one before ends at {before.base + size}"
            findings.append(finding_of(name, "CQ_GAP", severity, file.label, position=0, key=key, detail=detail))
        before = file
    return findings


def outlived_files(name: str, ends: Sequence[QueueRow]) -> list[AuditFinding]:
    """Return notes of queue files whose records are all gone, except the last of each queue."""
    last = {(end.topic, end.queue_id): end.file for end in ends}
    return [
        finding_of(name, "CQ_OUTLIVED", "note", end.file, position=0, key=(end.topic, end.queue_id))
        for end in ends
        if end.items and end.first_current is None and end.file != last[end.topic, end.queue_id]
    ]
