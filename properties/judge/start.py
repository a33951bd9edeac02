"""Judge the open: how a store starts, and that it excludes others (contract 7 and 14).

properties/explore/kills/judge.py judges the marker that a killed process leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.record import Record
from tornpage.properties.disk.journal import DirectorySynced, FileSynced
from tornpage.properties.judge.evidence import Evidence
from tornpage.properties.judge.image_evidence import ImageEvidence
from tornpage.properties.judge.rulings import Ruling, broken, judge
from tornpage.properties.program.log_places import LOG_PATHS, ROOT

__all__ = [
    "crash_left_whole_files",
    "cut_records_are_kept",
    "damage_is_named_and_kept",
    "is_exclusive",
    "is_in_quarantine",
    "opens_for_writing",
]

_LOCK, _QUARANTINE = "lock", "quarantine/"
_QUEUES, _EXTENSIONS = f"{ROOT}/consumequeue/", f"{ROOT}/consumequeue_ext/"


def crash_left_whole_files(sizes: Mapping[str, int], *, log_bytes: int, queue_bytes: int, ext_bytes: int) -> None:
    """Contract 7: after a crash, each file of log and queues has its configured size.

    `sizes` are the sizes by path before recovery, the others those of one file. RocketMQ 4.9.3 does not start on any
    other size (hole G1), so a killed store could not go back to it.
    """
    for path, found in sizes.items():
        if path.startswith(LOG_PATHS):
            expected = log_bytes
        elif path.startswith(_QUEUES):
            expected = queue_bytes
        elif path.startswith(_EXTENSIONS):
            expected = ext_bytes
        else:
            continue
        if found != expected:
            raise GuaranteeBroken(
                7, f"a crash leaves an incomplete file that RocketMQ does not accept: {path}",
                f"{expected} bytes", f"{found} bytes",
            )  # fmt: skip


@judge(7)
def opens_for_writing(found: Evidence) -> None:
    """Contract 7: every crash state opens for writing, and damage is noticed."""
    if found.refusal:
        raise GuaranteeBroken(7, f"the store does not open: {found.refusal}")
    reason, damage = found.store.read_only_reason, found.damage
    if reason is None and damage:
        raise GuaranteeBroken(7, f"the store does not notice damage: {damage}", "read-only", "read-write")
    if reason is not None and not damage:
        raise GuaranteeBroken(7, "the store opens read-only after a crash", "read-write", reason)


@judge(7)
def cut_records_are_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 7: valid records that recovery cuts are in quarantine.

    The exception is a record whose loss a floor permits.

    On a recorded disk the ledger knows each record that may be cut. Only an image has records without a known put.
    """
    if not evidence.is_writable or evidence.floor is not None:
        return None
    lost = [record for record in evidence.before.past_end if not is_in_quarantine(evidence.content, record)]
    if not lost:
        return None
    sentence = f"{len(lost):,} valid records past the cut are not in quarantine, and no floor permits their loss"
    return broken(7, sentence, file=evidence.before.file_of(lost[0].offset), offset=lost[0].offset)


def is_in_quarantine(content: Mapping[str, bytes], record: Record) -> bool:
    """Whether a copy that recovery made before its cut holds a record."""
    for name, data in content.items():
        base = name.removeprefix(_QUARANTINE).partition(".")[0]
        if name.startswith(_QUARANTINE) and base.isdecimal():
            at = record.offset - int(base)
            if at >= 0 and data[at : at + record.size_bytes] == record.raw:
                return True
    return False


@judge(7)
def damage_is_named_and_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 7: a read-only store names the damage, serves the rest, changes nothing.

    A crash leaves no damage. A recorded disk has damage only if an operation of the run corrupts its files, and
    properties/lockstep/corruption.py then knows what was changed.
    """
    if evidence.is_writable:
        return None
    store, before = evidence.store, evidence.before
    named = [finding for finding in store.findings if finding.severity == "damage"]
    if not any(finding.file and finding.offset >= 0 for finding in named):
        return broken(7, "no finding names file and offset of the damage", found=str(store.read_only_reason))
    valid = {record.offset: record for record in (*before.records, *before.past_end)}
    try:
        served = observed("messages", lambda: list(store.messages()))
    except GuaranteeBroken as error:
        return broken(7, f"a damaged store cannot be read: {error.sentence}")
    for message in served:
        record = valid.pop(message.offset, None)
        if record is None or record.body != message.body:
            return broken(7, "a damaged store serves a message that does not verify", offset=message.offset)
    if valid:
        file = before.file_of(min(valid))
        return broken(7, f"{len(valid):,} records that verify are not served", file=file, offset=min(valid))
    was = evidence.seen.content
    changed = _changed(evidence.content, was) or _changed(evidence.durable_content, was)
    return broken(7, "opening a damaged store changed it", file=changed) if changed else None


def _changed(found: Mapping[str, bytes], was: Mapping[str, bytes]) -> str:
    """Return the first file that has changed, empty if none has; the lock file may be created."""
    names = sorted((found.keys() | was.keys()) - {_LOCK})
    return next((name for name in names if found.get(name) != was.get(name)), "")


@judge(14)
def is_exclusive(evidence: ImageEvidence) -> Ruling | None:
    """Contract 14: while the store is open, another open fails and changes nothing.

    Here the other open is in the same process; properties/explore/kills/restarts.py judges two processes.
    """
    files, entries = evidence.opened.files, len(evidence.opened.files.journal)
    second, refusal = evidence.recoveries.open_on(files)
    if second is not None:
        return broken(14, "a second open succeeds", file=_LOCK)
    if not refusal.startswith("StoreInUse"):
        return broken(14, "a second open fails for another reason than the open store", file=_LOCK, found=refusal)
    changes = [entry for entry in files.journal[entries:] if not isinstance(entry, DirectorySynced | FileSynced)]
    if changes or evidence.opened.content() != evidence.content:
        return broken(14, "a second open changed the store before it failed", file=_LOCK)
    return None
