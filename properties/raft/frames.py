"""Make the frames between members without the store's code.

Source: the tables at the heads of impl/replication/framing.py and impl/raft/wire.py.
"""

import struct
import zlib

from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, LeadNow, Message, RequestVote, VoteAnswer

__all__ = ["APPEND", "APPEND_ANSWER", "HELLO", "PING", "REFUSAL", "VOTE", "frame", "frame_of_message", "hello"]

HELLO, REFUSAL, PING, VOTE, _VOTE_ANSWER, APPEND, APPEND_ANSWER, _LEAD_NOW = range(17, 25)


def frame(kind: int, body: bytes = b"", *, size: int | None = None) -> bytes:
    """Return a frame. It states `size` bytes of its body, if that is given."""
    checked = struct.pack(">B3xI", kind, len(body) if size is None else size)
    return checked + struct.pack(">II", zlib.crc32(checked), zlib.crc32(body)) + body


def hello(sender: int, receiver: int, group: str, clients: str) -> bytes:
    """Return the first frame of a link."""
    text = group.encode()
    return frame(HELLO, struct.pack(">HHHH", 1, sender, receiver, len(text)) + text + clients.encode())


def frame_of_message(message: Message) -> bytes:
    """Return the frame of a message."""
    match message:
        case RequestVote():
            return frame(VOTE, struct.pack(">qqq", *message))
        case VoteAnswer():
            return frame(_VOTE_ANSWER, struct.pack(">qB", *message))
        case AppendEntries(term, begin, previous, entries, commit, number):
            head = struct.pack(">qqqqqI", term, begin, previous, commit, number, len(entries))
            rows = (struct.pack(">qI", each.term, len(each.body)) + each.body for each in entries)
            return frame(APPEND, head + b"".join(rows))
        case AppendAnswer():
            return frame(APPEND_ANSWER, struct.pack(">qBqq", *message))
        case LeadNow():
            return frame(_LEAD_NOW, struct.pack(">q", *message))
