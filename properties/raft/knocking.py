"""Connections to a member that no correct member makes, and their judge.

Each such connection has to end, with a finding: at once if its bytes are wrong, after `silence_max` without bytes or
within a frame. The member has to stay as it is.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tornpage.model.raft.operations import Greeting
from tornpage.properties.cluster.network import LinkEnd

__all__ = ["KNOCKS", "Caller", "Expected", "Visit"]

_HELLO, _REFUSAL, _PING, _VOTE, _APPEND, _APPEND_ANSWER = 17, 18, 19, 20, 22, 23
_LARGE = 1 << 30
_TERM = 1_000_000


class Caller(NamedTuple):
    """The called member, the member whose host the connection comes from, and the group."""

    me: int
    other: int
    members: int
    group: str


class Expected(NamedTuple):
    """What has to become of a connection.

    `when` is "at once" or "silence". `refused` is whether the member has to send a REFUSAL. `sends` is whether the
    connection comes from the host of a member.
    """

    when: str
    refused: bool = False


class Visit(NamedTuple):
    """One connection: its end, what has to become of it, and when it was made."""

    greeting: Greeting
    end: LinkEnd
    expected: Expected
    since_ms: int


def _frame(kind: int, body: bytes = b"", *, size: int | None = None) -> bytes:
    """Return a frame, without the store's code.

    Source: impl/replication/framing.py, the table of frames.
    """
    checked = struct.pack(">B3xI", kind, len(body) if size is None else size)
    return checked + struct.pack(">II", zlib.crc32(checked), zlib.crc32(body)) + body


def _hello(
    caller: Caller, *, sender: int | None = None, receiver: int | None = None, group: str | None = None
) -> bytes:
    text = (caller.group if group is None else group).encode()
    sender = caller.other if sender is None else sender
    head = struct.pack(">HHHH", 1, sender, caller.me if receiver is None else receiver, len(text))
    return _frame(_HELLO, head + text + b"10.0.0.9:1")


def _append(term: int, begin: int, previous: int, count: int, rest: bytes) -> bytes:
    return _frame(_APPEND, struct.pack(">qqqqqI", term, begin, previous, 0, 0, count) + rest)


def _entry(term: int, body: bytes, *, size: int | None = None) -> bytes:
    return struct.pack(">qI", term, len(body) if size is None else size) + body


_AT_ONCE, _REFUSED, _SILENCE = Expected("at once"), Expected("at once", refused=True), Expected("silence")

KNOCKS: Mapping[Greeting, tuple[Expected, Callable[[Caller], bytes]]] = {
    "silent": (_SILENCE, lambda caller: b""),
    "half": (_SILENCE, lambda caller: _hello(caller)[:40]),
    "no frame": (_AT_ONCE, lambda caller: b"GET / HTTP/1.1\r\n\r\n"),
    "unknown kind": (_AT_ONCE, lambda caller: _frame(99)),
    "long": (_AT_ONCE, lambda caller: _frame(_HELLO, b"", size=_LARGE)),
    "vote first": (_AT_ONCE, lambda caller: _frame(_VOTE, struct.pack(">qqq", _TERM, 0, 0))),
    "other group": (_REFUSED, lambda caller: _hello(caller, group="10.0.0.1:9000")),
    "other receiver": (_REFUSED, lambda caller: _hello(caller, receiver=caller.me + 1)),
    "itself": (_REFUSED, lambda caller: _hello(caller, sender=caller.me)),
    "no member": (_REFUSED, lambda caller: _hello(caller, sender=caller.members)),
    "other host": (_REFUSED, lambda caller: _hello(caller, sender=_third(caller))),
    "stranger": (_AT_ONCE, _hello),
    "twice": (_AT_ONCE, lambda caller: _hello(caller) * 2),
    "ping with bytes": (_AT_ONCE, lambda caller: _hello(caller) + _frame(_PING, b"x")),
    "refusal": (_AT_ONCE, lambda caller: _hello(caller) + _frame(_REFUSAL, b"no")),
    "short vote": (_AT_ONCE, lambda caller: _hello(caller) + _frame(_VOTE, b"x")),
    "negative": (_AT_ONCE, lambda caller: _hello(caller) + _frame(_VOTE, struct.pack(">qqq", _TERM, 0, -1))),
    "flag": (_AT_ONCE, lambda caller: _hello(caller) + _frame(_APPEND_ANSWER, struct.pack(">qBqq", _TERM, 2, 0, 0))),
    "long entry": (_AT_ONCE, lambda caller: _hello(caller) + _append(_TERM, 0, 0, 1, _entry(1, b"x", size=2))),
    "short entries": (_AT_ONCE, lambda caller: _hello(caller) + _append(_TERM, 0, 0, 1, _entry(1, b"x") + b"y")),
    "older entry": (
        _AT_ONCE,
        lambda caller: _hello(caller) + _append(_TERM, 0, 0, 2, _entry(2, b"x") + _entry(1, b"y")),
    ),
    "many": (_SILENCE, lambda caller: b""),
}
"""By greeting: what has to become of the connection, and its bytes."""


def _third(caller: Caller) -> int:
    """Return a member that is not the one whose host the connection comes from."""
    return next((each for each in range(caller.members) if each not in (caller.me, caller.other)), caller.members)
