"""Test consumers with threads on one store."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.impl.consumers import wait_for
from tests.support.impl.stores import config_of, open_store
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.messages import ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.running import ConsumeContext, RunningConsumer, monotonic_ms
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings
from tornpage.impl.message.message import Message
from tornpage.impl.store import MessageStore

PATIENCE_S = 30


class Seen:
    """The bodies that listeners have seen, by the name of the listener."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, int, bytes]] = []
        self._changed = threading.Condition()

    def listener(self, name: str) -> Callable[[Sequence[ConsumerMessage], ConsumeContext], None]:
        def listen(messages: Sequence[ConsumerMessage], context: ConsumeContext) -> None:
            with self._changed:
                self.bodies += [(name, context.queue.queue_id, message.body) for message in messages]
                self._changed.notify_all()

        return listen

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, PATIENCE_S), len(self.bodies)


def settings(client_id: str, **changes: Any) -> ConsumerSettings:
    given = {
        "consumer_group": "g",
        "client_id": client_id,
        "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "consume_thread_max": 2,
        **changes,
    }
    return ConsumerSettings(**given)


def opened(directory: Path) -> tuple[MessageStore, dict[str, ConsumerBroker]]:
    store = open_store(directory / "store", config=config_of(file_bytes=1 << 20))
    broker = ConsumerBroker(store, BrokerSettings(owners_survive=False, default_queue_nums=4), now_ms=monotonic_ms())
    return store, {"broker-a": broker}


def put(store: MessageStore, begin: int, end: int) -> None:
    for number in range(begin, end):
        store.put(Message("orders", b"%d" % number, number % 4))


def test_two_members_consume_each_message_once(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)
    seen = Seen()
    with store:
        first = RunningConsumer(settings("a"), brokers, seen.listener("a"))
        first.subscribe("orders")
        first.start()
        put(store, 0, 40)
        seen.wait_for(40)
        with RunningConsumer(settings("b"), brokers, seen.listener("b")) as second:
            second.subscribe("orders")
            wait_for(lambda: len(second.assigned()) >= 2)
            put(store, 40, 80)
            seen.wait_for(80)
        assert first.stop()
        assert sorted(int(body) for _, _, body in seen.bodies) == list(range(80))
        assert {name for name, _, _ in seen.bodies} == {"a", "b"}
        assert sum(store.consumer_offsets("orders")["g"].values()) == 80


def test_orderly_members_keep_the_order_of_each_queue(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)
    seen = Seen()
    with store:
        put(store, 0, 40)
        with RunningConsumer(settings("a", orderly=True), brokers, seen.listener("a")) as member:
            member.subscribe("orders")
            seen.wait_for(40)
    for queue_id in range(4):
        numbers = [int(body) for _, at, body in seen.bodies if at == queue_id]
        assert numbers == sorted(numbers)


def test_listener_that_raises_has_failed(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)
    runs: list[bytes] = []
    ran = threading.Event()

    def listen(messages: Sequence[ConsumerMessage], _: ConsumeContext) -> OrderlyStatus | None:
        runs.append(messages[0].body)
        if len(runs) == 1:
            raise RuntimeError("not yet")
        ran.set()
        return None

    with store:
        put(store, 0, 1)
        chosen = settings("a", orderly=True, suspend_current_queue_time_millis=10)
        with RunningConsumer(chosen, brokers, listen) as member:
            member.subscribe("orders")
            assert ran.wait(PATIENCE_S)
    assert runs == [b"0", b"0"]


def test_context_chooses_how_a_message_is_sent_back(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)

    def listen(_: Sequence[ConsumerMessage], context: ConsumeContext) -> ConcurrentStatus:
        context.delay_level = -1
        return ConcurrentStatus.RECONSUME_LATER

    with store:
        put(store, 0, 1)
        with RunningConsumer(settings("a"), brokers, listen) as member:
            member.subscribe("orders")
            wait_for(lambda: store.max_offset_in_queue("%DLQ%g", 0) == 1)


def test_stop_gives_up_a_hanging_listener(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)
    began, goes_on = threading.Event(), threading.Event()

    def listen(_: Sequence[ConsumerMessage], __: ConsumeContext) -> None:
        began.set()
        goes_on.wait(PATIENCE_S)

    with store:
        put(store, 0, 1)
        member = RunningConsumer(settings("a"), brokers, listen)
        member.subscribe("orders")
        member.start()
        assert began.wait(PATIENCE_S)
        assert not member.stop(timeout_ms=50)
        assert not member.stop()
        goes_on.set()
        assert store.consumer_offsets("orders")["g"][0] == 0


def test_member_that_was_not_started_stops(tmp_path: Path) -> None:
    store, brokers = opened(tmp_path)
    with store:
        member = RunningConsumer(settings("a"), brokers, Seen().listener("a"))
        assert member.stop()
        member.suspend()
        member.resume()
        member.unsubscribe("orders")
        assert (member.findings, member.assigned()) == ((), [])
