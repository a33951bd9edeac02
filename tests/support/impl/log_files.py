"""Log files for tests of the kernels: consecutive records of many kinds, whole or damaged."""

import struct
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.impl.records import record_of
from tornpage.impl.message import codec
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC
from tornpage.impl.message.message import Message

__all__ = ["LogFile", "damaged", "log_file", "log_files", "messages"]

BEYOND = 1 << 33
"""Physical offsets of these files are at least this: more than 32 bits."""


class LogFile(NamedTuple):
    """Content of a file of `file_bytes` whose physical offset is a multiple of that."""

    data: bytes
    base_offset: int
    file_bytes: int


_NUMBERS = tuple(map(bytes.fromhex, ("00", "80", "ffffffff", "7fffffff", "80000000", "0000005c", "7fff", "8000")))
_TOPICS = st.sampled_from(("TopicTest", "T", "中文主题", "😀", "t" * 127, SCHEDULE_TOPIC, "%RETRY%g"))
_WORDS = st.sampled_from(
    ("", "k", "TagA", "TAG-NEG", "polygenelubricants", "a b", " a  b ", "中文", "😀", "3", "q1,q2", "5,6")
)
_WORDS_OF_ANY_KIND = _WORDS | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
_NAMES = st.sampled_from(
    (
        "KEYS",
        "TAGS",
        "UNIQ_KEY",
        "DELAY",
        "WAIT",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "KEY",
        "TAGSX",
        "",
    )
)
_SEGMENTS = st.tuples(_NAMES, st.sampled_from(("\x01", "\x01\x01", "")), _WORDS_OF_ANY_KIND).map("".join)
_PROPERTIES = st.tuples(st.lists(_SEGMENTS, max_size=6), st.sampled_from(("", "\x02"))).map(
    lambda drawn: "\x02".join(drawn[0]) + drawn[1]
)


def messages() -> st.SearchStrategy[Message]:
    """Return messages that may stand in a log.

    Their queue offset is in `prepared_transaction_offset`.
    """
    return st.builds(
        Message,
        topic=_TOPICS,
        body=st.binary(max_size=60),
        queue_id=st.sampled_from((0, 1, 2, (1 << 31) - 1)),
        properties=_PROPERTIES,
        sys_flag=st.sampled_from((0, 4, 8, 12)),
        born_host=st.sampled_from((("10.0.0.1", 1), ("2001:db8::1", 2))),
        store_host=st.sampled_from((("10.0.0.1", 1), ("2001:db8::1", 2))),
        prepared_transaction_offset=st.sampled_from((0, 1, 2, 3, 4, 7, (1 << 62), -1)),
    )


def log_file(kinds: list[tuple[Message, bool]], *, room: int = 64, ends: bool = False) -> LogFile:
    """Return a file of these messages, each with or without a trailer.

    `ends` adds a blank after the last.
    """
    room += codec.BLANK_BYTES
    file_bytes = sum(len(record_of(message, trailer=trailer)) for message, trailer in kinds) + room
    base_offset = -(-BEYOND // file_bytes) * file_bytes
    data = bytearray()
    for number, (message, trailer) in enumerate(kinds):
        data += record_of(
            message,
            trailer=trailer,
            queue_offset=message.prepared_transaction_offset,
            physical_offset=base_offset + len(data),
            store_timestamp=1_700_000_000_000 + number * 700,
        )
    data += codec.encode_blank(room) if ends else bytes(codec.BLANK_BYTES)
    return LogFile(bytes(data) + bytes(file_bytes - len(data)), base_offset, file_bytes)


def log_files() -> st.SearchStrategy[LogFile]:
    """Return whole files."""
    kinds = st.lists(st.tuples(messages(), st.booleans()), max_size=8)
    return st.builds(log_file, kinds, room=st.sampled_from((0, 1, 64, 200)), ends=st.booleans())


@st.composite
def damaged(draw: st.DrawFn) -> LogFile:
    """Return a damaged file.

    It has a flipped bit, a replaced field, missing bytes, or random content.
    """
    file = draw(log_files())
    data = bytearray(file.data)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(data) - 1)) if data else 0
        match draw(st.sampled_from(("flip", "field", "size", "cut", "junk"))):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "field":
                field = draw(st.sampled_from(_NUMBERS))
                data[at : at + len(field)] = field
            case "size" if len(data) > 8:
                struct.pack_into(">i", data, 0, draw(st.integers(-3, len(data) + 3)))
            case "cut":
                del data[at:]
            case _:
                data[at:] = draw(st.binary(max_size=120))
    return file._replace(data=bytes(data[: file.file_bytes]))
