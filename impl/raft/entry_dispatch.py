"""Dispatch the records in the entries of a Raft log to queues and index."""

import struct
from collections.abc import Sequence

from tornpage.impl.message.dispatching import BLANK, Dispatched, Dispatcher, DispatchRules, IndexPuts
from tornpage.impl.raft.entry_codec import BLANK as BLANK_MAGIC
from tornpage.impl.raft.entry_codec import BLANK_BYTES_MIN, HEADER_BYTES, MAGIC

__all__ = ["entries_dispatcher"]

_HEAD = struct.Struct(">ii")


def entries_dispatcher(dispatch: Dispatcher) -> Dispatcher:
    """Return a dispatcher of entries. `dispatch` is that of plain records."""

    def dispatch_entries(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
        """Dispatch the entries of a data file from `position` on.

        An entry without a body gives nothing.
        """
        start, reason = position, None
        found: list[Dispatched] = []
        while position < end and position - start < rules.batch_bytes_max:
            magic, size = _HEAD.unpack_from(view, position) if position + BLANK_BYTES_MIN <= len(view) else (0, 0)
            if magic == BLANK_MAGIC:
                reason = BLANK
                break
            if magic != MAGIC or size < HEADER_BYTES or position + size > end:
                reason = "bad_entry"
                break
            if size > HEADER_BYTES:
                given = dispatch(view, position + HEADER_BYTES, position + size, rules)
                if given.end_position != position + size:
                    reason = given.reason or "bad_record"
                    break
                found.append(given)
            position += size
        return _joined(found, position, reason)

    return dispatch_entries


def _joined(found: Sequence[Dispatched], position: int, reason: str | None) -> Dispatched:
    index = IndexPuts(
        [each for given in found for each in given.index.hashes],
        [each for given in found for each in given.index.offsets],
        [each for given in found for each in given.index.store_timestamps],
    )
    newest = max((given.store_timestamp for given in found), default=0)
    runs = [run for given in found for run in given.runs]
    return Dispatched(position, sum(given.records for given in found), runs, index, newest, reason)
