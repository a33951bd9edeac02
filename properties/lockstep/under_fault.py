"""A store under an aimed fault: held to what it has promised, not to one answer.

Where a fault strikes is the disk's affair, and what a store does about a queue file that cannot be synced is its own.
So nothing here says which of the right answers comes. What is answered counts instead, whatever it is:

1. A verb answers; only an open may be refused, and only by a disk that has failed under it (contract 8).
2. What is stored is stored where and as it would have been; what is refused leaves no record (1, 8).
3. The flushed offset is a promise, and so is an answer that says "stored" or "durable", and a close that calls itself
   clean. None is given for more than there is, and none taken back (2, 9).
4. A disk that has let nothing fail is no reason to refuse, to give up, or to end uncleanly.

The disaster that ends it - a crash, or an open - is judged as every other, with what was promised as the floor.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from model import commitlog, progress
from model.commitlog import PutOutcome
from model.message import PutStatus
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
from model.state import Buffer, CommitLog, Record
from properties.contract import GuaranteeBroken, observed
from properties.disk.armed import ArmedFault
from properties.judge.answers import expected_answer, found_answer
from properties.judge.judges import ROOT
from properties.judge.progress_ledger import DELAY_OFFSETS
from properties.lockstep.clean_under_fault import clean_under_fault
from properties.lockstep.delete_under_fault import delete_under_fault, queues_serve_the_log
from properties.lockstep.deliver_under_fault import behind_answered_copies, deliver_under_fault

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["aim", "carry_out_under_fault", "close_under_fault", "count_faults", "says"]

_FAR = 1 << 62
_STEPS = ("group-commit", "time-outs", "flush", "commit", "allocate", "reput", "flush-queues", "progress")
"""Services whose steps change no log; asynchronous delivery and waiting pulls are compared with one answer only."""


def aim(trial: "Trial", operation: AimFault) -> None:
    """Arm a fault, beside those that are armed; a store that takes no puts any more gets none."""
    files = trial.files
    trial.surroundings.append_fails = False
    if trial.log.poisoned or (not trial.closed and trial.store.read_only_reason is not None):
        return
    files.failing_syncs = files.failing_writes = files.refused_files = 0
    files.aimed = (*files.aimed, ArmedFault(operation.effect, operation.where, operation.seed))


def carry_out_under_fault(trial: "Trial", operation: Operation) -> None:
    """Carry out a verb, crashes and opens left out; one that is compared with a single answer alone does nothing."""
    first, after = len(trial.files.events), trial.log
    match operation:
        case AimFault():
            aim(trial, operation)
            return
        case Close() if not trial.closed:
            close_under_fault(trial)
            return
        case Put() | PutBatch():
            trial.let_pass(operation.advance_ms)
            if not trial.closed:
                after = _put(trial, operation)
        case Flush() if not trial.closed:
            after = _flushed(trial)
        case CommitOffset(behind=behind) if behind >= 0:  # how far beyond the end it is, nobody knows under a fault
            trial.commit_offset(operation)
            return
        case Clean() if not trial.closed:
            after = says(trial, clean_under_fault(trial, operation))
        case DeleteTopics(in_use) if not trial.closed:
            after = says(trial, delete_under_fault(trial, in_use, first))
        case Step():
            trial.now_ms += operation.after_ms
            if not trial.closed and operation.service in trial.services:
                after = _stepped(trial, operation, first)
        case _ if isinstance(operation, WITHOUT_A_VERB):
            return
    trial.end_verb(first, after)
    trial.note_what_is_whole()
    if not trial.closed and isinstance(operation, Clean | DeleteTopics | Step):
        queues_serve_the_log(trial)


def says(trial: "Trial", log: CommitLog) -> CommitLog:
    """Return the log with what the store says of it and has to keep: how much is durable, how much is readable."""
    store, before = trial.store, trial.log
    marks = (before.flushed_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    if list(marks) != sorted(marks):
        sentence = "the watermarks are out of order under a fault"
        raise GuaranteeBroken(9, sentence, "flushed before <= flushed <= committed <= written", str(marks))
    observed("check", store.check)
    if store.max_offset != log.end_offset:
        ends = str(log.end_offset), str(store.max_offset)
        raise GuaranteeBroken(8, "the log ends elsewhere than the answers say", *ends)
    committed, buffers = store.committed_offset, log.buffers
    if trial.layout.has_pool:
        buffers = (Buffer(0, _FAR, committed),) if committed < log.end_offset else ()
    poisoned = store.read_only_reason is not None
    return replace(log, flushed_offset=store.flushed_offset, buffers=buffers, poisoned=poisoned)


def _put(trial: "Trial", put: Put | PutBatch) -> CommitLog:
    given = born_at(put, given_of(put), trial.clock_ms)
    before, layout = trial.log, replace(trial.layout, fast_fail=False)
    after, appended = commitlog.append(before, given, layout=layout, store_timestamp=trial.clock_ms)
    result = found_answer(observed("put", lambda: trial.call_put(put, given)))
    records: tuple[Record, ...] = appended.records
    if result.offset < 0:
        if records and not trial.files.fired and not trial.layout.fast_fail:
            raise GuaranteeBroken(8, "a put is refused by a disk that lets nothing fail", "PUT_OK", result.status)
        _matters(trial, bool(records))
        records, after = (), _closed_file(trial, before)
    else:
        expected = expected_answer(PutOutcome(PutStatus(result.status), records)) if records else None
        if result != expected:
            raise GuaranteeBroken(8, "a put is stored otherwise than it has to be", str(expected), str(result))
        _matters(trial, result.status != "PUT_OK")
    after = says(trial, after)
    if result.status == "PUT_OK" and trial.layout.sync_flush and appended.waits and records:
        _has_promised(after.flushed_offset, records[-1].end_offset, "a put is acknowledged")
    trial.appended(records, end_after=after.end_offset)
    return after


def _closed_file(trial: "Trial", log: CommitLog) -> CommitLog:
    """Return the log after a refusal: as it was, or its last file closed for the next one."""
    end_offset = log.files * trial.settings.file_bytes
    if trial.store.max_offset == end_offset > log.end_offset:
        return replace(log, end_offset=end_offset, files=log.files + 1)
    return log


def _flushed(trial: "Trial") -> CommitLog:
    result = observed("flush", trial.store.flush)
    after = says(trial, trial.log)
    if result.durable:
        _has_promised(after.flushed_offset, after.end_offset, "a flush is called durable")
    elif not trial.files.fired:
        raise GuaranteeBroken(9, "a flush fails on a disk that lets nothing fail")
    _matters(trial, not result.durable)
    return after


def _has_promised(flushed_offset: int, end_offset: int, what: str) -> None:
    if flushed_offset < end_offset:
        raise GuaranteeBroken(2, f"{what} beyond the flushed offset", str(end_offset), str(flushed_offset))


def _stepped(trial: "Trial", step: Step, first: int) -> CommitLog:
    if step.service == "schedule" and not trial.layout.pending_copies:
        return says(trial, deliver_under_fault(trial))
    if step.service not in _STEPS:
        return trial.log
    service = trial.surroundings.service(step.service)
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", step.service, "none of that name")
    fired = trial.files.fired
    found = observed("step", service.step)
    if found is None or (found.failed and not trial.files.fired):
        raise GuaranteeBroken(16, "a service gives up on a disk that lets nothing fail", "a round", str(found))
    _matters(trial, found.failed or (trial.files.fired > fired and step.service == "progress"))
    after = says(trial, trial.log)
    return _may_have_saved(trial, after, first) if step.service == "progress" else after


def _may_have_saved(trial: "Trial", log: CommitLog, first: int) -> CommitLog:
    """Return the log with progress saved. From event `first` on the files may say so; whether they do, nobody knows."""
    trial.consumers = progress.save(trial.consumers)
    trial.versions.saved(trial.consumer_file, trial.consumers.saved, first, _FAR)
    trial.versions.saved(DELAY_OFFSETS, log.delays, first, _FAR)
    return replace(log, saved_delays=log.delays)


def close_under_fault(trial: "Trial") -> None:
    """Close; a store that calls its exit clean, or has durably removed its marker, has made everything durable."""
    first, store = len(trial.files.events), trial.store
    observed("close", store.close)
    trial.closed = True
    clean = store.read_only_reason is None
    if not clean and not trial.files.fired:
        reason = str(store.read_only_reason)
        raise GuaranteeBroken(2, "an exit is not clean, and the disk has let nothing fail", found=reason)
    _matters(trial, not clean)
    is_durable = clean or f"{ROOT}/abort" not in trial.durable(trial.files).files
    after = replace(behind_answered_copies(trial), poisoned=not is_durable)
    if is_durable:
        after = replace(after, flushed_offset=after.end_offset, buffers=(), dispatched_offset=after.end_offset)
    if clean:
        after = replace(after, saved_delays=after.delays, undecided=())
        trial.consumers = progress.save(trial.consumers)
    else:
        after = _may_have_saved(trial, after, first)
    trial.end_verb(first, after)
    trial.note_what_is_whole()
    if leaks := trial.files.leaks():
        raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(leaks))
    if is_durable:
        trial.clean_exit_is_durable(unused_may_stay=trial.files.fired > 0)


def _matters(trial: "Trial", is_so: bool) -> None:
    """Note that a fault has changed an answer."""
    trial.files.fault_mattered |= is_so and trial.files.fired > 0


def count_faults(trial: "Trial", faults: tuple[ArmedFault, ...], *, mattered: bool) -> None:
    """Count each fault that was armed, by its class and by its text: whether it has let a call fail, and whether that
    made a difference.
    """
    for fault in faults:
        for name in (f"aimed_{fault.effect.name.replace('-', '_')}", fault.text):
            trial.happened(f"{name}_armed")
            trial.happened(f"{name}_fired", bool(fault.fired))
            trial.happened(f"{name}_mattered", bool(fault.fired) and mattered)
