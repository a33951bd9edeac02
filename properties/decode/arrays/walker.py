"""Walk a log file into columns: the kernel takes sound records, the plain walk all else, item for item the same.

`walk_arrays` yields what `properties.decode.walk.walk_source` yields from the same place, in batches of columns. Memory
is bounded by one batch, one piece of the file and one record. No bytes make it raise; errors of the device do.
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
except (ImportError, RuntimeError, OSError, KeyError):  # no isal, or a Numba without a place to keep what it compiled
    _compiled = None  # type: ignore[assignment]

__all__ = ["BATCH_ROWS", "PIECE_BYTES", "is_compiled", "walk_arrays"]

BATCH_ROWS = 65_536
PIECE_BYTES = 1024 * 1024
TEXT_BYTES = 64 * 1024 * 1024
"""A batch with so many bytes of texts is complete."""

_KEYS_A_ROW = 4


def is_compiled() -> bool:
    """Return whether walks of this process are compiled; otherwise they are right, and some forty times slower."""
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
    topics: Topics | None = None,
    batch_rows: int = BATCH_ROWS,
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> Iterator[LogBatch]:
    """Yield the items of one log file in order, beginning at `position`, at least one batch.

    It ends with the file, or before the first record that begins at or behind the position `stop`. `texts` names byte
    strings to give along, `with_properties` fills the columns that need properties, `with_keys` also the key hashes.
    `topics` may be shared by the walks of several files.
    """
    walk = _Walk(source, base_offset, file_bytes, record_bytes_max, topics or Topics(), batch_rows)
    walk.ask(frozenset(texts), with_properties or with_keys, with_keys)
    return walk.batches(position, file_bytes if stop is None else stop)


class _Walk:
    """One walk: a batch in the making, and the place it has come to."""

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

    def ask(self, texts: frozenset[str], with_properties: bool, with_keys: bool) -> None:
        """Say what a batch has to hold besides the columns. Raises ValueError."""
        if unknown := texts - TEXTS:
            raise ValueError(f"no such text: {', '.join(sorted(unknown))}; there are {', '.join(sorted(TEXTS))}")
        self._text_names, self._with_properties, self._with_keys = texts, with_properties, with_keys
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
        """Let the kernel take what it can of one piece; return (place behind it, whether a table is full)."""
        piece = self._source.read(position, PIECE_BYTES)
        size = int.from_bytes(piece[:4], "big")
        if PIECE_BYTES < size <= self._record_bytes_max:
            piece = self._source.read(position, size)
        data = np.frombuffer(piece, np.uint8)
        wants = self._with_properties * _compiled.WITH_PROPERTIES | self._with_keys * _compiled.WITH_KEYS
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
        """Take one item by the plain walk, with the `Bad` that belongs to it; return (place behind it, is it over)."""
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
        row, keys = full_row(record, self._topics, with_properties=self._with_properties, with_keys=self._with_keys)
        self._table[:, self._row] = row
        if self._key_count + len(keys) > len(self._keys):
            self._keys = np.concatenate((self._keys, np.empty(max(len(keys), len(self._keys)), np.int64)))
        self._keys[self._key_count : self._key_count + len(keys)] = keys
        self._key_count += len(keys)
        self._texts.add_record(record)
        if self._with_properties:
            self._records[self._row] = record
        self._row += 1
