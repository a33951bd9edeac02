"""Benches of consumer groups: the broker's part, and a member with threads."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, ClassVar, cast

from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.client import NEVER
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.messages import Batch
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Claim,
    Heartbeat,
    Lease,
    Leave,
    LockQueues,
    Members,
    Pull,
    SendToRetry,
    Subscription,
    UnlockQueues,
    UpdateOffset,
)
from tornpage.impl.consumer.running import RunningConsumer
from tornpage.impl.consumer.settings import BrokerSettings, ConsumerSettings
from tornpage.impl.guards import make_guard
from tornpage.impl.message.message import GetStatus, Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.store import MessageStore
from tornpage.properties.explore.interleavings.programs.bench import Bench, Until, call, require_rule, slow
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry, numbered
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.scheduler import CooperativeLock

__all__ = ["BENCHES"]


def _guard() -> CooperativeLock:
    return CooperativeLock("guard")


# ---- the broker ------------------------------------------------------------------------------------------------------

_SUBSCRIBED = (Subscription("T"),)
_QUEUE = MessageQueue("T", "broker-a", 0)
_TIMEOUT_MS = 100


class _Store:
    """Stand in for a store: progress of groups, and puts."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[int, int]] = {}
        self.bodies: list[bytes] = []
        self.saves = 0

    def subscription_groups(self) -> dict[str, object]:
        return {}

    def consumer_offsets(self, _topic: str) -> dict[str, dict[int, int]]:
        slow("progress is read")
        return {group: dict(offsets) for group, offsets in self.offsets.items()}

    def commit_offset(self, group: str, _topic: str, queue_id: int, offset: int) -> int:
        slow("progress is committed")
        self.offsets.setdefault(group, {})[queue_id] = offset
        return offset

    def raise_offset(self, stored: int, group: str, topic: str, queue_id: int, offset: int) -> int | None:
        slow("progress is raised")
        if self.offsets.get(group, {}).get(queue_id) != stored:
            return None
        self.offsets[group][queue_id] = offset
        return offset

    def save_offsets(self) -> None:
        slow("progress is saved")
        self.saves += 1

    def restart_numbers(self) -> None:
        self.offsets.clear()

    def pull_async(self, *_args: object, **_named: object) -> "Future[GetMessageResult]":
        answer: Future[GetMessageResult] = Future()
        answer.set_result(GetMessageResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0))
        return answer

    def put(self, message: Message) -> PutResult:
        slow("a copy is put")
        self.bodies.append(bytes(message.body or b""))
        return PutResult(PutStatus.PUT_OK)


class BrokerBench(Bench):
    """The broker's part of a group: members, leases, progress and returned messages."""

    modules = (
        "tornpage.impl.consumer.broker",
        "tornpage.impl.consumer.member_table",
        "tornpage.impl.consumer.queue_locks",
        "tornpage.impl.consumer.send_back",
    )

    def __init__(self) -> None:
        self.store = _Store()
        settings = BrokerSettings(
            owners_survive=False, channel_expired_timeout=_TIMEOUT_MS, rebalance_lock_max_live_time=_TIMEOUT_MS
        )
        parts = Parts().replacing({make_guard: _guard})
        self.broker = ConsumerBroker(cast(MessageStore, self.store), settings, now_ms=0, parts=parts)
        self.woken: dict[int, int] = {}
        self.leases: dict[int, Lease] = {}

    def _ask(self, request: Any, client: int, now_ms: int = 0) -> object:
        return self.broker.handle(request, f"c{client}", now_ms)

    def join(self, client: int, now_ms: int) -> object:
        return self._ask(Heartbeat("g", f"i{client}", _SUBSCRIBED), client, now_ms)

    def leave(self, client: int) -> object:
        return self._ask(Leave("g", f"i{client}"), client)

    def members(self) -> object:
        return self._ask(Members("g", "T"), 9)

    def lock(self, client: int) -> object:
        """Claim the queue, or renew the lease of it."""
        lease = self.leases.get(client)
        renewals = () if lease is None else ((_QUEUE, lease),)
        claims = (Claim(_QUEUE, f"{client}"),) if lease is None else ()
        answer = self._ask(LockQueues("g", claims, renewals, waits_for_owner=False, incarnation=f"i{client}"), client)
        leases = getattr(answer, "leases", {})
        if _QUEUE in leases:
            self.leases[client] = leases[_QUEUE]
        return _QUEUE in leases

    def unlock(self, client: int) -> object:
        lease = self.leases.get(client, Lease(f"{client}", 0))
        return self._ask(UnlockQueues("g", ((_QUEUE, lease),), f"i{client}"), client)

    def update(self, offset: int) -> object:
        return self._ask(UpdateOffset("g", _QUEUE, offset), 1)

    def update_leased(self, client: int, offset: int) -> object:
        lease = self.leases.get(client)
        return None if lease is None else self._ask(UpdateOffset("g", _QUEUE, offset, lease=lease), client)

    def update_absent(self, offset: int) -> object:
        return self._ask(UpdateOffset("g", _QUEUE, offset, only_if_absent=True), 1)

    def pull(self, client: int, offset: int) -> object:
        """Pull with the lease of a client, if there is one, and commit an offset."""
        lease = self.leases.get(client)
        return self._ask(Pull("g", _QUEUE, 0, _SUBSCRIBED[0], commit_offset=offset, lease=lease), client)

    def restart_numbers(self) -> None:
        self.store.restart_numbers()

    def step(self, now_ms: int) -> int:
        return self.broker.step(now_ms)

    def notices(self, client: int) -> object:
        return self.broker.notices(f"c{client}")

    def watch(self, client: int) -> None:
        self.broker.watch(f"c{client}", lambda: self._wake(client))

    def _wake(self, client: int) -> None:
        self.woken[client] = self.woken.get(client, 0) + 1

    def disconnect(self, client: int) -> None:
        self.broker.disconnect(f"c{client}")

    def send_back(self, key: int) -> object:
        request = SendToRetry("g", "T", b"%d" % key, {}, 0, 0, ("h", 1), "m", 0, 3, f"k{key}", 1)
        return self._ask(request, 1)

    def state(self) -> object:
        notices = [self.broker.notices(f"c{client}") for client in range(1, 3)]
        bodies = sorted(self.store.bodies)
        require_rule(len(bodies) == len(set(bodies)), "a message with one key is sent back twice", found=bodies)
        offsets, owners = self.store.offsets, [self.lock(client) for client in range(1, 4)]
        return notices, bodies, offsets, owners, sorted(self.woken.items()), self.members()


class MembersBench(BrokerBench):
    """The members of a group, and the notices of their changes."""

    def state(self) -> object:
        found = super().state()
        self._require_notices()
        return found

    def _require_notices(self) -> None:
        """Check that members get a notice if another one expires or disconnects.

        Raises GuaranteeBroken.
        """
        for client in (4, 5, 6):
            self.join(client, 1_000)
        for client in (4, 5):
            self.join(client, 1_080)
            self.notices(client)
        self.step(1_150)
        self._require_notice("expires")
        self.join(6, 1_160)
        for client in (4, 5):
            self.notices(client)
        self.disconnect(6)
        self._require_notice("disconnects")

    def _require_notice(self, what: str) -> None:
        found = [bool(self.broker.notices(f"c{client}")) for client in (4, 5)]
        require_rule(all(found), f"a member gets no notice when another one {what}", found=found)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("join", (1, 2), (0, 150)),
        entry("leave", (1, 2)),
        entry("members"),
        entry("step", (0, 150)),
        entry("notices", (1, 2)),
        entry("watch", (1, 2)),
        entry("disconnect", (1, 2)),
        entry("join", (1, 2), (0,)).then("disconnect", (1, 2)),
        entry("join", (1, 2), (0,)).then("leave", (1, 2)),
    )


class LeasesBench(BrokerBench):
    """The leases of a queue, and the progress that their owners store."""

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("join", (1, 2), (0,), of="client"),
        *numbered("lock", (1, 2), of="client"),
        *numbered("unlock", (1, 2), of="client"),
        *numbered("update_leased", (1, 2), (3, 7), of="client"),
        entry("lock", (1,), role="client 1").then("pull", (1,), (3, 7)),
        entry("restart_numbers"),
    )


class ProgressBench(BrokerBench):
    """The progress of a group, which members store with updates and with pulls."""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("update", (3, 7)),
        entry("update_absent", (2,)),
        entry("pull", (1,), (3, 7)),
        entry("restart_numbers"),
    )


class ReturnsBench(BrokerBench):
    """Messages that members send back."""

    menu: ClassVar[tuple[Entry, ...]] = (entry("send_back", (1, 2)), entry("leave", (1, 2)))


# ---- a member with threads -------------------------------------------------------------------------------------------


class _Consumer(PushConsumer):
    """Stand in for a push consumer, whose calls the caller serialises."""

    is_closed = False

    def __init__(self, settings: ConsumerSettings, *_args: object, **_named: object) -> None:
        self.settings = settings
        self.arrived = self.ready = self.running = self.finished = 0
        self.together: list[str] = []
        self._inside = ""
        self._closes = False

    def _call(self, name: str) -> None:
        """Be inside of a call for a while; note another call that runs at the same time."""
        if self._inside:
            self.together.append(f"{name} during {self._inside}")
        before, self._inside = self._inside, name
        slow(f"a consumer does: {name}")
        self._inside = before

    def subscribe(self, _topic: str, _expression: str = "*", *, kind: str = "TAG") -> None:
        self._call("subscribe")

    def unsubscribe(self, _topic: str) -> None:
        self._call("unsubscribe")

    def suspend(self) -> None:
        self._call("suspend")

    def resume(self) -> None:
        self._call("resume")

    def assigned(self) -> list[MessageQueue]:
        self._call("assigned")
        return []

    def lag(self) -> dict[MessageQueue, QueueLag]:
        self._call("lag")
        return {}

    def shutdown(self, _now_ms: int) -> None:
        self._call("shutdown")
        self._closes = True

    def step(self, _now_ms: int) -> int:
        self._call("step")
        self.ready, self.arrived = self.ready + self.arrived, 0
        self.is_closed = self._closes and not self.running
        return NEVER

    def take(self, _now_ms: int) -> Batch | None:
        self._call("take")
        if not self.ready or self._closes:
            return None
        self.ready, self.running = self.ready - 1, self.running + 1
        return Batch(self.running, _QUEUE, (), 0)

    def add_finding(self, _sentence: str) -> None:
        self._call("add_finding")

    def finish(self, *_args: object, **_named: object) -> None:
        self._call("finish")
        self.running, self.finished = self.running - 1, self.finished + 1


class RunningBench(Bench):
    """A member of a group with a thread that steps it and one that runs the listener."""

    modules: ClassVar[tuple[str, ...]] = ("tornpage.impl.consumer.running",)
    threads = 2

    def __init__(self) -> None:
        settings = ConsumerSettings(consumer_group="g", client_id="c", consume_thread_max=1)
        parts = Parts().replacing({PushConsumer: _Consumer})
        self.batches = 0
        self.member = RunningConsumer(settings, {}, self._listen, parts=parts)
        self.consumer = cast(_Consumer, self.member._consumer)

    def _listen(self, _messages: object, _context: object) -> Any:
        """Take a batch. Every second one gets a result that is no status."""
        self.batches += 1
        return None if self.batches % 2 else 17

    def start(self) -> None:
        self.member.start()

    def stop(self) -> None:
        self.member.stop()

    def subscribe(self) -> None:
        self.member.subscribe("T")

    def unsubscribe(self) -> None:
        self.member.unsubscribe("T")

    def suspend(self) -> None:
        self.member.suspend()

    def resume(self) -> None:
        self.member.resume()

    def look(self) -> None:
        self.member.assigned()
        self.member.lag()

    def arrive(self) -> None:
        """Let a batch arrive, as a connection does."""
        self.consumer.arrived += 1
        self.member._wake()

    def consume(self) -> None:
        """Let a batch arrive, and wait for its end or that of the member."""
        consumer = self.consumer
        wanted = consumer.finished + 1
        self.arrive()
        Until("the end of a batch", lambda: consumer.finished >= wanted or consumer.is_closed).wait()

    def state(self) -> object:
        together = self.consumer.together
        require_rule(not together, "two threads call a consumer at the same time", found=together)
        require_rule(self.consumer.is_closed, "a member that was stopped has not left", contract=16)
        return ""

    @classmethod
    def completed(cls, scenario: Scenario) -> Scenario:
        """Return the program with a start and a stop. Earlier calls would have no threads."""
        first, *others = scenario.tasks
        return replace(scenario, before=(), tasks=((call("start"), *first, call("stop")), *others))

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("subscribe"),
        entry("unsubscribe"),
        entry("suspend"),
        entry("resume"),
        entry("look"),
        entry("arrive"),
        entry("consume"),
        entry("consume").then("consume"),
    )


class RunningCallsBench(RunningBench):
    """A member whose threads are switched at locks and inside calls of its consumer only.

    It has three to four threads, so switches at every line would seldom meet two calls.
    """

    modules = ()


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "members": MembersBench,
    "leases": LeasesBench,
    "progress": ProgressBench,
    "returns": ReturnsBench,
    "running consumer": RunningBench,
    "running calls": RunningCallsBench,
}
