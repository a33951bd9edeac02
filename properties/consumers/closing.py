"""Close the broker at the end of a run, and judge its files and answers.

The contracts are 8 and 13.
"""

from collections.abc import Callable, Mapping
from functools import partial

from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Pull,
    QueryBounds,
    QueryOffset,
    Refusal,
    Refused,
    Request,
    Route,
    SearchOffset,
    Subscription,
    UpdateOffset,
)
from tornpage.impl.errors import StoreClosed
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.store import MessageStore
from tornpage.properties.consumers.direct import DIRECT_GROUPS
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC, BrokerHost
from tornpage.properties.consumers.reading import READER
from tornpage.properties.consumers.serving import SERVED_GROUPS
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["close_broker"]

_QUEUE = MessageQueue(TOPIC, BROKER, 0)
_REQUESTS: tuple[Request, ...] = (
    Route(TOPIC),
    QueryBounds(_QUEUE),
    QueryOffset(GROUP, _QUEUE),
    SearchOffset(_QUEUE, 0),
    UpdateOffset(GROUP, _QUEUE, 1),
    Pull(GROUP, _QUEUE, 0, Subscription(TOPIC)),
)


def close_broker(host: BrokerHost) -> None:
    """Close the store of a broker, and compare its files and answers."""
    store, broker = host.store, host.broker
    expected = {
        (topic, group, queue_id): offset
        for group in (GROUP, READER, *SERVED_GROUPS, *DIRECT_GROUPS)
        for topic in store.topics_of_group(group)
        for queue_id, offset in store.consumer_offsets(topic)[group].items()
    }
    observed("close", store.close)
    found = host.saved_progress()
    if found != expected:
        raise GuaranteeBroken(13, "a close does not save all progress", str(expected), str(found))
    for name, call in _calls(store).items():
        try:
            answer = call()
        except StoreClosed:
            continue
        raise GuaranteeBroken(8, f"{name} of a closed store has an answer", "StoreClosed", str(answer))
    for request in _REQUESTS:
        answer = observed("handle", partial(broker.handle, request, "x", 0))
        if not isinstance(answer, Refused) or answer.reason is not Refusal.SHUTTING_DOWN:
            sentence = f"a broker whose store is closed answers {type(request).__name__} otherwise"
            raise GuaranteeBroken(8, sentence, "SHUTTING_DOWN", str(answer))


def _calls(store: MessageStore) -> Mapping[str, Callable[[], object]]:
    """Return a call of each method about groups and tables, by its name."""
    return {
        "commit_offset": partial(store.commit_offset, GROUP, TOPIC, 0, 1),
        "save_offsets": store.save_offsets,
        "query_offset": partial(store.query_offset, GROUP, TOPIC, 0),
        "consumer_offsets": partial(store.consumer_offsets, TOPIC),
        "topics_of_group": partial(store.topics_of_group, GROUP),
        "diff_total": partial(store.diff_total, GROUP, TOPIC),
        "query_min_offset_in_all_group": partial(store.query_min_offset_in_all_group, TOPIC),
        "clone_offset": partial(store.clone_offset, GROUP, "other", TOPIC),
        "scan_unsubscribed_topic": partial(store.scan_unsubscribed_topic, ()),
        "put_topic_config": partial(store.put_topic_config, TopicConfig(TOPIC)),
        "delete_topic_config": partial(store.delete_topic_config, TOPIC),
        "topic_configs": store.topic_configs,
        "put_subscription_group": partial(store.put_subscription_group, SubscriptionGroupConfig(GROUP)),
        "delete_subscription_group": partial(store.delete_subscription_group, GROUP),
        "subscription_groups": store.subscription_groups,
        "put_consumer_filter": partial(store.put_consumer_filter, ConsumerFilterData(GROUP, TOPIC)),
        "consumer_filters": store.consumer_filters,
    }
