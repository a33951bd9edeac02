"""What changes around a store, or fails below it, as values: flags, disks, replicas, single calls."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["DiskUsed", "FailAppend", "FailSync", "FailWrite", "RefuseFile", "ReplicaIs", "SwitchFlag"]


@dataclass(frozen=True, slots=True)
class SwitchFlag:
    """An operator sets or clears a running flag (1, 2, 4 or 8)."""

    bit: int = 2
    on: bool = True
    op: Literal["switch_flag"] = "switch_flag"


@dataclass(frozen=True, slots=True)
class DiskUsed:
    """The disk is used to so many percent, and so much time passes that the store looks at it before the next put."""

    percent: int = 0
    op: Literal["disk_used"] = "disk_used"


@dataclass(frozen=True, slots=True)
class ReplicaIs:
    """From now on the best replica confirms, gives up at once, never answers, is too far behind, or is not there."""

    state: Literal["confirms", "silent", "hangs", "behind", "none"] = "none"
    op: Literal["replica_is"] = "replica_is"


@dataclass(frozen=True, slots=True)
class FailAppend:
    """The mapped file refuses the bytes of the next put that gets so far."""

    op: Literal["fail_append"] = "fail_append"


@dataclass(frozen=True, slots=True)
class FailSync:
    """The next file sync answers EIO."""

    op: Literal["fail_sync"] = "fail_sync"


@dataclass(frozen=True, slots=True)
class FailWrite:
    """The next write to a log file that does not go through its mapping, a commit, ends half way with EIO."""

    op: Literal["fail_write"] = "fail_write"


@dataclass(frozen=True, slots=True)
class RefuseFile:
    """The disk is full for the next file that dispatch makes for a queue or for the index."""

    op: Literal["refuse_file"] = "refuse_file"
