"""The parts that tasks read: small frozen values, which planning makes.

Importing this module does not load the readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tornpage.pipeline.readers.problems import Problem
from tornpage.properties.decode.index_files import IndexFile

__all__ = ["CheckpointPart", "IndexPart", "LogPart", "Part", "QueuePart", "Said"]


@dataclass(frozen=True, slots=True)
class LogPart:
    """A stretch of one log file: the records that begin from `start` on and before `stop`.

    Positions are bytes in the file. `is_seam` says that no record is known to begin at `start`. `stop` None is the end
    of the file. `is_exact` says that `stop` is a place between two items (of a stream), and that nothing after it is
    read. `is_live` says that a store is writing to the file.
    """

    store: str
    path: Path
    label: str
    base_offset: int
    file_bytes: int
    start: int = 0
    stop: int | None = None
    is_seam: bool = False
    is_exact: bool = False
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class QueuePart:
    """Units of one queue file between two positions (multiples of 20; None: the end).

    With a `stop` (from a stream), units that arrive meanwhile are after it. `is_last` says that no file of the queue
    follows: empty units at its end are room for later units.
    """

    store: str
    path: Path
    label: str
    topic: str
    queue_id: int
    base: int
    ext_directory: Path
    is_last: bool
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Entries of one index file after the first `start`; `slots` is the user's setting.

    `stop` None is all that the header counts. With a `stop` (from a stream) that many are read, and `slots` is certain.
    """

    store: str
    file: IndexFile
    slots: int | None
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """The checkpoint of one store.

    `times` are the times that a stream has read; None reads them now.
    """

    store: str
    times: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Problems found by planning."""

    problems: tuple[Problem, ...]


Part: TypeAlias = LogPart | QueuePart | IndexPart | CheckpointPart | Said
