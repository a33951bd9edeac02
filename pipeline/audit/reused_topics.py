"""Recognise topics that were deleted and used again.

RocketMQ 4.9.3 does not note which topics were deleted, and numbers the messages of a topic that is used again from 0.
The log then has two records for one queue offset, and the queue has the units of the later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.findings import AuditFinding, finding_of
from tornpage.pipeline.rows.columns import QueueKey

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NUMBER_MAX", "reused_finding", "reused_topics", "supported"]

NUMBER_MAX = 2**40
"""No queue has so many messages."""


def reused_finding(store: str, topic: str, offset: int) -> AuditFinding:
    """Return the note about a topic with records of the deleted topic below an offset."""
    detail = f"its records below physical offset {offset} have no units"
    return finding_of(
        store, "CQ_TOPIC_REUSED", "note", f"consumequeue/{topic}", offset=offset, key=(topic, None), detail=detail
    )


def reused_topics(wanted: NDArray[Any], units: NDArray[Any], keys: Sequence[QueueKey]) -> dict[str, int]:
    """Return topics that were deleted and used again, with their first later offset.

    The evidence: the numbers of a queue begin again, the records from there on have their units, and none before has.
    """
    rows = np.flatnonzero(~wanted["is_light"])
    if not len(rows):
        return {}
    rows = rows[np.lexsort((wanted["offset"][rows], wanted["queue"][rows]))]
    queue, number = wanted["queue"][rows], wanted["queue_offset"][rows]
    falls = (queue[1:] == queue[:-1]) & (number[1:] <= number[:-1])
    topics = {keys[each][0] for each in np.unique(queue[1:][falls]).tolist()}
    if not topics:
        return {}
    has_unit = supported(wanted, units)
    found = {}
    for topic in topics:
        queues = [each for each, key in enumerate(keys) if key[0] == topic]
        mine = rows[np.isin(queue, queues)]
        with_unit = wanted["offset"][mine][has_unit[mine]]
        if not len(with_unit):
            continue
        first = int(with_unit.min())
        old, new = mine[wanted["offset"][mine] < first], mine[wanted["offset"][mine] >= first]
        begins_again = any(
            _least(wanted, new, each) <= _greatest(wanted, old, each) and _least(wanted, new, each) == 0
            for each in queues
        )
        if len(old) and begins_again:
            found[topic] = first
    return found


def supported(wanted: NDArray[Any], units: NDArray[Any]) -> NDArray[Any]:
    """Tell which rows have a unit at their place that points to their record."""
    if not len(wanted) or not len(units):
        return np.zeros(len(wanted), bool)
    possible = units[(units["queue_offset"] >= 0) & (units["queue_offset"] < NUMBER_MAX)]
    order = np.lexsort((possible["queue_offset"], possible["queue"]))
    possible = possible[order]
    places = possible["queue"].astype("i8") * NUMBER_MAX + possible["queue_offset"]
    sought = wanted["queue"].astype("i8") * NUMBER_MAX + np.clip(wanted["queue_offset"], 0, NUMBER_MAX - 1)
    at = np.minimum(np.searchsorted(places, sought), max(len(places) - 1, 0))
    if not len(places):
        return np.zeros(len(wanted), bool)
    found: NDArray[Any] = (
        (places[at] == sought)
        & (possible["offset"][at] == wanted["offset"])
        & (possible["size"][at] == wanted["size"])
        & (wanted["queue_offset"] >= 0)
        & (wanted["queue_offset"] < NUMBER_MAX)
    )
    return found


def _least(wanted: NDArray[Any], rows: NDArray[Any], queue: int) -> int:
    numbers = wanted["queue_offset"][rows[wanted["queue"][rows] == queue]]
    return int(numbers.min()) if len(numbers) else NUMBER_MAX


def _greatest(wanted: NDArray[Any], rows: NDArray[Any], queue: int) -> int:
    numbers = wanted["queue_offset"][rows[wanted["queue"][rows] == queue]]
    return int(numbers.max()) if len(numbers) else -1
