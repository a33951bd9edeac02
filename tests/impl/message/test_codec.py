"""Test the check of a record: each reason, room and blanks, and what counts in a queue."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.records import check, record_of
from tornpage.impl.message import codec
from tornpage.impl.message.message import Message
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.record import decode_record as decode_independently


def patched(position: int, data: bytes, *, properties: str = "A\x01b", trailer: bool = False) -> bytearray:
    """Return the record of topic TT and body BODY with some bytes replaced.

    The topic is at 88 to 92, and its length is at 92.
    """
    record = record_of(Message("TT", b"BODY", properties=properties), trailer=trailer)
    record[position : position + len(data)] = data
    return record


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


WRONG: dict[str, tuple[Callable[[], bytearray], str]] = {
    "no magic": (lambda: patched(4, bytes(4)), "bad_magic"),
    "magic of a later version": (lambda: patched(4, bytes.fromhex("DAA320AB")), "bad_magic"),
    "nothing written": (lambda: bytearray(100), "bad_magic"),
    "size below the smallest": (lambda: patched(0, i32(91)), "bad_length"),
    "size negative": (lambda: patched(0, i32(-1)), "bad_length"),
    "size beyond the file": (lambda: patched(0, i32(1 << 30)), "bad_length"),
    "size one more": (lambda: patched(0, i32(101)), "bad_length"),
    "size one less": (lambda: patched(0, i32(99)), "bad_length"),
    "another place": (lambda: patched(35, b"\x01"), "bad_position"),
    "hosts beyond the record": (lambda: patched(0, i32(92))[:39] + b"\x30" + bytes(60), "bad_length"),
    "body negative": (lambda: patched(84, i32(-1)), "bad_length"),
    "body beyond the record": (lambda: patched(84, i32(1000)), "bad_length"),
    "body takes the rest": (lambda: patched(84, i32(13)), "bad_length"),
    "topic beyond the record": (lambda: patched(92, b"\x7f"), "bad_length"),
    "properties length short": (lambda: patched(95, b"\x00\x02"), "bad_length"),
    "properties length long": (lambda: patched(95, b"\x00\x04"), "bad_length"),
    "body changed": (lambda: patched(88, b"X"), "bad_body_crc"),
    "body checksum changed": (lambda: patched(11, b"\x00"), "bad_body_crc"),
    "topic empty": (lambda: patched(92, b"\x00\x00\x05XX"), "bad_topic_length"),
    "topic with NUL": (lambda: patched(94, b"\x00"), "nul_in_topic"),
    "properties with NUL": (lambda: patched(99, b"\x00"), "nul_in_properties"),
    "flag changed under a trailer": (lambda: patched(16, b"\x01", trailer=True), "bad_checksum"),
    "trailer digit": (lambda: patched(112, b"x", trailer=True), "bad_checksum"),
    "trailer unterminated": (lambda: patched(119, b"\x03", trailer=True), "bad_checksum"),
    "trailer digits in other script": (lambda: patched(110, "\u0661".encode(), trailer=True), "bad_checksum"),
}


@pytest.mark.parametrize("what", WRONG)
def test_check_names_the_reason(what: str) -> None:
    make, reason = WRONG[what]
    assert check(make()) == (0, reason)


def test_check_names_every_reason_there_is() -> None:
    source = Path(codec.__file__).read_text(encoding="utf-8")
    reasons = {text for text in source.split('"')[1::2] if text.startswith(("bad_", "nul_", "past_"))}
    assert reasons == {reason for _, reason in WRONG.values()} | {"past_end"}


def test_topic_longer_than_127_is_bad() -> None:
    record = bytearray(record_of(Message("t" * 127, b"", properties="A\x01" + "b" * 40)))
    record[88] = 128
    rest = len(record) - (88 + 1 + 128 + 2)
    record[88 + 129 : 88 + 131] = rest.to_bytes(2, "big")
    assert check(record) == (0, "bad_topic_length")


@pytest.mark.parametrize("left", range(8))
def test_check_needs_eight_bytes(left: int) -> None:
    assert codec.check_record(memoryview(bytes(92 + left)), 92, limit=92 + left, offset=92) == (0, "past_end")


@pytest.mark.parametrize("room", range(10))
def test_record_needs_room_for_a_blank_behind_it(room: int) -> None:
    record = record_of(Message("T", b""))
    assert check(record, room=room) == ((len(record), None) if room >= 8 else (0, "bad_length"))


def test_blank_is_no_record_and_not_bad() -> None:
    assert codec.check_record(memoryview(codec.encode_blank(8)), 0, limit=8, offset=0) == (0, None)


def test_properties_of_32_kib_and_more_are_bad_as_in_the_format() -> None:
    """The length of the properties is an i16.

    The store read it as unsigned and accepted a length that is negative in RocketMQ.
    """
    head = record_of(Message("T", b""))
    properties = b"A\x01" + b"x" * 40_000
    data = bytes(head[:-2]) + struct.pack(">H", len(properties)) + properties
    data = struct.pack(">i", len(data)) + data[4:] + bytes(8)
    assert not isinstance(decode_independently(data, offset=0), Record)
    assert codec.check_record(memoryview(data), 0, limit=len(data), offset=0)[0] == 0


def test_a_blank_of_another_length_is_torn() -> None:
    """A sector boundary inside a blank can lose its length and keep its magic.

    The kept log has to be the one that was put.
    """
    view = memoryview(codec.encode_blank(20).ljust(28, b"\0"))
    assert codec.check_record(view, 0, limit=28, offset=0) == (0, "bad_magic")


@pytest.mark.parametrize(("sys_flag", "counts"), [(0, True), (0x03, True), (0x04, False), (0x08, True), (0x0C, False)])
def test_transaction_state_decides_about_the_queue(sys_flag: int, counts: bool) -> None:
    assert codec.has_consume_queue(sys_flag) is counts
    assert codec.has_consume_queue(sys_flag | 0x33) is counts
