"""Read commit log files as rows of `pipeline.rows.columns`, and outline the rest.

Files are read where they are needed, in a worker or in this process, with the judges' decoder, in bounded pieces,
without a map or a lock. Nothing is written. An error of a file is a row of the outline, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.rows.columns import KEYS, RECORDS, WANTED, LogBatch, QueueNumbers
from tornpage.pipeline.rows.dispatch import NO_UNIT_BIT, SCHEDULE_TOPIC, dispatch_of, has_queue
from tornpage.pipeline.rows.outline import LogPartition, LogRow, kind_of, text_of
from tornpage.properties.decode.arrays import Column, Topics, walk_arrays
from tornpage.properties.decode.arrays import LogBatch as WalkedBatch
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.walk import Item, Unreadable, Zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_log"]


def read_log(part: LogPartition, numbers: QueueNumbers) -> Iterator[LogBatch | LogRow]:
    """Yield the records of one log file in batches, and its outline.

    A batch comes before the runs that end in it.
    """
    run = _Run(part)
    asked = _Asked(part, numbers)
    changed, failure = False, None
    try:
        with FileSource(part.path, size_bytes_max=part.size_bytes) as source:
            for batch in walk_arrays(
                source,
                base_offset=part.base_offset,
                file_bytes=part.size_bytes,
                with_keys=True,
                drops_joined=part.drops_joined,
                topics=asked.topics,
            ):
                if len(batch):
                    yield asked.of(batch)
                yield from run.take(batch)
            changed = source.has_changed()
    except OSError as error:
        failure = error
    yield from run.finish()
    yield LogRow(
        part.store,
        part.label,
        "end",
        part.base_offset,
        changed=changed,
        error=text_of(failure),
        error_kind=kind_of(failure),
    )


class _Run:
    """Sums up consecutive records."""

    def __init__(self, part: LogPartition) -> None:
        self._part = part
        self._clear()

    def _clear(self) -> None:
        self._items = self._bytes = 0
        self._last = (0, 0, 0)
        self._settled_end: int | None = None
        self._newest, self._newest_flushed = 0, -1

    def take(self, batch: WalkedBatch) -> Iterator[LogRow]:
        """Take a batch; yield the runs that end in it, and the rows that end them."""
        row = 0
        for other in batch.others:
            self._add(batch, row, other.row)
            row = other.row
            yield from self.finish()
            yield self._row_of(other.item)
        self._add(batch, row, len(batch))

    def _add(self, batch: WalkedBatch, first: int, end: int) -> None:
        if first == end:
            return
        offset, size, time = (
            batch[column][first:end] for column in (Column.OFFSET, Column.SIZE, Column.STORE_TIMESTAMP)
        )
        self._items += end - first
        self._bytes += int(size.sum())
        self._last = (int(offset[-1]), int(size[-1]), int(time[-1]))
        self._newest = max(self._newest, int(time.max()))
        self._newest_flushed = max(self._newest_flushed, int(time[time <= self._part.flushed_ms].max(initial=-1)))
        if len(settled := np.flatnonzero(time <= self._part.settled_ms)):
            self._settled_end = int(offset[settled[-1]] + size[settled[-1]])

    def _row_of(self, item: Item) -> LogRow:
        place = (self._part.store, self._part.label)
        if isinstance(item, Bad):
            return LogRow(*place, "bad", item.offset, reason=item.reason, field=item.field)
        if isinstance(item, Unreadable):
            return LogRow(*place, "unreadable", item.offset, item.size_bytes, reason=item.reason)
        assert isinstance(item, Blank | Zeros)
        return LogRow(*place, "blank" if isinstance(item, Blank) else "zeros", item.offset, item.size_bytes)

    def finish(self) -> Iterator[LogRow]:
        """Yield the present run, if there is one, and begin the next."""
        if self._items:
            offset, size, time = self._last
            yield LogRow(
                self._part.store,
                self._part.label,
                "run",
                offset,
                size,
                timestamp=time,
                items=self._items,
                bytes=self._bytes,
                settled_end=self._settled_end,
                newest=self._newest,
                newest_flushed=self._newest_flushed,
            )
        self._clear()


class _Asked:
    """The units and keys that records need: a walk's columns in the shape of `columns`."""

    def __init__(self, part: LogPartition, numbers: QueueNumbers) -> None:
        self.topics = Topics()
        self._part = part
        self._numbers = numbers
        self._deleted = dict(part.deleted)
        self._names: list[str] = []
        self._place = part.base_offset

    def of(self, batch: WalkedBatch) -> LogBatch:
        """Return records, units and keys of a batch."""
        self._names += [topic.decode("utf-8", "replace") for topic in batch.topics[len(self._names) :]]
        records = np.empty(len(batch), RECORDS)
        for name, column in (("offset", Column.OFFSET), ("size", Column.SIZE), ("timestamp", Column.STORE_TIMESTAMP)):
            records[name] = batch[column]
        records["queue"] = self._queues(batch)
        keys = np.empty(len(batch.key_hashes), KEYS)
        keys["offset"] = np.repeat(batch[Column.OFFSET], batch[Column.KEY_COUNT])
        keys["timestamp"] = np.repeat(batch[Column.STORE_TIMESTAMP], batch[Column.KEY_COUNT])
        keys["hash"] = batch.key_hashes
        keys["place"] = np.arange(self._place, self._place + len(keys))
        self._place += len(keys)
        return LogBatch(records, self._wanted(batch, records), keys)

    def _queues(self, batch: WalkedBatch) -> NDArray[Any]:
        pairs = (batch[Column.TOPIC] << 32) | (batch[Column.QUEUE_ID] + (1 << 31))
        known, which = np.unique(pairs, return_inverse=True)
        numbers = [
            self._numbers.of((self._names[pair >> 32], (pair & 0xFFFFFFFF) - (1 << 31))) for pair in known.tolist()
        ]
        return np.array(numbers, "i4")[which]

    def _wanted(self, batch: WalkedBatch, records: NDArray[Any]) -> NDArray[Any]:
        """Return the needed units.

        The rules are those of `pipeline.rows.dispatch`, which also handles records of several queues.
        """
        is_own = (batch[Column.SYS_FLAG] & NO_UNIT_BIT) == 0
        is_own[list(batch.records)] = False
        deleted_below = np.array([self._deleted.get(name, 0) for name in self._names], "i8")
        is_own &= batch[Column.OFFSET] >= deleted_below[batch[Column.TOPIC]]
        is_own &= np.array([has_queue(topic) for topic in batch.topics], bool)[batch[Column.TOPIC]]
        own = np.flatnonzero(is_own)
        wanted = np.zeros(len(own), WANTED)
        for name in ("offset", "size", "queue", "timestamp"):
            wanted[name] = records[name][own]
        wanted["queue_offset"] = batch[Column.QUEUE_OFFSET][own]
        wanted["tags_code"] = batch[Column.TAGS_CODE][own]
        schedule = np.array([name == SCHEDULE_TOPIC for name in self._names], bool)
        wanted["is_delayed"] = (schedule[batch[Column.TOPIC]] & (batch[Column.DELAY_LEVEL] > 0))[own]
        if not batch.records:
            return wanted
        wanted = np.concatenate([wanted, np.array(list(self._special(batch.records.values())), WANTED)])
        return wanted[np.argsort(wanted["offset"], kind="stable")]

    def _special(self, records: Iterable[Record]) -> Iterator[tuple[Any, ...]]:
        for record in records:
            dispatch = dispatch_of(record, light_queues=self._part.light_queues, drops_joined=self._part.drops_joined)
            for place in dispatch.places:
                if record.offset < self._deleted.get(place.topic, 0):
                    continue
                queue = self._numbers.of((place.topic, place.queue_id))
                unit = (dispatch.tags_code, dispatch.is_delayed, place.is_light, record.store_timestamp)
                yield record.offset, queue, place.queue_offset, record.size_bytes, *unit
