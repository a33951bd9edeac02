"""Walk a log file into columns: the kernel takes valid records, the plain walk the rest.

`walk_arrays` yields the same items as `properties.decode.walk.walk_source` from the same place, in batches of columns.
Memory is bounded by one batch, one piece of the file and one record. Only errors of the device raise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from tornpage.properties.decode.arrays.columns import Column, LogBatch, OtherItem
from tornpage.properties.decode.arrays.plain import full_row
from tornpage.properties.decode.arrays.texts import TEXTS, TextColumns
from tornpage.properties.decode.arrays.topics import Topics
from tornpage.properties.decode.record import END_RESERVE_BYTES, Bad, Blank, Record
from tornpage.properties.decode.store import RECORD_BYTES_MAX
from tornpage.properties.decode.walk import Source, Zeros, walk_source

try:
    from tornpage.properties.decode.arrays import records as _compiled
except (ImportError, RuntimeError, OSError, KeyError):  # no isal, or no directory for Numba's compiled kernels
    _compiled = None  # type: ignore[assignment]

__all__ = ["BATCH_ROWS", "PIECE_BYTES", "is_compiled", "walk_arrays"]

BATCH_ROWS = 65_536
PIECE_BYTES = 1024 * 1024
TEXT_BYTES = 4 * 1024 * 1024
"""Size of a batch's texts at which it is complete. Larger buffers leave the cache, and their pages are always new."""

_KEYS_A_ROW = 4


def is_compiled() -> bool:
    """Whether walks of this process are compiled; plain walks are about 40 times slower."""
    return _compiled is not None


def walk_arrays(
    source: Source,
    *,
    base_offset: int,
    file_bytes: int,
    position: int = 0,
    stop: int | None = None,
    texts: Collection[str] = (),
    with_properties: bool = True,
    with_keys: bool = False,
    drops_joined: bool = False,
    topics: Topics | None = None,
    batch_rows: int = BATCH_ROWS,
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> Iterator[LogBatch]:
    """Yield the items of one log file in order, from `position` on, in at least one batch.

    The walk ends with the file, or before the first record at or after the position `stop`. `texts` names byte strings
    to return, `with_properties` fills the columns that need properties, and `with_keys` also the key hashes. `topics`
    may be shared by the walks of several files. `drops_joined` is as in `parse_properties`.
    """
    walk = _Walk(source, base_offset, file_bytes, record_bytes_max, topics or Topics(), batch_rows)
    walk.ask(frozenset(texts), with_properties or with_keys, with_keys, drops_joined)
    return walk.batches(position, file_bytes if stop is None else stop)


class _Walk:
    """One walk: the batch being filled, and the place reached."""

    def __init__(
        self, source: Source, base: int, file_bytes: int, record_bytes_max: int, topics: Topics, batch_rows: int
    ) -> None:
        self._source = source
        self._base = base
        self._file_bytes = file_bytes
        self._record_bytes_max = record_bytes_max
        self._topics = topics
        self._batch_rows = batch_rows
        self._begin()

    def ask(self, texts: frozenset[str], with_properties: bool, with_keys: bool, drops_joined: bool) -> None:
        """Set what a batch has besides the columns. Raises ValueError."""
        if unknown := texts - TEXTS:
            raise ValueError(f"no such text: {', '.join(sorted(unknown))}; there are {', '.join(sorted(TEXTS))}")
        self._text_names, self._with_properties, self._with_keys = texts, with_properties, with_keys
        self._drops_joined = drops_joined
        self._texts = TextColumns(texts)

    def batches(self, position: int, stop: int) -> Iterator[LogBatch]:
        ended = False
        while not ended and position < self._source.end:
            at, is_full = self._take_records(position, stop) if _compiled is not None else (position, False)
            if self._row and (is_full or self._row == self._batch_rows or self._texts.size_bytes > TEXT_BYTES):
                yield self._finish(at)
            if at == position:
                at, ended = self._take_plain(position, stop)
            position = at
        yield self._finish(position)

    def _begin(self) -> None:
        self._table: NDArray[np.int64] = np.empty((len(Column), self._batch_rows), np.int64)
        self._keys: NDArray[np.int64] = np.empty(_KEYS_A_ROW * self._batch_rows, np.int64)
        self._row = self._key_count = 0
        self._others: list[OtherItem] = []
        self._records: dict[int, Record] = {}

    def _finish(self, position: int) -> LogBatch:
        batch = LogBatch(
            table=self._table[:, : self._row],
            topics=self._topics.names,
            others=tuple(self._others),
            end=self._base + position,
            key_hashes=self._keys[: self._key_count],
            texts=self._texts.take(),
            records=self._records,
        )
        self._begin()
        return batch

    def _take_records(self, position: int, stop: int) -> tuple[int, bool]:
        """Let the kernel take records of one piece; return the place after them.

        Also returns whether a table is full.
        """
        piece = self._source.read(position, PIECE_BYTES)
        size = int.from_bytes(piece[:4], "big")
        if PIECE_BYTES < size <= self._record_bytes_max:
            piece = self._source.read(position, size)
        data = np.frombuffer(piece, np.uint8)
        wants = self._with_properties * _compiled.WITH_PROPERTIES | self._with_keys * _compiled.WITH_KEYS
        wants |= self._drops_joined * _compiled.DROPS_JOINED
        room_end = self._file_bytes - END_RESERVE_BYTES - position
        first, base = self._row, self._base + position
        self._row, self._key_count, at, status = _compiled.walk_records(
            data,
            0,
            min(stop - position, len(data)),
            base,
            room_end,
            self._record_bytes_max,
            wants,
            self._table,
            first,
            self._keys,
            self._key_count,
            self._topics.pool,
            self._topics.ends,
            self._topics.slots,
        )
        if at:
            self._topics.take_new()
            self._texts.add_piece(data, base, self._table[:, first : self._row], _compiled.copy_stretches)
        return position + at, status == _compiled.FULL

    def _take_plain(self, position: int, stop: int) -> tuple[int, bool]:
        """Take one item by the plain walk, with its `Bad`; return the place after it.

        Also returns whether the walk is over.
        """
        for item in walk_source(
            self._source,
            base_offset=self._base,
            file_bytes=self._file_bytes,
            position=position,
            record_bytes_max=self._record_bytes_max,
        ):
            if isinstance(item, Record):
                if position >= stop:
                    return position, True
                self._add(item)
                return position + item.size_bytes, False
            self._others.append(OtherItem(self._row, item))
            if isinstance(item, Bad):
                continue
            if isinstance(item, Blank | Zeros):
                return self._source.end, True
            return position + item.size_bytes, False
        return self._source.end, True

    def _add(self, record: Record) -> None:
        row, keys = full_row(
            record,
            self._topics,
            with_properties=self._with_properties,
            with_keys=self._with_keys,
            drops_joined=self._drops_joined,
        )
        self._table[:, self._row] = row
        if self._key_count + len(keys) > len(self._keys):
            self._keys = np.concatenate((self._keys, np.empty(max(len(keys), len(self._keys)), np.int64)))
        self._keys[self._key_count : self._key_count + len(keys)] = keys
        self._key_count += len(keys)
        self._texts.add_record(record)
        if self._with_properties:
            self._records[self._row] = record
        self._row += 1
