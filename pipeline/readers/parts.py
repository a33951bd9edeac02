"""What one task reads a stretch of: small frozen values that planning makes, without loading what reading needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tornpage.pipeline.readers.problems import Problem
from tornpage.properties.decode.index_files import IndexFile

__all__ = ["CheckpointPart", "IndexPart", "LogPart", "Part", "QueuePart", "Said"]


@dataclass(frozen=True, slots=True)
class LogPart:
    """A stretch of one log file, positions in bytes: records that begin from `start` on and below `stop`.

    `is_seam` says that no record is known to begin at `start`; `stop` None: to the end of the file. `is_exact` says
    that `stop` is a place between two items (a stream's), behind which nothing is looked at. `is_live`: a store is at
    work on the file.
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
    """Units of one queue file between two positions (multiples of 20; None: to the end of the file).

    Where `stop` is stated (by a stream), what comes meanwhile lies behind it. `is_last` says that no file of the queue
    follows: empty units at its end are the room for units to come.
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
    """Entries of one index file behind the first `start` of them; `slots` is what the user states.

    `stop` None: all that the header counts. Else (a stream's) so many, and the file has `slots` for certain.
    """

    store: str
    file: IndexFile
    slots: int | None
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """The checkpoint of one store; `times` are what it said to a stream, None: what it says when it is read."""

    store: str
    times: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Problems that planning has found."""

    problems: tuple[Problem, ...]


Part: TypeAlias = LogPart | QueuePart | IndexPart | CheckpointPart | Said
