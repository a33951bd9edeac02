"""Compare consumers with the model: waiting pulls, and committed offsets of groups.

Only a step of the service of held pulls ends one (contract 16, 17); the store states how many wait. No pull is made and
no step is taken while a disk error has left dispatch half done, because the content of queues is unknown then.

Judges compare the progress files after each crash fault (properties/judge/progress.py).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from tornpage.impl.errors import BadProgress, NotReadable, TooManyHeldPulls
from tornpage.impl.read import pull_hold
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.model import holding, reading
from tornpage.model.answers import Answer, matches
from tornpage.model.holding import Holding
from tornpage.model.operations import (
    CancelPull,
    CommitOffset,
    Operation,
    PullHeld,
    PullWhileDispatching,
    QueryOffsets,
    ServiceName,
)
from tornpage.model.queues import bounds_of
from tornpage.model.state import HeldPull, State
from tornpage.model.step import applies, step
from tornpage.model.step_reads import queue_named
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.answers import pulled_rightly
from tornpage.properties.judge.rulings import queue_text
from tornpage.properties.lockstep.compare import broken, compare_watermarks, may_read, predicted, require_will_step
from tornpage.properties.lockstep.execute import call_pull, must_wait, service_named
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.scheduler import run_stepped

__all__ = [
    "PULL_HOLD",
    "cancel_pull",
    "commit_offset",
    "look_at_pulls",
    "pull_held",
    "pull_while_dispatching",
    "pulls_are_held",
    "query_offsets",
]

PULL_HOLD: ServiceName = "pull-hold"
"""The service that ends held pulls."""
_POINTS_MAX = 20_000
_HANG_SECONDS = 20.0


# ---- pulls that wait -------------------------------------------------------------------------------------------------


def pull_held(pair: Pair, operation: PullHeld) -> None:
    """Pull and wait; compare whether the pull is held, and its answer if it is not."""
    if not may_read(pair):
        return
    before = pair.begin(operation)
    asked, outcomes = _asked(pair, operation), _outcomes(pair, before, operation)
    after, expected = outcomes[0]
    if expected.pull == "refused":
        _finds_no_place(pair, asked, operation.hold_ms)
        return
    answer = call_pull(pair, asked, operation.hold_ms)
    if expected.pull == "held":
        _held(pair, after, answer)
        pair.cover("pull_held")
    else:
        _is_answered(pair, asked, answer, _pulled(outcomes))
        pair.cover("pull_not_held")


def _outcomes(pair: Pair, before: State, operation: Operation) -> list[tuple[State, Answer]]:
    """Return the legal outcomes of an operation.

    They depend on the faults that the disk has left.
    """
    return list(step(before, operation, pair.layout, found=Answer(faults=pair.faults_left())))


def _pulled(outcomes: Sequence[tuple[State, Answer]]) -> tuple[reading.Pulled, ...]:
    """Return each legal answer of a pull that is not held."""
    notes = (expected.note for _, expected in outcomes)
    return tuple(dict.fromkeys(note for note in notes if isinstance(note, reading.Pulled)))


def _held(pair: Pair, after: State, answer: Future[GetMessageResult]) -> None:
    """Note the newest held pull and its future, which has no answer yet."""
    must_wait("pull_async", answer)
    pair.model = after
    pair.clients.pulls[after.pulls[-1].number] = answer


def _asked(pair: Pair, operation: PullHeld | PullWhileDispatching) -> Holding:
    queue = (operation.topic, operation.queue_id)
    _, most = bounds_of(pair.log, pair.layout, queue) or (0, 0)
    tags = tuple(operation.tags.split("||")) if operation.tags else None
    if isinstance(operation, PullHeld):
        deadline_ms = pair.environment.now_ms + operation.hold_ms
        return Holding(queue, most + operation.shift, operation.max_msg_nums, tags, deadline_ms)
    return Holding(queue, most, PullHeld().max_msg_nums, tags, pair.environment.now_ms + PullHeld().hold_ms)


def _legal(pair: Pair, asked: Holding) -> tuple[reading.Pulled, ...]:
    return reading.legal_answers(pair.log, pair.layout, *asked.queue, asked.offset, asked.max_msg_nums, asked.tags)


def _finds_no_place(pair: Pair, asked: Holding, hold_ms: int) -> None:
    try:
        call_pull(pair, asked, hold_ms)
    except TooManyHeldPulls:
        pair.cover("pull_refused")
        return
    raise GuaranteeBroken(8, "more pulls wait than may", "TooManyHeldPulls", "another one")


def cancel_pull(pair: Pair, operation: CancelPull) -> None:
    """Cancel a held pull of a consumer."""
    if pair.model.pulls:
        after, _ = predicted(pair, pair.begin(operation), operation)
        (number,) = {each.number for each in pair.model.pulls} - {each.number for each in after.pulls}
        if not pair.clients.pulls.pop(number).cancel():
            raise GuaranteeBroken(16, "a held pull cannot be cancelled")
        pair.model = after
        pair.cover("pull_cancelled")


def look_at_pulls(pair: Pair, before: State) -> State:
    """Step the service of held pulls, compare, and return the resulting state.

    Only this service ends held pulls.
    """
    service = pair.environment.service(PULL_HOLD)
    if service is None or (found := observed("step", service.step)) is None:
        raise GuaranteeBroken(16, "the store lacks a service", PULL_HOLD, "none of that name, or stopped")
    if found.due_ms is not None and found.due_ms <= found.now_ms:
        raise GuaranteeBroken(16, f"the service {PULL_HOLD} spins", f"later than {found.now_ms}", str(found.due_ms))
    _compare_pulls(pair, before)
    left = tuple(each for each in before.pulls if each.number in pair.clients.pulls)
    return replace(pair.model, pulls=left)


def _compare_pulls(pair: Pair, before: State) -> None:
    """Compare the effect of a step on each waiting pull, and forget the answered ones."""
    for waiting in before.pulls:
        answer = pair.clients.pulls[waiting.number]
        fate = holding.fate(pair.log, pair.layout, waiting.asked, now_ms=pair.environment.now_ms)
        if fate == "stays" or (fate == "may end" and not answer.done()):
            _still_waits(pair, waiting)
            continue
        in_time = pair.environment.now_ms < waiting.asked.deadline_ms
        _is_answered(pair, waiting.asked, answer, _legal(pair, waiting.asked))
        pair.cover("held_pull_woken", in_time)
        pair.cover("held_pull_late", not in_time)
        del pair.clients.pulls[waiting.number]


def _is_answered(pair: Pair, asked: Holding, answer: Future[GetMessageResult], legal: Sequence[reading.Pulled]) -> None:
    """Contract 16 and 17: there is an answer, and it is that of a pull now."""
    if not answer.done():
        raise GuaranteeBroken(
            16, f"a pull from queue {queue_text(asked.queue)} at {asked.offset} is not answered", found="it waits"
        )
    if pair.log.flags & RunningFlag.NOT_READABLE:
        if not isinstance(answer.exception(), NotReadable):
            raise GuaranteeBroken(8, "a held pull reads a store whose flags forbid reads", "NotReadable", "an answer")
        return
    with observed("pull_async", answer.result) as found:
        answered = pulled_rightly(
            found, legal, pair.layout, asked.queue, asked.offset, stored=pair.memory.ledger.stored
        )
    pair.cover(f"held_pull_{answered.status.value}")


def _still_waits(pair: Pair, waiting: HeldPull) -> None:
    answer = pair.clients.pulls[waiting.number]
    if answer.done():
        error = answer.exception()
        found = answer.result().status.value if error is None else repr(error)
        queue, offset = waiting.asked.queue, waiting.asked.offset
        raise GuaranteeBroken(
            16, f"a pull from queue {queue_text(queue)} at {offset} does not wait for its end", "no answer", found
        )


def pull_while_dispatching(pair: Pair, operation: PullWhileDispatching) -> None:
    """Pull at the end of a queue while dispatch fills it; no wake-up is lost (contract 16).

    Each line of the hold is a yield point, and so are those of dispatch between the queues.
    """
    first, before, after = len(pair.files.events), pair.state(), pair.model
    if may_read(pair) and len(before.pulls) < pair.layout.held_pulls_max:
        pair.begin(operation)
        asked, ((held, _), *answered) = _asked(pair, operation), _outcomes(pair, before, operation)
        answer = _pull_beside_dispatch(pair, asked, operation.schedule)
        if answer.done():
            after = _was_answered_meanwhile(pair, asked, answer, answered)
        else:
            pair.clients.pulls[held.pulls[-1].number], after = answer, held
            pair.cover("held_beside_dispatch")
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _pull_beside_dispatch(pair: Pair, asked: Holding, schedule: tuple[int, ...]) -> Future[GetMessageResult]:
    """Run consumer and dispatcher; services are woken during that, and not stepped."""
    dispatcher = service_named(pair, "reput")
    tasks: list[Callable[[], Any]] = [partial(call_pull, pair, asked, PullHeld().hold_ms), dispatcher.step]
    outcomes = run_stepped(
        tasks,
        schedule,
        modules=(pull_hold, "tornpage.impl.dispatch.derived"),
        points_max=_POINTS_MAX,
        hang_seconds=_HANG_SECONDS,
    )
    dispatched = outcomes[1].unwrap()
    if dispatched is None or dispatched.failed:
        raise GuaranteeBroken(16, "dispatch fails although no disk call failed")
    answer: Future[GetMessageResult] = observed("pull_async", outcomes[0].unwrap)
    return answer


def _was_answered_meanwhile(
    pair: Pair, asked: Holding, answer: Future[GetMessageResult], legal: Sequence[tuple[State, Answer]]
) -> State:
    """Contract 17: the answer is that of a pull at some moment of the dispatch."""
    with observed("pull_async", answer.result) as found:
        pulled_rightly(found, _pulled(legal), pair.layout, asked.queue, asked.offset, stored=pair.memory.ledger.stored)
    pair.cover("answered_beside_dispatch")
    return legal[0][0]


def pulls_are_held(pair: Pair) -> None:
    """Contract 16: the store knows each held pull and will check it in time."""
    if pair.store.held_pulls != len(pair.clients.pulls):
        expected, found = str(len(pair.clients.pulls)), str(pair.store.held_pulls)
        raise GuaranteeBroken(16, "the number of waiting pulls is not that of the held ones", expected, found)
    for waiting in pair.model.pulls:
        _still_waits(pair, waiting)
        ends = (
            not pair.is_partly_dispatched
            and holding.fate(pair.log, pair.layout, waiting.asked, now_ms=pair.environment.now_ms) == "ends"
        )
        require_will_step(pair, PULL_HOLD, by_ms=pair.environment.now_ms if ends else waiting.asked.deadline_ms)


# ---- committed offsets -----------------------------------------------------------------------------------------------


def commit_offset(pair: Pair, operation: CommitOffset, before: State | None = None) -> None:
    """Commit an offset, and compare the effective one (contract 17).

    After dispatch broke off the end of a queue is unknown. `before` is the state under I/O fault rules, if there are
    any.
    """
    before = pair.begin(operation) if before is None else before
    if not applies(before, operation, pair.layout):
        return
    topic, queue_id = queue = queue_named(before, pair.layout, operation.queue)
    after, expected = predicted(pair, before, operation)
    offset = expected.note
    assert isinstance(offset, int)
    if expected.committed == "refused":
        _commit_is_refused(pair, operation.group, topic, queue_id, offset)
        return
    counts = observed("commit_offset", lambda: pair.store.commit_offset(operation.group, topic, queue_id, offset))
    found = Answer(committed=counts)
    if not matches(expected, found):
        raise broken(pair, operation, expected, found)
    pair.model = after
    pair.cover("committed_offsets")
    pair.cover("committed_beyond_the_end", offset > pair.bounds(queue)[1])


def _commit_is_refused(pair: Pair, group: str, topic: str, queue_id: int, offset: int) -> None:
    """Contract 8: a name that the file would split at another place is refused."""
    try:
        pair.store.commit_offset(group, topic, queue_id, offset)
    except BadProgress:
        pair.cover("commit_refused")
        return
    raise GuaranteeBroken(8, f"an offset of {topic} is committed", "BadProgress", "an answer")


def query_offsets(pair: Pair, operation: QueryOffsets) -> None:
    """Query everything known of a group, and compare."""
    before = pair.begin(operation)
    if not applies(before, operation, pair.layout):
        return
    group, (topic, queue_id) = operation.group, queue_named(before, pair.layout, operation.queue)
    _, answer = predicted(pair, before, operation)
    known = answer.progress
    assert known is not None
    for what, expected, found in (
        ("the least offset of all groups", dict(known.least),
            observed("query_min_offset_in_all_group", lambda: pair.store.query_min_offset_in_all_group(topic))),
        ("the least offset of other groups", dict(known.least_of_others),
            observed("query_min_offset_in_all_group",
                     lambda: pair.store.query_min_offset_in_all_group(topic, without=(group,)))),
        ("the next offset of a group", known.next_offset, observed(
            "query_offset", lambda: pair.store.query_offset(group, topic, queue_id))),
        ("the lag of a group", known.left, observed(
            "diff_total", lambda: pair.store.diff_total(group, topic))),
    ):  # fmt: skip
        if found != expected:
            raise GuaranteeBroken(17, f"the store is wrong about {what}", str(expected), str(found))
    pair.cover("queried_known_offset", bool(known.next_offset))
    pair.cover("queried_unknown_offset", known.next_offset is None)
