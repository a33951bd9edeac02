"""Plan the audit of a store, and turn the outline of what was read into facts.

A plan comes from the directories alone, before any large file is read. Facts come from the outline: the rows of log and
queues that are neither records nor units. There are few of these, so that they fit into the driver.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.pipeline.audit.findings import AuditFinding, finding_of
from tornpage.pipeline.audit.index_judging import IndexPlan, index_plan
from tornpage.pipeline.audit.queue_files import outlived_files, queue_files_judged
from tornpage.pipeline.audit.small_files import deleted_topics, small_findings
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.pipeline.rows.dispatch import LIGHT_PREFIX
from tornpage.pipeline.rows.outline import LogPartition, LogRow, QueuePartition, QueueRow
from tornpage.properties.decode.consumequeue import UNIT_BYTES, QueueFile, list_queues
from tornpage.properties.decode.findings import Finding, Severity
from tornpage.properties.decode.judge import LogJudge, flushed_until_ms
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.store import LocatedItem, LogFile, StoreView, look
from tornpage.properties.decode.walk import Item, Unreadable, Zeros
from tornpage.properties.inspect import inspect_store

__all__ = ["NEVER", "QueueKey", "StoreFacts", "StorePlan", "facts_of", "plan_store"]

NEVER = 2**63 - 1
_RECOVERY_MARGIN_MS = 3000


@dataclass(frozen=True, slots=True)
class StorePlan:
    """The files to read of one store.

    `queue_file_bytes` is the most common size of queue files. `closed_queues` are the labels of places below
    `consumequeue` that could not be listed or opened.
    """

    number: int
    name: str
    view: StoreView
    queue_files: tuple[QueueFile, ...]
    queue_file_bytes: int
    has_queues: bool
    log_parts: tuple[LogPartition, ...]
    queue_parts: tuple[QueuePartition, ...]
    index: IndexPlan
    findings: tuple[AuditFinding, ...]
    closed_queues: tuple[str, ...] = ()

    def place_of(self, key: QueueKey, queue_offset: int) -> tuple[str, int]:
        """Return the file that holds or should hold a unit, and the position in it."""
        at = queue_offset * UNIT_BYTES
        files = [file for file in self.queue_files if (file.topic, file.queue_id) == key]
        for file in files:
            if file.base <= at < file.base + self.queue_file_bytes:
                return file.label, at - file.base
        size = max(self.queue_file_bytes, 1)
        directory = os.path.dirname(files[0].label) if files else f"consumequeue/{key[0]}/{key[1]}"
        return f"{directory}/{at - at % size:020}", at % size


@dataclass(slots=True)
class StoreFacts:
    """Facts from the outline of a store.

    `log_end` is after the last valid record or blank. `prefix_end` is the first place where the log does not go on,
    NEVER without one. Below `settled_end` the queues must have been flushed before the last unclean exit; after a clean
    one all must have been. `first_current` and `next_offset` are per queue: its first unit whose record is still in the
    log, and the queue offset after its last unit. `unread_log` (ranges of offsets) and `unread_queues` (directories and
    files) could not be read, and their content is unknown. `hidden_log` has those of `unread_log` on a sound device: a
    reader with permission may find every message there.
    """

    log_min: int
    log_end: int
    settled_end: int
    may_move: bool
    prefix_end: int = NEVER
    first_current: dict[QueueKey, int] = field(default_factory=dict)
    next_offset: dict[QueueKey, int] = field(default_factory=dict)
    unread_log: list[range] = field(default_factory=list)
    hidden_log: list[range] = field(default_factory=list)
    unread_queues: list[str] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    findings: list[AuditFinding] = field(default_factory=list)


def plan_store(
    number: int,
    path: str | os.PathLike[str],
    *,
    file_bytes: int | None = None,
    slots: int | None = None,
    drops_joined: bool = False,
) -> StorePlan:
    """Read the directories of a store.

    `file_bytes` is the configured size of a log file, and `slots` the number of slots of an index file. They are used
    where they cannot be seen. `drops_joined` is as in `parse_properties`. The plan has absolute paths, because workers
    of Spark have working directories of their own; `name` is the path as it was given. Raises
    properties.inspect.InspectError, in one line, if there is no store.
    """
    inspect_store(path, limit=0, whole=False, file_bytes=file_bytes)
    directory, name = Path(os.path.abspath(path)), os.fsencode(path).decode("utf-8", "replace")
    view = look(directory, file_bytes=file_bytes)
    has_queues = (directory / "consumequeue").is_dir() and bool(view.files)
    files, strays, closed = list_queues(directory) if has_queues else ([], [], [])
    sizes = Counter(file.size_bytes for file in files if file.size_bytes)
    size = max(sizes, key=lambda each: (sizes[each], each), default=0)
    findings = [finding_of(name, "CQ_STRAY_FILE", "note", label) for label in strays]
    findings += [finding_of(name, "CQ_NO_ACCESS", "note", label, detail=str(error)) for label, error in closed]
    findings += queue_files_judged(name, files, size, may_be_torn=view.is_unclean or view.live)
    if not has_queues and view.files:
        were_flushed = view.checkpoint is not None and view.checkpoint.logics_timestamp > 0
        findings.append(finding_of(name, "CQ_NO_QUEUES", "damage" if were_flushed else "note", "consumequeue"))
    settled_ms = _settled_ms(view)
    light = not any(file.topic.startswith(LIGHT_PREFIX) and file.queue_id for file in files)
    log_min = view.files[0].base_offset if view.files else 0
    deleted, unreadable = deleted_topics(name, view)
    index = index_plan(number, name, view, log_min, slots)
    findings += [*unreadable, *small_findings(name, view), *index.findings]
    return StorePlan(
        number=number,
        name=name,
        view=view,
        queue_files=tuple(files),
        queue_file_bytes=size,
        has_queues=has_queues,
        log_parts=tuple(
            LogPartition(
                number,
                file.path,
                file.label,
                file.base_offset,
                view.file_bytes,
                settled_ms,
                light,
                tuple(sorted(deleted.items())),
                flushed_until_ms(view),
                drops_joined,
            )
            for file in view.files
            if file.size_bytes
        ),
        queue_parts=tuple(_queue_part(number, directory, file, log_min) for file in files),
        index=index,
        findings=tuple(findings),
        closed_queues=tuple(label for label, _ in closed),
    )


def facts_of(plan: StorePlan, log: Sequence[LogRow], queues: Iterable[QueueRow]) -> StoreFacts:
    """Judge the log by its outline, and gather the facts for judging the queues.

    Rows are in the order of the files.
    """
    judge = LogJudge(plan.view)
    files = {file.label: file for file in plan.view.files}
    settled_end = -1
    log_changed = False
    for row in log:
        _replay(judge, files, row)
        log_changed |= bool(row.changed)
        settled_end = max(settled_end, -1 if row.settled_end is None else row.settled_end)
    failed = [row for row in log if row.kind == "end" and row.error is not None]
    unread = {row.file: range(base := files[row.file].base_offset, base + plan.view.file_bytes) for row in failed}
    ends = [row for row in queues if row.kind == "end"]
    is_torn = plan.view.is_unclean and not plan.view.live
    facts = StoreFacts(
        log_min=plan.view.files[0].base_offset if plan.view.files else 0,
        log_end=judge.end_offset or 0,
        settled_end=settled_end if is_torn else NEVER,
        prefix_end=NEVER if judge.prefix_end_offset is None else judge.prefix_end_offset,
        may_move=plan.view.live or log_changed or any(row.changed for row in ends) or _has_log_changed(plan.view),
        unread_log=list(unread.values()),
        hidden_log=[unread[row.file] for row in failed if row.error_kind in ("PermissionError", "FileNotFoundError")],
        unread_queues=[*plan.closed_queues, *(row.file for row in ends if row.error is not None)],
    )
    for end in ends:
        key = (end.topic, end.queue_id)
        if end.first_current is not None:
            facts.first_current[key] = min(end.first_current, facts.first_current.get(key, NEVER))
        if end.last_used is not None:
            facts.next_offset[key] = max(end.last_used + 1, facts.next_offset.get(key, 0))
        if end.error is not None:
            facts.findings.append(_unread(plan, end))
    facts.findings += outlived_files(plan.name, ends)
    facts.findings += [_from_log(plan, files, finding) for finding in judge.finish()]
    facts.figures = _figures(plan, judge, ends)
    return facts


def _has_log_changed(view: StoreView) -> bool:
    """Return whether log files have appeared, vanished or changed since the plan.

    The process that changed them holds no visible lock.
    """
    try:
        now = look(view.store_dir, file_bytes=view.file_bytes).files
    except OSError:
        return True
    return now != view.files


def _settled_ms(view: StoreView) -> int:
    """Return the store time up to which recovery takes queues for flushed.

    After a clean exit this covers everything.
    """
    if view.live or not view.is_unclean:
        return NEVER
    if view.checkpoint is None:
        return -1
    return min(view.checkpoint.physic_timestamp, view.checkpoint.logics_timestamp) - _RECOVERY_MARGIN_MS


def _queue_part(number: int, directory: Path, file: QueueFile, log_min: int) -> QueuePartition:
    extension = directory / "consumequeue_ext" / file.path.parent.relative_to(directory / "consumequeue")
    return QueuePartition(
        number, file.path, file.label, file.topic, file.queue_id, file.base, file.size_bytes, extension, log_min
    )


def _replay(judge: LogJudge, files: dict[str, LogFile], row: LogRow) -> None:
    """Pass the event of an outline row to the judge."""
    if row.kind == "end":
        error = None
        if row.error is not None:
            kinds = {"PermissionError": PermissionError, "FileNotFoundError": FileNotFoundError}
            error = kinds.get(row.error_kind or "", OSError)(0, row.error)
        judge.see_file_end(files[row.file], bool(row.changed), error)
        return
    size, items = row.size, row.items
    item: Item
    if row.kind == "run":
        item = _record(row.offset, size, row.timestamp)
        judge.see(LocatedItem(row.file, item))
        judge.note_times(newest_ms=row.newest, newest_flushed_ms=row.newest_flushed)
        judge.record_count += items - 1
        judge.record_bytes += row.bytes - size
        return
    if row.kind == "bad":
        item = Bad(row.offset, row.reason, row.field or "")  # type: ignore[arg-type]
    elif row.kind == "unreadable":
        item = Unreadable(row.offset, size, row.reason)  # type: ignore[arg-type]
    else:
        item = Blank(row.offset, size) if row.kind == "blank" else Zeros(row.offset, size)
    judge.see(LocatedItem(row.file, item))


def _record(offset: int, size_bytes: int, store_timestamp: int) -> Record:
    """Return a record with the fields that the judge of the log needs: place, size and time."""
    nobody = ("0.0.0.0", 0)
    return Record(
        offset, size_bytes, 0, 0, 0, 0, offset, 0, 0, nobody, store_timestamp, nobody, 0, 0, b"", b"", b"", None, b""
    )


def _from_log(plan: StorePlan, files: dict[str, LogFile], finding: Finding) -> AuditFinding:
    file = files.get(finding.file)
    position = None if finding.offset is None or file is None else finding.offset - file.base_offset
    return AuditFinding(
        plan.name,
        finding.code,
        finding.severity,
        finding.file,
        finding.offset,
        position,
        None,
        None,
        None,
        1,
        finding.message,
        finding.remedy,
    )


def _unread(plan: StorePlan, row: QueueRow) -> AuditFinding:
    codes: dict[str, tuple[str, Severity]] = {
        "PermissionError": ("CQ_NO_ACCESS", "note"),
        "FileNotFoundError": ("CQ_FILE_GONE", "note"),
    }
    code, severity = codes.get(row.error_kind or "", ("CQ_READ_ERROR", "damage"))
    key = (row.topic, row.queue_id)
    return finding_of(plan.name, code, severity, row.file, position=0, key=key, detail=row.error or "")


def _figures(plan: StorePlan, judge: LogJudge, ends: Sequence[QueueRow]) -> dict[str, int]:
    return {
        "log_files": len(plan.view.files),
        "log_bytes": sum(file.size_bytes for file in plan.view.files),
        "records": judge.record_count,
        "record_bytes": judge.record_bytes,
        "unreadable_bytes": judge.unreadable_bytes,
        "queues": len({(row.topic, row.queue_id) for row in ends}),
        "queue_files": len(ends),
        "queue_bytes": sum(file.size_bytes for file in plan.queue_files),
        "units": sum(row.items for row in ends),
        "live": int(plan.view.live),
        "unclean": int(plan.view.is_unclean),
    }
