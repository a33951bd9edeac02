"""Test joins, leaves and crashes of members. Spec: consumers, sections 7 and 9."""

from collections.abc import Callable

import pytest

from tests.support.impl.consumers import GROUP, World, bodies_of
from tornpage.impl.consumer.connection import CallError
from tornpage.impl.consumer.messages import ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Heartbeat,
    Leave,
    LockQueues,
    Members,
    MembersFound,
    Pull,
    Refusal,
    Refused,
    Request,
    SendBack,
    SendToRetry,
    UnlockQueues,
    UpdateOffset,
)
from tornpage.impl.consumer.settings import MessageModel

MakeWorld = Callable[..., World]
SIX = [f"m{number}" for number in range(6)]


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", queue_id)


def queues_of(here: World, client_id: str) -> list[int]:
    return [each.queue_id for each in here.members[client_id].assigned() if each.topic == "orders"]


def test_members_share_the_queues(world: MakeWorld) -> None:
    here = world(queues=4)
    here.join("a")
    here.settle()
    assert queues_of(here, "a") == [0, 1, 2, 3]
    here.join("b")
    here.settle(for_ms=2_000)
    assert (queues_of(here, "a"), queues_of(here, "b")) == ([0, 1], [2, 3])


@pytest.mark.parametrize("orderly", [False, True])
def test_clean_hand_over_repeats_no_message(world: MakeWorld, orderly: bool) -> None:
    """C5: the next owner begins after the last result of the old one."""
    here = world(queues=2)
    here.put(*SIX, queue_id=1)
    here.join("a", orderly=orderly)
    here.settle()
    (first, *running) = [here.members["a"].take(here.now_ms) for _ in range(1 if orderly else 3)]
    assert first is not None
    here.join("b", orderly=orderly)
    here.settle(for_ms=5_000)
    assert queues_of(here, "b") == []
    seen = []
    for batch in [*reversed(running), first]:
        assert batch is not None
        here.settle(for_ms=500)
        assert here.take_all("b") == []
        seen += bodies_of(batch)
        here.finish(batch, success(orderly=orderly))
    here.settle(for_ms=2_000)
    assert queues_of(here, "b") == [1]
    assert here.take_all("a") == []
    seen += here.consume("b")
    assert sorted(seen) == SIX


def success(*, orderly: bool) -> ConcurrentStatus | OrderlyStatus:
    return OrderlyStatus.SUCCESS if orderly else ConcurrentStatus.CONSUME_SUCCESS


def test_queue_that_comes_back_is_kept(world: MakeWorld) -> None:
    """C16: RocketMQ neither pulls nor replaces it for 120 s."""
    here = world(queues=2)
    here.put(*SIX, queue_id=1)
    here.join("a")
    here.settle()
    (batch, *_) = [here.members["a"].take(here.now_ms)]
    assert batch is not None
    here.join("b")
    here.settle(for_ms=1_000)
    here.crash("b")
    here.settle(for_ms=1_000)
    assert queues_of(here, "a") == [0, 1]
    here.finish(batch)
    assert sorted(bodies_of(batch) + here.consume("a")) == SIX


def test_late_answer_does_not_skip_forgotten_messages(world: MakeWorld) -> None:
    """A pull was under way while the queue left the share and came back."""
    here = world(queues=2)
    here.put(*SIX, queue_id=1)
    here.join("a", pull_batch_size=3)
    here.connections["a"].rule = lambda request: (
        CallError.UNREACHABLE if isinstance(request, Pull) and request.offset == 3 else None
    )
    here.settle()
    batch = here.members["a"].take(here.now_ms)
    assert batch is not None
    here.connections["a"].rule = lambda _: None
    here.connections["a"].delays = Pull
    here.settle(for_ms=1_000)
    here.join("b")
    here.settle(for_ms=1_000)
    here.crash("b")
    here.settle(for_ms=1_000)
    here.connections["a"].arrive()
    here.settle(for_ms=2_000)
    here.finish(batch)
    assert sorted(bodies_of(batch) + here.consume("a")) == SIX


def test_shutdown_waits_for_running_batches(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    member = here.join("a")
    here.settle()
    batch = member.take(here.now_ms)
    assert batch is not None
    member.shutdown(here.now_ms)
    here.settle(for_ms=1_000)
    before = member.is_closed
    here.finish(batch)
    here.settle(for_ms=1_000)
    assert (before, member.is_closed) == (False, True)
    here.join("b")
    here.settle()
    assert here.consume("b") == ["m1"]


def test_hanging_run_of_a_concurrent_member_is_given_up(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    member = here.join("a")
    here.settle()
    batch = member.take(here.now_ms)
    assert batch is not None
    member.shutdown(here.now_ms)
    here.join("b")
    here.settle(for_ms=29_000)
    assert here.take_all("b") == []
    here.settle(for_ms=3_000)
    assert here.consume("b") == ["m0", "m1"]
    here.finish(batch)
    assert here.stored() in (None, 0, 2)


def test_crashed_member_repeats_what_was_not_persisted(world: MakeWorld) -> None:
    here = world()
    here.put(*SIX)
    here.join("a")
    here.settle()
    here.take_all("a")
    here.crash("a")
    here.join("b")
    here.settle(for_ms=1_000)
    assert here.consume("b") == SIX


def test_crash_is_noticed_by_missing_heartbeats(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join("a")
    here.settle()
    here.crash("a", is_noticed=False)
    here.join("b")
    here.settle(for_ms=110_000)
    assert here.consume("b") == []
    here.settle(for_ms=40_000)
    assert here.consume("b") == ["m0"]


def test_fenced_member_stores_nothing_and_drops_the_queue(world: MakeWorld) -> None:
    """CB02: progress of a former owner."""
    here = world()
    here.put(*SIX)
    member = here.join("a")
    here.settle()
    batches = here.take_all("a")
    here.broker.disconnect("a")
    here.connections["a"].is_cut = True
    here.join("b")
    here.settle(for_ms=1_000)
    here.connections["a"].is_cut = False
    for batch in batches:
        here.finish(batch)
    here.settle(for_ms=25_000)
    assert (here.stored() or 0) == 0
    assert any("lease is" in finding for finding in member.findings)
    assert here.consume("a") + here.consume("b") == SIX


def test_late_progress_does_not_go_back(world: MakeWorld) -> None:
    """CB21: one-way progress that arrives out of order."""
    here = world()
    here.put(*SIX)
    member = here.join("a")
    here.settle()
    here.consume("a")
    here.settle(for_ms=11_000)
    assert here.stored() == 6
    lease = member.holdings()[queue(0)].lease
    here.broker.handle(UpdateOffset(GROUP, queue(0), 2, lease), "a", here.now_ms)
    assert here.stored() == 6


def test_unsent_message_is_handed_over_after_it_was_sent(world: MakeWorld) -> None:
    here = world(queues=2)
    here.put("m0", "m1", queue_id=1)
    here.join("a")
    here.settle()
    here.connections["a"].rule = lambda request: (
        Refused(Refusal.SYSTEM_ERROR) if isinstance(request, SendBack | SendToRetry) else None
    )
    first, second = here.take_all("a")
    here.finish(first, ConcurrentStatus.RECONSUME_LATER)
    here.finish(second)
    here.join("b")
    here.settle(for_ms=3_000)
    assert here.take_all("b") == []
    here.connections["a"].rule = lambda _: None
    here.settle(for_ms=3_000)
    assert here.consume("a") == [], "it is sent back again; a listener could outlast the hand-over"
    here.settle(for_ms=1_000)
    assert queues_of(here, "b") == [1]
    assert here.consume("b") == []
    here.settle(for_ms=15_000)
    assert here.consume("a") + here.consume("b") == ["m0"]


# ---- lost requests ---------------------------------------------------------------------------------------------------


def lose_first(
    kind: type, *, is_carried_out: bool, here: World, client_id: str
) -> Callable[[Request], CallError | None]:
    lost: list[Request] = []

    def rule(request: Request) -> CallError | None:
        if not isinstance(request, kind) or lost:
            return None
        lost.append(request)
        if is_carried_out:
            here.broker.handle(request, client_id, here.now_ms)
        return CallError.TIMED_OUT

    return rule


@pytest.mark.parametrize("kind", [LockQueues, Heartbeat, Members, UpdateOffset, UnlockQueues, Leave])
@pytest.mark.parametrize("is_carried_out", [False, True])
def test_lost_request_or_answer_loses_and_repeats_nothing(
    world: MakeWorld,
    kind: type,
    is_carried_out: bool,
) -> None:
    here = world(queues=2)
    here.put(*SIX, queue_id=1)
    here.put("x", queue_id=0)
    here.join("a")
    here.connections["a"].rule = lose_first(kind, is_carried_out=is_carried_out, here=here, client_id="a")
    here.settle(for_ms=10_000)
    seen = here.consume("a")
    here.connections["a"].rule = lose_first(kind, is_carried_out=is_carried_out, here=here, client_id="a")
    here.put("y", queue_id=1)
    here.join("b")
    here.settle(for_ms=10_000)
    seen += here.consume("a") + here.consume("b")
    here.connections["a"].rule = lose_first(kind, is_carried_out=is_carried_out, here=here, client_id="a")
    here.members["a"].shutdown(here.now_ms)
    here.put("z", queue_id=0)
    here.settle(for_ms=20_000)
    assert here.members["a"].is_closed
    seen += here.consume("b")
    assert sorted(seen) == sorted([*SIX, "x", "y", "z"])


def test_stale_member_list_is_not_used(world: MakeWorld) -> None:
    """CB23: an answer without this member changes nothing."""
    here = world(queues=2)
    here.join("a")
    here.settle()
    here.connections["a"].rule = lambda request: MembersFound(("z",)) if isinstance(request, Members) else None
    here.settle(for_ms=21_000)
    assert queues_of(here, "a") == [0, 1]
    here.connections["a"].rule = lambda _: None


def test_failed_strategy_changes_nothing(world: MakeWorld) -> None:
    here = world(queues=2)
    member = here.join("a")
    here.settle()

    def fail(*_: object) -> list[MessageQueue]:
        raise RuntimeError("no room")

    member._rebalance._strategy = fail
    here.settle(for_ms=21_000)
    assert queues_of(here, "a") == [0, 1]
    assert "the strategy fails for orders: no room" in member.findings


# ---- members that are refused ----------------------------------------------------------------------------------------


def test_second_process_with_a_client_id_waits(world: MakeWorld) -> None:
    """C22: both would compute the same share."""
    here = world(queues=2)
    here.join("a")
    here.settle()
    first = here.members["a"]
    second = here.join("a")
    here.settle(for_ms=5_000)
    assert second.assigned() == []
    assert any("another process" in finding for finding in second.findings)
    assert first is not second


def test_member_with_another_expression_is_refused(world: MakeWorld) -> None:
    """C8: the messages of a queue would be filtered by the expression of its present owner."""
    here = world(queues=2)
    here.join("a", expression="x")
    here.settle()
    here.join("b", expression="y")
    here.settle(for_ms=5_000)
    assert queues_of(here, "b") == []
    assert any("subscribes orders with 'x'" in finding for finding in here.members["b"].findings)


def test_queues_go_to_subscribers_only(world: MakeWorld) -> None:
    """C8: RocketMQ gives queues to members that do not subscribe the topic."""
    here = world(queues=2)
    here.join("a")
    here.join("b", topic="bills")
    here.settle(for_ms=5_000)
    assert queues_of(here, "a") == [0, 1]


def test_broadcasting_member_of_a_clustering_group_is_refused(world: MakeWorld) -> None:
    here = world()
    here.join("a")
    here.settle()
    here.join("b", message_model=MessageModel.BROADCASTING)
    here.settle(for_ms=2_000)
    assert any("message model" in finding for finding in here.members["b"].findings)
