"""Specify operations under an I/O fault rule: every legal outcome.

The model does not know which call a rule makes fail.

1. An operation happens whole, in part, or not at all. Earlier promises stand. If the disk has not made any call fail,
   only the first outcome is legal.
2. A put is stored where and as it would be without the rule, or refused. A refused put may have closed the last file.
3. The flushed offset rises to any place at which a flush may end. Readers see as far as the store answers, but not less
   than is flushed. A log may be poisoned. What a poisoned log has committed past its flushed offset is unknown.
4. A put answered "stored" by a synchronous store, a durable flush, and a clean close promise that everything is
   flushed.
5. Progress that is being saved counts as saved. A crash may find the one before (model/crash.py).
6. A clean-up ends after any of the files that it may delete, and may leave files on the disk that have left the log.
7. A deletion of topics happens for all of them or for none. If it has not happened, it is refused.
8. Each delay level goes on as far as the store answers, over messages that are due, each with its copy in the log. It
   stops at a message that is not due, at the end of what was dispatched, or at a copy that the disk refused.

Queues may lack records that could not be dispatched. How far dispatch has come is not part of these states.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tornpage.model import commitlog, progress, retention, schedule
from tornpage.model.answers import ANY_REFUSAL, Answer, Marks, PutAnswer, put_answer
from tornpage.model.commitlog import Appended, PutOutcome
from tornpage.model.delay import copy_of
from tornpage.model.dispatch import next_queue_offset
from tornpage.model.message import SCHEDULE_TOPIC, Batch, Message, PutStatus
from tornpage.model.operations import Clean, DeleteTopics, ServiceName
from tornpage.model.queues import Unit
from tornpage.model.schedule import DELIVERIES_OF_A_ROUND, FINAL
from tornpage.model.state import Buffer, CommitLog, Delivery, Faults, Hanging, Layout, Progress, State
from tornpage.model.waiting import in_line

__all__ = [
    "STEPS",
    "clean",
    "close",
    "delete",
    "flush",
    "messages_of_levels",
    "numbers_of_level",
    "places_of",
    "put",
    "stepped",
]

Outcomes = Iterator[tuple[State, Answer]]

STEPS = ("group-commit", "time-outs", "flush", "commit", "allocate", "reput", "flush-queues", "progress")
"""Services whose steps append nothing.

Held pulls and asynchronous delivery take no steps under a rule.
"""
STORED = (
    PutStatus.PUT_OK,
    PutStatus.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE,
)
"""The statuses of a put that is stored."""
FAR = 1 << 62


def places_of(log: CommitLog, layout: Layout) -> tuple[int, ...]:
    """Return where a flush or a commit may have ended: ends of records and files, watermarks."""
    ends = {record.end_offset for record in log.records}
    ends |= {number * layout.file_bytes for number in range(log.files + 1)}
    ends |= {0, log.flushed_offset, log.committed_offset, log.end_offset}
    return tuple(sorted(end for end in ends if end <= log.end_offset))


def marked(before: CommitLog, log: CommitLog, layout: Layout, found: Answer | None) -> Iterator[CommitLog]:
    """Yield a log with each legal pair of watermarks, poisoned or not.

    `before` has those that were promised.
    """
    wanted = None if found is None else found.marks
    places = [place for place in places_of(log, layout) if place >= before.flushed_offset]
    for flushed in places if wanted is None else {wanted.flushed}.intersection(places):
        readable = places if layout.has_pool else [log.end_offset]
        for end in readable if wanted is None else {wanted.readable}.intersection(readable):
            if flushed <= end:
                buffers = (Buffer(0, FAR, end),) if end < log.end_offset else ()
                yield log.changed(flushed_offset=flushed, buffers=buffers, poisoned=False)
        buffers = (Buffer(0, FAR, flushed),) if layout.has_pool and flushed < log.end_offset else ()
        yield log.changed(flushed_offset=flushed, buffers=buffers, poisoned=True)


def _said(state: State, log: CommitLog, answer: Answer) -> tuple[State, Answer]:
    """Return an outcome with the store's watermarks under a rule, and whether it is read-only."""
    marks = Marks(log.min_offset, log.flushed_offset, log.readable_end, log.end_offset)
    return replace(state, log=log), replace(answer, marks=marks, read_only=log.poisoned)


FIRED = Faults(fired=True)
"""Marks an outcome that is legal only if the disk has made a call fail."""


def _has_fired(state: State, found: Answer | None) -> bool:
    """Return whether the disk has made a call fail, or may have."""
    if found is None or found.faults is None:
        return True
    return found.faults.fired


# ---- puts and flushes ------------------------------------------------------------------------------------------------


def put(state: State, given: Message | Batch, layout: Layout, found: Answer | None) -> Outcomes:
    """Store a message where it would have been, or refuse it."""
    before, now_ms = state.log, state.clock.wall_ms
    after, appended = commitlog.append(before, given, layout=replace(layout, fast_fail=False), store_timestamp=now_ms)
    if appended.records:
        yield from _stored(state, after, appended, layout, found)
    if not appended.records or layout.fast_fail or _has_fired(state, found):
        is_usual = not appended.records or layout.fast_fail
        refused = Answer(put=PutAnswer(ANY_REFUSAL), faults=None if is_usual else FIRED)
        for log in (before, *_with_last_file_closed(before, layout)):
            for each in marked(before, log, layout, found):
                yield _said(state, each, replace(refused, note=appended))


def _stored(state: State, after: CommitLog, appended: Appended, layout: Layout, found: Answer | None) -> Outcomes:
    for status in STORED:
        answer = Answer(put=put_answer(PutOutcome(status, appended.records)), note=appended)
        if found is not None and found.put not in (None, answer.put):
            continue
        is_durable = status is PutStatus.PUT_OK and layout.sync_flush and appended.waits
        for log in marked(state.log, after, layout, found):
            if not is_durable or log.flushed_offset >= appended.records[-1].end_offset:
                yield _said(state, log, answer)


def _with_last_file_closed(log: CommitLog, layout: Layout) -> Iterator[CommitLog]:
    """Yield the log with its last file closed for a next one that was refused.

    Nothing is yielded if the log ends with the file anyway.
    """
    end_offset = log.files * layout.file_bytes
    if end_offset > log.end_offset:
        yield log.changed(end_offset=end_offset, files=log.files + 1)


def flush(state: State, layout: Layout, found: Answer | None) -> Outcomes:
    """Flush as much as the disk allows; a flush reported durable has flushed everything."""
    for log in marked(state.log, state.log, layout, found):
        if log.flushed_offset == log.end_offset:
            yield _said(state, log, Answer(durable=True))
        if _has_fired(state, found):
            yield _said(state, log, Answer(durable=False, faults=FIRED))


def stepped(state: State, service: ServiceName, layout: Layout, found: Answer | None) -> Outcomes:
    """Let a service take a step; it may give up only after the disk has made a call fail."""
    if service == "schedule":
        yield from _delivered(state, layout, found)
        return
    if service == "progress":
        log = state.log.changed(saved_delays=state.log.delays)
        state = replace(state, consumers=progress.save(state.consumers), log=log)
    for log in marked(state.log, state.log, layout, found):
        yield _said(state, log, Answer(failed=False))
        if _has_fired(state, found):
            yield _said(state, log, Answer(failed=True, faults=FIRED))


def close(state: State, layout: Layout, found: Answer | None) -> Outcomes:
    """Close; a clean exit, or a durably removed abort marker, means everything is durable.

    All waits end, and each level goes on after the copies in its line, as far as the store answers.
    """
    closed = replace(state, consumers=progress.save(state.consumers), is_open=False, puts=(), pulls=(), buffers=())
    fired = _has_fired(state, found)
    for log in _after_answered_copies(state, layout, found):
        durable = log.changed(
            flushed_offset=log.end_offset,
            buffers=(),
            dispatched_offset=log.end_offset,
            saved_delays=log.delays,
            poisoned=False,
        )
        delays = None if layout.role == "SLAVE" else log.delays
        answer = Answer(clean=True, delays=delays)
        yield replace(closed, log=durable.changed(undecided=())), answer
        if fired:
            yield replace(closed, log=durable), replace(answer, clean=False, marked=False, faults=FIRED)
            unknown = log.changed(poisoned=True, saved_delays=log.delays)
            yield replace(closed, log=unknown), replace(answer, clean=False, marked=True, faults=FIRED)


def _after_answered_copies(state: State, layout: Layout, found: Answer | None) -> Iterator[CommitLog]:
    """Yield the log with each level moved after none, some or all of the copies in its line."""
    log = state.log
    if layout.role == "SLAVE":
        yield log
        return
    before, levels = dict(log.delays), {pending.level: in_line(log, pending.level) for pending in log.pending}
    ranges = {level: range(before.get(level, 0), line[-1].number + 2) for level, line in levels.items()}
    if found is not None and found.delays is not None:
        said = dict(found.delays)
        is_legal = all(number in ranges.get(level, (before.get(level, 0),)) for level, number in said.items())
        ways: Iterable[Mapping[int, int]] = [said] if is_legal else []
    else:
        ways = ({**before, **dict(zip(ranges, way, strict=True))} for way in product(*ranges.values()))
    for way in ways:
        yield log.changed(delays=tuple(sorted(way.items())), pending=())


# ---- deletions -------------------------------------------------------------------------------------------------------


def clean(state: State, operation: Clean, layout: Layout, found: Answer | None) -> Outcomes:
    """Delete files from the head of the log, as many as the run may and the disk allows.

    Dispatch may have come further than is known, and so may a commit that broke off: the whole log counts.
    """
    before = retention.ask_for_runs(state.log) if operation.manual else state.log
    clock = state.clock
    most, _ = retention.clean(
        before.changed(dispatched_offset=before.end_offset, buffers=()),
        layout=layout,
        now_ms=clock.wall_ms,
        timer_ms=clock.now_ms,
        percent=state.environment.percent_used,
    )
    begins = range(before.min_offset, most.min_offset + 1, layout.file_bytes)
    if found is not None and found.marks is not None:
        begins_found: Sequence[int] = [found.marks.min_offset] if found.marks.min_offset in begins else []
    else:
        begins_found = begins
    for begin in begins_found:
        for oldest in range(0, begin + 1, layout.file_bytes):
            if found is not None and found.oldest_offset not in (None, oldest):
                continue
            log = most.changed(
                min_offset=begin,
                hanging=None if oldest == begin else Hanging(oldest, clock.now_ms, clock.now_ms),
                dispatched_offset=max(before.dispatched_offset, begin),
                buffers=before.buffers,
                undecided=before.undecided if begin == before.min_offset else (),  # decided before any file is removed
            )
            for each in marked(state.log, log, layout, found):
                yield _said(state, each, Answer(oldest_offset=oldest))


def delete(state: State, operation: DeleteTopics, layout: Layout, found: Answer | None) -> Outcomes:
    """Delete all topics except those in use, or none.

    The disk may refuse to store the deletion, or to remove a file after it. The offsets of consumers may be 0 on the
    disk although the deletion was refused.
    """
    before = state.log
    after, gone = retention.delete_topics(before, layout=layout, in_use=operation.in_use)
    consumers = progress.delete_topics(state.consumers, gone)
    done = replace(state, consumers=consumers)
    for log in marked(before, after.changed(undecided=()) if gone else after, layout, found):
        yield _said(done, log, Answer(names=gone, is_anew=True))
        if gone and _has_fired(state, found):
            yield _said(done, log, Answer(names="refused", is_anew=True, faults=FIRED))
    if gone and _has_fired(state, found):
        refused = replace(state, consumers=replace(state.consumers, saved=consumers.saved, is_changed=True))
        for log in marked(before, retention.refuse_deletion(before, after), layout, found):
            yield _said(refused, log, Answer(names="refused", is_anew=False, faults=FIRED))


# ---- delivery --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Round:
    """A possible state during a round: its log, its levels, and whether a copy was refused."""

    log: CommitLog
    delays: Progress
    refused: bool = False


def _delivered(state: State, layout: Layout, found: Answer | None) -> Outcomes:
    """Let each level go on, as far as the store answers if it does."""
    before, levels = state.log, messages_of_levels(state.log, layout)
    said = {} if found is None or found.delays is None else dict(found.delays)
    is_said = found is not None and found.delays is not None
    rounds = [_Round(before, ())]
    for level in sorted({*levels, *dict(before.delays), *said}):
        units = levels.get(level, ())
        ways: Iterable[int | None] = numbers_of_level(state, level, units, layout)
        if is_said:
            ways = {said.get(level)}.intersection(ways)
        rounds = [
            after
            for number in ways
            for each in rounds
            for after in _gone_on(state, each, level, units, number, layout, found)
        ]
    for each in rounds:
        log = each.log.changed(delays=each.delays)
        for one in marked(before, log, layout, found):
            yield _said(state, one, Answer(delays=each.delays, note=each.refused))


def messages_of_levels(log: CommitLog, layout: Layout) -> dict[int, tuple[Unit, ...]]:
    """Return the messages of each level, including those that dispatch may not have reached."""
    return schedule.units_of_levels(log.changed(dispatched_offset=log.end_offset, buffers=()), layout)


def numbers_of_level(state: State, level: int, units: Sequence[Unit], layout: Layout) -> tuple[int | None, ...]:
    """Return each number that a level may have reached after a round, ascending.

    None is no progress. `units` are the messages of the level. A level without a message may pass expired messages that
    its queue still has.
    """
    log = state.log
    known = dict(log.delays).get(level)
    stays: tuple[int | None, ...] = (None,) if known is None else ()
    if not units:
        start = known or 0
        end = next_queue_offset(log, (SCHEDULE_TOPIC, level - 1), layout=layout)
        return *stays, *range(start, max(start, end) + 1)
    start = units[0].queue_offset if known is None else known
    begin = end = max(start, units[0].queue_offset)
    for unit in units:
        if unit.queue_offset >= begin:
            if unit.tags_code > state.clock.wall_ms or unit.queue_offset >= begin + DELIVERIES_OF_A_ROUND:
                break
            end = unit.queue_offset + 1
    return *stays, *range(start, end + 1)


def _gone_on(
    state: State,
    by_then: _Round,
    level: int,
    units: Sequence[Unit],
    number: int | None,
    layout: Layout,
    found: Answer | None,
) -> Iterator[_Round]:
    """Yield each round in which a level has reached a number, with the copies on the way."""
    delays = by_then.delays if number is None else (*by_then.delays, (level, number))
    if not units:
        yield replace(by_then, delays=delays)
        return
    wall_ms, log = state.clock.wall_ms, by_then.log
    known = dict(state.log.delays).get(level, units[0].queue_offset)
    begin, end = max(known, units[0].queue_offset), known if number is None else number
    passed = [unit for unit in units if begin <= unit.queue_offset < end]
    for unit in passed:
        copy, end_offset = copy_of(unit.record.message), unit.record.end_offset
        if copy is not None:
            log, appended = _put_copy(log, copy, layout, wall_ms)
            if not appended.records and appended.status not in FINAL:
                return  # a level never goes on after a copy that cannot be in the log
            end_offset = appended.records[-1].end_offset if appended.records else end_offset
        log = log.changed(delivered=(*log.delivered, Delivery(level, unit.queue_offset, end_offset)))
    after = replace(by_then, log=log, delays=delays)
    left = [unit for unit in units if unit.queue_offset >= max(begin, end)]
    if not left or len(passed) >= DELIVERIES_OF_A_ROUND or not _was_tried(state, left[0], level, found):
        yield after
    elif _may_be_refused(state, log, left[0], layout, found):
        yield replace(after, refused=True)
        for closed in _with_last_file_closed(log, layout):
            yield replace(after, log=closed, refused=True)


def _put_copy(log: CommitLog, copy: Message, layout: Layout, wall_ms: int) -> tuple[CommitLog, Appended]:
    return commitlog.append(log, copy, layout=replace(layout, fast_fail=False), store_timestamp=wall_ms)


def _was_tried(state: State, unit: Unit, level: int, found: Answer | None) -> bool:
    """Return whether a message is due, in its queue and readable, so that its copy was tried."""
    ends = None if found is None or found.level_ends is None else dict(found.level_ends)
    in_queue = ends is None or unit.queue_offset < ends.get(level, 0)
    is_there = in_queue and unit.record.end_offset <= state.log.readable_end
    return is_there and unit.tags_code <= state.clock.wall_ms and not state.log.poisoned


def _may_be_refused(state: State, log: CommitLog, unit: Unit, layout: Layout, found: Answer | None) -> bool:
    """Return whether a level may stop at a message that was tried.

    It may if the disk fails, or if the store takes no puts. Its level may not have seen a message whose dispatch broke
    off.
    """
    if found is not None and found.dispatched is not None and unit.record.end_offset > found.dispatched:
        return True
    copy = copy_of(unit.record.message)
    if copy is None:
        return False
    _, appended = _put_copy(log, copy, layout, state.clock.wall_ms)
    if appended.records:
        return layout.fast_fail or _has_fired(state, found)
    return appended.status not in FINAL
