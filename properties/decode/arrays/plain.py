"""Compute the columns of one record in plain Python.

The kernel is tested against it and leaves rare records to it: those of several queues, with text that is not UTF-8, or
with more keys than the table has room for.
"""

from __future__ import annotations

from tornpage.properties.decode.arrays.columns import Column
from tornpage.properties.decode.arrays.topics import Topics
from tornpage.properties.decode.consumequeue import java_hash
from tornpage.properties.decode.index import index_hash
from tornpage.properties.decode.numbers import delay_level
from tornpage.properties.decode.record import Record, parse_properties

__all__ = ["full_row", "keys_of_properties"]

_ROLLED_BACK = 0x0C


def full_row(
    record: Record, topics: Topics, *, with_properties: bool, with_keys: bool, drops_joined: bool = False
) -> tuple[list[int], list[int]]:
    """Return the values of all columns of a record, and the index hashes of its keys.

    `drops_joined` is as in `parse_properties`.
    """
    row = [0] * len(Column)
    row[Column.OFFSET] = record.offset
    row[Column.SIZE] = record.size_bytes
    row[Column.BODY_CRC] = record.body_crc
    row[Column.QUEUE_ID] = record.queue_id
    row[Column.FLAG] = record.flag
    row[Column.QUEUE_OFFSET] = record.queue_offset
    row[Column.SYS_FLAG] = record.sys_flag
    row[Column.BORN_TIMESTAMP] = record.born_timestamp
    row[Column.STORE_TIMESTAMP] = record.store_timestamp
    row[Column.RECONSUME_TIMES] = record.reconsume_times
    row[Column.PREPARED_TRANSACTION_OFFSET] = record.prepared_transaction_offset
    row[Column.BODY_SIZE] = len(record.body)
    row[Column.TOPIC] = topics.number(record.topic)
    row[Column.PROPERTIES_SIZE] = len(record.properties)
    row[Column.CHECKSUM] = -1 if record.checksum is None else record.checksum
    if not with_properties:
        return row, []
    properties = parse_properties(record.properties, drops_joined=drops_joined)
    row[Column.TAGS_CODE] = java_hash(properties.get("TAGS", ""))
    row[Column.DELAY_LEVEL] = max(0, delay_level(properties.get("DELAY", "")))
    named = keys_of_properties(properties, record.sys_flag) if with_keys else []
    keys = [index_hash(record.topic_text, key) for key in named]
    row[Column.KEY_COUNT] = len(keys)
    return row, keys


def keys_of_properties(properties: dict[str, str], sys_flag: int) -> list[str]:
    """Return the keys that a record is indexed by, the unique key first.

    A rolled back transaction has none. Source: RocketMQ's `IndexService.buildIndex`.
    """
    if sys_flag & _ROLLED_BACK == _ROLLED_BACK:
        return []
    unique = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
    return unique + [key for key in properties.get("KEYS", "").split(" ") if key]
