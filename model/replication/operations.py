"""Define the operations of a cluster: clients, steps, the network, crashes, roles.

Nodes are numbered from 0. Node 0 begins as the master. A number is taken modulo the number of nodes, or of replicas for
an operation on a link. An operation on a node that is down does nothing, except `RestartNode`.

The defaults are the simplest choices: everything sent arrives, and a power loss keeps nothing that was not durable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tornpage.model.operations import Choice, Others

__all__ = [
    "CLUSTER_OPERATIONS",
    "AdvanceTime",
    "AskNode",
    "CallNode",
    "Caller",
    "ChangeRoles",
    "CleanNode",
    "CloseNode",
    "ClusterOperation",
    "CrashNode",
    "FailCopy",
    "FailFile",
    "FailSyncOn",
    "FlipBit",
    "FlushNode",
    "ForgeFrame",
    "Forged",
    "HealLink",
    "LimitLink",
    "PutOn",
    "ResetLink",
    "RestartNode",
    "RunAll",
    "SetNodeClock",
    "StepNode",
]


@dataclass(frozen=True, slots=True)
class PutOn:
    """Put a message to a node, without waiting for its answer. A slave refuses it.

    With `served` the put is a request in the protocol of clients.
    """

    node: int = 0
    queue_id: int = 0
    body_bytes: int = 0
    fill: int = 0
    key: str = ""
    served: bool = False
    op: Literal["put_on"] = "put_on"


@dataclass(frozen=True, slots=True)
class AskNode:
    """Ask a node in the protocol of clients, with every kind of request.

    The requests change nothing but progress of groups. Reads begin at `offset` of queue `queue_id` and return up to
    `count` messages. Wrong requests follow.
    """

    node: int = 0
    queue_id: int = 0
    offset: int = 0
    count: int = 32
    op: Literal["ask_node"] = "ask_node"


@dataclass(frozen=True, slots=True)
class StepNode:
    """Let a node do one round of replication, and of each service that is due."""

    node: int = 0
    op: Literal["step_node"] = "step_node"


@dataclass(frozen=True, slots=True)
class RunAll:
    """Let every node do rounds in turn, one millisecond apart."""

    rounds: int = 4
    op: Literal["run_all"] = "run_all"


@dataclass(frozen=True, slots=True)
class FlushNode:
    """Make the log of a node durable."""

    node: int = 0
    op: Literal["flush_node"] = "flush_node"


@dataclass(frozen=True, slots=True)
class AdvanceTime:
    """Let time pass for all nodes."""

    by_ms: int = 1000
    op: Literal["advance_time"] = "advance_time"


@dataclass(frozen=True, slots=True)
class SetNodeClock:
    """Set the wall clock of a node; monotonic time goes on."""

    node: int = 0
    by_ms: int = 0
    op: Literal["set_node_clock"] = "set_node_clock"


@dataclass(frozen=True, slots=True)
class LimitLink:
    """Let only some more bytes arrive at one end of the newest link of a replica.

    0 is a partition of that direction.
    """

    replica: int = 0
    to_master: bool = False
    size_bytes: int = 0
    op: Literal["limit_link"] = "limit_link"


@dataclass(frozen=True, slots=True)
class HealLink:
    """Remove the limits of all links of a replica."""

    replica: int = 0
    op: Literal["heal_link"] = "heal_link"


@dataclass(frozen=True, slots=True)
class ResetLink:
    """End the newest link of a replica.

    A prefix of the bytes under way arrives in each direction.
    """

    replica: int = 0
    to_master_bytes: int = 0
    to_replica_bytes: int = 0
    op: Literal["reset_link"] = "reset_link"


@dataclass(frozen=True, slots=True)
class FlipBit:
    """Flip a bit under way on the newest link of a replica, counted from its first byte."""

    replica: int = 0
    to_master: bool = False
    bit: int = 0
    op: Literal["flip_bit"] = "flip_bit"


@dataclass(frozen=True, slots=True)
class FailFile:
    """Let the next creation of a log file on a node fail, as on a full disk."""

    node: int = 1
    op: Literal["fail_file"] = "fail_file"


@dataclass(frozen=True, slots=True)
class FailCopy:
    """Let the next copy of bytes into a log file of a node fail half way."""

    node: int = 1
    op: Literal["fail_copy"] = "fail_copy"


@dataclass(frozen=True, slots=True)
class FailSyncOn:
    """Let the next sync of a file on a node fail. Its pages stay dirty.

    The file is one of the log, or that of the generations.
    """

    node: int = 1
    file: Literal["log", "generations"] = "log"
    op: Literal["fail_sync_on"] = "fail_sync_on"


@dataclass(frozen=True, slots=True)
class CleanNode:
    """Run retention on a node with a nearly full disk.

    Every log file but the last one is deleted if it is durable and dispatched.
    """

    node: int = 0
    op: Literal["clean_node"] = "clean_node"


Forged = Literal[
    "head", "data", "empty data", "negative data", "data elsewhere", "hello", "welcome", "ping", "refusal", "ack",
    "ack too far", "ack more durable", "negative ack", "short ack", "unknown kind", "reserved", "checksum",
]  # fmt: skip
"""A frame that no sound peer sends. `properties/cluster/forging.py` has the bytes."""


@dataclass(frozen=True, slots=True)
class ForgeFrame:
    """Send a frame that no sound peer sends now, with right checksums.

    A "head" is that of a data frame that states a size, without its body. It goes over the newest link of a replica,
    after everything else that is under way.
    """

    replica: int = 0
    to_master: bool = False
    size_bytes: int = 0
    frame: Forged = "head"
    op: Literal["forge_frame"] = "forge_frame"


Caller = Literal[
    "silent", "half", "no frame", "ack first", "data first", "ping first", "version", "file size", "same node",
    "flag", "begin past end", "flushed past end", "missing generation", "many generations", "strange generation",
    "slow",
]  # fmt: skip
"""What a connection sends first that is no sound replica. `properties/cluster/forging.py` has the bytes."""


@dataclass(frozen=True, slots=True)
class CallNode:
    """Connect to a node and send what no sound replica sends first.

    A node that does not listen is not reached.
    """

    node: int = 0
    caller: Caller = "silent"
    op: Literal["call_node"] = "call_node"


@dataclass(frozen=True, slots=True)
class CrashNode:
    """Lose a node by a power loss or a kill.

    The crash falls `back` events before the end of the last operation of the node. `survived` and `others` are
    those of `Crash`. The links of a node that dies silently stay half-open.
    """

    node: int = 0
    kill: bool = False
    back: int = 0
    silent: bool = False
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    op: Literal["crash_node"] = "crash_node"


@dataclass(frozen=True, slots=True)
class RestartNode:
    """Open the store of a node that is down, in its last role."""

    node: int = 0
    op: Literal["restart_node"] = "restart_node"


@dataclass(frozen=True, slots=True)
class CloseNode:
    """Close a node: its waiting puts are answered."""

    node: int = 0
    op: Literal["close_node"] = "close_node"


@dataclass(frozen=True, slots=True)
class ChangeRoles:
    """Make a node the master by hand, and every other node its slave.

    Nodes that are down change when they restart.

    A `drained` change first refuses puts and runs all nodes until a replica has everything.
    """

    master: int = 1
    drained: bool = False
    op: Literal["change_roles"] = "change_roles"


ClusterOperation = (
    PutOn
    | AskNode
    | StepNode
    | RunAll
    | FlushNode
    | AdvanceTime
    | SetNodeClock
    | LimitLink
    | HealLink
    | ResetLink
    | FlipBit
    | FailFile
    | FailCopy
    | FailSyncOn
    | CleanNode
    | ForgeFrame
    | CallNode
    | CrashNode
    | RestartNode
    | CloseNode
    | ChangeRoles
)
"""An operation of a cluster."""

CLUSTER_OPERATIONS: dict[str, Any] = {kind().op: kind for kind in get_args(ClusterOperation)}
"""The operations of a cluster by name."""
