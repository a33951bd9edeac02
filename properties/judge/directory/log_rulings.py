"""Rulings on the log: numbers 1, 2 and 3. Expected bytes are those of the image, or what a producer was told."""

from __future__ import annotations

from collections.abc import Mapping

from tornpage.properties.decode.record import Record
from tornpage.properties.judge.directory.evidence import Evidence
from tornpage.properties.judge.directory.truth import Told, Truth
from tornpage.properties.judge.log_bytes import first_difference, left_past
from tornpage.properties.judge.rulings import Ruling, broken, counted, holds, judge, unknown

__all__ = ["floor_is_covered", "is_a_prefix", "nothing_comes_back"]


@judge(1)
def is_a_prefix(evidence: Evidence) -> Ruling:
    """Number 1: what stays is, byte for byte, the beginning of the valid records of the image."""
    before, after, store = evidence.before, evidence.after, evidence.store
    if store is None:
        return unknown(1, "the store did not open")
    file_bytes = evidence.shape.settings.file_bytes
    if evidence.is_writable and store.max_offset != after.end:
        found = after.file_of(after.end)
        return broken(1, "the log does not end where the store says", file=found, offset=after.end,
                      expected=str(after.end), found=str(store.max_offset))  # fmt: skip
    if evidence.is_writable and after.files and after.begin != before.begin:
        return broken(1, "the log begins elsewhere than in the image", file=after.files[after.begin],
                      offset=after.begin, expected=str(before.begin), found=str(after.begin))  # fmt: skip
    if evidence.is_writable and after.problems:
        problem = after.problems[0]
        return broken(1, problem.sentence, file=problem.file, offset=problem.offset)
    end = after.end if evidence.is_writable else 1 << 62
    for base, name in after.files.items():
        kept, was = evidence.content[name], evidence.seen.content.get(before.files.get(base, ""), b"")
        length = max(0, min(end - base, file_bytes))
        if kept[:length] != was[:length]:
            at = first_difference(kept[:length], was[:length])
            return broken(1, "the log differs from the image", file=name, offset=base + at,
                          expected=was[at : at + 16].hex(" "), found=kept[at : at + 16].hex(" "))  # fmt: skip
    told = None if evidence.truth is None else _not_told(evidence, evidence.truth)
    if told is not None:
        return told
    whose = "as in the image" if evidence.truth is None else "as in the image, and as put"
    records = counted(len(after.records), "record")
    return holds(1, f"{records} from {after.begin} to {after.end}, byte for byte {whose}")


def _not_told(evidence: Evidence, truth: Truth) -> Ruling | None:
    """Return the ruling on the first record that nobody put, or that is missing in the middle."""
    kept = {record.offset: record for record in evidence.after.records}
    for record in kept.values():
        told = truth.records.get(record.offset)
        if told is None or not told.is_record(record):
            if truth.has_copies and told is None:
                return unknown(1, f"nobody was told of the record at {record.offset}; delayed messages are copied")
            file = evidence.after.file_of(record.offset)
            return broken(1, "a record was never put in this form", file=file, offset=record.offset)
    for offset in truth.records:
        if evidence.after.begin <= offset < evidence.after.end and offset not in kept:
            file = evidence.after.file_of(offset)
            return broken(1, "a record that was put is missing in the middle of the log", file=file, offset=offset)
    return None


@judge(2)
def floor_is_covered(evidence: Evidence) -> Ruling:
    """Number 2: what was promised to stay is there."""
    before, after, store = evidence.before, evidence.after, evidence.store
    if store is None:
        return unknown(2, "the store did not open")
    kept = _served(evidence)
    cut = [record for record in before.records if record.offset not in kept]
    if cut:
        file = before.file_of(cut[0].offset)
        sentence = f"{len(cut):,} valid records that nothing separates from the others are gone"
        return broken(2, sentence, file=file, offset=cut[0].offset, expected=str(before.end), found=str(after.end))
    floor = 0 if evidence.floor is None else evidence.floor.offset
    if evidence.is_writable and after.end < floor:
        return broken(2, "the log ends below its durable floor", file="config/durableFloor", offset=after.end,
                      expected=str(floor), found=str(after.end))  # fmt: skip
    if evidence.truth is None:
        return unknown(
            2,
            f"what was acknowledged is not in an image (--truth FILE says it); nothing is missing of "
            f"{counted(len(before.records), 'valid record')} up to {before.end}",
        )
    return _promised(evidence, evidence.truth, kept)


def _served(evidence: Evidence) -> Mapping[int, Record]:
    """Return the records that stayed: a read-only store keeps all that verify."""
    after = evidence.after
    return {record.offset: record for record in (after.records if evidence.is_writable else
                                                 (*after.records, *after.behind))}  # fmt: skip


def _promised(evidence: Evidence, truth: Truth, kept: Mapping[int, Record]) -> Ruling:
    before, why = evidence.before, "flushed" if truth.power_loss else "acknowledged before the process died"
    due = [told for told in truth.due if told.offset >= before.begin]
    lost = [told for told in due if told.offset not in kept]
    if not lost:
        return holds(2, f"none is missing of {counted(len(due), 'record')} {why}")
    first = lost[0]
    held = {record.offset: record for record in (*before.records, *before.behind)}
    gone = [told for told in lost if not _holds(held, told)]
    if not gone or gone[0].offset > first.offset:
        file = before.file_of(first.offset)
        return broken(2, f"{len(lost):,} records that were {why} are gone", file=file, offset=first.offset)
    return unknown(
        2,
        f"the image itself has lost {len(gone):,} records that were {why}, from {gone[0].offset} on, which no crash "
        f"may do; with {len(lost) - len(gone):,} behind them they are not in the log (number 7 says what is due then)",
    )


def _holds(held: Mapping[int, Record], told: Told) -> bool:
    return told.offset in held and told.is_record(held[told.offset])


@judge(3)
def nothing_comes_back(evidence: Evidence) -> Ruling:
    """Number 3: every byte behind the end is zero, in the page cache and on the disk, so none can come back."""
    if evidence.store is None:
        return unknown(3, "the store did not open")
    if not evidence.is_writable:
        return unknown(3, "a read-only store cuts nothing")
    end = evidence.after.end
    for where, content in (("in the page cache", evidence.content), ("on the disk", evidence.durable)):
        log = evidence.read(content)
        for base, name in log.files.items():
            left = left_past(end, base, content[name])
            if left is not None:
                return broken(3, f"a byte behind the end is still {where}", file=name, offset=left[0], expected="0x00",
                              found=f"0x{left[1]:02x}")  # fmt: skip
    cut = evidence.before.dirty_at
    was = "nothing was there" if cut is None else f"bytes from {cut} on were erased"
    return holds(3, f"everything behind {end} is zero, durably; {was}")
