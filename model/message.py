"""Messages as the model sees them, and how many bytes their records take.

1. A record is 91 bytes plus 12 for each IPv6 host, plus body, topic and properties.
2. With the checksum trailer the properties end with 20 bytes more, and a separator before them if they lack one.
3. A message is refused, before anything is written, when its topic is not 1 to 127 bytes, or holds NUL or "/", or is
   "." or ".."; when its properties hold NUL, or a separator inside a pair; when a number does not fit its field; when
   text is no UTF-8; when an address is none; and when the properties exceed 32,767 bytes.

Source: docs/format.md, "Commit log record" and "Trailer"; docs/statuses.md.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["Message", "PutStatus", "record_bytes", "refusal", "stored_properties", "waits_for_disk"]

TRAILER_NAME = "__CRC32#"
TRAILER_BYTES = 20
PROPERTIES_BYTES_MAX = 32_767
PREPARED = 0x04
ROLLBACK = 0x0C


class PutStatus(Enum):
    """Every answer a put can get from the log alone."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPEDFILE_FAILED = "CREATE_MAPEDFILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Message:
    """What the producer handed in; every field that reaches the record or decides the answer."""

    topic: str
    body: bytes
    queue_id: int
    properties: Mapping[str, str] | str
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: tuple[str, int]
    store_host: tuple[str, int]
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def counts_in_its_queue(self) -> bool:
        """Prepared and rolled-back transactions have no place in a queue."""
        return self.sys_flag & 0x0C not in (PREPARED, ROLLBACK)


def waits_for_disk(message: Message) -> bool:
    """Whether a synchronous store answers only after the flush: unless the property WAIT says otherwise."""
    found = [value for name, value in _pairs(message.properties) if name == "WAIT" and value]
    return not found or found[-1].lower() == "true"


def _pairs(properties: Mapping[str, str] | str) -> list[tuple[str, str]]:
    if not isinstance(properties, str):
        return list(properties.items())
    split = [segment.split("\x01", 1) for segment in properties.split("\x02")]
    return [(segment[0], segment[1]) for segment in split if len(segment) == 2]


def stored_properties(message: Message, *, trailer: bool) -> bytes:
    """Return the properties string as stored, up to the trailer. Raises UnicodeEncodeError for what is no text."""
    if isinstance(message.properties, str):
        segments = message.properties.split("\x02")
        if any(segment.split("\x01")[0] == TRAILER_NAME for segment in segments):
            segments = [segment for segment in segments if segment.split("\x01")[0] != TRAILER_NAME]
        text = "\x02".join(segments)
    else:
        text = "\x02".join(f"{n}\x01{v}" for n, v in message.properties.items() if n != TRAILER_NAME)
    if trailer and text and not text.endswith("\x02"):
        text += "\x02"
    return text.encode("utf-8")


def record_bytes(message: Message, *, trailer: bool) -> int:
    """Return the length of the record of a message that is not refused."""
    hosts = sum(20 if ":" in host[0] else 8 for host in (message.born_host, message.store_host))
    properties = len(stored_properties(message, trailer=trailer)) + (TRAILER_BYTES if trailer else 0)
    return 75 + hosts + len(message.body) + len(message.topic.encode("utf-8")) + properties


def refusal(message: Message, *, trailer: bool) -> PutStatus | None:
    """Return why a message is refused whatever the log looks like, or None."""
    try:
        topic = message.topic.encode("utf-8")
    except UnicodeEncodeError:
        return PutStatus.MESSAGE_ILLEGAL
    if len(topic) == 0 or len(topic) > 127 or b"\0" in topic or b"/" in topic or topic in (b".", b".."):
        return PutStatus.MESSAGE_ILLEGAL
    if not isinstance(message.properties, str) and _separators_inside(message.properties):
        return PutStatus.MESSAGE_ILLEGAL
    try:
        properties = stored_properties(message, trailer=trailer)
    except UnicodeEncodeError:
        return PutStatus.MESSAGE_ILLEGAL
    if len(properties) + (TRAILER_BYTES if trailer else 0) > PROPERTIES_BYTES_MAX:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    if b"\0" in properties or not _numbers_fit(message) or not _addresses_fit(message):
        return PutStatus.MESSAGE_ILLEGAL
    return None


def _separators_inside(properties: Mapping[str, str]) -> bool:
    pairs = [(name, value) for name, value in properties.items() if name != TRAILER_NAME]
    return any("\x01" in name or "\x02" in name or "\x02" in value for name, value in pairs)


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
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        if not -(2**31) <= port < 2**31 or "%" in str(parsed):
            return False
    return True
