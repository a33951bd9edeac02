"""The interpreted dispatcher: from log records to queue units and index entries.

A record gives a unit in its queue unless it is a prepared or rolled-back transaction. It gives the same unit in each
queue that it names, at the queue offset noted in the record. It gives index entries for its UNIQ_KEY and each of its
KEYS unless it was rolled back. Checksums of readable records were verified at put or recovery; here only lengths and
positions are checked. Source: `CommitLog.checkMessageAndReturnSize`,
`DefaultMessageStore.CommitLogDispatcherBuildConsumeQueue`, `CommitLogDispatcherBuildIndex`, `IndexService.buildIndex`,
docs/format.md.
"""

import logging
import struct
from collections.abc import Mapping
from typing import NamedTuple

from tornpage.impl.message.codec import (
    BLANK_BYTES,
    BLANK_MAGIC,
    BORN_HOST_V6,
    MESSAGE_MAGIC,
    SMALLEST_RECORD_BYTES,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    has_consume_queue,
)
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, DelayLevels, delay_level_of
from tornpage.impl.message.dispatching import (
    BLANK,
    UNIT_BYTES,
    Dispatched,
    DispatchRules,
    ExtDraft,
    FilterBitMap,
    IndexPuts,
    QueueRun,
)
from tornpage.impl.message.key_hash import java_hash, key_hash
from tornpage.impl.message.multi_dispatch import QueueKey, offsets_in

__all__ = ["DispatchedRecord", "bit_map_of_record", "dispatch_records", "named_queues", "read_record", "tags_code_of"]

_LOG = logging.getLogger("tornpage.store")

_ROLLED_BACK = 0x0C
_SCHEDULE_TOPIC = SCHEDULE_TOPIC.encode()
_HEAD = struct.Struct(">iiiiiqqi")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_U16 = struct.Struct(">H")
_UNIT = struct.Struct(">qiq")
_BLANK = struct.Struct(">ii")
assert _UNIT.size == UNIT_BYTES


class DispatchedRecord(NamedTuple):
    """The fields of a record that dispatch needs. `store_timestamp` is in milliseconds."""

    offset: int
    size_bytes: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    text: str


def dispatch_records(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Dispatch the records of a log file from `position` on.

    Stops at `end`, at a blank, at bytes that are no record, or with the record that reaches `rules.batch_bytes_max`.
    """
    start, records, store_timestamp, base_offset = position, 0, 0, 0
    runs: list[QueueRun] = []
    index = IndexPuts([], [], [])
    reason = None
    while position < end and position - start < rules.batch_bytes_max:
        record = read_record(view, position, end)
        if isinstance(record, str):
            reason = record
            break
        if records and record.offset - position != base_offset:
            reason = "bad_position"
            break
        base_offset = record.offset - position
        pairs = rules.parse(record.text)
        runs += _runs(record, pairs, rules)
        if rules.index and record.sys_flag & TRANSACTION_MASK != _ROLLED_BACK:
            _add_entries(index, record, pairs)
        store_timestamp = max(store_timestamp, record.store_timestamp)
        position += record.size_bytes
        records += 1
    return Dispatched(position, records, runs, index, store_timestamp, reason)


def read_record(view: memoryview, position: int, end: int) -> DispatchedRecord | str:
    """Read the record at `position`, which must end at or before `end`.

    Otherwise return "blank" or the defect.
    """
    if position + BLANK_BYTES > end:
        return "past_end"
    total, magic = _BLANK.unpack_from(view, position)
    if magic != MESSAGE_MAGIC:
        return BLANK if magic == BLANK_MAGIC and total == len(view) - position else "bad_magic"
    if total < SMALLEST_RECORD_BYTES or position + total > end:
        return "bad_length"
    _, _, _, queue_id, _, queue_offset, offset, sys_flag = _HEAD.unpack_from(view, position)
    if offset < position or (offset - position) % len(view):
        return "bad_position"
    born_host_bytes = 20 if sys_flag & BORN_HOST_V6 else 8
    body_at = position + 80 + born_host_bytes + (12 if sys_flag & STORE_HOST_V6 else 0)
    record_end = position + total
    if body_at + 3 > record_end:
        return "bad_length"
    topic_at = body_at + _I32.unpack_from(view, body_at - 4)[0]
    if not body_at <= topic_at <= record_end - 3:
        return "bad_length"
    properties_at = topic_at + 3 + view[topic_at]
    if properties_at > record_end or _U16.unpack_from(view, properties_at - 2)[0] != record_end - properties_at:
        return "bad_length"
    return DispatchedRecord(
        offset=offset,
        size_bytes=total,
        topic=bytes(view[topic_at + 1 : properties_at - 2]),
        queue_id=queue_id,
        queue_offset=queue_offset,
        sys_flag=sys_flag,
        store_timestamp=_I64.unpack_from(view, position + 48 + born_host_bytes)[0],
        text=bytes(view[properties_at:record_end]).decode(errors="replace"),
    )


def _runs(record: DispatchedRecord, pairs: Mapping[str, str], rules: DispatchRules) -> list[QueueRun]:
    """Return one run for each queue that holds the record, its own queue first."""
    if not has_consume_queue(record.sys_flag):
        return []
    tags_code = tags_code_of(record.topic, pairs, record.store_timestamp, rules.delay_levels)
    unit = _UNIT.pack(record.offset, record.size_bytes, tags_code)
    end_offset = record.offset + record.size_bytes
    ext: tuple[ExtDraft, ...] = ()
    if rules.ext:
        bit_map = bit_map_of_record(record, pairs, rules.bit_map_of)
        ext = (ExtDraft(tags_code, record.store_timestamp, bit_map),)
    own = (record.topic, record.queue_id)
    named = {} if rules.multi_dispatch is None else named_queues(record, rules)
    return [
        QueueRun(own, record.queue_offset, unit, end_offset, ext, named=own in named),
        *(
            QueueRun(key, queue_offset, unit, end_offset, named=True)
            for key, queue_offset in named.items()
            if key != own  # the own run has that unit: equal queues get equal offsets
        ),
    ]


def named_queues(record: DispatchedRecord, rules: DispatchRules) -> dict[QueueKey, int]:
    """Return the queues that a record names, with its offset in each.

    The result is empty if the two lists differ in length.
    """
    if rules.multi_dispatch is None:
        return {}
    topic = record.topic.decode(errors="replace")
    queues = rules.multi_dispatch.queues_of(topic, record.queue_id, record.text)
    offsets = offsets_in(record.text) if queues else ()
    return dict(zip(queues, offsets, strict=True)) if len(queues) == len(offsets) else {}


def tags_code_of(topic: bytes, pairs: Mapping[str, str], store_timestamp: int, levels: DelayLevels) -> int:
    """Return the tags code of a record.

    That is the hash of TAGS, or for a delayed message its due time in milliseconds. Source:
    `MessageExtBrokerInner.tagsString2tagsCode`, `ScheduleMessageService.computeDeliverTimestamp`.
    """
    if topic == _SCHEDULE_TOPIC and "DELAY" in pairs:
        level = min(delay_level_of(pairs["DELAY"]) or 0, levels.highest)
        if level > 0:
            return _int64(store_timestamp + levels.delay_ms(level))
    return java_hash(pairs.get("TAGS", ""))


def _int64(number: int) -> int:
    """Wrap a number to a signed 64-bit integer."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def bit_map_of_record(record: DispatchedRecord, pairs: Mapping[str, str], bit_map_of: FilterBitMap | None) -> bytes:
    """Return the bit map of the filters that a record passes.

    If the provider raises, the bit map is empty.
    """
    if bit_map_of is None:
        return b""
    try:
        return bit_map_of(record.topic, pairs)
    except Exception:
        _LOG.exception("bit_map_failed offset=%d", record.offset)
        return b""


def _add_entries(index: IndexPuts, record: DispatchedRecord, pairs: Mapping[str, str]) -> None:
    """Add the index entries of a record: its unique key first, then its keys in their order."""
    keys = [pairs["UNIQ_KEY"]] if "UNIQ_KEY" in pairs else []
    keys += filter(None, pairs.get("KEYS", "").split(" "))
    index.hashes.extend(key_hash(record.topic, key) for key in keys)  # type: ignore[attr-defined]
    index.offsets.extend([record.offset] * len(keys))  # type: ignore[attr-defined]
    index.store_timestamps.extend([record.store_timestamp] * len(keys))  # type: ignore[attr-defined]
