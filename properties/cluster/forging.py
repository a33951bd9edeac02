"""Bytes that no sound peer sends: frames on a link, and greetings of a connection.

Each of them has to end its link: at once, or after `ha_housekeeping_interval` without a byte or within a frame, however
slowly its bytes arrive. The bytes are made without the store's code. Source: the table of frames in
docs/replication/design.md.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tornpage.model.replication.operations import Caller, Forged

__all__ = ["CALLERS", "CALLER_NUMBER", "FORGED", "Greeted", "forged"]

CALLER_NUMBER = 99
"""The number of a connection that is no node."""
_HELLO, _WELCOME, _DATA, _PING, _ACK, _REFUSAL = 1, 2, 3, 4, 5, 6
_FAR = 1 << 40
_GENERATIONS_MAX = 256
_SLOW_BYTES = 8_000
"""Bytes of a frame that never becomes whole: one arrives with each step of a node. The longest greeting has more."""


def _frame(kind: int, body: bytes = b"", *, size: int | None = None, reserved: int = 0, checksum: int = 0) -> bytes:
    """Return a frame. The checksum of the body is changed by `checksum`."""
    head = bytes((kind, reserved, 0, 0)) + struct.pack(">I", len(body) if size is None else size)
    return head + struct.pack(">II", zlib.crc32(head), zlib.crc32(body) ^ checksum) + body


def _numbers(*values: int) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


FORGED: Mapping[Forged, tuple[str, Callable[[int], bytes]]] = {
    "head": ("both", lambda size: _frame(_DATA, size=size)),
    "data": ("master", lambda _: _frame(_DATA, _numbers(0) + b"x")),
    "empty data": ("replica", lambda offset: _frame(_DATA, _numbers(offset))),
    "negative data": ("replica", lambda _: _frame(_DATA, _numbers(-1) + b"x")),
    "data elsewhere": ("replica", lambda _: _frame(_DATA, _numbers(_FAR) + b"x")),
    "hello": ("both", lambda _: _frame(_HELLO, b"x")),
    "welcome": ("both", lambda _: _frame(_WELCOME, struct.pack(">B7xq", 9, 0))),
    "ping": ("master", lambda _: _frame(_PING, _numbers(0))),
    "refusal": ("both", lambda _: _frame(_REFUSAL, b"no")),
    "ack": ("replica", lambda _: _frame(_ACK, _numbers(0, 0))),
    "ack too far": ("master", lambda _: _frame(_ACK, _numbers(_FAR, 0))),
    "ack more durable": ("master", lambda _: _frame(_ACK, _numbers(0, 5))),
    "negative ack": ("master", lambda _: _frame(_ACK, _numbers(0, -1))),
    "short ack": ("master", lambda _: _frame(_ACK, _numbers(0))),
    "unknown kind": ("both", lambda _: _frame(99)),
    "reserved": ("both", lambda _: _frame(_PING, _numbers(0), reserved=1)),
    "checksum": ("both", lambda _: _frame(_ACK, _numbers(0, 0), checksum=1)),
}
"""By name: the receiver that has to refuse the frame in every state of a link, and its bytes."""


def forged(name: Forged, number: int) -> bytes:
    """Return a forged frame. `number` is the stated size of a head, or the offset of data."""
    return FORGED[name][1](number)


class Greeted(NamedTuple):
    """What is known of the called node: its identity, and the size of its log files."""

    node: bytes
    file_bytes: int


def _hello(
    greeted: Greeted,
    *,
    version: int = 1,
    flag: int = 1,
    node: bytes = b"c" * 16,
    file_bytes: int | None = None,
    log: tuple[int, int, int] = (0, 100, 100),
    generations: tuple[bytes, ...] = (b"g" * 16,),
    count: int | None = None,
) -> bytes:
    """Return a greeting. `log` is its begin, its end and its flushed offset."""
    head = struct.pack(">HBxI", version, flag, len(generations) if count is None else count) + node
    numbers = _numbers(greeted.file_bytes if file_bytes is None else file_bytes, *log)
    rows = b"".join(_numbers(number + 1, 0) + token for number, token in enumerate(generations))
    return _frame(_HELLO, head + numbers + rows)


CALLERS: Mapping[Caller, tuple[str, Callable[[Greeted], bytes]]] = {
    "silent": ("silence", lambda _: b""),
    "half": ("silence", lambda greeted: _hello(greeted)[:40]),
    "slow": ("silence", lambda _: _frame(_HELLO, size=_SLOW_BYTES)),
    "no frame": ("at once", lambda _: b"GET / HTTP/1.1\r\n\r\n"),
    "ack first": ("at once", lambda _: _frame(_ACK, _numbers(0, 0))),
    "data first": ("at once", lambda _: _frame(_DATA, _numbers(0) + b"x")),
    "ping first": ("at once", lambda _: _frame(_PING, _numbers(0))),
    "version": ("at once", lambda greeted: _hello(greeted, version=2)),
    "file size": ("refused", lambda greeted: _hello(greeted, file_bytes=greeted.file_bytes + 1)),
    "same node": ("refused", lambda greeted: _hello(greeted, node=greeted.node)),
    "flag": ("at once", lambda greeted: _hello(greeted, flag=2)),
    "begin past end": ("at once", lambda greeted: _hello(greeted, log=(101, 100, 100))),
    "flushed past end": ("at once", lambda greeted: _hello(greeted, log=(0, 100, 101))),
    "missing generation": ("at once", lambda greeted: _hello(greeted, count=2)),
    "many generations": (
        "at once",
        lambda greeted: _hello(greeted, generations=(b"g" * 16,) * (_GENERATIONS_MAX + 1)),
    ),
    "strange generation": ("refused", _hello),
}
"""By name: what has to become of the connection, and its bytes. A refused one gets a sentence."""
