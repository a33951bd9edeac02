"""What a client is told that names queues, keys and offsets itself: the reads of `model.step` for several clients.

1. A closed store answers none of them. One that forbids reads refuses pulls and queries.
2. Records are brought with their number in the queue that was asked, and with their bodies.
3. A commit counts up to the end of the queue. All clients are of one consumer group.
"""

from collections.abc import Iterator
from dataclasses import replace

from tornpage.model import index, progress, reading
from tornpage.model.answers import Answer, QueueRead, RecordRead
from tornpage.model.dispatch import places
from tornpage.model.operations import AskMaximum, AskMinimum, Commit, GetAt, Pull, Query, QueryProgress
from tornpage.model.reading import Pulled
from tornpage.model.state import Layout, State
from tornpage.model.step_reads import NO_END_MS, got_at, is_unreadable

__all__ = ["GROUP", "Read", "told"]

GROUP = "g"
"""The consumer group of all clients."""

Outcomes = Iterator[tuple[State, Answer]]
Read = GetAt | Pull | AskMaximum | AskMinimum | Query | Commit | QueryProgress


def told(state: State, operation: Read, layout: Layout) -> Outcomes:
    """Yield each legal state and answer after a read, or after a commit of an offset."""
    log = state.log
    if not state.is_open:
        yield state, Answer(client="closed")
        return
    match operation:
        case GetAt(offset):
            yield state, Answer(got=got_at(log, offset))
        case Pull() | Query() if is_unreadable(state):
            yield state, Answer(refused_reads=True)
        case Pull(topic, queue_id, offset, max_msg_nums):
            for pulled in reading.legal_answers(log, layout, topic, queue_id, offset, max_msg_nums):
                yield state, Answer(client=_queue_read(pulled, layout, topic, queue_id))
        case AskMaximum(topic, queue_id):
            yield state, Answer(client=reading.max_offset(log, layout, topic, queue_id))
        case AskMinimum(topic, queue_id):
            yield state, Answer(client=reading.min_offset(log, layout, topic, queue_id))
        case Query(topic, key, max_num):
            found = index.query(log, layout, topic, key, max_num, 0, NO_END_MS)
            records = (RecordRead(each.offset, each.queue_offset, each.message.body or b"") for each in found)
            yield state, Answer(client=tuple(records))
        case Commit():
            yield _committed(state, operation, layout)
        case QueryProgress(topic, queue_id):
            begin = reading.min_offset(log, layout, topic, queue_id)
            light = layout.light_queues
            wanted = progress.query(state.consumers, GROUP, topic, queue_id, begin=begin, light=light)
            yield state, Answer(client="unknown" if wanted is None else wanted)


def _queue_read(pulled: Pulled, layout: Layout, topic: str, queue_id: int) -> QueueRead:
    records = tuple(
        RecordRead(each.offset, dict(places(each, layout))[topic, queue_id], each.message.body or b"")
        for each in pulled.records
    )
    return QueueRead(pulled.status.value, pulled.next_begin_offset, pulled.min_offset, pulled.max_offset, records)


def _committed(state: State, operation: Commit, layout: Layout) -> tuple[State, Answer]:
    if "@" in operation.topic:
        return state, Answer(committed="refused")

    def end_of(topic: str, queue_id: int) -> int:
        return reading.max_offset(state.log, layout, topic, queue_id)

    consumers, counts = progress.commit(
        state.consumers,
        GROUP,
        operation.topic,
        operation.queue_id,
        operation.offset,
        end_of=end_of,
        light=layout.light_queues,
    )
    return replace(state, consumers=consumers), Answer(committed=counts)
