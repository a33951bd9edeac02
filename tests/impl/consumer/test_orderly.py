"""Test orderly consumption. Spec: consumers, section 6."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.impl.consumers import GROUP, World, bodies_of
from tornpage.impl.consumer.connection import CallError
from tornpage.impl.consumer.lag import dead_letters_of
from tornpage.impl.consumer.messages import OrderlyStatus
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import LockQueues, Refusal, Refused, Request, SendToRetry

MakeWorld = Callable[..., World]
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def here(world: MakeWorld) -> World:
    """Return a world with three messages in one queue."""
    made = world()
    made.put("m0", "m1", "m2")
    return made


def join(here: World, client_id: str = "a", **changes: Any) -> None:
    here.join(client_id, orderly=True, **changes)
    here.settle()


def progress(here: World) -> int:
    found = here.members["a"].lag()[QUEUE].progress
    assert found is not None
    return found


def test_one_batch_of_a_queue_runs_at_a_time(here: World) -> None:
    join(here)
    (first,) = here.take_all()
    assert bodies_of(first) == ["m0"]
    here.finish(first, OrderlyStatus.SUCCESS)
    assert progress(here) == 1
    assert bodies_of(here.take_all()[0]) == ["m1"]


def test_queues_take_turns(world: MakeWorld) -> None:
    here = world(queues=2)
    here.put("a0", "a1")
    here.put("b0", "b1", queue_id=1)
    join(here)
    assert here.consume() == ["a0", "b0", "a1", "b1"]


@pytest.mark.parametrize("status", [None, OrderlyStatus.SUSPEND])
def test_failed_batch_comes_again_after_a_pause(here: World, status: OrderlyStatus | None) -> None:
    join(here)
    here.finish(here.take_all()[0], status)
    here.settle(for_ms=999)
    assert here.take_all() == []
    here.settle(for_ms=1)
    (again,) = here.take_all()
    assert (bodies_of(again), again.messages[0].reconsume_times) == (["m0"], 1)
    assert progress(here) == 0


@pytest.mark.parametrize(("asked_ms", "pause_ms"), [(5, 10), (500, 500), (90_000, 30_000), (-1, 1_000)])
def test_pause_of_the_listener_is_limited(here: World, asked_ms: int, pause_ms: int) -> None:
    join(here)
    here.finish(here.take_all()[0], None, suspend_ms=asked_ms)
    here.settle(for_ms=pause_ms - 1)
    assert here.take_all() == []
    here.settle(for_ms=1)
    assert len(here.take_all()) == 1


def test_retries_have_no_limit_by_default(here: World) -> None:
    join(here)
    for _ in range(40):
        here.finish(here.take_all()[0], None)
        here.settle(for_ms=1_000)
    assert bodies_of(here.take_all()[0]) == ["m0"]


def test_exhausted_message_goes_to_the_dead_letters_and_later_ones_follow(here: World) -> None:
    join(here, max_reconsume_times=2)
    for _ in range(3):
        (batch,) = here.take_all()
        assert bodies_of(batch) == ["m0"]
        here.finish(batch, None)
        here.settle(for_ms=1_000)
    assert dead_letters_of(here.store, GROUP) == 1
    assert progress(here) == 1
    assert here.consume() == ["m1", "m2"]


def test_exhausted_message_stays_if_it_cannot_be_sent(here: World) -> None:
    join(here, max_reconsume_times=0)
    here.connections["a"].rule = lambda request: (
        Refused(Refusal.SYSTEM_ERROR) if isinstance(request, SendToRetry) else None
    )
    here.finish(here.take_all()[0], None)
    here.settle(for_ms=1_000)
    assert (bodies_of(here.take_all()[0]), progress(here)) == (["m0"], 0)


def test_each_message_of_a_batch_has_its_own_result(here: World) -> None:
    """C25: RocketMQ consumes the whole batch again, also what it has sent to the dead letters."""
    join(here, max_reconsume_times=1, consume_message_batch_max_size=2)
    (batch,) = here.take_all()
    batch.messages[0].reconsume_times = 1
    here.finish(batch, None)
    here.settle(for_ms=1_000)
    assert dead_letters_of(here.store, GROUP) == 1
    assert progress(here) == 1
    assert bodies_of(here.take_all()[0]) == ["m1", "m2"]


def test_manual_commit_and_rollback(here: World) -> None:
    join(here)
    here.finish(here.take_all()[0], OrderlyStatus.SUCCESS, auto_commit=False)
    assert progress(here) == 0
    here.finish(here.take_all()[0], OrderlyStatus.ROLLBACK, auto_commit=False)
    here.settle(for_ms=1_000)
    (again,) = here.take_all()
    assert bodies_of(again) == ["m0"]
    here.finish(again, OrderlyStatus.SUCCESS, auto_commit=False)
    here.finish(here.take_all()[0], OrderlyStatus.COMMIT, auto_commit=False)
    assert progress(here) == 2


def test_queue_rests_after_a_minute_without_a_pause(world: MakeWorld) -> None:
    here = world()
    here.put(*(f"m{number}" for number in range(5)))
    join(here)
    for _ in range(3):
        (batch,) = here.take_all()
        here.settle(for_ms=21_000)
        here.finish(batch, OrderlyStatus.SUCCESS)
    assert here.take_all() == []
    here.settle(for_ms=10)
    assert len(here.take_all()) == 1


# ---- locks -----------------------------------------------------------------------------------------------------------


def test_no_batch_begins_under_an_expired_lease(here: World) -> None:
    join(here)
    here.connections["a"].is_cut = True
    here.settle(for_ms=30_001)
    assert here.take_all() == []
    here.connections["a"].is_cut = False
    here.settle(for_ms=5_000)
    assert bodies_of(here.take_all()[0]) == ["m0"]


def test_paused_member_loses_its_queue_after_sixty_seconds(here: World) -> None:
    """C6: the old owner cannot store progress, and consumes nothing more."""
    join(here)
    (running,) = here.take_all()
    paused = here.members.pop("a")
    here.settle(for_ms=55_000)
    join(here, "b")
    here.settle(for_ms=4_000)
    assert here.take_all("b") == []
    here.broker.disconnect("a")
    here.settle(for_ms=3_000)
    assert here.consume("b") == ["m0", "m1", "m2"]
    here.members["a"] = paused
    here.finish(running, OrderlyStatus.SUCCESS)
    here.settle(for_ms=1_000)
    assert paused.take(here.now_ms) is None
    here.settle(for_ms=20_000)
    assert here.stored() == 3


def test_lost_queue_is_not_claimed_again_while_its_batch_runs(here: World) -> None:
    """CB08: two batches of one queue would overlap."""
    join(here)
    (running,) = here.take_all()
    member = here.members["a"]
    member.holdings()[QUEUE].lose(here.now_ms)
    here.settle(for_ms=60_000)
    assert QUEUE not in member.assigned()
    here.finish(running, OrderlyStatus.SUCCESS)
    here.settle(for_ms=1_000)
    assert QUEUE in member.assigned()
    assert here.consume() == ["m0", "m1", "m2"]


def test_restarted_broker_makes_orderly_members_wait(world: MakeWorld) -> None:
    """C7: another client could lock a queue while its old owner goes on."""
    here = world(owners_survive=True)
    here.put("m0", "m1")
    here.join("a", orderly=True)
    here.settle(for_ms=59_999)
    assert here.take_all() == []
    here.settle(for_ms=2_000)
    assert here.consume() == ["m0", "m1"]


def test_unanswered_renewal_is_repeated(here: World) -> None:
    join(here)
    lost: list[Request] = []

    def lose_one(request: Request) -> CallError | None:
        if isinstance(request, LockQueues) and not lost:
            lost.append(request)
            return CallError.TIMED_OUT
        return None

    here.connections["a"].rule = lose_one
    here.settle(for_ms=25_000)
    assert len(lost) == 1
    assert here.take_all() != []
