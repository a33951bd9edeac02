"""Turn index files, and entries that do not fit, into findings.

In a store with a clean exit an entry that does not fit is damage. After an unclean exit it is a tear, since recovery
rebuilds the index. In a live store it is reported as open. A second entry of a key is never more than a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tornpage.pipeline.audit.findings import FINDINGS_MAX, AuditFinding, finding_of
from tornpage.pipeline.audit.index_compare import OFFSET_MAX, IndexSuspicion, gap_of
from tornpage.pipeline.rows.index_reading import IndexPartition, IndexRow, plan_index
from tornpage.properties.decode.findings import Severity
from tornpage.properties.decode.index_files import list_index
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.place import derived_severity

__all__ = ["IndexPlan", "index_judged", "index_plan"]


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The index files of a store.

    `readable` are those with a known number of slots, or without entries. `gaps` are ranges of offsets, ends included,
    whose keys may be in files that cannot be read as rows.
    """

    parts: tuple[IndexPartition, ...]
    findings: tuple[AuditFinding, ...]
    severity: Severity
    gaps: tuple[tuple[int, int], ...] = ()

    @property
    def readable(self) -> tuple[IndexPartition, ...]:
        """The files that can be read as rows."""
        return tuple(part for part in self.parts if part.slots is not None)


def index_plan(number: int, name: str, view: StoreView, log_min: int, slots: int | None) -> IndexPlan:
    """Read the directory `index`; `slots` is the number in the broker's settings."""
    files, strays, closed = list_index(view.store_dir)
    severity = derived_severity(view)
    findings = [finding_of(name, "IX_STRAY_FILE", "note", label) for label in strays]
    findings += [finding_of(name, "IX_NO_ACCESS", "note", label, detail=str(error)) for label, error in closed]
    parts: list[IndexPartition] = []
    unread: list[int] = []
    sizes = Counter(file.size_bytes for file in files)
    usual = max(sizes, key=lambda each: (sizes[each], each), default=0)
    for at, (file, part) in enumerate(zip(files, plan_index(number, files, slots), strict=True)):
        if isinstance(part, OSError):
            unread.append(at)
            code, worst = ("IX_NO_ACCESS", "note") if isinstance(part, PermissionError) else ("IX_READ_ERROR", severity)
            findings.append(finding_of(name, code, worst, file.label, detail=part.strerror or ""))  # type: ignore[arg-type]
            continue
        parts.append(part)
        if part.slots is None and part.header.next_entry != 0:
            unread.append(at)
        if file.size_bytes != usual:
            detail = f"{file.size_bytes} bytes instead of {usual}"
            findings.append(finding_of(name, "IX_MIXED_SIZES", severity, file.label, detail=detail))
        elif part.slots is None and part.header.next_entry > 1:
            findings.append(finding_of(name, "IX_SLOTS_UNKNOWN", "note", file.label))
        if file is not files[-1] and part.header.next_entry > 1 and part.header.end_offset < log_min:
            findings.append(finding_of(name, "IX_OUTLIVED", "note", file.label))
    gaps = [(-1, OFFSET_MAX)] if closed else [gap_of(at, parts) for at in unread]
    return IndexPlan(tuple(parts), tuple(findings), severity, tuple(gaps))


def index_judged(
    name: str,
    plan: IndexPlan,
    *,
    rows: Iterable[IndexRow],
    suspicions: Sequence[IndexSuspicion],
    may_move: bool,
    promised: bool,
) -> list[AuditFinding]:
    """Return the findings; `promised` says that the checkpoint covers index files."""
    findings: list[AuditFinding] = []
    moving = 0
    files = {part.number: part for part in plan.parts}
    for row in rows:
        if row.error is not None:
            findings.append(finding_of(name, "IX_READ_ERROR", plan.severity, row.file, detail=row.error))
        elif row.kind == "problem" and may_move:
            moving += 1
        elif row.kind == "problem":
            detail = row.text or ""
            findings.append(
                finding_of(name, "IX_BROKEN", plan.severity, row.file, position=row.position, detail=detail)
            )
    if not plan.parts and suspicions:
        severity: Severity = "damage" if promised and plan.severity == "damage" else "note"
        return [*findings, finding_of(name, "IX_NO_INDEX", severity, "index")]
    listed: Counter[str] = Counter()
    for each in sorted(suspicions, key=lambda each: (each.code, each.file, each.number, each.offset)):
        if may_move:
            moving += each.items
            continue
        listed[each.code] += 1
        if listed[each.code] <= FINDINGS_MAX:
            findings.append(_finding(name, plan, files, each))
    for code in sorted(code for code, count in listed.items() if count > FINDINGS_MAX):
        detail = f"{code}, more than {FINDINGS_MAX}"
        findings.append(finding_of(name, "IX_MORE_FINDINGS", _severity(plan, code), "index", detail=detail))
    if moving:
        findings.append(
            finding_of(name, "IX_TAIL_MOVING", "note", "index", detail=f"{moving} places are not consistent yet")
        )
    return findings


def _severity(plan: IndexPlan, code: str) -> Severity:
    return "note" if code == "IX_DUPLICATE" else plan.severity


def _finding(name: str, plan: IndexPlan, files: dict[int, IndexPartition], each: IndexSuspicion) -> AuditFinding:
    severity = _severity(plan, each.code)
    if each.file < 0:
        holders = [part for part in plan.parts if part.header.next_entry > 1]
        begun = [part for part in holders if part.header.begin_offset <= each.offset] or holders[:1] or plan.parts[:1]
        detail = f"the record at physical offset {each.offset}"
        if each.items > 1:
            detail = f"{each.items} keys of consecutive records, the first: {detail}"
        return finding_of(
            name, each.code, severity, begun[-1].file.label, offset=each.offset, items=each.items, detail=detail
        )
    part = files[each.file]
    which = f"entry {each.number}" if each.items == 1 else f"entries {each.number} to {each.number + each.items - 1}"
    return finding_of(
        name,
        each.code,
        severity,
        part.file.label,
        offset=each.offset,
        position=part.position_of(each.number),
        items=each.items,
        detail=f"{which}, physical offset {each.offset}",
    )
