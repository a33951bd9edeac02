"""Answers of this store to the questions put to RocketMQ, as `golden_answers` has them."""

import hashlib
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tests.support.impl.golden_answers import (
    ASKED_MAX,
    CHECKPOINT,
    OF_INDEX_FILE,
    OF_LOG,
    OF_QUEUE,
    PROBED,
    PULLED,
    SCALARS,
    Answers,
    Row,
    entry_row,
)
from tornpage.impl.message import codec
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.queue.consume_queue_ext import is_address
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.impl.store import MessageStore

__all__ = ["answers_of_store"]

INDEX_HEADER = struct.Struct(">qqqqii")
ROLLED_BACK = 0x0C


def answers_of_store(store: MessageStore, state: dict[str, Any], directory: Path) -> Answers:
    """Ask a store the questions of a dump."""
    return dict(_asked(store, state, directory))


def _asked(store: MessageStore, state: dict[str, Any], directory: Path) -> Iterator[tuple[tuple[str, str], Row]]:
    full = "pullProbes" in state
    checkpoint = store._held.checkpoint
    scalars = {
        "minPhyOffset": store.min_offset,
        "maxPhyOffset": store.max_offset,
        "dispatchBehindBytes": store.dispatch_behind_bytes,
        "writeable": store.read_only_reason is None and store.running_flags.writeable,
        "readable": store.running_flags.readable,
        "earliestMessageTime": _java_time(store.earliest_message_time()),
    }
    yield ("store", ""), {name: scalars[name] for name in SCALARS if name in state}
    times = checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp
    yield ("checkpoint", ""), dict(zip(CHECKPOINT, times, strict=True))
    yield from _log_of(store, state)
    for topic, queue_id in store.queues():
        yield from _queue_of(store, topic, queue_id, full=full)
    for number, path in enumerate(sorted((directory / "index").glob("*"))):
        yield ("indexFiles", str(number)), _index_header(path)
    for number, query in enumerate(state["queries"]):
        yield ("queries", str(number)), _query_of(store, query)
    yield ("indexCheck", ""), _index_check_of(store)
    if full:
        yield from _probes_of(store, state)


def _java_time(store_timestamp: int | None) -> int:
    """Return a store time as RocketMQ answers it: -1 where there is none."""
    return -1 if store_timestamp is None else store_timestamp


def _log_of(store: MessageStore, state: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Row]]:
    for stored in store.messages():
        with _record_at(store, stored.offset) as buffer:
            sha = hashlib.sha256(buffer.view).hexdigest()
        row = ("record", stored.size_bytes, stored.topic, stored.queue_id, stored.queue_offset, stored.offset,
               stored.sys_flag, stored.store_timestamp, sha)  # fmt: skip
        yield ("log", str(stored.offset)), dict(zip(OF_LOG, row, strict=True))
    for asked in state["log"]:
        rest = store.commit_log_data(asked["phy"]) if asked["kind"] == "blank" else None
        if rest is not None:
            with rest:
                size, magic = struct.unpack(">iI", rest.view[:8])
            if magic == codec.BLANK_MAGIC & 0xFFFFFFFF:
                yield ("log", str(asked["phy"])), dict.fromkeys(OF_LOG) | {"kind": "blank", "size": size}


def _record_at(store: MessageStore, offset: int) -> RecordBuffer:
    buffer = store.select_message_by_offset(offset)
    assert buffer is not None
    return buffer


def _queue_of(store: MessageStore, topic: str, queue_id: int, *, full: bool) -> Iterator[tuple[tuple[str, str], Row]]:
    name = f"{topic}/{queue_id}"
    queue = store._held.derived.queues.find(topic, queue_id)
    assert queue is not None
    least, most = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
    earliest = _java_time(store.earliest_message_time(topic, queue_id))
    row = (least, most, store.message_total_in_queue(topic, queue_id), queue.max_physic_offset,
           store._held.queue_offsets.next_offset(queue.key), earliest)  # fmt: skip
    yield ("queues", name), dict(zip(OF_QUEUE, row, strict=True))
    codes = {}
    for number in range(least, most):
        unit = queue.unit(number)
        if unit is None:
            continue
        codes[number], ext = unit.tags_code, None
        if is_address(unit.tags_code) and queue.ext is not None:
            found = queue.ext.get(unit.tags_code)
            assert found is not None
            codes[number] = found.tags_code
            ext = {
                "tagsCode": found.tags_code,
                "msgStoreTime": found.store_timestamp,
                "bitMap": found.bit_map.hex() or None,
                "size": 20 + len(found.bit_map),
            }
        yield ("entries", f"{name} {number}"), entry_row(unit.offset, unit.size, unit.tags_code, ext)
    offset = least
    while offset < most:
        with store.get_message(topic, queue_id, offset) as result:
            answer = result.status.value, result.next_begin_offset, len(result.messages)
            yield ("pulls", f"{name} {offset}"), dict(zip(PULLED, answer, strict=True))
            for buffer in result.messages:
                number = buffer.queue_offset
                yield ("messages", f"{name} {number}"), _message_row(buffer, codes[number], full=full)
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset


def _message_row(buffer: RecordBuffer, tags_code: int, *, full: bool) -> Row:
    stored = buffer.message()
    sha = hashlib.sha256(buffer.view).hexdigest()
    row = {
        "commitLogOffset": buffer.offset,
        "storeSize": buffer.size_bytes,
        "recordSha256": sha,
        "queueOffset": stored.queue_offset,
        "physicOffset": stored.offset,
        "topic": stored.topic,
        "queueId": stored.queue_id,
    }
    if not full:
        return row
    properties = dict(stored.properties)
    return row | {
        "tagsCode": tags_code,
        "storedSize": stored.size_bytes,
        "bodyCRC": stored.body_crc,
        "bodyLength": len(stored.body),
        "bodySha256": hashlib.sha256(stored.body).hexdigest(),
        "tags": properties.get("TAGS"),
        "keys": properties.get("KEYS"),
        "uniqKey": properties.get("UNIQ_KEY"),
        "properties": properties,
        "propertiesLength": len(codec.properties_of_record(buffer.view, 0).encode()),
        "sysFlag": stored.sys_flag,
        "flag": stored.flag,
        "bornTimestamp": stored.born_timestamp,
        "bornHost": list(stored.born_host),
        "storeTimestamp": stored.store_timestamp,
        "storeHost": list(stored.store_host),
        "reconsumeTimes": stored.reconsume_times,
        "preparedTransactionOffset": stored.prepared_transaction_offset,
        "msgId": stored.message_id,
    }


def _index_header(path: Path) -> Row:
    with path.open("rb") as file:
        *row, count = INDEX_HEADER.unpack(file.read(INDEX_HEADER.size))
    return dict(zip(OF_INDEX_FILE, (*row, count or 1), strict=True))


def _query_of(store: MessageStore, query: dict[str, Any]) -> Row:
    topic, key, wanted, begin, end = (query[name] for name in ("topic", "key", "maxNum", "begin", "end"))
    index = store._held.derived.index
    assert index is not None
    candidates = islice(index.candidates(key_hash(topic, key), begin, end), min(wanted, ASKED_MAX))
    with store.query_message(topic, key, max_num=wanted, begin_ms=begin, end_ms=end) as result:
        return {
            "indexOffsets": list(candidates),
            "messages": [[buffer.offset, buffer.size_bytes] for buffer in result.messages],
            "indexLastUpdateTimestamp": result.index_last_update_timestamp or 0,
            "indexLastUpdatePhyOffset": result.index_last_update_phyoffset or 0,
        }


def _keys_of(stored: StoredMessage) -> list[str]:
    """Return the keys that the index has to have for a record."""
    if stored.sys_flag & ROLLED_BACK == ROLLED_BACK:
        return []
    own, given = stored.properties.get("UNIQ_KEY"), stored.properties.get("KEYS")
    return [key for key in (own, *(given or "").split(" ")) if key]


def _index_check_of(store: MessageStore) -> Row:
    keys = found = undecided = 0
    missing = []
    for stored in store.messages():
        lost = False
        for key in _keys_of(stored):
            keys += 1
            with store.query_message(stored.topic, key, max_num=ASKED_MAX) as result:
                offsets = [buffer.offset for buffer in result.messages]
            if stored.offset in offsets:
                found += 1
            elif len(offsets) >= ASKED_MAX:
                undecided += 1
            else:
                lost = True
        if lost:
            missing.append(stored.offset)
    return {
        "keysOfLogRecords": keys,
        "found": found,
        "undecidedMoreThan64Hits": undecided,
        "commitLogOffsetsWithMissingKeys": missing,
    }


def _probes_of(store: MessageStore, state: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Row]]:
    for offset, _ in state["lookMessageByOffset"]:
        yield ("lookMessageByOffset", str(offset)), {"message": _look(store, offset)}
    for number, pull in enumerate(state["tagFilterPulls"]):
        tags = TagFilter(pull["expression"])
        wanted = pull["topic"], pull["queueId"], pull["offset"]
        with store.get_message(*wanted, max_msg_nums=pull["maxMsgNums"], message_filter=tags) as result:
            yield (
                ("tagFilterPulls", str(number)),
                {
                    "status": result.status.value,
                    "nextBeginOffset": result.next_begin_offset,
                    "commitLogOffsets": [buffer.offset for buffer in result.messages],
                },
            )
    for queue in state["offsetInQueueByTime"]:
        for time, *_ in queue["answers"]:
            found = store.offset_in_queue_by_time(queue["topic"], queue["queueId"], time)
            about = f"{queue['topic']}/{queue['queueId']} {time}"
            yield ("offsetInQueueByTime", about), {"byFileTimes": found, "inFirstFile": found}
    for number, probe in enumerate(state["pullProbes"]):
        wanted = probe["topic"], probe["queueId"], probe["offset"]
        with store.get_message(*wanted, max_msg_nums=probe["maxMsgNums"]) as result:
            answer = (result.status.value, result.next_begin_offset, result.min_offset, result.max_offset,
                      len(result.messages))  # fmt: skip
            yield ("pullProbes", str(number)), dict(zip(PROBED, answer, strict=True))
    for number, one in enumerate(state["singleEntry"]):
        place = one["topic"], one["queueId"], one["offset"]
        yield (
            ("singleEntry", str(number)),
            {
                "commitLogOffset": store.commit_log_offset_in_queue(*place) or 0,
                "storeTimestamp": _java_time(store.store_timestamp_in_queue(*place)),
            },
        )


def _look(store: MessageStore, offset: int) -> Row | None:
    buffer = store.select_message_by_offset(offset)
    if buffer is None:
        return None
    with buffer:
        stored = buffer.message()
    return {
        "topic": stored.topic,
        "queueId": stored.queue_id,
        "queueOffset": stored.queue_offset,
        "physicOffset": stored.offset,
        "storeSize": stored.size_bytes,
        "msgId": stored.message_id,
        "bodySha256": hashlib.sha256(stored.body).hexdigest(),
    }
