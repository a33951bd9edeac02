"""Compare deletion with the model: clean-up, topics, and buffers that keep files on disk.

Each clean-up is a whole run in which no time passes, so a crash may fall after any file that it deletes.
"""

from functools import partial

from tornpage.impl.errors import BufferReleased
from tornpage.model.answers import Answer
from tornpage.model.operations import Clean, DeleteTopics, HoldBuffer
from tornpage.model.retention import DISK_FULL, Cleaned
from tornpage.model.state import CommitLog, State
from tornpage.model.step import applies
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.answers import compare_query
from tornpage.properties.lockstep.compare import compare_watermarks, legal_outcome, may_read, predicted
from tornpage.properties.lockstep.execute import service_named
from tornpage.properties.lockstep.pair import HeldBuffer, Pair

__all__ = [
    "clean",
    "delete_topics",
    "held_buffers_are_right",
    "hold_buffer",
    "release_buffer",
]

_RUN_MS = 10_000
_STEPS_OF_A_RUN_MAX = 200


def clean(pair: Pair, operation: Clean) -> None:
    """Run the clean-up.

    Nothing happens while the store is closed or dispatch is half done.
    """
    first, before = len(pair.files.events), pair.begin(operation)
    after = pair.model
    if applies(before, operation, pair.layout):
        after = _cleaned(pair, before, operation)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _cleaned(pair: Pair, before: State, operation: Clean) -> State:
    if operation.manual:
        observed("delete_expired_files_manually", pair.store.delete_expired_files_manually)
    after, expected = predicted(pair, before, operation)
    _makes_a_run_inside_a_query(pair, operation.query, after.log)
    cleaned, old, new = expected.note, before.log, after.log
    assert isinstance(cleaned, Cleaned)
    pair.cover("log_files_deleted", cleaned.files)
    pair.cover("urgent_run", cleaned.urgent and cleaned.files > 0)
    pair.cover("asked_for_run", operation.manual and cleaned.files > 0)
    pair.cover("log_file_hangs", new.hanging is not None)
    pair.cover("hanging_file_deleted", old.hanging is not None and new.hanging is None)
    pair.cover("buffers_taken_back", cleaned.forced)
    pair.cover("disk_full_seen_by_clean_up", bool(new.flags & ~old.flags & DISK_FULL))
    return after


def _makes_a_run_inside_a_query(pair: Pair, number: int, after: CommitLog) -> None:
    """Run the clean-up inside a query by key, after its first look-up, and compare the result."""
    keys = list(pair.memory.derived.keys) if number >= 0 and may_read(pair) else []
    if keys:
        key, pair.environment.interruption = keys[number % len(keys)], partial(_makes_a_run, pair)
        compare_query(pair.store, after, pair.layout, key, stored=pair.memory.ledger.stored)
        is_made, pair.environment.interruption = pair.environment.interruption is None, None
        pair.cover("cleaned_inside_a_query", is_made)
        if is_made:
            return
    _makes_a_run(pair)


def _makes_a_run(pair: Pair) -> None:
    """Step the service until its run is over (contract 10, 16)."""
    service = service_named(pair, "clean")
    for _ in range(_STEPS_OF_A_RUN_MAX):
        found = observed("step", service.step)
        if found is None or found.due_ms is None:
            raise GuaranteeBroken(16, "the clean-up of an open store was stopped")
        if found.failed:
            raise GuaranteeBroken(10, "the clean-up fails although no disk call failed")
        if found.due_ms >= found.now_ms + _RUN_MS:
            return
    raise GuaranteeBroken(16, "a run of the clean-up does not end", found=f"{_STEPS_OF_A_RUN_MAX} steps")


def delete_topics(pair: Pair, operation: DeleteTopics) -> None:
    """Delete all topics but those in use, and compare which were deleted (contract 10)."""
    first, before = len(pair.files.events), pair.begin(operation)
    after = pair.model
    if applies(before, operation, pair.layout):
        names = observed("clean_unused_topics", lambda: pair.store.clean_unused_topics(operation.in_use))
        after, _ = legal_outcome(pair, before, operation, Answer(names=names, faults=pair.faults_left()))
        pair.memory.derived = pair.memory.derived.with_deleted(after.log.deleted, after.log.end_offset)
        pair.cover("topics_deleted", len(names))
    pair.end_operation(first, after)
    compare_watermarks(pair)


def hold_buffer(pair: Pair, operation: HoldBuffer) -> None:
    """Take a buffer of a readable record, and keep it."""
    before = pair.begin(operation)
    if not applies(before, operation, pair.layout):
        return
    pair.model, _ = predicted(pair, before, operation)
    record = pair.model.buffers[-1]
    buffer = observed("select_message_by_offset", lambda: pair.store.select_message_by_offset(record.offset))
    if buffer is None:
        raise GuaranteeBroken(8, f"the record at {record.offset} cannot be read")
    pair.clients.buffers.append(HeldBuffer(buffer, record))


def release_buffer(pair: Pair) -> None:
    """Release the oldest buffer, twice: the second release changes nothing."""
    if pair.clients.buffers:
        buffer = pair.clients.buffers.pop(0).buffer
        for _ in range(2):
            observed("release", buffer.release)
            if not buffer.released:
                raise GuaranteeBroken(11, "a released buffer does not state that it is released")


def held_buffers_are_right(pair: Pair) -> None:
    """Contract 11: a buffer shows its record until it is released or its file is removed.

    After that it raises BufferReleased. It states which of both holds.
    """
    for each in list(pair.clients.buffers):
        is_gone = pair.closed or each.record.offset < pair.log.oldest_offset
        try:
            shows = bytes(each.buffer)
        except BufferReleased:
            if not is_gone:
                raise GuaranteeBroken(11, f"the buffer at {each.record.offset} was taken back too soon") from None
            if not each.buffer.released:
                raise GuaranteeBroken(
                    11, f"the buffer at {each.record.offset} does not state that it was taken back"
                ) from None
            pair.clients.buffers.remove(each)
            continue
        if is_gone:
            raise GuaranteeBroken(11, f"a buffer shows a record at {each.record.offset} whose file is removed")
        if shows != pair.memory.ledger.stored(each.record):
            raise GuaranteeBroken(11, f"the buffer at {each.record.offset} shows other bytes than were put")
        if each.buffer.released or (each.buffer.offset, len(each.buffer)) != (each.record.offset, len(shows)):
            raise GuaranteeBroken(
                11, f"the buffer at {each.record.offset} has another state or place", "held", repr(each.buffer)
            )
