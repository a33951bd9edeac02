"""Show the index: its files, the entries of one file, and the chain of a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tornpage.properties.decode.fields import entry_fields, header_fields
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, IndexEntry, decode_index, index_hash
from tornpage.properties.decode.index_files import (
    BrokenChain,
    IndexReader,
    no_access,
    opened_index,
    unsettled,
)
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.file_sizes import index_sizes
from tornpage.properties.inspect.place import Document, derived_severity, part_document
from tornpage.properties.inspect.query import Query, keys_of
from tornpage.properties.inspect.rows import Row, hex_of, wide
from tornpage.properties.inspect.units import REBUILD_INDEX

__all__ = ["index_chain", "index_entries", "index_files"]

STUDIED_BYTES_MAX = 32 << 20
"""Size of an index file up to which every link is compared; larger files only with `--all`."""

_FINDINGS_MAX = 1000


def index_files(view: StoreView, query: Query) -> Document:
    """Return one row per index file.

    Its columns are the header, the use of slots and entries, collisions and problems.
    """
    rows: list[Row] = []
    findings: list[Finding] = []
    files = entries = 0
    sizes: list[tuple[str, int]] = []
    for reader in opened_index(view.store_dir, query.slots, findings):
        files += 1
        entries += reader.entry_count
        sizes.append((reader.file.label, reader.file.size_bytes))
        if not query.has_room(len(rows)):
            continue
        row = _file_row(reader)
        if query.hex:
            row |= hex_of(header_fields(reader.header_bytes), 0)
        try:
            if reader.slots is None and reader.entry_count:
                findings.append(unsettled(reader, query.slots))
            if reader.slots is None and not reader.entry_count and reader.has_content():
                message = "the header counts no entry, but slots or entries are in use"
                severity = derived_severity(view)
                findings.append(Finding("IX_BROKEN", severity, reader.file.label, None, message, REBUILD_INDEX))
            if reader.slots is not None:
                words = reader.slot_words()
                row["slotsUsed"] = len(words) - words.count(0)
                if reader.file.size_bytes <= STUDIED_BYTES_MAX or query.limit is None:
                    row |= _studied(view, reader, findings)
        except OSError as error:
            findings.append(no_access(reader.file.label, error))
        rows.append(row)
    findings += index_sizes(view, sizes)
    return part_document({"index_files": files, "index_entries": entries}, rows, findings)


def index_entries(view: StoreView, name: str, query: Query) -> Document:
    """Return the entries of one index file, each with what it points to.

    With `query.offset` they begin at that record.
    """
    findings: list[Finding] = []
    for reader in opened_index(view.store_dir, query.slots, findings):
        if reader.file.name != name:
            continue
        if reader.slots is None:
            found = [unsettled(reader, query.slots)] if reader.entry_count else []
            return part_document({"index_entries": 0}, [], [*findings, *found])
        rows: list[Row] = []
        try:
            for row in _entry_rows(view, reader, query):
                rows.append(row)
                findings += _pointing(view, row) if len(findings) < _FINDINGS_MAX else []
        except OSError as error:
            findings.append(no_access(reader.file.label, error))
        return part_document({"index_entries": reader.entry_count}, rows, findings)
    raise InspectError(f"no readable index file {name!r}; `inspect STORE index` lists them")


def _entry_rows(view: StoreView, reader: IndexReader, query: Query) -> Iterator[Row]:
    """Yield the requested rows, as many as there is room for. Raises OSError."""
    shown = 0
    with RecordReader(view) as records:
        for number in range(1, reader.entry_count + 1):
            if not query.has_room(shown):
                return
            entry = reader.entry(number)
            if entry.offset < (query.offset or 0):
                continue
            row = entry_row(view, reader, entry, records, query)
            if not query.has_filter or row["accepted"]:
                shown += 1
                yield row


def index_chain(view: StoreView, query: Query) -> Document:
    """Return the entries in the slot of a key, newest file and entry first."""
    assert query.key is not None
    if query.topic is None:
        raise InspectError("a look-up in the index needs topic and key; give --topic too")
    key_hash = index_hash(query.topic, query.key)
    findings: list[Finding] = []
    chains: list[list[Row]] = []
    with RecordReader(view) as records:
        for reader in opened_index(view.store_dir, query.slots, findings):
            if reader.slots is None:
                findings += [unsettled(reader, query.slots)] if reader.entry_count else []
                continue
            chain: list[Row] = []
            try:
                for entry in reader.chain(key_hash):
                    row = entry_row(view, reader, entry, records, query)
                    chain.append(row | {"sameHash": entry.key_hash == key_hash})
                    findings += _pointing(view, row) if len(findings) < _FINDINGS_MAX else []
            except BrokenChain as error:
                severity = derived_severity(view)
                findings.append(Finding("IX_BROKEN", severity, reader.file.label, None, str(error), REBUILD_INDEX))
            except OSError as error:
                findings.append(no_access(reader.file.label, error))
            chains.append(chain)
    every = [row for chain in reversed(chains) for row in chain]
    figures = {
        "key_hash": key_hash,
        "chain_entries": len(every),
        "hash_collisions": sum(row["sameHash"] and not row["accepted"] for row in every),
        "slot_collisions": sum(not row["sameHash"] for row in every),
    }
    shown = every if query.limit is None else every[: query.limit]
    return part_document(figures, shown, findings) | {"rowsLeftOut": len(every) - len(shown)}


def entry_row(view: StoreView, reader: IndexReader, entry: IndexEntry, records: RecordReader, query: Query) -> Row:
    """Return the row of an entry.

    `accepted` says that its record exists and matches the query. `time` is the time that readers use: for the first
    entry that is the begin time of the file, whatever its seconds are.
    """
    assert reader.slots is not None
    begin = reader.header.begin_timestamp
    record = records.at(entry.offset)
    is_removed = bool(view.files) and entry.offset < view.files[0].base_offset
    row: Row = {
        "kind": "entry",
        "file": reader.file.label,
        "number": entry.number,
        "slot": entry.key_hash % reader.slots,
        "keyHash": entry.key_hash,
        **wide(phy=entry.offset),
        "seconds": entry.seconds,
        "time": begin if entry.number == 1 else begin + entry.seconds * 1000,
        "previous": entry.previous,
        "points": "removed" if is_removed else "nothing",
        "accepted": isinstance(record, Record) and query.accepts(record),
    }
    if isinstance(record, Record):
        hashes = {key: index_hash(record.topic_text, key) for key in keys_of(record, drops_joined=query.drops_joined)}
        row |= {
            "topic": record.topic_text,
            "keys": [key for key, hashed in hashes.items() if hashed == entry.key_hash],
            "storeTimestamp": record.store_timestamp,
        }
        row["points"] = "record" if row["keys"] else "another key"
    if query.hex:
        position = HEADER_BYTES + SLOT_BYTES * reader.slots + ENTRY_BYTES * entry.number
        row |= hex_of(entry_fields(reader.entry_bytes(entry.number)), position)
    return row


def _pointing(view: StoreView, row: Row) -> list[Finding]:
    """Return the finding of an entry that points to nothing although the log begins before it."""
    if row["points"] != "nothing":
        return []
    message = f"no valid record begins where entry {row['number']} points to"
    return [Finding("IX_POINTS_NOWHERE", derived_severity(view), row["file"], row["phy"], message, REBUILD_INDEX)]


def _file_row(reader: IndexReader) -> Row:
    header = reader.header
    return {
        "kind": "index",
        "file": reader.file.label,
        "size": reader.file.size_bytes,
        "beginTimestamp": header.begin_timestamp,
        "endTimestamp": header.end_timestamp,
        **wide(beginPhyOffset=header.begin_offset, endPhyOffset=header.end_offset),
        "hashSlotCount": header.slots_in_use,
        "indexCount": max(1, header.next_entry),
        "entries": reader.entry_count,
        "slots": reader.slots,
        "entriesMax": reader.entries_max,
        "slotsUsed": None,
        "chainMax": None,
        "slotCollisions": None,
        "problems": None,
    }


def _studied(view: StoreView, reader: IndexReader, findings: list[Finding]) -> dict[str, Any]:
    """Compare every link of a file.

    Returns the length of the longest chain and the number of slot collisions.
    """
    assert reader.slots is not None
    assert reader.entries_max is not None
    decoded = decode_index(reader.all_bytes(), slots=reader.slots, entries=reader.entries_max)
    lengths: dict[int, int] = {}
    hashes: dict[int, set[int]] = {}
    collisions = 0
    for entry in decoded.entries:
        slot = entry.key_hash % reader.slots
        lengths[slot] = lengths.get(slot, 0) + 1
        others = hashes.setdefault(slot, set())
        collisions += bool(others) and entry.key_hash not in others
        others.add(entry.key_hash)
    severity = derived_severity(view)
    problems = [each for each in decoded.problems if each[0] != "slots_count_entries"]
    for code, detail in problems[:10]:
        message = f"{code.replace('_', ' ')}: {detail}"
        findings.append(Finding("IX_BROKEN", severity, reader.file.label, None, message, REBUILD_INDEX))
    return {
        "chainMax": max(lengths.values(), default=0),
        "slotCollisions": collisions,
        "problems": len(problems),
    }
