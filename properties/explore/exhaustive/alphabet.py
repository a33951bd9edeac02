"""The operations that exhaustive workloads are made of, and every workload of a length.

A letter is one operation, or a few that make sense together; crashes fall into each of them. Sizes fit log files of
2 KiB: small records share one, a large record takes nearly all of it, so that whatever follows opens the next. The
body of a large record fills whole sectors between its head and its tail, so that a tear may take a piece of it alone.
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
    "LETTERS",
    "MODES",
    "Letter",
    "Mode",
    "Workload",
    "is_crashed",
    "letters_of",
    "operations_of",
    "settings_of",
    "workloads",
]

Mode = Literal["async", "sync", "pool"]
MODES: tuple[Mode, ...] = ("async", "sync", "pool")

Workload = tuple[str, ...]
"""Names of letters, in order. The empty one is the open of a store that is new."""


@dataclass(frozen=True, slots=True)
class Letter:
    """What one place of a workload may be. `modes` are those whose store has what it needs."""

    name: str
    sentence: str
    operations: tuple[Operation, ...]
    modes: tuple[Mode, ...] = MODES
    on_closed_store: bool = False


FILE_BYTES = 2048
_SMALL, _LARGE = 40, 1750
_DELAYED = "DELAY\x011"
_KEYS = "KEYS\x01k\x02TAGS\x01TagA"

LETTERS: dict[str, Letter] = {
    letter.name: letter
    for letter in (
        Letter("put", "put a small message", (Put(body_bytes=_SMALL, fill=1, properties=_KEYS),)),
        Letter("roll", "put a large message to another queue", (Put(topic="U", body_bytes=_LARGE, fill=2),)),
        Letter("batch", "put a batch of two", (PutBatch(members=(Member(_SMALL, 3), Member(_SMALL, 4))),)),
        Letter("delayed", "put a message that is due a second later", (Put(body_bytes=_SMALL, properties=_DELAYED),)),
        Letter("later", "put, and go on before the answer", (Put(body_bytes=_SMALL, fill=5, later=True),), ("sync",)),
        Letter("flush", "flush the store", (Flush(),)),
        Letter("timer", "the timed flush, when its time has come", (Step("flush", 10_000),), ("async", "pool")),
        Letter("group", "group commit takes a step", (Step("group-commit"),), ("sync",)),
        Letter("commit", "the timed commit, when its time has come", (Step("commit", 200),), ("pool",)),
        Letter("reput", "dispatch takes a step", (Step("reput"),)),
        Letter(
            "queues",
            "dispatch, then the thorough flush of the queues, with its checkpoint",
            (Step("reput"), Step("flush-queues", 60_000)),
        ),
        Letter("deliver", "dispatch, then delivery a second later", (Step("reput"), Step("schedule", 1_000))),
        Letter(
            "consume",
            "dispatch; a group notes how far it has come, and that is saved",
            (Step("reput"), CommitOffset(), Step("progress", 5_000)),
        ),
        Letter(
            "clean",
            "dispatch; then the disk is nearly full, and somebody asks for a clean-up",
            (Step("reput"), Clean(manual=True, percent=95)),
        ),
        Letter("forget", "all topics go but that of the large messages", (DeleteTopics(in_use=("U",)),)),
        Letter("close", "close the store", (Close(),)),
        Letter("open", "open the closed store", (Open(),), on_closed_store=True),
        Letter("lose", "lose the power at rest, nothing un-synced survives; recover", (Crash(),)),
        Letter("kill", "kill the process at rest; recover", (Crash(kill=True),)),
    )
}


def letters_of(mode: Mode, names: Sequence[str] = ()) -> tuple[Letter, ...]:
    """Return the letters of a durability mode in order, of all or of those that are named.

    Raises ValueError for a name that is none of them.
    """
    letters = [letter for letter in LETTERS.values() if mode in letter.modes]
    if unknown := sorted(set(names) - {letter.name for letter in letters}):
        there = ", ".join(letter.name for letter in letters)
        raise ValueError(f"mode {mode} has no letter {unknown[0]!r}; there are: {there}")
    return tuple(letter for letter in letters if not names or letter.name in names)


def settings_of(mode: Mode, *, disk: Disk, bug: str = "", file_bytes: int = FILE_BYTES) -> Settings:
    """Return the small store of a mode: few units to a queue file, few entries to an index file."""
    base = Settings(file_bytes=file_bytes, disk=disk, bug=bug, queue_units=4, index_slots=1, index_entries=4)
    return replace(base, sync_flush=mode == "sync", pool_buffers=2 if mode == "pool" else 0)


def workloads(letters: Sequence[Letter], length: int) -> Iterator[Workload]:
    """Yield each workload of a length, in the order of the letters.

    Left out is what a store answers without touching anything: on a closed store only the open takes place, and an
    open store is not opened.
    """
    for names in _sequences(letters, length):
        yield tuple(letter.name for letter in names)


def _sequences(letters: Sequence[Letter], length: int) -> Iterator[tuple[Letter, ...]]:
    if not length:
        yield ()
        return
    for before in _sequences(letters, length - 1):
        closed = bool(before) and before[-1].name == "close"
        yield from ((*before, letter) for letter in letters if letter.on_closed_store == closed)


def operations_of(workload: Workload) -> tuple[Operation, ...]:
    """Return the operations of a workload, one behind the other."""
    return tuple(operation for name in workload for operation in LETTERS[name].operations)


def is_crashed(operation: Operation) -> bool:
    """Whether crashes fall into an operation."""
    return not isinstance(operation, WITHOUT_A_VERB)
