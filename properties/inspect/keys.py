"""Look up records by a key: through the index where it can answer, else in the log.

The index answers for the offsets between the first and the last entry of each file, if the chain of the key's slot is
intact. The log itself is read for offsets before, between and after the files, and for the range of a file that cannot
answer. The records decide about the candidates of the index, so equal hashes do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index import index_hash
from tornpage.properties.decode.index_files import BrokenChain, IndexReader, opened_index, unsettled
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import LocatedItem, LogFile, StoreView, iter_items
from tornpage.properties.inspect.log import shown_row
from tornpage.properties.inspect.lookups import nothing_found, unread
from tornpage.properties.inspect.place import (
    Document,
    Progress,
    derived_severity,
    log_range,
    part_document,
    reading,
    without_progress,
)
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import Row
from tornpage.properties.inspect.units import REBUILD_INDEX

__all__ = ["by_key"]

_Range = tuple[int, int]
"""Offsets from the first one to the one after the last."""


def by_key(view: StoreView, query: Query, progress: Progress = without_progress) -> Document:
    """Return the records with a key, in the order of the log."""
    findings: list[Finding] = []
    answers: set[int] = set()
    covered: list[_Range] = []
    if query.topic is not None:
        answers, covered = _ask_index(view, query, findings)
    everything = log_range(view)
    ranges = [everything] if query.scan else list(_between(everything, covered))
    scan = _Scan(view, query, reading(*everything, progress))
    with RecordReader(view) as reader:
        found = _matching_at(answers, query, reader)
        by_index = set(found)
        for begin, end in ranges:
            before = scan.records
            found |= {located.item.offset: located for located in scan.run(begin, end)}
            if scan.records > before:  # some keys of the two adjacent records may be in a missing index file
                found |= _matching_at((begin - 1, end), query, reader)
        rows = _rows(view, query, found, reader)
    findings += scan.findings
    findings += _scan_findings(query, scan, covered)
    if query.scan and query.topic is not None:
        findings += _missing(view, found, by_index, covered)
    if not found:
        findings.append(nothing_found(f"no record with the key {query.key!r}", None))
    figures = {
        "records": len(found),
        "index_answers": len(answers),
        "records_scanned": scan.records,
        "bytes_scanned": scan.bytes_read,
    }
    return part_document(figures, rows, findings)


def _matching_at(offsets: Iterable[int], query: Query, reader: RecordReader) -> dict[int, LocatedItem]:
    """Return the records at these offsets that exist and match the query."""
    found: dict[int, LocatedItem] = {}
    for offset in offsets:
        item, file = reader.at(offset), reader.file_of(offset)
        if isinstance(item, Record) and file is not None and query.accepts(item):
            found[offset] = LocatedItem(file.label, item)
    return found


class _Scan:
    """Reads ranges of the log for records that a query accepts."""

    def __init__(self, view: StoreView, query: Query, reached: Callable[[int], None]) -> None:
        self._view = view
        self._query = query
        self._reached = reached
        self.records = 0
        self.bytes_read = 0
        self.first: int | None = None
        self.findings: list[Finding] = []

    def run(self, begin: int, end: int) -> Iterator[LocatedItem]:
        for located in iter_items(self._view, from_offset=begin, on_file=self._see_file_end, reached=self._reached):
            item = located.item
            if item.offset >= end:
                return
            if not isinstance(item, Record) or item.offset < begin:
                continue
            self.first = item.offset if self.first is None else self.first
            self.records += 1
            self.bytes_read += item.size_bytes
            if self._query.accepts(item):
                yield located

    def _see_file_end(self, file: LogFile, _: bool, error: OSError | None) -> None:
        if error is not None:
            self.findings.append(unread(file, error))


def _ask_index(view: StoreView, query: Query, findings: list[Finding]) -> tuple[set[int], list[_Range]]:
    """Return the candidates of the index, and the ranges for which they are complete."""
    assert query.topic is not None
    assert query.key is not None
    key_hash = index_hash(query.topic, query.key)
    answers: set[int] = set()
    covered: list[_Range] = []
    for reader in opened_index(view.store_dir, query.slots, findings):
        if reader.entry_count == 0:
            continue
        if reader.slots is None:
            findings.append(unsettled(reader, query.slots))
            continue
        hits: list[int] = []
        try:
            hits += [entry.offset for entry in reader.chain(key_hash) if entry.key_hash == key_hash]
            covered += _range_of(reader)
        except BrokenChain as error:
            findings.append(_broken(view, reader.file.label, str(error)))
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            findings.append(Finding("IX_NO_ACCESS", "note", reader.file.label, None, message, "look again"))
        answers.update(hits)
    return answers, covered


def _range_of(reader: IndexReader) -> list[_Range]:
    """Return the range of a file: that of its header, limited to what its entries confirm."""
    header, first, last = reader.header, reader.entry(1), reader.entry(reader.entry_count)
    begin, end = max(header.begin_offset, first.offset), min(header.end_offset, last.offset)
    return [(begin, end + 1)] if begin <= end else []


def _between(everything: _Range, covered: list[_Range]) -> Iterator[_Range]:
    """Yield the ranges that nothing covers."""
    begin, end = everything
    for first, past in sorted(covered):
        if first > begin:
            yield begin, min(first, end)
        begin = max(begin, past)
    if begin < end:
        yield begin, end


def _rows(view: StoreView, query: Query, found: dict[int, LocatedItem], reader: RecordReader) -> list[Row]:
    rows: list[Row] = []
    for offset in sorted(found):
        item = found[offset].item
        if not query.has_room(len(rows)):
            break
        if isinstance(item, Record) and item.end_offset > (query.offset or 0):
            row = shown_row(found[offset], reader if query.hex else None, drops_joined=query.drops_joined)
            rows += [] if row is None else [row]
    return rows


def _scan_findings(query: Query, scan: _Scan, covered: list[_Range]) -> list[Finding]:
    """Return a finding that the log was read, with the reason."""
    if not scan.records:
        return []
    amount = f"{scan.records} records, {scan.bytes_read} bytes, from offset {scan.first} on, were read from the log"
    if query.topic is None:
        message, remedy = f"without a topic the index cannot be used: {amount}", "give --topic to use the index"
    elif query.scan:
        message, remedy = f"as requested, {amount}", "none needed"
    elif not covered:
        message, remedy = f"no index file can answer: {amount}", "the store builds the index when it opens"
    else:
        message, remedy = f"the index does not cover the whole log: {amount}", "none needed for records without keys"
    return [Finding("LOOK_SCANNED", "note", "index", scan.first, message, remedy)]


def _missing(
    view: StoreView, found: dict[int, LocatedItem], by_index: set[int], covered: list[_Range]
) -> list[Finding]:
    """Return findings for records that the log has and the index lacks."""
    lost = [
        found[offset]
        for offset in sorted(set(found) - by_index)
        if any(begin <= offset < end for begin, end in covered)
    ]
    severity = derived_severity(view)
    return [
        Finding(
            "IX_KEY_MISSING", severity, each.file, each.item.offset, "the index has no entry for the key", REBUILD_INDEX
        )
        for each in lost
    ]


def _broken(view: StoreView, label: str, message: str) -> Finding:
    return Finding("IX_BROKEN", derived_severity(view), label, None, message, REBUILD_INDEX)
