"""A store under an I/O fault rule: held to what it has promised, not to one answer.

Which call fails is the disk's decision, and how the store treats a queue file that cannot be synced is its own. So the
model has several legal outcomes. What is answered counts, whatever it is:

1. An operation answers; only an open may be refused, and only after the disk has let a call fail (contract 8).
2. What is stored is stored where and as it would have been; what is refused leaves no record (1, 8).
3. The flushed offset is a promise, and so is an answer that says "stored" or "durable", and a close that calls itself
   clean. None is given for more than there is, and none taken back (2, 9).
4. A disk that has let nothing fail is no reason to refuse, to give up, or to end uncleanly.
5. The clean-up may end after any file that it may delete, and leave a file on the disk that has left the log. A removed
   file may reappear after a power loss, since the sync of its directory may have failed (10).
6. A deletion deletes all of its topics or none. After a refused one a crash may find it done (10).
7. Each delay level goes on in order: for each message that it has passed, and for no other, the copy is in the log. It
   stops at a message that is not due, at the end of dispatch, or at a copy that the disk has refused (12).

The crash or open that ends the rule is judged as every other, with what was promised as the floor.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from model import commitlog, progress, retention, schedule
from model.answers import Answer, Marks, PutAnswer, accepted
from model.commitlog import Appended, PutOutcome
from model.delay import SCHEDULE_TOPIC
from model.delayed_copy import copy_of
from model.dispatch import Queue, next_queue_offset
from model.message import Message, PutStatus
from model.operations import (
    WITHOUT_A_VERB,
    AimFault,
    Clean,
    Close,
    CommitOffset,
    DeleteTopics,
    Flush,
    Operation,
    Put,
    PutBatch,
    Step,
)
from model.payloads import born_at, given_of
from model.pending import in_line
from model.queues import Unit
from model.schedule import DELIVERIES_OF_A_ROUND, FINAL
from model.state import CommitLog, Delivery, Layout, Progress, Record, State
from model.step import step
from properties.contract import GuaranteeBroken, observed
from properties.disk.armed import ArmedFault
from properties.judge.answers import expected_answer, found_answer
from properties.judge.judges import ROOT
from properties.judge.progress_ledger import DELAY_OFFSETS
from properties.lockstep.compare import clean_exit_is_durable
from properties.lockstep.consumers import commit_offset
from properties.lockstep.execute import call_put, service_named
from properties.lockstep.pair import Pair
from properties.program.log_places import log_files

__all__ = ["aim", "close_under_fault", "count_faults", "run_under_fault"]

_FAR = 1 << 62
_RULES = (AimFault(),)
"""Stands for the rules that are armed: where they strike, the disk alone knows."""
_SERVICES = ("group-commit", "time-outs", "flush", "commit", "allocate", "reput", "flush-queues", "progress")
"""Services whose steps change no log; asynchronous delivery and waiting pulls are compared with one answer only."""
_RUN_MS = 10_000
_CLEAN_STEPS_MAX = 200

_Served = dict[Queue, tuple[int, tuple[int | None, ...]]]
"""By queue its first number, and where in the log the messages from there on lie."""


def aim(pair: Pair, operation: AimFault) -> None:
    """Arm a fault, beside those that are armed; a store that takes no puts any more gets none."""
    files = pair.files
    pair.environment.append_fails = False
    if pair.log.poisoned or (not pair.closed and pair.store.read_only_reason is not None):
        return
    files.failing_syncs = files.failing_writes = files.refused_files = 0
    files.aimed = (*files.aimed, ArmedFault(operation.effect, operation.where, operation.seed))


def run_under_fault(pair: Pair, operation: Operation) -> None:
    """Carry out an operation, crashes and opens excepted; one that has a single legal answer only does nothing."""
    before, first = pair.state(_RULES), len(pair.files.events)
    found: Answer | None = None
    match operation:
        case AimFault():
            aim(pair, operation)
            return
        case Close() if not pair.closed:
            close_under_fault(pair)
            return
        case Put() | PutBatch():
            pair.begin(operation, _RULES)
            if not pair.closed:
                found = _put(pair, operation)
        case Flush() if not pair.closed:
            found = _flushed(pair)
        case CommitOffset(behind=behind) if behind >= 0:  # the end of a queue is unknown under a rule
            commit_offset(pair, operation, before)
            return
        case Clean() if not pair.closed:
            found = clean_under_fault(pair, operation)
        case DeleteTopics(in_use) if not pair.closed:
            found = delete_under_fault(pair, in_use, first)
        case Step():
            pair.begin(operation, _RULES)
            if not pair.closed and operation.service in pair.services:
                found = _stepped(pair, operation)
        case _ if isinstance(operation, WITHOUT_A_VERB):
            return
    after = before
    if found is not None:
        after = _legal_state(pair, operation, before, found)
        pair.append(after.log.records[len(before.log.records) :], end_after=after.log.end_offset)
        if isinstance(operation, Step) and operation.service == "progress":
            _may_be_saved(pair, after, first)
    pair.end_operation(first, after)
    pair.note_whole()
    if not pair.closed and isinstance(operation, Clean | DeleteTopics | Step):
        queues_serve_the_log(pair)


def _legal_state(pair: Pair, operation: Operation, before: State, found: Answer) -> State:
    """Return the legal state that an answer leaves: the model has all of them, and the store says which one it is."""
    store = pair.store
    marks = Marks(store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    promised = (before.log.flushed_offset, *marks[1:])
    if list(promised) != sorted(promised):
        sentence = "the watermarks are out of order under a fault"
        raise GuaranteeBroken(9, sentence, "flushed before <= flushed <= committed <= written", str(promised))
    observed("check", store.check)
    found = replace(
        found,
        marks=marks,
        read_only=store.read_only_reason is not None,
        faults=pair.faults_left(),
        dispatched=store.committed_offset - store.dispatch_behind_bytes,
        level_ends=tuple(
            (level, store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1))
            for level in range(1, pair.layout.delay_levels + 1)
        ),
    )
    for after, _ in accepted(step(before, operation, pair.layout, found=found), found):
        return after
    raise _broken(pair, operation, before, found)


def _broken(pair: Pair, operation: Operation, before: State, found: Answer) -> GuaranteeBroken:
    """Return which contract an answer breaks that is none of the legal ones."""
    marks = found.marks
    assert marks is not None
    ends = {
        answer.marks.end
        for _, answer in step(before, operation, pair.layout, found=replace(found, marks=None))
        if answer.marks is not None
    }
    if marks.end not in ends:
        return GuaranteeBroken(
            8, "the log ends elsewhere than the answers say", str(min(ends, default=0)), str(marks.end)
        )
    if isinstance(found.put, PutAnswer) and marks.flushed < found.put.offset + found.put.size_bytes:
        stored = str(found.put.offset + found.put.size_bytes)
        return GuaranteeBroken(2, "a put is acknowledged beyond the flushed offset", stored, str(marks.flushed))
    if found.durable and marks.flushed < marks.end:
        return GuaranteeBroken(
            2, "a flush is called durable beyond the flushed offset", str(marks.end), str(marks.flushed)
        )
    sentence = "an operation under a fault leads to no state that is legal"
    return GuaranteeBroken(9, sentence, f"one that {operation.op} may lead to", str(marks))


def _put(pair: Pair, put: Put | PutBatch) -> Answer:
    given = born_at(put, given_of(put), pair.environment.clock_ms)
    layout = replace(pair.layout, fast_fail=False)
    _, appended = commitlog.append(pair.log, given, layout=layout, store_timestamp=pair.environment.clock_ms)
    result = found_answer(observed("put", lambda: call_put(pair, put, given)))
    if result.offset < 0:
        if appended.records and not pair.files.fired and not pair.layout.fast_fail:
            raise GuaranteeBroken(8, "a put is refused by a disk that lets nothing fail", "PUT_OK", result.status)
        _matters(pair, bool(appended.records))
    else:
        outcome = PutOutcome(PutStatus(result.status), appended.records)
        expected = expected_answer(outcome) if appended.records else None
        if result != expected:
            raise GuaranteeBroken(8, "a put is stored otherwise than it has to be", str(expected), str(result))
        _matters(pair, result.status != "PUT_OK")
    return Answer(put=PutAnswer(*astuple(result)))


def _flushed(pair: Pair) -> Answer:
    result = observed("flush", pair.store.flush)
    if not result.durable and not pair.files.fired:
        raise GuaranteeBroken(9, "a flush fails on a disk that lets nothing fail")
    _matters(pair, not result.durable)
    return Answer(durable=result.durable)


def _stepped(pair: Pair, step: Step) -> Answer | None:
    if step.service == "schedule" and not pair.layout.pending_copies:
        return deliver_under_fault(pair)
    if step.service not in _SERVICES:
        return None
    service = service_named(pair, step.service)
    fired = pair.files.fired
    found = observed("step", service.step)
    if found is None or (found.failed and not pair.files.fired):
        raise GuaranteeBroken(16, "a service gives up on a disk that lets nothing fail", "a round", str(found))
    _matters(pair, found.failed or (pair.files.fired > fired and step.service == "progress"))
    return Answer(failed=found.failed)


def _may_be_saved(pair: Pair, after: State, first: int) -> None:
    """Note that progress files may have the newest version from event `first` on, or the one before."""
    pair.memory.versions.saved(pair.memory.consumer_file, after.consumers.saved, first, _FAR)
    pair.memory.versions.saved(DELAY_OFFSETS, after.log.delays, first, _FAR)


def close_under_fault(pair: Pair) -> None:
    """Close; a store that calls its exit clean, or has durably removed its marker, has made everything durable."""
    before, first, store = pair.state(_RULES), len(pair.files.events), pair.store
    observed("close", store.close)
    clean = store.read_only_reason is None
    if not clean and not pair.files.fired:
        reason = str(store.read_only_reason)
        raise GuaranteeBroken(2, "an exit is not clean, and the disk has let nothing fail", found=reason)
    _matters(pair, not clean)
    is_marked = None if clean else f"{ROOT}/abort" in pair.durable(pair.files).files
    found = Answer(clean=clean, marked=is_marked, delays=_delays_of_closed(pair), faults=pair.faults_left())
    after = next((each for each, _ in accepted(step(before, Close(), pair.layout, found=found), found)), None)
    if after is None:
        raise GuaranteeBroken(12, "a close under a fault leads to no state that is legal", found=str(found))
    if not clean:
        _may_be_saved(pair, after, first)
    pair.end_operation(first, after)
    pair.note_whole()
    if leaks := pair.files.leaks():
        raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(leaks))
    if not is_marked:
        clean_exit_is_durable(pair, unused_may_stay=pair.files.fired > 0)


def _matters(pair: Pair, is_so: bool) -> None:
    """Note that a fault has changed an answer."""
    pair.files.fault_mattered |= is_so and pair.files.fired > 0


def count_faults(pair: Pair, faults: tuple[ArmedFault, ...], *, mattered: bool) -> None:
    """Count each fault that was armed, by its class and by its text: whether it has let a call fail, and whether that
    made a difference.
    """
    for fault in faults:
        for name in (f"aimed_{fault.effect.name.replace('-', '_')}", fault.text):
            pair.cover(f"{name}_armed")
            pair.cover(f"{name}_fired", bool(fault.fired))
            pair.cover(f"{name}_mattered", bool(fault.fired) and mattered)


# ---- clean-up --------------------------------------------------------------------------------------------------------


def clean_under_fault(pair: Pair, operation: Clean) -> Answer:
    """Let the clean-up make a run, or what the disk lets it make of it."""
    pair.begin(operation, _RULES)
    before = pair.log
    if operation.manual:
        observed("delete_expired_files_manually", pair.store.delete_expired_files_manually)
        before = retention.ask_for_runs(before)
    # dispatch may have come further than is known under a fault, and so may a commit that was broken off
    most, _ = retention.clean(
        before.changed(dispatched_offset=before.end_offset, buffers=()),
        layout=pair.layout,
        now_ms=pair.environment.clock_ms,
        timer_ms=pair.environment.now_ms,
        percent=pair.environment.percent_used(pair.files),
    )
    _clean_runs(pair)
    begin, file_bytes = pair.store.min_offset, pair.settings.file_bytes
    if begin not in range(before.min_offset, most.min_offset + 1, file_bytes):
        expected = f"a file from {before.min_offset} to {most.min_offset}"
        raise GuaranteeBroken(10, "a clean-up under a fault deletes what may not go", expected, str(begin))
    pair.cover("cleaned_under_a_fault", begin > before.min_offset)
    return Answer(oldest_offset=_oldest_on_disk(pair, begin))


def _clean_runs(pair: Pair) -> None:
    """Step the service until its run is over, or broken off by the disk."""
    service, fired = service_named(pair, "clean"), pair.files.fired
    for _ in range(_CLEAN_STEPS_MAX):
        found = observed("step", service.step)
        if found is None or found.due_ms is None or (found.failed and pair.files.fired == 0):
            raise GuaranteeBroken(16, "the clean-up gives up on a disk that lets nothing fail", "a run", str(found))
        if found.failed or found.due_ms >= found.now_ms + _RUN_MS:
            pair.files.fault_mattered |= found.failed and pair.files.fired > fired
            return
    raise GuaranteeBroken(16, "a run of the clean-up does not end", found=f"{_CLEAN_STEPS_MAX} steps")


def _oldest_on_disk(pair: Pair, begin: int) -> int:
    """Return where the log begins on the disk; a file before `begin` waits for its removal. No gap is left."""
    bases = sorted(int(path.rpartition("/")[2]) for path in log_files(pair.files.paths()))
    if not bases:
        return begin
    oldest = bases[0]
    if bases != list(range(oldest, bases[-1] + 1, pair.settings.file_bytes)) or oldest > begin:
        raise GuaranteeBroken(10, "a clean-up under a fault leaves a gap in the log", f"from {begin} on", str(bases))
    return oldest


# ---- deletion of topics ----------------------------------------------------------------------------------------------


def delete_under_fault(pair: Pair, in_use: tuple[str, ...], first: int) -> Answer | None:
    """Delete all topics but those in use, or what the disk lets happen of it.

    What the operation writes, it writes from event `first` on.
    """
    served = _served(pair)
    after, gone = retention.delete_topics(pair.log, layout=pair.layout, in_use=in_use)
    if after.end_offset == after.min_offset and gone:
        return None  # no record tells whether a topic was deleted after it or not
    is_refused = _deletion_is_refused(pair, in_use, gone)
    is_deleted = _are_deleted(pair, gone)
    if not is_deleted and not is_refused:
        raise GuaranteeBroken(10, "a deletion is called done, and the numbers of the topics go on", str(gone))
    left = {queue: numbers for queue, numbers in served.items() if not (is_deleted and queue[0] in gone)}
    if (found := _served(pair)) != left:
        raise GuaranteeBroken(10, "a deletion under a fault changes other queues, or not enough", str(left), str(found))
    pair.files.fault_mattered |= is_refused
    pair.cover("deleted_under_a_fault", is_deleted and bool(gone))
    pair.cover("deleted_with_files_left", is_deleted and is_refused)
    pair.cover("deletion_refused", not is_deleted)
    if is_deleted:
        pair.memory.derived = pair.memory.derived.with_deleted(after.deleted, after.end_offset)
    else:  # the offsets of consumers may be 0 on the disk by then
        saved = progress.delete_topics(pair.consumers, gone).saved
        pair.memory.versions.saved(pair.memory.consumer_file, saved, first, _FAR)
    return Answer(names="refused" if is_refused else gone, is_anew=is_deleted)


def _deletion_is_refused(pair: Pair, in_use: tuple[str, ...], gone: tuple[str, ...]) -> bool:
    """Ask for the deletion of topics that are `gone` then; return whether the disk has refused a part of it."""
    fired = pair.files.fired
    try:
        found = pair.store.clean_unused_topics(in_use)
    except OSError as error:
        if pair.files.fired == fired or not gone:
            sentence = "a deletion is refused by a disk that lets nothing fail"
            raise GuaranteeBroken(10, sentence, str(gone), str(error)) from error
        return True
    except Exception as error:
        raise GuaranteeBroken(8, f"clean_unused_topics raises {type(error).__name__}: {error}") from error
    if found != gone:
        raise GuaranteeBroken(10, "other topics were deleted than the model's", str(gone), str(found))
    return False


def _are_deleted(pair: Pair, gone: tuple[str, ...]) -> bool:
    """Return whether the numbers of these topics begin anew: of all of them, or of none."""
    table = pair.environment.parts_of(pair.store)["queue_offsets"]
    known = {topic.decode(errors="surrogateescape") for topic, _ in table.known()}
    going_on = known.intersection(gone)
    if going_on and len(going_on) < len(gone):
        raise GuaranteeBroken(10, "a deletion under a fault takes some of its topics", str(gone), str(going_on))
    return not going_on


def queues_serve_the_log(pair: Pair) -> None:
    """Contract 4: under a fault a queue may lack what could not be dispatched, and serves nothing else than the log."""
    for queue, (begin, found) in _served(pair).items():
        memory = pair.memory.derived.queues.get(queue)
        units = {} if memory is None else {unit.queue_offset: unit.record.offset for unit in memory.units}
        expected = tuple(units.get(number, -1) for number in range(begin, begin + len(found)))
        if found != expected:
            raise GuaranteeBroken(4, f"queue {queue} serves other messages than the log", str(expected), str(found))


def _served(pair: Pair) -> _Served:
    """Return what each queue of the open store serves."""
    return {queue: _numbers(pair, queue) for queue in observed("queues", pair.store.queues)}


def _numbers(pair: Pair, queue: Queue) -> tuple[int, tuple[int | None, ...]]:
    store = pair.store
    begin, end = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    return begin, tuple(store.commit_log_offset_in_queue(*queue, number) for number in range(begin, end))


# ---- delivery --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Round:
    """What a round may have made of the log by then, and the copies it has put."""

    log: CommitLog
    copies: tuple[Record, ...] = ()


def deliver_under_fault(pair: Pair) -> Answer:
    """Let the schedule service make a round."""
    before, readable_end = pair.log, pair.store.committed_offset
    _makes_a_round(pair)
    said = dict(observed("delay_offsets", pair.store.delay_offsets))
    # dispatch may have come further than is known under a fault
    dispatched = before.changed(dispatched_offset=before.end_offset, buffers=())
    levels = schedule.units_of_levels(dispatched, pair.layout)
    for level in said.keys() - levels.keys():
        _has_passed_the_expired(pair, level, said[level])
    rounds, refused = [_Round(before)], False
    for level, units in levels.items():
        done, following = _gone_on_behind(pair, level, units, said.get(level))
        rounds = [_with_copies(each, level, done, pair=pair) for each in rounds]
        if following is not None and _was_tried(pair, following, level, readable_end):
            _is_refused_rightly(pair, rounds[0].log, following, level)
            rounds += [_Round(closed, each.copies) for each in rounds if (closed := _closed(each.log, pair.layout))]
            refused = True
    _ends_as_a_round(pair, rounds, refused=refused)
    return Answer(delays=tuple(sorted(said.items())))


def _has_passed_the_expired(pair: Pair, level: int, said: int) -> None:
    """A level without a message stays where it is, or passes by what its queue still has of those that have expired."""
    before = dict(pair.log.delays).get(level, 0)
    end = next_queue_offset(pair.log, (SCHEDULE_TOPIC, level - 1), layout=pair.layout)
    if not before <= said <= max(before, end):
        raise GuaranteeBroken(12, "a level without a message goes on", f"{before} to {end}", str(said))


def _gone_on_behind(pair: Pair, level: int, units: Sequence[Unit], said: int | None) -> tuple[list[Unit], Unit | None]:
    """Return the messages that a level says it has passed in this round, and the one that it tried then."""
    before = dict(pair.log.delays).get(level, units[0].queue_offset)
    begin, end = max(before, units[0].queue_offset), before if said is None else said
    if not before <= end <= max(begin, units[-1].queue_offset + 1):
        raise GuaranteeBroken(12, f"level {level} goes back, or beyond its end", f"{before} or more", str(end))
    done = [unit for unit in units if begin <= unit.queue_offset < end]
    if any(unit.tags_code > pair.environment.clock_ms for unit in done):
        raise GuaranteeBroken(
            12, f"level {level} delivers what is not due", f"until {pair.environment.clock_ms}", str(end)
        )
    left = [unit for unit in units if unit.queue_offset >= max(begin, end)]
    return done, left[0] if left and len(done) < DELIVERIES_OF_A_ROUND else None


def _makes_a_round(pair: Pair) -> None:
    service = pair.environment.service("schedule")
    found = None if service is None else observed("step", service.step)
    if found is None or (found.failed and not pair.files.fired):
        raise GuaranteeBroken(16, "delivery gives up on a disk that lets nothing fail", "a round", str(found))


def _with_copies(by_then: _Round, level: int, units: Sequence[Unit], *, pair: Pair) -> _Round:
    """Return a round in which a level has passed these messages: each with its copy, if it has one."""
    log, copies = by_then.log, by_then.copies
    for unit in units:
        copy, end_offset = copy_of(unit.record.message), unit.record.end_offset
        if copy is not None:
            log, appended = _put_copy(pair, log, copy)
            if not appended.records and appended.status not in FINAL:
                raise GuaranteeBroken(12, f"level {level} goes on behind a copy that cannot be in the log")
            copies += appended.records
            end_offset = appended.records[-1].end_offset if appended.records else end_offset
        log = log.changed(delivered=(*log.delivered, Delivery(level, unit.queue_offset, end_offset)))
    return _Round(log, copies)


def _put_copy(pair: Pair, log: CommitLog, copy: Message) -> tuple[CommitLog, Appended]:
    layout = replace(pair.layout, fast_fail=False)
    return commitlog.append(log, copy, layout=layout, store_timestamp=pair.environment.clock_ms)


def _was_tried(pair: Pair, unit: Unit, level: int, readable_end: int) -> bool:
    """Whether a message is due, in its queue and readable, so that its copy was put, or refused."""
    end = pair.store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
    is_there = unit.queue_offset < end and unit.record.end_offset <= readable_end
    return is_there and unit.tags_code <= pair.environment.clock_ms and not pair.log.poisoned


def _is_refused_rightly(pair: Pair, log: CommitLog, unit: Unit, level: int) -> None:
    """What has no copy is passed by; any other is refused by a disk that fails, or by a store that takes no puts.

    Of a message whose dispatch the disk has broken off its level may have heard nothing yet.
    """
    if unit.record.end_offset > pair.store.committed_offset - pair.store.dispatch_behind_bytes:
        return
    copy = copy_of(unit.record.message)
    appended = None if copy is None else _put_copy(pair, log, copy)[1]
    is_refused = appended is not None and not appended.records and appended.status not in FINAL
    may_be = appended is not None and appended.records and (pair.files.fired or pair.layout.fast_fail)
    if not is_refused and not may_be:
        raise GuaranteeBroken(12, f"level {level} is held up by message {unit.queue_offset}, which is due")


def _closed(log: CommitLog, layout: Layout) -> CommitLog | None:
    """Return the log with its last file closed for a next one that was refused, None where it ends with it anyway."""
    end_offset = log.files * layout.file_bytes
    return log.changed(end_offset=end_offset, files=log.files + 1) if end_offset > log.end_offset else None


def _ends_as_a_round(pair: Pair, rounds: Sequence[_Round], *, refused: bool) -> None:
    """The log ends where one of the rounds does."""
    found = [each for each in rounds if each.log.end_offset == pair.store.max_offset]
    if not found:
        expected = " or ".join(str(each.log.end_offset) for each in rounds)
        sentence = "a round under a fault says otherwise than it puts"
        raise GuaranteeBroken(12, sentence, f"a log that ends at {expected}", str(pair.store.max_offset))
    pair.files.fault_mattered |= refused and pair.files.fired > 0
    pair.cover("delivered_under_a_fault", len(found[0].copies))
    pair.cover("delivery_refused_under_a_fault", refused)


def _delays_of_closed(pair: Pair) -> Progress | None:
    """Return how far the levels of a closed store have gone: none beyond the copies that stood in its line.

    A close answers all of them, and they are in the log, whatever the disk has let fail. A slave delivers nothing: its
    progress is what its master sends.
    """
    if pair.layout.role == "SLAVE":
        return None
    log, said = pair.log, dict(observed("delay_offsets", pair.store.delay_offsets))
    for level, number in said.items():
        least, line = dict(log.delays).get(level, 0), in_line(log, level)
        most = line[-1].number + 1 if line else least
        if not least <= number <= most:
            raise GuaranteeBroken(12, f"level {level} goes on at a close", f"{least} to {most}", str(number))
    return tuple(sorted(said.items()))
