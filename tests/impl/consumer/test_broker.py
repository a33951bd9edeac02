"""Test the broker's part by single requests. Spec: consumers, sections 2, 5.1, 6, 8."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from tests.support.impl.consumers import GROUP, World
from tornpage.impl.consumer.messages import identity_of
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Claim,
    Done,
    Heartbeat,
    Lease,
    Leave,
    Locked,
    LockQueues,
    Members,
    MembersFound,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    Pull,
    Pulled,
    PullStatus,
    QueryBounds,
    QueryOffset,
    Refusal,
    Refused,
    Request,
    Route,
    Routed,
    SearchOffset,
    SendBack,
    SendBackStatus,
    SentBack,
    Subscription,
    UnlockQueues,
    UpdateOffset,
    UpdateStatus,
)
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig, TopicConfig
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.service.running_flags import RunningFlag

MakeWorld = Callable[..., World]
QUEUE = MessageQueue("orders", "broker-a", 0)
ALL = Subscription("orders")


@pytest.fixture
def here(world: MakeWorld) -> World:
    return world()


def ask(here: World, request: Request, client_id: str = "a") -> Answer:
    answer = here.broker.handle(request, client_id, here.now_ms)
    assert not isinstance(answer, Future)
    return answer


def reason(answer: Answer) -> Refusal:
    assert isinstance(answer, Refused), answer
    return answer.reason


def join(here: World, client_id: str = "a", incarnation: str = "1") -> Answer:
    return ask(here, Heartbeat(GROUP, incarnation, (ALL,)), client_id)


def claim(here: World, client_id: str, token: str, *, waits: bool = True, incarnation: str = "1") -> Lease | None:
    request = LockQueues(GROUP, (Claim(QUEUE, token),), waits_for_owner=waits, incarnation=incarnation)
    answer = ask(here, request, client_id)
    assert isinstance(answer, Locked)
    return answer.leases.get(QUEUE)


def renew(here: World, client_id: str, lease: Lease) -> bool:
    answer = ask(here, LockQueues(GROUP, renewals=((QUEUE, lease),)), client_id)
    assert isinstance(answer, Locked)
    return QUEUE in answer.leases


# ---- routes and pulls ------------------------------------------------------------------------------------------------


def test_routes_come_from_the_configuration_or_the_stored_queues(here: World) -> None:
    here.put("m", queue_id=3)
    here.store.put_topic_config(TopicConfig("bills", read_queue_nums=2, write_queue_nums=4))
    here.store.put_topic_config(TopicConfig("secret", perm=2))
    found = {topic: ask(here, Route(topic)) for topic in ("orders", "bills", "secret", "%RETRY%g", "%RETRY%h")}
    here.store.put_subscription_group(SubscriptionGroupConfig("h", retry_queue_nums=0))
    ids = {
        topic: [queue.queue_id for queue in each.queues] for topic, each in found.items() if isinstance(each, Routed)
    }
    assert ids == {"orders": [0, 3], "bills": [0, 1], "secret": [], "%RETRY%g": [0], "%RETRY%h": [0]}
    assert ask(here, Route("%RETRY%h")) == Routed(())


@pytest.mark.parametrize(
    ("offset", "status", "next_offset", "count"),
    [
        (0, PullStatus.FOUND, 2, 2),
        (1, PullStatus.FOUND, 3, 2),
        (3, PullStatus.NO_NEW_MSG, 3, 0),
        (4, PullStatus.OFFSET_ILLEGAL, 3, 0),
    ],
)
def test_pull_answers_as_rocketmq(here: World, offset: int, status: PullStatus, next_offset: int, count: int) -> None:
    here.put("m0", "m1", "m2")
    answer = ask(here, Pull(GROUP, QUEUE, offset, ALL, count=2))
    assert isinstance(answer, Pulled)
    assert (answer.status, answer.next_offset, len(answer.messages)) == (status, next_offset, count)
    assert (answer.min_offset, answer.max_offset) == (0, 3)


@pytest.mark.parametrize(("offset", "status"), [(0, PullStatus.NO_NEW_MSG), (5, PullStatus.OFFSET_ILLEGAL)])
def test_pull_of_an_unknown_queue(here: World, offset: int, status: PullStatus) -> None:
    answer = ask(here, Pull(GROUP, QUEUE, offset, ALL))
    assert isinstance(answer, Pulled)
    assert answer.status is status


def test_messages_that_no_filter_accepts_are_passed(here: World) -> None:
    here.put("m0", "m1", tags="x")
    answer = ask(here, Pull(GROUP, QUEUE, 0, Subscription("orders", "y")))
    assert isinstance(answer, Pulled)
    assert (answer.status, answer.next_offset) == (PullStatus.NO_MATCHED_MSG, 2)
    sql = ask(here, Pull(GROUP, QUEUE, 0, Subscription("orders", "TAGS = 'x'", "SQL92")))
    assert isinstance(sql, Pulled)
    assert len(sql.messages) == 2


def test_held_pull_gets_the_next_message(world: MakeWorld) -> None:
    here = world(long_polling=True)
    held = here.broker.handle(Pull(GROUP, QUEUE, 0, ALL, suspend_ms=1_000), "a", here.now_ms)
    assert isinstance(held, Future)
    here.put("m0")
    here.runner.step("pull-hold")
    answer = held.result(timeout=0)
    assert isinstance(answer, Pulled)
    assert (answer.status, answer.messages[0].body) == (PullStatus.FOUND, b"m0")


def test_cancelled_pull_is_held_no_longer(world: MakeWorld) -> None:
    here = world(long_polling=True)
    held = here.broker.handle(Pull(GROUP, QUEUE, 0, ALL, suspend_ms=1_000), "a", here.now_ms)
    assert isinstance(held, Future)
    assert here.store.held_pulls == 1
    held.cancel()
    assert here.store.held_pulls == 0


def test_pull_cancelled_at_the_moment_of_its_answer_releases_the_buffers(
    world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(long_polling=True)
    held = here.broker.handle(Pull(GROUP, QUEUE, 0, ALL, suspend_ms=1_000), "a", here.now_ms)
    assert isinstance(held, Future)
    answers: list[GetMessageResult] = []
    pending: Future[GetMessageResult] = held._pending  # type: ignore[attr-defined]
    pending.add_done_callback(lambda done: answers.append(done.result()))
    here.put("m0")

    def answer_first() -> bool:  # the store answers between the two cancellations
        here.runner.step("pull-hold")
        return False

    monkeypatch.setattr(pending, "cancel", answer_first)
    held.cancel()
    assert [message.released for message in answers[0].messages] == [True]


def test_refusals_of_pulls(here: World) -> None:
    assert reason(ask(here, Pull(GROUP, QUEUE, 0, Subscription("orders", "a >", "SQL92")))) is Refusal.SYSTEM_ERROR
    assert reason(ask(here, Pull(GROUP, QUEUE, 0, Subscription("orders", "", "XML")))) is Refusal.SYSTEM_ERROR
    assert reason(ask(here, Pull(GROUP, QUEUE, 0, ALL, lease=Lease("t", 1)))) is Refusal.FENCED
    here.store.running_flags.set(RunningFlag.NOT_READABLE)
    assert reason(ask(here, Pull(GROUP, QUEUE, 0, ALL))) is Refusal.NO_PERMISSION
    here.store.close()
    assert reason(ask(here, Pull(GROUP, QUEUE, 0, ALL))) is Refusal.SHUTTING_DOWN


# ---- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        Pull(GROUP, QUEUE, 0, ALL),
        QueryOffset(GROUP, QUEUE),
        UpdateOffset(GROUP, QUEUE, 0),
        Heartbeat(GROUP, "1", (ALL,)),
        Members(GROUP, "orders"),
        SendBack(GROUP, 0, "", 0, 16, "k"),
    ],
)
def test_unknown_group_is_an_answer_of_its_own(world: MakeWorld, request_: Request) -> None:
    here = world(auto_create_subscription_group=False)
    assert reason(ask(here, request_)) is Refusal.UNKNOWN_GROUP
    here.store.put_subscription_group(SubscriptionGroupConfig(GROUP, consume_enable=False))
    assert reason(ask(here, request_)) is Refusal.NO_PERMISSION


# ---- members ---------------------------------------------------------------------------------------------------------


def test_members_join_and_leave(here: World) -> None:
    join(here, "b")
    join(here, "a")
    assert ask(here, Members(GROUP, "orders")) == MembersFound(("a", "b"))
    assert ask(here, Members(GROUP, "bills")) == MembersFound(())
    assert [notice.group for notice in here.broker.notices("b")] == [GROUP]
    assert list(here.broker.notices("b")) == []
    ask(here, Leave(GROUP, "1"), "a")
    assert ask(here, Members(GROUP, "orders")) == MembersFound(("b",))


def test_late_heartbeat_of_a_process_that_has_left_is_refused(here: World) -> None:
    join(here)
    ask(here, Leave(GROUP, "1"))
    assert reason(join(here)) is Refusal.SYSTEM_ERROR
    assert join(here, incarnation="2") == Done()


def test_member_expires_after_two_minutes(here: World) -> None:
    join(here)
    here.now_ms += 120_000
    assert ask(here, Members(GROUP, "orders")) == MembersFound(("a",))
    here.now_ms += 1
    here.broker.step(here.now_ms)
    assert ask(here, Members(GROUP, "orders")) == MembersFound(())


def test_second_process_with_the_id_of_a_living_one_is_refused(here: World) -> None:
    join(here)
    assert reason(join(here, incarnation="2")) is Refusal.CLIENT_ID_IN_USE
    assert claim(here, "a", "t", incarnation="2") is None
    here.broker.disconnect("a")
    assert join(here, incarnation="2") == Done()


# ---- leases ----------------------------------------------------------------------------------------------------------


def test_queue_has_one_owner(here: World) -> None:
    lease = claim(here, "a", "t1")
    assert lease is not None
    assert claim(here, "b", "u1") is None
    ask(here, UnlockQueues(GROUP, ((QUEUE, lease),)), "a")
    second = claim(here, "b", "u1")
    assert second is not None
    assert second.epoch > lease.epoch
    assert not renew(here, "a", lease)


def test_lease_lives_for_a_minute_after_its_renewal(here: World) -> None:
    lease = claim(here, "a", "t1")
    assert lease is not None
    here.now_ms += 40_000
    assert renew(here, "a", lease)
    here.now_ms += 60_000
    assert claim(here, "b", "u1") is None
    here.now_ms += 1
    assert claim(here, "b", "u1") is not None


def test_expired_lease_without_a_later_claim_is_renewed(here: World) -> None:
    lease = claim(here, "a", "t1")
    assert lease is not None
    here.now_ms += 500_000
    assert renew(here, "a", lease)


def test_repeated_claim_gets_the_same_lease(here: World) -> None:
    assert claim(here, "a", "t1") == claim(here, "a", "t1")


def test_late_claim_does_not_take_the_queue_from_a_later_one(here: World) -> None:
    claim(here, "a", "t1")
    lease = claim(here, "a", "t2")
    assert lease is not None
    assert claim(here, "a", "t1") is None
    assert renew(here, "a", lease)


def test_late_claim_does_not_lock_an_unlocked_queue(here: World) -> None:
    lease = claim(here, "a", "t1")
    assert lease is not None
    ask(here, UnlockQueues(GROUP, ((QUEUE, Lease("t1", 0)),), "1"), "a")
    assert claim(here, "a", "t1") is None
    assert claim(here, "b", "u1") is not None


def test_claim_that_arrives_after_its_unlock_is_not_granted(here: World) -> None:
    ask(here, UnlockQueues(GROUP, ((QUEUE, Lease("t1", 0)),), "1"), "a")
    assert claim(here, "a", "t1") is None
    assert claim(here, "a", "t2") is not None


def test_late_unlock_does_not_shorten_the_wait_of_a_new_broker(world: MakeWorld) -> None:
    here = world(owners_survive=True)
    ask(here, UnlockQueues(GROUP, ((QUEUE, Lease("t1", 1)),), "1"), "a")
    assert claim(here, "b", "u1") is None


def test_concurrent_member_takes_the_queue_of_a_former_member(here: World) -> None:
    join(here, "a")
    join(here, "b")
    claim(here, "a", "t1")
    assert claim(here, "b", "u1", waits=False) is None
    here.broker.disconnect("a")
    assert claim(here, "b", "u1", waits=True) is None
    assert claim(here, "b", "u1", waits=False) is not None


def test_new_broker_waits_for_surviving_owners(world: MakeWorld) -> None:
    """C7."""
    here = world(owners_survive=True)
    assert claim(here, "a", "t1") is None
    assert claim(here, "a", "t1", waits=False) is not None
    other = MessageQueue("orders", "broker-a", 1)
    here.now_ms += 60_000
    answer = ask(here, LockQueues(GROUP, (Claim(other, "t2"),)), "a")
    assert isinstance(answer, Locked)
    assert other in answer.leases


# ---- progress --------------------------------------------------------------------------------------------------------


def test_progress_is_found_or_not(here: World) -> None:
    here.put("m0", "m1")
    assert ask(here, QueryOffset(GROUP, QUEUE)) == OffsetFound(OffsetStatus.NOT_STORED, 0)
    assert ask(here, UpdateOffset(GROUP, QUEUE, 1)) == OffsetUpdated(UpdateStatus.STORED, 1)
    assert ask(here, QueryOffset(GROUP, QUEUE)) == OffsetFound(OffsetStatus.FOUND, 1)
    other = MessageQueue("orders", "broker-a", 1)
    assert ask(here, QueryOffset(GROUP, other)) == OffsetFound(OffsetStatus.NOT_STORED, 0, is_group_known=True)


def test_progress_never_decreases(here: World) -> None:
    here.put("m0", "m1", "m2")
    ask(here, UpdateOffset(GROUP, QUEUE, 2))
    assert ask(here, UpdateOffset(GROUP, QUEUE, 1)) == OffsetUpdated(UpdateStatus.NOT_ABOVE, 2)
    assert here.stored() == 2


def test_progress_past_the_end_is_lowered_to_it(here: World) -> None:
    here.put("m0")
    assert ask(here, UpdateOffset(GROUP, QUEUE, 9)) == OffsetUpdated(UpdateStatus.STORED, 1)


def test_former_owner_may_not_store_progress(here: World) -> None:
    here.put("m0", "m1")
    ask(here, UpdateOffset(GROUP, QUEUE, 0, only_if_absent=True))
    lease = claim(here, "a", "t1")
    assert isinstance(ask(here, UpdateOffset(GROUP, QUEUE, 1, lease)), OffsetUpdated)
    here.now_ms += 60_001
    claim(here, "b", "u1")
    assert reason(ask(here, UpdateOffset(GROUP, QUEUE, 2, lease))) is Refusal.FENCED
    assert here.stored() == 1


def test_invalid_progress_is_refused(here: World) -> None:
    assert reason(ask(here, UpdateOffset("a@b", QUEUE, 1))) is Refusal.SYSTEM_ERROR


def test_bounds_and_search(here: World) -> None:
    here.put("m0")
    here.settle(for_ms=1_000)
    here.put("m1")
    assert ask(here, QueryBounds(QUEUE)) == Bounds(0, 2)
    assert ask(here, SearchOffset(QUEUE, here.clock.now_ms)) == OffsetFound(OffsetStatus.FOUND, 1)


# ---- messages sent back ----------------------------------------------------------------------------------------------


def send_back(here: World, offset: int, level: int, times_max: int, key: str) -> Answer:
    stored = here.store.get(offset).message
    assert stored is not None
    return ask(here, SendBack(GROUP, offset, identity_of(stored), level, times_max, key))


def test_unknown_offset_is_not_sent_back(here: World) -> None:
    assert reason(ask(here, SendBack(GROUP, 12_345, "", 0, 16, "k"))) is Refusal.SYSTEM_ERROR


def test_another_record_at_the_offset_is_not_sent_back(here: World) -> None:
    """C29: RocketMQ copies the record that is there now."""
    put, other = here.put("m0", "m1")
    there = here.store.get(other.offset).message
    assert there is not None
    answer = ask(here, SendBack(GROUP, put.offset, identity_of(there), 0, 16, "k"))
    assert reason(answer) is Refusal.SYSTEM_ERROR
    assert here.store.max_offset == other.offset + there.size_bytes


def test_repeated_key_stores_one_copy(here: World) -> None:
    (put,) = here.put("m0")
    assert send_back(here, put.offset, 0, 16, "k") == SentBack(SendBackStatus.RETRY)
    assert send_back(here, put.offset, 0, 16, "k") == SentBack(SendBackStatus.REPEATED)
    assert send_back(here, put.offset, 0, 0, "l") == SentBack(SendBackStatus.DEAD_LETTER)
    assert here.store.max_offset_in_queue("SCHEDULE_TOPIC_XXXX", 2) in (0, 1)


def test_old_keys_are_forgotten(world: MakeWorld) -> None:
    here = world(repeated_keys_max=1)
    (put,) = here.put("m0")
    for key in ("k", "l", "k"):
        assert send_back(here, put.offset, 0, 16, key) == SentBack(SendBackStatus.RETRY)


def test_default_maximum_is_that_of_the_group(here: World) -> None:
    here.store.put_subscription_group(SubscriptionGroupConfig(GROUP, retry_max_times=0))
    (put,) = here.put("m0")
    assert send_back(here, put.offset, 0, -1, "k") == SentBack(SendBackStatus.DEAD_LETTER)


def test_copy_that_is_not_stored_is_an_error(here: World) -> None:
    (put,) = here.put("m0")
    here.store.running_flags.set(RunningFlag.NOT_WRITEABLE)
    assert reason(send_back(here, put.offset, 0, 16, "k")) is Refusal.SYSTEM_ERROR
    here.store.running_flags.clear(RunningFlag.NOT_WRITEABLE)
    assert send_back(here, put.offset, 0, 16, "k") == SentBack(SendBackStatus.RETRY)
