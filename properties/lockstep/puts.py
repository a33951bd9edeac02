"""Puts, each compared with the model as it returns: messages and batches, at once, later, by two producers at once."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from impl.message import PutResult
from model import commitlog, waiting
from model.commitlog import Appended, PutOutcome
from model.flushing import flush
from model.message import Batch, Message, PutStatus
from model.operations import Concurrent, Put, PutBatch
from model.payloads import born_at, given_of
from model.pending import answered
from model.state import BLANK_BYTES, CommitLog, Conditions
from model.waiting import Waiting
from properties.contract import GuaranteeBroken, observed
from properties.judge.answers import expected_answer, found_answer
from properties.lockstep.compare import compare_watermarks, require_will_step
from properties.lockstep.concurrent import explained
from properties.lockstep.execute import call_put, call_put_async
from properties.lockstep.pair import OpenPut, Pair
from properties.program.zero_checksum import BODY_BYTES_MIN, sums_to_zero

__all__ = ["end_waits", "put", "put_concurrently"]


def put(pair: Pair, put: Put | PutBatch) -> None:
    """Put a message or a batch; a closed store answers SERVICE_NOT_AVAILABLE."""
    first = len(pair.files.events)
    pair.advance(put.advance_ms)
    conditions = pair.conditions()
    given = _summed(pair, put, born_at(put, given_of(put), pair.environment.clock_ms), conditions)
    if pair.closed:
        after, appended = pair.log, Appended(PutStatus.SERVICE_NOT_AVAILABLE)
    else:
        after, appended = commitlog.append(
            pair.log, given, layout=pair.layout, store_timestamp=pair.environment.clock_ms, conditions=conditions
        )
        after = pair.by_monotonic_time(after)
    if put.later:
        after = _put_later(pair, put, given, after, appended, conditions)
    else:
        after = _put_now(pair, put, given, after, appended, conditions)
    if appended.records:
        pair.cover("batches_stored", isinstance(put, PutBatch))
        pair.cover("least_room_left", -after.end_offset % pair.layout.file_bytes == BLANK_BYTES)
    pair.append(appended.records, end_after=after.end_offset)
    _count_files(pair, after, appended)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _summed(pair: Pair, put: Put | PutBatch, given: Message | Batch, conditions: Conditions) -> Message | Batch:
    """Give a message that asks for it the body with which its record has the checksum 0, if there is one."""
    if pair.closed or put.op != "put" or put.body_kind != "sums to zero" or not pair.layout.trailer:
        return given
    _, appended = commitlog.append(
        pair.log, given, layout=pair.layout, store_timestamp=pair.environment.clock_ms, conditions=conditions
    )
    if not appended.records or put.body_bytes < BODY_BYTES_MIN:
        return given
    body = sums_to_zero(appended.records[0])
    pair.cover("checksums_of_zero", body is not None)
    return given if body is None else replace(given, body=body)


def _count_files(pair: Pair, after: CommitLog, appended: Appended) -> None:
    """Note how a put came to a new file, or did not."""
    before = pair.log
    if after.files > before.files:
        pair.cover("prepared_files_taken", before.prepared > after.prepared)
        pair.cover("files_without_a_buffer", pair.layout.has_pool and len(after.buffers) == len(before.buffers))
    refused = appended.status is PutStatus.CREATE_MAPEDFILE_FAILED
    pair.cover(
        "fast_failed",
        (
            refused
            and pair.layout.has_pool
            and pair.layout.fast_fail
            and len(before.buffers) == pair.layout.pool_buffers
        ),
    )


def _put_now(
    pair: Pair,
    put: Put | PutBatch,
    given: Message | Batch,
    after: CommitLog,
    appended: Appended,
    conditions: Conditions,
) -> CommitLog:
    """Put and wait: a put that waits for the disk steps group commit, which answers all other puts as well."""
    result = call_put(pair, put, given)
    if not appended.records:
        _compare_answers(pair, result, PutOutcome(appended.status))
        return after
    waits = commitlog.wait_for(appended, layout=pair.layout, now_ms=pair.environment.now_ms, conditions=conditions)
    if waits.disk is None:
        after, _ = flush(after, sync_fails=conditions.sync_fails)
        waits = waiting.flushed(waits, after)
        after, ended = end_waits(pair, after, lambda each: waiting.flushed(each, after))
        pair.cover("answered_with_another", ended)
    _compare_answers(pair, result, _outcome(appended, waiting.given_up(waits)))
    return after


def _put_later(
    pair: Pair,
    put: Put | PutBatch,
    given: Message | Batch,
    after: CommitLog,
    appended: Appended,
    conditions: Conditions,
) -> CommitLog:
    """Put with `put_async`: a put that waits for disk or replica is answered later, any other at once."""
    answer = call_put_async(pair, put, given)
    if not appended.records:
        _compare_later(pair, answer, PutOutcome(appended.status))
        return after
    waits = commitlog.wait_for(appended, layout=pair.layout, now_ms=pair.environment.now_ms, conditions=conditions)
    if waits.answer is not None:
        _compare_later(pair, answer, _outcome(appended, waits))
        return after
    if answer.done():
        raise GuaranteeBroken(2, "a put is answered before its flush", "no answer yet", str(answer.result()))
    if waits.disk is None:
        require_will_step(pair, "group-commit")
    pair.clients.puts.append(OpenPut(answer, appended, waits))
    return after


def end_waits(pair: Pair, log: CommitLog, change: Callable[[Waiting], Waiting]) -> tuple[CommitLog, int]:
    """End waits as the model does, and compare the answers; return the log and how many puts were answered.

    Copies of delayed messages that wait are in the log.
    """
    after = [replace(each, waits=change(each.waits)) for each in pair.clients.puts]
    for each in after:
        if each.waits.answer is not None:
            _compare_later(pair, each.answer, _outcome(each.appended, each.waits))
        elif each.answer.done():
            raise GuaranteeBroken(16, "a put is answered too early", "no answer yet", str(each.answer.result()))
    pair.clients.puts = [each for each in after if each.waits.answer is None]
    return answered(log, change), len(after) - len(pair.clients.puts)


def _compare_later(pair: Pair, answer: Future[PutResult], outcome: PutOutcome) -> None:
    if not answer.done():
        raise GuaranteeBroken(16, "a put is not answered", outcome.status.value, "no answer")
    _compare_answers(pair, observed("put_async", answer.result), outcome)


def _compare_answers(pair: Pair, result: PutResult, outcome: PutOutcome) -> None:
    expected, found = expected_answer(outcome), found_answer(result)
    if expected != found:
        raise GuaranteeBroken(8, "a put answers otherwise than the model", str(expected), str(found))
    pair.cover(f"answered_{outcome.status.value}")


def put_concurrently(pair: Pair, operation: Concurrent) -> None:
    """Two producers put at once; some order of their puts explains all answers."""
    if pair.closed:
        return
    first = len(pair.files.events)
    pair.files.failing_syncs = pair.files.failing_writes = 0
    if operation.commits:
        pair.environment.now_ms += pair.layout.commit_thorough_ms  # a round of the service goes by no page rule then
    after = explained(pair, operation)
    if after.flushed_offset > pair.log.flushed_offset:
        after, _ = end_waits(pair, after, lambda each: waiting.flushed(each, after))
    pair.append(after.records[len(pair.log.records) :], end_after=after.end_offset)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _outcome(appended: Appended, waits: Waiting) -> PutOutcome:
    assert waits.answer is not None
    return PutOutcome(waits.answer, appended.records)
