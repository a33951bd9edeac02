"""Split the stored properties of a batch of records at once.

The rules are those of `properties.decode.record.parse_properties`. Rare batches are left to it: those with text that
is not ASCII, and those with a record that has a name twice. No Python object is made for a property.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

__all__ = ["SplitProperties", "split_properties"]

_PAIR_END, _NAME_END = 0x02, 0x01
_TRAILER = "__CRC32#"
_NOT_ASCII = 0x80
_PIECES = 4
"""Pieces of a pair: name, separator, value, and everything up to the next pair."""

_ROLLED_BACK = 0x0C
_Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SplitProperties:
    """Hold the pairs of all records of a batch in order: row, name and value."""

    rows: int
    row: _Places
    names: pa.Array
    values: pa.Array

    def maps(self) -> pa.Array:
        """Return the properties of each record."""
        return pa.MapArray.from_arrays(_offsets(self.row, self.rows), self.names, self.values)

    def value_of(self, name: str) -> pa.Array:
        """Return the value of a property for each record; null without one."""
        pairs = self._pairs_of(name)
        place = np.zeros(self.rows, np.int64)
        place[self.row[pairs]] = pairs
        is_missing = np.ones(self.rows, np.bool_)
        is_missing[self.row[pairs]] = False
        return self.values.take(pa.array(place, mask=is_missing))

    def keys(self, sys_flags: _Places) -> pa.Array:
        """Return the keys that each record is indexed by, the unique key first."""
        unique, keys = self._pairs_of("UNIQ_KEY"), self._pairs_of("KEYS")
        lists = pc.split_pattern(self.values.take(pa.array(keys)), " ")
        words = lists.flatten()
        row = np.concatenate([self.row[unique], np.repeat(self.row[keys], np.diff(lists.offsets.to_numpy()))])
        texts = pa.concat_arrays([self.values.take(pa.array(unique)), words])
        is_kept = pc.binary_length(texts).to_numpy() > 0
        is_kept &= (sys_flags[row] & _ROLLED_BACK) != _ROLLED_BACK
        order = np.flatnonzero(is_kept)
        order = order[np.argsort(row[order], kind="stable")]
        return pa.ListArray.from_arrays(_offsets(row[order], self.rows), texts.take(pa.array(order)))

    def _pairs_of(self, name: str) -> _Places:
        places: _Places = np.flatnonzero(pc.equal(self.names, name).to_numpy(zero_copy_only=False))
        return places


def split_properties(ends: _Places, data: NDArray[np.uint8], *, drops_joined: bool = False) -> SplitProperties | None:
    """Return the pairs of strings; None if the batch is one of the rare ones.

    `ends` has 0, then the end of each string in `data`. With `drops_joined` (as in `parse_properties`) batches with
    more separators of names than pairs are rare ones too.
    """
    if len(data) and data.max() >= _NOT_ASCII:
        return None
    rows = len(ends) - 1
    separators = np.flatnonzero(data == _PAIR_END)
    starts = np.sort(np.concatenate([ends[:-1], separators + 1]), kind="stable")
    stops = np.sort(np.concatenate([separators, ends[1:]]), kind="stable")
    name_ends = np.append(np.flatnonzero(data == _NAME_END), len(data) + 1)
    middle = name_ends[np.searchsorted(name_ends, starts)]
    is_pair = (middle > starts) & (middle + 1 < stops)
    if drops_joined and len(name_ends) - 1 != np.count_nonzero(is_pair):
        return None
    starts, stops, middle = starts[is_pair], stops[is_pair], middle[is_pair]
    bounds = np.empty(_PIECES * len(starts) + 1, np.int32)
    for piece, places in enumerate((starts, middle, middle + 1, stops)):
        bounds[piece:-1:_PIECES] = places
    bounds[-1] = len(data)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    pieces = pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)
    first = np.arange(0, len(bounds) - 1, _PIECES)
    names = pieces.take(pa.array(first))
    is_wanted = pc.not_equal(names, _TRAILER).to_numpy(zero_copy_only=False)
    row = np.searchsorted(ends[1:], starts[is_wanted], side="right")
    names = names.filter(pa.array(is_wanted))
    numbers = names.dictionary_encode()
    pairs = np.sort(row * (len(numbers.dictionary) + 1) + numbers.indices.to_numpy(), kind="stable")
    if (pairs[1:] == pairs[:-1]).any():
        return None
    return SplitProperties(rows, row, names, pieces.take(pa.array(first[is_wanted] + 2)))


def _offsets(row: _Places, rows: int) -> pa.Array:
    """Return where the entries of each row begin; `row` has the row of each entry, in order."""
    return pa.array(np.concatenate([[0], np.bincount(row, minlength=rows).cumsum()]).astype(np.int32))
