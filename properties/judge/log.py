"""Judge the log: its bytes, its bounds and its messages (contract 1, 2, 3, 9 and 10).

Expected bytes come from the ledger and legal logs from the model, or both from a crash image. Nothing is decoded with
the store's codec.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap

from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.record import Record
from tornpage.properties.judge.evidence import Answers, Evidence, first_difference, is_base, left_past, name_of
from tornpage.properties.judge.image import AcknowledgedRecord, Truth
from tornpage.properties.judge.image_evidence import ImageEvidence
from tornpage.properties.judge.rulings import Ruling, broken, counted, judge, unknown

__all__ = [
    "begins_where_it_may",
    "covers_the_floor",
    "due_in",
    "is_a_prefix",
    "log_reads_to_its_end",
    "messages_are_served",
    "nothing_behind_the_end",
    "promises_of_an_image_are_kept",
    "records_were_put",
    "watermarks_in_order",
    "why_due",
]

_SHOWN_BYTES = 16


@judge(10)
def begins_where_it_may(found: Evidence) -> None:
    """Contract 10: the log begins where a clean-up left it, and remembers the deleted topics.

    If nothing was ever deleted, a later begin means that the first records are lost (contract 1).
    """
    begins = {(begin, deleted) for _, _, begin, deleted in found.legal}
    if found.key[2:] not in begins:
        if begins == {(0, ())} and found.store.min_offset:
            raise GuaranteeBroken(1, "the log has lost its first records", "0", str(found.store.min_offset))
        expected = " or ".join(starmap(_begin_text, sorted(begins)))
        sentence = "the log begins at another offset, or remembers other deleted topics, than what was deleted"
        raise GuaranteeBroken(10, sentence, expected, _begin_text(*found.key[2:]))


def _begin_text(begin: int, deleted: tuple[tuple[str, int], ...]) -> str:
    """Return the begin offset of a log, and its deleted topics."""
    topics = ", ".join(f"{topic} deleted below {offset}" for topic, offset in deleted)
    return f"log begin {begin}" + (f", {topics}" if topics else "")


@judge(1)
def messages_are_served(found: Answers) -> None:
    """Contract 1: the store serves the messages of its log and no others."""
    served = [(each.offset, each.body) for each in observed("messages", lambda: list(found.store.messages()))]
    expected = [(record.offset, record.message.body) for record in found.log.retained]
    if served != expected:
        offsets = [[offset for offset, _ in each] for each in (expected, served)]
        raise GuaranteeBroken(1, "the store serves other messages than were put", *map(str, offsets))


@judge(1)
def is_a_prefix(found: Evidence) -> Ruling | None:
    """Contract 1: the kept bytes are those that were appended.

    They are in consecutive files, none missing and none too many.

    Files that were not recovered are compared as a whole, whatever their names and sizes are.
    """
    begin, end, file_bytes = found.begin, found.end, found.settings.file_bytes
    present, is_recovered = found.log_paths(), found.is_recovered
    if is_recovered:
        bases = range(begin, max(end, begin + bool(begin)), file_bytes)[: len(present) + 1]  # `end` may be any number
        names = [f"{base:020d}" for base in bases]
        if [_base_name(path) for path in present] != names:
            raise GuaranteeBroken(1, "the log's files do not fit its begin and end", str(names), str(present))
    for path in present:
        base = int(_base_name(path))
        content, expected = found.files.peek(path, 0, file_bytes + 1), found.ledger.expected(base, end)
        if is_recovered and len(content) != file_bytes:
            return broken(1, f"{path} has the wrong size", file=name_of(path), offset=base, expected=str(file_bytes),
                          found=f"{len(content)}, or more")  # fmt: skip
        kept = min(file_bytes, end - base)
        if content[:kept] != expected[:kept]:
            at = first_difference(content[:kept], expected[:kept])
            wanted, stored = (each[at : at + _SHOWN_BYTES].hex(" ") for each in (expected, content))
            return broken(1, f"the log differs from what was appended at offset {base + at}", file=name_of(path),
                          offset=base + at, expected=wanted, found=stored)  # fmt: skip
    return None


@judge(1)
def log_reads_to_its_end(evidence: ImageEvidence) -> Ruling | None:
    """Contract 1: the decoder reads the log of an image to the end that the store states.

    A recorded disk needs no such judge: each of its records was decoded when it was put.
    """
    before, after = evidence.before, evidence.after
    if not evidence.is_writable:
        return None
    if evidence.store.max_offset != after.end:
        return broken(1, "the log does not end where the store says", file=after.file_of(after.end), offset=after.end,
                      expected=str(after.end), found=str(evidence.store.max_offset))  # fmt: skip
    if after.files and after.begin != before.begin:
        return broken(1, "the log does not begin where that of the image does", file=after.files[after.begin],
                      offset=after.begin, expected=str(before.begin), found=str(after.begin))  # fmt: skip
    if after.problems:
        problem = after.problems[0]
        return broken(1, problem.sentence, file=problem.file, offset=problem.offset)
    return None


@judge(1)
def records_were_put(evidence: ImageEvidence) -> Ruling | None:
    """Contract 1: each record of an image with a truth was put with these bytes.

    No record is missing in between.

    A recorded disk needs no such judge: its ledger has each record from its put.
    """
    if evidence.truth is None:
        return None
    kept = {record.offset: record for record in evidence.after.records}
    for record in kept.values():
        acknowledged = evidence.truth.records.get(record.offset)
        if acknowledged is None or not acknowledged.is_record(record):
            if evidence.truth.has_copies and acknowledged is None:
                return unknown(1, f"the record at {record.offset} may be the copy of a delayed message")
            file = evidence.after.file_of(record.offset)
            return broken(1, "a record differs from every record that was put", file=file, offset=record.offset)
    for offset in evidence.truth.records:
        if evidence.after.begin <= offset < evidence.after.end and offset not in kept:
            file = evidence.after.file_of(offset)
            return broken(1, "a record that was put is missing in the middle of the log", file=file, offset=offset)
    return None


@judge(2)
def covers_the_floor(found: Evidence) -> Ruling | None:
    """Contract 2: the log is one of the legal logs.

    It lacks no promised record, and has no record that was cut.

    The legal logs are those of the model on a recorded disk and after a kill. For an image it is the log of its valid
    records, because the operations that led to it are not known to the model.
    """
    if found.key in found.legal:
        return None
    legal = sorted(key[:2] for key in found.legal)
    count, end, *_ = found.key
    if count < legal[0][0]:
        sentence = "records that had to survive are missing after recovery"
    elif count > legal[-1][0]:
        sentence = "the recovered log has records that must not be there"
    else:
        sentence = "the recovered log is not one that may survive"
    return broken(2, sentence, offset=end, expected=_log_text(legal[0], legal[-1]),
                  found=_log_text((count, end), (count, end)))  # fmt: skip


def _log_text(least: tuple[int, int], most: tuple[int, int]) -> str:
    """Return number of records and end offset of a log, or the ranges of both."""
    counts = counted(most[0], "record") if least[0] == most[0] else f"{least[0]:,} to {counted(most[0], 'record')}"
    return f"{counts}, log end {least[1]}" + ("" if least[1] == most[1] else f" to {most[1]}")


@judge(2)
def promises_of_an_image_are_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 2: the log reaches its durable floor, and has what the truth requires.

    On a recorded disk and after a kill both are part of the legal logs, and `covers_the_floor` judges them. An image
    may have lost required records before any recovery; this number is then unknown.
    """
    before, after = evidence.before, evidence.after
    floor = 0 if evidence.floor is None else evidence.floor.offset
    if evidence.is_writable and after.end < floor:
        return broken(2, "the log ends below its durable floor", file="config/durableFloor", offset=after.end,
                      expected=str(floor), found=str(after.end))  # fmt: skip
    if evidence.truth is None:
        return unknown(
            2,
            f"an image does not show what was acknowledged (--truth FILE adds it); none of "
            f"{counted(len(before.records), 'valid record')} up to {before.end} is missing",
        )
    return _due_is_there(evidence, evidence.truth)


def _due_is_there(evidence: ImageEvidence, truth: Truth) -> Ruling | None:
    before, why = evidence.before, why_due(truth)
    stayed = (*evidence.after.records, *(() if evidence.is_writable else evidence.after.past_end))
    kept = {record.offset for record in stayed}
    lost = [acknowledged for acknowledged in due_in(evidence, truth) if acknowledged.offset not in kept]
    if not lost:
        return None
    first = lost[0]
    # A store that opens for writing keeps no record past a hole of the image, such as a lost blank.
    readable = before.records if evidence.is_writable else (*before.records, *before.past_end)
    held = {record.offset: record for record in readable}
    gone = [acknowledged for acknowledged in lost if not _holds(held, acknowledged)]
    if not gone or gone[0].offset > first.offset:
        file = before.file_of(first.offset)
        return broken(2, f"{len(lost):,} records that were {why} are missing", file=file, offset=first.offset)
    return unknown(
        2,
        f"the valid log of the image lacks {len(gone):,} records that were {why}, from {gone[0].offset} on, which no "
        f"crash may lose; they and {len(lost) - len(gone):,} records past them are not in the log (see number 7)",
    )


def due_in(evidence: ImageEvidence, truth: Truth) -> list[AcknowledgedRecord]:
    """Return the records that have to be in the log of an image.

    A kill takes what a transient store pool holds, so that of such a store only flushed records are due.
    """
    has_pool = evidence.store_layout.config.transient_store_pool_enable
    due = [acknowledged for acknowledged in truth.due if acknowledged.flushed or not has_pool]
    return [told for told in due if told.offset >= evidence.before.begin]


def why_due(truth: Truth) -> str:
    """Return the reason why records have to survive."""
    return "flushed" if truth.power_loss else "acknowledged before the process died"


def _holds(held: Mapping[int, Record], acknowledged: AcknowledgedRecord) -> bool:
    return acknowledged.offset in held and acknowledged.is_record(held[acknowledged.offset])


@judge(3)
def nothing_behind_the_end(found: Evidence) -> Ruling | None:
    """Contract 3: every byte past the end is zero, in the page cache and on the disk."""
    end, file_bytes = found.end, found.settings.file_bytes
    there = found.files.paths()
    for path in found.log_paths(durable=True):
        if not is_base(_base_name(path)):
            return broken(1, f"{path} is not a log file", file=name_of(path))
        base = int(_base_name(path))
        live = found.files.peek(path, 0, file_bytes) if path in there else b""
        for where, stored in (("on disk", found.durable.files[path]), ("in the page cache", live)):
            left = left_past(end, base, stored)
            if left is not None:
                sentence = f"a byte that recovery cut is still {where} at offset {left[0]}"
                return broken(3, sentence, file=name_of(path), offset=left[0], expected="0x00",
                              found=f"0x{left[1]:02x}")  # fmt: skip
    return None


@judge(9)
def watermarks_in_order(found: Evidence) -> None:
    """Contract 9: minimum <= flushed <= committed <= written, and all is flushed."""
    store = found.store
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    if list(marks) != sorted(marks) or store.flushed_offset != store.max_offset:
        found_marks = ", ".join(map(str, marks))
        raise GuaranteeBroken(
            9, "the watermarks are out of order after recovery", "min <= flushed = written", found_marks
        )


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]
