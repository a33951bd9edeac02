"""Find the messages that a store has lost, and the hole that each of them left.

The numbers of a queue go up one by one, so that a number without a record is a lost message. Its place in the log is
known from a unit that points into a hole, from the readable header of the damaged record, or because only one hole
lies between its neighbours.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.repairing.fillers import FILLER_BYTES_MAX, NO_UNIT_TOPICS, Filler, filler_bytes_min
from tornpage.pipeline.repairing.layout import Hole, LogLayout
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import END_RESERVE_BYTES, RECORD_BYTES_MIN, RECORD_MAGIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HoleBytes", "Losses", "Lost", "find_losses", "place_fillers"]

_NUMBERS_MAX = 1_000_000
"""A longer row of missing numbers is no loss: one number in it is wrong."""
_FILLER_ROOM = 32
"""Bytes of a filler for its property and a body, where the size of the lost record is not known."""
_HEADER = struct.Struct(">iIIiiqqi")
_MAGIC_BYTES = struct.pack(">I", RECORD_MAGIC)

HoleBytes = Mapping[int, tuple[Path, int]]
"""Per offset of a log file, where the bytes of the image lie: path and position of the first byte."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost messages of one queue in a row, by their queue offsets, both included.

    They lay in the log between the offsets `after` and `before`.
    """

    topic: str
    queue_id: int
    first: int
    last: int
    after: int
    before: int


@dataclass(slots=True)
class Losses:
    """What a copy lacks: messages by queue, and the fillers that stand for them.

    `unfillable` are holes too short for any record.
    """

    lost: list[Lost] = field(default_factory=list)
    fillers: list[Filler] = field(default_factory=list)
    unfillable: list[Hole] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """Return how many messages are known to be lost."""
        return sum(each.last - each.first + 1 for each in self.lost)


def find_losses(
    wanted: NDArray[Any],
    units: NDArray[Any],
    keys: Sequence[QueueKey],
    layout: LogLayout,
    *,
    first_current: Mapping[QueueKey, int],
    begins_at_0: bool,
    deleted: Iterable[str],
) -> list[Lost]:
    """Return the numbers that no kept record has, by queue.

    `units` are those of the image, `first_current` the least number of each queue that points into the log.
    `begins_at_0`: the log begins at offset 0, so that every queue began with number 0. A topic in `deleted` may go on
    with higher numbers.
    """
    deleted = set(deleted)
    found: list[Lost] = []
    end_of_log = layout.bases[-1] + layout.file_bytes
    in_holes = units[(units["offset"] >= layout.bases[0]) & (units["size"] >= RECORD_BYTES_MIN)]
    rows = wanted[~wanted["is_light"]]
    rows = rows[np.lexsort((rows["queue_offset"], rows["queue"]))]
    starts = np.searchsorted(rows["queue"], np.arange(len(keys) + 1))
    in_holes = in_holes[np.lexsort((in_holes["queue_offset"], in_holes["queue"]))]
    unit_starts = np.searchsorted(in_holes["queue"], np.arange(len(keys) + 1))
    for queue, (topic, queue_id) in enumerate(keys):
        mine, pointing = rows[starts[queue] : starts[queue + 1]], in_holes[unit_starts[queue] : unit_starts[queue + 1]]
        numbers = mine["queue_offset"]
        past = pointing["queue_offset"][pointing["offset"] >= layout.end]
        if len(mine):
            first = int(numbers[0])
            begin = min(first, first_current.get((topic, queue_id), first))
            begin = 0 if begins_at_0 and topic not in deleted else begin
            stops = [*numbers.tolist(), *([int(past.max()) + 1] if len(past) and past.max() > numbers[-1] else [])]
            offsets = [*mine["offset"].tolist(), end_of_log]
            ends = [layout.bases[0], *(mine["offset"] + mine["size"]).tolist()]
            before = begin - 1
            for at in [0, *(np.flatnonzero(np.diff(stops) > 1) + 1).tolist()]:
                low = before if at == 0 else stops[at - 1]
                if stops[at] - low > 1 and stops[at] - low <= _NUMBERS_MAX:
                    found.append(Lost(topic, queue_id, low + 1, stops[at] - 1, ends[at], offsets[at]))
        elif len(pointing) and not topic.startswith("%LMQ%"):
            low, high = int(pointing["queue_offset"].min()), int(pointing["queue_offset"].max())
            if high - low < _NUMBERS_MAX:
                found.append(Lost(topic, queue_id, low, high, layout.bases[0], end_of_log))
    return found


def place_fillers(
    lost: list[Lost],
    units: NDArray[Any],
    keys: Sequence[QueueKey],
    layout: LogLayout,
    image: HoleBytes,
    *,
    fills_the_end: bool,
) -> Losses:
    """Decide what stands in each hole.

    Without `fills_the_end` the log ends with its last valid record.
    """
    made = Losses(lost)
    holes = [hole for hole in layout.holes if fills_the_end or hole.start < layout.end]
    pending = _Pending(lost)
    known = _by_units(pending, units, keys, holes)
    for hole in holes:
        known[hole.start] += _by_headers(pending, hole, layout, image, known[hole.start])
    floating = _float(pending, lost, [hole for hole in holes if hole.start < layout.end], known)
    for hole in holes:
        _fill(made, hole, sorted(known[hole.start]), floating.get(hole.start, []))
    return made


def _float(
    pending: _Pending, lost: Sequence[Lost], holes: Sequence[Hole], known: Mapping[int, Sequence[Segment]]
) -> dict[int, list[tuple[str, int, int]]]:
    """Give lost numbers without a known place to the holes between their neighbours.

    A consumer asks a queue for a number and never sees where in the log it lies. What has the fewest holes comes first.
    """
    room = {hole.start: hole.end - hole.start - sum(each[1] for each in known[hole.start]) for hole in holes}
    floating: dict[int, list[tuple[str, int, int]]] = {hole.start: [] for hole in holes}
    candidates = [(each, [hole for hole in holes if _may_hold(hole, each)]) for each in lost]
    for each, around in sorted(candidates, key=lambda candidate: len(candidate[1])):
        least = filler_bytes_min(each.topic)
        for name in pending.take_all(each) if around else ():
            for hole in around:
                if room[hole.start] >= least:
                    floating[hole.start].append(name)
                    room[hole.start] -= least
                    break
    return floating


def _may_hold(hole: Hole, lost: Lost) -> bool:
    return (
        lost.after <= hole.start < lost.before if hole.is_tail else lost.after <= hole.start and hole.end <= lost.before
    )


Segment = tuple[int, int, str, int, int]
"""Offset, size, topic, queue id and queue offset of a lost record."""


class _Pending:
    """Lost numbers that have no place yet."""

    def __init__(self, lost: Iterable[Lost]) -> None:
        self._lost: dict[QueueKey, set[int]] = {}
        for each in lost:
            self._lost.setdefault((each.topic, each.queue_id), set()).update(range(each.first, each.last + 1))

    def take(self, topic: str, queue_id: int, number: int) -> bool:
        """Take a number; return whether it was lost and had no place."""
        numbers = self._lost.get((topic, queue_id), set())
        if number not in numbers:
            return False
        numbers.remove(number)
        return True

    def take_all(self, lost: Lost) -> list[tuple[str, int, int]]:
        """Take what is left of a row of numbers."""
        return [
            (lost.topic, lost.queue_id, number)
            for number in range(lost.first, lost.last + 1)
            if self.take(lost.topic, lost.queue_id, number)
        ]


def _by_units(
    pending: _Pending, units: NDArray[Any], keys: Sequence[QueueKey], holes: Sequence[Hole]
) -> dict[int, list[Segment]]:
    """Return, per hole, the lost records to which units point."""
    found: dict[int, list[Segment]] = {hole.start: [] for hole in holes}
    starts = [hole.start for hole in holes]
    if not holes:
        return found
    pointing = units[(units["offset"] >= starts[0]) & (units["size"] >= RECORD_BYTES_MIN)]
    for unit in pointing[np.argsort(pointing["offset"], kind="stable")]:
        offset, size = int(unit["offset"]), int(unit["size"])
        hole = holes[max(bisect_left(starts, offset + 1) - 1, 0)]
        if not hole.start <= offset or offset + size > hole.end - (END_RESERVE_BYTES if hole.is_tail else 0):
            continue
        topic, queue_id = keys[int(unit["queue"])]
        segments = found[hole.start]
        if segments and segments[-1][0] + segments[-1][1] > offset:
            continue
        if pending.take(topic, queue_id, int(unit["queue_offset"])):
            segments.append((offset, size, topic, queue_id, int(unit["queue_offset"])))
    return found


def _by_headers(
    pending: _Pending, hole: Hole, layout: LogLayout, image: HoleBytes, known: Sequence[Segment]
) -> list[Segment]:
    """Return the lost records whose headers can still be read in a hole."""
    base = max(each for each in layout.bases if each <= hole.start)
    if base not in image:
        return []
    path, at = image[base]
    taken = [(each[0], each[0] + each[1]) for each in known]
    found: list[Segment] = []
    try:
        with FileSource(path, size_bytes_max=at + hole.end - base) as source:
            position = hole.start
            while (magic := source.find(_MAGIC_BYTES, at + position - base + 4)) >= 0:
                position = magic - 4 - at + base
                segment = _segment(source, at - base, position, hole)
                if segment is None or any(position < end and position + segment[1] > start for start, end in taken):
                    position += 1
                    continue
                if pending.take(*segment[2:]):
                    found.append(segment)
                    position += segment[1]
                else:
                    position += 1
                if position >= hole.end:
                    break
    except OSError:
        return []
    return found


def _segment(source: FileSource, shift: int, offset: int, hole: Hole) -> Segment | None:
    """Return what the header at an offset says, if its place and lengths are possible."""
    head = source.read(offset + shift, 128)
    if len(head) < RECORD_BYTES_MIN:
        return None
    size, _, _, queue_id, _, number, place, flags = _HEADER.unpack_from(head)
    body_at = 88 + (12 if flags & 0x10 else 0) + (12 if flags & 0x20 else 0)
    if place != offset or not RECORD_BYTES_MIN <= size <= hole.end - offset or body_at + 4 > size:
        return None
    (body_bytes,) = struct.unpack_from(">i", head, body_at - 4)
    if not 0 <= body_bytes <= size - body_at:
        return None
    topic = source.read(offset + shift + body_at + body_bytes, 128)
    if not topic or not 0 < topic[0] <= 127 or len(topic) < 1 + topic[0]:
        return None
    return offset, size, topic[1 : 1 + topic[0]].decode("utf-8", "replace"), queue_id, number


def _fill(made: Losses, hole: Hole, known: Sequence[Segment], floating: list[tuple[str, int, int]]) -> None:
    """Tile a hole with fillers; the rest of a tail stays for a blank."""
    pieces: list[list[Any]] = []  # offset, size, (topic, queue id, queue offset) or None
    position = hole.start
    end = hole.end - (END_RESERVE_BYTES if hole.is_tail else 0)
    for offset, size, *name in known:
        if offset < position:
            continue
        if offset > position:
            pieces.append([position, offset - position, None])
        pieces.append([offset, size, tuple(name)])
        position = offset + size
    if position < end:
        pieces.append([position, end - position, None])
    pieces = _with_floating(pieces, floating, is_tail=hole.is_tail)
    pieces = _joined(pieces)
    if pieces and pieces[0][1] < filler_bytes_min(None):
        made.unfillable.append(hole)
        return
    for offset, size, what in pieces:
        _add(made.fillers, offset, size, what)


def _with_floating(pieces: list[list[Any]], floating: list[tuple[str, int, int]], *, is_tail: bool) -> list[list[Any]]:
    """Cut unknown pieces, so that lost numbers of this hole have a record each.

    What is left of the last piece of a tail is no record.
    """
    waiting = list(reversed(floating))
    found: list[list[Any]] = []
    for number, (offset, size, what) in enumerate(pieces):
        if what is not None:
            found.append([offset, size, what])
            continue
        is_open = is_tail and number == len(pieces) - 1
        while waiting and size >= (least := filler_bytes_min(waiting[-1][0])):
            name = waiting.pop()
            room = min(size, least + _FILLER_ROOM)
            following = filler_bytes_min(waiting[-1][0]) if waiting else size + 1
            if not is_open and size - room < following:
                room = size
            found.append([offset, room, name])
            offset, size = offset + room, size - room
        if size and not is_open:
            found.append([offset, size, None])
    return found


def _joined(pieces: list[list[Any]]) -> list[list[Any]]:
    """Give pieces that are too short for a record to their neighbours."""
    found: list[list[Any]] = []
    for offset, size, what in pieces:
        least = filler_bytes_min(None if what is None else what[0])
        if size < least and found:
            found[-1][1] += size
        elif found and found[-1][1] < filler_bytes_min(None if found[-1][2] is None else found[-1][2][0]):
            start, short, _ = found.pop()
            found.append([start, short + size, what])
        else:
            found.append([offset, size, what])
    return found


def _add(fillers: list[Filler], offset: int, size: int, what: tuple[str, int, int] | None) -> None:
    """Add the fillers of one piece, none of them larger than a message may be."""
    while size > FILLER_BYTES_MAX:
        part = FILLER_BYTES_MAX - (RECORD_BYTES_MIN if size - FILLER_BYTES_MAX < RECORD_BYTES_MIN else 0)
        fillers.append(_filler(offset, part, what))
        offset, size, what = offset + part, size - part, None
    fillers.append(_filler(offset, size, what))


def _filler(offset: int, size: int, what: tuple[str, int, int] | None) -> Filler:
    is_unnamed = what is None or what[0] in NO_UNIT_TOPICS or "\N{REPLACEMENT CHARACTER}" in what[0]
    if is_unnamed or what is None or len(what[0].encode()) > 127 or not -(2**31) <= what[1] < 2**31:
        return Filler(offset, size)
    return Filler(offset, size, *what)
