"""Sum the records of a part of a log by topic and queue.

Only the sums are carried to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tornpage.pipeline.readers.tables import FORMATS, SUMS, arrow_schema
from tornpage.pipeline.tables.described import times_of
from tornpage.properties.decode.arrays import Column, LogBatch

__all__ = ["TopicSums"]

_DENSE_MAX = 1 << 20
"""Most combinations of topic and queue that are counted in arrays instead of being sorted."""

_SUMMED = ("messages", "bytes", "body_bytes")
_Numbers = NDArray[np.int64]


class TopicSums:
    """Sums of one part, by topic and queue."""

    def __init__(self, store: str, label: str, names: tuple[str, ...]) -> None:
        self._fixed = {"store": store, "file": label}
        self._names = names
        self._sums: dict[tuple[bytes, int], list[int]] = {}

    def add(self, batch: LogBatch) -> None:
        """Add the records of a batch."""
        if not len(batch):
            return
        keys, which = _grouped(batch[Column.TOPIC], batch[Column.QUEUE_ID])
        times = batch[Column.STORE_TIMESTAMP]
        first, last = np.full(len(keys), np.iinfo("i8").max), np.full(len(keys), np.iinfo("i8").min)
        np.minimum.at(first, which, times)
        np.maximum.at(last, which, times)
        columns = [np.bincount(which, minlength=len(keys))]
        for column in (Column.SIZE, Column.BODY_SIZE):
            columns.append(np.bincount(which, batch[column], len(keys)).astype("i8"))  # exact below 2^53
        for (topic, queue), *now in zip(keys, *(each.tolist() for each in (*columns, first, last)), strict=True):
            before = self._sums.setdefault((batch.topics[topic], queue), [0, 0, 0, now[3], now[4]])
            for place in range(len(_SUMMED)):
                before[place] += now[place]
            before[3:] = [min(before[3], now[3]), max(before[4], now[4])]

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Yield the sums as one batch, unless there was no record; then begin again."""
        if not self._sums:
            return
        keys, sums = list(self._sums), list(zip(*self._sums.values(), strict=True))
        self._sums = {}
        columns: dict[str, object] = {
            "topic": [topic.decode("utf-8", "replace") for topic, _ in keys],
            "queue_id": [queue for _, queue in keys],
            **dict(zip((*_SUMMED, "first_timestamp", "last_timestamp"), sums, strict=True)),
        }
        schema = arrow_schema(FORMATS["rocketmq-commitlog"][SUMS], self._names)
        yield pa.RecordBatch.from_arrays(
            [
                pa.repeat(self._fixed[name], len(keys)) if name in self._fixed
                else times_of(np.array(columns[_TIMES[name]], "i8")) if name in _TIMES
                else pa.array(columns[name], schema.field(name).type)
                for name in self._names
            ],
            schema=schema,
        )  # fmt: skip


_TIMES = {"first_time": "first_timestamp", "last_time": "last_timestamp"}


def _grouped(topics: _Numbers, queues: _Numbers) -> tuple[list[tuple[int, int]], _Numbers]:
    """Return the different pairs, and for each record the place of its pair."""
    least = int(queues.min())
    span = int(queues.max()) - least + 1
    if (int(topics.max()) + 1) * span <= _DENSE_MAX:
        codes = topics * span + (queues - least)
        used = np.bincount(codes) > 0
        pairs = np.flatnonzero(used)
        place = np.cumsum(used) - 1
        return [(code // span, code % span + least) for code in pairs.tolist()], place[codes]
    known, which = np.unique(np.stack([topics, queues]), axis=1, return_inverse=True)
    return [(topic, queue) for topic, queue in known.T.tolist()], which.reshape(-1)
