"""Compiled twins of `key_hash` and of `impl.read.confirming.confirm_key`."""

import numpy as np

from tornpage.impl.kernels.compiling import BYTES, INT, READ, Bytes, Text, kernel, kernel_part
from tornpage.impl.kernels.primitives import find_byte, get32, get64
from tornpage.impl.kernels.records import read_record
from tornpage.impl.kernels.text import java_hash
from tornpage.impl.kernels.walk import valid_record
from tornpage.impl.message.codec import BLANK_BYTES, BORN_HOST_V6, TRANSACTION_MASK
from tornpage.impl.message.key_hash import key_hash as plain_key_hash

__all__ = ["confirm_key", "key_hash"]

_ROLLBACK = 0x0C
_UNIQUE, _KEYS = 0x554E49515F4B4559, 0x4B455953
"""Names as numbers, which are compared faster than bytes."""
assert (int.from_bytes(b"UNIQ_KEY"), int.from_bytes(b"KEYS")) == (_UNIQUE, _KEYS)
_SPACE, _HASH_SIGN = 0x20, 0x23


def key_hash(topic: str, key: str) -> int:
    """Return the index hash of a key as the plain function does."""
    if topic.isascii() and key.isascii():
        code: int = _hash_of(topic.encode(), key.encode())
        return code
    return plain_key_hash(topic, key)


@kernel(BYTES, BYTES)
def _hash_of(topic: Text, key: Text) -> int:
    code, _ = java_hash(topic, 0, len(topic), 0)
    code, _ = java_hash(key, 0, len(key), 31 * code + _HASH_SIGN)
    return 0 if code == -0x80000000 else abs(code)


def confirm_key(
    view: memoryview,
    position: int,
    offset: int,
    file_bytes: int,
    topic: bytes,
    key: bytes,
    begin_ms: int,
    end_ms: int,
    trusted: bool,
) -> tuple[int, int]:
    """Confirm the record at a position as `impl.read.confirming` says."""
    found: tuple[int, int] = _confirm(
        np.asarray(view), topic, key, position, offset, file_bytes, begin_ms, end_ms, trusted
    )
    return found


@kernel_part
def _are_equal(data: Bytes, at: int, wanted: Text) -> bool:
    """Return whether the bytes at a position are the wanted ones."""
    index, size = 0, len(wanted)
    while index + 8 <= size:
        if get64(data, at + index) != get64(wanted, index):
            return False
        index += 8
    while index < size and data[at + index] == wanted[index]:
        index += 1
    return index == size


@kernel_part
def _is_word(data: Bytes, at: int, end: int, key: Text) -> bool:
    """Return whether a key is among the words of a range."""
    while at < end:
        word_end = find_byte(data, at, end, _SPACE)
        if word_end - at == len(key) and _are_equal(data, at, key):
            return True
        at = word_end + 1
    return False


@kernel_part
def _has_key(data: Bytes, at: int, end: int, key: Text) -> bool:
    """Return whether properties have a key as their one UNIQ_KEY, or as a word of KEYS.

    KEYS must be there once too. The parsers of all releases read such a property in the same way, if the key has no
    separator.
    """
    unique, keys, is_unique, is_word = 0, 0, False, False
    if find_byte(key, 0, len(key), 1) < len(key):
        return False
    while at < end:
        start, at = at, find_byte(data, at, end, 2)
        size = at - start
        if size > 8 and data[start + 8] == 1 and get64(data, start) == _UNIQUE:
            unique += 1
            is_unique = size == 9 + len(key) and _are_equal(data, start + 9, key)
        elif size > 4 and data[start + 4] == 1 and get32(data, start) == _KEYS:
            keys += 1
            is_word = find_byte(data, start + 5, at, 1) == at and _is_word(data, start + 5, at, key)
        at += 1
    return (unique == 1 and is_unique) or (keys == 1 and is_word)


@kernel(READ, BYTES, BYTES, INT, INT, INT, INT, INT, INT)
def _confirm(
    data: Bytes,
    topic: Text,
    key: Text,
    position: int,
    offset: int,
    file_bytes: int,
    begin_ms: int,
    end_ms: int,
    trusted: int,
) -> tuple[int, int]:
    size, topic_at, topic_bytes = read_record(data, position, len(data), offset - position)
    if not size or position + size + BLANK_BYTES > file_bytes or get64(data, position + 28) != offset:
        return 0, 0
    if not trusted and valid_record(data, position, file_bytes, offset) != size:
        return 0, 0
    sys_flag = get32(data, position + 36)
    store_timestamp = get64(data, position + (68 if sys_flag & BORN_HOST_V6 else 56))
    if sys_flag & TRANSACTION_MASK == _ROLLBACK or not begin_ms <= store_timestamp <= end_ms:
        return 0, 0
    if topic_bytes != len(topic) or not _are_equal(data, topic_at, topic):
        return 0, 0
    if not _has_key(data, topic_at + topic_bytes + 2, position + size, key):
        return 0, 0
    return size, get64(data, position + 20)
