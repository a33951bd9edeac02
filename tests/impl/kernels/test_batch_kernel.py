"""Test the compiled batch encoder: its answers and bytes are those of its plain twin."""

import struct
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.impl.message.test_batch import FRAME, V4, V6, V6_HOST, inner
from tornpage.impl.message import batch as plain
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.message import PutStatus

BORDERS = (32_745, 32_746, 32_747, 32_765, 32_766, 32_767)
ODD = (
    b"__CRC32#\x0112",
    b"A__CRC32#\x011",
    b"__CRC32",
    b"#",
    b"INNER_MULTI_DISPATCH\x01q",
    b"INNER_MULTI_DISPATCH\x01 ",
    b"\0",
    b"\x02",
    b"\xc3",
    b"\xed\xa0\x80",  # a surrogate
    b"\xc0\x80",  # longer than needed
    b"\xf4\x90\x80\x80",  # past the last character
)


@cache
def compiled() -> Any:
    """Return the twin, compiled in this process by the first test that needs it."""
    return import_module("tornpage.impl.kernels.batch")


def both(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Return the answer of the plain twin.

    The compiled one has to give the same, placed and unplaced.
    """
    expected, found = plain.encode_batch(body, frame), compiled().encode_batch(body, frame)
    assert found == expected
    if isinstance(expected, EncodedBatch) and isinstance(found, EncodedBatch):
        assert [type(end) for end in found.ends] == [int] * len(expected.ends)
        for queue_offset, physical_offset, store_timestamp in ((1, 2, 3), (1 << 40, (1 << 62) + 5, -1)):
            place = {
                "queue_offset": queue_offset,
                "physical_offset": physical_offset,
                "store_timestamp": store_timestamp,
            }
            plain.place_batch(expected, **place)
            compiled().place_batch(found, **place)
            assert found == expected
    return expected


def texts() -> st.SearchStrategy[bytes]:
    """Return properties: mostly text, sometimes with parts to be refused or removed."""
    pairs = st.tuples(st.text(max_size=4), st.text(max_size=12)).map("\x01".join).map(str.encode)
    parts = st.one_of(pairs.filter(lambda pair: b"\0" not in pair), st.sampled_from(ODD))
    return st.tuples(st.lists(parts, max_size=4), st.sampled_from((b"\x02", b""))).map(
        lambda drawn: drawn[1].join(drawn[0])
    )


def bodies() -> st.SearchStrategy[bytes]:
    """Return client bodies that parse."""
    members = st.builds(inner, texts(), content=st.binary(max_size=40), flag=st.integers(-(1 << 31), (1 << 31) - 1))
    return st.lists(members, min_size=1, max_size=6).map(b"".join)


def frames() -> st.SearchStrategy[BatchFrame]:
    hosts = st.sampled_from((V4, V6_HOST))
    return st.builds(
        replace,
        st.just(FRAME),
        topic=st.sampled_from((b"T", b"TopicTest", b"t" * 127)),
        queue_id=st.integers(-1, 1 << 31),
        sys_flag=st.integers(-(1 << 31), (1 << 31) - 1),
        born_timestamp=st.integers(-(1 << 63), (1 << 63) - 1),
        born_host=hosts | st.just(b""),
        store_host=hosts,
        reconsume_times=st.integers(-(1 << 31), (1 << 31) - 1),
        properties=texts(),
        trailer=st.booleans(),
        record_bytes_max=st.sampled_from((200, 400, 1 << 20)),
        room_bytes_max=st.sampled_from((200, 400, 1 << 20)),
        multi_dispatch=st.booleans(),
    )


@given(body=bodies(), frame=frames())
def test_twins_agree_on_batches(body: bytes, frame: BatchFrame) -> None:
    both(body, frame)


@given(body=bodies(), trailer=st.booleans())
def test_twins_agree_on_batches_of_a_good_frame(body: bytes, trailer: bool) -> None:
    both(body, replace(FRAME, trailer=trailer))


@given(body=st.binary(max_size=200))
@example(body=b"")
@example(body=bytes(22))
@example(body=struct.pack(">iiiiih", 21, 0, 0, 0, 0, -1))
def test_twins_agree_on_any_bytes(body: bytes) -> None:
    both(body, FRAME)


@given(body=bodies(), data=st.data())
def test_twins_agree_on_damaged_batches(body: bytes, data: st.DataObject) -> None:
    """Change one field or the end of a good body.

    Lengths become negative or too large, totals wrong, or bytes are left over.
    """
    at = data.draw(st.integers(0, len(body)), label="at")
    field = data.draw(
        st.sampled_from((b"", b"\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\x16")) | st.binary(max_size=4),
        label="field",
    )
    keeps_length = data.draw(st.booleans(), label="keeps length")
    both(body[:at] + field + body[at + (len(field) if keeps_length else 0) :], FRAME)
    both(body[:at], FRAME)


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("common", [b"", b"B", b"\x02"])
@pytest.mark.parametrize("own_bytes", BORDERS)
def test_twins_agree_where_properties_get_too_long(own_bytes: int, common: bytes, trailer: bool) -> None:
    both(inner(b"a" * own_bytes), replace(FRAME, properties=common, trailer=trailer))


@given(text=st.binary(min_size=1, max_size=6) | st.text(min_size=1, max_size=6).map(str.encode))
@example(text="é߿ࠀ퟿￿𐀀\U0010ffff".encode())
def test_twins_agree_on_what_is_utf8(text: bytes) -> None:
    both(inner(text), FRAME)


def test_every_first_pair_of_bytes_is_judged_as_by_the_decoder() -> None:
    for first in range(0x80, 0x100):
        for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0):
            for rest in (b"", b"\x80", b"\x80\x80", b"\x80\x80\x80"):
                body = inner(bytes((first, second)) + rest)
                assert compiled().encode_batch(body, FRAME) == plain.encode_batch(body, FRAME)


@pytest.mark.parametrize("content_bytes", [0, 1, 15, 16, 17, 255, 256, 1024, 70_000])
def test_twins_agree_on_bodies_of_any_length(content_bytes: int) -> None:
    content = (bytes(range(256)) * 274)[:content_bytes]
    answer = both(inner(b"A\x011", content) + inner(b"", content[::-1]), FRAME)
    assert isinstance(answer, EncodedBatch)


def test_good_batches_do_not_fall_back_on_the_plain_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    body = plain.encode_batch_body(V6)
    expected = plain.encode_batch(body, FRAME)
    monkeypatch.setattr(plain, "encode_batch", None)
    assert compiled().encode_batch(body, FRAME) == expected
