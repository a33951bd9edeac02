"""Compare the progress of groups and of delayed delivery with the queues on the disk.

A consumer's lag is RocketMQ's `diffTotal`: the end of the queue less the group's committed offset, 0 if it has
committed none. It is negative if the queue has lost messages that the group had read. The files are some seconds older
than the state of a live broker. Source: `ConsumerOffsetManager`, `ScheduleMessageService.buildRunningStats`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tornpage.properties.decode.config_files import parse_consumer_offsets, parse_delay_offsets
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.queue_bounds import QueueBounds
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.place import Document, derived_severity, part_document
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.queues import all_bounds
from tornpage.properties.inspect.rows import Row, wide
from tornpage.properties.inspect.small import config_rows

__all__ = ["group_rows"]

_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
_DELAYS = "config/delayOffset.json"
_CONSUMERS = ("config/consumerOffset.json", "config/lmqConsumerOffset.json")
_RETRY, _DEAD = "%RETRY%", "%DLQ%"
_SETS_BACK = "none: tornpage sets it back when it opens the store; RocketMQ 4.9.3 skips messages that come later"

Table = TypeVar("Table")
Bounds = Mapping[tuple[str, int], QueueBounds]


def group_rows(view: StoreView, group: str | None, query: Query) -> Document:
    """Return rows of consumer groups and delay levels, or of one group.

    A group has a row with its whole lag, then a row for each topic, its queues, and its dead letters. A group without
    stored offsets is known by its retry topic or its dead letters. Delay levels come last, because messages that a
    group has sent back wait there. Raises InspectError for a group that the store does not know, unless a damaged file
    may have named it.
    """
    findings: list[Finding] = []
    files = {row["file"]: row for row in config_rows(view, (*_CONSUMERS, _DELAYS), findings)}
    bounds = all_bounds(view, findings)
    rows: list[Row] = []
    known = _known(view, files, bounds, findings)
    if group is not None and not findings and all(name != group for name, _ in known):
        raise InspectError(f"no group {group!r}; `inspect STORE groups` lists them")
    for name, label in sorted(known):
        if group in (None, name):
            rows += _group_rows(name, known[name, label], bounds, label, query, findings)
    levels = dict(_table(view, files, _DELAYS, parse_delay_offsets, findings) or ())
    if group is None and query.topic in (None, _SCHEDULE_TOPIC):
        rows += _level_rows(levels, bounds, query, findings)
    groups, delays = _of_kind(rows, "group"), _of_kind(rows, "delay")
    figures = {
        "consumer_groups": len(groups),
        "diff_total": sum(row["diffTotal"] for row in groups),
        "dead_letters": sum(row["deadLetters"] for row in groups),
        "delay_levels": len(delays),
        "delayed_waiting": sum(max(0, row["diff"]) for row in delays),
    }
    shown = rows if query.limit is None else rows[: query.limit]
    return part_document(figures, shown, findings) | {"rowsLeftOut": len(rows) - len(shown)}


def _known(
    view: StoreView, files: Mapping[str, Row], bounds: Bounds, findings: list[Finding]
) -> dict[tuple[str, str], dict[str, dict[int, int]]]:
    """Return the offsets by (group, file), topic and queue id."""
    found: dict[tuple[str, str], dict[str, dict[int, int]]] = {}
    for label in _CONSUMERS:
        for (topic, name, queue_id), offset in (
            _table(view, files, label, parse_consumer_offsets, findings) or {}
        ).items():
            found.setdefault((name, label), {}).setdefault(topic, {})[queue_id] = offset
    for topic, _ in sorted(bounds):
        prefix = next((prefix for prefix in (_RETRY, _DEAD) if topic.startswith(prefix)), None)
        if prefix is not None:
            topics = found.setdefault((topic.removeprefix(prefix), _CONSUMERS[0]), {})
            if prefix == _RETRY:
                topics.setdefault(topic, {})
    return found


def _table(
    view: StoreView,
    files: Mapping[str, Row],
    label: str,
    parse: Callable[[Any], Table],
    findings: list[Finding],
) -> Table | None:
    """Return the table of a file or else of its backup; None if neither has one."""
    row = next(
        (files[name] for name in (label, f"{label}.bak") if name in files and files[name]["state"] == "ok"), None
    )
    if row is None:
        return None
    try:
        return parse(row["content"])
    except ValueError as error:
        remedy = "restore it from a copy; a store that finds no table begins with an empty one"
        findings.append(Finding("CFG_UNREADABLE", derived_severity(view), row["file"], None, str(error), remedy))
        return None


def _group_rows(
    group: str,
    topics: Mapping[str, Mapping[int, int]],
    bounds: Bounds,
    label: str,
    query: Query,
    findings: list[Finding],
) -> list[Row]:
    """Return the row of a group, rows of its topics and queues, and its dead letters.

    Sums are of the rows that `query` selects. Without any the group has no row.
    """
    rows: list[Row] = []
    for topic, known in sorted(topics.items()):
        if query.topic in (None, topic):
            rows += _topic_rows(group, topic, known, bounds, label, query, findings)
    queues, dead = _of_kind(rows, "offset"), _dead_rows(group, bounds, query)
    if not rows and not dead:
        return []
    whole: Row = {"kind": "group", "group": group, "topics": len(_of_kind(rows, "topic")), "queues": len(queues)}
    lag = sum(row["diff"] for row in queues)
    return [whole | wide(diffTotal=lag, deadLetters=sum(row["messages"] for row in dead)), *rows, *dead]


def _topic_rows(
    group: str,
    topic: str,
    known: Mapping[int, int],
    bounds: Bounds,
    label: str,
    query: Query,
    findings: list[Finding],
) -> list[Row]:
    ids = sorted({*known, *(queue_id for name, queue_id in bounds if name == topic)})
    rows = [
        _queue_row(topic, group, queue_id, known.get(queue_id), bounds.get((topic, queue_id)), label, findings)
        for queue_id in ids
        if query.queue_id in (None, queue_id)
    ]
    whole: Row = {"kind": "topic", "topic": topic, "group": group, "queues": len(rows)}
    return [whole | wide(diffTotal=sum(row["diff"] for row in rows)), *rows] if rows else []


def _dead_rows(group: str, bounds: Bounds, query: Query) -> list[Row]:
    """Return a row for each queue of the dead letters of a group. No member consumes them."""
    topic = _DEAD + group
    return [
        {"kind": "dead", "topic": topic, "group": group, "queueId": queue_id}
        | wide(
            minOffset=of_queue.min_offset,
            maxOffset=of_queue.max_offset,
            messages=of_queue.max_offset - of_queue.min_offset,
        )
        for (name, queue_id), of_queue in sorted(bounds.items())
        if name == topic and query.topic in (None, topic) and query.queue_id in (None, queue_id)
    ]


def _queue_row(
    topic: str,
    group: str,
    queue_id: int,
    offset: int | None,
    bounds: QueueBounds | None,
    label: str,
    findings: list[Finding],
) -> Row:
    least, most = (0, 0) if bounds is None else (bounds.min_offset, bounds.max_offset)
    state = _state(offset, bounds)
    if state == "beyond":
        whose = f"group {group!r} is at {offset} in {topic!r}/{queue_id}"
        findings.append(_beyond(label, f"{whose}, which ends at {most}"))
    return {
        "kind": "offset",
        "topic": topic,
        "group": group,
        "queueId": queue_id,
        **wide(consumerOffset=offset, minOffset=least, brokerOffset=most, diff=most - max(0, offset or 0)),
        "state": state,
        "file": label,
    }


def _level_rows(levels: Mapping[int, int], bounds: Bounds, query: Query, findings: list[Finding]) -> list[Row]:
    """Return a row for each level in the file or with a queue; level n waits in queue n - 1."""
    of_queues = {queue_id + 1 for topic, queue_id in bounds if topic == _SCHEDULE_TOPIC}
    rows: list[Row] = []
    for level in sorted({*levels, *of_queues}):
        if query.queue_id not in (None, level - 1):
            continue
        offset, of_queue = levels.get(level), bounds.get((_SCHEDULE_TOPIC, level - 1))
        most, state = 0 if of_queue is None else of_queue.max_offset, _state(offset, of_queue)
        if state == "beyond":
            findings.append(_beyond(_DELAYS, f"level {level} is at {offset}, its queue ends at {most}"))
        rows.append(
            {
                "kind": "delay",
                "level": level,
                "queueId": level - 1,
                **wide(delayOffset=offset, maxOffset=most, diff=most - max(0, offset or 0)),
                "scheduleMessageOffset": f"{offset or 0},{most}",
                "state": state,
                "file": _DELAYS,
            }
        )
    return rows


def _state(offset: int | None, bounds: QueueBounds | None) -> str:
    """Return the relation of an offset to its queue.

    It is ok, none (nothing committed), no queue, below or beyond.
    """
    if offset is None:
        return "none"
    if bounds is None:
        return "no queue" if offset <= 0 else "beyond"
    if offset > bounds.max_offset:
        return "beyond"
    return "below" if offset < bounds.min_offset else "ok"


def _beyond(label: str, message: str) -> Finding:
    return Finding("CFG_BEYOND_QUEUE", "note", label, None, message, _SETS_BACK)


def _of_kind(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]
