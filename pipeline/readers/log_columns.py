"""Turn batches of a walk into Arrow batches, with work only for the wanted columns."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tornpage.pipeline.readers.conditions import CHECKED, Conditions
from tornpage.pipeline.readers.split_properties import SplitProperties, split_properties
from tornpage.pipeline.readers.tables import FORMATS, ROWS, TIMES, arrow_schema
from tornpage.pipeline.tables.described import times_of
from tornpage.properties.decode.arrays import Column, LogBatch
from tornpage.properties.decode.arrays.columns import Texts
from tornpage.properties.decode.arrays.plain import keys_of_properties
from tornpage.properties.decode.record import parse_properties

__all__ = ["Columns"]

_TABLE = FORMATS["rocketmq-commitlog"][ROWS]
_NUMBERS = {
    "offset": Column.OFFSET,
    "size": Column.SIZE,
    "queue_id": Column.QUEUE_ID,
    "queue_offset": Column.QUEUE_OFFSET,
    "flag": Column.FLAG,
    "sys_flag": Column.SYS_FLAG,
    "born_timestamp": Column.BORN_TIMESTAMP,
    "store_timestamp": Column.STORE_TIMESTAMP,
    "reconsume_times": Column.RECONSUME_TIMES,
    "prepared_transaction_offset": Column.PREPARED_TRANSACTION_OFFSET,
    "body_size": Column.BODY_SIZE,
    "tags_code": Column.TAGS_CODE,
    "delay_level": Column.DELAY_LEVEL,
    "body_crc": Column.BODY_CRC,
    "properties_size": Column.PROPERTIES_SIZE,
}
_TEXTS = {
    "tags": ("properties",),
    "keys": ("properties",),
    "properties": ("properties",),
    "born_host": ("born_host",),
    "store_host": ("store_host",),
    "message_id": ("store_host",),
    "body": ("body",),
    "raw": ("raw",),
}
_CHECKED = tuple(name for name in _NUMBERS if name in CHECKED["rocketmq-commitlog"])
_FROM_PROPERTIES = frozenset({"tags_code", "delay_level"})
_OF_PROPERTIES = frozenset({"tags", "keys", "properties"})
_PORT = struct.Struct(">i")
_PLACE = struct.Struct(">q")


def _no_texts(batch: LogBatch) -> Texts:
    """Return the texts of no row."""
    return {name: (ends[:1], data[:0]) for name, (ends, data) in batch.texts.items()}


class Columns:
    """Makes Arrow batches of one file."""

    def __init__(
        self,
        store: str,
        label: str,
        names: tuple[str, ...],
        conditions: Conditions | None = None,
        *,
        drops_joined: bool = False,
    ) -> None:
        self._fixed = {"store": store, "file": label}
        self._names = names
        self._conditions = conditions
        self._drops_joined = drops_joined
        self._schema = arrow_schema(_TABLE, names)
        self.texts = {text for name in names for text in _TEXTS.get(name, ())}
        self.with_properties = not _FROM_PROPERTIES.isdisjoint(names)

    def of(self, batch: LogBatch) -> pa.RecordBatch:
        """Return the columns of a batch, only of the rows that fit the conditions."""
        if self._conditions is None:
            return self._all_of(batch)
        fits = self._fitting(self._conditions, batch)
        if fits.all():
            return self._all_of(batch)
        if self.texts and fits.any():
            return self._all_of(batch).filter(pa.array(fits))
        return self._all_of(replace(batch, table=batch.table[:, fits], texts=_no_texts(batch)))

    def _fitting(self, conditions: Conditions, batch: LogBatch) -> NDArray[np.bool_]:
        fits = conditions.fitting({name: batch[_NUMBERS[name]] for name in _CHECKED}, len(batch))
        if conditions.topics is not None:
            wanted = [conditions.has_topic(topic.decode("utf-8", "replace")) for topic in batch.topics]
            fits &= np.array(wanted, bool)[batch[Column.TOPIC]]
        return fits

    def _all_of(self, batch: LogBatch) -> pa.RecordBatch:
        split = None
        if not _OF_PROPERTIES.isdisjoint(self._names):
            split = split_properties(*batch.texts["properties"], drops_joined=self._drops_joined)
        arrays = [
            self._column(name, batch) if split is None or name not in _OF_PROPERTIES else _of(split, name, batch)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, name: str, batch: LogBatch) -> pa.Array:
        kind = self._schema.field(name).type
        if name in _NUMBERS:
            values = batch[_NUMBERS[name]]
            return pa.array(values.astype(np.int32) if kind == pa.int32() else values, kind)
        if name in self._fixed:
            return pa.repeat(self._fixed[name], len(batch))
        if name == "topic":
            names = pa.array([topic.decode("utf-8", "replace") for topic in batch.topics])
            return names.take(pa.array(batch[Column.TOPIC]))
        if name in TIMES:
            return times_of(batch[_NUMBERS[TIMES[name]]])
        if name == "checksum":
            values = batch[Column.CHECKSUM]
            return pa.array(values, kind, mask=values < 0)
        if name in ("body", "raw"):
            ends, data = batch.texts[name]
            buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
            return pa.Array.from_buffers(kind, len(batch), buffers)
        if name in _OF_PROPERTIES:
            return pa.array(_MADE_OF_PROPERTIES[name](self._properties_of(batch), batch), kind)
        return pa.array(_MADE[name](batch), kind)

    def _properties_of(self, batch: LogBatch) -> Iterator[dict[str, str]]:
        """Yield the properties of each record of a rare batch."""
        for stored in _strings(*batch.texts["properties"]):
            yield parse_properties(stored, drops_joined=self._drops_joined)


def _of(split: SplitProperties, name: str, batch: LogBatch) -> pa.Array:
    """Return a column that is made from the properties."""
    if name == "keys":
        return split.keys(batch[Column.SYS_FLAG])
    return split.maps() if name == "properties" else split.value_of("TAGS")


def _strings(ends: NDArray[np.int64], data: NDArray[np.uint8]) -> Iterator[bytes]:
    whole, places = data.tobytes(), ends.tolist()
    return (whole[start:end] for start, end in pairwise(places))


@lru_cache(maxsize=4096)
def _host(stored: bytes) -> str:
    port = _PORT.unpack_from(stored, len(stored) - 4)[0]
    if len(stored) == 8:
        return f"{socket.inet_ntop(socket.AF_INET, stored[:4])}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, stored[:16])}]:{port}"


def _hosts(name: str) -> Callable[[LogBatch], list[str]]:
    return lambda batch: [_host(stored) for stored in _strings(*batch.texts[name])]


def _tags(properties: Iterator[dict[str, str]], _: LogBatch) -> list[str | None]:
    return [each.get("TAGS") for each in properties]


def _pairs(properties: Iterator[dict[str, str]], _: LogBatch) -> list[list[tuple[str, str]]]:
    return [list(each.items()) for each in properties]


def _keys(properties: Iterator[dict[str, str]], batch: LogBatch) -> list[list[str]]:
    flags = batch[Column.SYS_FLAG].tolist()
    return [keys_of_properties(each, flag) for each, flag in zip(properties, flags, strict=True)]


def _message_ids(batch: LogBatch) -> list[str]:
    hosts = _strings(*batch.texts["store_host"])
    offsets = batch[Column.OFFSET].tolist()
    return [(host + _PLACE.pack(offset)).hex().upper() for host, offset in zip(hosts, offsets, strict=True)]


_MADE: dict[str, Callable[[LogBatch], list[object]]] = {
    "born_host": _hosts("born_host"),  # type: ignore[dict-item]
    "store_host": _hosts("store_host"),  # type: ignore[dict-item]
    "message_id": _message_ids,  # type: ignore[dict-item]
}
_MADE_OF_PROPERTIES: dict[str, Callable[[Iterator[dict[str, str]], LogBatch], list[object]]] = {
    "tags": _tags,  # type: ignore[dict-item]
    "keys": _keys,  # type: ignore[dict-item]
    "properties": _pairs,  # type: ignore[dict-item]
}
