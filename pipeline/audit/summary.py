"""Sum up a store for its operator: messages, bytes, times and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.reused_topics import NUMBER_MAX, supported
from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan
from tornpage.pipeline.rows.columns import QueueKey

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QueueSummary", "StoreSummary", "TopicSummary", "summary_of"]

_GAP_MAX = 1_000_000
"""A longer row of missing numbers is no loss: one number beside it is wrong."""


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """Messages of one queue.

    `lost`: queue offsets that no valid record has. Those with a unit that points into a log file without permission to
    read do not count. `unreachable`: records without a right unit. `at_risk`: records past
    the first place where the log does not go on, which a broker cuts when it recovers.
    """

    topic: str
    queue_id: int
    messages: int
    lost: int
    unreachable: int
    at_risk: int


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """Records, bytes of log and queue files, and store times (ms) of one topic."""

    topic: str
    records: int
    log_bytes: int
    queue_bytes: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """Queues with a message lost, unreachable or at risk; all topics, the largest first."""

    queues: tuple[QueueSummary, ...]
    topics: tuple[TopicSummary, ...]
    first_ms: int | None
    last_ms: int | None
    total_bytes: int

    @property
    def counts(self) -> dict[str, int]:
        """Return how many messages are lost, unreachable and at risk."""
        return {name: sum(getattr(each, name) for each in self.queues) for name in ("lost", "unreachable", "at_risk")}

    def document(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        return {
            **self.counts,
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "total_bytes": self.total_bytes,
            "topics": [asdict(each) for each in self.topics],
            "queues": [asdict(each) for each in self.queues],
        }


def summary_of(plan: StorePlan, facts: StoreFacts, rows: StoreRows) -> StoreSummary:
    """Sum up what was read of a store. Cost: some sorts of records and units."""
    wanted = rows.wanted
    keys = rows.numbers.keys
    is_missing = ~supported(wanted, rows.units) if plan.has_queues else np.zeros(len(wanted), bool)
    is_cut = wanted["offset"] >= facts.prefix_end
    hidden = _hidden_units(rows.units, facts)
    order = np.lexsort((wanted["queue_offset"], wanted["queue"]))
    starts = np.searchsorted(wanted["queue"][order], np.arange(len(keys) + 1))
    queues = []
    for number, (topic, queue_id) in enumerate(keys):
        mine = order[starts[number] : starts[number + 1]]
        known = np.concatenate([wanted["queue_offset"][mine], hidden["queue_offset"][hidden["queue"] == number]])
        lost = _lost(known, (topic, queue_id), facts)
        unreachable, at_risk = int(is_missing[mine].sum()), int(is_cut[mine].sum())
        if lost or unreachable or at_risk:
            queues.append(QueueSummary(topic, queue_id, len(mine), lost, unreachable, at_risk))
    times = rows.records["timestamp"][rows.records["timestamp"] > 0]
    return StoreSummary(
        tuple(sorted(queues, key=lambda each: (each.topic, each.queue_id))),
        _topics(plan, rows),
        int(times.min()) if len(times) else None,
        int(times.max()) if len(times) else None,
        sum(file.size_bytes for file in plan.view.files)
        + sum(file.size_bytes for file in plan.queue_files)
        + sum(part.file.size_bytes for part in plan.index.parts),
    )


def _hidden_units(units: NDArray[Any], facts: StoreFacts) -> NDArray[Any]:
    """Return the units that point into log files which could not be read."""
    is_hidden = np.zeros(len(units), bool)
    for each in facts.hidden_log:
        is_hidden |= (units["offset"] >= each.start) & (units["offset"] < each.stop)
    return units[is_hidden]


def _lost(numbers: NDArray[Any], key: QueueKey, facts: StoreFacts) -> int:
    """Return how many numbers are missing between the first and the last of a queue."""
    numbers = np.unique(numbers[(numbers >= 0) & (numbers < NUMBER_MAX)])
    first, end = facts.first_current.get(key), facts.next_offset.get(key, 0)
    if first is None and not len(numbers):
        return 0
    begin = min(first if first is not None else NUMBER_MAX, int(numbers[0]) if len(numbers) else NUMBER_MAX)
    line = np.concatenate([[begin - 1], numbers, [max(end, int(numbers[-1]) + 1 if len(numbers) else 0)]])
    gaps = np.diff(line) - 1
    return int(gaps[(gaps > 0) & (gaps < _GAP_MAX)].sum())


def _topics(plan: StorePlan, rows: StoreRows) -> tuple[TopicSummary, ...]:
    queue_bytes: dict[str, int] = {}
    for file in plan.queue_files:
        queue_bytes[file.topic] = queue_bytes.get(file.topic, 0) + file.size_bytes
    by_topic: dict[str, list[int]] = {}
    for number, (topic, _) in enumerate(rows.numbers.keys):
        by_topic.setdefault(topic, []).append(number)
    count = len(rows.numbers.keys)
    records = np.bincount(rows.records["queue"], minlength=count)
    sizes = np.bincount(rows.records["queue"], weights=rows.records["size"], minlength=count)
    first = np.full(count, NUMBER_MAX * 1024, "i8")
    last = np.zeros(count, "i8")
    np.minimum.at(first, rows.records["queue"], rows.records["timestamp"])
    np.maximum.at(last, rows.records["queue"], rows.records["timestamp"])
    found = [_topic(topic, numbers, records, sizes, first, last, queue_bytes) for topic, numbers in by_topic.items()]
    return tuple(sorted(found, key=lambda each: (-each.log_bytes - each.queue_bytes, each.topic)))


def _topic(
    topic: str,
    numbers: list[int],
    records: NDArray[Any],
    sizes: NDArray[Any],
    first: NDArray[Any],
    last: NDArray[Any],
    queue_bytes: Mapping[str, int],
) -> TopicSummary:
    total = int(records[numbers].sum())
    return TopicSummary(
        topic,
        total,
        int(sizes[numbers].sum()),
        queue_bytes.get(topic, 0),
        int(first[numbers].min()) if total else 0,
        int(last[numbers].max()),
    )
