"""Confirm units and keyed records at once with the lab's own decoder.

A store that confirms answers a pull with a window of records, and walks from the first unit that is not confirmed. The
lockstep run has no compiled functions, so these take their place. They confirm less than they may where the decoder
refuses a record: the store then decides about it in its walk.

Source: the interfaces of `impl.read.confirming`.
"""

import struct
from itertools import count

from tornpage.impl.parts import Parts
from tornpage.impl.read.confirming import Confirmed, Wanted, confirm_key, confirm_units
from tornpage.properties.decode.record import Readable, Record, decode_record, parse_properties

__all__ = ["confirming"]

_UNIT = struct.Struct(">qiq")
_PREFILL = (0, 0x7FFFFFFF)
"""Offset and size in a unit for a number without a message."""
_PREPARED_OR_ROLLED_BACK = 0x04
_TRANSACTION, _ROLLED_BACK = 0x0C, 0x0C


def confirming(parts: Parts) -> Parts:
    """Return the parts of a store that confirms."""
    return parts.replacing({confirm_units: _confirm_units, confirm_key: _confirm_key})


def _confirm_units(wanted: Wanted) -> Confirmed:
    size_bytes, behind_bytes = 0, -1
    bytes_near, count_near, bytes_far, count_far, memory_bytes = wanted.limits
    units = _UNIT.iter_unpack(wanted.units)
    for number in count():
        offset, size, _ = next(units, (-1, 0, 0))
        position = offset - wanted.base_offset
        if (offset, size) == _PREFILL or not 0 <= position < wanted.file_bytes or offset >= wanted.readable_end:
            break
        behind_bytes = wanted.readable_end - offset
        count_max, bytes_max = (count_far, bytes_far) if behind_bytes > memory_bytes else (count_near, bytes_near)
        if number and (number >= min(wanted.max_msg_nums, count_max) or size_bytes + size > bytes_max):
            return Confirmed(number, size_bytes, behind_bytes, True)
        if offset + size > wanted.readable_end or position >= wanted.blank_position:
            break
        record = _record_at(wanted.view, position, offset, wanted.file_bytes)
        if record is None or record.size_bytes != size or not _belongs(record, wanted, wanted.number + number):
            break
        if wanted.marks is not None and not wanted.marks.trusts(position):
            wanted.marks.add(position)
        size_bytes += size
    return Confirmed(number, size_bytes, behind_bytes, False)


def _belongs(record: Record, wanted: Wanted, number: int) -> bool:
    there = record.topic, record.queue_id, record.queue_offset
    return there == (wanted.topic, wanted.queue_id, number) and not record.sys_flag & _PREPARED_OR_ROLLED_BACK


def _record_at(view: Readable, position: int, offset: int, file_bytes: int) -> Record | None:
    found = decode_record(view, position, offset=offset, room_bytes=file_bytes - position)
    return found if isinstance(found, Record) else None


def _confirm_key(
    view: memoryview,
    position: int,
    offset: int,
    file_bytes: int,
    topic: bytes,
    key: bytes,
    begin_ms: int,
    end_ms: int,
    _trusted: bool,
) -> tuple[int, int]:
    """Return size and queue offset of a record of a key and a time.

    Zeros leave the decision to the query.
    """
    record = _record_at(view, position, offset, file_bytes)
    if record is None or record.topic != topic or record.sys_flag & _TRANSACTION == _ROLLED_BACK:
        return 0, 0
    if not begin_ms <= record.store_timestamp <= end_ms:
        return 0, 0
    text = key.decode("utf-8", "surrogatepass")
    for drops_joined in (False, True):  # the releases read some properties differently
        pairs = parse_properties(record.properties, drops_joined=drops_joined)
        if text != pairs.get("UNIQ_KEY") and text not in pairs.get("KEYS", "").split(" "):
            return 0, 0
    return record.size_bytes, record.queue_offset
