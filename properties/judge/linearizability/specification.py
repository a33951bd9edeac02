"""The moments of a history: each call as the linearisation points that `model.parts` gives its operation.

What a store may answer is said by the model alone. Added here is what only a whole history tells: the queues that it
put to, and that of several closers at once one does the work while the others return.

Left out are filters, limits of bytes in one answer, and refusals for what a message is: other judges know them.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tornpage.model.dispatch import Queue
from tornpage.model.operations import Close, Put, PutBatch
from tornpage.model.parts import Part, Shared, parts, step_part
from tornpage.model.state import Clock, Layout, State
from tornpage.model.step_reads import Read
from tornpage.properties.judge.linearizability.calls import Call, asked_text
from tornpage.properties.judge.linearizability.linearise import Moment

__all__ = ["moments_of", "shared_at"]


def shared_at(wall_ms: int) -> Shared:
    """Return the state of a new store whose clock stands still at a time."""
    return Shared.of(State(clock=Clock(wall_ms)))


def moments_of(calls: Sequence[Call], layout: Layout) -> list[Moment[Shared]]:
    """Return the moments of a history, those of one call next to each other; reads without an answer have none."""
    moments: list[Moment[Shared]] = []
    puts = (call.request for call in calls if isinstance(call.request, Put | PutBatch))
    queues: list[Queue] = list(dict.fromkeys((put.topic, put.queue_id) for put in puts))
    for number, call in enumerate(calls):
        if call.ended is None and isinstance(call.request, Read):
            continue
        name = asked_text(call.request)
        before = -1
        states = _closed_by_one if _has_rivals(call, calls) else _states
        for part in parts(call.request, layout, caller=number, found=call.answer, queues=queues):
            moments.append(Moment(f"{name}: {part.name}", call.began, call.ended, partial(states, part), before))
            before = len(moments) - 1
    return moments


def _has_rivals(call: Call, calls: Sequence[Call]) -> bool:
    """Whether another close overlaps this one."""
    if not isinstance(call.request, Close):
        return False
    return any(call.overlaps(each) for each in calls if each is not call and isinstance(each.request, Close))


def _states(part: Part, shared: Shared) -> Iterator[Shared]:
    return (after for after, _ in step_part(shared, part))


def _closed_by_one(part: Part, shared: Shared) -> Iterator[Shared]:
    """Yield the state after a part of a close that did the work, and the state after one that found it done."""
    yield from _states(part, shared)
    yield shared
