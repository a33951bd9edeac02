"""Define the protocol of a store under test and its promises.

Version 1; docs/test-your-store.md is the user documentation.

1. A store states in its handshake what it promises, and only that is judged.
2. `put` answers with the offset of the message, a number by which `get` finds it, and with its number in its queue: 0
   for the first message of a queue, then 1, 2, … A store may return any number where it promises none.
3. `durable` and `kill` name the answer after which a message is safe from a power loss and from a process kill: the
   answer to its put, to a later flush, to a close, or to nothing.
4. A process that answers with `open` true stays after a close. The request `open` names the next directory, and its
   answer is a handshake.
5. All messages are in one order, that of their puts. A crash leaves a prefix of this order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Protocol

from tornpage.properties.foreign.reference_store import SAFE_AFTER, ReferenceStore, SafeAfter

__all__ = ["VERSION", "BadHandshake", "Promises", "Target", "TargetUnusable", "printable", "read_handshake"]

VERSION = 1


class Target(Protocol):
    """Implement this to have a store tested. It may raise anything.

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


@dataclass(frozen=True, slots=True)
class Promises:
    """List the promises of a store. `body_bytes_max` is the longest body that it accepts."""

    durable: SafeAfter = "put"
    kill: SafeAfter = "put"
    recovered: bool = False
    offsets: bool = True
    queues: bool = True
    index: bool = False
    body_bytes_max: int = 4096

    def reference(self) -> ReferenceStore:
        """Return the reference of a store with these promises."""
        return ReferenceStore(
            durable=self.durable, kill=self.kill, recovered=self.recovered, body_bytes_max=self.body_bytes_max
        )


class TargetUnusable(Exception):
    """Raise this if there is no store to test, or not in this way. The message is one line."""


class BadHandshake(TargetUnusable):
    """Raise this if a handshake cannot be used; the message says what is wrong."""


_KEYS = ("tornpage", "name", "promises", "open")
_USUAL = Promises()
_FIELDS = tuple(field.name for field in fields(Promises))


def read_handshake(answer: Mapping[str, Any]) -> tuple[str, Promises]:
    """Return the name of a store and its promises. Raises BadHandshake, which names the error."""
    version = answer.get("tornpage")
    if version is None:
        raise BadHandshake(f'the handshake has no "tornpage": answer hello with {{"tornpage": {VERSION}, …}}')
    if version != VERSION or isinstance(version, bool):
        raise BadHandshake(f"the store speaks version {version!r} of the protocol, and this tornpage speaks {VERSION}")
    for key in answer:
        if key not in _KEYS:
            raise BadHandshake(f"the handshake has an unknown field {key!r}{_nearest(key, _KEYS)}")
    if not isinstance(answer.get("open", False), bool):
        raise BadHandshake(f"open is {answer['open']!r}: true or false")
    promises = answer.get("promises", {})
    if not isinstance(promises, Mapping):
        raise BadHandshake(f"promises is {promises!r}, and has to be an object")
    for key, value in promises.items():
        if key not in _FIELDS:
            raise BadHandshake(f"the store promises {key!r}, which is not a known promise{_nearest(key, _FIELDS)}")
        _check(key, value)
    durable = promises.get("durable", _USUAL.durable)
    found = {"durable": durable, "kill": durable, **promises}
    if SAFE_AFTER.index(found["kill"]) > SAFE_AFTER.index(durable):
        raise BadHandshake(
            f"kill is {found['kill']!r} and durable {durable!r}: what survives a power loss survives a kill"
        )
    if not (found.get("offsets", True) or found.get("queues", True)):
        raise BadHandshake("offsets and queues are both false: then nothing can be read back")
    return printable(answer.get("name") or "the store"), Promises(**found)


def printable(value: object) -> str:
    """Return a store's text so that it can be written anywhere.

    JSON may contain halves of surrogate pairs.
    """
    return str(value).encode("utf-8", "replace").decode()


def _check(key: str, value: Any) -> None:
    if key in ("durable", "kill"):
        if value not in SAFE_AFTER:
            raise BadHandshake(f"{key} is {value!r}: {', '.join(SAFE_AFTER)}")
    elif key == "body_bytes_max":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BadHandshake(f"body_bytes_max is {value!r}, and has to be a number of bytes")
    elif not isinstance(value, bool):
        raise BadHandshake(f"{key} is {value!r}: true or false")


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(str(word), known, 1)
    return f"; did you mean {near[0]!r}?" if near else f": {', '.join(known)}"
