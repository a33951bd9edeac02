"""List all small programs of a cluster of two nodes.

The bound: up to K operations of `ALPHABET`, after a first round in which the replica joins. And up to K - 1 operations
of `ALPHABET` and `WITH_FILES`, after the master has a durable log of two files and the replica a part of it. A program
with an operation that does nothing is left out: an operation on a node that is down, a restart of one that is up, a
change of roles that changes none while the slave is down. Such an operation changes neither nodes, nor links, nor time
(`tests/properties/cluster/test_programs.py` runs them). At the end the network heals and every node restarts.

Power losses in these programs keep nothing or everything, at rest. Nothing is sampled and nothing else is pruned.
"""

from collections.abc import Iterator

from tornpage.model.replication.operations import (
    AdvanceTime,
    ChangeRoles,
    CleanNode,
    ClusterOperation,
    CrashNode,
    FailSyncOn,
    FlushNode,
    LimitLink,
    PutOn,
    ResetLink,
    RestartNode,
    RunAll,
    StepNode,
)

__all__ = ["ALPHABET", "BEGINNINGS", "WITH_FILES", "all_programs", "does_something"]

ALPHABET: tuple[ClusterOperation, ...] = (
    PutOn(0, body_bytes=40),
    PutOn(1, body_bytes=300),
    RunAll(),
    StepNode(0),
    StepNode(1),
    FlushNode(0),
    AdvanceTime(1_100),
    LimitLink(1, to_master=False, size_bytes=100),
    LimitLink(1, to_master=True),
    ResetLink(1, 0, 50),
    CrashNode(0),
    CrashNode(0, others="kept"),
    CrashNode(0, kill=True),
    CrashNode(1),
    CrashNode(1, others="kept", silent=True),
    RestartNode(0),
    RestartNode(1),
    ChangeRoles(0),
    ChangeRoles(1),
)
WITH_FILES: tuple[ClusterOperation, ...] = (CleanNode(0), CleanNode(1), FailSyncOn(0), FailSyncOn(1))
"""Operations that matter once a log has two files."""
_PUT = PutOn(body_bytes=2500)
BEGINNINGS: tuple[tuple[tuple[ClusterOperation, ...], tuple[ClusterOperation, ...], int], ...] = (
    ((RunAll(),), ALPHABET, 0),
    ((RunAll(), PutOn(), RunAll(), LimitLink(1), _PUT, _PUT, FlushNode(0), StepNode(0)), (*ALPHABET, *WITH_FILES), 1),
)
"""The first operations of programs, the operations that may follow, and by how much the bound is shorter."""


def all_programs(length: int) -> Iterator[tuple[ClusterOperation, ...]]:
    """Yield every program of up to `length` operations, shorter ones first for each beginning."""
    for begin, alphabet, shorter in BEGINNINGS:
        programs = [begin]
        for _ in range(length - shorter):
            programs = [(*program, each) for program in programs for each in alphabet if does_something(program, each)]
            yield from programs


def does_something(program: tuple[ClusterOperation, ...], last: ClusterOperation) -> bool:
    """Return whether an operation after a program changes a node, a link or the time."""
    up, master = [True, True], 0
    for each in program:
        match each:
            case CrashNode(node):
                up[node] = False
            case RestartNode(node):
                up[node] = True
            case ChangeRoles(node):
                master = node
    match last:
        case PutOn(node):
            return up[node] and master == node
        case StepNode(node) | FlushNode(node) | CleanNode(node) | FailSyncOn(node) | CrashNode(node):
            return up[node]
        case RestartNode(node):
            return not up[node]
        case ChangeRoles(node):
            return master != node or up[1 - node]  # a slave ends its link and connects again
    return True
