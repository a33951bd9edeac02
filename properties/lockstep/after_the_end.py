"""Call every method of a store after its close, and in a forked child (8, 14)."""

import os
from collections.abc import Callable, Iterator, Mapping

from tornpage.impl.errors import ForkedStore, StoreClosed
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig, TopicConfig
from tornpage.impl.message.message import Message, MessageBatch, PutStatus
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["child_is_refused", "closed_store_refuses"]

_QUEUE = ("T", 0)
_CALLS: Mapping[str, Callable[[MessageStore], object]] = {
    "flush": lambda store: store.flush(),
    "get": lambda store: store.get(0),
    "messages": lambda store: list(store.messages()),
    "get_message": lambda store: store.get_message(*_QUEUE, 0),
    "query_message": lambda store: store.query_message("T", "k"),
    "message_by_id": lambda store: store.message_by_id("0" * 32),
    "select_message_by_offset": lambda store: store.select_message_by_offset(0),
    "commit_log_data": lambda store: store.commit_log_data(0),
    "queues": lambda store: store.queues(),
    "min_offset_in_queue": lambda store: store.min_offset_in_queue(*_QUEUE),
    "max_offset_in_queue": lambda store: store.max_offset_in_queue(*_QUEUE),
    "message_total_in_queue": lambda store: store.message_total_in_queue(*_QUEUE),
    "commit_log_offset_in_queue": lambda store: store.commit_log_offset_in_queue(*_QUEUE, 0),
    "store_timestamp_in_queue": lambda store: store.store_timestamp_in_queue(*_QUEUE, 0),
    "earliest_message_time": lambda store: store.earliest_message_time(),
    "offset_in_queue_by_time": lambda store: store.offset_in_queue_by_time(*_QUEUE, 0),
    "message_ids_in_queue": lambda store: store.message_ids_in_queue(*_QUEUE, 0, 1),
    "is_in_disk": lambda store: store.is_in_disk(*_QUEUE, 0),
    "pull_async": lambda store: store.pull_async("g", "T", queue_id=0, offset=0, hold_ms=1_000),
    "commit_offset": lambda store: store.commit_offset("g", *_QUEUE, 0),
    "save_offsets": lambda store: store.save_offsets(),
    "query_offset": lambda store: store.query_offset("g", *_QUEUE),
    "consumer_offsets": lambda store: store.consumer_offsets("T"),
    "topics_of_group": lambda store: store.topics_of_group("g"),
    "diff_total": lambda store: store.diff_total("g", "T"),
    "query_min_offset_in_all_group": lambda store: store.query_min_offset_in_all_group("T"),
    "clone_offset": lambda store: store.clone_offset("g", "h", "T"),
    "scan_unsubscribed_topic": lambda store: store.scan_unsubscribed_topic(()),
    "put_topic_config": lambda store: store.put_topic_config(TopicConfig("T")),
    "delete_topic_config": lambda store: store.delete_topic_config("T"),
    "topic_configs": lambda store: store.topic_configs(),
    "put_subscription_group": lambda store: store.put_subscription_group(SubscriptionGroupConfig("g")),
    "delete_subscription_group": lambda store: store.delete_subscription_group("g"),
    "subscription_groups": lambda store: store.subscription_groups(),
    "consumer_filters": lambda store: store.consumer_filters(),
    "delete_expired_files_manually": lambda store: store.delete_expired_files_manually(),
    "clean_unused_topics": lambda store: store.clean_unused_topics(()),
    "clean_unused_lmq_topic": lambda store: store.clean_unused_lmq_topic("%LMQ%a"),
    "clean_expired_consume_queues": lambda store: store.clean_expired_consume_queues(),
    "append_to_commit_log": lambda store: store.append_to_commit_log(0, memoryview(b"")),
    "check": lambda store: store.check(),
}
_PUTS: Mapping[str, Callable[[MessageStore], object]] = {
    "put": lambda store: store.put(Message("T", b"")).status,
    "put_batch": lambda store: store.put_batch(MessageBatch("T", b"")).status,
    "put_async": lambda store: store.put_async(Message("T", b"")).result(timeout=0).status,
}


def closed_store_refuses(store: MessageStore) -> None:
    """Contract 8: after a close every call raises StoreClosed.

    Puts are answered with a status. Another close does nothing.
    """
    for name, call in _CALLS.items():
        found = _answer(call, store)
        if found != StoreClosed.__name__:
            raise GuaranteeBroken(8, f"{name} of a closed store is answered", StoreClosed.__name__, found)
    for name, call in _PUTS.items():
        found = _answer(call, store)
        if found != str(PutStatus.SERVICE_NOT_AVAILABLE):
            raise GuaranteeBroken(8, f"{name} of a closed store is answered", "SERVICE_NOT_AVAILABLE", found)
    if (found := _answer(MessageStore.close, store)) != "None":
        raise GuaranteeBroken(8, "a second close fails", "nothing", found)


def child_is_refused(store: MessageStore) -> None:
    """Contract 14: in a forked child every call raises ForkedStore."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writer, next(_not_refused(store), "").encode()[:1_000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        found = pipe.read().decode(errors="replace")
    os.waitpid(pid, 0)
    if found:
        raise GuaranteeBroken(14, "a forked child uses the store of its parent", ForkedStore.__name__, found)


def _not_refused(store: MessageStore) -> Iterator[str]:
    for name, call in {**_CALLS, **_PUTS, "close": MessageStore.close}.items():
        found = _answer(call, store)
        if found != ForkedStore.__name__:
            yield f"{name}: {found}"


def _answer(call: Callable[[MessageStore], object], store: MessageStore) -> str:
    """Return the text of an answer, or the name of the exception."""
    try:
        return str(call(store))
    except Exception as error:
        return type(error).__name__
