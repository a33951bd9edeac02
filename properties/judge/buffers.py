"""Compare messages and buffers of reads with the record that was put (contracts 1, 11).

Expected are the bytes of each record. They are decoded by the judges' own decoder, so nothing is compared with the
store's codec. A buffer has one of three states: held, released, and released again.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tornpage.impl.errors import BufferReleased
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.read.read_buffer import ReadBuffer, RecordBuffer, RecordBuffers
from tornpage.properties.contract import GuaranteeBroken, HarnessError, observed
from tornpage.properties.decode.record import Record, decode_record, message_id, parse_properties

__all__ = ["ExpectedBuffer", "buffer_is_right", "is_released", "message_is_right", "messages_are_right"]


class ExpectedBuffer(NamedTuple):
    """A record at a physical offset: its number in the queue that was read, and its bytes.

    With `drops_joined`, properties are read as RocketMQ up to 4.9.0 does.
    """

    offset: int
    number: int
    stored: bytes
    drops_joined: bool = False


def message_is_right(found: StoredMessage, expected: ExpectedBuffer) -> None:
    """Compare every field of a message with its record.

    Raises GuaranteeBroken (1) for the first that differs.
    """
    for name, value in _fields_of(expected.stored, expected.offset, expected.drops_joined):
        said = observed(f"the field {name} of a message", lambda name=name: getattr(found, name))  # type: ignore[misc]
        if said != value:
            sentence = f"the {name} of the message at {expected.offset} is not the one put there"
            raise GuaranteeBroken(1, sentence, repr(value), repr(said))


@lru_cache(maxsize=4096)
def _fields_of(stored: bytes, offset: int, drops_joined: bool) -> tuple[tuple[str, object], ...]:
    record = decode_record(stored, offset=offset, room_bytes=len(stored) + 8)
    if not isinstance(record, Record):
        raise HarnessError(f"the ledger has no record at {offset}: {record}")
    return (
        ("offset", offset),
        ("size_bytes", len(stored)),
        ("topic", record.topic_text),
        ("queue_id", record.queue_id),
        ("queue_offset", record.queue_offset),
        ("body", record.body),
        ("properties", parse_properties(record.properties, drops_joined=drops_joined)),
        ("flag", record.flag),
        ("sys_flag", record.sys_flag),
        ("born_timestamp", record.born_timestamp),
        ("born_host", record.born_host),
        ("store_timestamp", record.store_timestamp),
        ("store_host", record.store_host),
        ("reconsume_times", record.reconsume_times),
        ("prepared_transaction_offset", record.prepared_transaction_offset),
        ("body_crc", record.body_crc),
        ("message_id", message_id(record)),
    )


def buffer_is_right(found: ReadBuffer, offset: int, stored: bytes) -> None:
    """Compare a held buffer with the bytes that it has to show. Raises GuaranteeBroken (11)."""
    with observed("the view of a buffer", lambda: found.view) as view:
        shown = (found.offset, found.size_bytes, len(found), found.released, view.readonly, bytes(view), bytes(found))
    size_bytes = len(stored)
    if shown != (offset, size_bytes, size_bytes, False, True, stored, stored):
        text = f"{size_bytes} read-only bytes at {offset}"
        raise GuaranteeBroken(11, f"the buffer at {offset} has another place, state or content", text, repr(found))


def _record_is_right(found: RecordBuffer, expected: ExpectedBuffer) -> None:
    buffer_is_right(found, expected.offset, expected.stored)
    if found.queue_offset != expected.number:
        sentence = f"the buffer at {expected.offset} has another queue offset than its unit"
        raise GuaranteeBroken(17, sentence, str(expected.number), str(found.queue_offset))
    message_is_right(observed("message", found.message), expected)


def messages_are_right(found: RecordBuffers, expected: Sequence[ExpectedBuffer], *, turn: int) -> None:
    """Compare the messages of an answer, and release them one by one or together.

    A copy of a message stays as it is after the release.
    """
    messages = found.messages
    _sequence_is_right(messages, expected, turn)
    copies = [observed("message", buffer.message) for buffer in messages]
    buffers = list(messages)
    if turn % 3:
        observed("release", buffers[turn % len(buffers)].release if buffers else found.release)
    else:
        _release_one_by_one(buffers, expected)
    for _ in range(2):
        observed("release", found.release)
        for buffer in (*buffers, *messages):
            is_released(buffer)
    for copy, one in zip(copies, expected, strict=True):
        message_is_right(copy, one)


def _sequence_is_right(found: Sequence[RecordBuffer], expected: Sequence[ExpectedBuffer], turn: int) -> None:
    """Compare the messages of an answer, in any way that a sequence can be read (contract 17).

    `turn` decides whether single messages are looked at before all of them or after them.
    """
    whole = list(found) if turn % 2 else None
    count = len(expected)
    if len(found) != count:
        raise GuaranteeBroken(17, "an answer has another number of messages", str(count), str(len(found)))
    if count:
        at = turn % count
        for place, asked in ((at, at), (at - count, at), (count - 1, count - 1)):
            buffer = observed("a message of an answer", lambda place=place: found[place])  # type: ignore[misc]
            _record_is_right(buffer, expected[asked])
        part = observed("a part of an answer", lambda: found[at : at + 2])
        if [each.offset for each in part] != [each.offset for each in expected[at : at + 2]]:
            raise GuaranteeBroken(17, "a part of an answer has other messages than the whole")
    whole = list(found) if whole is None else whole
    for buffer, one in zip(whole, expected, strict=True):
        _record_is_right(buffer, one)
    for place in (count, -count - 1):
        try:
            found[place]
        except IndexError:
            continue
        raise GuaranteeBroken(17, "an answer has a message past its last one", "IndexError", str(place))


def _release_one_by_one(buffers: Sequence[ReadBuffer], expected: Sequence[ExpectedBuffer]) -> None:
    """Release the first buffers twice; the others show their bytes (contract 11)."""
    for number, buffer in enumerate(buffers[:3]):
        for _ in range(2):
            observed("release", buffer.release)
            is_released(buffer)
        for later, one in zip(buffers[number + 1 :], expected[number + 1 :], strict=True):
            buffer_is_right(later, one.offset, one.stored)


def is_released(buffer: ReadBuffer) -> None:
    """Check that a released buffer says so, and shows nothing. Raises GuaranteeBroken (11)."""
    uses: list[Callable[[], object]] = [lambda: buffer.view, lambda: bytes(buffer)]
    if isinstance(buffer, RecordBuffer):
        uses.append(buffer.message)
    for use in uses:
        try:
            use()
        except BufferReleased:
            continue
        raise GuaranteeBroken(11, f"a released buffer at {buffer.offset} is read", "BufferReleased", "an answer")
    if not buffer.released:
        raise GuaranteeBroken(11, f"a released buffer at {buffer.offset} counts as held", "released", "held")
