"""The consumer library over a real store, in virtual time.

Store, broker and members are the real ones. Their services and members are stepped at their due times, listeners are
waits, and the clock jumps from event to event. So a run of minutes takes seconds and is repeatable. A member ends its
listener calls after the times of a `Load`, in whole milliseconds.
"""

import heapq
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

from tornpage.bench.consumers.store_steps import SteppedStore
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.connection import DirectConnection
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings
from tornpage.impl.message.message import Message
from tornpage.sim.consumers.group import RUN_DTYPE, Consumption
from tornpage.sim.consumers.scenario import NS_PER_MS, GroupScenario, Load, Member

__all__ = ["UnsupportedGroup", "consume"]

GROUP, TOPIC, BROKER = "group", "T", "broker-a"
_BEGIN_MS = 1_000_000
_STEPS_MAX = 100
"""Steps of a member at one time; more are a busy loop."""


class UnsupportedGroup(ValueError):
    """The library has no setting for a part of the scenario."""


def consume(scenario: GroupScenario, load: Load) -> Consumption:
    """Consume a load with the library, and return the same figures as the simulator.

    Raises UnsupportedGroup.
    """
    if not scenario.hands_over or scenario.notice is None:
        raise UnsupportedGroup("the library hands queues over and has notices")
    if any((times % NS_PER_MS).any() for times in (*load.arrivals_ns, *load.service_ns)):
        raise UnsupportedGroup("the library has times in whole milliseconds")
    with tempfile.TemporaryDirectory(prefix="tornpage-group-") as place, _running(Path(place), scenario, load) as world:
        return world.run()


@contextmanager
def _running(place: Path, scenario: GroupScenario, load: Load) -> Iterator["_World"]:
    world = _World(place, scenario, load)
    try:
        yield world
    finally:
        world.store.close()


class _Client:
    """A member, its connection, and the listeners that it runs."""

    def __init__(self, number: int, member: Member, scenario: GroupScenario, broker: ConsumerBroker) -> None:
        self.number, self.member = number, member
        self.connection = DirectConnection(broker, member.name)
        self.consumer = PushConsumer(
            _settings(member, scenario), {BROKER: self.connection}, strategy=scenario.strategy,
            incarnation=member.name,
        )  # fmt: skip
        self.consumer.subscribe(TOPIC)
        self.connection.watch(self.wake)
        self.due_ms = 0
        self.running: dict[int, tuple[Batch, int]] = {}
        self.busy_ms = 0
        self.is_over = False

    def wake(self) -> None:
        """Step the member at the present time."""
        self.due_ms = 0


def _settings(member: Member, scenario: GroupScenario) -> ConsumerSettings:
    return ConsumerSettings(
        consumer_group=GROUP,
        client_id=member.name,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        pull_batch_size=scenario.batch,
        pull_threshold_for_queue=scenario.prefetch,
        consume_concurrently_max_span=scenario.span,
        pull_time_delay_mills_when_flow_control=scenario.pause_ns // NS_PER_MS,
        broker_suspend_max_time_millis=scenario.hold_ns // NS_PER_MS,
        persist_consumer_offset_interval=scenario.persist_ns // NS_PER_MS,
        rebalance_wait_interval=scenario.rebalance_ns // NS_PER_MS,
        hand_over_timeout=scenario.hand_over_ns // NS_PER_MS,
    )


class _World:
    """One run."""

    def __init__(self, place: Path, scenario: GroupScenario, load: Load) -> None:
        self._scenario, self._load = scenario, load
        self.now_ms = _BEGIN_MS
        self.store = SteppedStore(place, lambda: self.now_ms)
        settings = BrokerSettings(broker_name=BROKER, owners_survive=False, default_queue_nums=scenario.queues)
        self._broker = ConsumerBroker(self.store.store, settings, now_ms=self.now_ms)
        self._clients: list[_Client] = []
        self._events: list[tuple[int, int, str, int, int]] = []
        """Time, number, kind, and two numbers: queue and offset, or the member and its batch."""
        self._numbers = count()
        self._runs: list[tuple[int, int, int, int, int, int]] = []
        self._stored: list[list[tuple[int, int]]] = [[] for _ in range(scenario.queues)]
        for queue, arrivals in enumerate(load.arrivals_ns):
            for offset, at_ns in enumerate(arrivals.tolist()):
                self._add(at_ns, "arrival", queue, offset)
        for number, member in enumerate(scenario.members):
            self._add(member.joins_ns, "join", number, 0)
            if member.leaves_ns is not None:
                self._add(member.leaves_ns, "leave", number, 0)
            if member.crashes_ns is not None:
                self._add(member.crashes_ns, "crash", number, 0)
                self._add(member.crashes_ns + scenario.noticed_ns, "notice", number, 0)
        self._by_number: dict[int, _Client] = {}

    def _add(self, at_ns: int, kind: str, one: int, two: int) -> None:
        heapq.heappush(self._events, (_BEGIN_MS + at_ns // NS_PER_MS, next(self._numbers), kind, one, two))

    @property
    def _at_ns(self) -> int:
        return (self.now_ms - _BEGIN_MS) * NS_PER_MS

    def run(self) -> Consumption:
        """Run to the end of the scenario."""
        end_ms = _BEGIN_MS + self._scenario.duration_ns // NS_PER_MS
        while self.now_ms < end_ms:
            while self._events and self._events[0][0] <= self.now_ms:
                _, _, kind, one, two = heapq.heappop(self._events)
                self._happen(kind, one, two)
            self._settle()
            self.now_ms = min(end_ms, self._next_ms())
        return Consumption(
            self._scenario,
            self._load,
            np.array(self._runs, RUN_DTYPE),
            tuple(map(tuple, self._stored)),
            tuple(client.busy_ms * NS_PER_MS for client in self._clients),
            0,
        )

    def _next_ms(self) -> int:
        events = [self._events[0][0]] if self._events else []
        dues = [client.due_ms for client in self._clients if not client.is_over]
        return max(self.now_ms + 1, min([*events, *dues, *self.store.dues()], default=self.now_ms + 1))

    def _happen(self, kind: str, one: int, two: int) -> None:
        match kind:
            case "arrival":
                self.store.put(Message(TOPIC, b"", queue_id=one))
            case "end":
                self._end(self._by_number[one], two)
            case "join":
                client = _Client(one, self._scenario.members[one], self._scenario, self._broker)
                self._clients.append(client)
                self._by_number[one] = client
            case "leave":
                self._by_number[one].consumer.shutdown(self.now_ms)
                self._by_number[one].wake()
            case "crash":
                self._crash(self._by_number[one])
            case "notice":
                self._by_number[one].connection.close()
                self._broker.step(self.now_ms)

    def _settle(self) -> None:
        """Step all that is due now, until nothing is."""
        for _ in range(_STEPS_MAX):
            self.store.step()
            due = [each for each in self._clients if not each.is_over and each.due_ms <= self.now_ms]
            if not due:
                break
            for client in due:
                client.due_ms = client.consumer.step(self.now_ms)
                self._take(client)
        else:
            raise RuntimeError(f"members are not settled after {_STEPS_MAX} steps at {self.now_ms} ms")
        self._note_progress()

    def _take(self, client: _Client) -> None:
        """Give free threads what waits."""
        while len(client.running) < client.member.threads:
            batch = client.consumer.take(self.now_ms)
            if batch is None:
                break
            (message,) = batch.messages
            service_ns = int(self._load.service_ns[batch.queue.queue_id][message.queue_offset])
            client.running[batch.number] = batch, self.now_ms
            self._add(self._at_ns + service_ns, "end", client.number, batch.number)
        client.is_over = client.consumer.is_closed

    def _end(self, client: _Client, number: int) -> None:
        """End a listener with success."""
        if number not in client.running:
            return  # the member has crashed
        batch, begun_ms = client.running.pop(number)
        self._note(client, batch, begun_ms, self._at_ns)
        client.consumer.finish(batch, ConcurrentStatus.CONSUME_SUCCESS, self.now_ms)
        client.wake()

    def _crash(self, client: _Client) -> None:
        client.is_over = True
        for batch, begun_ms in client.running.values():
            self._note(client, batch, begun_ms, -1)
        client.running.clear()

    def _note(self, client: _Client, batch: Batch, begun_ms: int, ended_ns: int) -> None:
        (message,) = batch.messages
        client.busy_ms += self.now_ms - begun_ms
        begun_ns = (begun_ms - _BEGIN_MS) * NS_PER_MS
        self._runs.append((batch.queue.queue_id, message.queue_offset, begun_ns, begun_ns, ended_ns, client.number))

    def _note_progress(self) -> None:
        offsets = self.store.store.consumer_offsets(TOPIC).get(GROUP, {})
        for queue, offset in offsets.items():
            stored = self._stored[queue]
            if offset != (stored[-1][1] if stored else 0):
                stored.append((self._at_ns, offset))
