"""Define every operation and every fault of the environment as frozen values.

Fields are numbers, words and tuples, so that a case is readable JSON. Defaults keep the meaning of older cases. Where
an operation names a record, a queue or a key by number, the number is taken modulo their count.

1. Clients: `Put`, `PutBatch`, `Concurrent`, reads, pulls that wait, consumer progress, broker tables, buffers,
   deletions.
2. The process: `Step` of a service, `Flush`, `Close`, `Open`, `OpenTwice`.
3. The environment: `SwitchFlag`, `DiskUsed`, `ReplicaIs`, `ClockStep`, faults of the disk.
4. Crash faults and corruption: `Crash`, `Damage`, `HarmDerived`, `HarmField`, `HarmNumbers`, `HarmOpen`,
   `HarmProgress`, `DelayOffsetsAre`, `ChangeRole`.
5. Calls of other shapes of stores: `Call`.
6. Several clients at once, by physical or queue offset: `GetAt`, `Pull`, `AskMaximum`, `AskMinimum`, `Query`, `Commit`,
   `QueryProgress`. A client that asks for a `GetRecord`, or for offset -1, computes the offset before it asks.

`model.step` gives the meaning of groups 1 to 3 and 6, and `model.crash` that of group 4. The meaning of a `Call` is in
the shape of the store (properties/foreign/shapes). `model.parts` splits the operations of several clients at their
linearisation points.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

__all__ = [
    "INTERLEAVED_OPERATIONS",
    "OPERATIONS",
    "WITHOUT_A_VERB",
    "AimFault",
    "AnyOperation",
    "AskMaximum",
    "AskMinimum",
    "BatchDefect",
    "Call",
    "CancelPull",
    "ChangeRole",
    "ChangeTable",
    "Choice",
    "ClaimChange",
    "Clean",
    "ClockStep",
    "Close",
    "Commit",
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
    "FieldName",
    "Flush",
    "Get",
    "GetAt",
    "GetMessage",
    "GetRecord",
    "HarmDerived",
    "HarmField",
    "HarmNumbers",
    "HarmOpen",
    "HarmProgress",
    "HoldBuffer",
    "InterleavedOperation",
    "Member",
    "OffsetByTime",
    "Open",
    "OpenTwice",
    "Operation",
    "Others",
    "ProgressHarm",
    "Pull",
    "PullHeld",
    "PullWhileDispatching",
    "Put",
    "PutBatch",
    "Query",
    "QueryKey",
    "QueryOffsets",
    "QueryProgress",
    "ReadBefore",
    "RefuseFile",
    "ReleaseBuffer",
    "ReplicaIs",
    "ReplicaState",
    "Role",
    "ServiceName",
    "Step",
    "SwitchFlag",
    "TableName",
    "TryFunctions",
    "TrySettings",
    "UnitsHarm",
    "VerifyReads",
    "WrongClaim",
]

# ---- puts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Put a message.

    The body has `body_bytes` bytes drawn from `fill`, contains a whole record, is zero, or is None. With `sums to zero`
    the body is drawn too, except for the bytes that give its record the checksum 0 at its place.

    Properties are the string `properties`, or the mapping of `pairs` if there are any. `later` puts with `put_async`,
    so that the answer comes with a `Step`. `born_now` takes the born time from the store's clock.
    """

    topic: str = "T"
    queue_id: int = 0
    body_bytes: int = 0
    fill: int = 0
    body_kind: Literal["random", "record", "zeros", "none", "sums to zero"] = "random"
    properties: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    sys_flag: int = 0
    flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put"] = "put"


@dataclass(frozen=True, slots=True)
class Member:
    """One message of a batch; its body has `body_bytes` bytes drawn from `fill`."""

    body_bytes: int = 0
    fill: int = 0
    properties: str = ""
    flag: int = 0


BatchDefect = Literal["", "no body", "empty", "cut short", "wrong total", "negative length", "bytes left over"]


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Put a batch; its client body is well-formed except for `defect`."""

    topic: str = "T"
    queue_id: int = 0
    members: tuple[Member, ...] = ()
    properties: str = ""
    sys_flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    defect: BatchDefect = ""
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put_batch"] = "put_batch"


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Two producers put at the same time; `schedule` names the task at each yield point.

    `jump_step` is the yield point at which the clock jumps by `jump_ms`; 0 is none. Born times are always given. In a
    store with a pool that `commits`, the commit service takes a step after the puts of the first producer, and the
    second producer ends with a flush.
    """

    first: tuple[Put, ...] = ()
    second: tuple[Put, ...] = ()
    schedule: tuple[int, ...] = ()
    jump_step: int = 0
    jump_ms: int = 0
    commits: bool = False
    op: Literal["concurrent"] = "concurrent"


# ---- reads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Get:
    """Get at the offset of record `record` plus `shift` bytes."""

    record: int = 0
    shift: int = 0
    op: Literal["get"] = "get"


@dataclass(frozen=True, slots=True)
class GetMessage:
    """Read queue `queue` from its minimum plus `shift` on; -1 is before the minimum.

    `queue` -1 is a queue without any put. `tags` are the wanted tags, separated by `||`; without tags every message is
    wanted. `where` is an expression over properties (`properties.CLAUSES`) and goes without tags.
    """

    queue: int = 0
    shift: int = 0
    max_msg_nums: int = 32
    tags: str = ""
    where: str = ""
    op: Literal["get_message"] = "get_message"


@dataclass(frozen=True, slots=True)
class QueryKey:
    """Query key `key` for `max_num` messages; -1 is a key that no message has.

    The window begins `begin_ms` after the first message that was put and is `window_ms` long; -1 is no end.
    """

    key: int = 0
    max_num: int = 32
    begin_ms: int = 0
    window_ms: int = -1
    op: Literal["query_key"] = "query_key"


@dataclass(frozen=True, slots=True)
class OffsetByTime:
    """Ask for the offset in a queue at the time of record `record` there, plus `shift_ms`.

    `queue` is as in GetMessage.
    """

    queue: int = 0
    record: int = 0
    shift_ms: int = 0
    op: Literal["offset_by_time"] = "offset_by_time"


@dataclass(frozen=True, slots=True)
class HoldBuffer:
    """A reader takes a buffer of record `record` and keeps it."""

    record: int = 0
    op: Literal["hold_buffer"] = "hold_buffer"


@dataclass(frozen=True, slots=True)
class ReleaseBuffer:
    """The oldest held buffer is released."""

    op: Literal["release_buffer"] = "release_buffer"


# ---- pulls that wait -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PullHeld:
    """Pull from the maximum of a queue plus `shift`, and wait for up to `hold_ms`.

    The queue need not exist. `tags` are the wanted tags, separated by `||`; without tags every message is wanted.
    """

    topic: str = "T"
    queue_id: int = 0
    shift: int = 0
    max_msg_nums: int = 32
    tags: str = ""
    hold_ms: int = 15_000
    op: Literal["pull_held"] = "pull_held"


@dataclass(frozen=True, slots=True)
class CancelPull:
    """The consumer of held pull `number` gives up."""

    number: int = 0
    op: Literal["cancel_pull"] = "cancel_pull"


@dataclass(frozen=True, slots=True)
class PullWhileDispatching:
    """A consumer pulls at the maximum of a queue and waits while dispatch takes a step.

    `schedule` names the task to resume at each yield point.
    """

    topic: str = "T"
    queue_id: int = 0
    tags: str = ""
    schedule: tuple[int, ...] = ()
    op: Literal["pull_while_dispatching"] = "pull_while_dispatching"


# ---- consumer progress -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """A group commits an offset in queue `queue`, `behind` messages before its end.

    A negative `behind` is past the end. An offset below 0 is 0. `queue` -1 is a queue without any put.
    """

    group: str = "g"
    queue: int = 0
    behind: int = 0
    op: Literal["commit_offset"] = "commit_offset"


@dataclass(frozen=True, slots=True)
class QueryOffsets:
    """Ask where a group goes on in a queue, and how many messages it has left there.

    `queue` is as in CommitOffset.
    """

    group: str = "g"
    queue: int = 0
    op: Literal["query_offsets"] = "query_offsets"


TableName = Literal["topics", "groups"]


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """An operator sets entry `name` of a broker table, or removes it if `number` is negative.

    The number stands for the fields of the entry.
    """

    table: TableName = "topics"
    name: str = "T"
    number: int = 0
    op: Literal["change_table"] = "change_table"


# ---- retention -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clean:
    """Time passes, then the clean-up makes a whole run.

    Hours are those of the wall clock in UTC. With `manual` an operator asks for the run first. `percent` is the disk
    usage from then on; 0 leaves it unchanged. The run happens in the middle of a query for key `query`; -1 is no query.
    """

    after_hours: int = 0
    manual: bool = False
    percent: int = 0
    query: int = -1
    op: Literal["clean"] = "clean"


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Delete all topics except those in use."""

    in_use: tuple[str, ...] = ()
    op: Literal["delete_topics"] = "delete_topics"


# ---- the process -----------------------------------------------------------------------------------------------------

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
    """Time passes, then a service takes one step.

    A service that the store does not have takes none. A step of group commit answers all puts that wait for the disk.
    """

    service: ServiceName = "group-commit"
    after_ms: int = 0
    op: Literal["step"] = "step"


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
    """A second process opens the store while it is open."""

    op: Literal["open_twice"] = "open_twice"


# ---- the environment -------------------------------------------------------------------------------------------------

Role = Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"]
ReplicaState = Literal["confirms", "silent", "hangs", "behind", "none"]


@dataclass(frozen=True, slots=True)
class SwitchFlag:
    """An operator sets or clears a running flag (1, 2, 4 or 8)."""

    bit: int = 2
    on: bool = True
    op: Literal["switch_flag"] = "switch_flag"


@dataclass(frozen=True, slots=True)
class DiskUsed:
    """The disk usage becomes a number of percent.

    Enough time passes for the store to notice it before the next put.
    """

    percent: int = 0
    op: Literal["disk_used"] = "disk_used"


@dataclass(frozen=True, slots=True)
class ReplicaIs:
    """Set the best replica: it confirms, times out at once, never answers, lags, or is gone."""

    state: ReplicaState = "none"
    op: Literal["replica_is"] = "replica_is"


@dataclass(frozen=True, slots=True)
class ClockStep:
    """An operator moves the wall clock forward or back."""

    by_ms: int = 0
    op: Literal["clock_step"] = "clock_step"


@dataclass(frozen=True, slots=True)
class FailAppend:
    """The append to the mapped file fails for the next put that reaches it."""

    op: Literal["fail_append"] = "fail_append"


@dataclass(frozen=True, slots=True)
class FailSync:
    """The next file sync fails with EIO."""

    op: Literal["fail_sync"] = "fail_sync"


@dataclass(frozen=True, slots=True)
class FailWrite:
    """The next commit ends half way with EIO.

    A commit is a write to a log file that does not go through its mapping.
    """

    op: Literal["fail_write"] = "fail_write"


@dataclass(frozen=True, slots=True)
class RefuseFile:
    """The disk is full for the next queue or index file that dispatch makes."""

    op: Literal["refuse_file"] = "refuse_file"


@dataclass(frozen=True, slots=True)
class AimFault:
    """Enable an I/O fault rule: disk calls that `where` selects fail in the way of `effect`.

    The rule ends with the next crash or open. `where` is a predicate (docs/faults.md, "Aiming"); its draws begin with
    `seed`. Under a rule an operation has a set of legal outcomes.
    """

    effect: str = "sync-error"
    where: str = ""
    seed: int = 0
    op: Literal["aim_fault"] = "aim_fault"

    @property
    def text(self) -> str:
        """The rule in the syntax of `tornpage explore --fault`."""
        return f"{self.effect}: {self.where}" if self.where else self.effect


@dataclass(frozen=True, slots=True)
class TrySettings:
    """A caller builds configurations with one valid or invalid setting each.

    They are a fourth of `model.broker.settings.cases`: those with number `part` modulo 4.
    """

    part: int = 0
    op: Literal["try_settings"] = "try_settings"


@dataclass(frozen=True, slots=True)
class TryFunctions:
    """A caller asks functions of the store, and runs some of its parts alone.

    The functions are hashes, properties, delay levels, message ids, defaults, policies, filters, statistics, and
    readers of records. Half of the arguments are limits, the others are drawn from `fill`. The parts are a mapped file,
    queues, the index, small files, log directories and recovery, each with a small disk of its own.
    """

    fill: int = 0
    op: Literal["try_functions"] = "try_functions"


# ---- crash faults and corruption -------------------------------------------------------------------------------------

Choice = int | tuple[int, int, int]
"""The version of an in-flight write that reached the disk.

It is a number, or two versions and the mask of their sectors.
"""

Others = Literal["lost", "kept"]
"""The fate of in-flight writes that no choice names."""

DamageKind = Literal["truncate", "flip", "misdirect", "zero_page", "stale_page", "misdirect_page", "missing"]
DerivedFile = Literal["queue", "index", "extension", "checkpoint", "floor", "derived-floor", "marker"]
FieldName = Literal[
    "queue_offset", "queue_id", "topic", "body", "end", "deleted_topics", "ahead", "swapped", "queue_bytes", "left_over"
]
"""What `HarmField` changes."""

VerifyReads = Literal["always", "once", "never"]
"""The setting `verify_reads`."""

ReadBefore = Literal["verified", "failed_check", "other", "failed_append"]
"""What happens in the open store before `HarmOpen` changes a record."""

DerivedHarm = Literal["lost", "zeroed", "torn", "stale", "misdirected", "resized", "stray"]
ProgressHarm = Literal["lost", "empty", "torn", "both", "stale", "misdirected"]


@dataclass(frozen=True, slots=True)
class Crash:
    """Power loss or process kill, then recovery.

    The crash comes `back` events before the last answer; 0 is at rest. `survived` names in-flight writes and the
    version of each that reached the disk; version 0 is that of its last sync. `others` decides the rest: lost, or kept
    in the latest version. After a kill all are kept. The recovery begins `later_ms` after the last operation.
    With `fault_ends` an I/O fault rule of the session does not act on the recovery.
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    later_ms: int = 0
    fault_ends: bool = False
    op: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True)
class Damage:
    """Corrupt the closed store outside the crash model, then open it.

    The store must report the damage and serve only what verifies. `truncate` cuts the newest log file at `amount`
    (modulo its size). `flip` flips bit `amount` of record `record`. `misdirect` writes another record of equal size
    over record `record`. The other kinds change the page in which record `record` begins: it is zero after `zero_page`,
    holds one of its earlier contents after `stale_page`, and holds another page of the log after `misdirect_page`,
    number `amount` of them (modulo). `missing` removes the file of record `record`.

    A file `beside` the log is corrupted too (`beside_harm`, as in `HarmDerived`): number `record` of its kind, at byte
    `amount`. A store that opens read-only rebuilds nothing, so that its readers meet the corruption there.
    """

    kind: DamageKind = "flip"
    record: int = 0
    amount: int = 0
    beside: Literal["", "queue", "index"] = ""
    beside_harm: DerivedHarm = "misdirected"
    op: Literal["damage"] = "damage"


@dataclass(frozen=True, slots=True)
class HarmDerived:
    """Corrupt a file of the closed store that the log can replace, then open it.

    Nothing may be missing, and the store is read-write. The file is number `number` (modulo) of its kind. It is `lost`,
    `zeroed` from byte `amount` on (modulo its size), `torn` (the sector with byte `amount` is zero), `stale` (as the
    last recovery found it, or as it was made), `misdirected` (the page with byte `amount` holds a page of another
    file), `resized` to `amount` bytes, or has a `stray` file beside it. A marker can only be stale: present after a
    clean exit.
    """

    file: DerivedFile = "queue"
    harm: DerivedHarm = "lost"
    number: int = 0
    amount: int = 0
    op: Literal["harm_derived"] = "harm_derived"


@dataclass(frozen=True, slots=True)
class HarmField:
    """Change one field of record `record` in a copy of the closed store.

    The copy is opened, then the store itself.

    The record claims the queue offset `value`, the queue id `value` (32 bits with a sign), or a topic whose first byte
    is `value` (modulo 255, plus 1). No checksum of RocketMQ 4.9.3 covers these fields; where one does, nothing happens.
    The copy serves every other message, and each put to it is reached (contract 18).

    With `body` and `end` the copy has no floors, as a store of RocketMQ. `body` changes a byte of the body in a copy
    that was killed, and of the next `value` modulo 4 records; nothing happens unless the checkpoint proves that a later
    record was flushed. `end` takes away the
    record and all that follow. The copy is read-only and serves what is left (contract 7).

    With `deleted_topics` the copy has neither floors nor the list of deleted topics, as a store of RocketMQ. It differs
    from the store in nothing else. Nothing happens unless the log has records of a topic from before its deletion. The
    copy serves every message that the store serves, at its queue offset (contract 17).

    With `ahead` no record changes. The copy was killed and has two files made ahead of the writes, of which a crash has
    left the first one empty or missing and the second one empty or zeros, by `value` modulo 4. The copy takes puts.

    With `swapped` the log file of the record and the next one have each other's content. The copy has no floors. It was
    killed if `value` is odd. It is read-only and serves the messages of the other files (contract 7).

    With `left_over` bytes without meaning follow the end of the log. They begin at the end, or `value` modulo 4 times 6
    bytes after it. After 8 zeros or more they are left of an earlier crash, and the copy takes puts. Otherwise it is
    read-only. It serves every message (contract 7).

    With `queue_bytes` the last file of the record's queue is filled with bytes that mean nothing. The copy was closed
    and has no floors. It serves every message and takes puts.
    """

    field: FieldName = "queue_offset"
    record: int = 0
    value: int = 0
    op: Literal["harm_field"] = "harm_field"


ClaimChange = Literal["number", "shift", "queue_id", "topic", "other", "from_here", "again"]
"""What `WrongClaim` changes."""

UnitsHarm = Literal["whole", "lost", "short", "shifted", "exchanged"]
"""What happens to the queue files of a copy with wrong numbers."""


@dataclass(frozen=True, slots=True)
class WrongClaim:
    """A change of what record `record` (modulo) of a copy claims about its place.

    It claims `number` `value`, a number `shift`ed by `value`, the `queue_id` `value`, a `topic` with another first
    letter, or the place of the record `value` (`other`). With `from_here` all records of its queue from this one on are
    shifted by `value`. With `again` they count from 0.
    """

    record: int = 0
    change: ClaimChange = "number"
    value: int = 0


@dataclass(frozen=True, slots=True)
class HarmNumbers:
    """Change the claims of several records in a copy of the closed store, and its queue files.

    The copy has no floors. It is opened, then the store itself. The copy takes puts and serves what
    `model.damage.numbering` states (contracts 17 and 18). The queue files are `whole`, `lost`, `short` by up to three
    units each, `shifted` by one unit, or have two units `exchanged`; `amount` (modulo) chooses which. Nothing happens
    where a checksum covers the claims.
    """

    changes: tuple[WrongClaim, ...] = (WrongClaim(),)
    units: UnitsHarm = "whole"
    amount: int = 0
    op: Literal["harm_numbers"] = "harm_numbers"


@dataclass(frozen=True, slots=True)
class HarmOpen:
    """Change a byte of record `record` while the store is open, and read the record.

    The byte is put back after the reads. It comes `byte` bytes after the begin of the body. Past the end of what
    checksums cover, it is counted on from the begin of the record, or of the body in a store without checksum trailers.
    The record is read through its queue, by its keys and by its physical offset, with the changed byte and again after
    the byte was put back.

    `before` says what the process did with the record before the change:

    * `verified`: it read the record through its queue.
    * `failed_check`: it did so, and then a check of the record failed.
    * `other`: a check failed, and then it read every other message of the queue.
    * `failed_append`: it read the record, and then a put failed because the log file refused the bytes.

    Nothing happens if no queue has the record, or if the put would need another file.
    """

    before: ReadBefore = "verified"
    record: int = 0
    byte: int = 0
    op: Literal["harm_open"] = "harm_open"


@dataclass(frozen=True, slots=True)
class HarmProgress:
    """Corrupt the progress file of the closed store, then open it: its backup counts.

    The file is `lost`, `empty`, `torn` (its second half is zeros), or `misdirected` (it holds the beginning of a log
    file). With `both` the backup has the same fate, and the progress is empty. A `stale` file has the content of its
    backup, and that counts.
    """

    harm: ProgressHarm = "lost"
    op: Literal["harm_progress"] = "harm_progress"


@dataclass(frozen=True, slots=True)
class DelayOffsetsAre:
    """Overwrite `delayOffset.json`.

    The master of an open slave does this, or an operator while the store is closed. Every level of the table moves
    ahead or back `by` a number of messages; a level without an entry begins at 0. Or the file is `lost` (its backup
    stays), or it and its backup are `garbage`.
    """

    kind: Literal["moved", "lost", "garbage"] = "moved"
    by: int = 1
    op: Literal["delay_offsets_are"] = "delay_offsets_are"


@dataclass(frozen=True, slots=True)
class ChangeRole:
    """Close the store, and open it in another role."""

    role: Role = "ASYNC_MASTER"
    op: Literal["change_role"] = "change_role"


# ---- other shapes of stores ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A verb of a store that is no message store, such as a key-value store.

    `name` is the key, the queue or the file. `size_bytes` is the length of the value; 0 also stands for no value. All
    values of a run differ as far as their length allows. `number` selects an entry of a log, counted from the end that
    the verb names. `parts` are the calls of a batch, or of concurrent callers.
    """

    verb: str = "put"
    name: str = ""
    size_bytes: int = 0
    number: int = 0
    parts: tuple["Call", ...] = ()
    op: Literal["call"] = "call"


# ---- operations of several clients at once ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetRecord:
    """Get record `record` of those answered so far; -1 is the end of the log.

    `behind` is the number of bytes past its begin.
    """

    record: int = 0
    behind: int = 0
    op: Literal["get_record"] = "get_record"


@dataclass(frozen=True, slots=True)
class GetAt:
    """Get the record that begins at a physical offset."""

    offset: int = 0
    op: Literal["get_at"] = "get_at"


@dataclass(frozen=True, slots=True)
class Pull:
    """Read a queue from `offset` on; -1 is the next offset of the task's last pull."""

    topic: str = "T"
    queue_id: int = 0
    offset: int = -1
    max_msg_nums: int = 32
    op: Literal["pull"] = "pull"


@dataclass(frozen=True, slots=True)
class AskMaximum:
    """Ask for the maximum of a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["ask_maximum"] = "ask_maximum"


@dataclass(frozen=True, slots=True)
class AskMinimum:
    """Ask for the minimum of a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["ask_minimum"] = "ask_minimum"


@dataclass(frozen=True, slots=True)
class Query:
    """Ask for the newest messages of a topic with a key."""

    topic: str = "T"
    key: str = "k"
    max_num: int = 32
    op: Literal["query"] = "query"


@dataclass(frozen=True, slots=True)
class Commit:
    """Consumer group "g" commits an offset; -1 is the next offset of the task's last pull."""

    topic: str = "T"
    queue_id: int = 0
    offset: int = -1
    op: Literal["commit"] = "commit"


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """Consumer group "g" asks where to go on in a queue."""

    topic: str = "T"
    queue_id: int = 0
    op: Literal["query_progress"] = "query_progress"


# ---- all of them -----------------------------------------------------------------------------------------------------

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
    | HarmField
    | HarmNumbers
    | HarmOpen
    | Clean
    | DeleteTopics
    | HoldBuffer
    | ReleaseBuffer
    | PullHeld
    | CancelPull
    | PullWhileDispatching
    | CommitOffset
    | QueryOffsets
    | ChangeTable
    | TrySettings
    | TryFunctions
    | HarmProgress
    | ClockStep
    | DelayOffsetsAre
    | ChangeRole
    | Call
)

OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(Operation)}
"""The operations of a case by their JSON names."""

WITHOUT_A_VERB = (
    Get,
    GetMessage,
    QueryKey,
    OffsetByTime,
    OpenTwice,
    SwitchFlag,
    DiskUsed,
    ReplicaIs,
    ClockStep,
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
    TrySettings,
    TryFunctions,
    Call,
)
"""Operations of the project's own store that make no disk call: no crash can fall into them."""

InterleavedOperation = (
    Put
    | PutBatch
    | GetRecord
    | GetAt
    | Pull
    | AskMaximum
    | AskMinimum
    | Query
    | Commit
    | QueryProgress
    | Flush
    | Close
    | Step
    | DeleteTopics
)

AnyOperation = Operation | InterleavedOperation

INTERLEAVED_OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(InterleavedOperation)}
"""The operations of several clients at once by their JSON names."""
