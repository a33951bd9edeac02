"""Define the events of a Raft group: time-outs, messages, clients, syncs, crashes.

Members are numbered from 0, and a number is taken modulo the number of members. An event of a member that is down does
nothing, except `RestartMember`. `SaveCommitEnd` and `TimeOutPuts` do nothing on a member without a store.

Members that are run by their nodes have timers, links and syncs of their own. So `Elect`, `Beat`, `SyncLog`, `Deliver`,
`SaveCommitEnd` and `TimeOutPuts` do nothing for them. Only they have `RunNodes`, `CutLinks`, `HealLinks`, `EndLinks`,
`Knock`, `AnswerWrongly` and `CloseMember`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tornpage.model.operations import Choice, Others

__all__ = [
    "RAFT_OPERATIONS",
    "Answer",
    "AnswerWrongly",
    "Beat",
    "BeginRead",
    "CloseMember",
    "CopyChange",
    "CrashMember",
    "CutLinks",
    "Deliver",
    "Elect",
    "EndLinks",
    "FailSyncOf",
    "Greeting",
    "HealLinks",
    "Knock",
    "OpenCopy",
    "Propose",
    "RaftOperation",
    "RestartMember",
    "RunNodes",
    "SaveCommitEnd",
    "StopNode",
    "SyncLog",
    "TimeOutPuts",
    "Transfer",
]


@dataclass(frozen=True, slots=True)
class Elect:
    """Let the election time-out of a member expire."""

    member: int = 0
    op: Literal["elect"] = "elect"


@dataclass(frozen=True, slots=True)
class Beat:
    """Let the heartbeat time-out of a leader expire."""

    member: int = 0
    op: Literal["beat"] = "beat"


@dataclass(frozen=True, slots=True)
class Propose:
    """Let a client put an entry to a member. Payloads differ."""

    member: int = 0
    op: Literal["propose"] = "propose"


@dataclass(frozen=True, slots=True)
class BeginRead:
    """Let a client read what is committed."""

    member: int = 0
    op: Literal["begin_read"] = "begin_read"


@dataclass(frozen=True, slots=True)
class SyncLog:
    """Make the log of a member durable."""

    member: int = 0
    op: Literal["sync_log"] = "sync_log"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Ask a leader to give its role to a member."""

    member: int = 0
    to: int = 1
    op: Literal["transfer"] = "transfer"


@dataclass(frozen=True, slots=True)
class Deliver:
    """Deliver the newest message of a kind from one member to another.

    With `back` it is an older one.
    The message stays: it may be delivered again. A message that is never delivered is lost.
    """

    source: int = 0
    to: int = 1
    kind: str = "append"
    back: int = 0
    op: Literal["deliver"] = "deliver"


@dataclass(frozen=True, slots=True)
class CrashMember:
    """Lose a member by a power loss or a kill.

    If its event was the last one, the crash falls `back` disk events before the end of it, and what the event sent is
    not sent. `survived` and `others` are those of `Crash`.
    """

    member: int = 0
    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    op: Literal["crash_member"] = "crash_member"


@dataclass(frozen=True, slots=True)
class RestartMember:
    """Start a member that is down."""

    member: int = 0
    op: Literal["restart_member"] = "restart_member"


@dataclass(frozen=True, slots=True)
class FailSyncOf:
    """Let the next sync of a file of a member fail."""

    member: int = 0
    op: Literal["fail_sync_of"] = "fail_sync_of"


@dataclass(frozen=True, slots=True)
class SaveCommitEnd:
    """Let a member with a store save the end of the entries that its readers may see."""

    member: int = 0
    op: Literal["save_commit_end"] = "save_commit_end"


@dataclass(frozen=True, slots=True)
class TimeOutPuts:
    """Let so much time pass that all waiting puts of a member with a store are too late."""

    member: int = 0
    op: Literal["time_out_puts"] = "time_out_puts"


@dataclass(frozen=True, slots=True)
class RunNodes:
    """Let the nodes run for a time. Each steps when it is due, or when something arrives."""

    milliseconds: int = 100
    op: Literal["run_nodes"] = "run_nodes"


@dataclass(frozen=True, slots=True)
class StopNode:
    """Stop the process of a member for a time, as SIGSTOP does. The other nodes run."""

    member: int = 0
    milliseconds: int = 1_500
    op: Literal["stop_node"] = "stop_node"


@dataclass(frozen=True, slots=True)
class CutLinks:
    """Let nothing arrive at a member, or nothing that it sends, or both.

    The sent bytes are kept.
    """

    member: int = 0
    way: Literal["in", "out", "both"] = "both"
    op: Literal["cut_links"] = "cut_links"


@dataclass(frozen=True, slots=True)
class HealLinks:
    """Let everything arrive again."""

    op: Literal["heal_links"] = "heal_links"


@dataclass(frozen=True, slots=True)
class EndLinks:
    """End all links of a member. So many of the bytes under way still arrive on each."""

    member: int = 0
    size_bytes: int = 0
    op: Literal["end_links"] = "end_links"


Greeting = Literal[
    "silent", "half", "no frame", "unknown kind", "long", "vote first", "other group", "other receiver", "itself",
    "no member", "other host", "stranger", "twice", "ping with bytes", "refusal", "short vote", "negative", "flag",
    "long entry", "short entries", "older entry", "many", "longest frame", "too long frame", "last term",
    "more entries", "later read", "second leader", "own last term", "entry for no file", "committed entry", "slow",
]  # fmt: skip
"""What a connection sends that is no correct member."""


@dataclass(frozen=True, slots=True)
class Knock:
    """Connect to a member and send it something that no correct member sends."""

    member: int = 0
    greeting: Greeting = "silent"
    op: Literal["knock"] = "knock"


@dataclass(frozen=True, slots=True)
class CloseMember:
    """Close a member. A leader asks another member to lead."""

    member: int = 0
    op: Literal["close_member"] = "close_member"


Answer = Literal["refusal", "hello", "vote", "unknown kind", "no frame", "checksum", "too long"]
"""What a member gets on a link on which it sends, and no correct member answers."""


@dataclass(frozen=True, slots=True)
class AnswerWrongly:
    """Send a member something wrong on its link to another member."""

    member: int = 0
    to: int = 1
    answer: Answer = "refusal"
    op: Literal["answer_wrongly"] = "answer_wrongly"


CopyChange = Literal[
    "nothing", "entry", "unit", "later unit", "bytes after the end", "file after the end", "new file", "other size",
    "strange name", "short file", "no checksums", "no checksums, later begin", "no checksums, later unit",
    "no term", "only a backup of the term", "bad term", "bad vote", "bad commit end",
]  # fmt: skip
"""What is changed in a copy of the directory of a member. `properties/raft/copies.py` has what becomes of it."""


@dataclass(frozen=True, slots=True)
class OpenCopy:
    """Open a changed copy of the directory of a member. The member stays as it is.

    `at` chooses the entry, the unit and the byte that are changed.
    """

    member: int = 0
    change: CopyChange = "nothing"
    at: int = 0
    op: Literal["open_copy"] = "open_copy"


RaftOperation = (
    Elect
    | Beat
    | Propose
    | BeginRead
    | SyncLog
    | Transfer
    | Deliver
    | CrashMember
    | RestartMember
    | FailSyncOf
    | SaveCommitEnd
    | TimeOutPuts
    | RunNodes
    | StopNode
    | CutLinks
    | HealLinks
    | EndLinks
    | Knock
    | CloseMember
    | AnswerWrongly
    | OpenCopy
)
"""An event of a group."""

RAFT_OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(RaftOperation)}
"""The events of a group by name."""
