"""Show consume queues: their list, the units of one with their records, its extension."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tornpage.properties.decode.consumequeue import (
    UNIT_BYTES,
    EmptyUnits,
    ExtReader,
    QueueFile,
    QueueUnit,
    list_queues,
    walk_units,
)
from tornpage.properties.decode.extension import list_extension, walk_extension
from tornpage.properties.decode.fields import extension_fields, unit_fields
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.queue_bounds import QueueBounds, first_unit_from, queue_bounds
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.file_sizes import not_contiguous, queue_sizes, usual_size
from tornpage.properties.inspect.place import Document, derived_severity, part_document
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import Row, hex_of, wide
from tornpage.properties.inspect.units import REBUILD, Pointing, judge_unit, pointed_columns

__all__ = ["all_bounds", "queue_extension", "queue_list", "queue_tails", "queue_units"]

_FINDINGS_MAX = 1000


def queue_list(view: StoreView, query: Query) -> Document:
    """Return one row per consume queue.

    Its columns are its range, its files, and the records of its first and last units.
    """
    files, strays, closed = list_queues(view.store_dir)
    findings = [
        Finding("CQ_STRAY_FILE", "note", label, None, "not part of a queue", "move it out of consumequeue")
        for label in strays
    ]
    findings += [_no_access(label, error) for label, error in closed if not isinstance(error, FileNotFoundError)]
    rows: list[Row] = []
    messages = queues = 0
    size = usual_size(file.size_bytes for file in files)
    for (topic, queue_id), group in groupby(files, key=lambda file: (file.topic, file.queue_id)):
        if query.topic not in (None, topic) or query.queue_id not in (None, queue_id):
            continue
        own = list(group)
        queues += 1
        findings += queue_sizes(view, own, size)
        bounds = _bounds(view, own, findings)
        if bounds is None:
            continue
        findings += not_contiguous(view, own)
        messages += bounds.max_offset - bounds.min_offset
        if query.has_room(len(rows)):
            rows.append(_queue_row(view, own, bounds))
    return part_document({"queues": queues, "messages": messages}, rows, findings)


def queue_units(view: StoreView, topic: str, queue_id: int, query: Query) -> Document:
    """Return the units of one queue, each with its extension and its record.

    They begin with the first unit that readers get, with `query.queue_offset`, or with the first unit whose record is
    at or after `query.offset`. Filters apply to the records.
    """
    files = _files_of(view, topic, queue_id)
    findings: list[Finding] = []
    size = usual_size(file.size_bytes for file in list_queues(view.store_dir)[0])
    findings += queue_sizes(view, files, size)
    bounds = _bounds(view, files, findings)
    if bounds is not None:
        findings += not_contiguous(view, files)
    start = 0 if bounds is None else bounds.min_offset
    if query.queue_offset is not None:
        start = query.queue_offset
    if query.offset is not None:
        try:
            start = max(start, _none_to(first_unit_from(files, physical_offset=query.offset)))
        except OSError as error:
            findings.append(_no_access(files[0].label, error))
    rows: list[Row] = []
    extension = view.store_dir / "consumequeue_ext" / files[0].path.parent.relative_to(view.store_dir / "consumequeue")
    log_min = view.files[0].base_offset if view.files else 0
    with RecordReader(view) as records, ExtReader(extension) as units:
        for file, item in _items(files, start, findings):
            if not query.has_room(len(rows)):
                break
            if isinstance(item, EmptyUnits):
                rows += [] if query.has_filter else [_empty_row(file, item)]
                continue
            pointing = judge_unit(
                item, topic, queue_id, records, units, log_min=log_min, properties_of=query.properties_of
            )
            if query.has_filter and not (pointing.record is not None and _accepted(query, pointing.record)):
                continue
            rows.append(_unit_row(file, item, pointing, query))
            if len(findings) < _FINDINGS_MAX:
                findings += pointing.findings(view, file, item)
    while rows and rows[-1]["kind"] == "empty":
        rows.pop()  # the unused end of the last file
    figures = {"units": sum(row["kind"] == "unit" for row in rows)}
    if bounds is not None:
        figures |= {"min_queue_offset": bounds.min_offset, "max_queue_offset": bounds.max_offset}
    return part_document(figures, rows, findings)


def queue_extension(view: StoreView, topic: str, queue_id: int, query: Query) -> Document:
    """Return the extension units of one queue by address, with the end marks of the files."""
    findings: list[Finding] = []
    rows: list[Row] = []
    try:
        paths = _extension_files(view, topic, queue_id)
    except OSError as error:
        reason = error.strerror or error
        raise InspectError(f"cannot list the extension of {topic}/{queue_id}: {reason}; check permissions") from error
    if not paths:
        raise InspectError(f"queue {topic}/{queue_id} has no extension; `inspect STORE queues` shows which have one")
    for path in paths:
        label = path.relative_to(view.store_dir).as_posix()
        try:
            for place in walk_extension(path):
                if not query.has_room(len(rows)):
                    break
                row: Row = {
                    "kind": f"ext-{place.kind}",
                    "file": label,
                    **wide(place=place.place, address=place.address),
                }
                if place.unit is not None:
                    row |= wide(tagsCode=place.unit.tags_code)
                    row |= {"msgStoreTime": place.unit.store_timestamp, "size": len(place.unit.raw)}
                    row["bitMap"] = place.unit.bit_map.hex() or None
                    row |= hex_of(extension_fields(place.unit.raw), place.place) if query.hex else {}
                rows.append(row)
                if place.kind == "bad":
                    findings.append(
                        Finding(
                            "CQ_EXT_UNREADABLE",
                            derived_severity(view),
                            label,
                            None,
                            f"no valid extension unit at position {place.place - int(path.name)}",
                            REBUILD,
                        )
                    )
        except OSError as error:
            findings.append(_no_access(label, error))
    return part_document({"ext_units": sum(row["kind"] == "ext-unit" for row in rows)}, rows, findings)


def all_bounds(view: StoreView, findings: list[Finding]) -> dict[tuple[str, int], QueueBounds]:
    """Return the range of each readable queue; obstacles become findings."""
    files, _, closed = list_queues(view.store_dir)
    findings += [_no_access(label, error) for label, error in closed if not isinstance(error, FileNotFoundError)]
    every = {key: list(own) for key, own in groupby(files, key=lambda file: (file.topic, file.queue_id))}
    found = {key: _bounds(view, own, findings) for key, own in every.items()}
    return {key: bounds for key, bounds in found.items() if bounds is not None}


def queue_tails(store_dir: Path) -> Iterator[int]:
    """Yield, for each readable queue, the offset of the record that its last unit names."""
    files, _, _ = list_queues(store_dir)
    for _, group in groupby(files, key=lambda file: (file.topic, file.queue_id)):
        try:
            yield queue_bounds(list(group)[-2:], log_min=0).last_offset
        except OSError:
            continue


def _queue_row(view: StoreView, files: list[QueueFile], bounds: QueueBounds) -> Row:
    first = files[0]
    relative = first.path.parent.relative_to(view.store_dir / "consumequeue")
    extension = view.store_dir / "consumequeue_ext" / relative
    try:
        extension_files = len(list_extension(extension))
    except OSError:
        extension_files = 0
    return {
        "kind": "queue",
        "topic": first.topic,
        "queueId": first.queue_id,
        **wide(minOffset=bounds.min_offset, maxOffset=bounds.max_offset, maxPhysicOffset=bounds.max_physic_offset),
        "messageTotal": bounds.max_offset - bounds.min_offset,
        "files": len(files),
        "bytes": sum(file.size_bytes for file in files),
        "extFiles": extension_files,
        "directory": os.path.dirname(first.label),
    }


def _bounds(view: StoreView, files: list[QueueFile], findings: list[Finding]) -> QueueBounds | None:
    """Return the range of a queue; obstacles become findings."""
    log_min = view.files[0].base_offset if view.files else 0
    try:
        bounds = queue_bounds(files, log_min=log_min)
    except OSError as error:
        findings.append(_no_access(files[-1].label, error))
        return None

    return bounds


def _files_of(view: StoreView, topic: str, queue_id: int) -> list[QueueFile]:
    every, _, _ = list_queues(view.store_dir)
    files = [file for file in every if (file.topic, file.queue_id) == (topic, queue_id)]
    if not files:
        raise InspectError(f"no queue {topic}/{queue_id}; `inspect STORE queues` lists them")
    return files


def _extension_files(view: StoreView, topic: str, queue_id: int) -> list[Path]:
    """Return the extension files of one queue.

    `topic` is the name as `list_queues` shows it. Raises OSError.
    """
    root = view.store_dir / "consumequeue_ext"
    topics = sorted(root.iterdir()) if root.is_dir() else []
    own = [each for each in topics if os.fsencode(each.name).decode("utf-8", "replace") == topic]
    return list_extension(own[0] / str(queue_id)) if own else []


def _items(
    files: list[QueueFile], start: int, findings: list[Finding]
) -> Iterator[tuple[QueueFile, QueueUnit | EmptyUnits]]:
    for file in files:
        position = max(0, start * UNIT_BYTES - file.base)
        if position >= file.size_bytes:
            continue
        try:
            with FileSource(file.path, size_bytes_max=file.size_bytes, piece_bytes=1 << 16) as source:
                for item in walk_units(source, base=file.base, position=position):
                    yield file, item
        except OSError as error:
            findings.append(_no_access(file.label, error))


def _unit_row(file: QueueFile, unit: QueueUnit, pointing: Pointing, query: Query) -> Row:
    row: Row = {
        "kind": "unit",
        "file": file.label,
        **wide(queueOffset=unit.queue_offset, phy=unit.physical_offset),
        "size": unit.size_bytes,
        **wide(tagsCode=unit.tags_code),
        **pointed_columns(pointing, query.properties_of),
    }
    if not query.hex:
        return row
    shown = hex_of(unit_fields(unit.raw), unit.queue_offset * UNIT_BYTES - file.base)
    if pointing.extension is not None:
        fields = hex_of(extension_fields(pointing.extension.raw), unit.tags_code + 2**63)["hex"]
        shown["hex"] += [field | {"field": f"ext.{field['field']}"} for field in fields]
    return row | shown


def _empty_row(file: QueueFile, item: EmptyUnits) -> Row:
    return {"kind": "empty", "file": file.label, **wide(queueOffset=item.queue_offset), "units": item.count}


def _accepted(query: Query, record: Record) -> bool:
    """Whether the content of a record matches; the queue is selected by name."""
    return Query(key=query.key, tag=query.tag, times=query.times, drops_joined=query.drops_joined).accepts(record)


def _none_to(number: int | None) -> int:
    return 2**63 - 1 if number is None else number


def _no_access(label: str, error: OSError) -> Finding:
    if isinstance(error, FileNotFoundError):
        return Finding("CQ_FILE_GONE", "note", label, None, "vanished while the store was read", "look again")
    message = f"cannot be read: {error.strerror or error}"
    return Finding("CQ_NO_ACCESS", "note", label, None, message, "look again with permission to read it")
