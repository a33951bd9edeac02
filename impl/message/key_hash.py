"""Hashes of Java strings, as stored in queues and index.

Over UTF-16 code units, modulo 2**32: `h = 31 * h + unit`. Source: `String.hashCode`, `IndexFile.indexKeyHashMethod`.
"""

from array import array
from collections.abc import Sequence
from operator import mul

__all__ = ["java_hash", "key_hash"]

_INT32_MAX = (1 << 31) - 1
_POWERS_MAX = 256
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in range(_POWERS_MAX - 1, -1, -1))
"""Powers of 31 modulo 2**32, the greatest exponent first: a sum of products is faster than a loop."""


def java_hash(text: str) -> int:
    """Return the hash of a text as in Java, a signed 32-bit number."""
    units: Sequence[int] = text.encode() if text.isascii() else array("H", text.encode("utf-16", "surrogatepass"))[1:]
    code, count = 0, len(units)
    if count <= _POWERS_MAX:
        code = sum(map(mul, units, _POWERS[_POWERS_MAX - count :])) & 0xFFFFFFFF
    else:
        for unit in units:
            code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code > _INT32_MAX else code


def key_hash(topic: str | bytes, key: str) -> int:
    """Return the index hash of a key of a topic, never negative.

    It is 0 for the one hash without an absolute value. A topic in bytes is decoded as UTF-8, as in dispatch.
    """
    text = topic if isinstance(topic, str) else topic.decode(errors="replace")
    code = abs(java_hash(f"{text}#{key}"))
    return 0 if code > _INT32_MAX else code
