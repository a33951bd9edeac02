"""Compiled twin of `impl.dispatch.dispatch_records`: one pass over a batch.

The kernel handles ordinary records. It leaves to the plain twin, one record at a time and in order: delayed messages,
names of multi-dispatch, text that is not UTF-8, too many keys, and bytes that are no record. So reasons and special
cases are decided in one place only.
"""

import struct
import threading
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from tornpage.impl.dispatch import dispatch_records as plain
from tornpage.impl.kernels.compiling import INT, READ, WRITE, Bytes, kernel, kernel_part
from tornpage.impl.kernels.primitives import are_equal, fetch_ahead, get32, get64, put32, put64
from tornpage.impl.kernels.records import HASH, is_schedule_topic, read_properties, read_record
from tornpage.impl.kernels.text import java_hash
from tornpage.impl.message.codec import BORN_HOST_V6, SMALLEST_RECORD_BYTES, TRANSACTION_MASK
from tornpage.impl.message.dispatching import UNIT_BYTES, Dispatched, DispatchRules, IndexPuts, QueueRun
from tornpage.impl.message.properties_text import parse_pairs

__all__ = ["dispatch_records"]

_RECORDS_MAX = 4096
"""Many, since after each call of the kernel the thread waits for the interpreter lock."""

_ENTRIES_PER_RECORD = 4
_RECORDS_AHEAD = 8
"""Records are prefetched this far ahead, as if all were as long as the current one. Most are, and the walk that checked
them has evicted them from the caches."""
_TOPIC_AT, _TOPIC_BYTES, _QUEUE_ID, _QUEUE_OFFSET, _COUNT, _END_OFFSET, _UNITS_END, _RUN_FIELDS = range(8)
_RUN, _OFFSET, _SIZE, _TAGS, _UNIT_FIELDS = range(5)
_PLACE, _TIME, _ENTRY_FIELDS = range(HASH + 1, 4)
_PHYSICAL_OFFSET = struct.Struct(">q")
_NO_UNIT = 0x04
_ROLLED_BACK = 0x0C

Table = NDArray[np.int64]
Slots = NDArray[np.int32]
_TABLE = types.Array(types.int64, 2, "C")
_SLOTS = types.Array(types.int32, 1, "C")


class _Tables(threading.local):
    """The output tables of the kernel, one set per thread.

    Creating them per call would double its time.
    """

    def __init__(self) -> None:
        self.runs = np.empty((_RECORDS_MAX, _RUN_FIELDS), np.int64)
        self.entries = np.empty((_ENTRY_FIELDS, _ENTRIES_PER_RECORD * _RECORDS_MAX), np.int64)
        self.units = np.empty(UNIT_BYTES * _RECORDS_MAX, np.uint8)
        self.drafts = np.empty((_RECORDS_MAX, _UNIT_FIELDS), np.int64)
        self._slots = np.empty(1 << (2 * _RECORDS_MAX).bit_length(), np.int32)

    def slots_for(self, records: int) -> Slots:
        """Return free slots for so many records, at least twice as many."""
        slots = self._slots[: 1 << (2 * records).bit_length()]
        slots.fill(-1)
        return slots


_TABLES = _Tables()


def dispatch_records(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Dispatch records as `plain.dispatch_records` does, with fewer and longer runs."""
    if rules.ext or rules.parse is not parse_pairs or not 0 <= position <= end <= len(view):
        return plain.dispatch_records(view, position, end, rules)
    parts: list[Dispatched] = []
    data, stop = np.frombuffer(view, np.uint8), min(end, position + rules.batch_bytes_max)
    one_record = None
    base_offset: int | None = None
    reason = None
    while position < stop and reason is None:
        part = _part(view, data, position, end, stop, rules)
        if not part.records:  # the kernel cannot handle the next record
            one_record = one_record or replace(rules, batch_bytes_max=1)
            part = plain.dispatch_records(view, position, end, one_record)
        before = base_offset
        if part.records:
            base_offset = _PHYSICAL_OFFSET.unpack_from(view, position + 28)[0] - position
        if before is not None and base_offset != before:
            reason = "bad_position"
        else:
            parts.append(part)
            position, reason = part.end_position, part.reason
    if len(parts) == 1 and parts[0].reason == reason:
        return parts[0]
    return Dispatched(
        position,
        sum(part.records for part in parts),
        [run for part in parts for run in part.runs],
        _joined([part.index for part in parts if len(part.index.hashes)]),
        max((part.store_timestamp for part in parts), default=0),
        reason,
    )


def _part(view: memoryview, data: Bytes, position: int, end: int, stop: int, rules: DispatchRules) -> Dispatched:
    """Return what the kernel dispatches from `position` on, possibly nothing."""
    records = min(_RECORDS_MAX, 1 + (stop - position) // SMALLEST_RECORD_BYTES)
    runs, entries, units, slots = _TABLES.runs, _TABLES.entries, _TABLES.units, _TABLES.slots_for(records)
    position, taken, run_count, entry_count, store_timestamp = _dispatch(
        data, position, end, stop, rules.multi_dispatch is not None, rules.index,
        runs, entries, _TABLES.drafts, slots, units,
    )  # fmt: skip
    made: list[QueueRun] = []
    for topic_at, topic_bytes, queue_id, queue_offset, count, end_offset, units_end in runs[:run_count].tolist():
        key = (bytes(view[topic_at : topic_at + topic_bytes]), queue_id)
        own = units[units_end - UNIT_BYTES * count : units_end].tobytes()
        made.append(QueueRun(key, queue_offset, own, end_offset))
    columns: Any = entries[:, :entry_count].copy()
    return Dispatched(position, taken, made, IndexPuts(*columns), store_timestamp, None)


def _joined(parts: list[IndexPuts]) -> IndexPuts:
    """Concatenate entries of several parts."""
    columns: Any = zip(*parts, strict=True) if parts else ((), (), ())
    joined: Any = (np.concatenate([np.asarray(part, np.int64) for part in (*column, ())]) for column in columns)
    return IndexPuts(*joined)


@kernel_part
def _same(data: Bytes, runs: Table, run: int, topic_at: int, topic_bytes: int, queue_id: int) -> bool:
    """Return whether a run belongs to this queue."""
    if runs[run, _QUEUE_ID] != queue_id or runs[run, _TOPIC_BYTES] != topic_bytes:
        return False
    return are_equal(data, runs[run, _TOPIC_AT], topic_at, topic_bytes)


@kernel_part
def _slot(data: Bytes, slots: Slots, runs: Table, topic_at: int, topic_bytes: int, queue_id: int) -> int:
    """Return the slot of a queue. It holds the queue's latest run, or -1 while there is none."""
    code, _ = java_hash(
        data, topic_at, topic_at + topic_bytes, queue_id
    )  # 0 for bytes that are not UTF-8: slower and still right
    slot = ((code * 0x9E3779B1) >> 12) & (len(slots) - 1)
    while slots[slot] >= 0 and not _same(data, runs, slots[slot], topic_at, topic_bytes, queue_id):
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel_part
def _begin(runs: Table, run: int, topic_at: int, topic_bytes: int, queue_id: int, number: int) -> None:
    """Begin a run that has no unit yet."""
    runs[run, _TOPIC_AT], runs[run, _TOPIC_BYTES], runs[run, _QUEUE_ID] = topic_at, topic_bytes, queue_id
    runs[run, _QUEUE_OFFSET], runs[run, _COUNT] = number, 0


@kernel_part
def _write_units(drafts: Table, units: int, runs: Table, run_count: int, out: Bytes) -> None:
    """Write the units of each run one after the other, and the runs in their order."""
    place = 0
    for run in range(run_count):
        runs[run, _UNITS_END], place = place, place + UNIT_BYTES * runs[run, _COUNT]
    for unit in range(units):
        run = drafts[unit, _RUN]
        place = runs[run, _UNITS_END]
        put64(out, place, drafts[unit, _OFFSET])
        put32(out, place + 8, drafts[unit, _SIZE])
        put64(out, place + 12, drafts[unit, _TAGS])
        runs[run, _UNITS_END] = place + UNIT_BYTES


@kernel(READ, INT, INT, INT, types.boolean, types.boolean, _TABLE, _TABLE, _TABLE, _SLOTS, WRITE)
def _dispatch(
    data: Bytes,
    position: int,
    end: int,
    stop: int,
    multi: bool,
    index: bool,
    runs: Table,
    entries: Table,
    drafts: Table,
    slots: Slots,
    out: Bytes,
) -> tuple[int, int, int, int, int]:
    """Dispatch ordinary records while the tables have room.

    They begin before `stop` and end before `end`. Returns the position of the first record not taken, the numbers of
    records, runs and index entries, and the greatest store timestamp. `out` gets the units, run by run; `drafts` and
    `slots`, which must be -1, are scratch.
    """
    records, units, run_count, entry_count, newest = 0, 0, 0, 0, 0
    last, base_offset = -1, 0
    while position < stop and records < len(runs):
        size, topic_at, topic_bytes = read_record(data, position, end, base_offset)
        if size == 0 or is_schedule_topic(data, topic_at, topic_bytes):
            break
        ahead = position + _RECORDS_AHEAD * size
        fetch_ahead(data, ahead, ahead + SMALLEST_RECORD_BYTES)
        fetch_ahead(data, ahead + topic_at - position, ahead + size)
        properties_at = topic_at + topic_bytes + 2
        tags_code, added, is_plain = read_properties(
            data, topic_at, topic_bytes, properties_at, position + size, multi,
            index and data[position + 39] & TRANSACTION_MASK != _ROLLED_BACK, entries, entry_count,
        )  # fmt: skip
        if not is_plain:
            break
        offset = get64(data, position + 28)
        if records and offset - position != base_offset:
            break
        base_offset = offset - position
        store_timestamp = get64(data, position + 56 + (12 if data[position + 39] & BORN_HOST_V6 else 0))
        for entry in range(entry_count, entry_count + added):
            entries[_PLACE, entry], entries[_TIME, entry] = offset, store_timestamp
        entry_count += added
        if not data[position + 39] & _NO_UNIT:
            queue_id, number = get32(data, position + 12), get64(data, position + 20)
            if last < 0 or not _same(data, runs, last, topic_at, topic_bytes, queue_id):
                slot = _slot(data, slots, runs, topic_at, topic_bytes, queue_id)
                last = slots[slot]
                if last < 0:
                    last = slots[slot] = run_count
                    _begin(runs, run_count, topic_at, topic_bytes, queue_id, number)
                    run_count += 1
            if number != runs[last, _QUEUE_OFFSET] + runs[last, _COUNT]:
                slots[_slot(data, slots, runs, topic_at, topic_bytes, queue_id)] = last = run_count
                _begin(runs, run_count, topic_at, topic_bytes, queue_id, number)
                run_count += 1
            runs[last, _COUNT] += 1
            runs[last, _END_OFFSET] = offset + size
            drafts[units, _RUN], drafts[units, _OFFSET] = last, offset
            drafts[units, _SIZE], drafts[units, _TAGS] = size, tags_code
            units += 1
        newest = max(newest, store_timestamp)
        position += size
        records += 1
    _write_units(drafts, units, runs, run_count, out)
    return position, records, run_count, entry_count, newest
