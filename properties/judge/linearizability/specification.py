"""The moments of a history: the linearisation points of each call, from `model.parts`.

The model alone decides what a store may answer. This module adds what only the history shows: the queues with puts, and
that of several overlapping closes one does the work while the others return.

Filters, byte limits of an answer, and refusals of invalid messages are left out; other judges cover them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tornpage.model.answers import PutAnswer
from tornpage.model.dispatch import Queue
from tornpage.model.operations import Close, Put, PutBatch
from tornpage.model.parts import Part, Shared, parts, step_part
from tornpage.model.state import Clock, Layout, State
from tornpage.model.step_reads import Read
from tornpage.properties.judge.linearizability.calls import Call, request_text
from tornpage.properties.judge.linearizability.linearise import Point

__all__ = ["points_of", "shared_at"]


def shared_at(wall_ms: int) -> Shared:
    """Return the state of a new store whose clock is fixed at a time."""
    return Shared.of(State(clock=Clock(wall_ms)))


def points_of(calls: Sequence[Call], layout: Layout, *, clock_moves: bool = False) -> list[Point[Shared]]:
    """Return the moments of a history, those of one call in a row.

    Reads without an answer have none. If the clock moves, a put happens at the time that its answer says. The caller
    then has to check that this time lies within the call.
    """
    points: list[Point[Shared]] = []
    puts = (call.request for call in calls if isinstance(call.request, Put | PutBatch))
    queues: list[Queue] = list(dict.fromkeys((put.topic, put.queue_id) for put in puts))
    for number, call in enumerate(calls):
        if call.ended is None and isinstance(call.request, Read):
            continue
        name = request_text(call.request)
        before = -1
        states = _closed_by_one if _has_rivals(call, calls) else _states_at(_time_of(call) if clock_moves else None)
        for part in parts(call.request, layout, caller=number, found=call.answer, queues=queues):
            points.append(Point(f"{name}: {part.name}", call.began, call.ended, partial(states, part), before))
            before = len(points) - 1
    return points


def _has_rivals(call: Call, calls: Sequence[Call]) -> bool:
    """Whether another close overlaps this call."""
    if not isinstance(call.request, Close):
        return False
    return any(call.overlaps(each) for each in calls if each is not call and isinstance(each.request, Close))


def _time_of(call: Call) -> int | None:
    """Return the store time that a put answers with, in milliseconds; None for other calls."""
    put = None if call.answer is None else call.answer.put
    return put.store_timestamp if isinstance(put, PutAnswer) and put.offset >= 0 else None


def _states_at(now_ms: int | None) -> Callable[[Part, Shared], Iterator[Shared]]:
    """Return what yields the states after a part, at a time (ms) or at that of the state."""
    if now_ms is None:
        return _states

    def states(part: Part, shared: Shared) -> Iterator[Shared]:
        return _states(part, replace(shared, state=replace(shared.state, clock=Clock(now_ms))))

    return states


def _states(part: Part, shared: Shared) -> Iterator[Shared]:
    return (after for after, _ in step_part(shared, part))


def _closed_by_one(part: Part, shared: Shared) -> Iterator[Shared]:
    """Yield the states after a close that did the work, and after one without work."""
    yield from _states(part, shared)
    yield shared
