"""Operations: what producers, readers, services, disks and disasters do in a case, as values.

Fields are plain numbers, words and tuples, so that a case is readable JSON; defaults are left out there, and what is
new gets a default that keeps the meaning of older cases. Each has an `op`, its name in the JSON.
"""

from typing import Any, get_args

from properties.program.delay_operations import ChangeRole, ClockStep, DelayOffsetsAre
from properties.program.disaster_operations import Crash, Damage, HarmDerived
from properties.program.fault_operations import AimFault
from properties.program.polling_operations import CancelPull, PullHeld, PullWhileDispatching
from properties.program.progress_operations import CommitOffset, HarmProgress, QueryOffsets
from properties.program.put_operations import Concurrent, Put, PutBatch
from properties.program.reading_operations import Get, GetMessage, OffsetByTime, QueryKey
from properties.program.retention_operations import Clean, DeleteTopics, HoldBuffer, ReleaseBuffer
from properties.program.service_operations import Close, Flush, Open, OpenTwice, Step
from properties.program.surrounding_operations import (
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    RefuseFile,
    ReplicaIs,
    SwitchFlag,
)

__all__ = ["OPERATIONS", "WITHOUT_A_VERB", "Operation"]

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

OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(Operation)}
"""The kinds of operations by their names in the JSON."""
