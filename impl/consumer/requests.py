"""Requests of consumers to a broker, and the answers, as values.

Each request has one answer class. A broker that cannot carry out a request answers `Refused` with a reason. An answer
that never arrives is an error of the call (impl/consumer/connection.py). So "no progress is stored", a busy broker, an
unknown group and an unreachable broker are four different outcomes.

| request | answer |
|---|---|
| Route | Routed |
| Heartbeat, Leave | Done |
| Members | MembersFound |
| LockQueues | Locked |
| UnlockQueues | Done |
| Pull | Pulled |
| QueryOffset | OffsetFound |
| UpdateOffset | OffsetUpdated |
| QueryBounds | Bounds |
| SearchOffset | OffsetFound |
| SendBack, SendToRetry | SentBack |

Offsets are queue offsets, unless they are called physical. Source: `MQClientAPIImpl`, `RequestCode`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import StoredMessage

__all__ = [
    "Answer",
    "Bounds",
    "Claim",
    "Done",
    "Heartbeat",
    "Lease",
    "Leave",
    "LockQueues",
    "Locked",
    "Members",
    "MembersChanged",
    "MembersFound",
    "OffsetFound",
    "OffsetStatus",
    "OffsetUpdated",
    "Pull",
    "PullStatus",
    "Pulled",
    "QueryBounds",
    "QueryOffset",
    "Refusal",
    "Refused",
    "Request",
    "Route",
    "Routed",
    "SearchOffset",
    "SendBack",
    "SendBackStatus",
    "SendToRetry",
    "SentBack",
    "Subscription",
    "UnlockQueues",
    "UpdateOffset",
    "UpdateStatus",
]


# ---- names of owners -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """The request of a client to own a queue.

    `token` is unique for each `ProcessQueue` of each client. The tokens of one process rise as texts, so that the
    broker recognises an old claim that arrives late. It answers a repeated claim with the lease that it has already
    granted for the token.
    """

    queue: MessageQueue
    token: str


@dataclass(frozen=True, slots=True)
class Lease:
    """The ownership of a queue by one claim.

    The epoch rises with each new owner while the broker lives. A request with the lease of a former owner is
    refused as FENCED. After a restart of the broker all leases are void. In `UnlockQueues` epoch 0 stands for any
    epoch of the token, for a client that has not received its lease.
    """

    token: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """The messages of a topic that a group wants; `kind` is TAG or SQL92."""

    topic: str
    expression: str = "*"
    kind: str = "TAG"


# ---- refusals --------------------------------------------------------------------------------------------------------


class Refusal(Enum):
    """Why a broker has not carried out a request."""

    BUSY = "BUSY"
    """Too many requests wait; the client repeats the request later."""
    CLIENT_ID_IN_USE = "CLIENT_ID_IN_USE"
    """Another living process has the same client id."""
    FENCED = "FENCED"
    """The lease of the request is that of a former owner, or unknown since a restart of the broker."""
    NO_PERMISSION = "NO_PERMISSION"
    """The group or the store may not be read or written."""
    SHUTTING_DOWN = "SHUTTING_DOWN"
    """The store of the broker is closed."""
    SUBSCRIPTION_CONFLICT = "SUBSCRIPTION_CONFLICT"
    """Another member of the group subscribes the topic with another expression or in another mode."""
    SYSTEM_ERROR = "SYSTEM_ERROR"
    """The request is invalid, or the disk of the broker has failed."""
    UNKNOWN_GROUP = "UNKNOWN_GROUP"
    """The broker has no configuration of the group and creates none by itself."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to any request that was not carried out."""

    reason: Refusal
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a request without a result."""


# ---- routes and members ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Route:
    """Ask for the queues of a topic at this broker."""

    topic: str


@dataclass(frozen=True, slots=True)
class Routed:
    """The queues of a topic at one broker, sorted; empty for an unknown topic."""

    queues: tuple[MessageQueue, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Join a group, or stay a member of it.

    `incarnation` is unique for each process. `is_broadcasting` is the message model of the member. A member has all
    subscriptions of its last heartbeat.
    """

    group: str
    incarnation: str
    subscriptions: tuple[Subscription, ...]
    is_broadcasting: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave a group."""

    group: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class Members:
    """Ask for the client ids of the members of a group that subscribe a topic."""

    group: str
    topic: str


@dataclass(frozen=True, slots=True)
class MembersFound:
    """The client ids of members, sorted."""

    client_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """A notice of the broker: the members of a group, or their queues, have changed.

    A member has joined or left, or has given up queues. It may be lost. Each client looks again every
    `rebalance_wait_interval`.
    """

    group: str


# ---- ownership -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LockQueues:
    """Claim queues for this client, or renew leases that it has.

    With `waits_for_owner` a queue is granted only after its owner has unlocked it, or after the life of its lock.
    Without it, a queue is also granted if its owner is no member of the group any more. Orderly consumers wait.
    `incarnation` is that of the heartbeats of this process.
    """

    group: str
    claims: tuple[Claim, ...] = ()
    renewals: tuple[tuple[MessageQueue, Lease], ...] = ()
    waits_for_owner: bool = True
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class Locked:
    """The leases of the granted claims and of the renewed queues, by queue.

    A queue that is missing here is owned by another claim. A renewal that is missing has lost its queue.
    """

    leases: Mapping[MessageQueue, Lease]


@dataclass(frozen=True, slots=True)
class UnlockQueues:
    """Give up queues. A queue with another lease stays as it is.

    A claim with the same token that arrives later is refused. `incarnation` is that of the claims.
    """

    group: str
    leases: tuple[tuple[MessageQueue, Lease], ...]
    incarnation: str = ""


# ---- pulls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pull:
    """Ask for messages of a queue from an offset on.

    If there is none, the broker may hold the request up to `suspend_ms` milliseconds. `commit_offset` is the progress
    of the group, stored as by `UpdateOffset`. Without a lease neither pull nor progress is fenced.
    """

    group: str
    queue: MessageQueue
    offset: int
    subscription: Subscription
    count: int = 32
    suspend_ms: int = 0
    commit_offset: int | None = None
    lease: Lease | None = None


class PullStatus(Enum):
    """The result of a pull. Source: `PullStatus` of the client."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(frozen=True, slots=True)
class Pulled:
    """The messages of a pull; `next_offset` is where the next pull begins.

    `min_offset` and `max_offset` are those of the queue; the maximum is the offset after its last message.
    """

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[StoredMessage, ...] = ()


# ---- progress --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryOffset:
    """Ask for the stored progress of a group in a queue."""

    group: str
    queue: MessageQueue


class OffsetStatus(Enum):
    """Where an offset comes from."""

    FOUND = "FOUND"
    """The progress is stored, or the searched offset was found."""
    NOT_STORED = "NOT_STORED"
    """No progress is stored. The queue is young, so that a group begins at offset 0."""
    NOT_FOUND = "NOT_FOUND"
    """No progress is stored. The client decides where the group begins (QUERY_NOT_FOUND)."""


@dataclass(frozen=True, slots=True)
class OffsetFound:
    """An offset, -1 with NOT_FOUND.

    `is_group_known` is true if the group has stored progress in another queue of the topic. This queue is a new one
    then.
    """

    status: OffsetStatus
    offset: int
    is_group_known: bool = False


@dataclass(frozen=True, slots=True)
class UpdateOffset:
    """Store the progress of a group in a queue: all messages below the offset are finished.

    Progress never decreases, and an offset that is not above the stored one changes nothing. `only_if_absent` stores
    the first offset of a group: if there is progress already, it stays. With a lease, only the owner may store.
    """

    group: str
    queue: MessageQueue
    offset: int
    lease: Lease | None = None
    only_if_absent: bool = False


class UpdateStatus(Enum):
    """What an update has done."""

    STORED = "STORED"
    NOT_ABOVE = "NOT_ABOVE"
    """The stored progress was as high already, or present with `only_if_absent`."""


@dataclass(frozen=True, slots=True)
class OffsetUpdated:
    """The progress that is stored after an update."""

    status: UpdateStatus
    offset: int


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """Ask for the minimum and maximum of a queue."""

    queue: MessageQueue


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offset of the first message, and the offset after the last message."""

    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class SearchOffset:
    """Ask for the offset of the first message stored at or after a time.

    The time is in milliseconds since 1970.
    """

    queue: MessageQueue
    timestamp_ms: int


# ---- messages that were not consumed ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBack:
    """Have a message delivered to the group again later.

    `commit_log_offset` is the physical offset of the message, and `identity` tells it from another record at this
    offset (`impl.consumer.messages.identity_of`). `delay_level` 0 lets the broker choose, and -1 sends the message to
    the dead letters at once. `key` is equal in repetitions of the request, which store no second copy.
    """

    group: str
    commit_log_offset: int
    identity: str
    delay_level: int
    max_reconsume_times: int
    key: str


@dataclass(frozen=True, slots=True)
class SendToRetry:
    """Have a copy of a message delivered to the group again, without a look at its record.

    `topic` is the original topic and `reconsume_times` how often the message was consumed again already. `key` is that
    of the `SendBack` that this request replaces.
    """

    group: str
    topic: str
    body: bytes
    properties: Mapping[str, str]
    flag: int
    born_timestamp: int
    born_host: Host
    message_id: str
    reconsume_times: int
    max_reconsume_times: int
    key: str
    delay_level: int = 0


class SendBackStatus(Enum):
    """Where the copy of a message is."""

    RETRY = "RETRY"
    DEAD_LETTER = "DEAD_LETTER"
    REPEATED = "REPEATED"
    """An earlier request with the same key has stored the copy."""


@dataclass(frozen=True, slots=True)
class SentBack:
    """The copy is stored, as durably as the mode of the store promises."""

    status: SendBackStatus


Request = (
    Heartbeat
    | Leave
    | LockQueues
    | Members
    | Pull
    | QueryBounds
    | QueryOffset
    | Route
    | SearchOffset
    | SendBack
    | SendToRetry
    | UnlockQueues
    | UpdateOffset
)
Answer = Bounds | Done | Locked | MembersFound | OffsetFound | OffsetUpdated | Pulled | Refused | Routed | SentBack
