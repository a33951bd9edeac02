"""Specify reads, held pulls and consumer progress, for `model.step`.

1. Queues, keys and records are named by numbers, modulo their count, in the order of their first record. Only those in
   the page cache count.
2. A read changes nothing. It has several legal answers where a queue may be known but empty, or times go back.
3. A pull that finds nothing and may wait is held, as long as there is room. Each step of the service ends the pulls
   that must end. It may also end pulls of which only unwanted messages have expired.
4. A commit of an offset counts up to the end of the queue.

An operation of one of several clients names queues, keys and offsets itself (`client_read`):

5. A closed store answers none of them. A store that forbids reads refuses pulls and queries.
6. Records are returned with their number in the requested queue and with their bodies.
7. All clients are of one consumer group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

from tornpage.model import commitlog, holding, index, progress, reading
from tornpage.model.answers import Answer, Got, ProgressAnswer, PullAnswer, QueueRead, RecordRead, pull_answer
from tornpage.model.dispatch import Queue, counted, places
from tornpage.model.holding import Holding
from tornpage.model.operations import (
    AskMaximum,
    AskMinimum,
    Commit,
    CommitOffset,
    GetAt,
    GetMessage,
    OffsetByTime,
    Pull,
    PullHeld,
    PullWhileDispatching,
    Query,
    QueryOffsets,
    QueryProgress,
)
from tornpage.model.queues import all_bounds, bounds_of, dispatch, failed_dispatch
from tornpage.model.reading import Pulled
from tornpage.model.state import CommitLog, HeldPull, Layout, Record, State

__all__ = [
    "GROUP",
    "NO_END_MS",
    "UNKNOWN_KEY",
    "UNKNOWN_QUEUE",
    "Read",
    "client_read",
    "commit_offset",
    "get_message",
    "got",
    "got_at",
    "is_unreadable",
    "key_named",
    "keys",
    "offset_by_time",
    "pull_held",
    "pull_while_dispatching",
    "pulls_looked_at",
    "query",
    "query_offsets",
    "queue_named",
    "readable",
]

Outcomes = Iterator[tuple[State, Answer]]
Read = GetAt | Pull | AskMaximum | AskMinimum | Query | Commit | QueryProgress

GROUP = "g"
"""The consumer group of all clients."""

NOT_READABLE = 1
NO_END_MS = 2**63 - 1
UNKNOWN_QUEUE: Queue = ("topic without messages", 0)
"""A queue without messages: the meaning of number -1 in a read."""
UNKNOWN_KEY = ("topic without messages", "k")
"""Topic and key that no message has."""


def is_unreadable(state: State) -> bool:
    """Return whether a running flag forbids reads of queues, index and times.

    The store must answer so then.
    """
    return bool(state.log.flags & NOT_READABLE)


# ---- reads -----------------------------------------------------------------------------------------------------------


def readable(log: CommitLog) -> list[Record]:
    return [record for record in log.retained if record.end_offset <= log.readable_end]


def got(log: CommitLog, number: int, shift: int) -> Got:
    """Get at or beside a record, counted among all that were ever put."""
    base = log.records[number % len(log.records)].offset if log.records else 0
    return got_at(log, base + shift)


def got_at(log: CommitLog, offset: int) -> Got:
    """Return the answer of a get at a physical offset."""
    status, record = commitlog.get(log, offset)
    if record is None:
        return Got(status.value)
    message = record.message
    return Got(status.value, message.topic, message.body, message.queue_id, record.queue_offset, record.store_timestamp)


def get_message(state: State, operation: GetMessage, layout: Layout) -> Outcomes:
    """Yield every legal answer to a pull."""
    queue = queue_named(state, layout, operation.queue)
    first, _ = bounds_of(state.log, layout, queue) or (0, 0)
    tags = operation.tags.split("||") if operation.tags else None
    legal = reading.legal_answers(
        state.log, layout, *queue, first + operation.shift, operation.max_msg_nums, tags, operation.where
    )
    for pulled in legal:
        yield state, Answer(pulled=pull_answer(pulled), note=pulled)


def query(state: State, layout: Layout, number: int, max_num: int, begin_ms: int, window_ms: int) -> tuple[int, ...]:
    """Return the records that a query by key finds.

    Its window begins `begin_ms` after the first message.
    """
    log = state.log
    begin_ms += log.records[0].store_timestamp if log.records else 0
    end_ms = NO_END_MS if window_ms < 0 else begin_ms + window_ms
    found = index.query(log, layout, *key_named(state, layout, number), max_num, begin_ms, end_ms)
    return tuple(record.offset for record in found)


def offset_by_time(state: State, operation: OffsetByTime, layout: Layout) -> Outcomes:
    """Yield each legal offset of a time; several are legal where the clock went back."""
    queue = queue_named(state, layout, operation.queue)
    records = _records_of(state, layout, queue)
    at_ms = records[operation.record % len(records)].store_timestamp if records else 0
    whole = reading.earliest_message_time(state.log, layout)
    first_times = whole, reading.earliest_message_time(state.log, layout, queue)
    for offset in sorted(reading.offset_by_time(state.log, layout, *queue, at_ms + operation.shift_ms)):
        yield state, Answer(time_offset=offset, first_times=first_times, note=bool(records))


def _noted_records(state: State, layout: Layout) -> Iterator[tuple[Record, Queue, int]]:
    """Yield each record in the page cache with each queue in which it counts, and its number."""
    end = _page_cache_end(state)
    return (each for each in counted(state.log, layout) if each[0].end_offset <= end)


def _page_cache_end(state: State) -> int:
    """Return up to where the page cache has the log.

    A log that was poisoned under a rule may have all of it there.
    """
    if state.log.poisoned and state.environment.rules:
        return state.log.end_offset
    return max(state.log.committed_offset, state.environment.faults.half_written_end)


def _records_of(state: State, layout: Layout, queue: Queue) -> list[Record]:
    """Return the records of a queue in order, each once."""
    by_number = {
        number: record for record, found, number in reversed(list(_noted_records(state, layout))) if found == queue
    }
    return [by_number[number] for number in sorted(by_number)]


def queue_named(state: State, layout: Layout, number: int) -> Queue:
    """Return queue `number` in the order of first records; -1 is one without messages."""
    queues = list(dict.fromkeys(queue for _, queue, _ in _noted_records(state, layout))) if number >= 0 else []
    return queues[number % len(queues)] if queues else UNKNOWN_QUEUE


def keys(state: State, layout: Layout) -> list[tuple[str, str]]:
    """Return topic and key of each existing key, in the order of first records."""
    end = _page_cache_end(state)
    records = (record for record in state.log.records if layout.index and record.end_offset <= end)
    return list(
        dict.fromkeys(
            (record.message.topic, key)
            for record in records
            for key in index.keys_of(record, drops_joined=layout.drops_joined)
        )
    )


def key_named(state: State, layout: Layout, number: int) -> tuple[str, str]:
    """Return topic and key `number` of the existing keys; -1 is one that no message has."""
    there = keys(state, layout) if number >= 0 else []
    return there[number % len(there)] if there else UNKNOWN_KEY


# ---- pulls that wait -------------------------------------------------------------------------------------------------


def pull_held(state: State, operation: PullHeld, layout: Layout) -> Outcomes:
    """Pull and wait: hold a pull that finds nothing and could find something later.

    It is held only while there is room.
    """
    queue = operation.topic, operation.queue_id
    _, most = bounds_of(state.log, layout, queue) or (0, 0)
    tags = tuple(operation.tags.split("||")) if operation.tags else None
    deadline_ms = state.clock.now_ms + operation.hold_ms
    asked = Holding(queue, most + operation.shift, operation.max_msg_nums, tags, deadline_ms)
    legal = _legal(state.log, layout, asked)
    if operation.hold_ms > 0 and all(holding.is_held(answer, asked.offset) for answer in legal):
        if len(state.pulls) >= layout.held_pulls_max:
            yield state, Answer(pull="refused")
        else:
            yield _holding(state, asked), Answer(pull="held")
        return
    for pulled in legal:
        yield state, Answer(pull=pull_answer(pulled), note=pulled)


def _holding(state: State, asked: Holding) -> State:
    pull = HeldPull(state.pulls_begun, asked)
    return replace(state, pulls=(*state.pulls, pull), pulls_begun=state.pulls_begun + 1)


def _legal(log: CommitLog, layout: Layout, asked: Holding) -> Sequence[reading.Pulled]:
    return reading.legal_answers(log, layout, *asked.queue, asked.offset, asked.max_msg_nums, asked.tags)


def pulls_looked_at(state: State, layout: Layout) -> Outcomes:
    """Yield each outcome of a step of the pull service: which pulls end, with which answers."""
    ways: list[list[PullAnswer | Literal["not readable"] | None]] = []
    for pull in state.pulls:
        fate = holding.fate(state.log, layout, pull.asked, now_ms=state.clock.now_ms)
        ends: list[PullAnswer | Literal["not readable"] | None] = []
        if fate != "stays":
            pulled = () if is_unreadable(state) else _legal(state.log, layout, pull.asked)
            ends = [pull_answer(each) for each in pulled] or ["not readable"]
        ways.append(ends if fate == "ends" else [*ends, None])
    for way in product(*ways):
        left = tuple(pull for pull, end in zip(state.pulls, way, strict=True) if end is None)
        ended = tuple((pull.number, end) for pull, end in zip(state.pulls, way, strict=True) if end is not None)
        yield replace(state, pulls=left), Answer(ended_pulls=ended)


def pull_while_dispatching(state: State, operation: PullWhileDispatching, layout: Layout) -> Outcomes:
    """Pull at the end of a queue while dispatch fills it.

    The pull is held, or sees the queue at some moment of the dispatch.
    """
    queue = operation.topic, operation.queue_id
    _, most = bounds_of(state.log, layout, queue) or (0, 0)
    tags = tuple(operation.tags.split("||")) if operation.tags else None
    usual = PullHeld()
    asked = Holding(queue, most, usual.max_msg_nums, tags, state.clock.now_ms + usual.hold_ms)
    after = replace(state, log=dispatch(state.log))
    yield _holding(after, asked), Answer(pull="held")
    moments = (state.log, *failed_dispatch(state.log, layout), after.log)
    for pulled in dict.fromkeys(pulled for log in moments for pulled in _legal(log, layout, asked)):
        yield after, Answer(pull=pull_answer(pulled), note=pulled)


# ---- consumer progress -----------------------------------------------------------------------------------------------


def commit_offset(state: State, operation: CommitOffset, layout: Layout) -> tuple[State, Answer]:
    """Commit an offset up to the end of the queue.

    A name is refused if the progress file could not be parsed with it.
    """
    topic, queue_id = queue = queue_named(state, layout, operation.queue)
    bounds = all_bounds(state.log, layout)
    offset = max(0, bounds.get(queue, (0, 0))[1] - operation.behind)
    if "@" in topic:
        return state, Answer(committed="refused", note=offset)

    def end_of(name: str, number: int) -> int:
        return bounds.get((name, number), (0, 0))[1]

    consumers, counts = progress.commit(
        state.consumers, operation.group, topic, queue_id, offset, end_of=end_of, light=layout.light_queues
    )
    return replace(state, consumers=consumers), Answer(committed=counts, note=offset)


def query_offsets(state: State, operation: QueryOffsets, layout: Layout) -> ProgressAnswer:
    """Return everything that is known of a group in a topic."""
    topic, queue_id = queue_named(state, layout, operation.queue)
    bounds, consumers, group = all_bounds(state.log, layout), state.consumers, operation.group

    def begin_of(name: str, number: int) -> int:
        return bounds.get((name, number), (0, 0))[0]

    ends = [(number, end) for (name, number), (_, end) in bounds.items() if name == topic]
    begin, is_in_disk = begin_of(topic, queue_id), reading.begins_in_disk(state.log, layout, topic, queue_id)
    light = layout.light_queues
    return ProgressAnswer(
        tuple(sorted(progress.least_offsets(consumers, topic, begin_of=begin_of).items())),
        tuple(sorted(progress.least_offsets(consumers, topic, begin_of=begin_of, without=(group,)).items())),
        progress.query(consumers, group, topic, queue_id, begin=begin, light=light, is_in_disk=is_in_disk),
        progress.diff_total(consumers, group, topic, ends=ends),
    )


# ---- reads of several clients ----------------------------------------------------------------------------------------


def client_read(state: State, operation: Read, layout: Layout) -> Outcomes:
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
            is_in_disk, light = reading.begins_in_disk(log, layout, topic, queue_id), layout.light_queues
            wanted = progress.query(
                state.consumers, GROUP, topic, queue_id, begin=begin, light=light, is_in_disk=is_in_disk
            )
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
