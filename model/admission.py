"""State which puts are refused, row by row of docs/statuses.md.

A put may be refused for the state of the store, before its message is looked at:

1. A read-only log, a slave, and a log with a running flag that forbids writing answer SERVICE_NOT_AVAILABLE.
2. Running flags 2, 4, 8 and 16 forbid writing. Flag 1, "not readable", does not.
3. A put lock held for longer than the layout allows gives OS_PAGECACHE_BUSY. A lock held for exactly that time does
   not.
4. SERVICE_NOT_AVAILABLE is checked before OS_PAGECACHE_BUSY. Puts to a closed store are not covered here, since a
   closed store has no log.

A put may be refused for its message, whatever the log holds:

5. The topic has 1 to 127 bytes of UTF-8, is neither "." nor "..", and contains neither NUL nor "/".
6. The properties are text without NUL. They have at most 32,767 bytes, including all that the store adds. A mapping has
   no separator inside a pair. If the store writes no checksum trailer, the properties do not end like one.
7. Hosts are IPv4 or IPv6 addresses with a port of 32 bits, and every number fits its field.
8. A record, or all records of a batch together, are not longer than the layout allows, and leave at least 8 bytes of an
   empty file.
9. The checks apply to what would be stored: a property that the store removes causes no refusal. The checked queue id
   is that of the producer.

The rows of delay levels come between 5 and 6 (model/delay.py). Those of multi-dispatch come after 8
(model/dispatch.py).

Source: docs/statuses.md, "every put" (`DefaultMessageStore.checkStoreStatus`) and "put".
"""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from tornpage.model.message import Message, PutStatus, record_bytes
from tornpage.model.properties import TRAILER_BYTES, separators_inside, stored_bytes
from tornpage.model.state import BLANK_BYTES, CommitLog, Layout

__all__ = [
    "as_given",
    "as_stored",
    "ends_like_trailer",
    "fields_fit",
    "is_topic",
    "properties_fit",
    "records_fit",
    "service_refusal",
]

FLAGS_THAT_FORBID_WRITING = 2 | 4 | 8 | 16
TOPIC_BYTES_MAX = 127
PROPERTIES_BYTES_MAX = 32_767


def service_refusal(log: CommitLog, *, layout: Layout, lock_held_ms: int = 0) -> PutStatus | None:
    """Return why the state of the store refuses every put, or None."""
    if log.poisoned or layout.role == "SLAVE" or log.flags & FLAGS_THAT_FORBID_WRITING:
        return PutStatus.SERVICE_NOT_AVAILABLE
    if lock_held_ms > layout.page_cache_busy_ms:
        return PutStatus.OS_PAGECACHE_BUSY
    return None


def as_given(message: Message) -> PutStatus | None:
    """Return why a message is refused before it is rewritten, or None."""
    if not is_topic(message.topic) or separators_inside(message.properties):
        return PutStatus.MESSAGE_ILLEGAL
    return None


def as_stored(given: Message, stored: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message is refused for the form in which it would be stored, or None."""
    try:
        properties = stored_bytes(stored.properties, trailer=layout.trailer)
    except UnicodeEncodeError:
        return PutStatus.MESSAGE_ILLEGAL
    if not properties_fit(properties, trailer=layout.trailer):
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    if b"\0" in properties or (not layout.trailer and ends_like_trailer(properties)) or not fields_fit(given):
        return PutStatus.MESSAGE_ILLEGAL
    if not records_fit([record_bytes(stored, trailer=layout.trailer)], layout=layout):
        return PutStatus.MESSAGE_ILLEGAL
    return None


def is_topic(name: str) -> bool:
    """Return whether a name is legal for a topic, or for a queue named by multi-dispatch."""
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    fits = 1 <= len(encoded) <= TOPIC_BYTES_MAX
    return fits and b"\0" not in encoded and b"/" not in encoded and encoded not in (b".", b"..")


def ends_like_trailer(stored: bytes) -> bool:
    """Return whether a reader would take the last 20 bytes for a checksum trailer."""
    return len(stored) >= TRAILER_BYTES and stored[-TRAILER_BYTES:].startswith(b"__CRC32#\x01")


def properties_fit(stored: bytes, *, trailer: bool) -> bool:
    """Return whether stored properties, given without their trailer, are short enough."""
    return len(stored) + (TRAILER_BYTES if trailer else 0) <= PROPERTIES_BYTES_MAX


def fields_fit(message: Message) -> bool:
    """Return whether hosts are addresses and numbers fit their fields."""
    return _addresses_fit(message) and _numbers_fit(message)


def records_fit(sizes_bytes: Sequence[int], *, layout: Layout) -> bool:
    """Return whether records stored together are short enough, each and in sum."""
    total_bytes = sum(sizes_bytes)
    return total_bytes <= layout.record_bytes_max and total_bytes + BLANK_BYTES <= layout.file_bytes


def _numbers_fit(message: Message) -> bool:
    small = (message.flag, message.sys_flag, message.reconsume_times)
    large = (message.born_timestamp, message.prepared_transaction_offset)
    return (
        0 <= message.queue_id < 2**31
        and all(-(2**31) <= number < 2**31 for number in small)
        and all(-(2**63) <= number < 2**63 for number in large)
    )


def _addresses_fit(message: Message) -> bool:
    for address, port in (message.born_host, message.store_host):
        if not -(2**31) <= port < 2**31 or not _is_address(address):
            return False
    return True


@lru_cache(maxsize=1024)
def _is_address(text: str) -> bool:
    """Return whether a text is an IP address without a scope."""
    try:
        return "%" not in str(ipaddress.ip_address(text))
    except ValueError:
        return False
