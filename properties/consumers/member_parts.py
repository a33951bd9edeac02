"""Use one part of a member alone, with drawn brokers (contracts 16, 19 to 23).

A part is stepped when it is due, when an answer arrives, and at drawn times. Every request with its content and its
time, every answer of the part, and when it wants to be stepped next are those of the model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as count_from
from itertools import islice
from random import Random
from typing import Any, cast

from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.concurrent import Concurrent as ConcurrentPart
from tornpage.impl.consumer.first_offset import FirstOffsets
from tornpage.impl.consumer.flow_control import flow_control_of
from tornpage.impl.consumer.hand_over import HandOver
from tornpage.impl.consumer.heartbeats import Heartbeats
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.holding import is_over as holding_is_over
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus, identity_of
from tornpage.impl.consumer.offset_store import RemoteOffsets
from tornpage.impl.consumer.orderly import Orderly as OrderlyPart
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.pull_loop import PullLoop
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.rebalance import Rebalance
from tornpage.impl.consumer.requests import Lease, Subscription
from tornpage.impl.consumer.settings import ConsumeFromWhere, ConsumerSettings, MessageModel
from tornpage.impl.parts import Parts
from tornpage.model.consumers.cache import limits_of
from tornpage.model.consumers.member.asking import NEVER, Ask
from tornpage.model.consumers.member.dividing import Dividing
from tornpage.model.consumers.member.holding import HandingOver, Held, Leasing, is_over, is_usable
from tornpage.model.consumers.member.joining import Joining
from tornpage.model.consumers.member.listening import Concurrent, Given, Orderly, Source
from tornpage.model.consumers.member.pulling import Place, Pulling
from tornpage.model.consumers.member.returning import Pulled, Returning
from tornpage.model.consumers.member.starting import Starting
from tornpage.properties.consumers.caching import message_at
from tornpage.properties.consumers.calling import use_calls, use_pull_consumer, use_subscriptions
from tornpage.properties.consumers.restarting import use_restarts
from tornpage.properties.consumers.running import use_running
from tornpage.properties.consumers.scripted import BROKERS, Script, differs
from tornpage.properties.contract import observed

__all__ = ["MEMBER_PARTS", "further_seeds", "use_member_part"]

_STEPS = 40
_SEED_STEP = 1 << 24
"""The distance of the seeds of one use, more than the greatest seed that is drawn."""
_GROUP, _ME = "g", "c"
_BEGINS_MS = (0, 1_000_000)
_LEAPS_MS = (0, 1, 999, 1_000, 5_000, 21_000, 31_000, 60_000, 60_001)
_TOPICS = ("T", "U")


def use_member_part(name: str, seed: int, parts: Parts) -> None:
    """Use a part of a member, and again with further seeds. Raises GuaranteeBroken."""
    count, use = MEMBER_PARTS[name]
    for each in further_seeds(seed, count):
        use(each, parts)


def further_seeds(seed: int, count: int) -> Iterator[int]:
    """Yield a seed and others that follow from it, so that an operation holds only one."""
    return islice(count_from(seed, _SEED_STEP), count)


class _Run:
    """One run of a part: its clock, its brokers, its client and its draws."""

    def __init__(
        self, seed: int, parts: Parts, answering: Callable[[Ask, Random], tuple[Any, ...]], **given: Any
    ) -> None:
        self.rng = Random(seed)
        self.script = Script(seed, answering, now_ms=self.rng.choice(_BEGINS_MS))
        self.settings = ConsumerSettings(consumer_group=_GROUP, client_id=_ME, **given)
        self.client = Client(self.settings, self.script.connections(), incarnation="p", parts=parts)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.script.now_ms

    def times(self) -> Iterator[int]:
        """Yield the times of the steps. The driver notes when the part is due in `due_ms`."""
        self.due_ms = self.now_ms
        for _ in range(_STEPS):
            self.script.arrive()
            yield self.now_ms
            next_ms = min(self.due_ms, self.script.next_arrival_ms())
            if next_ms >= NEVER or self.rng.random() < 0.2:
                next_ms = self.now_ms + self.rng.choice(_LEAPS_MS)
            self.script.now_ms = max(next_ms - (self.rng.random() < 0.1), self.now_ms)


# ---- heartbeats ------------------------------------------------------------------------------------------------------


def _use_heartbeats(seed: int, parts: Parts) -> None:
    rng = Random(f"{seed} given")
    every_ms, timeout_ms, is_broadcasting = (
        rng.choice((30_000, 4_000, 500)),
        rng.choice((5_000, 700)),
        rng.random() < 0.3,
    )
    run = _Run(
        seed, parts, lambda ask, rng: ("Done",), heartbeat_broker_interval=every_ms, request_timeout=timeout_ms,
        message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
    )  # fmt: skip
    part = parts.of(Heartbeats)(run.client)
    model = Joining(_GROUP, "p", is_broadcasting, every_ms, timeout_ms, dict.fromkeys(BROKERS, 0))
    is_leaving = False
    for now_ms in run.times():
        if is_leaving:
            with run.script.step(16, "a member that leaves", run.client):
                model, expected = model.leave(now_ms, run.script)
                found = observed("leave", partial(part.leave, now_ms))
            differs(16, "the due times of a member that leaves", expected, found)
            if found is None:
                return
            run.due_ms = found
            continue
        if run.rng.random() < 0.1:
            model = model.woken()
            part.wake()
        topics = _TOPICS[: 1 + (run.rng.random() < 0.1)]
        with run.script.step(16, "heartbeats", run.client):
            model, run.due_ms = model.step(tuple((topic, "*", "TAG") for topic in topics), now_ms, run.script)
            found = observed("step", partial(part.step, tuple(map(Subscription, topics)), now_ms))
        differs(16, "the due times of heartbeats", run.due_ms, found)
        differs(16, "the brokers that have accepted a member", model.joined, frozenset(part.joined))
        is_leaving = run.rng.random() < 0.06


# ---- shares ----------------------------------------------------------------------------------------------------------


class _Joined:
    """What a round needs of the heartbeats."""

    def __init__(self) -> None:
        self.joined: set[str] = set(BROKERS)
        self.wakes = 0

    def wake(self) -> None:
        """Count a wish for a heartbeat."""
        self.wakes += 1


def _route_or_members(ask: Ask, rng: Random) -> tuple[Any, ...]:
    if ask.kind == "Members":
        return "MembersFound", tuple(sorted(rng.sample(("a", _ME, "d"), rng.choice((0, 1, 2, 3, 3)))))
    return "Routed", tuple((ask.about[0], ask.broker, number) for number in range(rng.choice((0, 1, 1, 2))))


def _every_other(me: str, queues: Sequence[Any], members: Sequence[str]) -> list[Any] | None:
    """Return the share by places; a view of two members has none."""
    if len(members) == 2:
        return None
    return [queue for place, queue in enumerate(queues) if place % len(members) == list(members).index(me)]


def _every_other_or_raise(me: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
    found = _every_other(me, queues, members)
    if found is None:
        raise ValueError("no share")
    return found


def _use_rebalance(seed: int, parts: Parts) -> None:
    rng = Random(f"{seed} given")
    every_ms, routes_ms = rng.choice((20_000, 1_500, 700)), rng.choice((30_000, 2_500, 700))
    timeout_ms, is_broadcasting = rng.choice((5_000, 700)), rng.random() < 0.15
    run = _Run(
        seed, parts, _route_or_members, rebalance_wait_interval=every_ms, poll_name_server_interval=routes_ms,
        request_timeout=timeout_ms,
        message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
    )  # fmt: skip
    joined = _Joined()
    part = parts.of(Rebalance)(run.client, _every_other_or_raise, cast("Heartbeats", joined))
    model = Dividing(_GROUP, _ME, is_broadcasting, BROKERS, every_ms, routes_ms, timeout_ms)
    topics = _TOPICS[: run.rng.randrange(3)]
    for now_ms in run.times():
        draw = run.rng.random()
        if draw < 0.15:
            joined.joined = set(run.rng.sample(BROKERS, run.rng.randrange(3)))
        elif draw < 0.25:
            model = model.woken(with_routes=False)
            part.wake()
        elif draw < 0.35:
            topics = _TOPICS[: run.rng.randrange(3)]
            model = model.woken(with_routes=True)
            part.wake_routes()
        joined.wakes = 0
        with run.script.step(16, "a member that divides queues", run.client):
            model, divided = model.step(
                topics, now_ms, run.script, joined=frozenset(joined.joined), strategy=_every_other
            )
            shares, due_ms = observed("step", partial(part.step, topics, now_ms))
        run.due_ms = divided.due_ms
        differs(16, "the shares of a member", dict(divided.shares), shares)
        differs(16, "the wishes for a heartbeat", divided.wants_heartbeat, bool(joined.wakes))
        differs(16, "the due times of a member that divides queues", divided.due_ms, due_ms)
        for topic in _TOPICS:
            differs(16, f"the queues of {topic}", model.queues_of(topic), part.queues_of(topic))


# ---- leases and hand-overs -------------------------------------------------------------------------------------------


_QUEUES = tuple((topic, broker, 0) for topic in _TOPICS for broker in BROKERS)
_HELD_STATES = ("CLAIMING", "CLAIMING", "STARTING", "ACTIVE", "ACTIVE", "DRAINING", "STORING", "UNLOCKING")


def _leases_or_progress(ask: Ask, rng: Random) -> tuple[Any, ...]:
    if ask.kind == "UpdateOffset":
        return ("Refused", "FENCED") if rng.random() < 0.1 else ("OffsetUpdated", "STORED", ask.about[2])
    if ask.kind == "UnlockQueues":
        return ("Done",)
    claims, renewals = ask.about[1], ask.about[2]
    granted = [(queue, (token, rng.randrange(1, 99))) for queue, token in claims]
    granted += [(queue, lease) for queue, lease in renewals]
    if rng.random() < 0.1:
        granted = [(queue, ("another", 1)) for queue, _ in granted]
    return "Locked", tuple(each for each in granted if rng.random() < 0.7)


class _Queues:
    """The queues of a member, each in the words of the library and of the model."""

    def __init__(self, run: _Run, parts: Parts) -> None:
        self._run, self._parts = run, parts
        self.held: dict[Any, Held] = {}
        self.holdings: dict[MessageQueue, Holding] = {}
        self._taken = 0

    def add(self, queue: Any, state: str) -> None:
        """Hold a queue in a drawn place of its life."""
        now_ms, rng = self._run.now_ms, self._run.rng
        self._taken += 1
        token = f"p-{self._taken:03d}"
        lease = None if state == "CLAIMING" else (token, rng.randrange(1, 9))
        locked_ms = now_ms - rng.choice((0, 1, 29_000, 30_000, 30_001))
        waiting = tuple(sorted(rng.sample(range(8), rng.choice((0, 0, 2, 3)))))
        held = Held(
            token, state, now_ms, now_ms, lease, is_locked=lease is not None, locked_ms=locked_ms, waiting=waiting,
            taken_end=rng.randrange(9), next_offset=8, running=rng.choice((0, 0, 1)), returning=rng.choice((0, 0, 1)),
            progress=rng.choice((None, 3, 4)),
        )  # fmt: skip
        cache = self._parts.of(ProcessQueue)(now_ms)
        cache.locked, cache.last_lock_timestamp = held.is_locked, locked_ms
        named = MessageQueue(*queue)
        cache.put_message([message_at(named, offset) for offset in waiting])
        self.held[queue] = held
        self.holdings[named] = Holding(
            named, token, Subscription(queue[0]), cache, HoldingState[state], lease and Lease(*lease), 8,
            held.taken_end, held.running, held.returning, since_ms=now_ms, retry_ms=now_ms,
        )  # fmt: skip

    def forget(self, queue: Any) -> None:
        """Hold a queue no longer, after its hand-over."""
        del self.held[queue]
        self.holdings.pop(MessageQueue(*queue)).enter(HoldingState.GONE, self._run.now_ms)

    def end_work(self, queue: Any) -> None:
        """End the batches and returns of a queue, so that nothing of it is cached."""
        self.held[queue] = replace(self.held[queue], running=0, returning=0, waiting=())
        holding = self.holdings[MessageQueue(*queue)]
        holding.running = holding.returning = 0
        holding.process_queue.clear()

    def compare(self, *queues: Any) -> None:
        """Compare everything of some queues."""
        for queue in queues:
            held = self.held[queue]
            holding = self.holdings[MessageQueue(*queue)]
            cache, lease = holding.process_queue, holding.lease
            found = replace(
                held, token=holding.token, state=holding.state.name, since_ms=holding.since_ms,
                retry_ms=holding.retry_ms, lease=None if lease is None else (lease.token, lease.epoch),
                is_locked=cache.locked, locked_ms=cache.last_lock_timestamp, is_dropped=cache.dropped,
                waiting=tuple(cache.msg_tree_map), taken_end=holding.taken_end, next_offset=holding.next_offset,
                running=holding.running, returning=holding.returning,
            )  # fmt: skip
            differs(22, f"the values of a queue in {held.state}", held, found)
            differs(22, "requests under way", held.sent is None, holding.call is None)


def _use_leases(seed: int, parts: Parts) -> None:
    rng = Random(f"{seed} given")
    is_orderly, is_broadcasting = rng.random() < 0.5, rng.random() < 0.05
    renew_ms, live_ms = rng.choice((20_000, 2_500, 700)), 30_000
    run = _Run(
        seed, parts, _leases_or_progress, orderly=is_orderly, rebalance_lock_interval=renew_ms,
        message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
    )  # fmt: skip
    queues = _Queues(run, parts)
    part = parts.of(Leases)(run.client, queues.holdings)
    model = Leasing(_GROUP, "p", is_orderly, is_broadcasting, renew_ms)
    for now_ms in run.times():
        queue, draw = run.rng.choice(_QUEUES), run.rng.random()
        if queue not in queues.held and draw < 0.6:
            queues.add(queue, run.rng.choice(_HELD_STATES))
        elif queue in queues.held and draw < 0.1 and queues.held[queue].state != "CLAIMING":
            queues.forget(queue)
        elif draw > 0.95:
            model = model.woken()
            part.wake()
        with run.script.step(22, "leases", run.client):
            model, queues.held, run.due_ms = model.step(queues.held, now_ms, run.script)
            found = observed("step", partial(part.step, now_ms))
        queues.compare(*queues.held)
        differs(22, "the due times of leases", run.due_ms, found)
        for each, held in queues.held.items():
            expected = is_usable(held, now_ms, live_ms=live_ms, is_broadcasting=is_broadcasting)
            holding = queues.holdings[MessageQueue(*each)]
            differs(20, "leases in use", expected, observed("is_usable", partial(part.is_usable, holding, now_ms)))


def _use_hand_over(seed: int, parts: Parts) -> None:
    rng = Random(f"{seed} given")
    is_orderly, is_broadcasting = rng.random() < 0.4, rng.random() < 0.1
    hand_over_ms, timeout_ms = rng.choice((30_000, 3_000)), rng.choice((5_000, 700))
    run = _Run(
        seed, parts, _leases_or_progress, orderly=is_orderly, hand_over_timeout=hand_over_ms,
        request_timeout=timeout_ms,
        message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
    )  # fmt: skip
    queues = _Queues(run, parts)
    offsets = parts.of(RemoteOffsets)(run.client)
    part = parts.of(HandOver)(run.client, offsets)
    model = HandingOver(_GROUP, "p", is_orderly, is_broadcasting, hand_over_ms, 30_000, timeout_ms)
    queue = _QUEUES[0]
    named = MessageQueue(*queue)
    for now_ms in run.times():
        if queue not in queues.held:
            queues.add(queue, run.rng.choice((*_HELD_STATES, "GONE", "LOST")))
            offsets.forget(named)
            if queues.held[queue].progress is not None:
                offsets.update(named, queues.held[queue].progress or 0, increase_only=False)
        holding, held = queues.holdings[named], queues.held[queue]
        acts: dict[str, Any] = {"begin": model.begun, "resume": model.resumed, "abandon": model.abandoned}
        draw = run.rng.random()
        if held.state in ("CLAIMING", "STARTING", "ACTIVE") or draw < 0.1:
            verb = run.rng.choice(("begin", "begin", "begin", "resume", "abandon"))
            queues.held[queue] = acts[verb](held, now_ms)
            observed(verb, partial(getattr(part, verb), holding, now_ms))
            queues.compare(queue)
        if draw > 0.9:
            queues.end_work(queue)
        with run.script.step(22, "a hand-over", run.client):
            queues.held[queue], run.due_ms = model.step(queue, queues.held[queue], now_ms, run.script)
            found = observed("step", partial(part.step, holding, now_ms))
        queues.compare(queue)
        differs(22, "the due times of a hand-over", run.due_ms, found)
        differs(22, "queues that are forgotten", is_over(queues.held[queue], is_orderly=is_orderly),
                parts.of(holding_is_over)(holding, orderly=is_orderly))  # fmt: skip
        if queues.held[queue].state in ("GONE", "LOST", "ACTIVE"):
            queues.forget(queue)
            run.due_ms = now_ms


# ---- first offsets ---------------------------------------------------------------------------------------------------

_PLACES = (("T", BROKERS[0], 0), ("T", BROKERS[0], 1), ("T", BROKERS[1], 0), ("%RETRY%g", BROKERS[0], 0))
_BEGINS = {
    "FIRST": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "LAST": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "TIMESTAMP": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
}


def _first_offset(ask: Ask, rng: Random) -> tuple[Any, ...]:
    match ask.kind:
        case "QueryBounds":
            return "Bounds", rng.randrange(3), rng.randrange(3, 9)
        case "SearchOffset":
            return "OffsetFound", "FOUND", rng.randrange(20, 30), False
        case "UpdateOffset":
            return "OffsetUpdated", rng.choice(("STORED", "NOT_ABOVE")), ask.about[2]
    status, is_known = rng.choice(("FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_STORED")), rng.random() < 0.2
    return "OffsetFound", status, {"FOUND": rng.randrange(1, 9), "NOT_FOUND": -1, "NOT_STORED": 0}[status], is_known


def _use_first_offsets(seed: int, parts: Parts) -> None:
    rng = Random(f"{seed} given")
    begins, timeout_ms = rng.choice(tuple(_BEGINS)), rng.choice((5_000, 700))
    time_ms = 77 if begins == "TIMESTAMP" else rng.choice((None, 78))
    run = _Run(
        seed, parts, _first_offset, consume_from_where=_BEGINS[begins], consume_timestamp_ms=time_ms,
        request_timeout=timeout_ms,
    )  # fmt: skip
    part = parts.of(FirstOffsets)(run.client, parts.of(RemoteOffsets)(run.client))
    model = Starting(_GROUP, begins, time_ms, timeout_ms)
    queues = _Queues(run, parts)
    for now_ms in run.times():
        for queue in run.rng.sample(_PLACES, run.rng.choice((0, 0, 1, 3))):
            if queue not in queues.held:
                queues.add(queue, "STARTING")
        for queue in run.rng.sample(_PLACES, run.rng.choice((0, 0, 1, 3))):
            model = model.want([queue])
            part.want([MessageQueue(*queue)])
        if run.rng.random() < 0.1:
            queue = run.rng.choice(_PLACES)
            model = model.again(queue)
            part.decide_again(MessageQueue(*queue))
        for queue, held in tuple(queues.held.items()):
            holding = queues.holdings[MessageQueue(*queue)]
            with run.script.step(21, "the begin of a queue", run.client):
                model, queues.held[queue], expected = model.start_of(queue, held, now_ms, run.script)
                offset = observed("start_of", partial(part.start_of, holding, now_ms))
            differs(21, "the first offsets of queues", expected, offset)
            queues.compare(queue)
            if offset is not None:
                queues.forget(queue)
        with run.script.step(21, "first offsets", run.client):
            model, run.due_ms = model.step(now_ms, run.script)
            found = observed("step", partial(part.step, now_ms))
        differs(21, "the due times of first offsets", run.due_ms, found)


# ---- batches and results ---------------------------------------------------------------------------------------------

_RESULTS = ("SUCCESS", "SUCCESS", "COMMIT", "ROLLBACK", "SUSPEND", "RECONSUME_LATER", "none")
_STATUSES: dict[str, Any] = {
    "SUCCESS": OrderlyStatus.SUCCESS, "COMMIT": OrderlyStatus.COMMIT, "ROLLBACK": OrderlyStatus.ROLLBACK,
    "SUSPEND": OrderlyStatus.SUSPEND, "RECONSUME_LATER": ConcurrentStatus.RECONSUME_LATER, "none": None,
}  # fmt: skip
_LISTENED = tuple((topic, BROKERS[number % 2], number) for number, topic in enumerate(("T", "T", "%RETRY%g")))


class _Lent:
    """The leases of queues, as far as a listener needs them: drawn ones."""

    def __init__(self) -> None:
        self.unusable: set[MessageQueue] = set()

    def is_usable(self, holding: Holding, now_ms: int) -> bool:
        """Return whether the lease of a queue may be used."""
        return holding.queue not in self.unusable


class _Listener:
    """A consumption of the library and its model, with the queues of both."""

    def __init__(self, seed: int, parts: Parts) -> None:
        rng = Random(f"{seed} given")
        self.is_orderly, is_broadcasting = rng.random() < 0.5, rng.random() < 0.15
        times_max, size, timeout_ms = rng.choice((0, 1, 2, 16)), rng.choice((1, 2, 3)), rng.choice((5_000, 700))
        pause_ms = rng.choice((1_000, 5, 40_000, 2_000))
        self.run = run = _Run(
            seed, parts, lambda ask, rng: ("SentBack", rng.choice(("RETRY", "RETRY", "REPEATED", "DEAD_LETTER"))),
            orderly=self.is_orderly, max_reconsume_times=times_max, consume_message_batch_max_size=size,
            suspend_current_queue_time_millis=pause_ms, request_timeout=timeout_ms,
            message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
        )  # fmt: skip
        self.rng = run.rng
        self.offsets = parts.of(RemoteOffsets)(run.client)
        self.leases = _Lent()
        self.holdings = {
            named: Holding(named, "p-1", Subscription(named.topic), parts.of(ProcessQueue)(0), HoldingState.ACTIVE)
            for named in (MessageQueue(*queue) for queue in _LISTENED)
        }
        self.sources = {queue: Source() for queue in _LISTENED}
        given: dict[str, Any] = {"offsets": self.offsets, "leases": self.leases}
        kind: Any = parts.of(OrderlyPart) if self.is_orderly else parts.of(ConcurrentPart)
        self.part = kind(run.client, self.holdings, **given)
        returning = Returning(_GROUP, BROKERS, times_max, timeout_ms)
        self.model: Any = (
            Orderly(size, is_broadcasting, times_max, pause_ms, returning)
            if self.is_orderly
            else Concurrent(size, is_broadcasting, returning)
        )
        self.batches: list[tuple[Batch, Given]] = []
        self.lives = self.last_number = 0

    # ---- pulls and hand-overs ----------------------------------------------------------------------------------------

    def pull(self, queue: Any) -> None:
        """Cache the next messages of a queue."""
        source = self.sources[queue]
        if source.state != "ACTIVE":
            return
        first = max([source.cache.last, *source.cache.waiting, *source.cache.taken]) + 1
        made = [self._message(queue, first + step) for step in range(self.rng.randrange(1, 4))]
        cache, _ = source.cache.put({each.offset: len(each.copied[1]) for _, each in made})
        lives = {**source.messages, **{each.offset: each for _, each in made}}
        self.sources[queue] = replace(source, cache=cache, messages=lives)
        holding = self.holdings[MessageQueue(*queue)]
        holding.process_queue.put_message([message for message, _ in made])
        if not self.is_orderly:
            self.model = self.model.submit(queue, [each for _, each in made])
        self.part.submit(holding, [message for message, _ in made])

    def _message(self, queue: Any, offset: int) -> tuple[ConsumerMessage, Pulled]:
        self.lives += 1
        rng, named = self.rng, MessageQueue(*queue)
        properties = rng.choice(({}, {"ORIGIN_MESSAGE_ID": "first", "A": "b"}))
        times = rng.choice((0, 0, 1, 2))
        stored = replace(
            message_at(named, offset).stored, message_id=f"id{self.lives}", properties=properties,
            flag=rng.randrange(3), born_timestamp=self.lives, reconsume_times=rng.choice((times, 0)),
            body=bytes(rng.randrange(3)),
        )  # fmt: skip
        message = ConsumerMessage(stored, named, "T", 0, times)
        copied = (
            "T", stored.body, tuple(sorted(properties.items())), stored.flag, stored.born_timestamp, stored.born_host,
            properties.get("ORIGIN_MESSAGE_ID", stored.message_id),
        )  # fmt: skip
        pulled = Pulled(
            queue, offset, self.lives, stored.offset, identity_of(stored), stored.message_id, copied, times,
            stored.reconsume_times,
        )  # fmt: skip
        return message, pulled

    def move(self, queue: Any) -> None:
        """Begin a hand-over, call it off, or lose the queue."""
        source, holding = self.sources[queue], self.holdings[MessageQueue(*queue)]
        if source.state == "ACTIVE" and self.rng.random() < 0.8:
            holding.state = HoldingState.DRAINING
            source = replace(source, state="DRAINING")
            if not self.is_orderly:
                cache, first = source.cache.cut(source.taken_end)
                source = replace(source, cache=cache)
                differs(22, "the messages that are forgotten", first, holding.process_queue.cut(holding.taken_end))
        elif source.state == "DRAINING" and self.rng.random() < 0.8:
            holding.state, source = HoldingState.ACTIVE, replace(source, state="ACTIVE")
        elif not source.is_dropped:
            holding.lose(self.run.now_ms)
            source = replace(source, state="LOST", is_dropped=True)
        self.sources[queue] = source

    # ---- batches -----------------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Take a batch."""
        now_ms, script = self.run.now_ms, self.run.script
        with script.step(23, "a listener that begins", self.run.client):
            given: tuple[Any, ...] = (now_ms,) if self.is_orderly else (script,)
            self.model, self.sources, expected = self.model.take(self.sources, *given)
            batch = observed("take", partial(self.part.take, now_ms))
        wanted = expected and (expected.queue, [(each.offset, each.times) for each in expected.messages], now_ms)
        found = batch and (
            tuple(batch.queue), [(each.queue_offset, each.reconsume_times) for each in batch.messages], batch.began_ms
        )  # fmt: skip
        differs(19, "the messages of a batch", wanted, found)
        if batch is not None and expected is not None:
            differs(16, "the numbers of batches", True, batch.number > self.last_number)
            self.last_number = batch.number
            self.batches.append((batch, expected))

    def finish(self) -> None:
        """End a running batch."""
        batch, given = self.batches.pop(self.rng.randrange(len(self.batches)))
        now_ms, script, rng = self.run.now_ms, self.run.script, self.rng
        result, source = rng.choice(_RESULTS), self.sources[given.queue]
        with script.step(23, "a listener that ends", self.run.client):
            if self.is_orderly:
                asked_ms, auto = rng.choice((None, None, -1, 0, 9, 500, 30_001)), rng.random() < 0.7
                self.model, source = self.model.finish(
                    source, given, result, now_ms, script, asked_ms=asked_ms, auto=auto
                )
                named: dict[str, Any] = {"suspend_ms": asked_ms, "auto_commit": auto}
                status = _STATUSES[result]
            else:
                ack_index, level = rng.choice((None, None, -1, 0, 1, 5)), rng.choice((0, 0, -1, 2))
                is_success = result == "SUCCESS"
                self.model, source = self.model.finish(
                    source, given, script, is_success=is_success, ack_index=ack_index, level=level
                )
                named = {"ack_index": ack_index, "delay_level": level}
                status = ConcurrentStatus.CONSUME_SUCCESS if is_success else _STATUSES.get(result)
            self.sources[given.queue] = source
            observed("finish", partial(self.part.finish, batch, status, now_ms, **named))

    def step(self) -> int:
        """Step both; return when the next step is due."""
        now_ms, script = self.run.now_ms, self.run.script
        with script.step(23, "messages that are sent back", self.run.client):
            self.model, self.sources, due_ms = self.model.step(self.sources, now_ms, script)
            found = observed("step", partial(self.part.step, now_ms))
        differs(23, "the due times of a listener", due_ms, found)
        return int(due_ms)

    def compare(self) -> None:
        """Compare each queue, and the tries of its messages."""
        for queue, source in self.sources.items():
            holding = self.holdings[MessageQueue(*queue)]
            cache = holding.process_queue
            cached = {**source.cache.waiting, **source.cache.taken}
            expected = (
                sorted(source.cache.waiting), sorted(source.cache.taken), source.cache.count, source.cache.size,
                source.running, source.returning, source.progress,
                {each: source.messages[each].times for each in cached},
            )  # fmt: skip
            both = {**cache.msg_tree_map, **cache.consuming_msg_orderly_tree_map}
            found = (
                list(cache.msg_tree_map), list(cache.consuming_msg_orderly_tree_map), cache.msg_count, cache.msg_size,
                holding.running, holding.returning, self.offsets.get(holding.queue),
                {offset: message.reconsume_times for offset, message in both.items()},
            )  # fmt: skip
            differs(19, "the messages of a queue with a listener", expected, found)
            if self.is_orderly:
                differs(20, "the pauses of a queue", source.pause_until_ms, holding.pause_until_ms)
                differs(20, "the begins of runs in a row", source.since_ms, holding.continuous_since_ms)
            else:
                differs(22, "the ends of what is taken", source.taken_end, holding.taken_end)


def _use_listener(seed: int, parts: Parts) -> None:
    listener = _Listener(seed, parts)
    run, rng = listener.run, listener.rng
    is_broadcasting = run.settings.is_broadcasting
    for _ in run.times():
        for _ in range(rng.randrange(1, 4)):
            queue, draw = rng.choice(_LISTENED), rng.random()
            if draw < 0.35:
                listener.pull(queue)
            elif draw < 0.45:
                listener.move(queue)
            elif draw < 0.5 and not is_broadcasting:
                source = listener.sources[queue]
                listener.sources[queue] = replace(source, is_usable=not source.is_usable)
                listener.leases.unusable ^= {MessageQueue(*queue)}
            elif draw < 0.8 and len(listener.batches) < 3:
                listener.take()
            elif listener.batches:
                listener.finish()
            listener.compare()
        run.due_ms = listener.step()
        listener.compare()


# ---- pulls -----------------------------------------------------------------------------------------------------------


class _Submitted:
    """Notes what a pull gives to the listener."""

    def __init__(self) -> None:
        self.messages: tuple[tuple[int, str], ...] = ()

    def submit(self, holding: Holding, messages: Sequence[ConsumerMessage]) -> None:
        """Note messages."""
        self.messages = tuple((message.queue_offset, message.topic) for message in messages)


def _pulled(ask: Ask, rng: Random, *, is_poor: bool) -> tuple[Any, ...]:
    if ask.kind == "QueryBounds":
        least = rng.randrange(9)
        return "Bounds", least, least + rng.randrange(12)
    begin, end = ask.about[2], ask.about[2] + rng.randrange(5)
    others = "NO_NEW_MSG", "NO_MATCHED_MSG", "OFFSET_ILLEGAL"
    status = rng.choice(("FOUND", *others)) if is_poor else rng.choice(("FOUND",) * 3 + others)
    first = max(0, begin - (rng.random() < 0.1))
    sizes, tags = (0, 1, 7, _MIB // 2, _MIB), ("A", "A", "B", "C")
    messages = tuple(
        (first + step, rng.choice(sizes), rng.choice(tags), rng.choice(("", "first")))
        for step in range(rng.randrange(1, 5))
    )
    following = messages[-1][0] + 1
    if status != "FOUND":
        messages, following = (), rng.choice((begin, begin, begin + 1, max(0, begin - 1)))
    return "Pulled", status, following, 0, max(end, following), messages


_MIB = 1 << 20
_SUBSCRIBED = (("*", ()), ("A", ("A",)), ("A || B", ("A", "B")), ("Z", ("Z",)))


def _settings_of_pulls(rng: Random) -> tuple[dict[str, Any], dict[str, int]]:
    """Return drawn limits of a queue, and drawn times and sizes of its pulls."""
    given: dict[str, Any] = {
        "orderly": rng.random() < 0.3,
        "message_model": MessageModel.BROADCASTING if rng.random() < 0.15 else MessageModel.CLUSTERING,
        "pull_threshold_for_queue": rng.choice((1, 2, 3, 1_000)),
        "pull_threshold_size_for_queue": rng.choice((1, 2, 100)),
        "pull_threshold_for_topic": -1, "pull_threshold_size_for_topic": -1,
        "consume_concurrently_max_span": rng.choice((1, 3, 2_000)),
    }  # fmt: skip
    times = {
        "pull_interval": rng.choice((0, 0, 30)), "pull_time_delay_mills_when_suspend": rng.choice((1_000, 300)),
        "pull_time_delay_mills_when_flow_control": rng.choice((50, 20)),
        "pull_time_delay_mills_when_exception": rng.choice((1_000, 400)), "pull_batch_size": rng.choice((1, 2, 32)),
        "broker_suspend_max_time_millis": rng.choice((15_000, 600)), "request_timeout": rng.choice((5_000, 700)),
        "consumer_timeout_millis_when_suspend": rng.choice((30_000, 16_000)),
    }  # fmt: skip
    return given, times


class _Pulls:
    """The pulls of one queue of the library, and their model."""

    def __init__(self, seed: int, parts: Parts) -> None:
        rng = Random(f"{seed} given")
        given, times = _settings_of_pulls(rng)
        self.run = _Run(seed, parts, partial(_pulled, is_poor=rng.random() < 0.4), **given, **times)
        self._is_broadcasting = given["message_model"] is MessageModel.BROADCASTING
        self._is_paused = False
        rng = self.run.rng
        queue = (rng.choice(("T", "%RETRY%g")), BROKERS[0], 0)
        self._named = MessageQueue(*queue)
        expression, tags = rng.choice(_SUBSCRIBED)
        lease = ("p-1", rng.randrange(1, 9))
        self._place = Place(lease=lease, next_offset=(begin := rng.randrange(4)), progress=rng.choice((None, begin)))
        self._holding = Holding(
            self._named,
            "p-1",
            Subscription(queue[0], expression),
            parts.of(ProcessQueue)(0),
            HoldingState.ACTIVE,
            Lease(*lease),
            begin,
        )
        self._offsets, self._leases = parts.of(RemoteOffsets)(self.run.client), _Lent()
        self._submitted = _Submitted()
        if self._place.progress is not None:
            self._offsets.update(self._named, self._place.progress, increase_only=False)
        others: dict[str, Any] = {
            "offsets": self._offsets, "leases": self._leases, "consumption": self._submitted,
        }  # fmt: skip
        flow_control = flow_control_of(self.run.settings, 1)
        self._part = parts.of(PullLoop)(self.run.client, self._holding, **others, flow_control=flow_control)
        self._model = Pulling(
            _GROUP, queue, (queue[0], expression, "TAG"), frozenset(tags), self._is_broadcasting,
            times["pull_batch_size"], times["broker_suspend_max_time_millis"],
            times["consumer_timeout_millis_when_suspend"], times["request_timeout"], times["pull_interval"],
            times["pull_time_delay_mills_when_suspend"], times["pull_time_delay_mills_when_flow_control"],
            times["pull_time_delay_mills_when_exception"],
        )  # fmt: skip
        self._limits = limits_of(given, 1)

    def disturb(self, now_ms: int) -> None:
        """Often change what pulls depend on.

        That is a pause, the lease, cached messages, the state, or the next offset.
        """
        rng, place, holding = self.run.rng, self._place, self._holding
        draw = rng.random()
        if draw < 0.1:
            self._is_paused = not self._is_paused
        elif draw < 0.2 and not self._is_broadcasting:
            self._place = replace(place, is_usable=not place.is_usable)
            self._leases.unusable ^= {self._named}
        elif draw < 0.5 and place.cache.waiting:
            gone = sorted(place.cache.waiting)[: rng.randrange(1, 3)]
            cache, progress = place.cache.remove(gone)
            self._place = replace(place, cache=cache, progress=progress)
            removed = [message_at(self._named, each) for each in gone]
            first = holding.process_queue.remove_message(removed, now_ms)
            self._offsets.update(self._named, first, increase_only=False)
        elif draw < 0.55:
            holding.state = HoldingState.DRAINING if holding.state is HoldingState.ACTIVE else HoldingState.ACTIVE
            self._place = replace(place, state=holding.state.name)
        elif draw < 0.6:
            back = max(0, place.next_offset - rng.randrange(3))
            if not place.cache.waiting or back > max(place.cache.waiting):
                self._place, holding.next_offset = replace(place, next_offset=back), back

    def step(self, now_ms: int) -> bool:
        """Step both, and compare them; return whether the consumer takes the queue from here."""
        run, holding = self.run, self._holding
        self._submitted.messages = ()
        with run.script.step(16, "pulls", run.client):
            self._model, place, run.due_ms = self._model.step(
                self._place, self._limits, now_ms, run.script, is_paused=self._is_paused
            )
            found = observed("step", partial(self._part.step, now_ms, is_paused=self._is_paused))
        self._place = place
        differs(16, "the due times of pulls", run.due_ms, found)
        pulled = holding.process_queue
        differs(
            19, "the values of a queue that is pulled",
            (place.state, place.next_offset, place.max_offset, place.wants_restart, place.progress, place.submitted,
             sorted(place.cache.waiting), place.cache.size, place.pulled_ms, place.is_dropped),
            (holding.state.name, holding.next_offset, holding.max_offset, holding.wants_restart,
             self._offsets.get(self._named), self._submitted.messages, list(pulled.msg_tree_map), pulled.msg_size,
             pulled.last_pull_timestamp, pulled.dropped),
        )  # fmt: skip
        return place.state == "LOST" or place.wants_restart


def _use_pulls(seed: int, parts: Parts) -> None:
    pulls = _Pulls(seed, parts)
    for now_ms in pulls.run.times():
        pulls.disturb(now_ms)
        if pulls.step(now_ms):
            return


MEMBER_PARTS: dict[str, tuple[int, Callable[[int, Parts], None]]] = {
    "heartbeats": (4, _use_heartbeats),
    "rebalance": (2, _use_rebalance),
    "leases": (2, _use_leases),
    "hand_over": (3, _use_hand_over),
    "first_offsets": (1, _use_first_offsets),
    "listener": (2, _use_listener),
    "pulls": (4, _use_pulls),
    "running": (8, use_running),
    "calls": (3, use_calls),
    "pull_consumer": (4, use_pull_consumer),
    "subscriptions": (4, use_subscriptions),
    "restarts": (3, use_restarts),
}
"""The parts by name. A quick part is used with several seeds at a time."""
