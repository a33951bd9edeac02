"""Consumers on a store in virtual time, and a connection that fails on request."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.impl.hand_runner import HandRunner
from tests.support.impl.stores import FaultyFiles, SetClock, caught_up, config_of, open_store
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.connection import Call, CallError, DirectConnection
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Answer, MembersChanged, Request
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutResult, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner

__all__ = [
    "DELAYS",
    "GROUP",
    "TOPIC",
    "ScriptedConnection",
    "World",
    "bodies_of",
    "cached_message",
    "settings_of",
    "wait_for",
]

GROUP, TOPIC = "group", "orders"
DELAYS = " ".join(f"{level}s" for level in range(1, 19))
"""Level n delays by n seconds."""
_STEPS_MAX = 20_000

Rule = Callable[[Request], Answer | CallError | None]
"""What a connection answers itself: an answer, an error, or None to ask the broker."""


def settings_of(client_id: str = "a", **changes: object) -> ConsumerSettings:
    """Return the settings of a member that begins at the first message."""
    given = {"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **changes}
    return ConsumerSettings(consumer_group=GROUP, client_id=client_id, **given)  # type: ignore[arg-type]


class ScriptedConnection:
    """A direct connection whose requests a rule may answer, fail, or lose.

    `sent` has all requests with their times. `is_cut` loses every request and notice. Answers to requests of the class
    `delays` wait until `arrive`.
    """

    def __init__(self, broker: ConsumerBroker, client_id: str) -> None:
        self.sent: list[tuple[int, Request]] = []
        self.rule: Rule = lambda _: None
        self.is_cut = False
        self.delays: type | None = None
        self._delayed: list[tuple[Call, Answer]] = []
        self._client_id = client_id
        self._direct = DirectConnection(broker, client_id)

    def reconnect(self, broker: ConsumerBroker) -> None:
        """Reach another broker."""
        self._direct = DirectConnection(broker, self._client_id)

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Send a request, unless the rule answers it."""
        self.sent.append((now_ms, request))
        given = self.rule(request)
        if given is None and not self.is_cut and (self.delays is None or not isinstance(request, self.delays)):
            return self._direct.call(request, now_ms=now_ms, timeout_ms=timeout_ms)
        call = Call(request, deadline_ms=now_ms + timeout_ms)
        if given is None and not self.is_cut:
            answer = self._direct.call(request, now_ms=now_ms, timeout_ms=timeout_ms).answer
            assert answer is not None
            self._delayed.append((call, answer))
        elif isinstance(given, CallError):
            call.fail(given)
        elif given is not None:
            call.settle(given)
        return call

    def arrive(self) -> None:
        """Let the delayed answers arrive."""
        self.delays = None
        for call, answer in self._delayed:
            call.settle(answer)

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Send a request without an answer."""
        self.sent.append((now_ms, request))
        if not self.is_cut and self.rule(request) is None:
            self._direct.notify(request, now_ms=now_ms)

    def notices(self) -> Sequence[MembersChanged]:
        """Return the notices of the broker."""
        return () if self.is_cut else self._direct.notices()

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: the test steps."""

    def close(self) -> None:
        """End the connection."""
        self._direct.close()

    def count(self, kind: type, *, since_ms: int = 0) -> int:
        """Return how many requests of a class were sent."""
        return sum(isinstance(request, kind) for at_ms, request in self.sent if at_ms >= since_ms)


class World:
    """A store with a broker, members, and one clock. No thread runs.

    `clock` is the wall clock of the store. It advances with `now_ms`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        queues: int = 1,
        sync: bool = False,
        file_bytes: int = 1 << 16,
        files: FaultyFiles | OsFiles | None = None,
        parts: Parts | None = None,
        **broker: object,
    ) -> None:
        self.now_ms = 1_000_000
        self.directory = directory
        self.parts = parts or Parts()
        self.members: dict[str, PushConsumer] = {}
        self.connections: dict[str, ScriptedConnection] = {}
        self.queues = queues
        given = {"long_polling": False, "owners_survive": False, "default_queue_nums": queues, **broker}
        self.broker_settings = BrokerSettings(**given)  # type: ignore[arg-type]
        self.config = replace(config_of(file_bytes=file_bytes, sync=sync), message_delay_level=DELAYS)
        self._files = files
        self.clock = SetClock()
        self.open()

    def open(self) -> None:
        """Open the store and begin a new broker."""
        self.runner = HandRunner(now_ms=self.now_ms)
        self.store = open_store(
            self.directory,
            config=self.config,
            files=self._files,
            clock=self.clock,
            parts=self.parts.replacing({ThreadRunner: self.runner}),
        )
        self.broker = ConsumerBroker(self.store, self.broker_settings, now_ms=self.now_ms, parts=self.parts)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def restart(self, image: Path) -> None:
        """Replace the broker by one on an image of the store, as after a crash.

        Members keep their state.
        """
        self.store.close()
        self.directory = image
        self.open()
        for connection in self.connections.values():
            connection.reconnect(self.broker)

    # ---- messages ------------------------------------------------------------------------------------------------

    def put(self, *bodies: str, queue_id: int = 0, tags: str = "", topic: str = TOPIC) -> list[PutResult]:
        """Put messages, and dispatch them."""
        properties = {"TAGS": tags} if tags else {}
        results = [self.store.put(Message(topic, body.encode(), queue_id, properties)) for body in bodies]
        caught_up(self.store)
        return results

    # ---- members -------------------------------------------------------------------------------------------------

    def join(
        self, client_id: str = "a", *, expression: str = "*", topic: str = TOPIC, **changes: object
    ) -> PushConsumer:
        """Add a member that subscribes a topic.

        A member with the same id is forgotten, as after a crash.
        """
        connection = self.connections[client_id] = ScriptedConnection(self.broker, client_id)
        member = PushConsumer(
            settings_of(client_id, **changes),
            {self.broker_settings.broker_name: connection},
            files=OsFiles(),
            directory=str(self.directory.parent),
            incarnation=f"{client_id}{len(self.members)}-{self.now_ms}",
            parts=self.parts,
        )
        member.subscribe(topic, expression)
        self.members[client_id] = member
        return member

    def crash(self, client_id: str, *, is_noticed: bool = True) -> None:
        """End a member without a word; the broker notices its closed channel."""
        del self.members[client_id]
        if is_noticed:
            self.connections[client_id].close()

    def settle(self, *, for_ms: int = 0) -> None:
        """Let time pass, and step all members and the delayed delivery when they are due."""
        end_ms = self.now_ms + for_ms
        for _ in range(_STEPS_MAX):
            due_ms = min((member.step(self.now_ms) for member in self.members.values()), default=end_ms + 1)
            due_ms = min(due_ms, self._deliver())
            if due_ms > end_ms:
                self._set_time(end_ms)
                return
            self._set_time(max(self.now_ms, due_ms))
        raise AssertionError(f"not settled after {_STEPS_MAX} steps")

    def _deliver(self) -> int:
        """Dispatch all puts and deliver delayed messages; return when a delayed message is due."""
        caught_up(self.store)
        due_ms = self.runner.step("schedule")
        caught_up(self.store)
        return self.now_ms + _STEPS_MAX * 1_000 if due_ms is None else due_ms

    def _set_time(self, now_ms: int) -> None:
        self.clock.now_ms += now_ms - self.now_ms
        self.now_ms = self.runner.now_ms = now_ms

    def take_all(self, client_id: str = "a") -> list[Batch]:
        """Take all batches that wait at a member."""
        batches = []
        while (batch := self.members[client_id].take(self.now_ms)) is not None:
            batches.append(batch)
        return batches

    def finish(
        self,
        batch: Batch,
        status: ConcurrentStatus | OrderlyStatus | None = ConcurrentStatus.CONSUME_SUCCESS,
        client_id: str = "a",
        **how: object,
    ) -> None:
        """Give the result of a batch."""
        self.members[client_id].finish(batch, status, self.now_ms, **how)  # type: ignore[arg-type]

    def consume(self, client_id: str = "a", status: ConcurrentStatus | OrderlyStatus | None = None) -> list[str]:
        """Consume all that waits at a member; return the bodies in the order of the batches."""
        orderly = self.members[client_id].settings.orderly
        success = OrderlyStatus.SUCCESS if orderly else ConcurrentStatus.CONSUME_SUCCESS
        bodies = []
        while (batch := self.members[client_id].take(self.now_ms)) is not None:
            bodies += bodies_of(batch)
            self.finish(batch, status or success, client_id)
            self.settle()
        return bodies

    def stored(self, queue_id: int = 0, topic: str = TOPIC) -> int | None:
        """Return the stored progress of the group."""
        return self.store.consumer_offsets(topic).get(GROUP, {}).get(queue_id)


def bodies_of(batch: Batch) -> list[str]:
    """Return the bodies of a batch as texts."""
    return [message.body.decode() for message in batch.messages]


def cached_message(offset: int, *, body: bytes = b"x", max_offset: int = 0) -> ConsumerMessage:
    """Return a message of one queue as a client caches it."""
    stored = StoredMessage(
        offset=offset * 100,
        size_bytes=100,
        topic=TOPIC,
        queue_id=0,
        queue_offset=offset,
        body=body,
        properties={},
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=("127.0.0.1", 1),
        store_timestamp=0,
        store_host=("127.0.0.1", 1),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        message_id="",
    )
    return ConsumerMessage(stored, MessageQueue(TOPIC, "broker-a", 0), TOPIC, max_offset)


def wait_for(condition: Callable[[], bool], patience_s: int = 30) -> None:
    """Wait until a condition holds; nothing notifies of it."""
    pause = threading.Event()
    for _ in range(patience_s * 100):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("the condition does not hold")
