"""Two producers at once: what each was answered must follow from some order of their puts (contract 17).

Behind their puts they may commit at once, as the service and an explicit flush do: then all of the log is committed
(contract 9).

The store runs under the stepped scheduler, each line of its put path a yield point, so that nothing depends on the
interpreter's lock. Of the order only this is kept: each producer's own puts come in the order in which it made them.
That a put of the one returned before one of the other began is not looked at.

What it leaves out: yield points inside a flush; two flushes at once are left to the tests with real threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from impl import commit_log, encoder, group_commit, multi_dispatch, queue_offsets, rewriting
from impl.message import PutResult
from model import commitlog
from model.flushing import flush
from model.message import Batch, Message
from model.operations import Concurrent, Put
from model.payloads import given_of
from model.pool import commit
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.answers import expected_answer, found_answer
from properties.lockstep.execute import call_put
from properties.lockstep.pair import Pair
from properties.scheduler import run_stepped

__all__ = ["explained"]

_STEPPED = (commit_log, encoder, group_commit, multi_dispatch, queue_offsets, rewriting)
_POINTS_MAX = 20_000
_HANG_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Called:
    """One put as it happened; `lock_held_ms` is for how long the other producer held the put lock when it came."""

    given: Message | Batch
    result: PutResult
    lock_held_ms: int


def explained(pair: Pair, operation: Concurrent) -> CommitLog:
    """Run both producers; return the log that the order of their puts leads to. Raises GuaranteeBroken."""
    refused = pair.environment.append_fails
    commits = operation.commits and pair.layout.has_pool
    producers = _run(pair, operation, commits=commits)
    for called in (*producers[0], *producers[1]):
        busy = called.result.status.value == "OS_PAGECACHE_BUSY"
        if busy != (called.lock_held_ms > pair.layout.page_cache_busy_ms):
            expected = f"{'not ' if busy else ''}OS_PAGECACHE_BUSY with the put lock held for {called.lock_held_ms} ms"
            raise GuaranteeBroken(8, "page-cache busy is answered wrongly", expected, called.result.status.value)
    ended: tuple[_Called | None, ...] = (None,) if commits else ()
    after = _order(pair, pair.log, [(*producer, *ended) for producer in producers], append_fails=refused)
    if after is None:
        found = " | ".join(", ".join(str(found_answer(c.result)) for c in producer) for producer in producers)
        raise GuaranteeBroken(17, "no order of the puts of two producers explains their answers", found=found)
    _stamped_under_the_lock(pair, producers)
    for called in (*producers[0], *producers[1]):
        pair.coverage[f"answered_{called.result.status.value}"] += 1
    return _committed_by_both(pair, after, producers[1]) if commits else _flushed_by_either(pair, after)


def _committed_by_both(pair: Pair, log: CommitLog, flushed: Sequence["_Called"]) -> CommitLog:
    """Whoever commits last commits all there is; what the other one put meanwhile need not be flushed."""
    after, durable = flush(log.changed(committed_ms=pair.environment.now_ms))
    if pair.store.committed_offset != after.readable_end:
        where = str(after.readable_end), str(pair.store.committed_offset)
        raise GuaranteeBroken(9, "two commits at once leave something uncommitted", *where)
    if not durable:
        return after
    least = max(
        (called.result.offset + called.result.size_bytes for called in flushed if called.result.stored), default=0
    )
    found = pair.store.flushed_offset
    ends = {record.end_offset for record in log.records}
    whole = found in ends or found % pair.layout.file_bytes == 0
    return after.changed(flushed_offset=found) if whole and least <= found <= after.flushed_offset else after


def _stamped_under_the_lock(pair: Pair, producers: Sequence[Sequence["_Called"]]) -> None:
    """A record carries a time that was read while its put had the put lock."""
    readings = pair.environment.read_in_lock
    for called in (*producers[0], *producers[1]):
        found = called.result.store_timestamp
        if called.result.message_count and found not in readings:
            expected = " or ".join(map(str, sorted(readings))) or "a reading of the clock"
            raise GuaranteeBroken(17, "a store timestamp was not read under the put lock", expected, str(found))


def _flushed_by_either(pair: Pair, after: CommitLog) -> CommitLog:
    """On a synchronous store one producer's flush may have covered a record, or a blank, of the other."""
    flushed = pair.store.flushed_offset
    if not pair.layout.sync_flush or not after.flushed_offset < flushed <= after.end_offset:
        return after
    ends = {record.end_offset for record in after.records}
    whole = flushed in ends or flushed % pair.layout.file_bytes == 0
    return after.changed(flushed_offset=flushed) if whole else after


def _run(pair: Pair, operation: Concurrent, *, commits: bool) -> list[list[_Called]]:
    endings = (partial(_commit, pair), partial(_flush, pair)) if commits else (_stop, _stop)
    puts = (operation.first, operation.second)
    tasks = [partial(_produce, pair, each, ending) for each, ending in zip(puts, endings, strict=True)]
    pair.environment.read_in_lock.clear()

    def jump() -> None:
        pair.environment.now_ms += operation.jump_ms

    outcomes = run_stepped(
        tasks,
        operation.schedule,
        modules=_STEPPED,
        at_step={operation.jump_step: jump} if operation.jump_step > 0 else {},
        points_max=_POINTS_MAX,
        hang_seconds=_HANG_SECONDS,
    )
    return [outcome.unwrap() for outcome in outcomes]


def _produce(pair: Pair, puts: Sequence[Put], end: Callable[[], None]) -> list[_Called]:
    called = []
    for put in (replace(put, born_now=False) for put in puts):
        given = given_of(put)
        lock_held_ms = pair.environment.lock_held_ms()
        called.append(_Called(given, call_put(pair, put, given), lock_held_ms))
    end()
    return called


def _stop() -> None:
    """Neither commit nor flush."""


def _commit(pair: Pair) -> None:
    service = pair.environment.service("commit")
    assert service is not None
    observed("step", service.step)


def _flush(pair: Pair) -> None:
    result = observed("flush", pair.store.flush)
    if result.durable == pair.log.poisoned:
        raise GuaranteeBroken(9, "a flush answers otherwise than the model", found=str(result.durable))


def _order(
    pair: Pair, log: CommitLog, producers: Sequence[Sequence[_Called | None]], *, append_fails: bool
) -> CommitLog | None:
    """Return the log after some order of the puts that are left, one producer's in a row; None if there is none.

    In a row None is a commit, which a put that needs a buffer may have waited for.
    """
    if not any(producers):
        return log
    attempts = (
        _next(pair, log, producers, index, append_fails) for index, producer in enumerate(producers) if producer
    )
    return next((found for found in attempts if found is not None), None)


def _next(
    pair: Pair, log: CommitLog, producers: Sequence[Sequence[_Called | None]], index: int, append_fails: bool
) -> CommitLog | None:
    called, *others = producers[index]
    left = [others if number == index else producer for number, producer in enumerate(producers)]
    if called is None:
        return _order(pair, commit(log)[0], left, append_fails=append_fails)
    conditions = replace(pair.conditions(), append_fails=append_fails, lock_held_ms=called.lock_held_ms)
    after, outcome = commitlog.put(
        log,
        called.given,
        layout=pair.layout,
        store_timestamp=called.result.store_timestamp,
        conditions=conditions,
    )
    if expected_answer(outcome) != found_answer(called.result):
        return None
    still_fails = append_fails and outcome.status.value != "UNKNOWN_ERROR"
    return _order(pair, after, left, append_fails=still_fails)
