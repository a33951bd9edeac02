"""Connections to a member that no correct member makes, and wrong answers on its links.

Each such connection has to end, with a finding: at once if its bytes are wrong, after `silence_max` without bytes or
within a frame, however slowly its bytes arrive. The member has to stay as it is. A message with right bytes and
impossible values is refused.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tornpage.model.raft.operations import Answer, Greeting
from tornpage.model.raft.state import Entry
from tornpage.properties.cluster.network import LinkEnd
from tornpage.properties.raft.frames import frame

__all__ = ["ANSWERS", "BY_ROLE", "KNOCKS", "Caller", "Expected", "Visit"]

_HELLO, _REFUSAL, _PING, _VOTE, _APPEND, _APPEND_ANSWER = 17, 18, 19, 20, 22, 23
_LARGE = 1 << 30
_NEVER_REACHED = 1 << 20
"""So many entries more than a leader has now. It may append a few before it reads the frame."""
_LAST_TERM = (1 << 63) - 1
_TERM = 1_000_000


class Caller(NamedTuple):
    """The called member, the member whose host the connection comes from, and the group.

    `clients` is the address at which that other member serves clients.
    `log`, `commit`, `term` and `leader` are those of the called member. `frame_bytes_max` and `data_file_bytes` are
    its limits.
    """

    me: int
    other: int
    members: int
    group: str
    clients: str
    log: Sequence[Entry] = ()
    commit: int = 0
    term: int = 0
    leader: int | None = None
    frame_bytes_max: int = 0
    data_file_bytes: int = 0


class Expected(NamedTuple):
    """What has to become of a connection.

    `when` is "at once" or "silence". `refused` is whether the member has to send a REFUSAL. `sends` is whether the
    connection comes from the host of a member.
    """

    when: str
    refused: bool = False


class Visit(NamedTuple):
    """One connection: its end, what has to become of it, and when it was made.

    `role` is the role and the term of the called member then, if they decide about it. `fed_ms` has the times
    at which a slow connection has sent another byte.
    """

    greeting: Greeting
    end: LinkEnd
    expected: Expected
    since_ms: int
    fed_ms: list[int]
    role: tuple[str, int] | None = None


def _hello(
    caller: Caller, *, sender: int | None = None, receiver: int | None = None, group: str | None = None
) -> bytes:
    """Return a greeting.

    One that a member has to believe names the address of clients that the caller really has, because a member shows it.
    """
    text = (caller.group if group is None else group).encode()
    is_believed = sender is None and receiver is None and group is None
    sender = caller.other if sender is None else sender
    head = struct.pack(">HHHH", 1, sender, caller.me if receiver is None else receiver, len(text))
    return frame(_HELLO, head + text + (caller.clients.encode() if is_believed else b"10.0.0.9:1"))


def _append(term: int, begin: int, previous: int, count: int, rest: bytes) -> bytes:
    return frame(_APPEND, struct.pack(">qqqqqI", term, begin, previous, 0, 0, count) + rest)


def _entry(term: int, body: bytes, *, size: int | None = None) -> bytes:
    return struct.pack(">qI", term, len(body) if size is None else size) + body


_AT_ONCE, _REFUSED, _SILENCE = Expected("at once"), Expected("at once", refused=True), Expected("silence")


def _entry_for_no_file(caller: Caller) -> bytes:
    """Return a message with an entry that fits into no data file.

    It is empty if no frame can carry it.
    """
    body = bytes(caller.data_file_bytes - 55)
    message = _append(caller.term + 1, 0, 0, 1, _entry(1, body))
    return _hello(caller) + message if len(message) - 16 <= caller.frame_bytes_max else b""


def _of_leader(caller: Caller, message: bytes) -> bytes:
    """Return a message that only a leader has to refuse, else nothing."""
    return _hello(caller) + message if caller.leader == caller.me else b""


def _second_leader(caller: Caller) -> bytes:
    """Return entries of a second leader of the term, empty if none is known."""
    message = _append(caller.term, 0, 0, 0, b"")
    return _hello(caller) + message if caller.leader not in (None, caller.other) else b""


def _committed_entry(caller: Caller) -> bytes:
    """Return an entry that contradicts a committed one, empty without one."""
    message = _append(caller.term + 1, 0, 0, 1, _entry(caller.term + 1, b"x"))
    return _hello(caller) + message if caller.commit and caller.log[0].term <= caller.term else b""


KNOCKS: Mapping[Greeting, tuple[Expected, Callable[[Caller], bytes]]] = {
    "silent": (_SILENCE, lambda caller: b""),
    "half": (_SILENCE, lambda caller: _hello(caller)[:40]),
    "slow": (_SILENCE, lambda caller: frame(_HELLO, size=caller.frame_bytes_max)),
    "no frame": (_AT_ONCE, lambda caller: b"GET / HTTP/1.1\r\n\r\n"),
    "unknown kind": (_AT_ONCE, lambda caller: frame(99)),
    "long": (_AT_ONCE, lambda caller: frame(_HELLO, b"", size=_LARGE)),
    "vote first": (_AT_ONCE, lambda caller: frame(_VOTE, struct.pack(">qqq", _TERM, 0, 0))),
    "other group": (_REFUSED, lambda caller: _hello(caller, group="10.0.0.1:9000")),
    "other receiver": (_REFUSED, lambda caller: _hello(caller, receiver=caller.me + 1)),
    "itself": (_REFUSED, lambda caller: _hello(caller, sender=caller.me)),
    "no member": (_REFUSED, lambda caller: _hello(caller, sender=caller.members)),
    "other host": (_REFUSED, lambda caller: _hello(caller, sender=_third(caller))),
    "stranger": (_AT_ONCE, lambda caller: _hello(caller, sender=caller.other)),
    "twice": (_AT_ONCE, lambda caller: _hello(caller) * 2),
    "ping with bytes": (_AT_ONCE, lambda caller: _hello(caller) + frame(_PING, b"x")),
    "refusal": (_AT_ONCE, lambda caller: _hello(caller) + frame(_REFUSAL, b"no")),
    "short vote": (_AT_ONCE, lambda caller: _hello(caller) + frame(_VOTE, b"x")),
    "negative": (_AT_ONCE, lambda caller: _hello(caller) + frame(_VOTE, struct.pack(">qqq", _TERM, 0, -1))),
    "flag": (_AT_ONCE, lambda caller: _hello(caller) + frame(_APPEND_ANSWER, struct.pack(">qBqq", _TERM, 2, 0, 0))),
    "long entry": (_AT_ONCE, lambda caller: _hello(caller) + _append(_TERM, 0, 0, 1, _entry(1, b"x", size=2))),
    "short entries": (_AT_ONCE, lambda caller: _hello(caller) + _append(_TERM, 0, 0, 1, _entry(1, b"x") + b"y")),
    "older entry": (
        _AT_ONCE,
        lambda caller: _hello(caller) + _append(_TERM, 0, 0, 2, _entry(2, b"x") + _entry(1, b"y")),
    ),
    "many": (_SILENCE, lambda caller: b""),
    "longest frame": (_SILENCE, lambda caller: frame(_HELLO, size=caller.frame_bytes_max)),
    "too long frame": (_AT_ONCE, lambda caller: frame(_HELLO, size=caller.frame_bytes_max + 1)),
    "last term": (_AT_ONCE, lambda caller: _hello(caller) + frame(_VOTE, struct.pack(">qqq", _LAST_TERM, 0, 0))),
    "own last term": (
        _REFUSED,
        lambda caller: _hello(caller) + frame(_VOTE, struct.pack(">qqq", caller.term + 1, caller.term + 1, 9)),
    ),
    "more entries": (
        _REFUSED,
        lambda caller: _of_leader(
            caller, frame(_APPEND_ANSWER, struct.pack(">qBqq", caller.term, 1, len(caller.log) + _NEVER_REACHED, 0))
        ),
    ),
    "later read": (
        _REFUSED,
        lambda caller: _of_leader(caller, frame(_APPEND_ANSWER, struct.pack(">qBqq", caller.term, 0, 0, 1 << 40))),
    ),
    "second leader": (_REFUSED, _second_leader),
    "entry for no file": (_REFUSED, _entry_for_no_file),
    "committed entry": (_REFUSED, _committed_entry),
}
"""By greeting: what has to become of the connection, and its bytes. Without bytes the greeting is not possible now."""

BY_ROLE = frozenset[Greeting](("more entries", "later read", "second leader", "entry for no file", "committed entry"))
"""Greetings that are impossible for the role and the term of the called member only."""

_SENTENCE_BYTES_MAX = 1_024
ANSWERS: Mapping[Answer, tuple[str, bytes]] = {
    "refusal": ("the member refuses: no", frame(_REFUSAL, b"no")),
    "hello": ("HELLO may not come here", frame(_HELLO, b"x")),
    "vote": ("VOTE may not come here", frame(_VOTE, struct.pack(">qqq", _TERM, 0, 0))),
    "unknown kind": ("no frame has the kind 99", frame(99)),
    "no frame": ("the checksum of a frame", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "checksum": ("the checksum of a frame", frame(_PING, b"x")[:-1] + b"y"),
    "too long": (f"states {_SENTENCE_BYTES_MAX + 1} bytes", frame(_REFUSAL, size=_SENTENCE_BYTES_MAX + 1)),
}
"""By answer: a part of the reason that the member has to give for the end of its link, and the bytes."""


def _third(caller: Caller) -> int:
    """Return a member that is not the one whose host the connection comes from."""
    return next((each for each in range(caller.members) if each not in (caller.me, caller.other)), caller.members)
