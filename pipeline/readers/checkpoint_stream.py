"""Follow the checkpoint of a live store: one row whenever its times change.

An offset of a stream is the content of the checkpoint: its three times, and its errors. A batch is made from offsets
alone, so that it is the same however often it is read. An error is accepted when a second look finds the same, since a
starting store makes the file before it fills it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tornpage.pipeline.readers.parts import CheckpointPart, Part, Said
from tornpage.pipeline.readers.problems import Problem
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.store import read_checkpoint

__all__ = ["CheckpointFollower", "CheckpointOffset"]

CheckpointOffset: TypeAlias = dict[str, Any]
"""`times`: the three times in ms, or None. `problems`: code, file and message of each.

Both are empty at first.
"""


class CheckpointFollower:
    """Reads the checkpoints of stores, and remembers bad ones for the next look."""

    unknown: CheckpointOffset = {}  # noqa: RUF012 - it is never changed

    def __init__(self) -> None:
        self._bad: dict[str, CheckpointOffset] = {}

    def first(self, store: str) -> CheckpointOffset:
        """Return the offset of a store of which nothing was read yet."""
        return {}

    def target(self, store: str) -> CheckpointOffset:
        """Return the present content of the checkpoint."""
        return self._look(store)[0]

    def advanced(self, store: str, start: CheckpointOffset, bytes_max: int | None) -> CheckpointOffset:
        """Return the content of the checkpoint, or `start` as long as it is not certain."""
        found, is_certain = self._look(store)
        return found if is_certain else start

    def bounded(self, start: CheckpointOffset, latest: CheckpointOffset, target: CheckpointOffset) -> CheckpointOffset:
        """Return `target` if it was certain."""
        return target if latest == target or not target["problems"] else start

    def tasks(self, store: str, start: CheckpointOffset, end: CheckpointOffset) -> Iterator[tuple[Part, ...]]:
        """Yield a part with the times of `end` if they are new, and problems if they are."""
        times, problems = end.get("times"), end.get("problems", [])
        if times is not None and times != start.get("times"):
            yield (CheckpointPart(store, tuple(times)),)
        if problems and problems != start.get("problems"):
            yield (Said(tuple(Problem(store, file, code, None, None, text) for code, file, text in problems)),)

    def _look(self, store: str) -> tuple[CheckpointOffset, bool]:
        """Return the content of the checkpoint, and whether it is certain."""
        findings: list[Finding] = []
        read = read_checkpoint(Path(store), findings)
        found: CheckpointOffset = {
            "times": None if read is None else [read.physic_timestamp, read.logics_timestamp, read.index_timestamp],
            "problems": [[each.code, each.file, each.message] for each in findings],
        }
        if not findings:
            return found, True
        before, self._bad[store] = self._bad.get(store), found
        return found, before == found
