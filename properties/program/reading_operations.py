"""What readers ask, as values: by physical offset, by queue, by key, by time."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Get", "GetMessage", "OffsetByTime", "QueryKey"]


@dataclass(frozen=True, slots=True)
class Get:
    """Get at the offset of record `record` (counted modulo) plus `shift` bytes."""

    record: int = 0
    shift: int = 0
    op: Literal["get"] = "get"


@dataclass(frozen=True, slots=True)
class GetMessage:
    """Read queue `queue` of those there are (counted modulo), from `shift` behind its minimum on; -1 is before it.

    `queue` -1 is a queue that nobody wrote to. `tags` are the tags that are wanted, separated by `||`; none is all.
    """

    queue: int = 0
    shift: int = 0
    max_msg_nums: int = 32
    tags: str = ""
    op: Literal["get_message"] = "get_message"


@dataclass(frozen=True, slots=True)
class QueryKey:
    """Query key `key` of those there are (counted modulo), -1 being one that nobody used, for `max_num` messages.

    The window begins `begin_ms` behind the first message that was put and is `window_ms` long; -1 is without an end.
    """

    key: int = 0
    max_num: int = 32
    begin_ms: int = 0
    window_ms: int = -1
    op: Literal["query_key"] = "query_key"


@dataclass(frozen=True, slots=True)
class OffsetByTime:
    """Ask for the offset in queue `queue` (as in GetMessage) at the time of record `record` there, plus `shift_ms`."""

    queue: int = 0
    record: int = 0
    shift_ms: int = 0
    op: Literal["offset_by_time"] = "offset_by_time"
