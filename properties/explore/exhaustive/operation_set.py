"""Define the operation set of exhaustive workloads, and generate workloads of a length.

An entry (`NamedOperation`) is one operation, or a few that belong together; crashes happen inside each of them. Sizes
fit log files of 2 KiB. Small records share a file, and a large record takes nearly all of one, so that the next record
starts a new file. The body of a large record fills whole sectors between its head and its tail, so that a tear may lose
a part of the body alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tornpage.model.operations import (
    WITHOUT_A_VERB,
    Clean,
    Close,
    CommitOffset,
    Crash,
    DeleteTopics,
    Flush,
    Member,
    Open,
    Operation,
    Put,
    PutBatch,
    Step,
)
from tornpage.properties.program.case import Disk, Settings

__all__ = [
    "FILE_BYTES",
    "MODES",
    "OPERATION_SET",
    "Mode",
    "NamedOperation",
    "Workload",
    "is_crashed",
    "operation_set_of",
    "operations_of",
    "settings_of",
    "workloads",
]

Mode = Literal["async", "sync", "pool"]
MODES: tuple[Mode, ...] = ("async", "sync", "pool")

Workload = tuple[str, ...]
"""Names of operations, in order. The empty workload is the open of a new store."""


@dataclass(frozen=True, slots=True)
class NamedOperation:
    """Define one entry of a workload. `modes` are those whose store has what it needs."""

    name: str
    sentence: str
    operations: tuple[Operation, ...]
    modes: tuple[Mode, ...] = MODES
    on_closed_store: bool = False


FILE_BYTES = 2048
_SMALL, _LARGE = 40, 1750
_DELAYED = "DELAY\x011"
_KEYS = "KEYS\x01k\x02TAGS\x01TagA"

OPERATION_SET: dict[str, NamedOperation] = {
    entry.name: entry
    for entry in (
        NamedOperation("put", "put a small message", (Put(body_bytes=_SMALL, fill=1, properties=_KEYS),)),
        NamedOperation("roll", "put a large message to another queue", (Put(topic="U", body_bytes=_LARGE, fill=2),)),
        NamedOperation("batch", "put a batch of two", (PutBatch(members=(Member(_SMALL, 3), Member(_SMALL, 4))),)),
        NamedOperation(
            "delayed", "put a message that is due one second later", (Put(body_bytes=_SMALL, properties=_DELAYED),)
        ),
        NamedOperation(
            "later", "put without waiting for the answer", (Put(body_bytes=_SMALL, fill=5, later=True),), ("sync",)
        ),
        NamedOperation("flush", "flush the store", (Flush(),)),
        NamedOperation("timer", "run the timed flush when it is due", (Step("flush", 10_000),), ("async", "pool")),
        NamedOperation("group", "run one step of group commit", (Step("group-commit"),), ("sync",)),
        NamedOperation("commit", "run the timed commit when it is due", (Step("commit", 200),), ("pool",)),
        NamedOperation("reput", "run one step of dispatch", (Step("reput"),)),
        NamedOperation(
            "queues",
            "dispatch, then flush queues and index completely and write the checkpoint",
            (Step("reput"), Step("flush-queues", 60_000)),
        ),
        NamedOperation("deliver", "dispatch, then deliver one second later", (Step("reput"), Step("schedule", 1_000))),
        NamedOperation(
            "consume",
            "dispatch, commit the offset of a group, and save it",
            (Step("reput"), CommitOffset(), Step("progress", 5_000)),
        ),
        NamedOperation(
            "clean",
            "dispatch, fill the disk to 95 %, and request a clean-up",
            (Step("reput"), Clean(manual=True, percent=95)),
        ),
        NamedOperation("forget", "delete all topics but the one of the large messages", (DeleteTopics(in_use=("U",)),)),
        NamedOperation("close", "close the store", (Close(),)),
        NamedOperation("open", "open the closed store", (Open(),), on_closed_store=True),
        NamedOperation("lose", "lose power at rest with all un-synced writes; recover", (Crash(),)),
        NamedOperation("kill", "kill the process at rest; recover", (Crash(kill=True),)),
    )
}


def operation_set_of(mode: Mode, names: Sequence[str] = ()) -> tuple[NamedOperation, ...]:
    """Return the operation set of a durability mode in order, or its named entries.

    Raises ValueError for an unknown name.
    """
    operation_set = [entry for entry in OPERATION_SET.values() if mode in entry.modes]
    if unknown := sorted(set(names) - {entry.name for entry in operation_set}):
        there = ", ".join(entry.name for entry in operation_set)
        raise ValueError(f"mode {mode} has no operation {unknown[0]!r}; there are: {there}")
    return tuple(entry for entry in operation_set if not names or entry.name in names)


def settings_of(mode: Mode, *, disk: Disk, bug: str = "", file_bytes: int = FILE_BYTES) -> Settings:
    """Return the settings of a mode: few units per queue file, few entries per index file."""
    base = Settings(file_bytes=file_bytes, disk=disk, bug=bug, queue_units=4, index_slots=1, index_entries=4)
    return replace(base, sync_flush=mode == "sync", pool_buffers=2 if mode == "pool" else 0)


def workloads(operation_set: Sequence[NamedOperation], length: int) -> Iterator[Workload]:
    """Yield each workload of a length, in the order of the operation set.

    Calls that a store answers without any effect are left out: on a closed store only the open is used, and an open
    store is not opened.
    """
    for names in _sequences(operation_set, length):
        yield tuple(entry.name for entry in names)


def _sequences(operation_set: Sequence[NamedOperation], length: int) -> Iterator[tuple[NamedOperation, ...]]:
    if not length:
        yield ()
        return
    for before in _sequences(operation_set, length - 1):
        closed = bool(before) and before[-1].name == "close"
        yield from ((*before, entry) for entry in operation_set if entry.on_closed_store == closed)


def operations_of(workload: Workload) -> tuple[Operation, ...]:
    """Return the operations of a workload in sequence."""
    return tuple(operation for name in workload for operation in OPERATION_SET[name].operations)


def is_crashed(operation: Operation) -> bool:
    """Return whether crashes happen inside an operation."""
    return not isinstance(operation, WITHOUT_A_VERB)
