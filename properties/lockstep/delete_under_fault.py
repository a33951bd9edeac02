"""A deletion of topics under an aimed fault: all of them are deleted, or none is (contract 10).

A disk that refuses to remember a deletion has it refused: each queue serves what it did. One that remembers it and
refuses to remove a file has it done: no queue serves what is left on the disk. A crash may find a refused deletion all
the same, since the list of deleted topics may have been renamed while its directory could not be synced.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from model import progress, retention
from model.dispatch import Queue
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["delete_under_fault", "queues_serve_the_log"]

_FAR = 1 << 62

_Served = dict[Queue, tuple[int, ...]]
"""By queue its first number, and where in the log the messages from there on lie."""


def delete_under_fault(trial: "Trial", in_use: tuple[str, ...], first: int) -> CommitLog:
    """Delete all topics but those in use, or what the disk lets happen of it; return the log with what is left.

    What the verb writes, it writes from event `first` on.
    """
    before, served = trial.log, _served(trial)
    after, gone = retention.delete_topics(before, layout=trial.layout, in_use=in_use)
    if after.end_offset == after.min_offset and gone:
        return before  # no record tells whether a topic was deleted behind it or not
    is_refused = _is_refused(trial, in_use, gone)
    is_deleted = _are_deleted(trial, gone)
    if not is_deleted and not is_refused:
        raise GuaranteeBroken(10, "a deletion is called done, and the numbers of the topics go on", str(gone))
    left = {queue: numbers for queue, numbers in served.items() if not (is_deleted and queue[0] in gone)}
    if (found := _served(trial)) != left:
        raise GuaranteeBroken(10, "a deletion under a fault changes other queues, or not enough", str(left), str(found))
    trial.files.fault_mattered |= is_refused
    trial.happened("deleted_under_a_fault", is_deleted and bool(gone))
    trial.happened("deleted_with_files_left", is_deleted and is_refused)
    trial.happened("deletion_refused", not is_deleted)
    return _deleted(trial, after, gone) if is_deleted else _refused(trial, after, gone, first)


def _is_refused(trial: "Trial", in_use: tuple[str, ...], gone: tuple[str, ...]) -> bool:
    """Ask for the deletion of topics that are `gone` then; return whether the disk has refused a part of it."""
    fired = trial.files.fired
    try:
        found = trial.store.clean_unused_topics(in_use)
    except OSError as error:
        if trial.files.fired == fired or not gone:
            sentence = "a deletion is refused by a disk that lets nothing fail"
            raise GuaranteeBroken(10, sentence, str(gone), str(error)) from error
        return True
    except Exception as error:
        raise GuaranteeBroken(8, f"clean_unused_topics raises {type(error).__name__}: {error}") from error
    if found != gone:
        raise GuaranteeBroken(10, "other topics were deleted than the model's", str(gone), str(found))
    return False


def _are_deleted(trial: "Trial", gone: tuple[str, ...]) -> bool:
    """Return whether the numbers of these topics begin anew: of all of them, or of none."""
    table = trial.surroundings.parts_of(trial.store)["queue_offsets"]
    known = {topic.decode(errors="surrogateescape") for topic, _ in table.known()}
    going_on = known.intersection(gone)
    if going_on and len(going_on) < len(gone):
        raise GuaranteeBroken(10, "a deletion under a fault takes some of its topics", str(gone), str(going_on))
    return not going_on


def _deleted(trial: "Trial", after: CommitLog, gone: tuple[str, ...]) -> CommitLog:
    """Return the log behind a deletion that is done, whatever became of the files; what it has written is durable."""
    trial.derived = trial.derived.with_deleted(after.deleted, after.end_offset)
    trial.consumers = progress.delete_topics(trial.consumers, gone)
    return after.changed(undecided=()) if gone else after


def _refused(trial: "Trial", after: CommitLog, gone: tuple[str, ...], first: int) -> CommitLog:
    """Return the log behind a deletion that was refused; the offsets of consumers may be 0 on the disk by then."""
    saved = progress.delete_topics(trial.consumers, gone).saved
    trial.consumers = replace(trial.consumers, saved=saved, is_changed=True)
    trial.versions.saved(trial.consumer_file, saved, first, _FAR)
    return retention.refuse_deletion(trial.log, after)


def queues_serve_the_log(trial: "Trial") -> None:
    """Contract 4: under a fault a queue may lack what could not be dispatched, and serves nothing else than the log."""
    for queue, (begin, *found) in _served(trial).items():
        memory = trial.derived.queues.get(queue)
        units = {} if memory is None else {unit.queue_offset: unit.record.offset for unit in memory.units}
        expected = [units.get(number, -1) for number in range(begin, begin + len(found))]
        if found != expected:
            raise GuaranteeBroken(4, f"queue {queue} serves other messages than the log", str(expected), str(found))


def _served(trial: "Trial") -> _Served:
    """Return what each queue of the open store serves."""
    return {queue: _numbers(trial, queue) for queue in observed("queues", trial.store.queues)}


def _numbers(trial: "Trial", queue: Queue) -> tuple[int, ...]:
    store = trial.store
    begin, end = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    return (begin, *(store.commit_log_offset_in_queue(*queue, number) for number in range(begin, end)))
