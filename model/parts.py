"""Split the operations of several clients at their linearisation points.

At a linearisation point an operation takes effect for the other clients. `parts` returns the points of an operation in
order. `step_part` yields each legal state and answer after one point. The meaning of a point is that of `model.step` on
the log as it is seen there. All parts of an operation in order, with nothing between them, are one `step`
(tests/model/test_parts.py).

1. A put is one point. A put that needs a new log file closes the old one at an earlier point, where readers see its
   blank.
2. Without a pool readers see all of the log. With a pool they see it up to a place that moves only during a commit,
   byte by byte. At the end of a thorough commit they see everything that was appended when it began. Records that were
   seen stay visible.
3. Each queue, and the index, shows the log up to a place of its own. This place only rises, and never past what readers
   see. A step of dispatch moves all places up to what readers certainly see. A queue may be known before it shows its
   first unit.
4. A clean-up removes files from the head at one point. Which files it removes depends on what is durable, which no
   client learns. Each queue follows later, in its own time. Until then a pull skips the records that are gone.
5. A deletion of topics first stops their commits, then resets their numbers, then removes one queue after the other,
   then their progress.
6. A close first refuses puts, then makes all of the log visible, then refuses everything.
7. What is unknown is kept as a range. The answer of a store, `found`, narrows the range only as far as the answer
   requires. Without `found` a part yields an outcome for each place in the range.

Services that only write to the disk change nothing that a client sees. They are one point.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tornpage.model import progress
from tornpage.model.answers import Answer, QueueRead, accepted, matches
from tornpage.model.dispatch import Queue, places
from tornpage.model.operations import (
    AnyOperation,
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetAt,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.state import Layout, State
from tornpage.model.step import step
from tornpage.model.step_under_faults import places_of

__all__ = ["Part", "Shared", "Shown", "parts", "step_part"]

INDEX: Queue = ("/", 0)
"""The key of the index among the queues; no topic has this name."""
FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class Shown:
    """What a queue shows: records before `end_offset`, numbers from `least`, topics `deleted`."""

    end_offset: int = 0
    least: int = 0
    deleted: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Shared:
    """The state of a store, and how much of it each of several clients may see.

    All offsets are physical. With a pool readers certainly see the log up to `least`, and possibly up to `most`.
    `commits` are those in progress: the caller of each, the offset that must be visible at its end, and the end of the
    log when it began. `rolling` is the caller whose put has closed a log file and appended nothing yet, -1 for none.
    `shown` is what each queue shows, where that differs from the log. All queues have followed the deletions `deleted`,
    and a log that began at `min_offset`. In the topics `begin_anew` commits of offsets have no effect.
    """

    state: State
    least: int = 0
    most: int = 0
    commits: tuple[tuple[int, int, int], ...] = ()
    rolling: int = -1
    shown: tuple[tuple[Queue, Shown], ...] = ()
    deleted: tuple[tuple[str, int], ...] = ()
    min_offset: int = 0
    begin_anew: tuple[str, ...] = ()
    takes_puts: bool = True

    @classmethod
    def of(cls, state: State) -> "Shared":
        """Return the shared state while no operation runs; everything that clients see is known."""
        log, readable = state.log, state.log.readable_end
        return cls(state, readable, readable, deleted=log.deleted, min_offset=log.min_offset, takes_puts=state.is_open)

    def __hash__(self) -> int:
        """Hash the fields that tell most states apart; only equal hashes compare records."""
        disk, state = self.state.log.disk, self.state
        return hash(
            (
                disk.end_offset,
                disk.min_offset,
                disk.flushed_offset,
                disk.dispatched_offset,
                len(disk.records),
                disk.deleted,
                state.consumers.committed,
                state.is_open,
                self.least,
                self.most,
                self.commits,
                self.rolling,
                self.shown,
                self.begin_anew,
                self.takes_puts,
            )
        )

    def bounds(self, layout: Layout) -> tuple[int, int]:
        """Return up to where readers certainly see the log, and up to where they possibly do."""
        end_offset = self.state.log.end_offset
        if not layout.has_pool:
            return end_offset, end_offset
        return self.least, end_offset if self.commits else self.most

    def seen(self, at_least: int, at_most: int, layout: Layout) -> "Shared":
        """Return the state after a reader's answer has shown up to where it sees the log."""
        if not layout.has_pool:
            return self
        least, most = max(self.least, at_least), self.most if self.commits else min(self.most, at_most)
        return self if (least, most) == (self.least, self.most) else replace(self, least=least, most=most)

    def shown_of(self, queue: Queue) -> Shown:
        """Return what a queue shows."""
        shown = next((shown for found, shown in self.shown if found == queue), Shown(0, 0, self.deleted))
        dispatched = self.state.log.dispatched_offset
        return shown if shown.end_offset >= dispatched else replace(shown, end_offset=dispatched)

    def showing(self, queue: Queue, shown: Shown) -> "Shared":
        """Return the state in which a queue shows the log as given."""
        if shown == self.shown_of(queue):
            return self
        return replace(self, shown=tuple(sorted({**dict(self.shown), queue: shown}.items())))

    def with_log(self, **changes: Any) -> "Shared":
        """Return the state with changes of the log."""
        return replace(self, state=replace(self.state, log=self.state.log.changed(**changes)))


Outcomes = Iterator[tuple[Shared, Answer]]
QueueOperation = Pull | AskMaximum | AskMinimum | Commit | QueryProgress


@dataclass(frozen=True, slots=True)
class Part:
    """One linearisation point of an operation: its name, and what it yields in a state."""

    name: str
    outcomes: Callable[[Shared], Outcomes]


def parts(
    operation: AnyOperation,
    layout: Layout,
    *,
    caller: int = 0,
    found: Answer | None = None,
    queues: Iterable[Queue] = (),
) -> tuple[Part, ...]:
    """Return the linearisation points of an operation in order.

    `caller` identifies one of several concurrent operations. Outcomes that the answer `found` rules out are left out.
    `queues` are those that a deletion of topics may remove.
    """
    if found is not None and found.client == "closed":
        return (Part("is refused", partial(_refused, found=found)),)
    match operation:
        case Put() | PutBatch():
            put = Part("put", partial(_put, operation=operation, layout=layout, caller=caller, found=found))
            if not _begins_a_file(found, layout):
                return (put,)
            return Part("rolled", partial(_rolled, layout=layout, caller=caller, found=found)), put
        case Step("reput"):
            return (Part("dispatched", partial(_dispatched, operation=operation, layout=layout)),)
        case Step("commit") if layout.has_pool:
            return _commit(operation, layout, caller, is_thorough=False)
        case Step("clean"):
            return (Part("cleaned", partial(_cleaned, layout=layout, found=found)),)
        case Flush():
            flushed = partial(_flushed, operation=operation, layout=layout, found=found)
            return (*_commit(operation, layout, caller, is_thorough=True), _answered("flushed", flushed, found))
        case DeleteTopics():
            return _deletion(operation, layout, found, queues)
        case Close():
            return (
                Part("takes no puts", _takes_no_puts),
                *_commit(operation, layout, caller, is_thorough=True),
                Part("is closed", partial(_whole, operation=operation, layout=layout, found=found)),
            )
        case GetAt():
            got = partial(_got, operation=operation, layout=layout, found=found)
            return (_answered("answered", got, found),)
        case Query():
            queried = partial(_queried, operation=operation, layout=layout, found=found)
            return (_answered("answered", queried, found),)
        case Pull() | AskMaximum() | AskMinimum() | Commit() | QueryProgress():
            read = partial(_queue_read, operation=operation, layout=layout, found=found)
            return (_answered("answered", read, found),)
        case _:
            return (Part("done", partial(_whole, operation=operation, layout=layout, found=found)),)


def step_part(shared: Shared, part: Part) -> Outcomes:
    """Yield every legal state and answer after a part.

    The answer is empty in fields that other parts decide.
    """
    return part.outcomes(shared)


def _answered(name: str, outcomes: Callable[[Shared], Outcomes], found: Answer | None) -> Part:
    """Return a part that a closed store refuses."""
    return Part(name, lambda shared: outcomes(shared) if shared.state.is_open else _refused(shared, found=found))


def _ruled(outcomes: Iterator[tuple[State, Answer]], found: Answer | None) -> Iterator[tuple[State, Answer]]:
    return outcomes if found is None else accepted(outcomes, found)


def _whole(shared: Shared, *, operation: AnyOperation, layout: Layout, found: Answer | None) -> Outcomes:
    for state, answer in _ruled(step(shared.state, operation, layout, found=found), found):
        yield replace(shared, state=state), answer


def _refused(shared: Shared, *, found: Answer | None) -> Outcomes:
    """Refuse an operation on a closed store."""
    if not shared.state.is_open and (found is None or found.client == "closed"):
        yield shared, Answer(client="closed")


# ---- puts ------------------------------------------------------------------------------------------------------------


def _begins_a_file(found: Answer | None, layout: Layout) -> bool:
    put = None if found is None else found.put
    return isinstance(put, tuple) and put.offset > 0 and not put.offset % layout.file_bytes


def _rolled(shared: Shared, *, layout: Layout, caller: int, found: Answer | None) -> Outcomes:
    """Close the last log file: its rest is blank."""
    end = shared.state.log.files * layout.file_bytes
    fits = found is None or not isinstance(found.put, tuple) or found.put.offset == end
    if shared.takes_puts and shared.rolling < 0 and fits:
        yield replace(shared.with_log(end_offset=end), rolling=caller), Answer()


def _put(shared: Shared, *, operation: Put | PutBatch, layout: Layout, caller: int, found: Answer | None) -> Outcomes:
    """Put, unless another put is about to begin a new file.

    A store that is closing answers SERVICE_NOT_AVAILABLE.
    """
    is_open = shared.state.is_open
    if not shared.takes_puts:
        closed = replace(shared.state, is_open=False)
        for state, answer in _ruled(step(closed, operation, layout, found=found), found):
            yield replace(shared, state=replace(state, is_open=is_open)), answer
    elif shared.rolling in (-1, caller):
        for state, answer in _ruled(step(shared.state, operation, layout, found=found), found):
            yield replace(shared, state=state, rolling=-1), answer


# ---- from the log to readers -----------------------------------------------------------------------------------------


def _commit(operation: AnyOperation, layout: Layout, caller: int, *, is_thorough: bool) -> tuple[Part, ...]:
    if not layout.has_pool:
        return ()
    ends = partial(_commit_ends, operation=operation, layout=layout, caller=caller)
    return (
        Part("commit begins", partial(_commit_begins, caller=caller, is_thorough=is_thorough)),
        Part("commit ends", ends),
    )


def _commit_begins(shared: Shared, *, caller: int, is_thorough: bool) -> Outcomes:
    """Note that readers must see the log up to here at the end of a thorough commit."""
    end = shared.state.log.end_offset
    yield replace(shared, commits=(*shared.commits, (caller, end if is_thorough else 0, end))), Answer()


def _commit_ends(shared: Shared, *, operation: AnyOperation, layout: Layout, caller: int) -> Outcomes:
    """End the commit of a caller.

    Which buffers are empty is known only if nothing was appended meanwhile.
    """
    for number, owed, end_then in shared.commits:
        if number != caller:
            continue
        end, state = shared.state.log.end_offset, shared.state
        if isinstance(operation, Step) and end == end_then:
            ((state, _),) = step(state, operation, layout)
        left = tuple(each for each in shared.commits if each[0] != caller)
        yield replace(shared, state=state, commits=left, least=max(shared.least, owed), most=end), Answer()


def _dispatched(shared: Shared, *, operation: Step, layout: Layout) -> Outcomes:
    """Show everything that readers certainly see in its queues and in the index."""
    least, _ = shared.bounds(layout)
    for state, answer in step(_as_seen(shared.state, least), operation, layout):
        yield shared.with_log(dispatched_offset=state.log.dispatched_offset), answer


def _flushed(shared: Shared, *, operation: Flush, layout: Layout, found: Answer | None) -> Outcomes:
    """Flush up to where readers see the log, and answer with that place.

    The place is never lower than before.
    """
    end, flushed = shared.state.log.end_offset, shared.state.log.flushed_offset
    for place in _places_seen(shared, layout):
        seen = shared.state if place == end else _as_seen(shared.state, place)
        for state, answer in step(seen, operation, layout):
            answer = answer.with_all(client=state.log.flushed_offset)
            if place < flushed or (found is not None and not matches(answer, found)):
                continue
            after = replace(shared, state=state) if place == end else shared.with_log(flushed_offset=place)
            yield after.seen(place, place if found is None else FAR, layout), answer
            if found is not None:
                return


def _places_seen(shared: Shared, layout: Layout) -> Sequence[int]:
    """Return each place up to which readers may see the log, lowest first."""
    least, most = shared.bounds(layout)
    if least == most:
        return (least,)
    return [place for place in places_of(shared.state.log, layout) if least <= place <= most]


def _as_seen(state: State, end_offset: int, **changes: Any) -> State:
    """Return the state in which readers see the log up to an offset."""
    log = state.log
    if log.buffers or end_offset != log.end_offset:
        changes |= {"end_offset": end_offset, "buffers": ()}
    changes = {name: value for name, value in changes.items() if getattr(log, name) != value}
    return replace(state, log=log.changed(**changes)) if changes else state


# ---- a close, and deletions ------------------------------------------------------------------------------------------


def _takes_no_puts(shared: Shared) -> Outcomes:
    yield replace(shared, takes_puts=False), Answer()


def _cleaned(shared: Shared, *, layout: Layout, found: Answer | None) -> Outcomes:
    """Move the begin of the log to one of its files; the last file stays."""
    log = shared.state.log
    for begin in range(log.min_offset, max(log.end_offset, log.min_offset + 1), layout.file_bytes):
        answer = Answer(client=begin)
        if found is None or matches(answer, found):
            yield shared.with_log(min_offset=begin), answer


def _deletion(
    operation: DeleteTopics, layout: Layout, found: Answer | None, queues: Iterable[Queue]
) -> tuple[Part, ...]:
    names = None if found is None else found.names
    begin_anew = partial(_numbers_begin_anew, operation=operation, layout=layout, found=found)
    known = sorted({queue for queue in queues if names is None or queue[0] in names})
    return (
        Part("commits stop", partial(_commits_stop, operation=operation, layout=layout, found=found)),
        _answered("numbers restart", begin_anew, found),
        *(Part(f"{topic}/{number} is gone", partial(_gone, queue=(topic, number))) for topic, number in known),
        Part("progress is forgotten", _progress_forgotten),
    )


def _commits_stop(shared: Shared, *, operation: DeleteTopics, layout: Layout, found: Answer | None) -> Outcomes:
    names = None if found is None else found.names
    if names is None:
        ((_, answer),) = step(shared.state, operation, layout)
        names = answer.names or ()
    yield replace(shared, begin_anew=tuple(names)), Answer()


def _numbers_begin_anew(shared: Shared, *, operation: DeleteTopics, layout: Layout, found: Answer | None) -> Outcomes:
    for state, answer in _ruled(step(shared.state, operation, layout, found=found), found):
        yield replace(shared, state=replace(state, consumers=shared.state.consumers)), answer


def _gone(shared: Shared, *, queue: Queue) -> Outcomes:
    """Remove a queue: it no longer shows a record from before the deletion."""
    if queue[0] in shared.begin_anew:
        shown = replace(shared.shown_of(queue), least=0, deleted=shared.state.log.deleted)
        shared = shared.showing(queue, shown)
    yield shared, Answer()


def _progress_forgotten(shared: Shared) -> Outcomes:
    consumers = progress.delete_topics(shared.state.consumers, shared.begin_anew)
    yield replace(shared, state=replace(shared.state, consumers=consumers), begin_anew=()), Answer()


# ---- reads -----------------------------------------------------------------------------------------------------------


def _got(shared: Shared, *, operation: GetAt, layout: Layout, found: Answer | None) -> Outcomes:
    """Get by physical offset.

    The answer shows up to where the log is seen, which may be one of several places.
    """
    legal: list[tuple[int, Answer]] = []
    places_seen = _places_seen(shared, layout)
    for place in places_seen:
        for _, answer in step(_as_seen(shared.state, place), operation, layout):
            if found is None:
                yield shared.seen(place, place, layout), answer
            elif matches(answer, found):
                legal.append((place, answer))
    if legal:
        (first, answer), (last, _) = legal[0], legal[-1]
        yield shared.seen(first, FAR if last == places_seen[-1] else last, layout), answer


def _queue_read(shared: Shared, *, operation: QueueOperation, layout: Layout, found: Answer | None) -> Outcomes:
    """Read a queue that shows the log up to some place and begins at some number."""
    queue = operation.topic, operation.queue_id
    if isinstance(operation, Commit) and queue[0] in shared.begin_anew:
        if found is None or found.committed == 0:
            yield shared, Answer(committed=0)
        return
    shown = shared.shown_of(queue)
    for place in _places_shown(shared, queue, shown, layout):
        for begin in _begins(shared, queue, shown, place, layout) if isinstance(operation, _SAYS_BEGIN) else (None,):
            for state, answer in _read_at(shared, operation, layout, place, begin, shown):
                if found is not None and not matches(answer, found):
                    continue
                now = replace(shown, end_offset=place, least=_least(answer, operation, shown))
                after = shared.seen(place, FAR, layout).showing(queue, now)
                if state.consumers is not shared.state.consumers:
                    after = replace(after, state=replace(after.state, consumers=state.consumers))
                yield after, answer
                if found is not None:
                    return


_SAYS_BEGIN = Pull, AskMinimum, QueryProgress
"""The reads whose answers depend on where a queue begins."""


def _least(answer: Answer, operation: QueueOperation, shown: Shown) -> int:
    """Return the lowest number at which a queue can begin after an answer."""
    if isinstance(answer.client, QueueRead):
        return answer.client.min_offset
    return answer.client if isinstance(operation, AskMinimum) and isinstance(answer.client, int) else shown.least


def _places_shown(shared: Shared, queue: Queue, shown: Shown, layout: Layout) -> Iterator[int]:
    """Yield each place up to which a queue may show the log, lowest first.

    The queue shows the log as before, or up to the end of a later unit.
    """
    yield shown.end_offset
    _, most = shared.bounds(layout)
    for record in shared.state.log.records:
        if shown.end_offset < record.end_offset <= most and queue in dict(places(record, layout)):
            yield record.end_offset


def _begins(shared: Shared, queue: Queue, shown: Shown, place: int, layout: Layout) -> Iterator[int | None]:
    """Yield the offset of each removed record with which a queue may still begin.

    None stands for a queue that has followed the log. A queue never begins earlier than it did before.
    """
    log = shared.state.log
    deleted = dict(shown.deleted).get(queue[0], 0)
    first = max(deleted, shared.min_offset)
    for record in log.records if first < log.min_offset else ():
        if first <= record.offset < log.min_offset and record.end_offset <= place:
            number = dict(places(record, layout)).get(queue, -1)
            if number >= shown.least:
                yield record.offset
    yield None


def _read_at(
    shared: Shared, operation: QueueOperation, layout: Layout, place: int, begin: int | None, shown: Shown
) -> Iterator[tuple[State, Answer]]:
    """Yield the answers of a read of a queue that shows the log up to `place`.

    The queue begins with the record at `begin`.
    """
    least, _ = shared.bounds(layout)
    here = partial(_as_seen, shared.state, max(least, place), dispatched_offset=place, deleted=shown.deleted)
    log_begin = shared.state.log.min_offset
    for state, answer in step(here(min_offset=log_begin if begin is None else begin), operation, layout):
        pulled = answer.client
        if isinstance(operation, Pull) and isinstance(pulled, QueueRead):
            if any(record.offset < log_begin for record in pulled.records):
                answer = answer.with_all(client=_without_gone(here(), operation, layout, pulled))
            elif pulled.status == "NO_MATCHED_LOGIC_QUEUE":  # a queue may be known before it shows its first unit
                yield state, answer.with_all(client=pulled._replace(status="NO_MESSAGE_IN_QUEUE"))
        yield state, answer


def _without_gone(state: State, operation: Pull, layout: Layout, pulled: QueueRead) -> QueueRead:
    """Return the answer of a pull that skips removed records in a queue that lags the log."""
    ((_, begin),) = step(state, AskMinimum(operation.topic, operation.queue_id), layout)
    assert isinstance(begin.client, int)
    ((_, answer),) = step(state, replace(operation, offset=begin.client), layout)
    left = answer.client
    assert isinstance(left, QueueRead)
    status = left.status if left.records else "MESSAGE_WAS_REMOVING"
    return left._replace(status=status, min_offset=pulled.min_offset)


def _queried(shared: Shared, *, operation: Query, layout: Layout, found: Answer | None) -> Outcomes:
    """Query by key; the index shows the log up to a place of its own."""
    shown = shared.shown_of(INDEX)
    least, most = shared.bounds(layout)
    ends = (each.end_offset for each in shared.state.log.records if shown.end_offset < each.end_offset <= most)
    for place in (shown.end_offset, *ends):
        seen = _as_seen(shared.state, max(least, place), dispatched_offset=place)
        for _, answer in step(seen, operation, layout):
            if found is None or matches(answer, found):
                after = shared.seen(place, FAR, layout)
                yield after.showing(INDEX, replace(shown, end_offset=place)), answer
                if found is not None:
                    return
