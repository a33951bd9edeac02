"""Drive a stream reader as Spark does: offsets go through JSON, each batch is read twice.

Spark itself is not used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.reading import read_task
from tornpage.pipeline.readers.streams import FollowingStream

__all__ = ["Following", "batch_rows", "ordered"]


class Following:
    """One stream over stores.

    `rows` and `problems` are its results so far, `offset` its place.
    """

    def __init__(self, name: str, *stores: Path, **options: str) -> None:
        paths = {"paths": json.dumps([str(store) for store in stores])}
        self._ask = Ask.of(name, {**paths, **options})
        self._problems = Ask.of(name, {**paths, **options, "columns": "*", "table": "problems"})
        self.rows: list[dict[str, Any]] = []
        self.problems: list[tuple[str, str, int | None]] = []
        self.restart()
        self.offset = _stored(self.stream.initialOffset())

    def restart(self) -> None:
        """Continue from the offset with a new reader."""
        self.stream = FollowingStream(self._ask)

    def look(self, *, bytes_max: int | None = None) -> bool:
        """Do one micro-batch; return whether there was one."""
        limit = ReadAllAvailable() if bytes_max is None else ReadMaxBytes(bytes_max)
        end = _stored(self.stream.latestOffset(self.offset, limit))
        if end == self.offset:
            return False
        self.rows += self.between(self._ask, self.offset, end)
        for row in self.between(self._problems, self.offset, end):
            self.problems.append((row["file"], row["code"], row["size"]))
        self.offset = end
        return True

    def catch_up(self, *, bytes_max: int | None = None) -> None:
        """Look until two looks in a row have found nothing new."""
        idle = 0
        while idle < 2:
            idle = 0 if self.look(bytes_max=bytes_max) else idle + 1

    def between(self, ask: Ask, start: Any, end: Any) -> list[dict[str, Any]]:
        """Read a batch twice, with two readers that have only the offsets."""
        first, second = (
            [
                row
                for stream in [FollowingStream(ask)]
                for task in stream.partitions(start, end)
                for batch in stream.read(task)
                for row in batch.to_pylist()
            ]
            for _ in range(2)
        )
        assert first == second
        return first

    def column(self, *names: str) -> list[Any]:
        """Return columns of the rows so far."""
        return [row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in self.rows]


def batch_rows(name: str, store: Path, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a batch read."""
    ask = Ask.of(name, {"path": str(store), **options})
    return [row for task in plan(ask) for found in read_task(task, ask) for row in found.to_pylist()]


def _stored(offset: Any) -> Any:
    return json.loads(json.dumps(offset))


def ordered(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows in an order that is the same for all readers."""
    return sorted(tuple(map(str, row.values())) for row in rows)
