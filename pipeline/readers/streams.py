"""The stream reader of commit logs: `spark.readStream.format("rocketmq-commitlog").load(store)`.

The offset of a stream is one physical offset per store, kept in its checkpoint: every record comes once, whatever is
appended, restarted or rolled over meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from pipeline.readers.asking import Ask
from pipeline.readers.log_stream import advance, first_offset, parts_between
from pipeline.readers.sources import Task

__all__ = ["CommitLogStream"]

_Offsets = dict[str, int]


class CommitLogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, reads in workers."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._target: _Offsets | None = None

    def initialOffset(self) -> _Offsets:  # noqa: N802
        """Return where the logs begin."""
        return {store: first_offset(store, self._ask.file_bytes) for store in self._ask.stores}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit that the option `maxBytesPerTrigger` sets, for each store."""
        return ReadMaxBytes(self._ask.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember how far the logs can be read now. Cost: one walk over all that is there."""
        self._target = {store: self._advanced(store, offset, None) for store, offset in self.initialOffset().items()}

    def latestOffset(self, start: _Offsets, limit: ReadLimit) -> _Offsets:  # noqa: N802
        """Return how far the logs can be read from `start` on."""
        bytes_max = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        latest = {}
        for store in self._ask.stores:
            offset = start.get(store, 0)
            latest[store] = self._advanced(store, offset, bytes_max)
            if self._target is not None:
                latest[store] = max(offset, min(latest[store], self._target[store]))
        return latest

    def partitions(self, start: _Offsets, end: _Offsets) -> Sequence[InputPartition]:
        """Return one task for each file between the offsets."""
        return [
            Task((part,))
            for store in self._ask.stores
            for part in parts_between(store, start.get(store, 0), end.get(store, 0), self._ask.file_bytes)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches."""
        from pipeline.readers.reading import read_task

        if not isinstance(partition, Task):
            return iter(())
        return read_task(partition.parts, self._ask)

    def _advanced(self, store: str, offset: int, bytes_max: int | None) -> int:
        try:
            return advance(store, offset, file_bytes=self._ask.file_bytes, bytes_max=bytes_max)
        except OSError:
            return offset  # a file that retention takes away, or that may not be read yet: the next look will tell
