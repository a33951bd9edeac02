"""Test the pull loop and flow control.

Spec: consumers, sections 2 and 3; C13, C15, C21, C24.
"""

from collections.abc import Callable

import pytest

from tests.support.impl.consumers import World, bodies_of, cached_message, settings_of
from tornpage.impl.consumer.connection import CallError
from tornpage.impl.consumer.flow_control import FlowControl, flow_control_of
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.pull_loop import corrected_offset, is_subscribed
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Bounds,
    Pull,
    Pulled,
    PullStatus,
    QueryBounds,
    Refusal,
    Refused,
    Request,
    Subscription,
)

MakeWorld = Callable[..., World]
QUEUE = MessageQueue("orders", "broker-a", 0)


def is_pull(request: Request) -> bool:
    return isinstance(request, Pull) and request.queue == QUEUE


def pulls(here: World, *, since_ms: int = 0) -> list[Pull]:
    sent = here.connections["a"].sent
    return [request for at_ms, request in sent if at_ms >= since_ms and isinstance(request, Pull) and is_pull(request)]


def cached(here: World) -> ProcessQueue:
    return here.members["a"].process_queues()[QUEUE]


# ---- flow control ----------------------------------------------------------------------------------------------------


def test_count_of_cached_messages_is_exact(world: MakeWorld) -> None:
    here = world()
    here.put(*(f"m{number}" for number in range(50)))
    here.join(pull_threshold_for_queue=40)
    here.settle(for_ms=1_000)
    assert cached(here).msg_count == 40
    assert [request.count for request in pulls(here)] == [32, 8]
    here.finish(here.members["a"].take(here.now_ms))  # type: ignore[arg-type]
    here.settle(for_ms=50)
    assert cached(here).msg_count == 40


def test_size_of_cached_messages_is_exact(world: MakeWorld) -> None:
    here = world(file_bytes=1 << 22)
    body = "x" * 400_000
    here.put(*(body for _ in range(4)), "small")
    here.join(pull_threshold_size_for_queue=1)
    here.settle(for_ms=1_000)
    assert (cached(here).msg_count, cached(here).msg_size) == (2, 800_000)
    assert len(pulls(here)) == 3
    assert here.consume() == [body] * 2
    here.settle(for_ms=1_000)
    assert (cached(here).msg_count, cached(here).msg_size) == (3, 800_005)


def test_one_large_message_is_cached_alone() -> None:
    limits = FlowControl(count=10, size_bytes=4, max_span=None)
    queue = ProcessQueue()
    messages = [cached_message(0, body=b"12345"), cached_message(1)]
    assert limits.accepted(queue, messages) == 1
    queue.put_message(messages[:1])
    assert limits.room(queue, 1) == 0


def test_span_is_exact() -> None:
    limits = FlowControl(count=100, size_bytes=100, max_span=5)
    queue = ProcessQueue()
    assert limits.accepted(queue, [cached_message(each) for each in (3, 7, 8, 9)]) == 3
    queue.put_message([cached_message(3), cached_message(7)])
    assert (limits.room(queue, 8), limits.room(queue, 9)) == (98, 0)


def test_slow_message_stops_the_pull_at_the_span(world: MakeWorld) -> None:
    here = world()
    here.put(*(f"m{number}" for number in range(30)))
    here.join(consume_concurrently_max_span=10)
    here.settle()
    (slow, *others) = here.take_all()
    for batch in others:
        here.finish(batch)
    here.settle(for_ms=1_000)
    assert here.take_all() == []
    assert here.members["a"].lag()[QUEUE].progress == 0
    here.finish(slow)
    here.settle(for_ms=100)
    assert len(here.take_all()) == 11


def test_limits_of_a_topic_are_divided() -> None:
    settings = settings_of(pull_threshold_for_topic=100, pull_threshold_size_for_topic=1)
    assert flow_control_of(settings, 3) == FlowControl(33, 1 << 20, 2_000)
    assert flow_control_of(settings, 0) == FlowControl(1_000, 100 << 20, 2_000)


# ---- results ---------------------------------------------------------------------------------------------------------


def test_filtered_tail_moves_the_progress_after_the_last_message(world: MakeWorld) -> None:
    """CB13, CB14: the tail is committed, but not while a message is cached."""
    here = world()
    here.put("m0", tags="wanted")
    here.put("x1", "x2", tags="other")
    here.join(expression="wanted")
    here.settle(for_ms=1_000)
    assert here.members["a"].lag()[QUEUE].progress == 0
    assert here.consume() == ["m0"]
    here.settle(for_ms=2_000)
    assert here.members["a"].lag()[QUEUE].progress == 3
    here.settle(for_ms=10_000)
    assert here.stored() == 3


def test_tags_are_compared_as_texts(world: MakeWorld) -> None:
    """The tags Aa and BB have one hash."""
    here = world()
    here.put("m0", tags="Aa")
    here.put("m1", tags="BB")
    here.join(expression="BB || other")
    here.settle(for_ms=1_000)
    assert here.consume() == ["m1"]


def test_properties_select_messages(world: MakeWorld) -> None:
    here = world()
    member = here.join()
    member.subscribe("orders", "a > 5", kind="SQL92")
    here.settle()
    stored = cached_message(0).stored
    assert not is_subscribed(Subscription("orders", "a > 5", "SQL92"), stored)
    assert is_subscribed(Subscription("orders", "a IS NULL", "SQL92"), stored)


def test_pull_carries_the_progress(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    here.join()
    here.settle()
    here.consume()
    here.settle(for_ms=2_000)
    assert pulls(here)[-1].commit_offset == 2
    assert here.stored() == 2


@pytest.mark.parametrize("outcome", [CallError.TIMED_OUT, CallError.UNREACHABLE, Refused(Refusal.BUSY)])
def test_failed_pull_is_repeated_after_a_second(world: MakeWorld, outcome: CallError | Refused) -> None:
    """CB22."""
    here = world()
    here.join()
    here.settle()
    here.connections["a"].rule = lambda request: outcome if is_pull(request) else None
    here.settle(for_ms=1_000)
    before = len(pulls(here))
    here.settle(for_ms=5_000)
    assert len(pulls(here)) - before == 5
    here.connections["a"].rule = lambda _: None
    here.put("m0")
    here.settle(for_ms=1_000)
    assert here.consume() == ["m0"]


def test_pull_without_an_answer_ends_at_its_deadline(world: MakeWorld) -> None:
    """C13: RocketMQ pulls the queue again after up to 140 s."""
    here = world()
    here.put("m0")
    here.join()
    here.connections["a"].rule = lambda request: None
    here.settle()
    here.consume()
    here.put("m1")
    connection = here.connections["a"]
    connection.is_cut = True
    here.settle(for_ms=1_100)
    connection.is_cut = False
    here.settle(for_ms=32_000)
    assert here.consume() == ["m1"]


def test_empty_answers_are_followed_by_growing_pauses(world: MakeWorld) -> None:
    """C21: pulls per virtual second are bounded."""
    here = world()
    here.join()
    here.settle()
    here.settle(for_ms=10_000)
    begin_ms = here.now_ms
    here.settle(for_ms=60_000)
    assert 50 <= len(pulls(here, since_ms=begin_ms)) <= 61


def test_paused_member_neither_pulls_nor_takes(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    member = here.join()
    here.settle()
    member.suspend()
    here.put("m1")
    here.settle(for_ms=1_500)
    begin_ms = here.now_ms
    here.settle(for_ms=5_000)
    assert (pulls(here, since_ms=begin_ms), member.take(here.now_ms)) == ([], None)
    member.resume()
    here.settle(for_ms=1_000)
    assert here.consume() == ["m0", "m1"]


# ---- offsets outside the queue ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "expected"), [(3, 5), (5, 5), (7, 7), (9, 9), (10, None)])
def test_offset_is_corrected_by_the_bounds(offset: int, expected: int | None) -> None:
    assert corrected_offset(offset, Bounds(5, 9)) == expected


def illegal(request: Request) -> Pulled | None:
    return Pulled(PullStatus.OFFSET_ILLEGAL, 99, 0, 0) if is_pull(request) else None


def test_wrong_answer_does_not_move_the_progress(world: MakeWorld) -> None:
    """C15, CB04: RocketMQ sets the progress to the offset that the answer names."""
    here = world()
    here.put("m0", "m1", "m2")
    here.join()
    here.connections["a"].rule = illegal
    here.settle(for_ms=5_000)
    assert here.connections["a"].count(QueryBounds) >= 3
    here.connections["a"].rule = lambda _: None
    here.settle(for_ms=1_000)
    assert here.consume() == ["m0", "m1", "m2"]


def test_expired_messages_are_passed_with_a_finding(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1", "m2")
    here.join()
    here.connections["a"].rule = lambda request: (
        Bounds(2, 3) if isinstance(request, QueryBounds) else illegal(request) if pulled_from(request) < 2 else None
    )
    here.settle(for_ms=1_000)
    assert bodies_of(here.take_all()[0]) == ["m2"]
    assert any("goes on at 2" in finding for finding in here.members["a"].findings)


def pulled_from(request: Request) -> int:
    return request.offset if isinstance(request, Pull) else 0


@pytest.mark.parametrize("new", [["n0"], ["n0", "n1", "n2", "n3", "n4"]])
@pytest.mark.parametrize("joins", [False, True])
def test_restarted_queue_is_consumed_from_its_first_message(world: MakeWorld, new: list[str], joins: bool) -> None:
    """Progress of the old numbers, sent later, would pass over new messages."""
    here = world()
    here.put("old0", "old1", "old2")
    here.join()
    here.settle()
    assert here.consume() == ["old0", "old1", "old2"]
    here.settle(for_ms=11_000)
    assert here.stored() == 3
    paused = here.members.pop("a")
    here.store.clean_unused_topics(["%RETRY%group"])
    here.put(*new)
    if joins:
        here.join("b")
        here.settle(for_ms=1_000)
    here.members["a"] = paused
    here.settle(for_ms=5_000)
    assert here.consume() == new
    assert any("void" in finding for finding in here.members["a"].findings)


def test_queue_that_shrinks_under_an_owner_begins_again(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    here.join()
    here.connections["a"].rule = lambda request: (
        Bounds(0, 1) if isinstance(request, QueryBounds) else illegal(request) if pulled_from(request) == 2 else None
    )
    here.settle(for_ms=100)
    assert any("begins again" in finding for finding in here.members["a"].findings)
    here.connections["a"].rule = lambda _: None
    here.settle(for_ms=2_000)
    assert here.consume() == ["m0", "m1"]
