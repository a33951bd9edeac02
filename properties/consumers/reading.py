"""Read a broker with a pull consumer, and compare the answers (contract 8).

The consumer is in the process of the broker. It is of a group of its own, whose progress never decreases. The store
says what is right.
"""

from collections.abc import Mapping
from functools import partial

from tornpage.impl.consumer.connection import Call, CallError, DirectConnection
from tornpage.impl.consumer.lag import dead_letters_of, lag_of_group
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Members,
    MembersFound,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    Pulled,
    QueryOffset,
    Routed,
)
from tornpage.model.consumers.operations import ReadBroker
from tornpage.model.consumers.state import Queue
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC, BrokerHost
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["READER", "lags_are_right", "read_broker"]

READER = "P"
"""The group of the pull consumer."""
_NO_MEMBERS = "N"
"""A group that no member ever joins."""
_ELSEWHERE = MessageQueue(TOPIC, "no broker", 0)


def read_broker(host: BrokerHost, asked: ReadBroker, now_ms: int) -> None:
    """Ask everything that a pull consumer can ask about one queue."""
    store, number = host.store, asked.queue % host.queues
    connection = DirectConnection(host.broker, "10.0.0.8@1")
    consumer, queue = PullConsumer(READER, {BROKER: connection}), MessageQueue(TOPIC, BROKER, number)
    routes = observed("routes", partial(consumer.routes, TOPIC, now_ms))
    queues = tuple(MessageQueue(TOPIC, BROKER, each) for each in range(host.queues))
    _is("the route", Routed(queues), next(_answer(call, now_ms) for call in routes))
    least, most = store.min_offset_in_queue(TOPIC, number), store.max_offset_in_queue(TOPIC, number)
    _is("the bounds", Bounds(least, most), _answer(consumer.bounds(queue, now_ms), now_ms))
    pulled = _answer(consumer.pull(queue, asked.offset, now_ms, count=asked.count), now_ms)
    found = store.get_message(TOPIC, number, asked.offset, max_msg_nums=asked.count)
    with found:
        expected = [buffer.message() for buffer in found.messages]
    if not isinstance(pulled, Pulled) or list(pulled.messages) != expected:
        raise GuaranteeBroken(8, "a pull consumer gets other messages than the queue has", str(expected), str(pulled))
    _is("the end of a pull", (found.next_begin_offset, found.max_offset), (pulled.next_offset, pulled.max_offset))
    _stores_progress(host, consumer, queue, asked.offset, now_ms)
    _is_searched(host, consumer, queue, now_ms)
    unreachable = consumer.bounds(_ELSEWHERE, now_ms)
    _is("the error of an unknown broker", CallError.UNREACHABLE, unreachable.outcome(now_ms))
    _never_joined(host, number)
    _progress_of_the_group(host, number)
    connection.close()
    _is("the error of a closed connection", CallError.UNREACHABLE, consumer.bounds(queue, now_ms).outcome(now_ms))
    _has_lag(host)


def _stores_progress(host: BrokerHost, consumer: PullConsumer, queue: MessageQueue, offset: int, now_ms: int) -> None:
    """Store progress, and ask for it.

    It is the largest one so far, and at most the end of the queue.
    """
    before = host.store.consumer_offsets(TOPIC).get(READER, {}).get(queue.queue_id)
    updated = _answer(consumer.update_offset(queue, offset, now_ms), now_ms)
    after = host.store.consumer_offsets(TOPIC).get(READER, {}).get(queue.queue_id)
    most = host.store.max_offset_in_queue(TOPIC, queue.queue_id)
    wanted = max(min(offset, most), before or 0)
    if not isinstance(updated, OffsetUpdated) or after != wanted or updated.offset != wanted:
        raise GuaranteeBroken(22, "the progress of a pull consumer is wrong", str(wanted), f"{after}, {updated}")
    found = _answer(consumer.query_offset(queue, now_ms), now_ms)
    if not isinstance(found, OffsetFound) or found.offset != wanted:
        raise GuaranteeBroken(22, "a pull consumer finds other progress than it stored", str(wanted), str(found))


def _is_searched(host: BrokerHost, consumer: PullConsumer, queue: MessageQueue, now_ms: int) -> None:
    """Search by time: before all messages, and after them."""
    for time_ms in (0, now_ms + 1):
        expected = host.store.offset_in_queue_by_time(TOPIC, queue.queue_id, time_ms)
        found = _answer(consumer.search_offset(queue, time_ms, now_ms), now_ms)
        if not isinstance(found, OffsetFound) or found.offset != expected:
            raise GuaranteeBroken(8, "a search by time finds another message", str(expected), str(found))


def _has_lag(host: BrokerHost) -> None:
    """Compare the lag of the group in each queue with the ends of the queues and its progress."""
    store = host.store
    for queue, lag in observed("lag_of_group", partial(lag_of_group, store, GROUP)).items():
        progress = store.consumer_offsets(queue.topic).get(GROUP, {}).get(queue.queue_id)
        most = store.max_offset_in_queue(queue.topic, queue.queue_id)
        _is("the lag of a group", (most, progress, most - (progress or 0)), (lag.max_offset, lag.progress, lag.diff))


def lags_are_right(
    life: int, consumer: PushConsumer, host: BrokerHost, pullers: Mapping[Queue, frozenset[int]]
) -> None:
    """Contract 16: at the end a member names the queues that it reads, without lag."""
    assigned = observed("assigned", consumer.assigned)
    reads = sorted(queue.queue_id for queue, lives in pullers.items() if life in lives)
    _is("the list of the queues of a member", reads, [each.queue_id for each in assigned if each.topic == TOPIC])
    lags = observed("lag", consumer.lag)
    _is("the list of lags of a member", assigned, sorted(lags))
    for queue, lag in lags.items():
        most = host.store.max_offset_in_queue(queue.topic, queue.queue_id)
        _is("the lag of a member", (most, most, 0, 0), (lag.max_offset, lag.progress, lag.cached, lag.diff))


def _never_joined(host: BrokerHost, number: int) -> None:
    """Ask about a group that no member ever joined.

    It has no member, no progress, and all messages before it. It begins at 0 in a young queue. In other queues its
    client decides.
    """
    store, broker, queue = host.store, host.broker, MessageQueue(TOPIC, BROKER, number)
    _is(
        "the list of members",
        MembersFound(()),
        observed("members", partial(broker.handle, Members(_NO_MEMBERS, TOPIC), "x", 0)),
    )
    least, most = store.min_offset_in_queue(TOPIC, number), store.max_offset_in_queue(TOPIC, number)
    is_young = least <= 0 and not (host.is_cold and most)
    expected = OffsetFound(OffsetStatus.NOT_STORED, 0) if is_young else OffsetFound(OffsetStatus.NOT_FOUND, -1)
    found = observed("query", partial(broker.handle, QueryOffset(_NO_MEMBERS, queue), "x", 0))
    _is("the progress of a group without members", expected, found)
    _is("its topics", [], observed("topics_of_group", partial(store.topics_of_group, _NO_MEMBERS)))
    _is("its lag", {}, observed("lag_of_group", partial(lag_of_group, store, _NO_MEMBERS)))
    ends = sum(store.max_offset_in_queue(TOPIC, each) for topic, each in store.queues() if topic == TOPIC)
    _is("its backlog", ends, observed("diff_total", partial(store.diff_total, _NO_MEMBERS, TOPIC)))
    _is("its dead letters", 0, observed("dead_letters_of", partial(dead_letters_of, store, _NO_MEMBERS)))


def _progress_of_the_group(host: BrokerHost, number: int) -> None:
    """Ask for the progress of the group of the run, its topics and its backlog."""
    store, broker, queue = host.store, host.broker, MessageQueue(TOPIC, BROKER, number)
    stored = store.consumer_offsets(TOPIC).get(GROUP, {})
    if number in stored:
        expected = OffsetFound(OffsetStatus.FOUND, stored[number], is_group_known=len(stored) > 1)
        found = observed("query", partial(broker.handle, QueryOffset(GROUP, queue), "x", 0))
        _is("the progress of a group", expected, found)
    ends = {each: store.max_offset_in_queue(TOPIC, each) for topic, each in store.queues() if topic == TOPIC}
    left = sum(end - stored.get(each, 0) for each, end in ends.items())
    _is("the backlog of a group", left, observed("diff_total", partial(store.diff_total, GROUP, TOPIC)))
    dead = store.max_offset_in_queue(f"%DLQ%{GROUP}", 0) - max(0, store.min_offset_in_queue(f"%DLQ%{GROUP}", 0))
    _is("its dead letters", dead, observed("dead_letters_of", partial(dead_letters_of, store, GROUP)))


def _answer(call: Call, now_ms: int) -> Answer | CallError | None:
    return observed("a call", partial(call.outcome, now_ms))


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(8, f"{what} is wrong", str(expected), str(found))
