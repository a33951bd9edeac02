"""Which puts are refused: by the state of the store, and by the message, row by row of docs/statuses.md.

The state of the store, before the message is looked at:

1. A log that is read-only, a slave, and a log with a running flag that forbids writing give no service.
2. Running flags 2, 4, 8 and 16 forbid writing; flag 1, "not readable", does not.
3. A put lock held for longer than the layout allows makes the page cache count as busy; held exactly as long, not.
4. No service comes before busy. A closed store is the caller's matter: it has no log to ask.

The message, whatever the log looks like:

5. Topic: 1 to 127 bytes of UTF-8, neither "." nor "..", without NUL and "/".
6. Properties: no separator inside a pair of a mapping; text; at most 32,767 bytes with all that the store adds; no NUL;
   where the store writes no trailer, no end that looks like one.
7. Hosts are IPv4 or IPv6 addresses with a port of 32 bits, and every number fits its field.
8. A record, or all records of a batch together, are not longer than the layout allows, and leave 8 bytes or more of
   an empty file.
9. What counts is what would be stored: a property that the store removes refuses nothing. The queue id is that of the
   producer.

The rows of delay levels come between 5 and 6 (model/delay.py), those of multi-dispatch behind 8 (model/dispatch.py).

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
    """Return why no put is let in, whatever it brings, or None."""
    if log.poisoned or layout.role == "SLAVE" or log.flags & FLAGS_THAT_FORBID_WRITING:
        return PutStatus.SERVICE_NOT_AVAILABLE
    if lock_held_ms > layout.page_cache_busy_ms:
        return PutStatus.OS_PAGECACHE_BUSY
    return None


def as_given(message: Message) -> PutStatus | None:
    """Return why a message is refused before anything about it is rewritten, or None."""
    if not is_topic(message.topic) or separators_inside(message.properties):
        return PutStatus.MESSAGE_ILLEGAL
    return None


def as_stored(given: Message, stored: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message is refused once it is known what would be stored of it, or None."""
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
    """Whether a topic, or a queue named by multi-dispatch, may be called so."""
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    fits = 1 <= len(encoded) <= TOPIC_BYTES_MAX
    return fits and b"\0" not in encoded and b"/" not in encoded and encoded not in (b".", b"..")


def ends_like_trailer(stored: bytes) -> bool:
    """Whether a reader would take the last 20 bytes of stored properties for a checksum trailer."""
    return len(stored) >= TRAILER_BYTES and stored[-TRAILER_BYTES:].startswith(b"__CRC32#\x01")


def properties_fit(stored: bytes, *, trailer: bool) -> bool:
    """Whether properties that are stored so, up to the trailer, are short enough with it."""
    return len(stored) + (TRAILER_BYTES if trailer else 0) <= PROPERTIES_BYTES_MAX


def fields_fit(message: Message) -> bool:
    """Whether hosts are hosts and numbers fit their fields."""
    return _addresses_fit(message) and _numbers_fit(message)


def records_fit(sizes_bytes: Sequence[int], *, layout: Layout) -> bool:
    """Whether records that are stored together are short enough, each and in sum."""
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
    """Whether a text is an address without a scope."""
    try:
        return "%" not in str(ipaddress.ip_address(text))
    except ValueError:
        return False
