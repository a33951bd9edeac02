"""Compare puts with the model: synchronous, asynchronous and concurrent ones."""

from dataclasses import replace

from tornpage.model.answers import Answer, PutAnswer
from tornpage.model.message import Batch, Message, PutStatus
from tornpage.model.operations import Concurrent, Put, PutBatch
from tornpage.model.payloads import born_at, given_of
from tornpage.model.state import BLANK_BYTES, State
from tornpage.properties.contract import observed
from tornpage.properties.lockstep.compare import compare_watermarks, legal_outcome, predicted, require_will_step
from tornpage.properties.lockstep.concurrent import explained
from tornpage.properties.lockstep.execute import answered_puts, call_put, call_put_async, must_wait, put_answer
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.program.zero_checksum import BODY_BYTES_MIN, sums_to_zero

__all__ = ["note_answers", "put", "put_concurrently"]


def put(pair: Pair, operation: Put | PutBatch) -> None:
    """Put a message or a batch, and wait for the answer or leave it for later."""
    first, before = len(pair.files.events), pair.begin(operation)
    given = born_at(operation, given_of(operation), pair.environment.clock_ms)
    given = _summed(pair, before, operation, given)
    call = _put_later if operation.later else _put_now
    after, expected = call(pair, before, operation, given)
    records = after.log.records[len(before.log.records) :]
    if records:
        pair.cover("batches_stored", isinstance(operation, PutBatch))
        pair.cover("least_room_left", -after.log.end_offset % pair.layout.file_bytes == BLANK_BYTES)
    pair.append(records, end_after=after.log.end_offset)
    _count_files(pair, before, after, expected)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _summed(pair: Pair, before: State, operation: Put | PutBatch, given: Message | Batch) -> Message | Batch:
    """Return a message that asks for it with a body for which its record's checksum is 0.

    The body is unchanged if there is none.
    """
    if pair.closed or operation.op != "put" or operation.body_kind != "sums to zero" or not pair.layout.trailer:
        return given
    after, _ = predicted(pair, before, operation)
    records = after.log.records[len(before.log.records) :]
    if not records or operation.body_bytes < BODY_BYTES_MIN:
        return given
    body = sums_to_zero(records[0])
    pair.cover("checksums_of_zero", body is not None)
    return given if body is None else replace(given, body=body)


def _count_files(pair: Pair, before: State, after: State, expected: Answer) -> None:
    """Count how a put got a new file, or why it got none."""
    old, new = before.log, after.log
    if new.files > old.files:
        pair.cover("prepared_files_taken", old.prepared > new.prepared)
        pair.cover("files_without_a_buffer", pair.layout.has_pool and len(new.buffers) == len(old.buffers))
    refused = isinstance(expected.put, PutAnswer) and expected.put.status == PutStatus.CREATE_MAPEDFILE_FAILED.value
    is_fast = refused and pair.layout.has_pool and pair.layout.fast_fail
    pair.cover("fast_failed", is_fast and len(old.buffers) == pair.layout.pool_buffers)


def _put_now(pair: Pair, before: State, operation: Put | PutBatch, given: Message | Batch) -> tuple[State, Answer]:
    """Put and wait.

    A put that waits for the disk steps group commit, which answers all other puts too.
    """
    found = Answer(
        put=put_answer(call_put(pair, operation, given)), ended=answered_puts(pair), faults=pair.faults_left()
    )
    after, expected = legal_outcome(pair, before, operation, found, given=given)
    pair.cover("answered_with_another", note_answers(pair, expected))
    return after, expected


def _put_later(pair: Pair, before: State, operation: Put | PutBatch, given: Message | Batch) -> tuple[State, Answer]:
    """Put with `put_async`.

    A put that waits for disk or replica is answered later, any other put at once.
    """
    answer = call_put_async(pair, operation, given)
    result = observed("put_async", answer.result) if answer.done() else None
    found = Answer(put="waits" if result is None else put_answer(result), faults=pair.faults_left(), note=result)
    after, expected = legal_outcome(pair, before, operation, found, given=given)
    note_answers(pair, expected)
    if expected.put == "waits":
        must_wait("put_async", answer)
        if after.puts[-1].waits.disk is None:
            require_will_step(pair, "group-commit")
        pair.clients.puts[after.puts[-1].number] = answer
    return after, expected


def note_answers(pair: Pair, expected: Answer) -> int:
    """Count the answers to puts, drop the answered puts, and return how many there were."""
    ended = expected.ended or ()
    for number, answer in ended:
        del pair.clients.puts[number]
        pair.cover(f"answered_{answer.status}")
    if isinstance(expected.put, PutAnswer):
        pair.cover(f"answered_{expected.put.status}")
    return len(ended)


def put_concurrently(pair: Pair, operation: Concurrent) -> None:
    """Two producers put at once; some order of their puts explains all answers."""
    if pair.closed:
        return
    first, before = len(pair.files.events), pair.begin(operation)
    after, expected = explained(pair, before, operation)
    note_answers(pair, expected)
    pair.append(after.log.records[len(before.log.records) :], end_after=after.log.end_offset)
    pair.end_operation(first, after)
    compare_watermarks(pair)
