"""Rulings on opening: numbers 7, 9, 13 and 14."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.record import Record
from tornpage.properties.disk.journal import DirectorySynced, FileSynced
from tornpage.properties.judge.derived_files import missing_before
from tornpage.properties.judge.directory.evidence import Evidence
from tornpage.properties.judge.directory.progress_files import badly_changed, is_progress, is_whole
from tornpage.properties.judge.judges import checkpoint_is_not_ahead
from tornpage.properties.judge.queue_judges import checkpoint_times
from tornpage.properties.judge.rulings import Ruling, broken, counted, holds, judge, unknown
from tornpage.properties.judge.small_file_judges import CHECKPOINT_BYTES, floor_in, has_times

__all__ = ["is_exclusive", "is_in_quarantine", "progress_files_are_whole", "starts", "watermarks_are_in_order"]

_FLOOR, _CHECKPOINT, _LOCK, _QUARANTINE = "config/durableFloor", "checkpoint", "lock", "quarantine/"


@judge(7)
def starts(evidence: Evidence) -> Ruling:
    """Number 7: read-write after a crash; what no crash leaves is named, served as far as it verifies, and kept."""
    store, before = evidence.store, evidence.before
    if store is None:
        return broken(7, f"the store does not open: {evidence.opened.refusal}")
    problem = before.problems[0] if before.problems else None
    file, offset = (problem.file, problem.offset) if problem else (before.file_of(before.end), before.end)
    if evidence.is_writable and evidence.is_damaged:
        sentence = problem.sentence if problem else f"{before.reason}, though all was durable up to there"
        sentence = f"damage goes unnoticed: {sentence}"
        return broken(7, sentence, file=file, offset=offset, expected="read-only", found="read-write")
    if evidence.is_writable:
        return _writable(evidence)
    reason = str(store.read_only_reason)
    if not evidence.is_damaged:
        sentence = "the store opens read-only after a crash"
        return broken(7, sentence, file=file, offset=offset, expected="read-write", found=reason)
    return _read_only(evidence, reason)


def _writable(evidence: Evidence) -> Ruling:
    """Judge what became of valid records that were cut."""
    behind = evidence.before.behind
    lost = [record for record in behind if not is_in_quarantine(evidence.content, record)]
    if evidence.floor is None and lost:
        sentence = f"{len(lost):,} valid records behind the cut are in no quarantine, and no floor says they may go"
        return broken(7, sentence, file=evidence.before.file_of(lost[0].offset), offset=lost[0].offset)
    if evidence.floor is not None or not behind:
        return holds(7, "the store opens read-write")
    return holds(7, f"the store opens read-write; in quarantine: {counted(len(behind), 'record')} from behind the cut")


def is_in_quarantine(content: Mapping[str, bytes], record: Record) -> bool:
    """Whether one of the copies that recovery made before it cut holds a record."""
    for name, data in content.items():
        base = name.removeprefix(_QUARANTINE).partition(".")[0]
        if name.startswith(_QUARANTINE) and base.isdecimal():
            at = record.offset - int(base)
            if at >= 0 and data[at : at + record.size_bytes] == record.raw:
                return True
    return False


def _read_only(evidence: Evidence, reason: str) -> Ruling:
    """Judge a store that says that its directory is damaged."""
    store, before = evidence.store, evidence.before
    assert store is not None
    named = [finding for finding in store.findings if finding.severity == "damage"]
    if not any(finding.file and finding.offset >= 0 for finding in named):
        return broken(7, "no finding names file and offset of the damage", found=reason)
    valid = {record.offset: record for record in (*before.records, *before.behind)}
    try:
        served = observed("messages", lambda: list(store.messages()))
    except GuaranteeBroken as error:
        return broken(7, f"a damaged store cannot be read: {error.sentence}")
    for message in served:
        record = valid.pop(message.offset, None)
        if record is None or record.body != message.body:
            return broken(7, "a damaged store serves what does not verify", offset=message.offset)
    if valid:
        file = before.file_of(min(valid))
        return broken(7, f"{len(valid):,} records that verify are not served", file=file, offset=min(valid))
    changed = _changed(evidence.content, evidence.seen.content) or _changed(evidence.durable, evidence.seen.content)
    if changed:
        return broken(7, "a damaged store was changed by opening it", file=changed)
    return holds(7, f"read-only, changed nothing, serves {counted(len(served), 'record')}; {reason}")


def _changed(found: Mapping[str, bytes], was: Mapping[str, bytes]) -> str:
    """Return the first file that is not what it was, nothing if none is; the lock may be made."""
    names = sorted((found.keys() | was.keys()) - {_LOCK})
    return next((name for name in names if found.get(name) != was.get(name)), "")


@judge(9)
def watermarks_are_in_order(evidence: Evidence) -> Ruling:
    """Number 9: minimum <= flushed <= committed <= written, and the checkpoint is not ahead of what is durable."""
    store, after = evidence.store, evidence.after
    if store is None:
        return unknown(9, "the store did not open")
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    shown = ", ".join(map(str, marks))
    if evidence.is_writable and (list(marks) != sorted(marks) or store.flushed_offset != store.max_offset):
        return broken(9, "the watermarks are out of order", expected="min <= flushed = written", found=shown)
    if not evidence.is_writable:
        return unknown(9, "a read-only store moves no watermark")
    ahead = checkpoint_is_not_ahead(evidence.recovered)
    if ahead.verdict == "broken":
        return replace(ahead, file=_CHECKPOINT)
    queues_ms, index_ms = checkpoint_times(evidence.opened.durable())
    missing = (
        None
        if 5 in evidence.shape.unknown or evidence.not_derivable or after.begin
        else missing_before(evidence.durable, evidence.derived, after.end, queues_ms=queues_ms, index_ms=index_ms,
                            settings=evidence.shape.settings)
    )  # fmt: skip
    if missing is not None:
        return broken(9, f"the checkpoint is newer than the durable queues and index: {missing}", file=_CHECKPOINT,
                      found=f"{queues_ms}, {index_ms}")  # fmt: skip
    return holds(9, f"minimum, flushed, committed and written are {shown}; the checkpoint is not ahead")


@judge(13)
def progress_files_are_whole(evidence: Evidence) -> Ruling:
    """Number 13: small files are whole after the recovery; progress is what it was, as far as the queues go."""
    if evidence.store is None:
        return unknown(13, "the store did not open")
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    for where, content in (("", evidence.content), (" on the disk", evidence.durable)):
        changed = badly_changed(evidence, content)
        if changed:
            return broken(13, f"recovery changed{where} what a file says", file=changed)
        torn = _torn_own(content, is_disk=bool(where)) if evidence.is_writable else ""
        if torn:
            return broken(13, f"a small file of the store is not whole{where}", file=torn)
    torn = next((name for name in sorted(was) if not is_whole(was, name)), "")
    if torn:
        return unknown(13, f"{torn} was not whole in the image already, nor is its backup; recovery left it alone")
    return holds(13, f"checkpoint and floor are whole, and {counted(len(was), 'progress file')}, within the queues")


def _torn_own(content: Mapping[str, bytes], *, is_disk: bool) -> str:
    """Return the name of a small file of the store that cannot be read.

    A checkpoint that is not on the disk yet is as good as none, and none is needed. What a longer one has behind its
    size is not looked at.
    """
    if floor_in(content.get(_FLOOR, b"")) is None:
        return _FLOOR
    return "" if is_disk or has_times(content.get(_CHECKPOINT, b"")[:CHECKPOINT_BYTES]) else _CHECKPOINT


@judge(14)
def is_exclusive(evidence: Evidence) -> Ruling:
    """Number 14: while the store is open, another opener is refused and has changed nothing."""
    if evidence.store is None:
        return unknown(14, "the store did not open")
    files, entries = evidence.opened.files, len(evidence.opened.files.journal)
    second, refusal = evidence.recoveries.open_on(files)
    if second is not None:
        return broken(14, "a second opener is let in", file=_LOCK)
    if not refusal.startswith("StoreInUse"):
        return broken(14, "a second opener fails for another reason than the first", file=_LOCK, found=refusal)
    changes = [entry for entry in files.journal[entries:] if not isinstance(entry, DirectorySynced | FileSynced)]
    if changes or evidence.opened.content() != evidence.content:
        return broken(14, "a second opener changed something before it was refused", file=_LOCK)
    return holds(14, "a second opener is refused, and has changed nothing")
