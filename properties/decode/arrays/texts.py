"""Gather the byte strings of records while their piece of the file is in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tornpage.properties.decode.arrays.columns import Column, Texts
from tornpage.properties.decode.record import Record

__all__ = ["TEXTS", "TextColumns"]

TEXTS = frozenset({"body", "born_host", "properties", "raw", "store_host"})
"""`raw` is the whole record. Hosts are as stored: address, then port in 4 bytes."""

_Bytes = NDArray[np.uint8]
_Table = NDArray[np.int64]
_Places = tuple[_Table, _Table]
_Copy = Callable[[_Bytes, _Table, _Table, _Bytes], None]

_HEAD_BYTES = 48

_BUFFER_BYTES = 64 * 1024
"""First size of a buffer of strings."""


def _raw(table: _Table) -> _Places:
    return table[Column.OFFSET], table[Column.SIZE]


def _born_host(table: _Table) -> _Places:
    return table[Column.OFFSET] + _HEAD_BYTES, np.where(table[Column.SYS_FLAG] & 0x10, 20, 8)


def _store_host(table: _Table) -> _Places:
    start, size = _born_host(table)
    return start + size + 8, np.where(table[Column.SYS_FLAG] & 0x20, 20, 8)


def _body(table: _Table) -> _Places:
    start, size = _store_host(table)
    return start + size + 16, table[Column.BODY_SIZE]


def _properties(table: _Table) -> _Places:
    size = table[Column.PROPERTIES_SIZE]
    return table[Column.OFFSET] + table[Column.SIZE] - size, size


_PLACES: dict[str, Callable[[_Table], _Places]] = {
    "body": _body,
    "born_host": _born_host,
    "properties": _properties,
    "raw": _raw,
    "store_host": _store_host,
}
assert _PLACES.keys() == TEXTS


class _Strings:
    """Byte strings in order, one after the other in one buffer that grows."""

    def __init__(self, room_bytes: int) -> None:
        self._sizes: list[_Table] = []
        self._buffer = np.empty(room_bytes, np.uint8)
        self._used = 0

    def room(self, sizes: _Table) -> _Bytes:
        """Return the place for the next strings, which have these sizes."""
        start, end = self._used, self._used + int(sizes.sum())
        if end > len(self._buffer):
            grown = np.empty(max(end, 2 * len(self._buffer)), np.uint8)
            grown[:start] = self._buffer[:start]
            self._buffer = grown
        self._sizes.append(sizes.copy())
        self._used = end
        return self._buffer[start:end]

    @property
    def room_bytes(self) -> int:
        """Return the size of the buffer."""
        return len(self._buffer)

    def taken(self) -> tuple[_Table, _Bytes]:
        """Return the ends of the strings, from 0 on, and their bytes."""
        ends: _Table = np.cumsum(np.concatenate([np.zeros(1, np.int64), *self._sizes]))
        return ends, self._buffer[: self._used]


class TextColumns:
    """Byte strings of the rows of one batch, in order. Each is copied once."""

    def __init__(self, names: frozenset[str]) -> None:
        self._strings = {name: _Strings(_BUFFER_BYTES) for name in sorted(names)}
        self.size_bytes = 0

    def add_piece(self, data: _Bytes, base: int, table: _Table, copy: _Copy) -> None:
        """Take the strings of rows whose records lie in `data`.

        The first byte of `data` has the physical offset `base`. `copy` is the kernel's `copy_stretches`.
        """
        for name, strings in self._strings.items():
            starts, sizes = _PLACES[name](table)
            room = strings.room(sizes)
            copy(data, starts - base, sizes, room)
            self.size_bytes += len(room)

    def add_record(self, record: Record) -> None:
        """Take the strings of one record."""
        row = np.zeros((len(Column), 1), np.int64)
        row[Column.SIZE], row[Column.SYS_FLAG] = record.size_bytes, record.sys_flag
        row[Column.BODY_SIZE], row[Column.PROPERTIES_SIZE] = len(record.body), len(record.properties)
        raw = np.frombuffer(record.raw, np.uint8)
        for name, strings in self._strings.items():
            starts, sizes = _PLACES[name](row)
            strings.room(sizes)[:] = raw[starts[0] : starts[0] + sizes[0]]
            self.size_bytes += int(sizes[0])

    def take(self) -> Texts:
        """Return the strings gathered so far, and start again without any."""
        taken = {name: strings.taken() for name, strings in self._strings.items()}
        self._strings = {name: _Strings(strings.room_bytes) for name, strings in self._strings.items()}
        self.size_bytes = 0
        return taken
