"""Map the files of a store as runs of one kind each, small enough to be drawn.

| file | kinds of runs |
|---|---|
 log | `record`, `blank` (the end mark and what is after it), `zeros`, `unreadable` |
| queue | `unit`, `empty`, `prefill` |
 index | `header`, `slots`, `entries`, `free`; `unknown` if the number of slots is not known |

Nothing is judged here. Unreadable bytes have no run. Cost: one pass over log and queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from tornpage.properties.decode.consumequeue import UNIT_BYTES, EmptyUnits, QueueFile, list_queues, walk_units
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES
from tornpage.properties.decode.index_files import IndexReader, opened_index
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.store import LogFile, StoreView, iter_items
from tornpage.properties.decode.walk import Unreadable, Zeros
from tornpage.properties.inspect.place import Progress, log_range, reading, without_progress
from tornpage.properties.inspect.rows import Row

__all__ = ["FILES_MAX", "RUNS_MAX", "file_maps"]

FILES_MAX = 200
"""Number of files of a kind that are mapped."""
RUNS_MAX = 400
"""Number of runs listed for a file; one further run stands for the rest."""

_Run = tuple[str, int, int, int]
"""Kind, position in the file, bytes, and number of records, units or entries."""


def file_maps(view: StoreView, *, slots: int | None = None, progress: Progress = without_progress) -> list[Row]:
    """Return a row per file: file, kind, size, base, runs.

    `base` is the offset of its first byte in the log or queue. A run is {what, at, size, items}: its position and
    bytes, and the number of records, units or entries. `progress` is called with the bytes of the log read so far.
    """
    rows = [*_log_rows(view, progress)]
    rows += [_queue_row(file) for file in islice(list_queues(view.store_dir)[0], FILES_MAX)]
    findings: list[Finding] = []
    rows += [_index_row(reader) for reader in islice(opened_index(view.store_dir, slots, findings), FILES_MAX)]
    return rows


def _row(label: str, kind: str, size_bytes: int, base: int, runs: Iterable[_Run]) -> Row:
    joined = _joined(runs)
    told = list(islice(joined, RUNS_MAX))
    rest = sum(run["items"] for run in joined)
    if rest:
        end = told[-1]["at"] + told[-1]["size"]
        told.append({"what": "more", "at": end, "size": max(0, size_bytes - end), "items": rest})
    return {"file": label, "kind": kind, "size": size_bytes, "base": base, "runs": told}


def _joined(runs: Iterable[_Run]) -> Iterator[Row]:
    """Join neighbouring runs of one kind."""
    for what, group in groupby(runs, key=lambda run: run[0]):
        first, size, items = -1, 0, 0
        for _, at, size_bytes, count in group:
            first, size, items = (at if first < 0 else first), size + size_bytes, items + count
        yield {"what": what, "at": first, "size": size, "items": items}


def _log_rows(view: StoreView, progress: Progress) -> Iterator[Row]:
    files = {file.label: file for file in view.files[:FILES_MAX]}
    rows = {label: _row(label, "log", file.size_bytes, file.base_offset, ()) for label, file in files.items()}
    reached = reading(*log_range(view), progress)
    for label, group in groupby(iter_items(view, reached=reached), key=lambda located: located.file):
        if label not in files:
            break  # further files are not mapped, so that they need not be read
        file = files[label]
        runs = (_log_run(located.item, file) for located in group if not isinstance(located.item, Bad))
        rows[label] = _row(label, "log", file.size_bytes, file.base_offset, runs)
    yield from rows.values()


def _log_run(item: Record | Blank | Zeros | Unreadable, file: LogFile) -> _Run:
    at = item.offset - file.base_offset
    match item:
        case Record():
            return "record", at, item.size_bytes, 1
        case Blank():
            return "blank", at, file.size_bytes - at, 0
        case Zeros():
            return "zeros", at, item.size_bytes, 0
        case Unreadable():
            return "unreadable", at, item.size_bytes, 0


def _queue_row(file: QueueFile) -> Row:
    try:
        with FileSource(file.path, size_bytes_max=file.size_bytes) as source:
            return _row(file.label, "queue", file.size_bytes, file.base, list(_queue_runs(source, file)))
    except OSError:
        return _row(file.label, "queue", file.size_bytes, file.base, ())


def _queue_runs(source: FileSource, file: QueueFile) -> Iterator[_Run]:
    for item in walk_units(source, base=file.base):
        at = item.queue_offset * UNIT_BYTES - file.base
        if isinstance(item, EmptyUnits):
            yield "empty", at, item.count * UNIT_BYTES, 0
        else:
            yield "prefill" if item.is_prefill else "unit", at, UNIT_BYTES, 1


def _index_row(reader: IndexReader) -> Row:
    size = reader.file.size_bytes
    runs: list[_Run] = [("header", 0, min(HEADER_BYTES, size), 0)]
    if reader.slots is None:
        runs.append(("unknown", HEADER_BYTES, max(0, size - HEADER_BYTES), reader.entry_count))
    else:
        first = HEADER_BYTES + SLOT_BYTES * reader.slots
        used = min(ENTRY_BYTES * (reader.entry_count + 1), max(0, size - first))  # entry 0 is never used
        runs.append(("slots", HEADER_BYTES, SLOT_BYTES * reader.slots, 0))
        runs.append(("entries", first, used, reader.entry_count))
        runs.append(("free", first + used, max(0, size - first - used), 0))
    return _row(reader.file.label, "index", size, 0, runs)
