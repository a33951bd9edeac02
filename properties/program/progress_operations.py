"""What consumer groups note and ask, and what may become of the file of it, as values."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["CommitOffset", "HarmProgress", "ProgressHarm", "QueryOffsets"]

ProgressHarm = Literal["lost", "empty", "torn", "both", "stale", "misdirected"]


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """A group says that it wants a message of queue `queue` of those there are (counted modulo), `behind` the end.

    A negative `behind` is beyond the end, and in front of the first message is that one. `queue` -1 is a queue that
    nobody wrote to.
    """

    group: str = "g"
    queue: int = 0
    behind: int = 0
    op: Literal["commit_offset"] = "commit_offset"


@dataclass(frozen=True, slots=True)
class QueryOffsets:
    """Somebody asks where a group goes on in queue `queue` (as in CommitOffset), and how far it is behind."""

    group: str = "g"
    queue: int = 0
    op: Literal["query_offsets"] = "query_offsets"


@dataclass(frozen=True, slots=True)
class HarmProgress:
    """Harm the progress file of the closed store, then open it: its backup counts.

    It is `lost`, `empty`, `torn` (its second half is zeros), or `misdirected` (it holds the begin of a log file);
    `both`: so is the backup, and nothing is known. One that is `stale` says what its backup says, and that counts.
    """

    harm: ProgressHarm = "lost"
    op: Literal["harm_progress"] = "harm_progress"
