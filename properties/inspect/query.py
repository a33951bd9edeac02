"""Define a query: its filters and places, and their form on a command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tornpage.impl.config.broker_settings import parse_lines, problem_of
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.record import Record, parse_properties

__all__ = ["I64_MAX", "Query", "keys_of", "offset_of_id", "parse_queue", "parse_times", "read_settings"]

I64_MAX = 2**63 - 1
_SETTINGS_BYTES_MAX = 1 << 20
_ROLLED_BACK = 0x0C
_DAY_MS = 86_400_000
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MILLISECONDS = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,19}")
_QUEUE_ID = re.compile(r"-?[0-9]{1,10}")
_CHOOSING = ("offset", "message_id", "key", "topic", "queue_id", "tag", "times", "queue_offset", "scan")


@dataclass(frozen=True, slots=True)
class Query:
    """What to show.

    None and False mean that a field is not set.

    `limit` bounds the rows (None: all). `offset` is physical, `queue_offset` counts units of a queue. `times` are the
    first and the last ms. `scan` bypasses the index. `slots` and `file_bytes` are settings that a store does not state.
    `drops_joined` is as in `parse_properties`, for stores of RocketMQ up to 4.9.0.
    """

    limit: int | None = 100
    offset: int | None = None
    message_id: str | None = None
    key: str | None = None
    topic: str | None = None
    queue_id: int | None = None
    tag: str | None = None
    times: tuple[int, int] | None = None
    queue_offset: int | None = None
    hex: bool = False
    scan: bool = False
    slots: int | None = None
    file_bytes: int | None = None
    drops_joined: bool = False

    def __post_init__(self) -> None:
        for name, number, least in (
            ("limit", self.limit, 0),
            ("offset", self.offset, 0),
            ("queue offset", self.queue_offset, 0),
            ("number of slots", self.slots, 1),
            ("file size", self.file_bytes, 1),
        ):
            if number is not None and number < least:
                raise InspectError(f"{name} {number} is too small; give {least} or more")

    def set_fields(self) -> set[str]:
        """Return the names of the fields that select rows and are set."""
        given = {name: getattr(self, name) for name in _CHOOSING}
        return {name for name, value in given.items() if value is not None and value is not False}

    @property
    def has_filter(self) -> bool:
        """Whether records are selected by their content."""
        return any(each is not None for each in (self.topic, self.queue_id, self.tag, self.key, self.times))

    def accepts(self, record: Record) -> bool:
        """Whether the content of a record matches; its place is not compared."""
        if self.topic is not None and record.topic_text != self.topic:
            return False
        if self.queue_id is not None and record.queue_id != self.queue_id:
            return False
        if self.times is not None and not self.times[0] <= record.store_timestamp <= self.times[1]:
            return False
        if self.tag is not None and self.properties_of(record).get("TAGS", "") != self.tag:
            return False
        return self.key is None or self.key in keys_of(record, drops_joined=self.drops_joined)

    def properties_of(self, record: Record) -> dict[str, str]:
        """Return the properties of a record by the rule of the release that wrote the store."""
        return parse_properties(record.properties, drops_joined=self.drops_joined)

    def has_room(self, rows: int) -> bool:
        """Whether one more row may be shown."""
        return self.limit is None or rows < self.limit


def keys_of(record: Record, *, drops_joined: bool = False) -> list[str]:
    """Return the keys by which a record is indexed, in order.

    `drops_joined` is as in `parse_properties`. A rolled back transaction has none.

    Source: RocketMQ's `IndexService.buildIndex`.
    """
    if record.sys_flag & _ROLLED_BACK == _ROLLED_BACK:
        return []
    properties = parse_properties(record.properties, drops_joined=drops_joined)
    unique = properties.get("UNIQ_KEY")
    keys = [] if unique is None else [unique]
    return keys + [token for token in properties.get("KEYS", "").split(" ") if token]


def offset_of_id(message_id: str) -> int:
    """Return the physical offset in a store-side message id.

    The id has 32 digits with an IPv4 host, 56 with IPv6.
    """
    text = message_id.strip()
    try:
        stored = bytes.fromhex(text)
    except ValueError:
        stored = b""
    if len(text) not in (32, 56) or len(stored) * 2 != len(text):
        raise InspectError(
            f"message id {text[:64]!r} is not an id of a store; give 32 (IPv4) or 56 (IPv6) hexadecimal digits, "
            "or a client's unique key with --key"
        )
    return int.from_bytes(stored[-8:], "big", signed=True)


def parse_times(text: str) -> tuple[int, int]:
    """Return both ends, in ms, of `FROM..TO`.

    A missing end is open. A date stands for its whole day in UTC. A text without `..` is one day or moment.
    """
    begin, dots, end = text.partition("..")
    if not dots:
        end = begin
    if not begin.strip() and not end.strip():
        raise InspectError(f"time {text!r} has no end; give FROM..TO, each as ms or ISO 8601")
    times = (_time(begin, -I64_MAX - 1), _time(end, I64_MAX) + (_DAY_MS - 1 if _DAY.fullmatch(end.strip()) else 0))
    if times[0] > times[1]:
        raise InspectError(f"time {text!r} ends before it begins; give the earlier one first")
    return times


def parse_queue(text: str) -> tuple[str, int]:
    """Return topic and queue id of `TOPIC/ID`."""
    topic, _, queue_id = text.rpartition("/")
    if not topic or not _QUEUE_ID.fullmatch(queue_id):
        raise InspectError(f"queue {text[:300]!r} is not valid; give TOPIC/ID, as in TopicTest/0")
    return topic, int(queue_id)


def read_settings(path: str) -> dict[str, int]:
    """Return the numeric broker settings that a reader needs, under RocketMQ's names."""
    try:
        with Path(path).open("rb") as file:
            stored = file.read(_SETTINGS_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read the broker's settings {path!r}: {reason}; check the path") from error
    if len(stored) > _SETTINGS_BYTES_MAX:
        raise InspectError(f"{path!r} is too long for a settings file; give the broker's name=value file")
    said, problem = parse_lines(stored.decode("utf-8", "replace"))
    problem = problem or problem_of(said)
    if problem is not None:
        raise InspectError(f"the broker's settings {path!r}: {problem}")
    numbers: dict[str, int] = {}
    for name in ("maxHashSlotNum", "maxIndexNum", "mappedFileSizeCommitLog"):
        if name not in said:
            continue
        if not (_NUMBER.fullmatch(said[name]) and 0 < int(said[name]) <= I64_MAX):
            raise InspectError(f"{path!r} has {name}={said[name]!r}; give a positive number")
        numbers[name] = int(said[name])
    return numbers


def _time(text: str, default: int) -> int:
    text = text.strip()
    if not text:
        return default
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InspectError(
            f"time {text!r} is neither ms since 1970 nor ISO 8601; give 1700000000000 or 2023-11-14T22:13:20Z"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000
