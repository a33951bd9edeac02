"""List the shapes by the names that stores give in their handshakes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tornpage.model.operations import Call, Crash, Operation
from tornpage.properties.foreign.shapes.file import FileBook, FilePromises, WholeFile
from tornpage.properties.foreign.shapes.key_value import KeyValue, KeyValueBook, KeyValuePromises
from tornpage.properties.foreign.shapes.language import Promises
from tornpage.properties.foreign.shapes.log import Log, LogBook, LogPromises
from tornpage.properties.foreign.shapes.messages import MessageBook, MessagePromises
from tornpage.properties.foreign.shapes.queue import Queue, QueueBook, QueuePromises
from tornpage.properties.foreign.shapes.shape import Run

__all__ = ["MESSAGES", "SHAPES", "ShapeEntry", "run_of"]

MESSAGES = "messages"
"""The shape of a store that names none."""
_LIARS = "tornpage.properties.explore.foreign.canary"


@dataclass(frozen=True, slots=True)
class ShapeEntry:
    """Name the promises of a shape, its book, its canary, and the verb that writes.

    `overlapping` is the canary for concurrent callers, with a program that shows the broken promise.
    """

    promises: type[Promises]
    run: Callable[[Any], Run]
    canary: str
    write: str = "put"
    overlapping: tuple[str, tuple[Operation, ...]] = ("", ())


def _overlapping(liar: str, call: Call, *after: Operation, before: tuple[Operation, ...] = ()) -> Any:
    """Return a liar with a program of two overlapping calls."""
    return f"{_LIARS}:{liar}", (*before, Call("together", parts=(call, call)), *after)


_PUT, _WRITE = Call("put", "a", size_bytes=8), Call("write", "a", size_bytes=8)
_KILL = Crash(kill=True)

SHAPES: Mapping[str, ShapeEntry] = MappingProxyType(
    {
        MESSAGES: ShapeEntry(MessagePromises, MessageBook, f"{_LIARS}:open_store"),
        "key-value": ShapeEntry(
            KeyValuePromises,
            lambda promises: KeyValueBook(KeyValue(promises)),
            f"{_LIARS}:open_key_value",
            overlapping=_overlapping("OverlappingPuts", _PUT, Call("get", "a"), _KILL),
        ),
        "queue": ShapeEntry(
            QueuePromises,
            lambda promises: QueueBook(Queue(promises)),
            f"{_LIARS}:open_queue",
            overlapping=_overlapping("open_takes", Call("take", "a"), before=(_PUT, _PUT)),
        ),
        "log": ShapeEntry(
            LogPromises,
            lambda promises: LogBook(Log(promises)),
            f"{_LIARS}:open_log",
            "append",
            overlapping=_overlapping("OverlappingAppends", Call("append", size_bytes=8), _KILL),
        ),
        "file": ShapeEntry(
            FilePromises,
            lambda promises: FileBook(WholeFile(promises)),
            f"{_LIARS}:open_file",
            "write",
            overlapping=_overlapping("OverlappingWrites", _WRITE, Call("read", "a"), _KILL),
        ),
    }
)


def run_of(shape: str, promises: Promises) -> Run:
    """Return what follows a run of a store of a shape."""
    return SHAPES[shape].run(promises)
