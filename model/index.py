"""The index as a value: which records a query by key brings (contract 5).

1. A record has the key UNIQ_KEY and each token of KEYS, which single spaces separate. Rolled-back transactions have
   none; prepared ones have theirs.
2. A query names topic, key and a window of store timestamps, both ends included. What matters is the record itself: its
   topic, its keys and its time. Equal hashes, rounded times and clocks that went back change no answer.
3. Of the records that match, the newest are brought, at most `max_num` and no more than the layout allows, in
   ascending order, each once.
4. Only records that were dispatched and that readers see are found, those of deleted topics among them.

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
    """Return the records that a query brings, in ascending order."""
    found = [
        record
        for record in dispatched(log)
        if layout.index
        and record.offset >= log.min_offset
        and record.message.topic == topic
        and begin_ms <= record.store_timestamp <= end_ms
        and record.end_offset <= log.readable_end
        and key in keys_of(record)
    ]
    count = max(0, min(max_num, layout.query_max))
    return tuple(found[len(found) - min(count, len(found)) :])


def keys_of(record: Record) -> tuple[str, ...]:
    """Return the keys that a record is indexed by, in order, as often as it names them."""
    message = record.message
    if message.sys_flag & TRANSACTION_BITS == ROLLBACK:
        return ()
    unique = property_of(message.properties, "UNIQ_KEY")
    tokens = (property_of(message.properties, "KEYS") or "").split(" ")
    return (*([unique] if unique is not None else []), *filter(None, tokens))


def last_update(log: CommitLog, layout: Layout) -> tuple[int, int] | None:
    """Return store timestamp and physical offset of the last indexed record, None if there is none."""
    indexed = [record for record in dispatched(log) if layout.index and keys_of(record)]
    return (indexed[-1].store_timestamp, indexed[-1].offset) if indexed else None
