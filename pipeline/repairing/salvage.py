"""Decide what a copy keeps of a store: every valid record, and fillers between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan
from tornpage.pipeline.repairing.fillers import ROLLED_BACK, Filler
from tornpage.pipeline.repairing.layout import LogLayout, lay_out, valid_in_files
from tornpage.pipeline.repairing.losses import Losses, Lost, find_losses, place_fillers
from tornpage.pipeline.repairing.numbering import Correction, Numbering, number_records
from tornpage.pipeline.repairing.pieces import Misnamed, quarantine_files, quarantine_part
from tornpage.pipeline.rows.columns import KEYS, RECORDS, WANTED, LogBatch, QueueNumbers, joined
from tornpage.pipeline.rows.dispatch import dispatch_of
from tornpage.pipeline.rows.log_reading import read_log
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import END_RESERVE_BYTES, Record, decode_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Salvage", "Stored", "plan_salvage"]

_FILES_MAX = 4096
"""Log files without a record that a copy may have because of quarantined records or units past the end."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file with bytes of the log, and the physical offset of its first byte."""

    path: Path
    offset: int


@dataclass(slots=True)
class Salvage:
    """The log of a copy.

    `records` are the valid records that stay, in order; `source` is the number of the file in `files` that holds each.
    `kept` tells which of the queues' units, keys and records go on; `end` is where the log of the copy ends.
    `restored` counts records of `quarantine/` that are back, `left_in_quarantine` valid ones whose place is taken.
    """

    layout: LogLayout
    files: tuple[Stored, ...]
    records: NDArray[Any]
    source: NDArray[Any]
    numbering: Numbering
    keys: NDArray[Any]
    losses: Losses
    misnamed: tuple[Misnamed, ...]
    end: int
    restored: int = 0
    left_in_quarantine: int = 0
    wanted: NDArray[Any] = field(default_factory=lambda: np.empty(0, WANTED))

    @property
    def fillers(self) -> list[Filler]:
        """Return the fillers in the order of the log."""
        return self.losses.fillers

    @property
    def corrections(self) -> list[Correction]:
        """Return the records whose headers get other values."""
        return self.numbering.corrections

    @property
    def lost(self) -> list[Lost]:
        """Return the messages that are known to be lost, by queue."""
        return self.losses.lost

    @property
    def lost_bytes(self) -> int:
        """Return how many bytes of the log fillers stand for."""
        return sum(each.size_bytes for each in self.fillers)


def plan_salvage(
    store: StorePlan,
    rows: StoreRows,
    facts: StoreFacts,
    misnamed: tuple[Misnamed, ...],
    *,
    file_units: int,
    deleted: Mapping[str, int],
    with_quarantine: bool,
) -> Salvage:
    """Decide what becomes of each record and each hole.

    Cost: the rows of the store a second time, in memory.
    """
    view = store.view
    files = [Stored(file.path, file.base_offset) for file in view.files]
    records, wanted, keys = rows.records, rows.wanted, rows.keys
    bases = np.array([file.offset for file in files] or [0], "i8")
    source = np.searchsorted(bases, records["offset"], side="right") - 1
    restored = left = 0
    if with_quarantine:
        found = _quarantined(store, rows.numbers, records)
        files += found.files
        records = np.concatenate([records, found.records])
        source = np.concatenate([source, found.source + len(view.files)])
        order = np.argsort(records["offset"], kind="stable")
        records, source = records[order], source[order]
        wanted = _in_order(np.concatenate([wanted, found.wanted]))
        keys = _in_order(np.concatenate([keys, found.keys]))
        restored, left = len(found.records), found.left
    begin = _begin(store, records)
    inside = valid_in_files(records, begin=begin, file_bytes=view.file_bytes)
    records, source = records[inside], source[inside]
    wanted = wanted[np.isin(wanted["offset"], records["offset"])]
    layout = lay_out(records, begin=begin, file_bytes=view.file_bytes)
    stored = tuple(files)
    flagged = _wrongly_flagged(store, stored, records, source, wanted, rows, deleted)
    wanted = _in_order(np.concatenate([wanted, flagged]))
    numbering = number_records(
        records,
        wanted,
        rows.units,
        rows.numbers,
        layout,
        file_units=file_units,
        deleted=deleted,
        topic_bytes=lambda offset: len(_record(stored, records, source, offset).topic),
    )
    for row in flagged[np.isin(flagged["offset"], numbering.wanted["offset"])]:
        place = (*rows.numbers.keys[int(row["queue"])], int(row["queue_offset"]))
        numbering.corrections.append(Correction(int(row["offset"]), place, place, no_transaction=True))
    fills_the_end = not view.is_unclean
    if fills_the_end:
        reach = _reach(rows, numbering, layout)
        layout = lay_out(records, begin=begin, file_bytes=view.file_bytes, reach=reach)
    losses = _losses(store, rows, facts, layout, numbering, deleted, fills_the_end)
    kept = ~np.isin(keys["offset"], numbering.without_place) & np.isin(keys["offset"], records["offset"])
    made = Salvage(
        layout,
        tuple(files),
        records,
        source,
        numbering,
        keys[kept],
        losses,
        misnamed,
        max([layout.end, *(each.offset + each.size_bytes for each in losses.fillers)]),
        restored,
        left,
    )
    return replace(made, wanted=_with_fillers(made, rows.numbers))


def _record(files: tuple[Stored, ...], records: NDArray[Any], source: NDArray[Any], offset: int) -> Record:
    """Read one of the records."""
    at = int(np.searchsorted(records["offset"], offset))
    stored, size = files[int(source[at])], int(records["size"][at])
    with FileSource(stored.path, size_bytes_max=offset - stored.offset + size) as read:
        found = decode_record(read.read(offset - stored.offset, size) + bytes(END_RESERVE_BYTES), offset=offset)
    if not isinstance(found, Record):
        raise OSError(f"{stored.path.name} changed while it was read")
    return found


def _wrongly_flagged(
    store: StorePlan,
    files: tuple[Stored, ...],
    records: NDArray[Any],
    source: NDArray[Any],
    wanted: NDArray[Any],
    rows: StoreRows,
    deleted: Mapping[str, int],
) -> NDArray[Any]:
    """Return units for records whose flags wrongly say that they are half of a transaction.

    Such a record states queue offset 0. One that states the number missing in its queue had another flag before.
    """
    none = np.empty(0, WANTED)
    without = records[~np.isin(records["offset"], wanted["offset"])]
    if not len(without):
        return none
    mine = wanted[np.isin(wanted["queue"], without["queue"])]
    units = rows.units[np.isin(rows.units["queue"], without["queue"])]
    have = set(zip(mine["queue"].tolist(), mine["queue_offset"].tolist(), strict=True))
    pointing = set(zip(units["queue"].tolist(), units["offset"].tolist(), strict=True))
    light = bool(store.log_parts and store.log_parts[0].light_queues)
    drops_joined = bool(store.log_parts and store.log_parts[0].drops_joined)
    found = []
    for offset, queue in zip(without["offset"].tolist(), without["queue"].tolist(), strict=True):
        topic, _ = rows.numbers.keys[queue]
        if offset < deleted.get(topic, 0):
            continue
        record = _record(files, records, source, offset)
        number = record.queue_offset
        is_gap = (queue, number - 1) in have and (queue, number + 1) in have
        if number < 0 or (queue, number) in have or not ((number and is_gap) or (queue, offset) in pointing):
            continue
        committed = replace(record, sys_flag=record.sys_flag & ~ROLLED_BACK)
        asked = dispatch_of(committed, light_queues=light, drops_joined=drops_joined)
        unit = (record.size_bytes, asked.tags_code, asked.is_delayed, False, record.store_timestamp)
        found.append((offset, queue, number, *unit))
    return np.array(found, WANTED)


def _begin(store: StorePlan, records: NDArray[Any]) -> int:
    """Return where the log of the copy begins: with the file of its first record or file."""
    begin, file_bytes = (store.view.files[0].base_offset if store.view.files else 0), store.view.file_bytes
    first = int(records["offset"][0]) if len(records) else begin
    return begin if first >= begin else begin - -(-(begin - first) // file_bytes) * file_bytes


def _reach(rows: StoreRows, numbering: Numbering, layout: LogLayout) -> int:
    """Return the end of the last lost record past the log.

    A unit that goes on with its queue points to it.
    """
    units, wanted = rows.units, numbering.wanted
    last = np.full(len(rows.numbers.keys), -1, "i8")
    np.maximum.at(last, wanted["queue"], wanted["queue_offset"])
    past = units[(units["offset"] >= layout.end) & (units["size"] > 0)]
    past = past[np.argsort(past["queue_offset"], kind="stable")]
    reach = layout.end
    limit = layout.end + _FILES_MAX * layout.file_bytes
    for unit in past.tolist():
        offset, queue, number, size = unit[0], unit[1], unit[2], unit[3]
        if number == last[queue] + 1 and offset + size <= limit:
            last[queue] = number
            reach = max(reach, offset + size)
    return reach


def _losses(
    store: StorePlan,
    rows: StoreRows,
    facts: StoreFacts,
    layout: LogLayout,
    numbering: Numbering,
    deleted: Mapping[str, int],
    fills_the_end: bool,
) -> Losses:
    gone = {*deleted, *numbering.reused}
    lost = find_losses(
        numbering.wanted,
        rows.units,
        rows.numbers.keys,
        layout,
        first_current=facts.first_current,
        begins_at_0=layout.bases[0] == 0,
        deleted=gone,
    )
    image = {file.base_offset: (file.path, 0) for file in store.view.files if file.size_bytes}
    return place_fillers(lost, rows.units, rows.numbers.keys, layout, image, fills_the_end=fills_the_end)


def _with_fillers(made: Salvage, numbers: QueueNumbers) -> NDArray[Any]:
    """Return the units of the copy, those of fillers included."""
    added = [
        (each.offset, numbers.of((each.topic, each.queue_id)), each.queue_offset, each.size_bytes, 0, False, False, 0)
        for each in made.fillers
        if each.topic is not None
    ]
    return _in_order(np.concatenate([made.numbering.wanted, np.array(added, WANTED)]))


def _in_order(rows: NDArray[Any]) -> NDArray[Any]:
    ordered: NDArray[Any] = rows[np.argsort(rows["offset"], kind="stable")]
    return ordered


@dataclass(slots=True)
class _Quarantined:
    """Valid records of `quarantine/` that have room in the log, and how many have none."""

    files: list[Stored]
    records: NDArray[Any]
    source: NDArray[Any]
    wanted: NDArray[Any]
    keys: NDArray[Any]
    left: int


def _quarantined(store: StorePlan, numbers: QueueNumbers, records: NDArray[Any]) -> _Quarantined:
    files: list[Stored] = []
    batches: list[LogBatch] = []
    sources: list[int] = []
    for file in quarantine_files(store.view.store_dir) if store.log_parts else ():
        for said in read_log(quarantine_part(file, store.log_parts[0]), numbers):
            if isinstance(said, LogBatch):
                batches.append(said)
                sources.append(len(files))
        files.append(Stored(file.path, file.offset))
    found = joined((batch.records for batch in batches), RECORDS)
    source = np.repeat(np.array(sources, int), [len(batch.records) for batch in batches])
    order = np.lexsort((source, found["offset"]))
    begin = store.view.files[0].base_offset if store.view.files else 0
    free = _free(found[order], records, begin % max(store.view.file_bytes, 1), store.view.file_bytes)
    chosen = order[free]
    known = np.isin(found["offset"], records["offset"])
    wanted = joined((batch.wanted for batch in batches), WANTED)
    keys = joined((batch.keys for batch in batches), KEYS)
    places = found["offset"][chosen]
    left = len(np.setdiff1d(found["offset"][~known], places))
    return _Quarantined(
        files,
        found[chosen],
        source[chosen],
        _first_of_each(wanted, places, ("offset", "queue")),
        _first_of_each(keys, places, ("offset", "hash")),
        left,
    )


def _free(found: NDArray[Any], records: NDArray[Any], begin: int, file_bytes: int) -> NDArray[Any]:
    """Return which records, in order, overlap neither the log nor each other.

    None of them crosses the end of a log file.
    """
    starts, ends = records["offset"], records["offset"] + records["size"]
    inside = np.ones(len(found), bool)
    for index in range(len(found)):  # several copies of one record overlap each other
        inside[index] = bool(valid_in_files(found[index : index + 1], begin=begin, file_bytes=file_bytes)[0])
    chosen, end = [], -1
    last = int(ends[-1]) if len(records) else 0
    for index in np.flatnonzero(inside).tolist():
        start, stop = int(found["offset"][index]), int(found["offset"][index] + found["size"][index])
        at = int(np.searchsorted(ends, start, side="right"))
        if start < end or (at < len(starts) and starts[at] < stop) or start > last + _FILES_MAX * file_bytes:
            continue
        chosen.append(index)
        end, last = stop, max(last, stop)
    return np.array(chosen, int)


def _first_of_each(rows: NDArray[Any], places: NDArray[Any], names: tuple[str, str]) -> NDArray[Any]:
    """Return rows of the records at some places, each once although several files hold it."""
    rows = rows[np.isin(rows["offset"], places)]
    _, first = np.unique(rows[list(names)], return_index=True)
    chosen: NDArray[Any] = rows[np.sort(first)]
    return chosen
