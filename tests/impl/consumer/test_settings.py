"""Test the checks of settings, and the names of queues."""

from collections.abc import Callable

import pytest

from tests.support.impl.consumers import World, settings_of
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue, dead_letter_topic, retry_topic
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings
from tornpage.impl.errors import BadConfig, BadFilter


@pytest.mark.parametrize(
    "change",
    [
        {"consumer_group": ""},
        {"consumer_group": "a@b"},
        {"client_id": ""},
        {"pull_batch_size": 0},
        {"pull_batch_size": 1_025},
        {"consume_message_batch_max_size": 1_025},
        {"pull_threshold_for_topic": 0},
        {"pull_threshold_size_for_topic": -2},
        {"pull_interval": -1},
        {"max_reconsume_times": -2},
        {"consumer_timeout_millis_when_suspend": 15_000},
        {"rebalance_lock_interval": 30_000},
        {"consume_thread_max": 0},
        {"consume_timestamp_ms": None, "consume_from_where": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP},
    ],
)
def test_impossible_setting_is_refused(change: dict[str, object]) -> None:
    given = {"consumer_group": "g", "client_id": "a", **change}
    with pytest.raises(BadConfig, match=next(iter(change))) as caught:
        ConsumerSettings(**given)  # type: ignore[arg-type]
    assert "use " in str(caught.value) or "name " in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"broker_name": ""}, {"rebalance_lock_max_live_time": 0}, {"default_queue_nums": -1}]
)
def test_impossible_setting_of_a_broker_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match=next(iter(change))):
        BrokerSettings(**change)  # type: ignore[arg-type]


def test_defaults_are_those_of_rocketmq() -> None:
    settings = ConsumerSettings(consumer_group="g", client_id="a")
    assert settings.pull_threshold_for_queue == 1_000
    assert settings.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert settings.reconsume_times_max == 16
    assert settings_of(orderly=True).reconsume_times_max == 2**31 - 1
    assert settings_of(max_reconsume_times=3).reconsume_times_max == 3


def test_unknown_strategy_is_refused() -> None:
    with pytest.raises(BadConfig, match="AVG, AVG_BY_CIRCLE"):
        PushConsumer(settings_of(allocate_message_queue_strategy="NEAREST"), {})


def test_bad_subscription_is_refused() -> None:
    member = PushConsumer(settings_of(), {})
    with pytest.raises(BadConfig, match="topic"):
        member.subscribe("")
    with pytest.raises(BadConfig, match="SQL92"):
        member.subscribe("orders", kind="XPATH")
    with pytest.raises(BadFilter):
        member.subscribe("orders", "a >", kind="SQL92")


def test_names_of_queues_and_topics() -> None:
    queue = MessageQueue("T", "broker-a", 3)
    assert queue.java_text() == "MessageQueue [topic=T, brokerName=broker-a, queueId=3]"
    assert sorted([queue, MessageQueue("T", "a", 9), MessageQueue("S", "z", 0)])[-1] == queue
    assert (retry_topic("g"), dead_letter_topic("g")) == ("%RETRY%g", "%DLQ%g")


def test_strategy_of_the_settings_divides_the_queues(world: Callable[..., World]) -> None:
    here = world(queues=3)
    member = here.join("a", allocate_message_queue_strategy="AVG_BY_CIRCLE")
    here.join("b", allocate_message_queue_strategy="AVG_BY_CIRCLE")
    here.settle(for_ms=3_000)
    assert [queue.queue_id for queue in member.assigned() if queue.topic == "orders"] == [0, 2]
