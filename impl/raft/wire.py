"""The messages between members as frames (impl/replication/framing.py), and their checks.

    HELLO          version (u16), sender (u16), receiver (u16), size (u16) and text of the group, text of the address
                   at which the sender serves clients
    REFUSAL        a sentence in UTF-8; the receiver of a link then ends it
    PING           nothing; the receiver of a link sends it back
    VOTE           term (i64), last term (i64), end of the log (i64)
    VOTE_ANSWER    term (i64), granted (u8)
    APPEND         term, begin, previous term, commit, round (5 x i64), count of entries (u32), then for each entry its
                   term (i64), the size of its body (u32) and its body
    APPEND_ANSWER  term (i64), matches (u8), end (i64), round (i64)
    LEAD_NOW       term (i64)

A link carries messages in one direction, after a HELLO. Integers are big-endian. The text of a group is its list of
members, so that members with different lists do not talk to each other. A message that no correct member sends is a
`BadFrame`.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from tornpage.impl.raft.messages import (
    AppendAnswer,
    AppendEntries,
    Carried,
    LeadNow,
    Message,
    RequestVote,
    VoteAnswer,
)
from tornpage.impl.replication.framing import BadFrame, Frame, frame_of

__all__ = ["Hello", "RaftKind", "encoded", "frame_bytes_max", "hello_frame", "hello_of", "message_of", "ping_frame"]

VERSION = 1
_HELLO = struct.Struct(">HHHH")
_VOTE = struct.Struct(">qqq")
_VOTE_ANSWER = struct.Struct(">qB")
_APPEND = struct.Struct(">qqqqqI")
_ENTRY = struct.Struct(">qI")
_APPEND_ANSWER = struct.Struct(">qBqq")
_LEAD_NOW = struct.Struct(">q")
_HELLO_BYTES_MAX = 4_096
_ENTRIES_BYTES_MIN = 48
"""What an entry counts of a batch, beside its body (impl/raft/entry_codec.py)."""
_NUMBER_MAX = (1 << 62) - 1
"""No term, place or read of a group reaches it. A larger term would have no successor that fits into a frame."""


class RaftKind(IntEnum):
    """The kinds of frames between members."""

    HELLO = 17
    REFUSAL = 18
    PING = 19
    VOTE = 20
    VOTE_ANSWER = 21
    APPEND = 22
    APPEND_ANSWER = 23
    LEAD_NOW = 24


class Hello(NamedTuple):
    """The first frame of a link.

    `group` is the list of all members, `clients` the address at which the sender serves clients.
    """

    sender: int
    receiver: int
    group: str
    clients: str


def frame_bytes_max(batch_bytes_max: int, body_bytes_max: int) -> int:
    """Return the size of the longest body of a frame.

    An entry on a link takes fewer bytes beside its body than it counts of a batch.
    """
    assert _ENTRY.size < _ENTRIES_BYTES_MIN
    return max(_HELLO_BYTES_MAX, _APPEND.size + batch_bytes_max + _ENTRY.size + body_bytes_max)


def hello_frame(hello: Hello) -> bytes:
    """Return the first frame of a link."""
    group = hello.group.encode()
    head = _HELLO.pack(VERSION, hello.sender, hello.receiver, len(group))
    return frame_of(RaftKind.HELLO, head, group, hello.clients.encode())


def ping_frame() -> bytes:
    """Return a frame without a message."""
    return frame_of(RaftKind.PING)


def hello_of(body: bytes) -> Hello:
    """Read the first frame of a link. Raises BadFrame."""
    if not _HELLO.size <= len(body) <= _HELLO_BYTES_MAX:
        raise BadFrame(f"a greeting has {len(body)} bytes")
    version, sender, receiver, group_bytes = _HELLO.unpack_from(body)
    if version != VERSION:
        raise BadFrame(f"the peer has version {version} of the protocol, this member has {VERSION}")
    text = body[_HELLO.size :]
    try:
        return Hello(sender, receiver, text[:group_bytes].decode(), text[group_bytes:].decode())
    except UnicodeDecodeError as error:
        raise BadFrame("a greeting has a text that is not UTF-8") from error


def encoded(message: Message) -> bytes:
    """Return a message as a frame."""
    match message:
        case RequestVote(term, last_term, end):
            return frame_of(RaftKind.VOTE, _VOTE.pack(term, last_term, end))
        case VoteAnswer(term, granted):
            return frame_of(RaftKind.VOTE_ANSWER, _VOTE_ANSWER.pack(term, granted))
        case AppendEntries(term, begin, previous, entries, commit, round_):
            parts = [_APPEND.pack(term, begin, previous, commit, round_, len(entries))]
            for entry in entries:
                parts += (_ENTRY.pack(entry.term, len(entry.body)), entry.body)
            return frame_of(RaftKind.APPEND, b"".join(parts))
        case AppendAnswer(term, matches, end, round_):
            return frame_of(RaftKind.APPEND_ANSWER, _APPEND_ANSWER.pack(term, matches, end, round_))
        case LeadNow(term):
            return frame_of(RaftKind.LEAD_NOW, _LEAD_NOW.pack(term))


def message_of(frame: Frame) -> Message:
    """Read a message. Raises BadFrame."""
    body = frame.body
    try:
        match frame.kind:
            case RaftKind.VOTE:
                return _checked(RequestVote(*_VOTE.unpack(body)))
            case RaftKind.VOTE_ANSWER:
                term, granted = _VOTE_ANSWER.unpack(body)
                return _checked(VoteAnswer(term, _flag(granted)))
            case RaftKind.APPEND:
                return _append_of(body)
            case RaftKind.APPEND_ANSWER:
                term, matches, end, round_ = _APPEND_ANSWER.unpack(body)
                return _checked(AppendAnswer(term, _flag(matches), end, round_))
            case RaftKind.LEAD_NOW:
                return _checked(LeadNow(*_LEAD_NOW.unpack(body)))
    except struct.error as error:
        raise BadFrame(f"a frame of kind {frame.kind.name} has {len(body)} bytes") from error
    raise BadFrame(f"a frame of kind {frame.kind.name} may not come here")


def _flag(value: int) -> bool:
    if value > 1:
        raise BadFrame(f"a message has {value} where 0 or 1 belongs")
    return bool(value)


def _checked(message: Message) -> Message:
    """Return a message whose numbers a group can have."""
    numbers = [value for value in message if isinstance(value, int)]
    if min(numbers) < 0:
        raise BadFrame(f"a message has a negative number: {message}")
    if max(numbers) > _NUMBER_MAX:
        raise BadFrame(f"a message has the number {max(numbers)}, which no group reaches")
    return message


def _append_of(body: bytes) -> Message:
    term, begin, previous, commit, round_, count = _APPEND.unpack_from(body)
    entries: list[Carried] = []
    position, last = _APPEND.size, previous
    for _ in range(count):
        entry_term, size_bytes = _ENTRY.unpack_from(body, position)
        position += _ENTRY.size
        if position + size_bytes > len(body):
            raise BadFrame("an entry is longer than its frame")
        if not last <= entry_term <= term:
            raise BadFrame(f"an entry of term {entry_term} is after one of term {last}, in a message of term {term}")
        entries.append(Carried(entry_term, body[position : position + size_bytes]))
        position, last = position + size_bytes, entry_term
    if position != len(body):
        raise BadFrame(f"a frame has {len(body) - position} bytes after its entries")
    if previous > term or (begin == 0 and previous):
        raise BadFrame(f"the entry before {begin} is of term {previous}, in a message of term {term}")
    return _checked(AppendEntries(term, begin, previous, tuple(entries), commit, round_))
