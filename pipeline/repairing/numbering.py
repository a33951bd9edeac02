"""Decide which queue offset each kept record has in a copy.

No checksum of RocketMQ 4.9.3 covers queue offset, queue id and topic of a record. The units of the queue files and the
neighbours of a record in its queue are the evidence against a wrong field. Rules, in this order:

1. A topic that was deleted and used again has its queue offsets from 0 a second time. Records before the first one to
   which a unit points are those of the deleted topic.
2. A record to which its own unit points keeps its place. Of two records with one number it wins.
3. A record without a unit at its place, to which a unit at a free place points, belongs to that place.
4. A record that is alone in its queue, and fills the one gap of a queue with nearly the same name, belongs there.
5. A number that cannot follow the number before, by the bytes lost in between, is corrected where its neighbours in
   the log leave one number free.
6. A record that still has no place stays in the log as a rolled back transaction, which asks for no unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.reused_topics import NUMBER_MAX, reused_topics, supported
from tornpage.pipeline.repairing.layout import LogLayout
from tornpage.pipeline.rows.columns import QueueKey, QueueNumbers
from tornpage.properties.decode.record import RECORD_BYTES_MIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Correction", "Numbering", "number_records"]

_JUMP_FILES_MAX = 64
_UNSURE_MAX = 10_000
"""Records whose places are compared with all units, one by one."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A record whose header gets the values that the evidence names.

    `before` and `after` are (topic, queue id, queue offset). `no_transaction`: its flags wrongly say that it is half of
    a transaction.
    """

    offset: int
    before: tuple[str, int, int]
    after: tuple[str, int, int]
    no_transaction: bool = False


@dataclass(slots=True)
class Numbering:
    """The places of records in the queues of a copy.

    `wanted` are the units of the copy; `without_place` are offsets of records that no queue of the copy names.
    `reused` maps topics that were deleted and used again to the offset of the first record afterwards.
    """

    wanted: NDArray[Any]
    corrections: list[Correction] = field(default_factory=list)
    without_place: list[int] = field(default_factory=list)
    reused: dict[str, int] = field(default_factory=dict)


def number_records(
    records: NDArray[Any],
    wanted: NDArray[Any],
    units: NDArray[Any],
    numbers: QueueNumbers,
    layout: LogLayout,
    *,
    file_units: int,
    deleted: Mapping[str, int],
    topic_bytes: Callable[[int], int],
) -> Numbering:
    """Give each record of a copy its place; `wanted` are the rows of the records that stay.

    `deleted` are topics with the offset below which their records ask for no unit. `topic_bytes` returns the length of
    the topic of the record at an offset: the topic of a corrected record keeps its length.

    Cost: some sorts; one step of Python per record of queues whose numbers do not go up one by one.
    """
    reused = {
        topic: offset
        for topic, offset in reused_topics(wanted, units, numbers.keys).items()
        if offset > deleted.get(topic, 0)
    }
    below = np.array([reused.get(key[0], 0) for key in numbers.keys], "i8")
    if len(wanted):
        wanted = wanted[wanted["offset"] >= below[wanted["queue"]]]
    wanted = wanted.copy()
    made = Numbering(wanted, reused=reused)
    at = np.searchsorted(records["offset"], wanted["offset"])
    is_own = records["queue"][at] == wanted["queue"] if len(wanted) else np.zeros(0, bool)
    has_unit = supported(wanted, units)
    by_units = _by_units(wanted, units, is_own, has_unit, numbers, topic_bytes)
    before = {row: _place(wanted, row, numbers) for row in by_units}
    for row, unit in by_units.items():
        wanted["queue"][row], wanted["queue_offset"][row] = units["queue"][unit], units["queue_offset"][unit]
        has_unit[row] = True
    for row, queue in _alone(wanted, is_own & ~has_unit, numbers, topic_bytes):
        before.setdefault(row, _place(wanted, row, numbers))
        wanted["queue"][row] = queue
    dropped: set[int] = set()
    order = np.lexsort((wanted["offset"], wanted["queue"]))
    order = order[~wanted["is_light"][order]]
    queues = wanted["queue"][order]
    starts = np.flatnonzero(np.diff(queues, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        mine = order[start:stop]
        line = wanted["queue_offset"][mine]
        if line[0] >= 0 and line[-1] < NUMBER_MAX and bool((np.diff(line) == 1).all()):
            continue
        _Line(wanted, mine, has_unit, layout, file_units, before, dropped, numbers).settle()
    _settle_light(wanted, dropped)
    for row, was in sorted(before.items(), key=lambda each: int(wanted["offset"][each[0]])):
        if row not in dropped and is_own[row] and was != _place(wanted, row, numbers):
            made.corrections.append(Correction(int(wanted["offset"][row]), was, _place(wanted, row, numbers)))
    made.without_place = sorted(
        int(wanted["offset"][row]) for row in dropped if is_own[row] and not wanted["is_light"][row]
    )
    kept = np.ones(len(wanted), bool)
    kept[list(dropped)] = False
    kept &= ~np.isin(wanted["offset"], made.without_place)
    made.wanted = wanted[kept]
    return made


class _Line:
    """The records of one queue in the order of the log."""

    def __init__(
        self,
        wanted: NDArray[Any],
        rows: NDArray[Any],
        has_unit: NDArray[Any],
        layout: LogLayout,
        file_units: int,
        before: dict[int, tuple[str, int, int]],
        dropped: set[int],
        numbers: QueueNumbers,
    ) -> None:
        self._wanted = wanted
        self._rows = rows.tolist()
        self._has_unit = has_unit
        self._layout = layout
        self._jump_max = file_units * _JUMP_FILES_MAX
        self._before = before
        self._dropped = dropped
        self._numbers = numbers

    def settle(self) -> None:
        """Correct or drop what does not go on.

        Of several generations that claim the same numbers one is kept.
        """
        generations: list[list[int]] = [[]]
        for index, row in enumerate(self._rows):
            last = generations[-1][-1] if generations[-1] else None
            if self._goes_on(last, row, index):
                generations[-1].append(row)
            elif last is not None and self._begins_again(last, index):
                generations.append([row])
            elif (number := self._expected(last, index)) is not None:
                self._before.setdefault(row, _place(self._wanted, row, self._numbers))
                self._wanted["queue_offset"][row] = number
                generations[-1].append(row)
            else:
                self._dropped.add(row)
        if len(generations) > 1:
            self._choose(generations)

    def _number(self, index: int) -> int | None:
        return int(self._wanted["queue_offset"][self._rows[index]]) if index < len(self._rows) else None

    def _room(self, last: int | None, row: int) -> int:
        """Return how many records can be lost between two rows."""
        start = -1 if last is None else int(self._wanted["offset"][last])
        return self._layout.lost_bytes(start, int(self._wanted["offset"][row])) // RECORD_BYTES_MIN

    def _goes_on(self, last: int | None, row: int, index: int) -> bool:
        number, following = self._number(index), self._number(index + 1)
        assert number is not None
        if not 0 <= number < NUMBER_MAX:
            return False
        if last is None:
            is_outlier = following is not None and following != number + 1 and self._follows_alone(index + 1)
            is_outlier |= following is None and self._begins_at_0() and number > self._room(None, row)
            return bool(self._has_unit[row]) or not is_outlier
        before = int(self._wanted["queue_offset"][last])
        if number == before + 1:
            return True
        if number <= before:
            return False
        if self._has_unit[row]:
            return number - before <= self._jump_max
        if following is not None and before < following <= number:
            return False  # the next record goes on with the one before: this one is the outlier
        if following == number + 1:
            return number - before <= self._jump_max
        return number - before - 1 <= self._room(last, row)

    def _begins_at_0(self) -> bool:
        return self._layout.bases[0] == 0

    def _follows_alone(self, index: int) -> bool:
        """Tell whether the records from an index on go up one by one, two of them at least."""
        first, second = self._number(index), self._number(index + 1)
        return first is not None and second == first + 1

    def _begins_again(self, last: int, index: int) -> bool:
        """Tell whether a new generation of the queue begins: numbers from 0, or with their units."""
        number, following = self._number(index), self._number(index + 1)
        assert number is not None
        if number < 0 or number > int(self._wanted["queue_offset"][last]):
            return False
        if self._has_unit[self._rows[index]]:
            return True
        return following == number + 1

    def _expected(self, last: int | None, index: int) -> int | None:
        """Return the one number that the neighbours leave for a record, else None."""
        row, following = self._rows[index], self._number(index + 1)
        if self._has_unit[row]:
            return None
        if last is None and following is None:
            return 0 if self._begins_at_0() else None
        if last is None:
            return following - 1 if following is not None and following > 0 else None
        before = int(self._wanted["queue_offset"][last])
        if following is not None and following - 1 > before and following - 2 - before <= self._room(last, row):
            return following - 1
        if following is None or following > before + 1:
            return before + 1
        return None

    def _choose(self, generations: list[list[int]]) -> None:
        """Keep the generation with the most units, and of several the last one.

        Of the others, a row with a unit and without a rival is kept.
        """
        support = [sum(bool(self._has_unit[row]) for row in rows) for rows in generations]
        best = max(range(len(generations)), key=lambda each: (support[each], each))
        taken = {int(self._wanted["queue_offset"][row]) for row in generations[best]}
        least = min(taken)
        for number, rows in enumerate(generations):
            for row in rows if number != best else ():
                claimed = int(self._wanted["queue_offset"][row])
                is_before = claimed < least and not any(support)
                if claimed in taken or not (self._has_unit[row] or is_before):
                    self._dropped.add(row)
                else:
                    taken.add(claimed)


def _settle_light(wanted: NDArray[Any], dropped: set[int]) -> None:
    """Drop the rows of light queues that begin again: RocketMQ 4.9.3 takes them for repeats."""
    rows = np.flatnonzero(wanted["is_light"])
    rows = rows[np.lexsort((wanted["offset"][rows], wanted["queue"][rows]))]
    highest: dict[int, int] = {}
    for row in rows.tolist():
        queue, number = int(wanted["queue"][row]), int(wanted["queue_offset"][row])
        if 0 <= number < NUMBER_MAX and number > highest.get(queue, -1):
            highest[queue] = number
        else:
            dropped.add(row)


def _by_units(
    wanted: NDArray[Any],
    units: NDArray[Any],
    is_own: NDArray[Any],
    has_unit: NDArray[Any],
    numbers: QueueNumbers,
    topic_bytes: Callable[[int], int],
) -> dict[int, int]:
    """Return the rows to which one unit at a free place points, each with the unit."""
    unsure = np.flatnonzero(is_own & ~has_unit & ~wanted["is_light"])
    unsure = unsure[np.isin(wanted["offset"][unsure], units["offset"])]
    found = {row: _unit_for(wanted, units, row, numbers, topic_bytes) for row in unsure[:_UNSURE_MAX].tolist()}
    return {row: unit for row, unit in found.items() if unit is not None}


def _unit_for(
    wanted: NDArray[Any],
    units: NDArray[Any],
    row: int,
    numbers: QueueNumbers,
    topic_bytes: Callable[[int], int],
) -> int | None:
    pointing = np.flatnonzero((units["offset"] == wanted["offset"][row]) & (units["size"] == wanted["size"][row]))
    further = wanted["offset"] == wanted["offset"][row]
    further[row] = False
    pointing = pointing[~np.isin(units["queue"][pointing], wanted["queue"][further])]
    if len(pointing) != 1:
        return None
    unit = int(pointing[0])
    queue, number = int(units["queue"][unit]), units["queue_offset"][unit]
    if not _fits(queue, row, wanted, numbers, topic_bytes) or not 0 <= number < NUMBER_MAX:
        return None
    is_claimed = bool(((wanted["queue"] == queue) & (wanted["queue_offset"] == number)).any())
    is_same_code = bool(wanted["is_delayed"][row]) or units["tags_code"][unit] == wanted["tags_code"][row]
    return None if is_claimed or not is_same_code else unit


def _alone(
    wanted: NDArray[Any], unsure: NDArray[Any], numbers: QueueNumbers, topic_bytes: Callable[[int], int]
) -> list[tuple[int, int]]:
    """Return rows that are alone in their queue and fill a gap of one other queue.

    Each comes with that queue.
    """
    counts = np.bincount(wanted["queue"], minlength=len(numbers.keys)) if len(wanted) else np.zeros(0, int)
    rows = [row for row in np.flatnonzero(unsure & ~wanted["is_light"]).tolist() if counts[wanted["queue"][row]] == 1]
    found = []
    for row in rows[:_UNSURE_MAX]:
        offset, number = wanted["offset"][row], wanted["queue_offset"][row]
        near = wanted[(wanted["queue_offset"] >= number - 1) & (wanted["queue_offset"] <= number + 1)]
        before = near["queue"][(near["queue_offset"] == number - 1) & (near["offset"] < offset)]
        after = near["queue"][(near["queue_offset"] == number + 1) & (near["offset"] > offset)]
        queues = set(before.tolist()) & set(after.tolist()) - set(
            near["queue"][near["queue_offset"] == number].tolist()
        )
        stated = numbers.keys[int(wanted["queue"][row])]
        alike = [
            queue
            for queue in queues
            if _is_alike(numbers.keys[queue], stated) and _fits(queue, row, wanted, numbers, topic_bytes)
        ]
        if len(alike) == 1:
            found.append((row, alike[0]))
    return found


def _is_alike(key: QueueKey, stated: QueueKey) -> bool:
    """Tell whether one damaged byte can make one queue of the other."""
    if key[0] == stated[0]:
        return True
    if len(key[0]) != len(stated[0]):
        return "\N{REPLACEMENT CHARACTER}" in stated[0] and key[1] == stated[1]
    return key[1] == stated[1] and sum(one != other for one, other in zip(key[0], stated[0], strict=True)) == 1


def _fits(queue: int, row: int, wanted: NDArray[Any], numbers: QueueNumbers, topic_bytes: Callable[[int], int]) -> bool:
    """Tell whether the topic of a queue has room in a record."""
    topic, stated = numbers.keys[queue][0], numbers.keys[int(wanted["queue"][row])][0]
    if "\N{REPLACEMENT CHARACTER}" in topic:
        return False
    return topic == stated or len(topic.encode()) == topic_bytes(int(wanted["offset"][row]))


def _place(wanted: NDArray[Any], row: int, numbers: QueueNumbers) -> tuple[str, int, int]:
    return (*numbers.keys[int(wanted["queue"][row])], int(wanted["queue_offset"][row]))
