"""Say what proves damage in the image of a store without a durable floor.

Every record with a store time at or before the log's time in the checkpoint, less 3 s, was flushed, unless the store
used a transient store pool. After a clean exit every message of a queue is in the log, and the last record is as new as
that time. A checkpoint that is newer than the clock of the recovery proves nothing. Sources: spec: recovery and
retention, 3.4 and 16.7.
"""

import os
import re
from collections.abc import Iterator, Mapping

from tornpage.properties.decode.consumequeue import PREFILL_BYTES, UNIT_BYTES
from tornpage.properties.decode.record import END_RESERVE_BYTES, RECORD_BYTES_MIN
from tornpage.properties.decode.units import decode_units
from tornpage.properties.judge.image import LogRead

__all__ = ["CLOCK_AHEAD_MS", "damage_without_floor", "newest_time"]

CLOCK_AHEAD_MS = 1000
"""How much later than the newest record a recovery is carried out, in milliseconds."""

_MARGIN_MS = 3000
_TIMES_BYTES = 24
_QUEUE_FILE = re.compile(r"consumequeue/([^/]+)/(0|-?[1-9][0-9]*)/([0-9]{20})")


def newest_time(log: LogRead) -> int:
    """Return the store time of the newest valid record of an image; 0 without one."""
    return max((0, *(record.store_timestamp for record in (*log.records, *log.past_end))))


def damage_without_floor(
    content: Mapping[str, bytes], log: LogRead, *, is_clean: bool, has_pool: bool, now_ms: int | None = None
) -> str:
    """Return what proves that an image without a floor is damaged, or nothing.

    `now_ms` is the clock of the recovery; None stands for `CLOCK_AHEAD_MS` after the newest record.
    """
    now_ms = newest_time(log) + CLOCK_AHEAD_MS if now_ms is None else now_ms
    checkpoint = content.get("checkpoint", b"")
    physic_ms = int.from_bytes(checkpoint[:8], "big", signed=True) if len(checkpoint) >= _TIMES_BYTES else 0
    is_proof = not has_pool and 0 < physic_ms <= now_ms
    flushed_ms = physic_ms - _MARGIN_MS if is_proof else 0
    last_base = max((base for base in log.files if base < log.end), default=0)
    newest_ms = max((0, *(record.store_timestamp for record in log.records if record.offset >= last_base)))
    if is_clean:
        claimed = {(record.topic, record.queue_id, record.queue_offset) for record in log.records}
        for topic, queue_id, number, offset in _last_units(content, file_bytes=log.file_bytes):
            if offset >= log.end and (topic, queue_id, number) not in claimed:
                return f"the log ends at {log.end} after a clean exit, but a queue has a message at {offset}"
        if flushed_ms > newest_ms:
            return f"the log ends at {log.end} after a clean exit, but was durable up to a later store time"
    elif log.dirty_at is not None:
        later = [each.offset for each in log.past_end if newest_ms <= each.store_timestamp <= flushed_ms]
        if later:
            return f"no valid record begins at {log.end}, although the record at {min(later)} was flushed"
    return ""


def _last_units(content: Mapping[str, bytes], *, file_bytes: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield topic, queue id, number and physical offset of the last unit of each queue.

    A unit of a place where no record fits is passed over.
    """
    seen: set[str] = set()
    for name in sorted(content, reverse=True):
        if not (parts := _QUEUE_FILE.fullmatch(name)) or name[:-20] in seen:
            continue
        units = decode_units(content[name])
        for index in range(len(units) - 1, -1, -1):
            offset, size, _ = units[index]
            fits = RECORD_BYTES_MIN <= size <= file_bytes - END_RESERVE_BYTES - offset % file_bytes
            if offset >= 0 and size != PREFILL_BYTES and fits:
                seen.add(name[:-20])
                yield os.fsencode(parts[1]), int(parts[2]), int(parts[3]) // UNIT_BYTES + index, offset
                break
