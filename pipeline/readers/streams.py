"""The stream reader of all formats.

`spark.readStream.format("rocketmq-commitlog").load(store)`. The checkpoint of a stream has an offset for each store. A
follower defines what its offset means. Every row comes once, whatever is appended, restarted or rolled over meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from tornpage.pipeline.readers.asking import Ask, ReaderError
from tornpage.pipeline.readers.checkpoint_stream import CheckpointFollower
from tornpage.pipeline.readers.index_stream import IndexFollower
from tornpage.pipeline.readers.log_stream import LogFollower
from tornpage.pipeline.readers.parts import Part
from tornpage.pipeline.readers.queue_stream import QueueFollower
from tornpage.pipeline.readers.sources import Task
from tornpage.pipeline.readers.tables import PROBLEMS, ROWS

__all__ = ["Follower", "FollowingStream"]

Offset: TypeAlias = Any
"""How far one store was read: any JSON value."""


class Follower(Protocol):
    """A reader of the offsets of one kind of file. Equal offsets stand for equal rows."""

    unknown: Offset
    """The offset of a store that the stream has not met yet."""

    def first(self, store: str) -> Offset:
        """Return where a stream begins. Raises OSError."""

    def target(self, store: str) -> Offset:
        """Return how far there is data now, so that a bounded run can end there. Raises OSError."""

    def advanced(self, store: str, start: Offset, bytes_max: int | None) -> Offset:
        """Return how far the store can be read from `start` on; never back."""

    def bounded(self, start: Offset, latest: Offset, target: Offset) -> Offset:
        """Return the lower of `latest` and `target`, but not less than `start`."""

    def tasks(self, store: str, start: Offset, end: Offset) -> Iterator[tuple[Part, ...]]:
        """Yield the parts between two offsets, grouped by task."""


_FOLLOWERS: Mapping[str, Callable[[Ask], Follower]] = {
    "rocketmq-commitlog": lambda ask: LogFollower(ask.file_bytes),
    "rocketmq-consumequeue": lambda ask: QueueFollower(),
    "rocketmq-index": lambda ask: IndexFollower(ask.slots),
    "rocketmq-checkpoint": lambda ask: CheckpointFollower(),
}


class FollowingStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, reads in workers. Its offsets are those of a follower, by store."""

    def __init__(self, ask: Ask) -> None:
        if ask.table not in (ROWS, PROBLEMS):
            raise ReaderError(
                f"{ask.format}: the table {ask.table} is read as a batch only; follow {ROWS} or {PROBLEMS}"
            )
        self._ask = ask
        self._follower = _FOLLOWERS[ask.format](ask)
        self._target: dict[str, Offset] | None = None

    def initialOffset(self) -> dict[str, Offset]:  # noqa: N802
        """Return where the stores begin."""
        return {store: self._follower.first(store) for store in self._ask.stores}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of the option `maxBytesPerTrigger`, for each log, queue and index file."""
        return ReadMaxBytes(self._ask.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember how far there is data now. Cost: one look at everything."""
        self._target = {store: self._follower.target(store) for store in self._ask.stores}

    def latestOffset(self, start: dict[str, Offset], limit: ReadLimit) -> dict[str, Offset]:  # noqa: N802
        """Return how far the stores can be read from `start` on."""
        bytes_max = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        latest = {}
        for store in self._ask.stores:
            offset = start.get(store, self._follower.unknown)
            latest[store] = self._follower.advanced(store, offset, bytes_max)
            if self._target is not None:
                latest[store] = self._follower.bounded(offset, latest[store], self._target[store])
        return latest

    def partitions(self, start: dict[str, Offset], end: dict[str, Offset]) -> Sequence[InputPartition]:
        """Return the tasks between the offsets."""
        unknown = self._follower.unknown
        return [
            Task(parts)
            for store in self._ask.stores
            for parts in self._follower.tasks(store, start.get(store, unknown), end.get(store, unknown))
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches."""
        from tornpage.pipeline.readers.reading import read_task

        if not isinstance(partition, Task):
            return iter(())
        return read_task(partition.parts, self._ask)
