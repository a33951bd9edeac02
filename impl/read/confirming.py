"""Confirm units of a queue, or a record of a key, at once: interfaces, plain functions.

A confirmed unit points to a record of its queue that may be served as `impl.read.queue_pull.Pull` would serve it. The
walk of the pull decides about every other unit, so reasons, gaps and multi-dispatched records are handled in one place.

A confirmed record has the frame, the place, the topic, the store time and the key that a query asks for. Its checksums
are right unless it is trusted. The walk of the query decides about every other record.
"""

from collections.abc import Callable
from typing import NamedTuple

from tornpage.impl.io.read_marks import ReadMarks

__all__ = ["ConfirmKey", "ConfirmUnits", "Confirmed", "Wanted", "confirm_key", "confirm_units"]


class Wanted(NamedTuple):
    """What a pull asks for.

    `units` are whole units of 20 bytes; the first one has number `number` in queue (`topic`, `queue_id`). `view` is the
    log file that begins at `base_offset` and is `file_bytes` long. A record has to begin before `blank_position` and to
    end at or before `readable_end`. `marks` are None if every record is verified; with `trusts_all` none is. `limits`
    are those of `TransferLimits`, in its order. Up to `max_msg_nums` messages are wanted.
    """

    units: bytes
    view: memoryview
    marks: ReadMarks | None
    trusts_all: bool
    topic: bytes
    queue_id: int
    number: int
    base_offset: int
    file_bytes: int
    blank_position: int
    readable_end: int
    max_msg_nums: int
    limits: tuple[int, int, int, int, int]


class Confirmed(NamedTuple):
    """The leading units that were confirmed, and the bytes of their records.

    `behind_bytes` is the distance from the record of the last examined unit to the readable end, -1 if none was
    examined. `is_full` says that the answer takes no more messages.
    """

    records: int
    size_bytes: int
    behind_bytes: int
    is_full: bool


ConfirmUnits = Callable[[Wanted], Confirmed]

_NONE = Confirmed(0, 0, -1, False)


def confirm_units(_wanted: Wanted) -> Confirmed:
    """Confirm nothing; a compiled twin may replace this function."""
    return _NONE


ConfirmKey = Callable[[memoryview, int, int, int, bytes, bytes, int, int, bool], tuple[int, int]]


def confirm_key(
    _view: memoryview,
    _position: int,
    _offset: int,
    _file_bytes: int,
    _topic: bytes,
    _key: bytes,
    _begin_ms: int,
    _end_ms: int,
    _trusted: bool,
) -> tuple[int, int]:
    """Confirm nothing; a compiled twin may replace this function.

    The record is at a position of a log file of `file_bytes` bytes, and at a physical offset. Returns size and queue
    offset of a record that is confirmed, and zeros otherwise.
    """
    return 0, 0
