"""Look up records in the log by physical offset, message id, store time or content.

A look-up by offset or id reads some MiB at most. A look-up by time reads only files that may match. The times of a file
lie between its first record's and that of the next file, as long as the first records' times do not decrease. A file
that does not begin with a record continues the times of the file before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.record import Bad, Record, message_id
from tornpage.properties.decode.store import LocatedItem, LogFile, StoreView, iter_items
from tornpage.properties.inspect.log import log_document, shown_row
from tornpage.properties.inspect.place import Document, Progress, log_range, part_document, reading, without_progress
from tornpage.properties.inspect.query import I64_MAX, Query, offset_of_id
from tornpage.properties.inspect.rows import Row

__all__ = ["by_id", "by_time", "in_log", "nothing_found", "unread"]


def in_log(view: StoreView, query: Query, progress: Progress = without_progress) -> Document:
    """Return the rows of the log that match.

    The verdict is that of the whole log if the query names no place.
    """
    topics: set[str] = set()

    def accepts(record: Record) -> bool:
        topics.add(record.topic_text)
        return query.accepts(record)

    document = log_document(
        view,
        limit=query.limit,
        from_offset=query.offset or 0,
        whole=query.offset is None,
        accepts=accepts if query.has_filter else None,
        with_hex=query.hex,
        drops_joined=query.drops_joined,
        progress=progress,
    )
    if query.offset is not None and not document["rows"] and query.limit != 0:
        end = view.files[-1].base_offset + view.file_bytes if view.files else 0
        begin = view.files[0].base_offset if view.files else 0
        what = "no matching record" if query.has_filter else "no record"
        message = f"{what} at or after offset {query.offset}; the log files hold the offsets {begin} to {end}"
        _add_note(document, nothing_found(message, query.offset))
    elif query.has_filter and not document["rows"] and query.limit != 0:
        is_unknown = query.topic is not None and query.topic not in topics
        unknown = f"no record of the topic {query.topic!r} is in the log"
        _add_note(document, nothing_found(unknown if is_unknown else "no matching record", None))
    return document


def _add_note(document: Document, note: Finding) -> None:
    document["findings"] += part_document({}, [], [note])["findings"]
    document["figures"]["findings"] += 1
    document["figures"]["notes"] += 1


def by_id(view: StoreView, query: Query) -> Document:
    """Return the record that a store-side message id names."""
    assert query.message_id is not None
    offset = offset_of_id(query.message_id)
    with RecordReader(view) as reader:
        item = reader.at(offset)
        if not isinstance(item, Record):
            why = f": {item.reason} ({item.field})" if isinstance(item, Bad) else ""
            message = f"no valid record begins at offset {offset}, which the id names{why}"
            remedy = "a client's unique key looks the same: ask for it with --key"
            return part_document({"records": 0}, [], [nothing_found(message, offset, remedy)])
        file = reader.file_of(offset)
        assert file is not None
        row = shown_row(LocatedItem(file.label, item), reader if query.hex else None, drops_joined=query.drops_joined)
    findings: list[Finding] = []
    if message_id(item) != query.message_id.strip().upper():
        host, port = item.store_host
        message = f"the record was stored by {host}:{port}, another host than the id names"
        remedy = "none needed if the store was copied; else the id is that of another broker's message"
        findings.append(Finding("LOOK_OTHER_HOST", "note", file.label, offset, message, remedy))
    rows = [] if row is None or not query.has_room(0) else [row]
    return part_document({"records": 1}, rows, findings)


def by_time(view: StoreView, query: Query, progress: Progress = without_progress) -> Document:
    """Return the records whose store time lies between two times."""
    assert query.times is not None
    rows: list[Row] = []
    findings: list[Finding] = []
    chosen, is_narrow = _files_between(view, *query.times)
    if not is_narrow and len(view.files) > 1:
        message = "store times go back from one log file to a later one; the whole log was read"
        findings.append(Finding("LOOK_SCANNED", "note", "commitlog", None, message, "none needed"))
    records = bytes_read = 0
    errors: list[tuple[LogFile, OSError]] = []
    with RecordReader(view) as reader:
        for located in _items_of(view, chosen, errors, progress):
            item = located.item
            if not query.has_room(len(rows)):
                break
            if not isinstance(item, Record) or item.end_offset <= (query.offset or 0):
                continue
            records += 1
            bytes_read += item.size_bytes
            if not query.accepts(item):
                continue
            row = shown_row(located, reader if query.hex else None, drops_joined=query.drops_joined)
            if row is not None:
                rows.append(row)
    findings += [unread(file, error) for file, error in errors]
    if not rows and query.limit != 0:
        findings.append(nothing_found("no record was stored between these times", None))
    return part_document({"records": records, "record_bytes": bytes_read, "files_read": len(chosen)}, rows, findings)


def nothing_found(message: str, offset: int | None, remedy: str = "none needed") -> Finding:
    """Return the finding of a look-up without a result."""
    return Finding("LOOK_NOTHING", "note", "commitlog", offset, message, remedy)


def unread(file: LogFile, error: OSError) -> Finding:
    """Return the finding of a log file that a look-up could not read."""
    if isinstance(error, FileNotFoundError):
        message = "the file vanished while the store was read"
        return Finding("CL_FILE_GONE", "note", file.label, file.base_offset, message, "look again")
    message = f"cannot be read: {error.strerror or error}"
    return Finding("CL_NO_ACCESS", "note", file.label, file.base_offset, message, "look again with permission")


def _files_between(view: StoreView, begin: int, end: int) -> tuple[set[str], bool]:
    """Return the labels of the files that may hold these times.

    Also returns whether other files are excluded.
    """
    firsts: list[int | None] = []
    with RecordReader(view) as reader:
        for file in view.files:
            item = reader.at(file.base_offset)
            firsts.append(item.store_timestamp if isinstance(item, Record) else None)
    times = [time for time in firsts if time is not None]
    if times != sorted(times):
        return {file.label for file in view.files}, False
    # a file that does not begin with a record may have lost only its first page, so it lies between its neighbours
    least = list(accumulate((-I64_MAX - 1 if time is None else time for time in firsts), max))
    later = (I64_MAX if time is None else time for time in reversed([*firsts[1:], None]))
    most = list(accumulate(later, min))[::-1]
    return {
        file.label for file, first, last in zip(view.files, least, most, strict=False) if first <= end and last >= begin
    }, True


def _items_of(
    view: StoreView, labels: set[str], errors: list[tuple[LogFile, OSError]], progress: Progress
) -> Iterable[LocatedItem]:
    """Yield the items of some files."""
    chosen = replace(view, files=tuple(file for file in view.files if file.label in labels))

    def on_file(file: LogFile, _: bool, error: OSError | None) -> None:
        if error is not None:
            errors.append((file, error))

    return iter_items(chosen, on_file=on_file, reached=reading(*log_range(chosen), progress))
