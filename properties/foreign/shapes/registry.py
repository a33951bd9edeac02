"""List the shapes by the names that stores give in their handshakes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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
    """Name the promises of a shape, its book, its canary, and the verb that writes."""

    promises: type[Promises]
    run: Callable[[Any], Run]
    canary: str
    write: str = "put"


SHAPES: Mapping[str, ShapeEntry] = MappingProxyType(
    {
        MESSAGES: ShapeEntry(MessagePromises, MessageBook, f"{_LIARS}:open_store"),
        "key-value": ShapeEntry(
            KeyValuePromises, lambda promises: KeyValueBook(KeyValue(promises)), f"{_LIARS}:open_key_value"
        ),
        "queue": ShapeEntry(QueuePromises, lambda promises: QueueBook(Queue(promises)), f"{_LIARS}:open_queue"),
        "log": ShapeEntry(LogPromises, lambda promises: LogBook(Log(promises)), f"{_LIARS}:open_log", "append"),
        "file": ShapeEntry(
            FilePromises, lambda promises: FileBook(WholeFile(promises)), f"{_LIARS}:open_file", "write"
        ),
    }
)


def run_of(shape: str, promises: Promises) -> Run:
    """Return what follows a run of a store of a shape."""
    return SHAPES[shape].run(promises)
