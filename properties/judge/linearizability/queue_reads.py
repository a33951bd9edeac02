"""What reads of one queue may answer in a state, and what is known of the queue behind them.

The maximum that an answer names says how far the queue shows the log: no less than before, and no further than readers
see. Minimum, status, messages and next number then follow.
"""

from dataclasses import replace

from tornpage.model import index
from tornpage.model.dispatch import Queue
from tornpage.model.state import Layout, Record
from tornpage.properties.judge.linearizability.requests import (
    CommitOffset,
    KeyRequest,
    Pulled,
    PullRequest,
    QueryOffset,
    ReadRecord,
)
from tornpage.properties.judge.linearizability.state import Shown, StoreState

__all__ = ["INDEX", "found_by_key", "maximum", "minimum", "offset_committed", "offset_queried", "pulled"]

_FAR = 1 << 62
INDEX: Queue = ("/", 0)
"""Stands for the index among the queues: it shows the log up to a place of its own too. No topic has this name."""


def maximum(state: StoreState, queue: Queue, answer: int, layout: Layout) -> StoreState | None:
    """Return the state once a queue said its maximum, None when it could not."""
    shown = state.shown_of(queue)
    if not answer:
        return None if state.units(queue, shown, shown.end_offset, layout) else state
    _, most = state.bounds(layout)
    units = state.units(queue, shown, most, layout)
    last = next((record for number, record in units if number == answer - 1), None)
    if last is None:
        return None
    end_offset = max(shown.end_offset, last.end_offset)
    if any(number >= answer for number, record in units if record.end_offset <= end_offset):
        return None  # it showed more before
    seen = state.seen(end_offset, _FAR, layout)
    return None if seen is None else seen.with_shown(queue, replace(shown, end_offset=end_offset))


def minimum(state: StoreState, queue: Queue, answer: int, layout: Layout) -> StoreState | None:
    """Return the state once a queue said its minimum, None when it could not."""
    shown = state.shown_of(queue)
    _, most = state.bounds(layout)
    units = state.units(queue, shown, most, layout)
    if not units:
        return None if answer else state
    if not answer and not shown.least:
        return state
    return _from(state, queue, shown, units, answer)


def _from(
    state: StoreState, queue: Queue, shown: Shown, units: list[tuple[int, Record]], answer: int
) -> StoreState | None:
    """Return the state once a queue began at a number."""
    end = units[-1][0] + 1
    first_left = next((number for number, record in units if record.offset >= state.log.min_offset), end)
    if not shown.least <= answer <= max(first_left, shown.least):
        return None
    return state.with_shown(queue, replace(shown, least=answer))


def pulled(state: StoreState, queue: Queue, request: PullRequest, answer: Pulled, layout: Layout) -> StoreState | None:
    """Return the state behind a pull, None when it cannot be answered so."""
    after = maximum(state, queue, answer.max_offset, layout)
    if after is None:
        return None
    if not answer.max_offset:
        nothing = answer.status in ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE")
        return after if nothing and answer == Pulled(answer.status, 0, 0, 0) else None
    shown = after.shown_of(queue)
    units = after.units(queue, shown, shown.end_offset, layout)
    begun = _from(after, queue, shown, units, answer.min_offset)
    if begun is None or _expected(request, answer, units, state.log.min_offset) != answer:
        return None
    return begun


def _expected(request: PullRequest, answer: Pulled, units: list[tuple[int, Record]], log_min: int) -> Pulled:
    """Return the answer of a queue with the bounds that were named."""
    least, most, asked = answer.min_offset, answer.max_offset, request.offset
    if asked < least:
        return Pulled("OFFSET_TOO_SMALL", least, least, most)
    if asked == most:
        return Pulled("OFFSET_OVERFLOW_ONE", asked, least, most)
    if asked > most:
        return Pulled("OFFSET_OVERFLOW_BADLY", most, least, most)
    if request.max_msg_nums <= 0:
        return Pulled("NO_MATCHED_MESSAGE", asked, least, most)
    found: list[ReadRecord] = []
    following, nothing = asked, "NO_MATCHED_MESSAGE"
    for number, record in units:
        if number < asked:
            continue
        if len(found) == request.max_msg_nums:
            break
        following = number + 1
        if record.offset < log_min:
            nothing = "MESSAGE_WAS_REMOVING"
        else:
            found.append(ReadRecord(record.offset, number, record.message.body or b""))
    return Pulled("FOUND" if found else nothing, following, least, most, tuple(found))


def found_by_key(
    state: StoreState, request: KeyRequest, answer: tuple[ReadRecord, ...], layout: Layout
) -> StoreState | None:
    """Return the state behind a query by key, None when it cannot be answered so.

    The index knows the log up to some place, no less than before: the first one is taken that explains the answer.
    """
    shown = state.shown_of(INDEX)
    _, most = state.bounds(layout)
    ends = [each.end_offset for each in state.log.records if shown.end_offset < each.end_offset <= most]
    for end_offset in (shown.end_offset, *ends):
        log = state.log.changed(dispatched_offset=end_offset, deleted=())
        records = index.query(log, layout, request.topic, request.key, request.max_num, 0, _FAR)
        if answer == tuple(ReadRecord(each.offset, each.queue_offset, each.message.body or b"") for each in records):
            seen = state.seen(end_offset, _FAR, layout)
            return None if seen is None else seen.with_shown(INDEX, replace(shown, end_offset=end_offset))
    return None


def offset_committed(state: StoreState, request: CommitOffset, answer: int, layout: Layout) -> StoreState | None:
    """Return the state behind a commit: it counts up to an end that the queue has, and not while it begins anew."""
    queue = request.topic, request.queue_id
    if request.topic in state.begin_anew:
        return None if answer else state
    shown = state.shown_of(queue)
    _, most = state.bounds(layout)
    units = state.units(queue, shown, most, layout)
    if not answer:
        at_the_begin = not request.offset or not state.units(queue, shown, shown.end_offset, layout)
        return state.with_committed(request.group, queue, 0) if at_the_begin else None
    last = next((record for number, record in units if number == answer - 1), None)
    if last is None or answer > request.offset:
        return None
    end_offset = max(shown.end_offset, last.end_offset)
    if answer < request.offset and any(n >= answer for n, record in units if record.end_offset <= end_offset):
        return None  # it showed more before, and more was asked for
    seen = state.seen(end_offset, _FAR, layout)
    if seen is None:
        return None
    return seen.with_shown(queue, replace(shown, end_offset=end_offset)).with_committed(request.group, queue, answer)


def offset_queried(state: StoreState, request: QueryOffset, answer: int | None) -> StoreState | None:
    """Return the state behind a question for progress; a group that has none begins at 0, or decides itself."""
    known = state.committed(request.group, (request.topic, request.queue_id))
    return state if answer == known or (known is None and not answer) else None
