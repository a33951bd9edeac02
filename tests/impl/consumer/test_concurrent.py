"""Test concurrent consumption: commit rule, messages sent back, dead letters.

Spec: consumers, sections 4 and 5.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.support.impl.consumers import GROUP, World, bodies_of
from tornpage.impl.consumer.connection import CallError
from tornpage.impl.consumer.lag import dead_letters_of
from tornpage.impl.consumer.messages import ConcurrentStatus
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Refusal, Refused, Request, SendBack, SendToRetry, UpdateOffset
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig

MakeWorld = Callable[..., World]
LATER = ConcurrentStatus.RECONSUME_LATER
RETRY, DEAD = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"
QUEUE = MessageQueue("orders", "broker-a", 0)


def progress(here: World) -> int:
    """Return the progress in memory of member a."""
    found = here.members["a"].lag()[QUEUE].progress
    assert found is not None
    return found


def test_progress_is_the_smallest_unfinished_offset(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1", "m2")
    here.join()
    here.settle()
    first, second, third = here.take_all()
    here.finish(second)
    assert progress(here) == 0
    here.finish(first)
    assert progress(here) == 2
    here.finish(third)
    assert progress(here) == 3


def test_second_message_finishes_first_and_the_member_crashes(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    here.join()
    here.settle()
    _, second = here.take_all()
    here.finish(second)
    here.settle(for_ms=11_000)
    here.crash("a")
    here.join("b")
    here.settle()
    assert here.consume("b") == ["m0", "m1"]


def test_batches_have_the_configured_size(world: MakeWorld) -> None:
    here = world()
    here.put(*(f"m{number}" for number in range(5)))
    here.join(consume_message_batch_max_size=2)
    here.settle()
    assert [bodies_of(batch) for batch in here.take_all()] == [["m0", "m1"], ["m2", "m3"], ["m4"]]


def test_progress_is_sent_every_five_seconds(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    here.connections["a"].sent.clear()
    here.consume()
    started_ms = here.now_ms
    here.settle(for_ms=21_000)
    times = [at - started_ms for at, request in here.connections["a"].sent if isinstance(request, UpdateOffset)]
    assert sorted(set(times)) == [10_000, 15_000, 20_000]
    assert here.stored() == 1


def test_result_of_a_batch_that_does_not_run_is_refused(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    batch = here.take_all()[0]
    here.finish(batch)
    with pytest.raises(ValueError, match="does not run"):
        here.finish(batch)


# ---- messages sent back ----------------------------------------------------------------------------------------------


def test_failed_message_comes_again_with_its_topic(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    here.finish(here.take_all()[0], LATER)
    here.settle()
    assert progress(here) == 1
    here.settle(for_ms=2_999)
    assert here.take_all() == []
    here.settle(for_ms=1_100)
    (again,) = here.take_all()
    assert (again.queue.topic, again.messages[0].topic) == (RETRY, "orders")
    assert (again.messages[0].reconsume_times, again.messages[0].properties["RETRY_TOPIC"]) == (1, "orders")
    assert bodies_of(again) == ["m0"]


def test_poisoned_message_is_delivered_seventeen_times(world: MakeWorld) -> None:
    here = world()
    (put,) = here.put("poison")
    here.join()
    deliveries = []
    for _ in range(400):
        here.settle(for_ms=1_000)
        for batch in here.take_all():
            deliveries.append((batch.messages[0].reconsume_times, here.now_ms))
            here.finish(batch, None)
            here.settle()
    assert [times for times, _ in deliveries] == list(range(17))
    pauses = [(after - before) // 1_000 for (_, before), (_, after) in pairwise(deliveries)]
    levels = list(range(3, 19))
    assert all(level <= pause <= level + 1 for level, pause in zip(levels, pauses, strict=True)), pauses
    assert dead_letters_of(here.store, GROUP) == 1
    assert "sent to the dead letters" in here.members["a"].findings[-1]
    with here.store.get_message(DEAD, 0, 0) as found:
        dead = found.messages[0].message()
    assert (dead.body, dead.reconsume_times, "DELAY" in dead.properties) == (b"poison", 17, False)
    assert dead.properties["ORIGIN_MESSAGE_ID"] == put.message_id
    assert here.stored(0, RETRY) == 16


@pytest.mark.parametrize(("times_max", "deliveries"), [(0, 1), (1, 2), (3, 4)])
def test_maximum_of_the_member_counts(world: MakeWorld, times_max: int, deliveries: int) -> None:
    here = world()
    here.put("poison")
    here.join(max_reconsume_times=times_max)
    count = 0
    for _ in range(20):
        here.settle(for_ms=1_000)
        for batch in here.take_all():
            count += 1
            here.finish(batch, LATER)
    assert (count, dead_letters_of(here.store, GROUP)) == (deliveries, 1)


def test_negative_delay_level_goes_to_the_dead_letters(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    here.finish(here.take_all()[0], LATER, delay_level=-1)
    here.settle()
    assert dead_letters_of(here.store, GROUP) == 1


def test_delay_level_of_the_listener_counts(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    here.finish(here.take_all()[0], LATER, delay_level=1)
    here.settle(for_ms=2_100)
    assert len(here.take_all()) == 1


@pytest.mark.parametrize(("ack_index", "again"), [(-1, ["m0", "m1", "m2"]), (0, ["m1", "m2"]), (2, []), (9, [])])
def test_messages_past_the_ack_index_are_sent_back(world: MakeWorld, ack_index: int, again: list[str]) -> None:
    here = world()
    here.put("m0", "m1", "m2")
    here.join(consume_message_batch_max_size=3)
    here.settle()
    here.finish(here.take_all()[0], ConcurrentStatus.CONSUME_SUCCESS, ack_index=ack_index)
    here.settle(for_ms=5_000)
    assert progress(here) == 3
    assert here.consume() == again


def refuse(*kinds: type) -> Callable[[Request], Refused | None]:
    return lambda request: Refused(Refusal.SYSTEM_ERROR, "full") if isinstance(request, kinds) else None


def test_copy_is_sent_if_the_broker_refuses(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    here.connections["a"].rule = refuse(SendBack)
    here.finish(here.take_all()[0], LATER)
    here.settle(for_ms=4_100)
    (again,) = here.take_all()
    assert (again.messages[0].reconsume_times, again.messages[0].topic) == (1, "orders")


def test_unsent_message_stays_and_is_consumed_again_here(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    here.join()
    here.settle()
    here.connections["a"].rule = refuse(SendBack, SendToRetry)
    first, second = here.take_all()
    here.finish(first, LATER)
    here.finish(second)
    here.settle(for_ms=4_900)
    assert progress(here) == 0
    assert here.take_all() == []
    here.settle(for_ms=200)
    (again,) = here.take_all()
    assert (bodies_of(again), again.messages[0].reconsume_times, again.queue) == (["m0"], 1, QUEUE)
    here.finish(again)
    assert progress(here) == 2


def test_lost_answer_stores_no_second_copy(world: MakeWorld) -> None:
    """C26: the request had been carried out, and its answer was lost."""
    here = world()
    here.put("m0")
    here.join()
    here.settle()
    connection = here.connections["a"]

    def lose_the_answer(request: Request) -> CallError | None:
        if not isinstance(request, SendBack):
            return None
        here.broker.handle(request, "a", here.now_ms)
        return CallError.TIMED_OUT

    connection.rule = lose_the_answer
    here.finish(here.take_all()[0], LATER)
    here.settle(for_ms=10_000)
    assert connection.count(SendToRetry) == 1
    assert here.store.max_offset_in_queue(RETRY, 0) == 1


def test_copy_waits_for_the_flush_of_a_synchronous_store(world: MakeWorld) -> None:
    """C4: RocketMQ puts the copy with WAIT=false."""
    here = world(sync=True)
    here.put("m0")
    here.join()
    here.settle()
    here.finish(here.take_all()[0], LATER)
    here.settle()
    assert here.store.flushed_offset == here.store.max_offset
    with here.store.get_message("SCHEDULE_TOPIC_XXXX", 2, 0) as found:
        assert "WAIT" not in found.messages[0].message().properties


def test_group_without_retry_queue_keeps_the_message(world: MakeWorld) -> None:
    """C10: RocketMQ answers success and stores nothing."""
    here = world()
    here.store.put_subscription_group(no_retry())
    here.put("m0")
    here.join()
    here.settle()
    here.finish(here.take_all()[0], LATER)
    here.settle()
    assert progress(here) == 0
    assert any("has no retry queue" in finding for finding in here.members["a"].findings)


def no_retry() -> SubscriptionGroupConfig:
    return SubscriptionGroupConfig(GROUP, retry_queue_nums=0)


def test_long_run_is_reported_and_not_repeated(world: MakeWorld) -> None:
    """C17: RocketMQ sends the message back while it is being processed."""
    here = world()
    here.put("m0")
    here.join(consume_timeout=1)
    here.settle()
    (batch,) = here.take_all()
    here.settle(for_ms=200_000)
    assert any("runs for too long" in finding for finding in here.members["a"].findings)
    assert here.connections["a"].count(SendBack) == 0
    here.finish(batch)
    assert progress(here) == 1
