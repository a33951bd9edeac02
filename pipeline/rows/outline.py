"""The files of log and queues to read, and the outline of what was read.

Planning makes small frozen partitions, one per file. A reader returns rows of records or units, and a few rows of
outline: everything that is no record or unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["LogPartition", "LogRow", "QueuePartition", "QueueRow", "kind_of", "text_of"]


@dataclass(frozen=True, slots=True)
class LogPartition:
    """One log file.

    Records up to store time `settled_ms` count as settled. `light_queues` is as in `dispatch_of`. `deleted` names
    topics, each with the physical offset below which its records need no unit. `flushed_ms` is the store time up to
    which the checkpoint proves that the log was flushed. `drops_joined` is as in `parse_properties`.
    """

    store: int
    path: Path
    label: str
    base_offset: int
    size_bytes: int
    settled_ms: int
    light_queues: bool
    deleted: tuple[tuple[str, int], ...] = ()
    flushed_ms: int = -1
    drops_joined: bool = False


@dataclass(frozen=True, slots=True)
class QueuePartition:
    """One consume queue file; `log_min` is the physical offset where the log begins."""

    store: int
    path: Path
    label: str
    topic: str
    queue_id: int
    base_offset: int
    size_bytes: int
    ext_directory: Path
    log_min: int


class LogRow(NamedTuple):
    """One row of the outline of a log file, in the order of the file.

    `kind` is `run` (consecutive records; offset, size and time are those of the last), `blank`, `bad`, `unreadable`,
    `zeros`, or `end`, the last row of a file. `settled_end` is the end of the last record of a run whose queues must
    have been flushed. `newest` is the newest time of the run, and `newest_flushed` the newest one up to which
    the checkpoint proves a flush, or -1.
    """

    store: int
    file: str
    kind: str
    offset: int
    size: int = 0
    timestamp: int = 0
    items: int = 0
    bytes: int = 0
    settled_end: int | None = None
    newest: int = 0
    newest_flushed: int = -1
    reason: str | None = None
    field: str | None = None
    changed: bool = False
    error: str | None = None
    error_kind: str | None = None


class QueueRow(NamedTuple):
    """One row of the outline of a queue file: runs of `empty` and `prefill` units, or `end`.

    `offset` is the physical offset of the unit after an empty run. In an `end` row, `items` counts the units that are
    neither empty nor pre-fill, `first_current` is the least queue offset that points into or past the log, `last_used`
    is the greatest that is not empty, and `outlived` is the end (queue offset) of the units that point before the log.
    """

    store: int
    file: str
    kind: str
    topic: str
    queue_id: int
    queue_offset: int | None = None
    offset: int | None = None
    items: int = 0
    first_current: int | None = None
    last_used: int | None = None
    outlived: int | None = None
    changed: bool = False
    error: str | None = None
    error_kind: str | None = None


def text_of(error: OSError | None) -> str | None:
    """Return the text of an error for a row."""
    return None if error is None else error.strerror or type(error).__name__


def kind_of(error: OSError | None) -> str | None:
    """Return the class of an error for a row."""
    return None if error is None else type(error).__name__
