"""Compare the open store with the model, and the disk after a clean exit.

The open store is compared after every operation.

The answer of one operation is compared in the module of the operation. Each comparison raises GuaranteeBroken with the
number of the contract and a sentence.
"""

from tornpage.impl.errors import NotReadable
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.model.answers import Answer, Marks, NextRound, PutAnswer, accepted, marks_of
from tornpage.model.flushing import legal_checkpoint
from tornpage.model.message import Batch, Message
from tornpage.model.operations import Operation, ServiceName, Step
from tornpage.model.state import State
from tornpage.model.step import step
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.evidence import derived_on
from tornpage.properties.judge.index import index_is_right
from tornpage.properties.judge.queues import bit_maps_of, extensions_are_right, queues_are_right
from tornpage.properties.judge.rulings import bounds_text, queue_text
from tornpage.properties.judge.small_files import checkpoint_times as derived_checkpoint_times
from tornpage.properties.judge.small_files import physic_timestamp
from tornpage.properties.lockstep.pair import UNKNOWN_QUEUE, Pair
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = [
    "broken",
    "checkpoint_is_right",
    "clean_exit_is_durable",
    "compare_queues",
    "compare_watermarks",
    "disk_holds_the_log",
    "legal_outcome",
    "marks_found",
    "may_read",
    "predicted",
    "require_will_step",
]


# ---- what an operation answers ---------------------------------------------------------------------------------------


def predicted(pair: Pair, before: State, operation: Operation) -> tuple[State, Answer]:
    """Return the outcome of an operation that has only one.

    It depends on the faults that the disk has left.
    """
    return next(step(before, operation, pair.layout, found=Answer(faults=pair.faults_left())))


def legal_outcome(
    pair: Pair, before: State, operation: Operation, found: Answer, *, given: Message | Batch | None = None
) -> tuple[State, Answer]:
    """Return the outcome that an answer of the store allows.

    The answer includes the faults that the disk has left (`Pair.faults_left`). Raises GuaranteeBroken if no outcome
    allows it.
    """
    for outcome in accepted(step(before, operation, pair.layout, given=given, found=found), found):
        return outcome
    expected = next(answer for _, answer in step(before, operation, pair.layout, given=given))
    raise broken(pair, operation, expected, found)


def broken(pair: Pair, operation: Operation, expected: Answer, found: Answer) -> GuaranteeBroken:
    """Return the contract that an illegal answer breaks; `expected` is the first legal one."""
    special = (
        _broken_by_ended_puts(pair, expected, found),
        _broken_by_ended_pulls(expected, found),
        _broken_by_put(expected, found),
        _broken_by_delivery(operation, expected, found),
    )
    for one in special:
        if one is not None:
            return one
    for name, contract, sentence, is_told in _SENTENCES:
        if (texts := _differing(expected, found, name)) is not None:
            return GuaranteeBroken(contract, sentence, *(texts if is_told else ()))
    marks = None if expected.marks is None or found.marks is None else _broken_by_marks(expected.marks, found.marks)
    unexplained = GuaranteeBroken(8, f"{operation.op} leads to an illegal state", str(expected), str(found))
    return unexplained if marks is None else marks


_SENTENCES = (
    ("durable", 9, "a flush has another answer than the model's", True),
    ("names", 10, "other topics were deleted than the model's", True),
    ("committed", 17, "another offset is effective than was committed", True),
    ("removed", 13, "a removal from a broker table has another answer than the model's", True),
    ("failed", 16, "dispatch fails although no disk call failed", False),
    ("delays", 12, "a delivery round leads to other progress than the model's", True),
    ("next_round", 16, "the next delivery round is at the wrong time", True),
)
"""By the field of an answer: the contract that it breaks, the sentence, and whether the two values are shown."""


def _differing(expected: Answer, found: Answer, name: str) -> tuple[str, str] | None:
    """Return the expected and found texts of a field if they differ."""
    wanted, said = getattr(expected, name), getattr(found, name)
    if wanted is None or said is None or wanted == said:
        return None
    if isinstance(wanted, NextRound):
        wanted, said = wanted.due_ms, said.due_ms
    return str(wanted), str(said)


def _broken_by_ended_puts(pair: Pair, expected: Answer, found: Answer) -> GuaranteeBroken | None:
    """Return how a waiting put was answered too early, wrongly, or not at all."""
    if expected.ended is None or found.ended is None:
        return None
    ended, answered = dict(expected.ended), dict(found.ended)
    for number, answer in pair.clients.puts.items():
        if number in ended:
            one = _broken_by_put(Answer(put=ended[number]), Answer(put=answered.get(number, "waits")))
            if one is not None:
                return one
        elif number in answered:
            return GuaranteeBroken(16, "a put is answered too early", "no answer yet", str(answer.result()))
    return None


def _broken_by_ended_pulls(expected: Answer, found: Answer) -> GuaranteeBroken | None:
    """Return how a close failed to end each waiting pull."""
    if found.ended_pulls is None or expected.ended_pulls == found.ended_pulls:
        return None
    return GuaranteeBroken(16, "a close leaves a pull waiting", "StoreClosed", "no answer, or another")


def _broken_by_put(expected: Answer, found: Answer) -> GuaranteeBroken | None:
    match expected.put, found.put:
        case "waits", PutAnswer():
            return GuaranteeBroken(2, "a put is answered before its flush", "no answer yet", str(found.note))
        case PutAnswer(), "waits":
            return GuaranteeBroken(16, "a put is not answered", expected.put.status, "no answer")
        case PutAnswer(), PutAnswer() if expected.put != found.put:
            texts = str(expected.put), str(found.put)
            return GuaranteeBroken(8, "a put has another answer than the model's", *texts)
    return None


def _broken_by_delivery(operation: Operation, expected: Answer, found: Answer) -> GuaranteeBroken | None:
    """Return how a delivery round put other copies than those that are due (contract 12)."""
    if not isinstance(operation, Step) or expected.marks is None or found.marks is None:
        return None
    if expected.marks.end == found.marks.end:
        return None
    ends = f"a log that ends at {expected.marks.end}", f"one that ends at {found.marks.end}"
    return GuaranteeBroken(12, "a delivery round delivers other messages than the model", *ends)


# ---- after every operation -------------------------------------------------------------------------------------------


def disk_holds_the_log(pair: Pair) -> None:
    """Check that the log files have what was put and committed, then zeros (contract 1).

    A file without a buffer after uncommitted ones is compared once they are committed.
    """
    log, file_bytes = pair.log, pair.settings.file_bytes
    committed, half_written_end = log.committed_offset, pair.files.half_written_end
    buffered = {buffer.base_offset for buffer in log.buffers}
    bases = range(log.oldest_offset, (log.files + log.prepared) * file_bytes, file_bytes)
    for base, path in zip(bases, _files_at(pair, bases), strict=True):
        if base <= committed or base in buffered or base >= log.end_offset:
            found, kept = pair.files.peek(path, 0, file_bytes), max(0, committed - base)
            half = max(kept, half_written_end - base if committed < log.end_offset else 0)
            expected = pair.memory.ledger.expected(base, committed)
            if found[:kept] != expected[:kept] or found[half:] != expected[half:]:
                raise GuaranteeBroken(1, f"the log file at {base} has other bytes than were put")


def _files_at(pair: Pair, bases: range) -> list[str]:
    """Return the paths of the log files that begin at these offsets.

    Raises GuaranteeBroken if there are others.
    """
    expected = [pair.log_file(base) for base in bases]
    found = log_files(pair.files.paths())
    if found != expected:
        raise GuaranteeBroken(8, "the log has other files than the model", str(expected), str(found))
    return found


def _broken_by_marks(expected: Marks, found: Marks) -> GuaranteeBroken | None:
    if expected.min_offset != found.min_offset:
        begins = str(expected.min_offset), str(found.min_offset)
        return GuaranteeBroken(10, "the log begins at another offset than its clean-up left", *begins)
    if expected != found:
        return GuaranteeBroken(9, "the watermarks are wrong", _marks_text(expected), _marks_text(found))
    return None


def _marks_text(marks: Marks) -> str:
    return f"flushed {marks.flushed}, readable {marks.readable}, written {marks.end}"


def marks_found(pair: Pair) -> Marks:
    """Return the watermarks of the open store."""
    store = pair.store
    return Marks(store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)


def compare_watermarks(pair: Pair) -> None:
    """Compare the watermarks with the model's (contract 9), and note committed bytes."""
    if not pair.closed:
        broken_by = _broken_by_marks(marks_of(pair.log), marks_found(pair))
        if broken_by is None or broken_by.contract != 10:
            observed("check", pair.store.check)
        if broken_by is not None:
            raise broken_by
    pair.note_committed()


def compare_queues(pair: Pair) -> None:
    """Contract 17: each queue of an open store ends where dispatch is, so it never shrinks."""
    if pair.closed:
        return
    behind_bytes = max(0, pair.log.readable_end - pair.log.dispatched_offset)
    store = pair.store
    if pair.is_partly_dispatched:
        _queues_are_at_most_dispatched(pair)
        return
    for queue in dict.fromkeys((*pair.memory.derived.queues, *observed("queues", pair.store.queues))):
        bounds, expected = (store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)), pair.bounds(queue)
        if bounds != expected:
            raise GuaranteeBroken(
                17, f"the bounds of queue {queue_text(queue)} are wrong", bounds_text(expected), bounds_text(bounds)
            )
    if pair.store.dispatch_behind_bytes != behind_bytes:
        found, sentence = str(pair.store.dispatch_behind_bytes), "dispatch is at another place than its steps"
        raise GuaranteeBroken(16, sentence, str(behind_bytes), found)


def _queues_are_at_most_dispatched(pair: Pair) -> None:
    """Contract 17: after dispatch broke off, a queue ends between two known places.

    They are its old end and the readable end.

    A log that was poisoned since then is readable to a lower offset, but no queue goes back for that.
    """
    readable_end = pair.log.end_offset if pair.log.poisoned else pair.log.readable_end
    for queue, memory in pair.memory.derived.queues.items():
        least, most = pair.bounds(queue)[1], memory.count_at(readable_end)
        if not least <= pair.store.max_offset_in_queue(*queue) <= most:
            found = str(pair.store.max_offset_in_queue(*queue))
            raise GuaranteeBroken(17, f"the end of queue {queue_text(queue)} is wrong", f"{least} to {most}", found)


def may_read(pair: Pair) -> bool:
    """Whether the store may be read.

    If the running flags forbid reads, it has to refuse them.
    """
    if pair.closed or pair.is_partly_dispatched:
        return False
    if not pair.log.flags & RunningFlag.NOT_READABLE:
        return True
    try:
        pair.store.get_message(*UNKNOWN_QUEUE, 0)
    except NotReadable:
        return False
    raise GuaranteeBroken(8, "a store whose flags forbid reads is read", "NotReadable", "an answer")


def require_will_step(pair: Pair, name: ServiceName, *, by_ms: int | None = None) -> None:
    """Contract 16: a service with work will take a step in time, without another wake-up."""
    service = pair.environment.service(name)
    if service is None or not service.will_step(by_ms):
        raise GuaranteeBroken(16, "no wake-up is pending for a service with work", name, "it sleeps")


# ---- after a clean exit, and a checkpoint ----------------------------------------------------------------------------


def clean_exit_is_durable(pair: Pair, *, unused_may_stay: bool = False) -> None:
    """Check that a clean close made the log, queues and index durable (contract 2, 4, 5).

    The abort marker has to be gone. If the disk refused to remove files, files of zeros may stay, and expired ones may
    reappear after a power loss.
    """
    image, file_bytes = pair.durable(pair.files), pair.settings.file_bytes
    stored = image.files
    bases = range(pair.oldest, pair.log.files * file_bytes, file_bytes)
    paths = {base: pair.log_file(base, among=stored) for base in bases}
    contents = {path: pair.memory.ledger.expected(base, pair.log.end_offset) for base, path in paths.items()}
    expired = {path for base, path in paths.items() if base < pair.log.oldest_offset}
    unused = {path for path in log_files(stored) if path not in contents and not stored[path].strip(b"\0")}
    left = {path: stored[path] for path in log_files(stored) if not (unused_may_stay and path in unused)}
    expected = {path: content for path, content in contents.items() if path in left or path not in expired}
    if left != expected:
        raise GuaranteeBroken(2, "a clean exit left the log not durable, or left files that it does not use")
    if f"{ROOT}/abort" in stored:
        raise GuaranteeBroken(2, "a clean exit left its abort marker on disk")
    checkpoint_is_right(pair, pair.model)
    content, end, begin = derived_on(image), pair.log.end_offset, pair.log.min_offset
    queues_are_right(
        content,
        pair.memory.derived,
        end,
        settings=pair.settings,
        min_offset=begin,
        was_corrupted=pair.memory.was_corrupted,
    )
    index_is_right(content, pair.memory.derived, end, settings=pair.settings, min_offset=begin)
    if pair.settings.queue_ext:
        extensions_are_right(
            content,
            pair.memory.derived,
            pair.log.end_offset,
            settings=pair.settings,
            min_offset=pair.log.min_offset,
            bit_map_of=bit_maps_of(pair.settings),
        )


def checkpoint_is_right(pair: Pair, state: State) -> None:
    """Contract 9: the checkpoint's times are those of what is durable, within bounds."""
    durable = pair.durable(pair.files)
    queues_ms, index_ms = derived_checkpoint_times(durable)
    legal = legal_checkpoint(state, pair.layout)
    for what, found, (earliest, latest) in (
        ("the log", physic_timestamp(durable), legal.log),
        ("the queues", queues_ms, legal.queues),
        ("the index", index_ms, legal.index),
    ):
        if not earliest <= found <= latest:
            sentence = f"the checkpoint on disk is wrong about {what}"
            raise GuaranteeBroken(9, sentence, f"{earliest} to {latest}", str(found))
