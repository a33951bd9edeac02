"""Hashes of Java strings, as queues and index store them.

Over UTF-16 code units, modulo 2**32: `h = 31 * h + unit`. Source: `String.hashCode`, `IndexFile.indexKeyHashMethod`.
"""

from array import array

__all__ = ["java_hash", "key_hash"]

_INT32_MAX = (1 << 31) - 1


def java_hash(text: str) -> int:
    """Return the hash of a text as Java has it: 32 bits with a sign."""
    code = 0
    for unit in text.encode() if text.isascii() else array("H", text.encode("utf-16", "surrogatepass"))[1:]:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code > _INT32_MAX else code


def key_hash(topic: str | bytes, key: str) -> int:
    """Return the index hash of a key of a topic: never negative; the one value without an absolute one is 0.

    A topic in bytes is read as UTF-8, as dispatch does.
    """
    text = topic if isinstance(topic, str) else topic.decode(errors="replace")
    code = abs(java_hash(f"{text}#{key}"))
    return 0 if code > _INT32_MAX else code
