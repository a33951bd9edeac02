"""Compute Java's hash of UTF-8 text, compiled as a part of the walk over records."""

from tornpage.properties.decode.arrays.compiling import Bytes, u8_at
from tornpage.properties.decode.arrays.compiling import kernel_part as part

__all__ = ["hash_text", "index_hash", "wrapped"]

_HASH_MAX = 2**31 - 1


@part
def wrapped(value: int) -> int:
    """Return a number as a Java int."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@part
def hash_text(data: Bytes, at: int, end: int, value: int) -> tuple[bool, int]:
    """Continue Java's hash over UTF-8 text.

    Returns False for bytes that Python's decoder rejects.
    """
    while at < end:
        first = u8_at(data, at)
        at += 1
        if first < 0x80:
            value = (31 * value + first) & 0xFFFFFFFF
            continue
        if 0xC2 <= first <= 0xDF:
            more, point, least = 1, first & 0x1F, 0x80
        elif 0xE0 <= first <= 0xEF:
            more, point, least = 2, first & 0x0F, 0x800
        elif 0xF0 <= first <= 0xF4:
            more, point, least = 3, first & 0x07, 0x10000
        else:
            return False, 0
        if at + more > end:
            return False, 0
        for _ in range(more):
            byte = u8_at(data, at)
            if byte & 0xC0 != 0x80:
                return False, 0
            point = point << 6 | (byte & 0x3F)
            at += 1
        if point < least or point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            return False, 0
        if point >= 0x10000:
            value = (31 * value + (0xD7C0 + (point >> 10))) & 0xFFFFFFFF
            point = 0xDC00 | (point & 0x3FF)
        value = (31 * value + point) & 0xFFFFFFFF
    return True, value


@part
def index_hash(value: int) -> int:
    """Return the index's form of a hash: its absolute value, or 0 if that is no Java int."""
    value = abs(wrapped(value))
    return value if value <= _HASH_MAX else 0
