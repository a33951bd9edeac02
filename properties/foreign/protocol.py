"""Define the protocol of a store under test and its promises.

Version 1; docs/test-your-store.md is the user documentation.

1. A store states in its handshake its shape and what it promises, and only that is judged. The verbs of each shape and
   the language of promises are in shapes/. The rest of this list is about message stores.
2. `put` answers with the offset of the message, a number by which `get` finds it, and with its number in its queue: 0
   for the first message of a queue, then 1, 2, … A store may return any number where it promises none.
3. `durable` and `kill` name the answer after which a message is safe from a power loss and from a process kill: the
   answer to its put, to a later flush, to a close, or to nothing.
4. A process that answers with `open` true stays after a close. The request `open` names the next directory, and its
   answer is a handshake.
5. All messages are in one order, that of their puts. A crash leaves a prefix of this order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tornpage.properties.foreign.shapes.language import BadPromise, Promises, nearest, promises_of
from tornpage.properties.foreign.shapes.registry import MESSAGES, SHAPES

__all__ = ["VERSION", "BadHandshake", "Handshake", "Target", "TargetUnusable", "printable", "read_handshake"]

VERSION = 1


class Target(Protocol):
    """Implement this to have a message store tested. It may raise anything.

    An error for a request that the store promised to serve breaks contract 8.
    """

    @property
    def promises(self) -> Mapping[str, Any]:
        """Return the promises: the fields of `Promises` that differ from their defaults."""

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        """Store a message; return its offset and its number in its queue."""

    def get(self, offset: int) -> bytes | None:
        """Return the body of the message at an offset, or None if there is none."""

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Return the body of message `number` of a queue, or None if there is none."""

    def find(self, topic: str, key: str) -> Sequence[bytes]:
        """Return the bodies of all messages of a topic with a key, oldest first."""

    def flush(self) -> None:
        """Make everything that was put safe."""

    def close(self) -> None:
        """Close cleanly; no request follows."""


class TargetUnusable(Exception):
    """Raise this if there is no store to test, or not in this way. The message is one line."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """Hold the name of a store, its shape and its promises."""

    name: str
    shape: str
    promises: Promises


class BadHandshake(TargetUnusable):
    """Raise this if a handshake cannot be used; the message says what is wrong."""


_KEYS = ("tornpage", "name", "shape", "promises", "open", "ahead")
_FLAGS = ("open", "ahead")


def read_handshake(answer: Mapping[str, Any]) -> Handshake:
    """Return what a store says about itself. Raises BadHandshake, which names the error."""
    version = answer.get("tornpage")
    if version is None:
        raise BadHandshake(f'the handshake has no "tornpage": answer hello with {{"tornpage": {VERSION}, …}}')
    if version != VERSION or isinstance(version, bool):
        raise BadHandshake(f"the store speaks version {version!r} of the protocol, and this tornpage speaks {VERSION}")
    for key in answer:
        if key not in _KEYS:
            raise BadHandshake(f"the handshake has an unknown field {key!r}{nearest(key, _KEYS)}")
    for flag in _FLAGS:
        if not isinstance(answer.get(flag, False), bool):
            raise BadHandshake(f"{flag} is {answer[flag]!r}: true or false")
    shape, promises = answer.get("shape", MESSAGES), answer.get("promises", {})
    if shape not in SHAPES:
        raise BadHandshake(f"the shape is {shape!r}{nearest(shape, tuple(SHAPES))}")
    if not isinstance(promises, Mapping):
        raise BadHandshake(f"promises is {promises!r}, and has to be an object")
    try:
        read = promises_of(SHAPES[shape].promises, promises)
    except BadPromise as wrong:
        raise BadHandshake(str(wrong)) from None
    return Handshake(printable(answer.get("name") or "the store"), shape, read)


def printable(value: object) -> str:
    """Return a store's text so that it can be written anywhere.

    JSON may contain halves of surrogate pairs.
    """
    return str(value).encode("utf-8", "replace").decode()
