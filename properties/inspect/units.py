"""Compare a consume queue unit with the record that it points to.

Source: docs/findings.md names the codes (RocketMQ's `ConsumeQueue`, `CommitLogDispatcherBuildConsumeQueue`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.properties.decode.consumequeue import ExtReader, ExtUnit, QueueFile, QueueUnit, java_hash
from tornpage.properties.decode.findings import Code, Finding
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.numbers import queue_offsets
from tornpage.properties.decode.record import Record, message_id
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.place import derived_severity
from tornpage.properties.inspect.rows import Row, wide

__all__ = ["REBUILD", "REBUILD_INDEX", "Pointing", "judge_unit", "pointed_columns"]

REBUILD = "close the store cleanly and move the whole consumequeue directory away: it is rebuilt from the log"
REBUILD_INDEX = (
    "move index/ away: tornpage rebuilds it when it opens the store; RocketMQ 4.9.3 does not, so use --repair-to"
)
_DELAYED = "SCHEDULE_TOPIC_XXXX"

_WORDS: dict[Code, str] = {
    "CQ_EXT_UNREADABLE": "the unit points to an extension unit that is missing or damaged",
    "CQ_POINTS_NOWHERE": "no valid record begins where the unit points to",
    "CQ_WRONG_OFFSET": "the unit is at another queue offset than its record states",
    "CQ_WRONG_QUEUE": "the unit points to a record of another queue",
    "CQ_WRONG_SIZE": "the unit states another size than its record has",
    "CQ_WRONG_TAGS_CODE": "the unit's tags code is not that of its record",
}


PropertiesOf = Callable[[Record], dict[str, str]]
"""Return the properties of a record by the rule of a release."""


@dataclass(frozen=True, slots=True)
class Pointing:
    """The target of a unit.

    `state` is ok, prefill, removed (the log begins after it) or wrong; `wrong` has the codes of what does not fit.
    """

    state: str
    wrong: tuple[Code, ...]
    record: Record | None
    extension: ExtUnit | None

    def findings(self, view: StoreView, file: QueueFile, unit: QueueUnit) -> list[Finding]:
        """Return the findings about this unit.

        On a live store a unit may be ahead of what was read of the log.
        """
        found: list[Finding] = []
        for code in self.wrong:
            message = f"unit {unit.queue_offset}: {_WORDS[code]}"
            if view.live:
                again = "look again when the store is closed"
                found.append(Finding("CQ_TAIL_MOVING", "note", file.label, unit.physical_offset, message, again))
            else:
                severity = derived_severity(view)
                found.append(Finding(code, severity, file.label, unit.physical_offset, message, REBUILD))
        return found


def judge_unit(
    unit: QueueUnit,
    topic: str,
    queue_id: int,
    records: RecordReader,
    extension: ExtReader,
    *,
    log_min: int,
    properties_of: PropertiesOf,
) -> Pointing:
    """Compare a unit of the queue (topic, queue_id) with the record that it points to."""
    if unit.is_prefill:
        return Pointing("prefill", (), None, None)
    found = extension.look_up(unit.tags_code) if unit.has_address else None
    wrong: list[Code] = ["CQ_EXT_UNREADABLE"] if unit.has_address and found is None else []
    if unit.is_possible and unit.physical_offset + unit.size_bytes <= log_min:
        return Pointing("removed", tuple(wrong), None, found)
    record = records.at(unit.physical_offset) if unit.is_possible else None
    if not isinstance(record, Record):
        return Pointing("wrong", ("CQ_POINTS_NOWHERE", *wrong), None, found)
    properties = properties_of(record)
    numbers = _numbers_in(record, properties, topic, queue_id)
    if record.size_bytes != unit.size_bytes:
        wrong.append("CQ_WRONG_SIZE")
    if not numbers:
        wrong.append("CQ_WRONG_QUEUE")
    elif unit.queue_offset not in numbers:
        wrong.append("CQ_WRONG_OFFSET")
    code = found.tags_code if found is not None else None if unit.has_address else unit.tags_code
    is_due_time = record.topic_text == _DELAYED and "DELAY" in properties  # the levels are settings, not stored
    if code is not None and not is_due_time and code != java_hash(properties.get("TAGS", "")):
        wrong.append("CQ_WRONG_TAGS_CODE")
    return Pointing("wrong" if wrong else "ok", tuple(wrong), record, found)


def pointed_columns(pointing: Pointing, properties_of: PropertiesOf) -> Row:
    """Return the columns for the target of a unit."""
    columns: Row = {"state": pointing.state, "wrong": list(pointing.wrong)}
    unit, record = pointing.extension, pointing.record
    if unit is not None:
        bits = unit.bit_map.hex() or None
        columns["ext"] = {
            **wide(tagsCode=unit.tags_code),
            "msgStoreTime": unit.store_timestamp,
            "bitMap": bits,
            "size": len(unit.raw),
        }
    if record is not None:
        properties = properties_of(record)
        columns |= {
            "topic": record.topic_text,
            "queueId": record.queue_id,
            "storeTimestamp": record.store_timestamp,
            "keys": properties.get("KEYS"),
            "tags": properties.get("TAGS"),
            "uniqKey": properties.get("UNIQ_KEY"),
            "msgId": message_id(record),
            "bodyLength": len(record.body),
        }
    return columns


def _numbers_in(record: Record, properties: dict[str, str], topic: str, queue_id: int) -> set[int]:
    """Return the queue offsets of a record in a queue, including those of multi dispatch."""
    numbers: set[int] = set()
    if (record.topic_text, record.queue_id) == (topic, queue_id):
        numbers.add(record.queue_offset)
    names = properties.get("INNER_MULTI_DISPATCH", "").split(",")
    offsets = queue_offsets(properties.get("INNER_MULTI_QUEUE_OFFSET", ""))
    for name, offset in zip(names, offsets, strict=False):
        is_own = name == topic and queue_id in ({0, record.queue_id} if name.startswith("%LMQ%") else {record.queue_id})
        if is_own:
            numbers.add(offset)
    return numbers
