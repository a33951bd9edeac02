"""Define the operations of a consumer group, of its network and of its broker.

Members are numbered from 0, and so are queues. A number is taken modulo the number of members or queues. An operation
on a member that does not run does nothing, except `Join`. An operation on a broker that is down does nothing, except
`RestartBroker`.

The defaults are the simplest choices: everything sent arrives in order, and a power loss keeps nothing that was not
durable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tornpage.model.operations import Choice, Others

__all__ = [
    "GROUP_OPERATIONS",
    "AddQueue",
    "Allocate",
    "CommitProgress",
    "CrashBroker",
    "CrashLocal",
    "DeleteFiles",
    "DeliverAnswer",
    "DeliverRequest",
    "DropConnection",
    "FailRequests",
    "FinishBatch",
    "FlushBroker",
    "GroupOperation",
    "HangMember",
    "HealMember",
    "HoldResults",
    "Join",
    "KillMember",
    "Leave",
    "LoseAnswer",
    "LoseRequest",
    "MemberPart",
    "ParkRequests",
    "PartitionMember",
    "PassTime",
    "Produce",
    "ReadBroker",
    "RepeatRequest",
    "RequestKind",
    "RestartBroker",
    "ResumeMember",
    "RunDirect",
    "RunGroup",
    "SlowService",
    "StepBroker",
    "StepMember",
    "Subscribe",
    "TakeBatch",
    "TryConsumerSettings",
    "UseBroker",
    "UseCache",
    "UseMemberPart",
    "UseMembers",
    "UseOwners",
    "UseStateFiles",
    "Verdict",
]

Verdict = Literal["success", "later", "first", "soon", "dead"]
"""The result of a listener.

`later` is RECONSUME_LATER, or SUSPEND for an orderly listener. A concurrent listener acknowledges the `first` message
of its batch only, or asks for a short delay (`soon`) or for a `dead` letter. An orderly listener rolls back with
`first`; the other results are SUSPEND. A puller tries the message again after all of them but `success`.
"""
RequestKind = Literal[
    "query_offset", "send_back", "send_to_retry", "pull", "members", "lock", "update_offset", "heartbeat", "route",
    "bounds", "unlock", "leave",
]  # fmt: skip
"""The kind of a request that a broker may answer with "busy"."""


@dataclass(frozen=True, slots=True)
class Produce:
    """Put a message to a queue of the topic.

    The subscription matches tag `A` only. The tag of `C` has the same hash as that of `A`.
    """

    queue: int = 0
    tag: str = "A"
    body_bytes: int = 0
    op: Literal["produce"] = "produce"


@dataclass(frozen=True, slots=True)
class FlushBroker:
    """Make the log of the broker durable."""

    op: Literal["flush_broker"] = "flush_broker"


@dataclass(frozen=True, slots=True)
class StepBroker:
    """Let the broker do one round of each service that is due, or of one of them by its name."""

    service: str = ""
    op: Literal["step_broker"] = "step_broker"


@dataclass(frozen=True, slots=True)
class SlowService:
    """Step one service of the broker in no round from now on.

    Its thread gets no time then. A put that waits for the service still steps it, and so does `StepBroker` with its
    name. An empty name ends this.
    """

    service: str = ""
    op: Literal["slow_service"] = "slow_service"


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Delete the files of the log that retention may delete, whatever the group has consumed.

    A run with files of the default size has one file, which stays.
    """

    op: Literal["delete_files"] = "delete_files"


@dataclass(frozen=True, slots=True)
class AddQueue:
    """Add a queue to the topic. Members see it with their next route."""

    op: Literal["add_queue"] = "add_queue"


@dataclass(frozen=True, slots=True)
class Join:
    """Start the process of a member that does not run."""

    member: int = 0
    op: Literal["join"] = "join"


@dataclass(frozen=True, slots=True)
class Leave:
    """Shut a member down in order.

    It gives its queues back after the results of its running batches. It ends in a later step.
    """

    member: int = 0
    op: Literal["leave"] = "leave"


@dataclass(frozen=True, slots=True)
class KillMember:
    """End the process of a member without any further action. Requests under way still arrive.

    The broker sees the end of its connection, unless it is `silent`.
    """

    member: int = 0
    silent: bool = False
    op: Literal["kill_member"] = "kill_member"


@dataclass(frozen=True, slots=True)
class HangMember:
    """Stop the threads of a member, as a long pause does. Its listeners go on."""

    member: int = 0
    op: Literal["hang_member"] = "hang_member"


@dataclass(frozen=True, slots=True)
class ResumeMember:
    """Let a member that hangs go on."""

    member: int = 0
    op: Literal["resume_member"] = "resume_member"


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Let a member subscribe the topic again, or no longer.

    Without the topic it hands its queues over, and stays a member.
    """

    member: int = 0
    again: bool = False
    op: Literal["subscribe"] = "subscribe"


@dataclass(frozen=True, slots=True)
class StepMember:
    """Let a member do one step. Its requests wait in the network."""

    member: int = 0
    op: Literal["step_member"] = "step_member"


@dataclass(frozen=True, slots=True)
class TakeBatch:
    """Begin the listener of a member on its next batch."""

    member: int = 0
    op: Literal["take_batch"] = "take_batch"


@dataclass(frozen=True, slots=True)
class FinishBatch:
    """End a running batch of a member with a result.

    `number` counts its running batches from 0.
    """

    member: int = 0
    number: int = 0
    result: Verdict = "success"
    op: Literal["finish_batch"] = "finish_batch"


@dataclass(frozen=True, slots=True)
class CommitProgress:
    """Let a member that pulls by itself commit what it has finished.

    Earlier commits may still be under way.
    """

    member: int = 0
    op: Literal["commit_progress"] = "commit_progress"


@dataclass(frozen=True, slots=True)
class HoldResults:
    """From now on `RunGroup` lets listeners begin, and ends none (or ends all again)."""

    hold: bool = True
    op: Literal["hold_results"] = "hold_results"


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Let broker and members do rounds, `by_ms` apart, with a working network.

    Each round delivers everything under way and not parked, and ends each running batch with `result` unless results
    are held.
    """

    rounds: int = 4
    by_ms: int = 50
    result: Verdict = "success"
    op: Literal["run_group"] = "run_group"


@dataclass(frozen=True, slots=True)
class PassTime:
    """Let time pass for all."""

    by_ms: int = 1000
    op: Literal["pass_time"] = "pass_time"


@dataclass(frozen=True, slots=True)
class DeliverRequest:
    """Let one request of a member arrive at the broker.

    `number` counts those under way from the oldest.
    """

    member: int = 0
    number: int = 0
    op: Literal["deliver_request"] = "deliver_request"


@dataclass(frozen=True, slots=True)
class DeliverAnswer:
    """Let one answer arrive at a member. `number` counts those under way from the oldest."""

    member: int = 0
    number: int = 0
    op: Literal["deliver_answer"] = "deliver_answer"


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Lose one request of a member."""

    member: int = 0
    number: int = 0
    op: Literal["lose_request"] = "lose_request"


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Lose one answer to a member, after the broker has carried out its request."""

    member: int = 0
    number: int = 0
    op: Literal["lose_answer"] = "lose_answer"


@dataclass(frozen=True, slots=True)
class RepeatRequest:
    """Let one one-way request arrive at the broker, and stay under way to arrive again."""

    member: int = 0
    number: int = 0
    op: Literal["repeat_request"] = "repeat_request"


@dataclass(frozen=True, slots=True)
class ParkRequests:
    """Keep all one-way requests of a member that are under way until `HealMember`."""

    member: int = 0
    op: Literal["park_requests"] = "park_requests"


@dataclass(frozen=True, slots=True)
class PartitionMember:
    """Lose everything between a member and the broker until `HealMember`."""

    member: int = 0
    op: Literal["partition_member"] = "partition_member"


@dataclass(frozen=True, slots=True)
class HealMember:
    """End the partition of a member, and release its parked requests."""

    member: int = 0
    op: Literal["heal_member"] = "heal_member"


@dataclass(frozen=True, slots=True)
class DropConnection:
    """End the connection of a member that lives on, and lose what is under way.

    The broker removes the member from its group. The next request of the member begins a new connection.
    """

    member: int = 0
    op: Literal["drop_connection"] = "drop_connection"


@dataclass(frozen=True, slots=True)
class FailRequests:
    """Let the broker answer the next requests of one kind with "busy"."""

    kind: RequestKind = "query_offset"
    count: int = 1
    op: Literal["fail_requests"] = "fail_requests"


@dataclass(frozen=True, slots=True)
class CrashBroker:
    """Lose the broker by a power loss or a kill.

    The crash falls `back` events before the end of the last operation of the broker. `survived` and `others` are those
    of `Crash`. Requests and answers under way are lost.
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    op: Literal["crash_broker"] = "crash_broker"


@dataclass(frozen=True, slots=True)
class RestartBroker:
    """Open the store of a broker that is down, and let it serve."""

    op: Literal["restart_broker"] = "restart_broker"


@dataclass(frozen=True, slots=True)
class CrashLocal:
    """Save the local progress of a broadcasting member twice, with a crash.

    The crash falls `back` events before the end. The file is then loaded again. `survived` and `others` are those of
    `Crash`.
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    op: Literal["crash_local"] = "crash_local"


@dataclass(frozen=True, slots=True)
class Allocate:
    """Let every member of a view compute its share by a strategy (spec: consumers, 7)."""

    strategy: str = "AVG"
    queues: int = 3
    members: int = 2
    op: Literal["allocate"] = "allocate"


@dataclass(frozen=True, slots=True)
class ReadBroker:
    """Let a pull consumer of another group ask the broker everything about a queue.

    It pulls up to `count` messages from `offset` on.
    """

    queue: int = 0
    offset: int = 0
    count: int = 32
    op: Literal["read_broker"] = "read_broker"


@dataclass(frozen=True, slots=True)
class RunDirect:
    """Let members in the process of the broker run, and start one of them if it does not run.

    They are of other groups: of one that broadcasts, or of one whose two members share the queues. Each member is
    stepped when it is due or was woken, as its thread would do. Rounds are `by_ms` apart. A member that is `paused`
    takes nothing until its next operation. At the end of the operation the member may leave in order, close its
    connection, or be killed. `begins` and the time of the first operation decide where its group begins.
    """

    member: int = 0
    is_broadcasting: bool = True
    rounds: int = 4
    by_ms: int = 500
    result: Verdict = "success"
    begins: Literal["first", "last", "time"] = "first"
    paused: bool = False
    end: Literal["", "leave", "close", "kill"] = ""
    op: Literal["run_direct"] = "run_direct"


@dataclass(frozen=True, slots=True)
class TryConsumerSettings:
    """Build settings of consumers and of their broker with one valid or invalid value each.

    They are a fourth of `model.consumers.settings.cases`: those with number `part` modulo 4.
    """

    part: int = 0
    op: Literal["try_consumer_settings"] = "try_consumer_settings"


@dataclass(frozen=True, slots=True)
class UseCache:
    """Use the cache of one queue alone, by calls drawn from a seed.

    Its model is `model.consumers.cache`.
    """

    seed: int = 0
    op: Literal["use_cache"] = "use_cache"


@dataclass(frozen=True, slots=True)
class UseOwners:
    """Use the broker's table of owners alone, by calls drawn from a seed.

    Its model is `model.consumers.owners`.
    """

    seed: int = 0
    op: Literal["use_owners"] = "use_owners"


@dataclass(frozen=True, slots=True)
class UseMembers:
    """Use the broker's part of membership alone, by requests drawn from a seed.

    Its model is `model.consumers.membership`.
    """

    seed: int = 0
    op: Literal["use_members"] = "use_members"


@dataclass(frozen=True, slots=True)
class UseStateFiles:
    """Use an owner of a state file alone, by calls drawn from a seed.

    Its model is `model.consumers.state_files`.
    """

    seed: int = 0
    op: Literal["use_state_files"] = "use_state_files"


@dataclass(frozen=True, slots=True)
class UseBroker:
    """Use the broker's part of consumption alone, by requests drawn from a seed.

    Its models are `model.consumers.owners` and `model.consumers.membership`.
    """

    seed: int = 0
    op: Literal["use_broker"] = "use_broker"


MemberPart = Literal[
    "heartbeats", "rebalance", "leases", "hand_over", "first_offsets", "listener", "pulls", "running", "calls",
    "pull_consumer", "subscriptions", "restarts",
]  # fmt: skip
"""A part of a member that is used alone."""


@dataclass(frozen=True, slots=True)
class UseMemberPart:
    """Use one part of a member alone, with brokers whose answers are drawn from a seed.

    Its model is in `model.consumers.member`.
    """

    part: MemberPart = "heartbeats"
    seed: int = 0
    op: Literal["use_member_part"] = "use_member_part"


GroupOperation = (
    Produce
    | FlushBroker
    | StepBroker
    | SlowService
    | DeleteFiles
    | AddQueue
    | Join
    | Leave
    | KillMember
    | HangMember
    | ResumeMember
    | StepMember
    | Subscribe
    | TakeBatch
    | FinishBatch
    | CommitProgress
    | HoldResults
    | RunGroup
    | PassTime
    | DeliverRequest
    | DeliverAnswer
    | LoseRequest
    | LoseAnswer
    | RepeatRequest
    | ParkRequests
    | PartitionMember
    | HealMember
    | DropConnection
    | FailRequests
    | CrashBroker
    | RestartBroker
    | CrashLocal
    | Allocate
    | ReadBroker
    | RunDirect
    | TryConsumerSettings
    | UseBroker
    | UseCache
    | UseMemberPart
    | UseMembers
    | UseOwners
    | UseStateFiles
)
"""An operation of a consumer group."""

GROUP_OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(GroupOperation)}
"""The operations of a consumer group by name."""
