"""Define the base classes of stores in Python, and how their methods serve requests.

A method may raise anything. An error for a request that the store promised to serve breaks contract 8.
"""

import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from tornpage.properties.foreign.shapes.shape import encoded

__all__ = ["FileStore", "KeyValueStore", "LogStore", "QueueStore", "answer_of_shape", "answer_together"]


class _Store:
    """Hold what the stores of every shape have.

    The constructor of a store opens or recovers it in a directory.
    """

    shape: ClassVar[str] = ""
    promises: Mapping[str, Any] = {}
    """What the store promises. An empty mapping promises that each write is durable with its answer."""

    def flush(self) -> None:
        """Make everything safe that was written."""

    def close(self) -> None:
        """Close cleanly; no request follows."""


class KeyValueStore(_Store):
    """Extend this to have a key-value store tested."""

    shape: ClassVar[str] = "key-value"

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        raise NotImplementedError

    def delete(self, key: str) -> None:
        """Remove a key; it may be missing."""
        raise NotImplementedError

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None if there is none."""
        raise NotImplementedError

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs of key and value, in any order.

        Not called if `scan` is promised as false.
        """
        raise NotImplementedError

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Set several keys, or remove those with None. Called only if `batch` is promised."""
        raise NotImplementedError


class QueueStore(_Store):
    """Extend this to have a store of queues tested."""

    shape: ClassVar[str] = "queue"

    def put(self, queue: str, body: bytes) -> None:
        """Append a message to a queue."""
        raise NotImplementedError

    def take(self, queue: str) -> tuple[Any, bytes] | None:
        """Return a handle for `acknowledge` and the next message, or None if there is none.

        The handle is a JSON value.
        """
        raise NotImplementedError

    def acknowledge(self, queue: str, handle: Any) -> None:
        """Remove a message that was taken. Not called if `take` is "removes"."""
        raise NotImplementedError

    def delete(self, queue: str) -> None:
        """Remove all messages of a queue. Called only if `delete` is promised."""
        raise NotImplementedError

    def list(self, queue: str) -> Iterable[bytes]:
        """Return the messages of a queue, oldest first.

        Messages that were taken and not removed are included. Not called if `list` is promised as false. The judge then
        takes the messages.
        """
        raise NotImplementedError


class LogStore(_Store):
    """Extend this to have a log tested."""

    shape: ClassVar[str] = "log"

    def append(self, body: bytes) -> int:
        """Append an entry; return its index, one more than that of the entry before."""
        raise NotImplementedError

    def read(self, index: int) -> bytes | None:
        """Return the entry at an index, or None if there is none."""
        raise NotImplementedError

    def bounds(self) -> tuple[int, int] | None:
        """Return the indexes of the first and the last entry, or None for an empty log."""
        raise NotImplementedError

    def truncate_front(self, index: int) -> None:
        """Remove the entries before an index. Called only if `truncate` is promised."""
        raise NotImplementedError

    def truncate_back(self, index: int) -> None:
        """Remove the entries after an index. Called only if `truncate` is promised."""
        raise NotImplementedError


class FileStore(_Store):
    """Extend this to have a library that writes whole files tested."""

    shape: ClassVar[str] = "file"

    def write(self, name: str, content: bytes) -> None:
        """Create a file, or replace its content."""
        raise NotImplementedError

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is none."""
        raise NotImplementedError

    def remove(self, name: str) -> None:
        """Remove a file; it may be missing. Called only if `remove` is promised."""
        raise NotImplementedError


def _list(store: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    return {"bodies": [encoded(body) for body in store.list(request["queue"])]}


def _take(store: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    taken = store.take(request["queue"])
    return {"handle": None, "body": None} if taken is None else {"handle": taken[0], "body": encoded(taken[1])}


def _bounds(store: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    bounds = store.bounds()
    return {"first": None, "last": None} if bounds is None else {"first": bounds[0], "last": bounds[1]}


def _nothing(done: object) -> dict[str, Any]:
    return {}


def _bytes(text: str) -> bytes:
    import base64

    return base64.b64decode(text)


Served = Callable[[Any, Mapping[str, Any]], dict[str, Any]]

_VERBS: dict[str, dict[str, Served]] = {
    "key-value": {
        "put": lambda store, ask: _nothing(store.put(ask["key"], _bytes(ask["value"]))),
        "delete": lambda store, ask: _nothing(store.delete(ask["key"])),
        "get": lambda store, ask: {"value": encoded(store.get(ask["key"]))},
        "scan": lambda store, ask: {"pairs": [[key, encoded(value)] for key, value in store.scan()]},
        "batch": lambda store, ask: _nothing(
            store.batch([(e["key"], None if e["value"] is None else _bytes(e["value"])) for e in ask["changes"]])
        ),
    },
    "queue": {
        "put": lambda store, ask: _nothing(store.put(ask["queue"], _bytes(ask["body"]))),
        "take": _take,
        "acknowledge": lambda store, ask: _nothing(store.acknowledge(ask["queue"], ask["handle"])),
        "delete": lambda store, ask: _nothing(store.delete(ask["queue"])),
        "list": _list,
    },
    "log": {
        "append": lambda store, ask: {"index": store.append(_bytes(ask["body"]))},
        "read": lambda store, ask: {"body": encoded(store.read(ask["index"]))},
        "bounds": _bounds,
        "truncate_front": lambda store, ask: _nothing(store.truncate_front(ask["index"])),
        "truncate_back": lambda store, ask: _nothing(store.truncate_back(ask["index"])),
    },
    "file": {
        "write": lambda store, ask: _nothing(store.write(ask["name"], _bytes(ask["content"]))),
        "read": lambda store, ask: {"content": encoded(store.read(ask["name"]))},
        "remove": lambda store, ask: _nothing(store.remove(ask["name"])),
    },
}


def answer_together(
    shape: str, store: Any, calls: Sequence[Mapping[str, Any]], answer: Callable[[dict[str, Any]], None]
) -> None:
    """Carry out concurrent calls, each in a thread, and give each answer when its call ends.

    Each answer has the number of its call. An error in a call is its answer.
    """
    lock = threading.Lock()

    def carry_out(number: int) -> None:
        try:
            said = answer_of_shape(shape, store, calls[number])
        except Exception as error:
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"}
        with lock:
            answer({"call": number, **said})

    with ThreadPoolExecutor(len(calls)) as callers:
        list(callers.map(carry_out, range(len(calls))))


def answer_of_shape(shape: str, store: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a store of a shape to a request.

    Raises ValueError for an unknown request.
    """
    served = _VERBS.get(shape, {}).get(request["do"])
    if served is None:
        raise ValueError(f"unknown request {request['do']!r}")
    return served(store, request)
