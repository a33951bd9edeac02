"""Operations: what producers, readers, services, disks and disasters do in a case, as values.

Fields are plain numbers, words and tuples, so that a case is readable JSON; defaults are left out there, and what is
new gets a default that keeps the meaning of older cases. Each has an `op`, its name in the JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from properties.cases.delay_operations import ChangeRole, ClockStep, DelayOffsetsAre
from properties.cases.fault_operations import AimFault
from properties.cases.polling_operations import CancelPull, PullHeld, PullWhileDispatching
from properties.cases.progress_operations import CommitOffset, HarmProgress, ProgressHarm, QueryOffsets
from properties.cases.put_operations import BatchDefect, Concurrent, Member, Put, PutBatch
from properties.cases.retention_operations import Clean, DeleteTopics, HoldBuffer, ReleaseBuffer
from properties.images.choosing import Others
from properties.images.images import Choice

__all__ = [
    "OPERATIONS",
    "WITHOUT_A_VERB",
    "AimFault",
    "BatchDefect",
    "CancelPull",
    "ChangeRole",
    "Clean",
    "ClockStep",
    "Close",
    "CommitOffset",
    "Concurrent",
    "Crash",
    "Damage",
    "DamageKind",
    "DelayOffsetsAre",
    "DeleteTopics",
    "DerivedFile",
    "DerivedHarm",
    "DiskUsed",
    "FailAppend",
    "FailSync",
    "FailWrite",
    "Flush",
    "Get",
    "GetMessage",
    "HarmDerived",
    "HarmProgress",
    "HoldBuffer",
    "Member",
    "OffsetByTime",
    "Open",
    "OpenTwice",
    "Operation",
    "ProgressHarm",
    "PullHeld",
    "PullWhileDispatching",
    "Put",
    "PutBatch",
    "QueryKey",
    "QueryOffsets",
    "RefuseFile",
    "ReleaseBuffer",
    "ReplicaIs",
    "ServiceName",
    "Step",
    "SwitchFlag",
]

DamageKind = Literal["truncate", "flip", "misdirect", "zero_page", "stale_page", "misdirect_page", "missing"]
DerivedFile = Literal["queue", "index", "extension", "checkpoint", "floor", "derived-floor", "marker"]
DerivedHarm = Literal["lost", "zeroed", "torn", "stale", "misdirected", "resized", "stray"]
ServiceName = Literal[
    "group-commit",
    "time-outs",
    "flush",
    "commit",
    "allocate",
    "reput",
    "flush-queues",
    "clean",
    "pull-hold",
    "progress",
    "schedule",
]


@dataclass(frozen=True, slots=True)
class Step:
    """Time passes, then a service takes one step; one that the store does not have takes none.

    A step of group commit answers all puts that wait for the disk.
    """

    service: ServiceName = "group-commit"
    after_ms: int = 0
    op: Literal["step"] = "step"


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
class Get:
    """Get at the offset of record `record` (counted modulo) plus `shift` bytes."""

    record: int = 0
    shift: int = 0
    op: Literal["get"] = "get"


@dataclass(frozen=True, slots=True)
class GetMessage:
    """Read queue `queue` of those there are (counted modulo), from `shift` behind its minimum on; -1 is before it.

    `queue` -1 is a queue that nobody wrote to. `tags` are the tags that are wanted, separated by `||`; none is all.
    """

    queue: int = 0
    shift: int = 0
    max_msg_nums: int = 32
    tags: str = ""
    op: Literal["get_message"] = "get_message"


@dataclass(frozen=True, slots=True)
class QueryKey:
    """Query key `key` of those there are (counted modulo), -1 being one that nobody used, for `max_num` messages.

    The window begins `begin_ms` behind the first message that was put and is `window_ms` long; -1 is without an end.
    """

    key: int = 0
    max_num: int = 32
    begin_ms: int = 0
    window_ms: int = -1
    op: Literal["query_key"] = "query_key"


@dataclass(frozen=True, slots=True)
class OffsetByTime:
    """Ask for the offset in queue `queue` (as in GetMessage) at the time of record `record` there, plus `shift_ms`."""

    queue: int = 0
    record: int = 0
    shift_ms: int = 0
    op: Literal["offset_by_time"] = "offset_by_time"


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush the store."""

    op: Literal["flush"] = "flush"


@dataclass(frozen=True, slots=True)
class Close:
    """Close the store cleanly."""

    op: Literal["close"] = "close"


@dataclass(frozen=True, slots=True)
class Open:
    """Open the closed store."""

    op: Literal["open"] = "open"


@dataclass(frozen=True, slots=True)
class OpenTwice:
    """Somebody else opens the store while it is open."""

    op: Literal["open_twice"] = "open_twice"


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


@dataclass(frozen=True, slots=True)
class Crash:
    """Power loss, or kill of the process, and recovery. `back` events before the answer of the last verb; 0 is at rest.

    `survived` names facts, and the version of each that reached the disk: 0 is the one of its last sync. What it does
    not name is as `others` says: lost, or kept in its latest version (in a kill everything is).
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    op: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage the closed store outside the crash model, then open it: it must say so and serve only what verifies.

    `truncate` cuts the newest log file at `amount` (modulo its size), `flip` flips bit `amount` of record `record`,
    `misdirect` writes another record of equal size over record `record`. The page in which record `record` begins is
    zeros after `zero_page`, holds one of its earlier contents after `stale_page`, and another page of the log after
    `misdirect_page`, number `amount` of those there are (modulo). `missing` takes the file of record `record` away.
    """

    kind: DamageKind = "flip"
    record: int = 0
    amount: int = 0
    op: Literal["damage"] = "damage"


@dataclass(frozen=True, slots=True)
class HarmDerived:
    """Harm a file of the closed store that the log can do without, then open it: everything is there, read-write.

    Of the files of that kind it is number `number` (modulo). It is `lost`, `zeroed` from byte `amount` on (modulo its
    size), `torn` (a sector of it is zero, the one with byte `amount`), `stale` (as the last recovery found it, or as it
    was made), `misdirected` (the page with byte `amount` holds a page of another file), `resized` to `amount` bytes, or
    a `stray` file lies beside it. A marker can only be stale: there, although the exit was clean.
    """

    file: DerivedFile = "queue"
    harm: DerivedHarm = "lost"
    number: int = 0
    amount: int = 0
    op: Literal["harm_derived"] = "harm_derived"


Operation = (
    Put
    | PutBatch
    | Step
    | Concurrent
    | SwitchFlag
    | DiskUsed
    | ReplicaIs
    | FailAppend
    | Get
    | GetMessage
    | QueryKey
    | OffsetByTime
    | Flush
    | Close
    | Open
    | OpenTwice
    | FailSync
    | FailWrite
    | RefuseFile
    | AimFault
    | Crash
    | Damage
    | HarmDerived
    | Clean
    | DeleteTopics
    | HoldBuffer
    | ReleaseBuffer
    | PullHeld
    | CancelPull
    | PullWhileDispatching
    | CommitOffset
    | QueryOffsets
    | HarmProgress
    | ClockStep
    | DelayOffsetsAre
    | ChangeRole
)
WITHOUT_A_VERB = (
    Get,
    GetMessage,
    QueryKey,
    OffsetByTime,
    OpenTwice,
    SwitchFlag,
    DiskUsed,
    ReplicaIs,
    FailAppend,
    FailSync,
    FailWrite,
    RefuseFile,
    AimFault,
    HoldBuffer,
    ReleaseBuffer,
    PullHeld,
    CancelPull,
    CommitOffset,
    QueryOffsets,
)
"""Operations that ask nothing of the disk: no crash falls into them."""

OPERATIONS: dict[str, Any] = {
    "put": Put,
    "put_batch": PutBatch,
    "step": Step,
    "concurrent": Concurrent,
    "switch_flag": SwitchFlag,
    "disk_used": DiskUsed,
    "replica_is": ReplicaIs,
    "fail_append": FailAppend,
    "get": Get,
    "get_message": GetMessage,
    "query_key": QueryKey,
    "offset_by_time": OffsetByTime,
    "flush": Flush,
    "close": Close,
    "open": Open,
    "open_twice": OpenTwice,
    "fail_sync": FailSync,
    "fail_write": FailWrite,
    "refuse_file": RefuseFile,
    "aim_fault": AimFault,
    "crash": Crash,
    "damage": Damage,
    "harm_derived": HarmDerived,
    "clean": Clean,
    "delete_topics": DeleteTopics,
    "hold_buffer": HoldBuffer,
    "release_buffer": ReleaseBuffer,
    "pull_held": PullHeld,
    "cancel_pull": CancelPull,
    "pull_while_dispatching": PullWhileDispatching,
    "commit_offset": CommitOffset,
    "query_offsets": QueryOffsets,
    "harm_progress": HarmProgress,
    "clock_step": ClockStep,
    "delay_offsets_are": DelayOffsetsAre,
    "change_role": ChangeRole,
}
