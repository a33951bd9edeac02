"""Answers of the model about a log, in the form of `golden_answers`.

They decide where this store and RocketMQ differ.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.model.support import message_of
from tests.support.impl.golden_answers import ASKED_MAX, OF_QUEUE, PROBED, PULLED, Answers, Row
from tornpage.impl.message.message import StoredMessage
from tornpage.model import index, queues, reading
from tornpage.model.commitlog import CommitLog, Layout, Record

__all__ = ["answers_of_model", "log_of"]

Place = tuple[str, str]


def log_of(stored: Iterable[StoredMessage]) -> CommitLog:
    """Return a log of these records, flushed and dispatched."""
    records = []
    for each in stored:
        properties = "\x02".join(f"{name}\x01{value}" for name, value in each.properties.items())
        message = message_of(each.topic, queue_id=each.queue_id, sys_flag=each.sys_flag, properties=properties)
        records.append(Record(each.offset, each.size_bytes, each.queue_offset, each.store_timestamp, message))
    end = records[-1].end_offset if records else 0
    return CommitLog(records=tuple(records), end_offset=end, flushed_offset=end, dispatched_offset=end)


def answers_of_model(log: CommitLog, layout: Layout, state: dict[str, Any]) -> Answers:
    """Return the required answers to the questions of a dump, as far as the model has them."""
    return dict(_asked(log, layout, state))


def _asked(log: CommitLog, layout: Layout, state: dict[str, Any]) -> Iterator[tuple[Place, Row]]:
    for (topic, queue_id), units in queues.queues_of(log, layout).items():
        if units:
            yield from _queue_of(log, layout, f"{topic}/{queue_id}", (topic, queue_id), units)
    for number, query in enumerate(state["queries"]):
        asked = (query[name] for name in ("topic", "key", "maxNum", "begin", "end"))
        found = index.query(log, layout, *asked)
        time, offset = index.last_update(log, layout) or (0, 0)
        yield (
            ("queries", str(number)),
            {
                "messages": [[record.offset, record.size_bytes] for record in found],
                "indexLastUpdateTimestamp": time,
                "indexLastUpdatePhyOffset": offset,
            },
        )
    yield ("indexCheck", ""), _index_check_of(log)
    if "pullProbes" in state:
        yield from _probes_of(log, layout, state)


def _queue_of(
    log: CommitLog, layout: Layout, name: str, queue: tuple[str, int], units: tuple[queues.Unit, ...]
) -> Iterator[tuple[Place, Row]]:
    least, most = units[0].queue_offset, units[-1].queue_offset + 1
    row = (least, most, most - least, units[-1].record.end_offset, most, units[0].record.store_timestamp)
    yield ("queues", name), dict(zip(OF_QUEUE, row, strict=True))
    for unit in units:
        record, about = unit.record, f"{name} {unit.queue_offset}"
        yield ("entries", about), {"offset": record.offset, "size": record.size_bytes, "tagsCode": unit.tags_code}
        yield (
            ("messages", about),
            {
                "commitLogOffset": record.offset,
                "storeSize": record.size_bytes,
                "queueOffset": record.queue_offset,
                "topic": record.message.topic,
                "queueId": record.message.queue_id,
                "tagsCode": unit.tags_code,
            },
        )
    offset = least
    while offset < most:
        pulled = reading.get_message(log, layout, *queue, offset)
        answer = pulled.status.value, pulled.next_begin_offset, len(pulled.records)
        yield ("pulls", f"{name} {offset}"), dict(zip(PULLED, answer, strict=True))
        offset = pulled.next_begin_offset


def _index_check_of(log: CommitLog) -> Row:
    """Every key is found, unless there are too many messages with it."""
    named: dict[tuple[str, str], list[int]] = {}
    for record in log.records:
        for key in dict.fromkeys(index.keys_of(record)):
            named.setdefault((record.message.topic, key), []).append(record.offset)
    found = {place: set(offsets[-ASKED_MAX:]) for place, offsets in named.items()}
    keys = [(record, key) for record in log.records for key in index.keys_of(record)]
    count = sum(record.offset in found[record.message.topic, key] for record, key in keys)
    return {
        "keysOfLogRecords": len(keys),
        "found": count,
        "undecidedMoreThan64Hits": len(keys) - count,
        "commitLogOffsetsWithMissingKeys": [],
    }


def _probes_of(log: CommitLog, layout: Layout, state: dict[str, Any]) -> Iterator[tuple[Place, Row]]:
    for number, pull in enumerate(state["tagFilterPulls"]):
        tags = None if pull["expression"] == "*" else [tag.strip() for tag in pull["expression"].split("||")]
        place = pull["topic"], pull["queueId"], pull["offset"], pull["maxMsgNums"]
        pulled = reading.get_message(log, layout, *place, tags)
        yield (
            ("tagFilterPulls", str(number)),
            {
                "status": pulled.status.value,
                "nextBeginOffset": pulled.next_begin_offset,
                "commitLogOffsets": [record.offset for record in pulled.records],
            },
        )
    for queue in state["offsetInQueueByTime"]:
        for time, *_ in queue["answers"]:
            (found,) = reading.offset_by_time(log, layout, queue["topic"], queue["queueId"], time)
            about = f"{queue['topic']}/{queue['queueId']} {time}"
            yield ("offsetInQueueByTime", about), {"byFileTimes": found, "inFirstFile": found}
    for number, probe in enumerate(state["pullProbes"]):
        place = probe["topic"], probe["queueId"], probe["offset"], probe["maxMsgNums"]
        pulled = reading.get_message(log, layout, *place)
        answer = (pulled.status.value, *pulled[1:4], len(pulled.records))
        yield ("pullProbes", str(number)), dict(zip(PROBED, answer, strict=True))
    for number, one in enumerate(state["singleEntry"]):
        entry = one["topic"], one["queueId"], one["offset"]
        unit = reading.unit_at(log, layout, *entry)
        time = reading.store_timestamp_in_queue(log, layout, *entry)
        yield (
            ("singleEntry", str(number)),
            {
                "commitLogOffset": unit.record.offset if unit else 0,
                "storeTimestamp": -1 if time is None else time,
            },
        )
