"""Judges of the open: how a store starts, and that it is alone (contract 7 and 14).

A process that is killed leaves a marker, which properties/explore/kills/judge.py judges.
"""

from __future__ import annotations

from collections.abc import Mapping

from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.record import Record
from tornpage.properties.disk.journal import DirectorySynced, FileSynced
from tornpage.properties.judge.evidence import Evidence
from tornpage.properties.judge.image_evidence import ImageEvidence
from tornpage.properties.judge.rulings import Ruling, broken, judge

__all__ = [
    "cut_records_are_kept",
    "damage_is_named_and_kept",
    "is_exclusive",
    "is_in_quarantine",
    "opens_for_writing",
]

_LOCK, _QUARANTINE = "lock", "quarantine/"


@judge(7)
def opens_for_writing(found: Evidence) -> None:
    """Contract 7: every state inside the crash model is recovered to a writable store, and damage is noticed."""
    if found.refusal:
        raise GuaranteeBroken(7, f"the store does not open: {found.refusal}")
    reason, damage = found.store.read_only_reason, found.damage
    if reason is None and damage:
        raise GuaranteeBroken(7, f"damage goes unnoticed: {damage}", "read-only", "read-write")
    if reason is not None and not damage:
        raise GuaranteeBroken(7, "the store opens read-only after a crash", "read-write", reason)


@judge(7)
def cut_records_are_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 7: valid records that a recovery cuts are in quarantine, unless a floor says that they may go.

    On a recorded disk the ledger knows each record that may be cut; only an image has records that no put explains.
    """
    if not evidence.is_writable or evidence.floor is not None:
        return None
    lost = [record for record in evidence.before.behind if not is_in_quarantine(evidence.content, record)]
    if not lost:
        return None
    sentence = f"{len(lost):,} valid records behind the cut are in no quarantine, and no floor says they may go"
    return broken(7, sentence, file=evidence.before.file_of(lost[0].offset), offset=lost[0].offset)


def is_in_quarantine(content: Mapping[str, bytes], record: Record) -> bool:
    """Whether one of the copies that recovery made before it cut holds a record."""
    for name, data in content.items():
        base = name.removeprefix(_QUARANTINE).partition(".")[0]
        if name.startswith(_QUARANTINE) and base.isdecimal():
            at = record.offset - int(base)
            if at >= 0 and data[at : at + record.size_bytes] == record.raw:
                return True
    return False


@judge(7)
def damage_is_named_and_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 7: a read-only store names the damage, serves what verifies, and changes nothing.

    A crash leaves no damage: no recorded disk has any, unless an operation of the run corrupts its files, and then
    properties/lockstep/corruption.py knows what was changed.
    """
    if evidence.is_writable:
        return None
    store, before = evidence.store, evidence.before
    named = [finding for finding in store.findings if finding.severity == "damage"]
    if not any(finding.file and finding.offset >= 0 for finding in named):
        return broken(7, "no finding names file and offset of the damage", found=str(store.read_only_reason))
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
    was = evidence.seen.content
    changed = _changed(evidence.content, was) or _changed(evidence.durable_content, was)
    return broken(7, "a damaged store was changed by opening it", file=changed) if changed else None


def _changed(found: Mapping[str, bytes], was: Mapping[str, bytes]) -> str:
    """Return the first file that is not what it was, nothing if none is; the lock may be made."""
    names = sorted((found.keys() | was.keys()) - {_LOCK})
    return next((name for name in names if found.get(name) != was.get(name)), "")


@judge(14)
def is_exclusive(evidence: ImageEvidence) -> Ruling | None:
    """Contract 14: while the store is open, another opener is refused and has changed nothing.

    Here the other opener is of the same process; properties/explore/kills/restarts.py judges two real processes.
    """
    files, entries = evidence.opened.files, len(evidence.opened.files.journal)
    second, refusal = evidence.recoveries.open_on(files)
    if second is not None:
        return broken(14, "a second opener is let in", file=_LOCK)
    if not refusal.startswith("StoreInUse"):
        return broken(14, "a second opener fails for another reason than the first", file=_LOCK, found=refusal)
    changes = [entry for entry in files.journal[entries:] if not isinstance(entry, DirectorySynced | FileSynced)]
    if changes or evidence.opened.content() != evidence.content:
        return broken(14, "a second opener changed something before it was refused", file=_LOCK)
    return None
