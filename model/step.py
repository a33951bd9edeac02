"""Specify every operation: each legal state and answer of a store after it.

1. `begin` lets time pass and sets the environment for the operation. `applies` says whether the operation reaches the
   store at all. `step` yields every legal outcome. `model.answers.accepted` keeps those that an answer allows.
2. Most operations have one outcome. Several are legal where the order of two clients, a failing disk, or clocks that
   went back leave it open.
3. Under an I/O fault rule the failing call is unknown: `model.step_under_faults` has those outcomes.
4. A single fault either strikes or is left. The number of faults left tells these outcomes apart.
5. An outcome that `found` rules out may be left out. That saves time and does not change what is accepted.

Crashes and recoveries are in `model.crash`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal

from tornpage.model import (
    commitlog,
    flushing,
    index,
    pool,
    progress,
    retention,
    schedule,
    step_reads,
    waiting,
)
from tornpage.model import step_under_faults as under_faults
from tornpage.model.answers import (
    Answer,
    NextRound,
    ProducerPut,
    PullAnswer,
    PutAnswer,
    marks_of,
    put_answer,
)
from tornpage.model.broker.tables import with_entry
from tornpage.model.commitlog import Appended, PutOutcome, allocate_round
from tornpage.model.message import Batch, Message, PutStatus
from tornpage.model.operations import (
    AimFault,
    AnyOperation,
    AskMaximum,
    AskMinimum,
    CancelPull,
    ChangeTable,
    Clean,
    ClockStep,
    Close,
    Commit,
    CommitOffset,
    Concurrent,
    DeleteTopics,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Get,
    GetAt,
    GetMessage,
    HarmOpen,
    HoldBuffer,
    OffsetByTime,
    OpenTwice,
    Pull,
    PullHeld,
    PullWhileDispatching,
    Put,
    PutBatch,
    Query,
    QueryKey,
    QueryOffsets,
    QueryProgress,
    RefuseFile,
    ReleaseBuffer,
    ReplicaIs,
    ServiceName,
    Step,
    SwitchFlag,
)
from tornpage.model.payloads import born_at, given_of
from tornpage.model.queues import dispatch
from tornpage.model.state import Clock, CommitLog, Conditions, Faults, Layout, OpenPut, State
from tornpage.model.step_under_faults import places_of
from tornpage.model.waiting import Waiting, answered

__all__ = [
    "EndedPulls",
    "applies",
    "begin",
    "conditions",
    "layout_in",
    "services_of",
    "step",
]

Outcomes = Iterator[tuple[State, Answer]]
Ended = tuple[tuple[int, PutAnswer], ...]
EndedPulls = tuple[tuple[int, PullAnswer | Literal["not readable", "closed"]], ...]

HOUR_MS = 3_600_000
DISK_FULL = 16


def step(
    state: State,
    operation: AnyOperation,
    layout: Layout,
    *,
    given: Message | Batch | None = None,
    found: Answer | None = None,
) -> Outcomes:
    """Yield every legal state and answer after an operation.

    Crashes, opens and corruption are not among these operations. `given` is the message of a put, if it is not the one
    that the operation stands for. Outcomes that the answer `found` rules out may be left out.
    """
    begun, layout = begin(state, operation, layout), layout_in(state, layout)
    is_ruled = bool(begun.environment.rules)
    if applies(state, operation, layout):
        outcomes = _outcomes(begun, operation, layout, given, found)
        return _with_what_all_say(outcomes, begun, found, is_ruled=is_ruled)
    nothing = iter(((begun, Answer()),))
    return nothing if is_ruled else _with_what_all_say(nothing, begun, found, is_ruled=False)


def _outcomes(
    state: State, operation: AnyOperation, layout: Layout, given: Message | Batch | None, found: Answer | None
) -> Outcomes:
    """Map each operation to its meaning."""
    ruled = bool(state.environment.rules)
    match operation:
        case Put() | PutBatch():
            handed = born_at(operation, given_of(operation) if given is None else given, state.clock.wall_ms)
            if ruled:
                return under_faults.put(state, handed, layout, found)
            return iter((_put(state, handed, layout, later=operation.later),))
        case Concurrent():
            return _concurrent(state, operation, layout, found)
        case Step(service):
            return under_faults.stepped(state, service, layout, found) if ruled else _stepped(state, service, layout)
        case Flush():
            return under_faults.flush(state, layout, found) if ruled else iter((_flush(state),))
        case Close():
            return under_faults.close(state, layout, found) if ruled else _close(state)
        case Clean():
            return under_faults.clean(state, operation, layout, found) if ruled else _clean(state, operation, layout)
        case DeleteTopics():
            return under_faults.delete(state, operation, layout, found) if ruled else _delete(state, operation, layout)
        case Get(record, shift):
            return iter(((state, Answer(got=step_reads.got(state.log, record, shift))),))
        case GetMessage() | QueryKey() | OffsetByTime() | PullHeld() | PullWhileDispatching() if (
            step_reads.is_unreadable(state)
        ):
            return iter(((state, Answer(refused_reads=True)),))
        case GetMessage():
            return step_reads.get_message(state, operation, layout)
        case QueryKey(key, max_num, begin_ms, window_ms):
            return iter(((state, Answer(offsets=step_reads.query(state, layout, key, max_num, begin_ms, window_ms))),))
        case OffsetByTime():
            return step_reads.offset_by_time(state, operation, layout)
        case HoldBuffer(number):
            readable = step_reads.readable(state.log)
            return iter(((replace(state, buffers=(*state.buffers, readable[number % len(readable)])), Answer()),))
        case ReleaseBuffer():
            return iter(((replace(state, buffers=state.buffers[1:]), Answer()),))
        case PullHeld():
            return step_reads.pull_held(state, operation, layout)
        case CancelPull(number):
            number %= len(state.pulls)
            pulls = (*state.pulls[:number], *state.pulls[number + 1 :])
            return iter(((replace(state, pulls=pulls), Answer()),))
        case PullWhileDispatching() if len(state.pulls) < layout.held_pulls_max:
            return step_reads.pull_while_dispatching(state, operation, layout)
        case CommitOffset():
            return iter((step_reads.commit_offset(state, operation, layout),))
        case QueryOffsets():
            return iter(((state, Answer(progress=step_reads.query_offsets(state, operation, layout))),))
        case GetAt() | Pull() | AskMaximum() | AskMinimum() | Query() | Commit() | QueryProgress():
            return step_reads.client_read(state, operation, layout)
        case ChangeTable():
            return iter((_change_table(state, operation),))
        case AimFault():
            return _aim(state, operation)
        case _:
            return iter(((state, Answer()),))  # `begin` has done everything


# ---- how an operation begins -----------------------------------------------------------------------------------------


def begin(state: State, operation: AnyOperation, layout: Layout) -> State:
    """Return the state as the operation finds it: time has passed, the environment is set."""
    layout = layout_in(state, layout)
    ruled = bool(state.environment.rules)
    match operation:
        case Put(advance_ms=by_ms) | PutBatch(advance_ms=by_ms):
            return _after(state, by_ms)
        case Step(service, after_ms):
            state = _after_timer(state, after_ms)
            is_delivery = service == "schedule" and applies(state, operation, layout) and not ruled
            return _with_faults(state, syncs=0) if is_delivery else state
        case Clean(after_hours=hours, percent=percent):
            if ruled and not state.is_open:
                return state
            state = _after_timer(state, hours * HOUR_MS)
            if not applies(state, operation, layout):
                return state
            state = state if ruled else _with_faults(state, syncs=0)
            return _with_environment(state, percent_used=percent) if percent else state
    if isinstance(operation, AimFault):
        state = _with_faults(state, append=False)
        return _with_faults(state, syncs=0, writes=0, files=0) if applies(state, operation, layout) else state
    if ruled or not applies(state, operation, layout):
        return state
    match operation:
        case DeleteTopics():
            return _with_faults(state, syncs=0)
        case Concurrent(commits=commits):
            state = _with_faults(state, syncs=0, writes=0)
            return _after_timer(state, layout.commit_thorough_ms if commits else 0)
        case PullWhileDispatching() if not step_reads.is_unreadable(state) and len(state.pulls) < layout.held_pulls_max:
            return _with_faults(state, files=0)
        case Close():
            faults = state.environment.faults
            after, _ = flushing.close(state.log, sync_fails=faults.syncs > 0, write_fails=faults.writes > 0)
            return _with_faults(state, files=0, syncs=faults.syncs if after.poisoned else 0)
        case SwitchFlag(bit, on):
            return replace(state, log=_flagged(state.log, bit, on=on))
        case DiskUsed(percent):
            state = _with_environment(_after_timer(state, 2 * layout.clean_interval_ms + 1), percent_used=percent)
            return replace(state, log=_flagged(state.log, DISK_FULL, on=percent > layout.disk_warning_percent))
        case ReplicaIs(replica):
            return _with_environment(state, replica=replica)
        case ClockStep(by_ms):
            return replace(state, clock=replace(state.clock, ahead_ms=state.clock.ahead_ms + by_ms))
        case FailAppend():
            return _with_faults(state, append=True)
        case FailSync():
            return _with_faults(state, syncs=1)
        case FailWrite():
            return _with_faults(state, writes=1)
        case RefuseFile():
            return _with_faults(state, files=1)
    return state


def applies(state: State, operation: AnyOperation, layout: Layout) -> bool:
    """Return whether an operation is carried out in a state.

    Otherwise only time passes, at most.
    """
    layout = layout_in(state, layout)
    if state.environment.rules:
        return _applies_under_rules(state, operation, layout)
    match operation:
        case Put() | PutBatch():
            return True
        case Flush() | Close() | Concurrent() | SwitchFlag() | DiskUsed() | Get() | OpenTwice():
            return state.is_open
        case Step(service):
            runs = state.is_open and (service in services_of(layout) or service == "pull-hold")
            return runs and not (state.broke_off and service in ("schedule", "pull-hold"))
        case Clean() | DeleteTopics() | CommitOffset() | QueryOffsets():
            return state.is_open and not state.broke_off
        case ChangeTable():  # after a failed change another service writes the table again, at an unknown time
            return state.is_open and not state.log.poisoned and not state.environment.faults.syncs
        case GetMessage() | QueryKey() | OffsetByTime() | PullHeld() | PullWhileDispatching():
            return state.is_open and not state.broke_off
        case HarmOpen():
            log = state.log
            is_sound = not log.poisoned and not state.broke_off and log.hanging is None
            return state.is_open and is_sound and bool(step_reads.readable(log)) and not step_reads.is_unreadable(state)
        case HoldBuffer():
            return state.is_open and bool(step_reads.readable(state.log))
        case ReleaseBuffer():
            return bool(state.buffers)
        case CancelPull():
            return bool(state.pulls)
        case AimFault():
            return not state.log.poisoned
    return True


def _applies_under_rules(state: State, operation: AnyOperation, layout: Layout) -> bool:
    match operation:
        case AimFault():
            return not state.log.poisoned
        case Put() | PutBatch() | Flush() | Close() | Clean():
            return state.is_open
        case DeleteTopics(in_use):
            if not state.is_open:
                return False
            after, gone = retention.delete_topics(state.log, layout=layout, in_use=in_use)
            # without a record in the log nothing shows a later deletion of a topic
            return not (gone and after.end_offset == after.min_offset)
        case CommitOffset(behind=behind):  # an unknown end of a queue bounds no commit
            return behind >= 0 and state.is_open and not state.broke_off
        case Step(service):
            is_known = service in under_faults.STEPS or (service == "schedule" and not layout.pending_copies)
            return state.is_open and is_known and service in services_of(layout)
    return False


def layout_in(state: State, layout: Layout) -> Layout:
    """Return the layout with the present role of the store."""
    return layout if state.role is None or state.role == layout.role else replace(layout, role=state.role)


def services_of(layout: Layout) -> tuple[ServiceName, ...]:
    """Return the services that a store must have."""
    mode: tuple[ServiceName, ...] = ("group-commit",) if layout.sync_flush else ("flush",)
    commit: tuple[ServiceName, ...] = ("commit",) if layout.has_pool else ()
    ahead: tuple[ServiceName, ...] = ("allocate",) if layout.files_ahead else ()
    delivery: tuple[ServiceName, ...] = () if layout.role == "SLAVE" else ("schedule",)
    return (*mode, *commit, *ahead, "time-outs", "reput", "flush-queues", "progress", *delivery)


def conditions(state: State, layout: Layout) -> Conditions:
    """Return what the environment does to the next put, or to the next step of a service."""
    environment = state.environment
    return Conditions(
        sync_fails=environment.faults.syncs > 0,
        no_room=environment.percent_used >= 100,  # less than one percent is more than any file of the log
        append_fails=environment.faults.append,
        replica=environment.replica,
    )


def _after(state: State, by_ms: int) -> State:
    """Let time pass; a negative time sets the wall clock back, but never monotonic time."""
    if not by_ms:
        return state
    clock = state.clock
    return replace(state, clock=Clock(clock.now_ms + max(0, by_ms), clock.ahead_ms + min(0, by_ms)))


def _after_timer(state: State, by_ms: int) -> State:
    return replace(state, clock=Clock(state.clock.now_ms + by_ms, state.clock.ahead_ms)) if by_ms else state


def _with_environment(state: State, **changes: object) -> State:
    return replace(state, environment=replace(state.environment, **changes))  # type: ignore[arg-type]


def _with_faults(state: State, **changes: int) -> State:
    faults = state.environment.faults
    after = replace(faults, **changes)  # type: ignore[arg-type]
    return state if after == faults else _with_environment(state, faults=after)


def _flagged(log: CommitLog, bit: int, *, on: bool) -> CommitLog:
    return log.changed(flags=log.flags | bit if on else log.flags & ~bit)


# ---- what every outcome has ------------------------------------------------------------------------------------------


def _with_what_all_say(outcomes: Outcomes, begun: State, found: Answer | None, *, is_ruled: bool) -> Outcomes:
    """Add watermarks and the faults left; drop buffers of removed files."""
    for state, answer in outcomes:
        added: dict[str, Any] = {}
        if state.is_open:
            added["marks"] = answer.marks or marks_of(state.log)
            if not is_ruled:
                added |= {"ended": answer.ended or (), "ended_pulls": answer.ended_pulls or ()}
        if any(record.offset < state.log.oldest_offset for record in state.buffers):
            left = tuple(record for record in state.buffers if record.offset >= state.log.oldest_offset)
            state = replace(state, buffers=left)
        needs_fault = answer.faults is not None and answer.faults.fired
        for faults in _left(state.environment.faults, found, is_ruled=is_ruled):
            if faults.fired >= needs_fault:
                yield _as_left(state, faults), answer.with_all(faults=faults, **added)


def _left(faults: Faults, found: Answer | None, *, is_ruled: bool) -> Iterable[Faults]:
    """Return which faults may be left; no fault appears that was not set, except by a rule."""
    if found is not None and found.faults is not None:
        left = found.faults
        fits = left.append <= faults.append and left.syncs <= faults.syncs and left.writes <= faults.writes
        return (left,) if fits and left.files <= faults.files and left.fired >= faults.fired else ()
    if is_ruled:
        return (faults,) if faults.fired else (faults, replace(faults, fired=True))
    if faults == Faults(fired=faults.fired, half_written_end=faults.half_written_end):
        return (faults,)
    counts = (
        (faults.append, False) if faults.append else (False,),
        range(faults.syncs, -1, -1),
        range(faults.writes, -1, -1),
        range(faults.files, -1, -1),
    )
    return (replace(faults, append=a, syncs=s, writes=w, files=f) for a, s, w, f in product(*counts))


def _as_left(state: State, faults: Faults) -> State:
    if faults == state.environment.faults:
        return state
    return replace(state, environment=replace(state.environment, faults=faults))


# ---- puts ------------------------------------------------------------------------------------------------------------


def _put(state: State, given: Message | Batch, layout: Layout, *, later: bool) -> tuple[State, Answer]:
    """Append, then wait for disk and replica as the message requires.

    A closed store answers SERVICE_NOT_AVAILABLE.
    """
    if not state.is_open:
        return state, Answer(put=put_answer(PutOutcome(PutStatus.SERVICE_NOT_AVAILABLE)))
    around, clock = conditions(state, layout), state.clock
    log, appended = commitlog.append(state.log, given, layout=layout, store_timestamp=clock.wall_ms, conditions=around)
    log = _by_monotonic_time(state.log, log, clock)
    if not appended.records:
        refused = put_answer(PutOutcome(appended.status))
        return _numbered(replace(state, log=log), later=later), Answer(put=refused, note=appended)
    waits = commitlog.wait_for(appended, layout=layout, now_ms=clock.now_ms, conditions=around)
    if later:
        return _put_later(replace(state, log=log), appended, waits)
    state = replace(state, log=log)
    ended: Ended = ()
    if waits.disk is None:  # group commit takes a step, which answers all puts that wait for the disk
        log, _ = flushing.flush(log, sync_fails=around.sync_fails)
        waits = waiting.flushed(waits, log)
        state, ended = _end_waits(replace(state, log=log), lambda each: waiting.flushed(each, log))
    answer = _put_answer(appended, waiting.given_up(waits))
    return state, Answer(put=answer, ended=ended, note=appended)


def _put_later(state: State, appended: Appended, waits: Waiting) -> tuple[State, Answer]:
    """Put with `put_async`.

    A put that waits for disk or replica is answered later, any other at once.
    """
    number = state.puts_later
    state = _numbered(state, later=True)
    if waits.answer is not None:
        return state, Answer(put=_put_answer(appended, waits), note=appended)
    state = replace(state, puts=(*state.puts, OpenPut(number, appended, waits)))
    return state, Answer(put="waits", note=appended)


def _numbered(state: State, *, later: bool) -> State:
    return replace(state, puts_later=state.puts_later + 1) if later else state


def _put_answer(appended: Appended, waits: Waiting) -> PutAnswer:
    assert waits.answer is not None
    return put_answer(PutOutcome(waits.answer, appended.records))


def _by_monotonic_time(before: CommitLog, after: CommitLog, clock: Clock) -> CommitLog:
    """Return the log after puts at wall clock time.

    The allocation service tries again by monotonic time.
    """
    if after.retry_ms in (0, before.retry_ms):
        return after
    return after.changed(retry_ms=after.retry_ms - clock.ahead_ms)


def _end_waits(state: State, change: Callable[[Waiting], Waiting]) -> tuple[State, Ended]:
    """End waits of puts and of delayed copies; return the puts' answers with their numbers."""
    if not state.puts:
        return replace(state, log=answered(state.log, change)) if state.log.pending else state, ()
    after = [each._replace(waits=change(each.waits)) for each in state.puts]
    ended = tuple((each.number, _put_answer(each.appended, each.waits)) for each in after if each.waits.answer)
    left = tuple(each for each in after if each.waits.answer is None)
    return replace(state, log=answered(state.log, change), puts=left), ended


def _concurrent(state: State, operation: Concurrent, layout: Layout, found: Answer | None) -> Outcomes:
    """Yield each state after the puts of two producers in some order.

    Each producer's own puts stay in order. The clock may jump between any two of the puts, or not at all. A commit and
    a flush at the end cover everything; what the other producer put meanwhile need not be flushed.
    """
    commits = operation.commits and layout.has_pool
    given = tuple(
        tuple(given_of(replace(put, born_now=False)) for put in puts) for puts in (operation.first, operation.second)
    )
    asked = None if found is None else found.producers
    clocks = dict.fromkeys((state.clock, Clock(state.clock.now_ms + operation.jump_ms, state.clock.ahead_ms)))
    times = tuple(clock.wall_ms for clock in clocks)
    for clock in clocks:
        after = replace(state, clock=clock)
        for log, answers, append in _orders(after, state.log, given, ((), ()), layout, asked, times, commits=commits):
            done = _with_faults(after, append=append)
            for flushed in _flushed_meanwhile(done, log, answers, layout, commits=commits):
                ended: Ended = ()
                one = replace(done, log=flushed)
                if flushed.flushed_offset > state.log.flushed_offset:
                    one, ended = _end_waits(one, partial(waiting.flushed, log=flushed))
                jumped = clock != state.clock if operation.jump_ms else None
                durable = not state.log.poisoned if commits else None
                yield one, Answer(producers=answers, ended=ended, jumped=jumped, durable=durable)


Answers = tuple[tuple[ProducerPut, ...], ...]
Given = tuple[tuple[Message | Batch, ...], ...]


def _orders(
    state: State,
    log: CommitLog,
    given: Given,
    answers: Answers,
    layout: Layout,
    asked: Answers | None,
    times: Sequence[int],
    *,
    commits: bool,
) -> Iterator[tuple[CommitLog, Answers, bool]]:
    """Yield each order of the remaining puts.

    Each result has the log, the answers, and whether an append is still to fail. With `commits` the puts of each
    producer end with a commit. A put that needs a buffer may have waited for that commit.
    """
    if all(len(done) == len(puts) + commits for done, puts in zip(answers, given, strict=True)):
        plain = tuple(done[: len(puts)] for done, puts in zip(answers, given, strict=True))
        yield log, plain, state.environment.faults.append
        return
    for index_, (puts, done) in enumerate(zip(given, answers, strict=True)):
        number = len(done)
        if number == len(puts) + commits:
            continue
        if number == len(puts):
            steps: Iterable[tuple[State, CommitLog, ProducerPut]] = ((state, pool.commit(log)[0], _A_COMMIT),)
        else:
            wanted = None if asked is None else asked[index_][number]
            steps = _put_of_two(state, log, puts[number], layout, wanted, times)
        for then, after, answer in steps:
            said = tuple((*each, answer) if place == index_ else each for place, each in enumerate(answers))
            yield from _orders(then, after, given, said, layout, asked, times, commits=commits)


_A_COMMIT = ProducerPut(PutAnswer(""))


def _put_of_two(
    state: State,
    log: CommitLog,
    given: Message | Batch,
    layout: Layout,
    wanted: ProducerPut | None,
    times: Sequence[int],
) -> Iterator[tuple[State, CommitLog, ProducerPut]]:
    """Yield each outcome of the next put of one producer.

    Its time is one of the operation's times, and it takes its turn of the lock.
    """
    held_ms = 0 if wanted is None else wanted.lock_held_ms
    if wanted is not None and wanted.answer.message_count:
        times = [each for each in times if each == wanted.answer.store_timestamp]
    elif wanted is not None:
        times = times[:1]
    around = replace(conditions(state, layout), lock_held_ms=held_ms)
    for store_timestamp in times:
        after, outcome = commitlog.put(log, given, layout=layout, store_timestamp=store_timestamp, conditions=around)
        answer = ProducerPut(put_answer(outcome), held_ms)
        if wanted is None or answer == wanted:
            fails = around.append_fails and outcome.status is not PutStatus.UNKNOWN_ERROR
            yield _with_faults(state, append=fails), _by_monotonic_time(log, after, state.clock), answer


def _flushed_meanwhile(
    state: State, log: CommitLog, answers: Answers, layout: Layout, *, commits: bool
) -> Iterator[CommitLog]:
    """Yield each log after the flushes of two producers.

    One flush may have covered a record of the other producer.
    """
    if commits:
        after, durable = flushing.flush(log.changed(committed_ms=state.clock.now_ms))
        yield after
        ends = [put.answer.offset + put.answer.size_bytes for put in answers[1] if put.answer.message_count]
        least, most = max(ends, default=0), after.flushed_offset if durable else -1
    else:
        after = log
        yield after
        least, most = after.flushed_offset, after.end_offset if layout.sync_flush else -1
    for place in places_of(after, layout):
        if least <= place <= most and place != after.flushed_offset:
            yield after.changed(flushed_offset=place)


# ---- flush, close and the services -----------------------------------------------------------------------------------


def _flush(state: State) -> tuple[State, Answer]:
    """Make all of the log durable; a failed sync or commit moves nothing and is reported."""
    faults = state.environment.faults
    log, durable = flushing.flush(state.log, sync_fails=faults.syncs > 0, write_fails=faults.writes > 0)
    return replace(state, log=log), Answer(durable=durable)


def _change_table(state: State, operation: ChangeTable) -> tuple[State, Answer]:
    """Set or remove an entry; the answer to a removal is whether the entry was there."""
    is_there = (operation.table, operation.name) in dict(state.tables)
    tables = with_entry(state.tables, operation.table, operation.name, operation.number)
    return replace(state, tables=tables), Answer(removed=is_there if operation.number < 0 else None)


def _close(state: State) -> Outcomes:
    """Close the store.

    Every wait ends with what is durable then. Buffers are taken back. Progress is saved if everything is durable. A
    failed flush of the queues may have hit a file whose state only the store knows. Then the exit may be clean or not.
    """
    faults = state.environment.faults
    log, clean = flushing.close(state.log, sync_fails=faults.syncs > 0, write_fails=faults.writes > 0)
    state, ended = _end_waits(replace(state, log=log), lambda each: waiting.given_up(waiting.flushed(each, log)))
    ended_pulls: EndedPulls = tuple((pull.number, "closed") for pull in state.pulls)
    consumers = progress.save(state.consumers) if clean else state.consumers
    state = replace(state, consumers=consumers, is_open=False, pulls=(), buffers=())
    yield state, Answer(clean=clean, ended=ended, ended_pulls=ended_pulls)
    if clean and state.queue_sync_failed:
        yield state, Answer(clean=False, ended=ended, ended_pulls=ended_pulls)


def _stepped(state: State, service: ServiceName, layout: Layout) -> Outcomes:
    """Let a service take a step."""
    log, now_ms, around = state.log, state.clock.now_ms, conditions(state, layout)
    note: object = None
    match service:
        case "group-commit":
            after, _ = flushing.flush(log, sync_fails=around.sync_fails)
            done, ended = _end_waits(replace(state, log=after), lambda each: waiting.flushed(each, after))
            return iter(((done, Answer(ended=ended)),))
        case "time-outs":
            done, ended = _end_waits(state, lambda each: waiting.late(each, now_ms=now_ms))
            return iter(((done, Answer(ended=ended)),))
        case "flush":
            log, note = flushing.flush_round(log, layout=layout, now_ms=now_ms, sync_fails=around.sync_fails)
        case "commit":
            write_fails = state.environment.faults.writes > 0
            log, note = pool.commit_round(log, layout=layout, now_ms=now_ms, write_fails=write_fails)
        case "allocate":
            log, note = allocate_round(log, layout=layout, now_ms=now_ms, conditions=around)
        case "reput":
            return _dispatched(state)
        case "flush-queues":
            return _noted(state, layout)
        case "progress":
            return iter((_progress_saved(state, layout),))
        case "schedule":
            return iter((_delivered(state, layout),))
        case "pull-hold":
            return step_reads.pulls_looked_at(state, layout)
    return iter(((replace(state, log=log), Answer(note=note)),))


def _dispatched(state: State) -> Outcomes:
    """Dispatch everything that readers see.

    A refused file breaks the step off, and how far it came is unknown.
    """
    yield replace(state, log=dispatch(state.log), broke_off=False), Answer(failed=False)
    for files in range(state.environment.faults.files):
        yield _with_faults(replace(state, broke_off=True), files=files), Answer(failed=True)


def _noted(state: State, layout: Layout) -> Outcomes:
    """Flush the queues, and write the checkpoint if that is due.

    A file that cannot be synced prevents both.
    """
    log, thorough = flushing.note_round(state.log, layout=layout, now_ms=state.clock.now_ms)
    yield replace(state, log=log), Answer(failed=False, note=thorough)
    yield replace(state, queue_sync_failed=True), Answer(failed=True)


def _progress_saved(state: State, layout: Layout) -> tuple[State, Answer]:
    """Save consumer progress if that is due, then that of the delay levels.

    The copies of delayed messages are made durable first. A set fault strikes the first sync of the first save that is
    made.
    """
    faults, now_ms, others = state.environment.faults, state.clock.now_ms, state.consumers
    poisoned = state.log.poisoned
    comes_first = others.is_changed and not poisoned and not (others.due_ms and now_ms < others.due_ms)
    consumers = progress.save_round(others, now_ms=now_ms, poisoned=poisoned, sync_fails=faults.syncs > 0)
    state = replace(state, consumers=consumers)
    if layout.role == "SLAVE":
        return state, Answer()
    sync_fails, write_fails = faults.syncs > 0 and not comes_first, faults.writes > 0
    log, is_saved = schedule.save_round(state.log, now_ms=now_ms, sync_fails=sync_fails, write_fails=write_fails)
    return replace(state, log=log), Answer(note=is_saved)


def _delivered(state: State, layout: Layout) -> tuple[State, Answer]:
    """Put the copies of delayed messages that are due, in order, and no others."""
    clock = state.clock
    log, outcome = schedule.deliver_round(
        state.log,
        layout=layout,
        now_ms=clock.wall_ms,
        timer_ms=clock.now_ms,
        conditions=conditions(state, layout),
    )
    log = _by_monotonic_time(state.log, log, clock)
    due_ms = None if outcome.due_ms is None else outcome.due_ms - clock.ahead_ms
    return replace(state, log=log), Answer(delays=log.delays, next_round=NextRound(due_ms), note=outcome)


# ---- retention -------------------------------------------------------------------------------------------------------


def _clean(state: State, operation: Clean, layout: Layout) -> Outcomes:
    """Let the clean-up make a run; a query during the run returns what is left."""
    log = retention.ask_for_runs(state.log) if operation.manual else state.log
    log, cleaned = retention.clean(
        log,
        layout=layout,
        now_ms=state.clock.wall_ms,
        timer_ms=state.clock.now_ms,
        percent=state.environment.percent_used,
        held=frozenset(record.offset // layout.file_bytes * layout.file_bytes for record in state.buffers),
    )
    after, offsets = replace(state, log=log), None
    if operation.query >= 0 and not step_reads.is_unreadable(state) and step_reads.keys(state, layout):
        key = step_reads.key_named(state, layout, operation.query)
        offsets = tuple(
            record.offset for record in index.query(log, layout, *key, layout.query_max, 0, step_reads.NO_END_MS)
        )
    yield after, Answer(offsets=offsets, note=cleaned)


def _delete(state: State, operation: DeleteTopics, layout: Layout) -> Outcomes:
    """Delete all topics except those in use; their numbers begin at 0 again."""
    log, names = retention.delete_topics(state.log, layout=layout, in_use=operation.in_use)
    consumers = progress.delete_topics(state.consumers, names)
    yield replace(state, log=log, consumers=consumers), Answer(names=names)


# ---- I/O fault rules -------------------------------------------------------------------------------------------------


def _aim(state: State, rule: AimFault) -> Outcomes:
    """Enable a further fault rule, unless the store takes no puts any more."""
    yield _with_environment(state, rules=(*state.environment.rules, rule)), Answer(read_only=False)
    if state.queue_sync_failed:
        yield state, Answer(read_only=True)
