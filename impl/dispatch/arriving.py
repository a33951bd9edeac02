"""Notifying listeners, such as waiting consumers, of messages that arrived in queues.

A listener is called for each record once the record can be read from its queue, and again for each queue that the
record names. As in RocketMQ, it is also called for transactions that were only prepared or rolled back, which are in no
queue. Source: `MessageArrivingListener`, `ReputMessageService.notifyMessageArrive4MultiQueue`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tornpage.impl.dispatch.dispatch_records import bit_map_of_record, named_queues, read_record, tags_code_of
from tornpage.impl.message.dispatching import DispatchRules
from tornpage.impl.message.properties_text import CHECKSUM_NAME

__all__ = ["Arrival", "MessageArrivingListener", "arrivals_in", "tell"]

_LOG = logging.getLogger("tornpage.store")


class Arrival(NamedTuple):
    """A message that arrived in a queue.

    `next_offset` is the queue offset after it. `store_timestamp` is in milliseconds. `bit_map` is the bit map of the
    consumer filters, or empty.
    """

    topic: str
    queue_id: int
    next_offset: int
    tags_code: int
    store_timestamp: int
    bit_map: bytes
    properties: Mapping[str, str]


MessageArrivingListener = Callable[[Arrival], object]
"""Called in the dispatch thread, which waits for it. An exception is logged and stops nothing."""


def arrivals_in(view: memoryview, position: int, end: int, rules: DispatchRules) -> list[Arrival]:
    """Return the arrivals of the dispatched records in [position, end) of a log file."""
    arrivals: list[Arrival] = []
    while position < end:
        record = read_record(view, position, end)
        if isinstance(record, str):
            break
        position += record.size_bytes
        pairs = rules.parse(record.text)
        pairs.pop(CHECKSUM_NAME, None)
        own = Arrival(
            topic=record.topic.decode(errors="replace"),
            queue_id=record.queue_id,
            next_offset=record.queue_offset + 1,
            tags_code=tags_code_of(record.topic, pairs, record.store_timestamp, rules.delay_levels),
            store_timestamp=record.store_timestamp,
            bit_map=bit_map_of_record(record, pairs, rules.bit_map_of),
            properties=pairs,
        )
        arrivals.append(own)
        for (name, queue_id), queue_offset in named_queues(record, rules).items():
            named = name.decode(errors="replace")
            arrivals.append(own._replace(topic=named, queue_id=queue_id, next_offset=queue_offset + 1))
    return arrivals


def tell(listeners: Sequence[MessageArrivingListener], arrivals: Sequence[Arrival]) -> None:
    """Call every listener with every arrival, in order. Exceptions of listeners are logged."""
    for arrival in arrivals:
        for listener in listeners:
            try:
                listener(arrival)
            except Exception:
                _LOG.exception("listener_failed topic=%r queue_id=%d", arrival.topic, arrival.queue_id)
