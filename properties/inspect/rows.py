"""Build the rows of a document: plain values under stable names.

Offsets, addresses and codes of 64 bits are there twice: as a number, and as text under the same name with `Text` added,
for readers whose numbers are doubles. Times are milliseconds; hosts are [address, port].
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from tornpage.properties.decode.fields import Field, record_fields
from tornpage.properties.decode.record import Bad, Blank, Record, message_id, parse_properties
from tornpage.properties.decode.store import LocatedItem
from tornpage.properties.decode.walk import Zeros

__all__ = ["Row", "hex_of", "row_of", "wide"]

Row = dict[str, Any]


def row_of(located: LocatedItem, *, with_hex: bool = False, drops_joined: bool = False) -> Row | None:
    """Return the row of one item; None for zeros, which are not shown.

    Columns of every row: kind (record, blank, bad, unreadable), phy, phyText, file. recordSha256 is the hash of all
    bytes of a record. `drops_joined` is as in `parse_properties`.
    """
    item = located.item
    if isinstance(item, Zeros):
        return None
    row: Row = {"phy": item.offset, "phyText": str(item.offset), "file": located.file}
    if isinstance(item, Record):
        row |= _record_columns(item, parse_properties(item.properties, drops_joined=drops_joined))
        return row | hex_of(record_fields(item.raw), item.offset) if with_hex else row
    if isinstance(item, Bad):
        return row | {"kind": "bad", "reason": item.reason, "field": item.field}
    if isinstance(item, Blank):
        return row | {"kind": "blank", "size": item.size_bytes}
    return row | {"kind": "unreadable", "size": item.size_bytes, "reason": item.reason}


def hex_of(fields: Iterable[Field], base: int) -> Row:
    """Return the column of bytes: per field its name, its place and its bytes.

    `base` is added to the place of the first byte.
    """
    return {"hex": [{"field": field.name, "at": base + field.at, "bytes": field.data.hex()} for field in fields]}


def wide(**numbers: int | None) -> Row:
    """Return columns with numbers and their texts."""
    columns: Row = {}
    for name, number in numbers.items():
        columns |= {name: number, f"{name}Text": None if number is None else str(number)}
    return columns


def _record_columns(record: Record, properties: dict[str, str]) -> Row:
    return {
        "kind": "record",
        "size": record.size_bytes,
        "topic": record.topic_text,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "queueOffsetText": str(record.queue_offset),
        "storedPhy": record.physical_offset,
        "storedPhyText": str(record.physical_offset),
        "sysFlag": record.sys_flag,
        "storeTimestamp": record.store_timestamp,
        "recordSha256": sha256(record.raw).hexdigest(),
        "keys": properties.get("KEYS"),
        "tags": properties.get("TAGS"),
        "uniqKey": properties.get("UNIQ_KEY"),
        "msgId": message_id(record),
        "bodyLength": len(record.body),
        "bornTimestamp": record.born_timestamp,
        "bornHost": list(record.born_host),
        "storeHost": list(record.store_host),
        "hasChecksum": record.checksum is not None,
    }
