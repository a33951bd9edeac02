"""Test a member of two brokers, one of which may be unreachable."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.consumers import ScriptedConnection, World, settings_of
from tornpage.impl.consumer.messages import ConcurrentStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.requests import Heartbeat, Refusal, Refused, Request, Route, SendBack, SendToRetry

NAMES = ("broker-a", "broker-b")


class Pair:
    """Two brokers and one member, with one clock."""

    def __init__(self, directory: Path) -> None:
        self.worlds = {name: World(directory / name, broker_name=name) for name in NAMES}
        self.connections = {name: ScriptedConnection(world.broker, "a") for name, world in self.worlds.items()}
        self.member = PushConsumer(settings_of("a"), self.connections, incarnation="1")
        self.member.subscribe("orders")

    @property
    def now_ms(self) -> int:
        return self.worlds["broker-a"].now_ms

    def settle(self, *, for_ms: int = 0) -> None:
        end_ms = self.now_ms + for_ms
        while (due_ms := self.member.step(self.now_ms)) <= end_ms:
            self._let(due_ms - self.now_ms)
        self._let(end_ms - self.now_ms)

    def _let(self, time_ms: int) -> None:
        for world in self.worlds.values():
            world.settle(for_ms=max(0, time_ms))

    def consume(self, status: ConcurrentStatus = ConcurrentStatus.CONSUME_SUCCESS) -> list[str]:
        bodies = []
        while (batch := self.member.take(self.now_ms)) is not None:
            bodies += [message.body.decode() for message in batch.messages]
            self.member.finish(batch, status, self.now_ms)
            self.settle()
        return bodies

    def brokers(self) -> set[str]:
        return {queue.broker_name for queue in self.member.assigned() if queue.topic == "orders"}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.worlds["broker-a"].put("a0")
    made.worlds["broker-b"].put("b0")
    yield made
    for world in made.worlds.values():
        world.close()


def test_queues_of_both_brokers_are_consumed(pair: Pair) -> None:
    pair.settle()
    assert pair.brokers() == set(NAMES)
    assert sorted(pair.consume()) == ["a0", "b0"]
    pair.member.shutdown(pair.now_ms)
    pair.settle()
    assert pair.member.is_closed
    assert [world.stored() for world in pair.worlds.values()] == [1, 1]


@pytest.mark.parametrize("down", NAMES)
def test_unreachable_broker_does_not_stop_the_other(pair: Pair, down: str) -> None:
    pair.connections[down].is_cut = True
    pair.settle(for_ms=30_000)
    assert pair.brokers() == set(NAMES) - {down}
    pair.connections[down].is_cut = False
    pair.settle(for_ms=40_000)
    assert pair.brokers() == set(NAMES)
    assert sorted(pair.consume()) == ["a0", "b0"]


def test_lost_broker_keeps_its_queues(pair: Pair) -> None:
    pair.settle()
    pair.connections["broker-b"].is_cut = True
    pair.settle(for_ms=120_000)
    pair.connections["broker-b"].is_cut = False
    pair.settle(for_ms=40_000)
    assert pair.brokers() == set(NAMES)
    assert sorted(pair.consume()) == ["a0", "b0"]


def test_copy_goes_to_the_next_broker(pair: Pair) -> None:
    pair.settle()
    refusal = Refused(Refusal.SYSTEM_ERROR, "full")

    def refuse(request: Request) -> Refused | None:
        return refusal if isinstance(request, SendBack | SendToRetry) else None

    pair.connections["broker-a"].rule = refuse
    assert sorted(pair.consume(ConcurrentStatus.RECONSUME_LATER)) == ["a0", "b0"]
    pair.settle(for_ms=4_500)
    stores = {name: world.store for name, world in pair.worlds.items()}
    assert {name: store.max_offset_in_queue("%RETRY%group", 0) for name, store in stores.items()} == {
        "broker-a": 0,
        "broker-b": 2,
    }


def test_members_are_asked_at_a_broker_that_has_accepted_the_heartbeat(pair: Pair) -> None:
    refusal = Refused(Refusal.BUSY)
    pair.connections["broker-a"].rule = lambda request: refusal if isinstance(request, Heartbeat) else None
    pair.settle(for_ms=10_000)
    assert pair.brokers() == set(NAMES)


def test_refused_route_keeps_the_known_queues(pair: Pair) -> None:
    pair.settle()
    refusal = Refused(Refusal.BUSY)
    pair.connections["broker-a"].rule = lambda request: refusal if isinstance(request, Route) else None
    pair.settle(for_ms=65_000)
    assert pair.brokers() == set(NAMES)
