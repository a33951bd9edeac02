"""Compiled twins of `impl.index.index_entries`, without the interpreter lock.

Bytes and results are equal. They call no mark. Arguments that do not fit together are left to the plain functions,
which raise.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numba import types
from numpy.typing import NDArray

from tornpage.impl.index import index_entries as plain
from tornpage.impl.index.index_entries import ENTRY_BYTES, SLOT_BYTES, TIME_DIFFERENCE_MAX
from tornpage.impl.kernels.compiling import INT, READ, WRITE, Bytes, kernel, kernel_part
from tornpage.impl.kernels.primitives import fetch_ahead, get32, get64, put32, put64

__all__ = ["match_entries", "put_entries", "trace_entries"]

Column = NDArray[np.int64]

_PUTS = types.Array(types.int64, 1, "C", readonly=True)
_ENTRIES_AHEAD = 12
_NO_LEAST, _NO_GREATEST = (1 << 63) - 1, -(1 << 63)


def put_entries(
    heads: memoryview,
    entries: memoryview,
    number: int,
    begin_timestamp: int,
    hashes: Sequence[int],
    offsets: Sequence[int],
    store_timestamps: Sequence[int],
    start: int,
    end: int,
    mark: Callable[[str], None],
) -> tuple[int, int, int]:
    """Write entries as `plain.put_entries` does, without marks."""
    if not _fit(heads, entries, number, number + end - start) or not 0 <= start <= end <= len(hashes):
        return plain.put_entries(
            heads, entries, number, begin_timestamp, hashes, offsets, store_timestamps, start, end, mark
        )
    used, least, greatest = _put(
        *_buffers(heads, entries), number, begin_timestamp,
        _column(hashes), _column(offsets), _column(store_timestamps), start, end,
    )  # fmt: skip
    return used, least, greatest


def match_entries(
    heads: memoryview,
    entries: memoryview,
    number: int,
    begin_timestamp: int,
    hashes: Sequence[int],
    offsets: Sequence[int],
    store_timestamps: Sequence[int],
    start: int,
    end: int,
) -> tuple[int, int, int, int]:
    """Compare entries as `plain.match_entries` does."""
    if not _fit(heads, entries, number, number + end - start) or not 0 <= start <= end <= len(hashes):
        return plain.match_entries(
            heads, entries, number, begin_timestamp, hashes, offsets, store_timestamps, start, end
        )
    index, used, least, greatest = _match(
        *_buffers(heads, entries), number, begin_timestamp,
        _column(hashes), _column(offsets), _column(store_timestamps), start, end,
    )  # fmt: skip
    return index, used, least, greatest


def trace_entries(
    heads: memoryview, entries: memoryview, number: int, end_number: int, least_offset: int, end_offset: int
) -> tuple[int, int]:
    """Trace entries as `plain.trace_entries` does."""
    if not _fit(heads, entries, number, end_number):
        return plain.trace_entries(heads, entries, number, end_number, least_offset, end_offset)
    found, used = _trace(*_buffers(heads, entries), number, end_number, least_offset, end_offset)
    return found, used


def _fit(heads: memoryview, entries: memoryview, number: int, end_number: int) -> bool:
    return len(heads) >= SLOT_BYTES and 0 <= number <= end_number and end_number * ENTRY_BYTES <= len(entries)


def _buffers(heads: memoryview, entries: memoryview) -> tuple[Bytes, Bytes]:
    return np.frombuffer(heads, np.uint8), np.frombuffer(entries, np.uint8)


def _column(numbers: Sequence[int]) -> Column:
    return np.ascontiguousarray(numbers, np.int64)


@kernel_part
def _fetch_slot(heads: Bytes, hashes: Column, index: int) -> None:
    """Prefetch the slot of an entry: slots are spread over megabytes."""
    if index < len(hashes):
        at = hashes[index] % (len(heads) // SLOT_BYTES) * SLOT_BYTES
        fetch_ahead(heads, at, at)


@kernel_part
def _difference(store_timestamp: int, begin_timestamp: int) -> int:
    if begin_timestamp <= 0 or store_timestamp <= begin_timestamp:
        return 0
    seconds = (store_timestamp - begin_timestamp) // 1000
    return seconds if seconds < TIME_DIFFERENCE_MAX else TIME_DIFFERENCE_MAX


@kernel(WRITE, WRITE, INT, INT, _PUTS, _PUTS, _PUTS, INT, INT)
def _put(
    heads: Bytes,
    entries: Bytes,
    number: int,
    begin_timestamp: int,
    hashes: Column,
    offsets: Column,
    store_timestamps: Column,
    start: int,
    end: int,
) -> tuple[int, int, int]:
    slots, used, least, greatest = len(heads) // SLOT_BYTES, 0, _NO_LEAST, _NO_GREATEST
    for index in range(start, end):
        _fetch_slot(heads, hashes, index + _ENTRIES_AHEAD)
        code, store_timestamp = hashes[index], store_timestamps[index]
        slot_at, entry_at = code % slots * SLOT_BYTES, number * ENTRY_BYTES
        previous = get32(heads, slot_at)
        put32(entries, entry_at, code)
        put64(entries, entry_at + 4, offsets[index])
        put32(entries, entry_at + 12, _difference(store_timestamp, begin_timestamp))
        put32(entries, entry_at + 16, previous)
        put32(heads, slot_at, number)
        used += previous == 0
        least, greatest = min(least, store_timestamp), max(greatest, store_timestamp)
        if number == 1:
            begin_timestamp = store_timestamp
        number += 1
    return used, least, greatest


@kernel(WRITE, READ, INT, INT, _PUTS, _PUTS, _PUTS, INT, INT)
def _match(
    heads: Bytes,
    entries: Bytes,
    number: int,
    begin_timestamp: int,
    hashes: Column,
    offsets: Column,
    store_timestamps: Column,
    start: int,
    end: int,
) -> tuple[int, int, int, int]:
    slots, used, least, greatest = len(heads) // SLOT_BYTES, 0, _NO_LEAST, _NO_GREATEST
    for index in range(start, end):
        _fetch_slot(heads, hashes, index + _ENTRIES_AHEAD)
        code, store_timestamp = hashes[index], store_timestamps[index]
        slot_at, entry_at = code % slots * SLOT_BYTES, number * ENTRY_BYTES
        previous = get32(heads, slot_at)
        if (
            get32(entries, entry_at) != code
            or get64(entries, entry_at + 4) != offsets[index]
            or get32(entries, entry_at + 12) != _difference(store_timestamp, begin_timestamp)
            or get32(entries, entry_at + 16) != previous
        ):
            return index, used, least, greatest
        put32(heads, slot_at, number)
        used += previous == 0
        least, greatest = min(least, store_timestamp), max(greatest, store_timestamp)
        if number == 1:
            begin_timestamp = store_timestamp
        number += 1
    return end, used, least, greatest


@kernel(WRITE, READ, INT, INT, INT, INT)
def _trace(
    heads: Bytes, entries: Bytes, number: int, end_number: int, least_offset: int, end_offset: int
) -> tuple[int, int]:
    slots, used = len(heads) // SLOT_BYTES, 0
    for found in range(number, end_number):
        entry_at = found * ENTRY_BYTES
        code, offset = get32(entries, entry_at), get64(entries, entry_at + 4)
        if code < 0 or get32(entries, entry_at + 12) < 0 or not least_offset <= offset < end_offset:
            return found, used
        slot_at, previous = code % slots * SLOT_BYTES, get32(entries, entry_at + 16)
        if get32(heads, slot_at) != previous:
            return found, used
        put32(heads, slot_at, found)
        used += previous == 0
        least_offset = offset
    return end_number, used
