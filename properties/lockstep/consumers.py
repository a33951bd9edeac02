"""Consumers, compared with the model: pulls that wait, and offsets that groups commit.

A step of the service of held pulls is all that ends one (contract 16, 17); the store says how many wait. While a disk
has broken dispatch off half-way no pull is made and no step is taken: the content of queues is unknown then.

Judges compare what the progress file says after each crash fault (properties/judge/progress_judges.py).
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from impl import pull_hold
from impl.errors import BadProgress, NotReadable, StoreClosed, TooManyHeldPulls
from impl.queue_pull import GetMessageResult
from impl.running_flags import RunningFlag
from model import holding, progress, reading
from model.holding import Holding
from model.operations import CancelPull, CommitOffset, PullHeld, PullWhileDispatching, QueryOffsets, ServiceName
from model.queues import bounds_of, dispatch, failed_dispatch
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.reads import pulled_rightly
from properties.lockstep.compare import compare_watermarks, may_read, require_will_step
from properties.lockstep.execute import call_pull, service_named
from properties.lockstep.pair import HeldPull, Pair
from properties.program.translation import HELD_PULLS_MAX
from properties.scheduler import run_stepped

__all__ = [
    "PULL_HOLD",
    "cancel_pull",
    "commit_offset",
    "look_at_pulls",
    "pull_held",
    "pull_while_dispatching",
    "pulls_are_closed",
    "pulls_are_held",
    "query_offsets",
]

PULL_HOLD: ServiceName = "pull-hold"
"""The service that ends held pulls."""
_POINTS_MAX = 20_000
_HANG_SECONDS = 20.0


# ---- pulls that wait -------------------------------------------------------------------------------------------------


def pull_held(pair: Pair, operation: PullHeld) -> None:
    """Pull and wait; compare whether the pull is held, and the answer if it is not."""
    if not may_read(pair):
        return
    asked = _asked(pair, operation)
    legal = _legal(pair, asked, pair.log)
    may_wait = operation.hold_ms > 0 and all(holding.is_held(answer, asked.offset) for answer in legal)
    if may_wait and len(pair.clients.pulls) >= HELD_PULLS_MAX:
        _finds_no_place(pair, asked, operation.hold_ms)
        return
    answer = observed("pull_async", lambda: call_pull(pair, asked, operation.hold_ms))
    if may_wait:
        pair.clients.pulls.append(HeldPull(asked, answer))
        pair.cover("pull_held")
    else:
        _is_answered(pair, asked, answer)
        pair.cover("pull_not_held")


def _asked(pair: Pair, operation: PullHeld | PullWhileDispatching) -> Holding:
    queue = (operation.topic, operation.queue_id)
    _, most = bounds_of(pair.log, pair.layout, queue) or (0, 0)
    tags = tuple(operation.tags.split("||")) if operation.tags else None
    if isinstance(operation, PullHeld):
        deadline_ms = pair.environment.now_ms + operation.hold_ms
        return Holding(queue, most + operation.shift, operation.max_msg_nums, tags, deadline_ms)
    return Holding(queue, most, PullHeld().max_msg_nums, tags, pair.environment.now_ms + PullHeld().hold_ms)


def _legal(pair: Pair, asked: Holding, log: CommitLog) -> tuple[reading.Pulled, ...]:
    return reading.legal_answers(log, pair.layout, *asked.queue, asked.offset, asked.max_msg_nums, asked.tags)


def _finds_no_place(pair: Pair, asked: Holding, hold_ms: int) -> None:
    try:
        call_pull(pair, asked, hold_ms)
    except TooManyHeldPulls:
        pair.cover("pull_refused")
        return
    raise GuaranteeBroken(8, "more pulls wait than may", "TooManyHeldPulls", "another one")


def cancel_pull(pair: Pair, operation: CancelPull) -> None:
    """Have a consumer give up."""
    if pair.clients.pulls:
        waiting = pair.clients.pulls.pop(operation.number % len(pair.clients.pulls))
        if not waiting.answer.cancel():
            raise GuaranteeBroken(16, "who waits for a message cannot give up")
        pair.cover("pull_cancelled")


def look_at_pulls(pair: Pair) -> None:
    """Step the service of held pulls, which alone ends them, and compare."""
    service = pair.environment.service(PULL_HOLD)
    if service is None or (found := observed("step", service.step)) is None:
        raise GuaranteeBroken(16, "the store lacks a service", PULL_HOLD, "none of that name, or stopped")
    if found.due_ms is not None and found.due_ms <= found.now_ms:
        raise GuaranteeBroken(16, f"the service {PULL_HOLD} spins", f"later than {found.now_ms}", str(found.due_ms))
    _compare_pulls(pair)


def _compare_pulls(pair: Pair) -> None:
    """Compare what a step has done to each of the pulls that wait, and forget those that were answered."""
    left = []
    for waiting in pair.clients.pulls:
        fate = holding.fate(pair.log, pair.layout, waiting.holding, now_ms=pair.environment.now_ms)
        if fate == "stays" or (fate == "may end" and not waiting.answer.done()):
            _still_waits(pair, waiting)
            left.append(waiting)
            continue
        in_time = pair.environment.now_ms < waiting.holding.deadline_ms
        _is_answered(pair, waiting.holding, waiting.answer)
        pair.cover("held_pull_woken", in_time)
        pair.cover("held_pull_late", not in_time)
    pair.clients.pulls = left


def _is_answered(pair: Pair, asked: Holding, answer: Future[GetMessageResult]) -> None:
    """Contract 16 and 17: there is an answer, and it is that of a pull now."""
    if not answer.done():
        raise GuaranteeBroken(16, f"a pull from {asked.queue} at {asked.offset} is not answered", found="it waits")
    if pair.log.flags & RunningFlag.NOT_READABLE:
        if not isinstance(answer.exception(), NotReadable):
            raise GuaranteeBroken(8, "a held pull reads a store that may not be read", "NotReadable", "an answer")
        return
    with observed("pull_async", answer.result) as found:
        legal = _legal(pair, asked, pair.log)
        answered = pulled_rightly(found, legal, asked.queue, asked.offset, stored=pair.memory.ledger.stored)
    pair.cover(f"held_pull_{answered.status.value}")


def _still_waits(pair: Pair, waiting: HeldPull) -> None:
    if waiting.answer.done():
        error = waiting.answer.exception()
        found = waiting.answer.result().status.value if error is None else repr(error)
        queue, offset = waiting.holding.queue, waiting.holding.offset
        raise GuaranteeBroken(16, f"a pull from {queue} at {offset} does not wait for its end", "no answer", found)


def pull_while_dispatching(pair: Pair, operation: PullWhileDispatching) -> None:
    """Pull at the end of a queue while dispatch fills it; a message that comes is never slept over (16).

    Each line of the hold is a yield point, and so are those of dispatch between the queues.
    """
    first, after = len(pair.files.events), pair.log
    if may_read(pair) and len(pair.clients.pulls) < HELD_PULLS_MAX:
        pair.files.refused_files = 0
        asked, after = _asked(pair, operation), dispatch(pair.log)
        answer = _pull_beside_dispatch(pair, asked, operation.schedule)
        if answer.done():
            _was_answered_meanwhile(pair, asked, answer, after)
        else:
            pair.clients.pulls.append(HeldPull(asked, answer))
            pair.cover("held_beside_dispatch")
    pair.end_operation(first, after)
    compare_watermarks(pair)


def _pull_beside_dispatch(pair: Pair, asked: Holding, schedule: tuple[int, ...]) -> Future[GetMessageResult]:
    """Run consumer and dispatcher; services are woken, not stepped, meanwhile."""
    dispatcher = service_named(pair, "reput")
    tasks: list[Callable[[], Any]] = [partial(call_pull, pair, asked, PullHeld().hold_ms), dispatcher.step]
    outcomes = run_stepped(
        tasks,
        schedule,
        modules=(pull_hold, "impl.derived"),
        points_max=_POINTS_MAX,
        hang_seconds=_HANG_SECONDS,
    )
    dispatched = outcomes[1].unwrap()
    if dispatched is None or dispatched.failed:
        raise GuaranteeBroken(16, "dispatch fails on a disk that refuses nothing")
    answer: Future[GetMessageResult] = observed("pull_async", outcomes[0].unwrap)
    return answer


def _was_answered_meanwhile(pair: Pair, asked: Holding, answer: Future[GetMessageResult], after: CommitLog) -> None:
    """Contract 17: the answer is that of a pull at some moment of the dispatch."""
    logs = [pair.log, *failed_dispatch(pair.log, pair.layout), after]
    legal = {pulled: None for log in logs for pulled in _legal(pair, asked, log)}
    with observed("pull_async", answer.result) as found:
        pulled_rightly(found, tuple(legal), asked.queue, asked.offset, stored=pair.memory.ledger.stored)
    pair.cover("answered_beside_dispatch")


def pulls_are_held(pair: Pair) -> None:
    """Contract 16: whoever waits is known, still waits, and will be looked at in time."""
    if pair.store.held_pulls != len(pair.clients.pulls):
        expected, found = str(len(pair.clients.pulls)), str(pair.store.held_pulls)
        raise GuaranteeBroken(16, "another number of pulls waits than was held", expected, found)
    for waiting in pair.clients.pulls:
        _still_waits(pair, waiting)
        ends = (
            not pair.is_partly_dispatched
            and holding.fate(pair.log, pair.layout, waiting.holding, now_ms=pair.environment.now_ms) == "ends"
        )
        require_will_step(pair, PULL_HOLD, by_ms=pair.environment.now_ms if ends else waiting.holding.deadline_ms)


def pulls_are_closed(pair: Pair) -> None:
    """Compare the answers that a close gives."""
    for waiting in pair.clients.pulls:
        if not waiting.answer.done() or not isinstance(waiting.answer.exception(), StoreClosed):
            raise GuaranteeBroken(16, "a close leaves a pull waiting", "StoreClosed", "no answer, or another")
        pair.cover("held_pull_closed")
    pair.clients.pulls = []


# ---- committed offsets -----------------------------------------------------------------------------------------------


def commit_offset(pair: Pair, operation: CommitOffset) -> None:
    """Commit, and compare what counts (contract 17); where dispatch broke off no end of a queue is known."""
    if pair.closed or pair.is_partly_dispatched:
        return
    topic, queue_id = queue = pair.queue(operation.queue)
    end = pair.bounds(queue)[1]
    offset = max(0, end - operation.behind)
    if "@" in topic:
        _commit_is_refused(pair, operation.group, topic, queue_id, offset)
        return

    def end_of(name: str, each: int) -> int:
        return pair.bounds((name, each))[1]

    pair.consumers, expected = progress.commit(
        pair.consumers, operation.group, topic, queue_id, offset, end_of=end_of, light=pair.settings.light_queues
    )
    found = observed("commit_offset", lambda: pair.store.commit_offset(operation.group, topic, queue_id, offset))
    if found != expected:
        raise GuaranteeBroken(17, "another offset counts than was committed", str(expected), str(found))
    pair.cover("committed_offsets")
    pair.cover("committed_beyond_the_end", offset > end)


def _commit_is_refused(pair: Pair, group: str, topic: str, queue_id: int, offset: int) -> None:
    """A name that the file would take apart in another place is no name (contract 8)."""
    try:
        pair.store.commit_offset(group, topic, queue_id, offset)
    except BadProgress:
        pair.cover("commit_refused")
        return
    raise GuaranteeBroken(8, f"an offset of {topic} is committed", "BadProgress", "an answer")


def query_offsets(pair: Pair, operation: QueryOffsets) -> None:
    """Ask for everything that is known of a group, and compare."""
    if pair.closed or pair.is_partly_dispatched:
        return
    group, (topic, queue_id) = operation.group, pair.queue(operation.queue)
    begin = pair.bounds((topic, queue_id))[0]
    ends = [(each, pair.bounds((name, each))[1]) for name, each in pair.memory.derived.queues if name == topic]
    light = pair.settings.light_queues
    next_offset = progress.query(pair.consumers, group, topic, queue_id, begin=begin, light=light)

    def begin_of(name: str, each: int) -> int:
        return pair.bounds((name, each))[0]

    for what, expected, found in (
        ("the least offset of all groups", progress.least_offsets(pair.consumers, topic, begin_of=begin_of),
            observed("query_min_offset_in_all_group", lambda: pair.store.query_min_offset_in_all_group(topic))),
        ("the least offset of other groups",
            progress.least_offsets(pair.consumers, topic, begin_of=begin_of, without=(group,)),
            observed("query_min_offset_in_all_group",
                     lambda: pair.store.query_min_offset_in_all_group(topic, without=(group,)))),
        ("where a group goes on", next_offset, observed(
            "query_offset", lambda: pair.store.query_offset(group, topic, queue_id))),
        ("how far a group is behind", progress.diff_total(pair.consumers, group, topic, ends=ends), observed(
            "diff_total", lambda: pair.store.diff_total(group, topic))),
    ):  # fmt: skip
        if found != expected:
            raise GuaranteeBroken(17, f"the store is wrong about {what}", str(expected), str(found))
    pair.cover("queried_known_offset", bool(next_offset))
    pair.cover("queried_unknown_offset", next_offset is None)
