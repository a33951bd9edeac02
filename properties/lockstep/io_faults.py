"""Run a store under an I/O fault rule, where several answers are legal.

The disk decides which call fails, and the store decides how to treat a queue file that cannot be synced. So the model
has several legal outcomes, and every answer has to be one of them:

1. An operation answers. Only an open may be refused, and only after a disk call has failed (contract 8).
2. What is stored is stored where and as it would have been; a refused put leaves no record (1, 8).
3. The flushed offset is a promise, and so is an answer "stored" or "durable", and a close that reports itself clean.
   No promise exceeds what is durable, and none is revoked (2, 9).
4. If no disk call has failed, nothing may be refused, given up, or ended uncleanly.
5. The clean-up may end after any file that it may delete, and leave a file on the disk that has left the log. A removed
   file may reappear after a power loss, since the sync of its directory may have failed (10).
6. A deletion deletes all of its topics or none. After a refused one a crash may find it done (10).
7. Each delay level advances in order: the log has a copy of each message that it has passed, and of no other. It stops
   at a message that is not due, at the end of dispatch, or at a copy that the disk refused (12).

The crash or open that ends the rule is judged as every other one, with the promises as the floor.
"""

from dataclasses import replace

from tornpage.model.answers import Answer, accepted
from tornpage.model.commitlog import Appended
from tornpage.model.dispatch import Queue
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.operations import (
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
from tornpage.model.payloads import born_at, given_of
from tornpage.model.state import State
from tornpage.model.step import applies, step
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.enabled_rule import EnabledRule
from tornpage.properties.judge.ledgers import DELAY_OFFSETS
from tornpage.properties.judge.rulings import queue_text
from tornpage.properties.lockstep.broken_under_fault import broken_under_fault
from tornpage.properties.lockstep.compare import clean_exit_is_durable, marks_found, predicted
from tornpage.properties.lockstep.consumers import commit_offset
from tornpage.properties.lockstep.execute import call_put, put_answer, service_named
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["close_under_fault", "count_faults", "enable_rule", "run_under_fault"]

_FAR = 1 << 62
_RULES = (AimFault(),)
"""Stands for the enabled rules. Only the disk knows which calls they hit."""
_RUN_MS = 10_000
_CLEAN_STEPS_MAX = 200

_Served = dict[Queue, tuple[int, tuple[int | None, ...]]]
"""By queue: its first number, and the log offsets of the messages from there on."""


def enable_rule(pair: Pair, operation: AimFault) -> None:
    """Enable a fault rule in addition to the others.

    A store that accepts no puts gets none.
    """
    files = pair.files
    pair.environment.append_fails = False
    if pair.log.poisoned or (not pair.closed and pair.store.read_only_reason is not None):
        return
    files.failing_syncs = files.failing_writes = files.refused_files = 0
    files.rules = (*files.rules, EnabledRule(operation.effect, operation.where, operation.seed))


def run_under_fault(pair: Pair, operation: Operation) -> None:
    """Run an operation other than a crash or an open.

    An operation with only one legal answer is skipped.
    """
    before, first = pair.state(_RULES), len(pair.files.events)
    match operation:
        case AimFault():
            enable_rule(pair, operation)
            return
        case Close() if not pair.closed:
            close_under_fault(pair)
            return
        case CommitOffset() if applies(before, operation, pair.layout):
            commit_offset(pair, operation, before)
            return
        case _ if isinstance(operation, WITHOUT_A_VERB):
            return
    pair.begin(operation, _RULES)
    after = before
    if applies(before, operation, pair.layout):
        after = _carried_out(pair, operation, before, first)
        pair.append(after.log.records[len(before.log.records) :], end_after=after.log.end_offset)
        if isinstance(operation, Step) and operation.service == "progress":
            _may_be_saved(pair, after, first)
    pair.end_operation(first, after)
    pair.note_whole()
    if not pair.closed and isinstance(operation, Clean | DeleteTopics | Step):
        queues_serve_the_log(pair)


def _carried_out(pair: Pair, operation: Operation, before: State, first: int) -> State:
    """Run an operation of an open store, and return the legal state that its answer leaves.

    Its writes begin at event `first`.
    """
    match operation:
        case Put() | PutBatch():
            return _put(pair, operation, before)
        case Flush():
            found = Answer(durable=observed("flush", pair.store.flush).durable)
            _matters(pair, not found.durable)
            return _legal_outcome(pair, operation, before, found)[0]
        case Clean():
            return _cleaned(pair, operation, before)
        case DeleteTopics():
            return _deleted(pair, operation, before, first)
        case Step("schedule"):
            return _delivered(pair, operation, before)
        case Step():
            return _stepped(pair, operation, before)
    return before


def _legal_outcome(pair: Pair, operation: Operation, before: State, found: Answer) -> tuple[State, Answer]:
    """Return the outcome that an answer allows.

    The model has all legal outcomes, and the answer selects one.
    """
    store = pair.store
    found = replace(
        found,
        marks=marks_found(pair),
        read_only=store.read_only_reason is not None,
        faults=pair.faults_left(),
        dispatched=store.committed_offset - store.dispatch_behind_bytes,
        level_ends=tuple(
            (level, store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1))
            for level in range(1, pair.layout.delay_levels + 1)
        ),
    )
    for outcome in accepted(step(before, operation, pair.layout, found=found), found):
        observed("check", store.check)
        return outcome
    raise broken_under_fault(pair, before, operation, found)


def _put(pair: Pair, put: Put | PutBatch, before: State) -> State:
    given = born_at(put, given_of(put), pair.environment.clock_ms)
    answer = put_answer(call_put(pair, put, given))
    after, expected = _legal_outcome(pair, put, before, Answer(put=answer))
    assert isinstance(expected.note, Appended)
    _matters(pair, bool(expected.note.records) and answer.status != "PUT_OK")
    return after


def _stepped(pair: Pair, operation: Step, before: State) -> State:
    service, fired = service_named(pair, operation.service), pair.files.fired
    found = observed("step", service.step)
    if found is None:
        raise GuaranteeBroken(16, "a service gives up although no disk call failed", "a round", "none")
    _matters(pair, found.failed or (pair.files.fired > fired and operation.service == "progress"))
    return _legal_outcome(pair, operation, before, Answer(failed=found.failed))[0]


def _delivered(pair: Pair, operation: Step, before: State) -> State:
    """Run a round of the schedule service."""
    found = observed("step", service_named(pair, "schedule").step)
    if found is None or (found.failed and not pair.files.fired):
        raise GuaranteeBroken(16, "delivery gives up although no disk call failed", "a round", str(found))
    after, expected = _legal_outcome(pair, operation, before, Answer(delays=_delays(pair)))
    is_refused = bool(expected.note)
    _matters(pair, is_refused)
    pair.cover("delivered_under_a_fault", len(after.log.records) - len(before.log.records))
    pair.cover("delivery_refused_under_a_fault", is_refused)
    return after


def _delays(pair: Pair) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(observed("delay_offsets", pair.store.delay_offsets).items()))


def _may_be_saved(pair: Pair, after: State, first: int) -> None:
    """Note that progress files may have the newest version or the one before.

    Both are legal from event `first` on.
    """
    pair.memory.versions.saved(pair.memory.consumer_file, after.consumers.saved, first, _FAR)
    pair.memory.versions.saved(DELAY_OFFSETS, after.log.delays, first, _FAR)


def close_under_fault(pair: Pair) -> None:
    """Close. An exit is clean, or without its marker on disk, only if everything is durable.

    A slave delivers nothing: its progress is what its master sends.
    """
    before, first, store = pair.state(_RULES), len(pair.files.events), pair.store
    observed("close", store.close)
    clean = store.read_only_reason is None
    _matters(pair, not clean)
    is_marked = None if clean else f"{ROOT}/abort" in pair.durable(pair.files).files
    delays = None if pair.layout.role == "SLAVE" else _delays(pair)
    found = Answer(clean=clean, marked=is_marked, delays=delays, faults=pair.faults_left())
    after = next((each for each, _ in accepted(step(before, Close(), pair.layout, found=found), found)), None)
    if after is None:
        raise broken_under_fault(pair, before, Close(), found)
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


def count_faults(pair: Pair, faults: tuple[EnabledRule, ...], *, mattered: bool) -> None:
    """Count each enabled fault by class and text: whether it hit a call, and was effective."""
    for fault in faults:
        for name in (f"aimed_{fault.effect.name.replace('-', '_')}", fault.text):
            pair.cover(f"{name}_armed")
            pair.cover(f"{name}_fired", bool(fault.fired))
            pair.cover(f"{name}_mattered", bool(fault.fired) and mattered)


# ---- clean-up --------------------------------------------------------------------------------------------------------


def _cleaned(pair: Pair, operation: Clean, before: State) -> State:
    """Run the clean-up as far as the disk allows it; it must leave no gap."""
    if operation.manual:
        observed("delete_expired_files_manually", pair.store.delete_expired_files_manually)
    _clean_runs(pair)
    begin = pair.store.min_offset
    bases = sorted(int(path.rpartition("/")[2]) for path in log_files(pair.files.paths())) or [begin]
    after, _ = _legal_outcome(pair, operation, before, Answer(oldest_offset=bases[0]))
    if bases != list(range(bases[0], bases[-1] + 1, pair.settings.file_bytes)):
        raise GuaranteeBroken(10, "a clean-up under a fault leaves a gap in the log", f"from {begin} on", str(bases))
    pair.cover("cleaned_under_a_fault", begin > before.log.min_offset)
    return after


def _clean_runs(pair: Pair) -> None:
    """Step the service until its run is over, or ended by the disk."""
    service, fired = service_named(pair, "clean"), pair.files.fired
    for _ in range(_CLEAN_STEPS_MAX):
        found = observed("step", service.step)
        if found is None or found.due_ms is None or (found.failed and pair.files.fired == 0):
            raise GuaranteeBroken(16, "the clean-up gives up although no disk call failed", "a run", str(found))
        if found.failed or found.due_ms >= found.now_ms + _RUN_MS:
            pair.files.fault_mattered |= found.failed and pair.files.fired > fired
            return
    raise GuaranteeBroken(16, "a run of the clean-up does not end", found=f"{_CLEAN_STEPS_MAX} steps")


# ---- deletion of topics ----------------------------------------------------------------------------------------------


def _deleted(pair: Pair, operation: DeleteTopics, before: State, first: int) -> State:
    """Delete all topics but those in use, as far as the disk allows it."""
    served, gone = _served(pair), predicted(pair, before, operation)[1].names
    assert isinstance(gone, tuple)
    names = _names_deleted(pair, operation.in_use)
    is_refused = names is None
    found = Answer(names="refused" if names is None else names, is_anew=_are_deleted(pair, gone))
    after, _ = _legal_outcome(pair, operation, before, found)
    left = {queue: numbers for queue, numbers in served.items() if not (found.is_anew and queue[0] in gone)}
    if (served := _served(pair)) != left:
        sentence = "a deletion under a fault changes other queues, or not all of its own"
        raise GuaranteeBroken(10, sentence, str(left), str(served))
    pair.files.fault_mattered |= is_refused
    pair.cover("deleted_under_a_fault", bool(found.is_anew and gone))
    pair.cover("deleted_with_files_left", bool(found.is_anew and is_refused))
    pair.cover("deletion_refused", not found.is_anew)
    if found.is_anew:
        pair.memory.derived = pair.memory.derived.with_deleted(after.log.deleted, after.log.end_offset)
    else:  # the offsets of consumers may be 0 on the disk already
        pair.memory.versions.saved(pair.memory.consumer_file, after.consumers.saved, first, _FAR)
    return after


def _names_deleted(pair: Pair, in_use: tuple[str, ...]) -> tuple[str, ...] | None:
    """Delete topics; return the deleted ones, None if a disk call failed."""
    fired = pair.files.fired
    try:
        return pair.store.clean_unused_topics(in_use)
    except OSError as error:
        if pair.files.fired == fired:
            sentence = "a deletion is refused although no disk call failed"
            raise GuaranteeBroken(10, sentence, found=str(error)) from error
        return None
    except Exception as error:
        raise GuaranteeBroken(8, f"clean_unused_topics raises {type(error).__name__}: {error}") from error


def _are_deleted(pair: Pair, gone: tuple[str, ...]) -> bool:
    """Return whether the numbers of these topics restart.

    That has to be so for all of them or for none.
    """
    table = pair.environment.parts_of(pair.store)["queue_offsets"]
    known = {topic.decode(errors="surrogateescape") for topic, _ in table.known()}
    going_on = known.intersection(gone)
    if going_on and len(going_on) < len(gone):
        raise GuaranteeBroken(10, "a deletion under a fault deletes only some of its topics", str(gone), str(going_on))
    return not going_on


def queues_serve_the_log(pair: Pair) -> None:
    """Contract 4: under a fault a queue serves only its messages in the log.

    It may lack those that could not be dispatched.
    """
    for queue, (begin, found) in _served(pair).items():
        memory = pair.memory.derived.queues.get(queue)
        units = {} if memory is None else {unit.queue_offset: unit.record.offset for unit in memory.units}
        expected = tuple(units.get(number, -1) for number in range(begin, begin + len(found)))
        if found != expected:
            raise GuaranteeBroken(
                4, f"queue {queue_text(queue)} serves other messages than the log", str(expected), str(found)
            )


def _served(pair: Pair) -> _Served:
    """Return the messages that each queue of the open store serves."""
    return {queue: _numbers(pair, queue) for queue in observed("queues", pair.store.queues)}


def _numbers(pair: Pair, queue: Queue) -> tuple[int, tuple[int | None, ...]]:
    store = pair.store
    begin, end = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    return begin, tuple(store.commit_log_offset_in_queue(*queue, number) for number in range(begin, end))
