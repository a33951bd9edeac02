"""Use the calls of a client, and those of a pull consumer (contracts 8, 11, 16).

The client has a connection to a broker in its process. The broker serves a stand-in for a store, which notes each pull
and ends held ones at drawn times. Each outcome is compared with the model of calls, when it is looked at and at the
end. The clients know one broker of two.
"""

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from random import Random
from typing import Any, cast

from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.client import Client, due_of
from tornpage.impl.consumer.connection import Call, DirectConnection
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Done,
    Heartbeat,
    MembersChanged,
    OffsetFound,
    Pull,
    Pulled,
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
from tornpage.impl.consumer.settings import BrokerSettings, ConsumerSettings
from tornpage.impl.errors import BadConfig, BadFilter, NotReadable, StoreClosed, StoreError, TooManyHeldPulls
from tornpage.impl.message.message import GetStatus
from tornpage.impl.parts import Parts
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.store import MessageStore
from tornpage.model.consumers.member.calling import UNREACHABLE, Called, answer_of, refusal_of
from tornpage.model.consumers.settings import SUBSCRIBED
from tornpage.properties.consumers.scripted import differs
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["use_calls", "use_pull_consumer", "use_subscriptions"]

_STEPS = 30
_GROUP, _ME, _KNOWN, _OTHER = "g", "c", "broker-a", "broker-b"
_VERBS = ("pull", "pull", "pull", "answer", "answer", "answer", "time", "ask", "notify", "notices", "watch")
_TIMES_MS = (1, 99, 100, 1_000)
_TIMEOUTS_MS = (100, 1_000)
_FINDINGS_MAX = 100
_SELECTED: tuple[tuple[str, str, type[Any]], ...] = (
    ("*", "TAG", TagFilter), ("A || B", "TAG", TagFilter), ("a = 'b'", "SQL92", PropertyFilter),
)  # fmt: skip


# ---- the store -------------------------------------------------------------------------------------------------------


class _Buffer:
    """A buffer of one message, which is a text here."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_released = False

    def message(self) -> str:
        """Copy the message."""
        if self.is_released:
            raise GuaranteeBroken(11, "a released buffer is read")
        return self.text

    def release(self) -> None:
        """Release it."""
        self.is_released = True


class _Store:
    """Stand in for a store. `pulls` are its pulls that wait, with the offset of each."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.pulled: list[tuple[Any, ...]] = []
        self.pulls: list[tuple[int, Future[Any]]] = []
        self.buffers: list[_Buffer] = []
        self.committed: list[tuple[str, str, int, int]] = []
        self.at_once: tuple[Any, ...] = ()

    def subscription_groups(self) -> dict[str, Any]:
        return {}

    def consumer_offsets(self, _topic: str) -> dict[str, dict[int, int]]:
        return {}

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        self.committed.append((group, topic, queue_id, offset))
        return offset

    def save_offsets(self) -> None:
        """Do nothing."""

    def offset_in_queue_by_time(self, _topic: str, queue_id: int, timestamp_ms: int) -> int:
        return queue_id + timestamp_ms

    def pull_async(self, group: str, topic: str, **given: Any) -> "Future[Any]":
        """Note a pull. Answer it at once, hold it, or refuse it."""
        selects = given.pop("message_filter")
        self.pulled.append((group, topic, given, type(selects)))
        draw, pending = self._rng.random(), Future[Any]()
        self.at_once = ()
        if draw < 0.1:
            error = _error(self._rng, refused=True)
            self.at_once = refusal_of(type(error).__name__, str(error))
            raise error
        if draw < 0.4 or not given["hold_ms"]:
            self.at_once = self.answer(given["offset"], pending)
        else:
            self.pulls.append((given["offset"], pending))
        return pending

    def answer(self, offset: int, pending: "Future[Any]") -> tuple[Any, ...]:
        """End a pull with a drawn answer; return what its client has to get."""
        rng = self._rng
        if rng.random() < 0.2:
            error = _error(rng, refused=False)
            pending.set_exception(error)
            return refusal_of(type(error).__name__, str(error))
        status, texts = rng.choice(tuple(GetStatus)), tuple(f"m{place}" for place in range(rng.randrange(3)))
        texts = texts if status is GetStatus.FOUND else ()
        buffers = [_Buffer(text) for text in texts]
        self.buffers += buffers
        bounds = rng.randrange(1, 9), rng.randrange(10, 19), rng.randrange(20, 29)
        found = GetMessageResult(status, *bounds, messages=cast("Any", buffers))
        pending.set_result(found)
        return answer_of(status.name, offset, bounds, texts)


def _error(rng: Random, *, refused: bool) -> StoreError | OSError:
    errors: list[StoreError | OSError] = [StoreClosed("/store"), NotReadable("/store")]
    return rng.choice([*errors, TooManyHeldPulls(7) if refused else OSError(5, "no disk")])


# ---- calls -----------------------------------------------------------------------------------------------------------


class _Faults(logging.Handler):
    """Keep what a callback of a future raises: the future logs it, and nothing else sees it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(str(record.exc_info and record.exc_info[1]))


class _Run:
    """One client with a connection to a broker in its process."""

    def __init__(self, seed: int, parts: Parts) -> None:
        self.rng = rng = Random(seed)
        self.now_ms = rng.choice((0, 5_000))
        self.holds = rng.random() < 0.8
        self.store = _Store(rng)
        settings = BrokerSettings(broker_name=_KNOWN, long_polling=self.holds)
        self.broker = parts.of(ConsumerBroker)(
            cast("MessageStore", self.store), settings, now_ms=self.now_ms, parts=parts
        )
        self.connection = DirectConnection(self.broker, _ME)
        self.timeout_ms = rng.choice(_TIMEOUTS_MS)
        self.client = Client(
            ConsumerSettings(consumer_group=_GROUP, client_id=_ME, request_timeout=self.timeout_ms),
            {_KNOWN: self.connection}, incarnation="p", parts=parts,
        )  # fmt: skip
        self.calls: list[tuple[Call, Called]] = []
        self.held: dict[int, int] = {}
        self.wakes = 0
        self.is_watched = self.is_closed = False

    def _wake(self) -> None:
        self.wakes += 1

    # ---- calls -------------------------------------------------------------------------------------------------------

    def step(self, verb: str) -> None:
        """Do one thing, and compare."""
        rng, before, ended = self.rng, self.wakes, 0
        match verb:
            case "pull":
                self._pull()
            case "answer" if self.store.pulls:
                ended = self._answer()
            case "time":
                self.now_ms += rng.choice(_TIMES_MS)
            case "ask":
                self._ask()
            case "notify":
                self._notify()
            case "notices":
                differs(16, "the notices of a client", [], list(observed("notices", self.connection.notices)))
            case "watch":
                observed("watch", partial(self.connection.watch, self._wake))
                self.is_watched = True
            case "close":
                ended = self._close()
        wakes = ended if self.is_watched else 0
        differs(16, "the wake-ups of a client", wakes, self.wakes - before)
        self._look()

    def _call(self, request: Request, *, broker: str, timeout_ms: int | None) -> tuple[Call, Called]:
        """Send a request; return the call and its model."""
        call = observed(
            "call", partial(self.client.call, broker, request, self.now_ms, **_given(timeout_ms=timeout_ms))
        )
        called = Called(self.now_ms + (self.timeout_ms if timeout_ms is None else timeout_ms))
        differs(16, "the deadlines of calls", called.deadline_ms, call.deadline_ms)
        differs(16, "the requests of calls", request, call.request)
        if broker == _OTHER or self.is_closed:
            called = called.ended(UNREACHABLE)
        return call, called

    def _pull(self) -> None:
        rng, queue_id = self.rng, self.rng.randrange(3)
        expression, kind, selects = rng.choice(_SELECTED)
        broker, timeout_ms = rng.choice((_KNOWN, _KNOWN, _KNOWN, _OTHER)), rng.choice((None, *_TIMEOUTS_MS))
        offset, count, hold_ms = rng.choice((0, 0, 3, 7)), rng.randrange(1, 40), rng.choice((0, 50, 500))
        queue = MessageQueue("T", broker, queue_id)
        request = Pull(_GROUP, queue, offset, Subscription("T", expression, kind), count, hold_ms)
        self.store.pulled, waiting = [], len(self.store.pulls)
        call, called = self._call(request, broker=broker, timeout_ms=timeout_ms)
        if called.outcome is None:
            given = {
                "queue_id": queue_id, "offset": offset, "hold_ms": hold_ms if self.holds else 0, "max_msg_nums": count,
            }  # fmt: skip
            differs(16, "the pulls of a store", [(_GROUP, "T", given, selects)], self.store.pulled)
            if self.store.at_once:
                called = called.ended(self.store.at_once)
            if len(self.store.pulls) > waiting:
                self.held[len(self.calls)] = waiting
        self.calls.append((call, called))

    def _answer(self) -> int:
        """Let the store end a pull; return whether a call had waited for it."""
        rng = self.rng
        if not self.held:
            return 0
        number = rng.choice(sorted(self.held))
        place = self.held.pop(number)
        offset, pending = self.store.pulls[place]
        if rng.random() < 0.5:
            pending.set_running_or_notify_cancel()
        call, called = self.calls[number]
        self.calls[number] = call, called.ended(self.store.answer(offset, pending))
        return 1

    def _close(self) -> int:
        """End the connection; return the number of held pulls that end with it.

        A pull whose answer is under way cannot be called off. Its answer comes too late.
        """
        late = []
        for place in self.held.values():
            offset, pending = self.store.pulls[place]
            if self.rng.random() < 0.3:
                pending.set_running_or_notify_cancel()
                late.append((offset, pending))
        observed("close", self.connection.close)
        for number, place in self.held.items():
            call, called = self.calls[number]
            self.calls[number] = call, called.ended(UNREACHABLE)
            is_late = any(each is self.store.pulls[place][1] for _, each in late)
            differs(16, "the pulls that wait after their client", is_late, not self.store.pulls[place][1].cancelled())
        ended, self.is_closed = len(self.held), True
        self.held.clear()
        kept = tuple(self.store.buffers)
        for offset, pending in late:
            self.store.answer(offset, pending)
        self.store.buffers[:] = kept  # the store takes the buffers of an answer back that has no reader
        return ended

    def _ask(self) -> None:
        """Ask for something that is answered at once."""
        queue_id, time_ms = self.rng.randrange(3), self.rng.randrange(9)
        request = SearchOffset(MessageQueue("T", _KNOWN, queue_id), time_ms)
        call, called = self._call(request, broker=self.rng.choice((_KNOWN, _OTHER)), timeout_ms=None)
        self.calls.append((call, called.ended(("OffsetFound", "FOUND", queue_id + time_ms, False))))

    def _notify(self) -> None:
        queue = MessageQueue("T", self.rng.choice((_KNOWN, _OTHER)), self.rng.randrange(3))
        request = UpdateOffset(_GROUP, queue, self.rng.randrange(9))
        observed("notify", partial(self.client.notify, queue.broker_name, request, self.now_ms))
        arrives = queue.broker_name == _KNOWN and not self.is_closed
        expected = [(_GROUP, "T", queue.queue_id, request.offset)] if arrives else []
        differs(16, "the requests without an answer", expected, self.store.committed)
        self.store.committed.clear()

    # ---- outcomes ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at some calls, and compare their outcomes."""
        for number, (call, called) in enumerate(self.calls):
            if self.rng.random() < 0.6:
                continue
            if self.rng.random() < 0.5:
                after = called.looked_at(self.now_ms)
                due_ms = called.deadline_ms if after.outcome is None else self.now_ms
                differs(16, "the due times of calls", due_ms, observed("due_of", partial(due_of, call, self.now_ms)))
                called = after
            self.calls[number] = call, called
            error = called.outcome if called.outcome is not None and len(called.outcome) == 1 else None
            differs(16, "the errors of calls", error, _error_of(call))
            answer = None if error else called.outcome
            differs(16, "the answers of calls", answer, call.answer and _plain(call.answer))
            after = called.looked_at(self.now_ms)
            found = observed("outcome", partial(call.outcome, self.now_ms))
            differs(16, "the outcomes of calls", after.outcome, found and _plain(found))
            self.calls[number] = call, after

    def end(self) -> None:
        """End the connection twice, and judge what is left."""
        for _ in range(2):
            self.step("close")
        for verb in ("pull", "ask", "notify", "notices"):
            self.step(verb)
        if not all(buffer.is_released for buffer in self.store.buffers):
            raise GuaranteeBroken(11, "the buffers of a pull are not released after their messages were copied")
        self._find()
        self._names()

    def _find(self) -> None:
        """Tell operators of more than is kept."""
        findings, sentences = self.client.findings, [f"number {number}" for number in range(self.rng.randrange(205))]
        for sentence in sentences:
            for _ in range(self.rng.choice((1, 1, 2))):
                observed("add", partial(findings.add, sentence))
        differs(16, "the findings of a member", tuple(sentences[-_FINDINGS_MAX:]), findings.all)

    def _names(self) -> None:
        """Ask for the next broker by name, and for tokens."""
        names = self.rng.sample(("a", "b", "c"), self.rng.randrange(3))
        client = Client(self.client.settings, dict.fromkeys(names, self.connection), incarnation="p", parts=Parts())
        asked = self.rng.choice("abc")
        later = sorted(name for name in names if name > asked)
        expected = (later or sorted(names) or [asked])[0]
        differs(
            16, "the brokers after another one", expected, observed("broker_after", lambda: client.broker_after(asked))
        )
        tokens = [observed("next_token", client.next_token) for _ in range(12)]
        differs(22, "the tokens of a process", sorted(set(tokens)), tokens)


def _given(**named: Any) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value is not None}


def _plain(outcome: Any) -> tuple[Any, ...]:
    """Return an outcome in the words of the model."""
    match outcome:
        case Pulled(status, following, least, most, messages):
            return "Pulled", status.name, following, least, most, messages
        case Refused(reason, sentence):
            return "Refused", reason.name, sentence
        case OffsetFound(status, offset, is_known):
            return "OffsetFound", status.name, offset, is_known
    return (outcome.name,)


def use_calls(seed: int, parts: Parts) -> None:
    """Use the calls of a client with a broker in its process. Raises GuaranteeBroken."""
    run, faults, log = _Run(seed, parts), _Faults(), logging.getLogger("concurrent.futures")
    log.addHandler(faults)
    try:
        for _ in range(_STEPS):
            run.step(run.rng.choice(_VERBS))
        run.end()
    except CancelledError as error:
        raise GuaranteeBroken(8, "an outcome of a call raises CancelledError") from error
    finally:
        log.removeHandler(faults)
    if faults.found:
        raise GuaranteeBroken(8, "the end of a pull raises an error in the thread of the store", found=faults.found[0])


# ---- a pull consumer -------------------------------------------------------------------------------------------------


class _Asked:
    """A connection that notes each request, with its time and its time-out."""

    def __init__(self, name: str, asked: list[tuple[Any, ...]]) -> None:
        self._name, self._asked = name, asked

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Note a request."""
        self._asked.append((self._name, request, now_ms, timeout_ms))
        return Call(request, deadline_ms=now_ms + timeout_ms)


def use_pull_consumer(seed: int, parts: Parts) -> None:
    """Call the methods of a pull consumer, and compare the requests that they send.

    Raises GuaranteeBroken.
    """
    rng, asked = Random(seed), list[tuple[Any, ...]]()
    names = rng.sample((_OTHER, _KNOWN, "broker-c"), rng.randrange(1, 4))
    connections: dict[str, Any] = {name: _Asked(name, asked) for name in names}
    times = {"pull_timeout": rng.randrange(1, 99), "timeout": rng.randrange(100, 199)} if rng.random() < 0.8 else {}
    pull_ms, other_ms = times.get("pull_timeout", 30_000), times.get("timeout", 5_000)
    consumer = parts.of(PullConsumer)(_GROUP, connections, **times)
    for _ in range(_STEPS):
        queue = MessageQueue(rng.choice("TU"), rng.choice((_OTHER, _KNOWN)), rng.randrange(4))
        now_ms, offset = rng.randrange(1_000), rng.randrange(9)
        asked.clear()
        if rng.random() < 0.2:
            calls = observed("routes", partial(consumer.routes, queue.topic, now_ms))
            differs(
                16, "the requests for routes", [(n, Route(queue.topic), now_ms, other_ms) for n in sorted(names)], asked
            )
            differs(16, "the calls for routes", [now_ms + other_ms] * len(names), [each.deadline_ms for each in calls])
            continue
        chosen: dict[str, Any] = {"count": rng.randrange(1, 99), "expression": "A", "kind": "SQL92", "hold_ms": 7}
        given = {name: value for name, value in chosen.items() if rng.random() < 0.5}
        whole: dict[str, Any] = {"count": 32, "expression": "*", "kind": "TAG", "hold_ms": 0} | given
        selected = Subscription(queue.topic, whole["expression"], whole["kind"])
        pull = Pull(_GROUP, queue, offset, selected, whole["count"], whole["hold_ms"])
        timeout_ms, request, ask = rng.choice((
            (pull_ms, pull, partial(consumer.pull, queue, offset, now_ms, **given)),
            (other_ms, QueryOffset(_GROUP, queue), partial(consumer.query_offset, queue, now_ms)),
            (other_ms, UpdateOffset(_GROUP, queue, offset), partial(consumer.update_offset, queue, offset, now_ms)),
            (other_ms, QueryBounds(queue), partial(consumer.bounds, queue, now_ms)),
            (other_ms, SearchOffset(queue, offset), partial(consumer.search_offset, queue, offset, now_ms)),
        ))  # fmt: skip
        call = observed(type(request).__name__, ask)
        is_known = queue.broker_name in names
        expected = [(queue.broker_name, request, now_ms, timeout_ms)] if is_known else []
        differs(16, "the requests of a pull consumer", expected, asked)
        differs(16, "the deadlines of a pull consumer", now_ms + timeout_ms, call.deadline_ms)
        differs(16, "the errors of a pull consumer", None if is_known else UNREACHABLE, _error_of(call))


def _error_of(call: Call) -> tuple[str, ...] | None:
    return None if call.error is None else (call.error.name,)


# ---- subscriptions ---------------------------------------------------------------------------------------------------


class _Heard(_Asked):
    """A broker that accepts heartbeats and is too busy for all else. It notes subscriptions."""

    def __init__(self, name: str) -> None:
        super().__init__(name, [])
        self.heard: list[tuple[Subscription, ...]] = []

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Answer a request."""
        call = super().call(request, now_ms=now_ms, timeout_ms=timeout_ms)
        if isinstance(request, Heartbeat):
            self.heard.append(request.subscriptions)
        call.settle(Done() if isinstance(request, Heartbeat) else Refused(Refusal.BUSY, "busy"))
        return call

    def notices(self) -> tuple[MembersChanged, ...]:
        """Return no notice."""
        return ()


def use_subscriptions(seed: int, parts: Parts) -> None:
    """Subscribe and unsubscribe topics of a member. Raises GuaranteeBroken.

    Invalid subscriptions are refused and change nothing. Others are in the next heartbeat to each broker.
    """
    rng = Random(seed)
    brokers: dict[str, Any] = {name: _Heard(name) for name in (_KNOWN, _OTHER)}
    settings = ConsumerSettings(consumer_group=_GROUP, client_id=_ME)
    consumer = parts.of(PushConsumer)(settings, brokers, parts=parts)
    subscribed: dict[str, tuple[str, str]] = {}
    for now_ms in range(1, 9):
        for broker in brokers.values():
            broker.heard.clear()
        topic, is_changed = rng.choice("TU"), True
        if rng.random() < 0.4:
            observed("unsubscribe", partial(consumer.unsubscribe, topic))
            subscribed.pop(topic, None)
        else:
            expression, kind, refused = rng.choice(SUBSCRIBED)
            topic = "" if refused == "topic" else topic
            found = _refused_for(partial(consumer.subscribe, topic, expression, kind=kind))
            differs(8, "the refusals of subscriptions", refused, found)
            is_changed = not refused
            subscribed |= {} if refused else {topic: (expression, kind)}
        observed("step", partial(consumer.step, now_ms))
        every = {**subscribed, f"%RETRY%{_GROUP}": ("*", "TAG")} if subscribed else {}
        expected = tuple(Subscription(name, *given) for name, given in sorted(every.items()))
        for broker in brokers.values():
            if is_changed:
                differs(16, "the subscriptions in heartbeats", [expected], broker.heard)


def _refused_for(subscribe: Callable[[], None]) -> str:
    """Return what a subscription is refused for, empty if it is not."""
    try:
        observed("subscribe", subscribe)
    except GuaranteeBroken as broken:
        match broken.__cause__:
            case BadConfig(name=name):
                return str(name)
            case BadFilter():
                return "expression"
        raise
    return ""
