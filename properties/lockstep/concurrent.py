"""Two producers at once: their answers follow from some order of their puts (contract 17).

After their puts both may commit at once, as the service and an explicit flush do; then all of the log is committed
(contract 9).

The store runs under the stepped scheduler with each line of its put path as a yield point, so that nothing depends on
the interpreter's lock. The puts of one producer stay in their order. It is not checked that a put of one producer which
returned before a put of the other began comes first.

Not covered: yield points inside a flush. Two flushes at once are left to the tests with real threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tornpage.impl.log import commit_log, queue_offsets
from tornpage.impl.message import encoder, multi_dispatch
from tornpage.impl.message.message import PutResult
from tornpage.impl.put import group_commit, rewriting
from tornpage.model.answers import Answer, ProducerPut, accepted
from tornpage.model.operations import Concurrent, Put
from tornpage.model.payloads import given_of
from tornpage.model.state import State
from tornpage.model.step import step
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.compare import broken, marks_found
from tornpage.properties.lockstep.execute import answered_puts, call_put, put_answer, put_status
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.scheduler import run_stepped

__all__ = ["explained"]

_STEPPED = (commit_log, encoder, group_commit, multi_dispatch, queue_offsets, rewriting)
_POINTS_MAX = 20_000
_HANG_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Called:
    """One put and its answer.

    `lock_held_ms` is how long the other producer had held the put lock.
    """

    result: PutResult
    lock_held_ms: int


def explained(pair: Pair, before: State, operation: Concurrent) -> tuple[State, Answer]:
    """Run both producers; return the outcome for some order of their puts.

    Raises GuaranteeBroken if no order explains their answers.
    """
    commits, at_ms = operation.commits and pair.layout.has_pool, pair.environment.now_ms
    producers = _run(pair, operation, commits=commits)
    for called in (*producers[0], *producers[1]):
        busy = put_status(called.result) == "OS_PAGECACHE_BUSY"
        if busy != (called.lock_held_ms > pair.layout.page_cache_busy_ms):
            expected = f"{'not ' if busy else ''}OS_PAGECACHE_BUSY with the put lock held for {called.lock_held_ms} ms"
            raise GuaranteeBroken(8, "page-cache busy is answered wrongly", expected, put_status(called.result))
    found = Answer(
        producers=tuple(tuple(ProducerPut(put_answer(c.result), c.lock_held_ms) for c in each) for each in producers),
        jumped=pair.environment.now_ms != at_ms if operation.jump_ms else None,
        faults=pair.faults_left(),
    )
    legal = list(accepted(step(before, operation, pair.layout, found=found), found))
    if not legal:
        text = " | ".join(", ".join(str(put_answer(c.result)) for c in producer) for producer in producers)
        raise GuaranteeBroken(17, "no order of the puts of two producers explains their answers", found=text)
    _stamped_under_the_lock(pair, producers)
    for called in (*producers[0], *producers[1]):
        pair.coverage[f"answered_{put_status(called.result)}"] += 1
    readable_end, readable = legal[0][0].log.readable_end, pair.store.committed_offset
    if commits and readable != readable_end:
        sentence = "two commits at once leave a part of the log uncommitted"
        raise GuaranteeBroken(9, sentence, str(readable_end), str(readable))
    told = replace(found, marks=marks_found(pair), ended=answered_puts(pair))
    outcome = next(accepted(legal, told), None)
    if outcome is None:
        raise broken(pair, operation, legal[0][1], told)
    return outcome


def _stamped_under_the_lock(pair: Pair, producers: Sequence[Sequence["_Called"]]) -> None:
    """Check that a record has a time that was read while its put held the put lock."""
    readings = pair.environment.read_in_lock
    for called in (*producers[0], *producers[1]):
        found = called.result.store_timestamp
        if called.result.message_count and found not in readings:
            expected = " or ".join(map(str, sorted(readings))) or "a reading of the clock"
            raise GuaranteeBroken(17, "a store timestamp was not read under the put lock", expected, str(found))


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
        called.append(_Called(call_put(pair, put, given), lock_held_ms))
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
        raise GuaranteeBroken(9, "a flush has another answer than the model's", found=str(result.durable))
