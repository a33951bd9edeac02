"""Damage at a drawn place of a sound store, and the exact findings of an audit."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.pipeline.handmade import overwrite
from tornpage.properties.decode.consumequeue import QueueUnit, list_queues, walk_units
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, decode_index
from tornpage.properties.decode.index_files import IndexReader, list_index
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import iter_items, look

__all__ = ["PLANTS", "Place", "SoundStore", "plant"]

Place = tuple[str, str, int | None, int | None]
"""Code, file, position in it, physical offset."""

Pick = Callable[[int], int]
"""Draws a number below another."""


@dataclass(frozen=True)
class Unit:
    """A unit of a queue and its place."""

    file: str
    position: int
    unit: QueueUnit


@dataclass(frozen=True)
class Entry:
    """An index entry and its place.

    `is_last_of_slot`: no later entry of the file has its slot.
    """

    file: str
    number: int
    position: int
    key_hash: int
    offset: int


class SoundStore:
    """The content of a sound store, as the judges' plain decoder reads it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        view = look(root)
        self.records: list[tuple[str, int, Record]] = []
        bases = {file.label: file.base_offset for file in view.files}
        for located in iter_items(view):
            if isinstance(located.item, Record):
                position = located.item.offset - bases[located.file]
                self.records.append((located.file, position, located.item))
        self.log_min = view.files[0].base_offset
        self.units: list[Unit] = []
        for file in list_queues(root)[0]:
            with FileSource(file.path, size_bytes_max=file.size_bytes) as source:
                for item in walk_units(source, base=file.base):
                    if isinstance(item, QueueUnit) and item.physical_offset >= self.log_min:
                        self.units.append(Unit(file.label, item.queue_offset * 20 - file.base, item))
        self.entries: list[Entry] = []
        self.slots: dict[str, int] = {}
        for index_file in list_index(root)[0]:
            with IndexReader(index_file) as reader:
                reader.settle(None)
                if reader.slots is None or reader.entries_max is None:
                    continue
                decoded = decode_index(reader.all_bytes(), slots=reader.slots, entries=reader.entries_max)
                self.slots[index_file.label] = reader.slots
                start = HEADER_BYTES + SLOT_BYTES * reader.slots
                for entry in decoded.entries:
                    if entry.offset >= self.log_min:
                        where = start + ENTRY_BYTES * entry.number
                        self.entries.append(Entry(index_file.label, entry.number, where, entry.key_hash, entry.offset))

    def units_of(self, offset: int) -> list[Unit]:
        """Return the units that point to a record."""
        return [unit for unit in self.units if unit.unit.physical_offset == offset]

    def has_queue_neighbours(self, unit: Unit) -> bool:
        """Return whether units of the same queue exist before and after a unit."""
        queue = Path(unit.file).parent
        numbers = {each.unit.queue_offset for each in self.units if Path(each.file).parent == queue}
        return {unit.unit.queue_offset - 1, unit.unit.queue_offset + 1} <= numbers


def _body_byte(store: SoundStore, pick: Pick) -> set[Place]:
    candidates = [each for each in store.records if each[2].body]
    file, position, record = candidates[pick(len(candidates))]
    at = 88 + (12 if record.sys_flag & 0x10 else 0) + (12 if record.sys_flag & 0x20 else 0) + pick(len(record.body))
    _flip(store.root / file, position + at, 1 << pick(8))
    places: set[Place] = {("CL_BAD_RECORD", file, position, record.offset)}
    places |= {("CQ_POINTS_NOWHERE", unit.file, unit.position, record.offset) for unit in store.units_of(record.offset)}
    first: dict[str, Entry] = {}
    for entry in store.entries:
        if entry.offset == record.offset:
            first.setdefault(entry.file, entry)
    return places | {("IX_POINTS_NOWHERE", each.file, each.position, record.offset) for each in first.values()}


def _unit_size(store: SoundStore, pick: Pick) -> set[Place]:
    unit = store.units[pick(len(store.units))]
    overwrite(store.root / unit.file, unit.position + 8, struct.pack(">i", unit.unit.size_bytes + 1 + pick(1000)))
    return {("CQ_WRONG_SIZE", unit.file, unit.position, unit.unit.physical_offset)}


def _unit_code(store: SoundStore, pick: Pick) -> set[Place]:
    unit = store.units[pick(len(store.units))]
    overwrite(store.root / unit.file, unit.position + 12, struct.pack(">q", unit.unit.tags_code ^ (1 << pick(31))))
    return {("CQ_WRONG_TAGS_CODE", unit.file, unit.position, unit.unit.physical_offset)}


def _unit_offset(store: SoundStore, pick: Pick) -> set[Place]:
    unit = store.units[pick(len(store.units))]
    wrong = unit.unit.physical_offset + 1 + pick(50)
    overwrite(store.root / unit.file, unit.position, struct.pack(">q", wrong))
    return {
        ("CQ_MISSING", unit.file, unit.position, unit.unit.physical_offset),
        ("CQ_POINTS_NOWHERE", unit.file, unit.position, wrong),
    }


def _unit_zeroed(store: SoundStore, pick: Pick) -> set[Place]:
    candidates = [unit for unit in store.units if store.has_queue_neighbours(unit)]
    unit = candidates[pick(len(candidates))]
    overwrite(store.root / unit.file, unit.position, bytes(20))
    return {
        ("CQ_MISSING", unit.file, unit.position, unit.unit.physical_offset),
        ("CQ_NOT_CONTIGUOUS", unit.file, unit.position, None),
    }


def _entry_hash(store: SoundStore, pick: Pick) -> set[Place]:
    """Another hash of the same slot: only the key is wrong."""
    entry = store.entries[pick(len(store.entries))]
    wrong = entry.key_hash + store.slots[entry.file] * (1 if entry.key_hash < 1 << 30 else -1)
    overwrite(store.root / entry.file, entry.position, struct.pack(">i", wrong))
    return {
        ("IX_WRONG_KEY", entry.file, entry.position, entry.offset),
        ("IX_KEY_MISSING", entry.file, None, entry.offset),
    }


def _entry_seconds(store: SoundStore, pick: Pick) -> set[Place]:
    candidates = [entry for entry in store.entries if entry.number > 1]
    entry = candidates[pick(len(candidates))]
    overwrite(store.root / entry.file, entry.position + 12, struct.pack(">i", 100_000 + pick(1000)))
    return {("IX_WRONG_TIME", entry.file, entry.position, entry.offset)}


def _entry_link(store: SoundStore, pick: Pick) -> set[Place]:
    entry = store.entries[pick(len(store.entries))]
    _flip(store.root / entry.file, entry.position + 18, 1 + pick(255))
    return {("IX_BROKEN", entry.file, entry.position, None)}


def _slot(store: SoundStore, pick: Pick) -> set[Place]:
    """A slot in use names another entry."""
    entry = store.entries[pick(len(store.entries))]
    position = HEADER_BYTES + SLOT_BYTES * (entry.key_hash % store.slots[entry.file])
    _flip(store.root / entry.file, position + 1, 1 + pick(255))
    return {("IX_BROKEN", entry.file, position, None)}


def _index_header(store: SoundStore, pick: Pick) -> set[Place]:
    entry = store.entries[pick(len(store.entries))]
    position = (16, 24)[pick(2)]
    _flip(store.root / entry.file, position + 1, 1 + pick(255))
    return {("IX_BROKEN", entry.file, position, None)}


def _flip(path: Path, position: int, mask: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ mask]))


PLANTS: dict[str, Callable[[SoundStore, Pick], set[Place]]] = {
    "body byte": _body_byte,
    "size in a unit": _unit_size,
    "tags code in a unit": _unit_code,
    "offset in a unit": _unit_offset,
    "zeroed unit": _unit_zeroed,
    "hash in an entry": _entry_hash,
    "seconds in an entry": _entry_seconds,
    "link of an entry": _entry_link,
    "slot": _slot,
    "header of an index file": _index_header,
}


def plant(root: Path, kind: str, pick: Pick) -> set[Place]:
    """Damage the sound store at `root`; return the findings that it must have."""
    return PLANTS[kind](SoundStore(root), pick)
