"""What one store may answer when it is asked one thing after the other: the specification that histories are held to.

Each call becomes one or several moments (properties/judge/linearizability/linearise.py). Puts and deletions are of
`model.step`. A put that goes on in a new log file closes the old one at a moment of its own, since readers may see
that. A deletion takes the numbers away, then one queue after the other, then what consumers had committed. A close
refuses puts first, then reads. A commit has a begin and an end, and shows the log bit by bit in between.

What it leaves out: filters, limits of bytes in one answer, refusals for what a message is: other judges know them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any

from tornpage.model import answers as said
from tornpage.model.dispatch import Queue
from tornpage.model.operations import DeleteTopics, Put
from tornpage.model.state import Clock, Layout, State
from tornpage.model.step import step
from tornpage.properties.judge.linearizability import queue_reads
from tornpage.properties.judge.linearizability.calls import Call
from tornpage.properties.judge.linearizability.linearise import Moment
from tornpage.properties.judge.linearizability.requests import (
    CLOSED,
    CleanStep,
    Closing,
    CommitOffset,
    CommitStep,
    DispatchStep,
    FlushRequest,
    GetRequest,
    KeyRequest,
    PullRequest,
    PutRequest,
    QueryOffset,
    QueueMaximum,
    QueueMinimum,
    ReadRecord,
    TopicDeletion,
)
from tornpage.properties.judge.linearizability.state import StoreState

__all__ = ["moments_of"]

States = Iterable[StoreState]
_FAR = 1 << 62


def moments_of(calls: Sequence[Call], layout: Layout) -> list[Moment[StoreState]]:
    """Return the moments of a history, those of one call next to each other."""
    moments: list[Moment[StoreState]] = []
    for number, call in enumerate(calls):
        before = -1
        for name, apply in _parts(number, call, calls, layout):
            moments.append(Moment(f"{call.request}: {name}", call.began, call.ended, apply, before))
            before = len(moments) - 1
    return moments


def _parts(
    number: int, call: Call, calls: Sequence[Call], layout: Layout
) -> list[tuple[str, Callable[[StoreState], States]]]:
    """Return what a call does, in order."""
    if call.answer is CLOSED:
        return [("is refused", lambda state: () if state.is_open else (state,))]
    match call.request:
        case PutRequest():
            return _put_parts(number, call, layout)
        case DispatchStep():
            return [("dispatched", partial(_dispatched, layout=layout))]
        case CommitStep():
            return _commit_parts(number, layout, is_thorough=False)
        case FlushRequest():
            commit = _commit_parts(number, layout, is_thorough=True)
            return [*commit, ("flushed", partial(_flushed, answer=call.answer, layout=layout))]
        case CleanStep():
            return [("cleaned", partial(_cleaned, answer=call.answer, layout=layout))]
        case TopicDeletion():
            return _deletion_parts(call, calls, layout)
        case Closing():
            others = (each for each in calls if each is not call and isinstance(each.request, Closing))
            return _close_parts(number, layout, alone=not any(map(call.overlaps, others)))
        case _:
            return [("answered", partial(_read, call=call, layout=layout))]


# ---- puts ------------------------------------------------------------------------------------------------------------


def _put_parts(number: int, call: Call, layout: Layout) -> list[tuple[str, Callable[[StoreState], States]]]:
    put = partial(_put, number=number, request=call.request, answer=call.answer, layout=layout)
    offset = -1 if call.answer is None else call.answer.offset
    if offset <= 0 or offset % layout.file_bytes:
        return [("put", put)]
    return [("rolled", partial(_rolled, number=number, offset=offset, layout=layout)), ("put", put)]


def _rolled(state: StoreState, *, number: int, offset: int, layout: Layout) -> States:
    """The file in front of an offset is closed: readers see its blank."""
    if state.rolling >= 0 or not state.takes_puts or not 0 <= offset - state.log.end_offset < layout.file_bytes:
        return ()
    return (replace(state, rolling=number, log=state.log.changed(end_offset=offset)),)


def _put(state: StoreState, *, number: int, request: PutRequest, answer: Any, layout: Layout) -> States:
    if answer is not None and answer.status == "SERVICE_NOT_AVAILABLE":
        return () if state.takes_puts else (state,)
    if not state.takes_puts or state.rolling not in (-1, number):
        return ()
    clock = Clock(0 if answer is None else answer.store_timestamp)
    found = None if answer is None else said.Answer(put=said.PutAnswer(*astuple(answer)))
    outcomes = step(State(state.log, clock=clock), Put(advance_ms=0), layout, given=request.given)
    legal = outcomes if found is None else said.accepted(outcomes, found)
    return tuple(replace(state, log=after.log, rolling=-1) for after, _ in legal)


# ---- from the log to readers -----------------------------------------------------------------------------------------


def _commit_parts(
    number: int, layout: Layout, *, is_thorough: bool
) -> list[tuple[str, Callable[[StoreState], States]]]:
    if not layout.has_pool:
        return []
    begins = partial(_commit_begins, number=number, is_thorough=is_thorough)
    return [("commit begins", begins), ("commit ends", partial(_commit_ends, number=number))]


def _commit_begins(state: StoreState, *, number: int, is_thorough: bool) -> States:
    """What is written by now has to be shown at its end, if it takes everything."""
    return (replace(state, commits=(*state.commits, (number, state.log.end_offset if is_thorough else 0))),)


def _commit_ends(state: StoreState, *, number: int) -> States:
    owed = dict(state.commits).get(number)
    if owed is None:
        return ()
    left = tuple(each for each in state.commits if each[0] != number)
    return (replace(state, commits=left, least=max(state.least, owed), most=state.log.end_offset),)


def _dispatched(state: StoreState, *, layout: Layout) -> States:
    """Everything that readers surely see is in its queues and in the index."""
    least, _ = state.bounds(layout)
    for queue in {*state.queues(layout), queue_reads.INDEX}:
        shown = state.shown_of(queue)
        state = state.with_shown(queue, replace(shown, end_offset=max(shown.end_offset, least)))
    return (state,)


def _flushed(state: StoreState, *, answer: Any, layout: Layout) -> States:
    """A flush says up to where the log is durable: up to where readers see, and never less than before."""
    if answer is None or not answer.durable:
        return (state,)
    seen = state.seen(answer.flushed_offset, _FAR, layout)
    least, _ = state.bounds(layout)
    if seen is None or not max(least, state.flushed) <= answer.flushed_offset:
        return ()
    return (replace(seen, flushed=answer.flushed_offset),)


def _close_parts(number: int, layout: Layout, *, alone: bool) -> list[tuple[str, Callable[[StoreState], States]]]:
    """Of several closers at once one does the work, and the others return: each of them may be any."""
    parts = [
        ("takes no puts", lambda state: (replace(state, takes_puts=False),)),
        *_commit_parts(number, layout, is_thorough=alone),
        ("is closed", lambda state: (replace(state, is_open=False),)),
    ]
    return parts if alone else [(name, partial(_or_not, apply)) for name, apply in parts]


def _or_not(apply: Callable[[StoreState], States], state: StoreState) -> States:
    return (*apply(state), state)


# ---- deletions -------------------------------------------------------------------------------------------------------


def _cleaned(state: StoreState, *, answer: int | None, layout: Layout) -> States:
    """The log begins at another of its files, or at the same."""
    begin = state.log.min_offset if answer is None else answer
    last = state.log.end_offset - 1
    if begin % layout.file_bytes or not state.log.min_offset <= begin <= max(last, state.log.min_offset):
        return ()
    return (replace(state, log=state.log.changed(min_offset=begin)),)


def _deletion_parts(
    call: Call, calls: Sequence[Call], layout: Layout
) -> list[tuple[str, Callable[[StoreState], States]]]:
    names = () if call.answer is None else call.answer
    in_use = call.request.in_use
    given = [each.request.given for each in calls if isinstance(each.request, PutRequest)]
    queues = sorted({(message.topic, message.queue_id) for message in given if message.topic in names})
    return [
        ("commits stop", lambda state: (replace(state, begin_anew=names),)),
        ("numbers begin anew", partial(_forgotten, in_use=in_use, answer=call.answer, layout=layout)),
        *((f"{topic}/{queue_id} is gone", partial(_gone, queue=(topic, queue_id))) for topic, queue_id in queues),
        ("progress is forgotten", partial(_progress_forgotten, names=names)),
    ]


def _forgotten(state: StoreState, *, in_use: tuple[str, ...], answer: Any, layout: Layout) -> States:
    found = said.Answer(names=answer)
    legal = said.accepted(step(State(state.log), DeleteTopics(in_use), layout), found)
    return tuple(replace(state, log=after.log) for after, _ in legal)


def _progress_forgotten(state: StoreState, *, names: Sequence[str]) -> States:
    left = tuple((key, offset) for key, offset in state.progress if key[1][0] not in names)
    return (replace(state, progress=left, begin_anew=()),)


def _gone(state: StoreState, *, queue: Queue) -> States:
    """A queue is not shown any more, but for what was put behind the deletion."""
    shown = state.shown_of(queue)
    return (state.with_shown(queue, replace(shown, least=0, deleted=state.log.deleted)),)


# ---- reads -----------------------------------------------------------------------------------------------------------


def _read(state: StoreState, *, call: Call, layout: Layout) -> States:
    if call.ended is None:
        return (state,)
    if not state.is_open:
        return ()
    request, answer = call.request, call.answer
    match request:
        case GetRequest(offset):
            following = _got(state, offset, answer, layout)
        case PullRequest(topic, queue_id):
            following = queue_reads.pulled(state, (topic, queue_id), request, answer, layout)
        case CommitOffset():
            following = queue_reads.offset_committed(state, request, answer, layout)
        case QueryOffset():
            following = queue_reads.offset_queried(state, request, answer)
        case KeyRequest():
            following = queue_reads.found_by_key(state, request, answer, layout)
        case QueueMaximum(topic, queue_id):
            following = queue_reads.maximum(state, (topic, queue_id), answer, layout)
        case QueueMinimum(topic, queue_id):
            following = queue_reads.minimum(state, (topic, queue_id), answer, layout)
        case _:
            raise TypeError(f"no specification of {request!r}")
    return () if following is None else (following,)


def _got(state: StoreState, offset: int, answer: Any, layout: Layout) -> StoreState | None:
    """A get by physical offset (docs/statuses.md)."""
    if offset < state.log.min_offset:
        return state if answer.status == "OFFSET_TOO_SMALL" else None
    record = next((each for each in state.log.records if each.offset == offset), None)
    match answer.status:
        case "OFFSET_OVERFLOW_ONE":
            return state.seen(offset, offset, layout)
        case "OFFSET_OVERFLOW_BADLY":
            return state.seen(0, offset - 1, layout)
        case "OFFSET_FOUND_NULL":
            return state.seen(offset + 1, _FAR, layout) if record is None else None
        case "FOUND":
            if record is None or answer.record != ReadRecord(offset, record.queue_offset, record.message.body or b""):
                return None
            return state.seen(record.end_offset, _FAR, layout)
    return None
