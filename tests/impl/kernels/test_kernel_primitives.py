"""Compare primitives of kernels with Python: integers, search, comparison, Java's hash."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.impl.kernels import primitives
from tornpage.impl.kernels.compiling import kernel_part
from tornpage.impl.kernels.text import java_hash
from tornpage.impl.message import key_hash

INTEGERS = [("get16", 2, False), ("get32", 4, True), ("get64", 8, True)]


def compiled(name: str, arguments: int) -> Any:
    """Return a primitive that only compiled code may call, as a function that Python may call."""
    primitive = getattr(primitives, name)
    if arguments == 2:
        return kernel_part(lambda data, at: primitive(data, at))
    return kernel_part(lambda data, at, value: primitive(data, at, value))


def as_array(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize(("name", "size", "signed"), INTEGERS, ids=lambda value: str(value))
def test_integers_are_read_at_any_place(name: str, size: int, signed: bool) -> None:
    data = bytes(range(250, 256)) + bytes(range(120, 136))
    read = compiled(name, 2)
    for at in range(len(data) - size + 1):
        assert read(as_array(data), at) == int.from_bytes(data[at : at + size], signed=signed)


@pytest.mark.parametrize(("name", "size"), [("put32", 4), ("put64", 8)])
def test_the_low_bits_are_written_and_nothing_beside_them(name: str, size: int) -> None:
    write = compiled(name, 3)
    for value in (0, 1, -1, 0x0123456789ABCDEF, -0x0123456789ABCDEF, 0xFEDCBA98, 1 << 62):
        for at in range(9):
            data = bytearray(b"\xa5" * 17)
            write(np.frombuffer(data, np.uint8), at, value)
            low = (value % (1 << 8 * size)).to_bytes(size)
            assert bytes(data) == b"\xa5" * at + low + b"\xa5" * (17 - at - size)


@given(data=st.binary(max_size=100), byte=st.sampled_from((0, 2, 0x20, 0xFF)), places=st.data())
def test_a_byte_is_found_where_it_first_lies(data: bytes, byte: int, places: st.DataObject) -> None:
    for at in places.draw(st.lists(st.integers(0, max(0, len(data) - 1)), max_size=3)):
        data = data[:at] + bytes((byte,)) + data[at + 1 :]
    end = places.draw(st.integers(0, len(data)))
    start = places.draw(st.integers(0, end))
    expected = data.find(byte, start, end)
    assert primitives.find_byte(as_array(data), start, end, byte) == (end if expected < 0 else expected)


@given(same=st.binary(max_size=40), other=st.binary(max_size=3), tail=st.binary(max_size=3), size=st.integers(0, 45))
def test_stretches_are_equal_as_python_says(same: bytes, other: bytes, tail: bytes, size: int) -> None:
    data = same + other + same + tail
    second = len(same) + len(other)
    size = min(size, len(data) - second)
    found = primitives.are_equal(as_array(data), 0, second, size)
    assert found == (data[:size] == data[second : second + size])


@given(text=st.text(max_size=40), start=st.integers(0, 9))
def test_a_hash_of_text_is_the_one_of_java(text: str, start: int) -> None:
    data = b"\xff" * start + text.encode() + b"\xff" * 9
    found, is_utf8 = java_hash(as_array(data), start, len(data) - 9, 0)
    assert (found, is_utf8) == (key_hash.java_hash(text), True)


@given(text=st.text(st.characters(max_codepoint=127), max_size=40), at=st.integers(0, 40), byte=st.integers(128, 255))
def test_what_is_no_text_has_no_hash(text: str, at: int, byte: int) -> None:
    data = text.encode()[:at] + bytes((byte,)) + text.encode()[at:]
    assert java_hash(as_array(data), 0, len(data), 0) == (0, False)
