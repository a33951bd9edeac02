"""Specify the index as a value: the records that a query by key returns (contract 5).

1. The keys of a record are UNIQ_KEY and each token of KEYS, which single spaces separate. Rolled-back transactions have
   no keys. Prepared ones have theirs.
2. A query names topic, key and a window of store timestamps, both ends included. Only topic, keys and time of the
   record decide. Equal hashes, rounded times and clocks that went back change no answer.
3. The newest matching records are returned, each once, in ascending order. There are at most `max_num`, and no more
   than the layout allows.
4. Only dispatched records that readers see are found. Records of deleted topics are found too.

Source: docs/format.md, "Index" (`IndexService`, `DefaultMessageStore.queryMessage`).
"""

from tornpage.model.message import ROLLBACK, TRANSACTION_BITS
from tornpage.model.properties import property_of
from tornpage.model.queues import dispatched
from tornpage.model.state import CommitLog, Layout, Record

__all__ = ["keys_of", "last_update", "query"]


def query(
    log: CommitLog, layout: Layout, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
) -> tuple[Record, ...]:
    """Return the records that match a query, in ascending order."""
    found = [
        record
        for record in dispatched(log)
        if layout.index
        and record.offset >= log.min_offset
        and record.message.topic == topic
        and begin_ms <= record.store_timestamp <= end_ms
        and record.end_offset <= log.readable_end
        and key in keys_of(record, drops_joined=layout.drops_joined)
    ]
    count = max(0, min(max_num, layout.query_max))
    return tuple(found[len(found) - min(count, len(found)) :])


def keys_of(record: Record, *, drops_joined: bool = False) -> tuple[str, ...]:
    """Return the keys by which a record is indexed, in order, repeated if named repeatedly.

    `drops_joined` is that of the layout.
    """
    message = record.message
    if message.sys_flag & TRANSACTION_BITS == ROLLBACK:
        return ()
    unique = property_of(message.properties, "UNIQ_KEY", drops_joined=drops_joined)
    tokens = (property_of(message.properties, "KEYS", drops_joined=drops_joined) or "").split(" ")
    return (*([unique] if unique is not None else []), *filter(None, tokens))


def last_update(log: CommitLog, layout: Layout) -> tuple[int, int] | None:
    """Return store timestamp and physical offset of the last indexed record, if any."""
    indexed = [
        record for record in dispatched(log) if layout.index and keys_of(record, drops_joined=layout.drops_joined)
    ]
    return (indexed[-1].store_timestamp, indexed[-1].offset) if indexed else None
