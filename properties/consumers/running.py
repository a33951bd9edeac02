"""Use a member with threads, whose threads take drawn turns (contracts 8, 16, 17, 19).

`RunningConsumer` passes the calls of its user, its connections and its listener on to a `PushConsumer`. Here a
stand-in for that one notes each call. The threads are stand-ins as well: one runs until it waits, and has its next turn
only after it was notified. So a missing notice leaves work undone. The rules:

1. A call of a user reaches the consumer once, with its arguments, and no other call runs meanwhile. A step follows at
   the same time if the call may have made work. Otherwise the consumer is stepped when its last step said so.
2. A batch gets a listener as soon as a thread is free. Its result reaches the consumer with all that the listener has
   set, and a step follows.
3. A listener without a result has succeeded. An exception is a failure, and so is a value that is no status of the kind
   of consumption. Such a value leaves a finding.
4. A stop returns whether the member has left. Afterwards no thread runs, unless it runs a listener, and the connections
   are closed. A second stop and a later start do nothing.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from tornpage.impl.consumer import running
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.connection import Connection
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.running import ConsumeContext, RunningConsumer, monotonic_ms
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.model.consumers.member.asking import NEVER
from tornpage.properties.consumers.scripted import differs
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["use_running"]

_STEPS = 16
_ROUNDS_MAX = 100
_QUEUE = MessageQueue("T", "broker-a", 0)
_VERBS = (
    "subscribe", "unsubscribe", "suspend", "resume", "assigned", "lag", "findings", "arrive", "arrive", "arrive",
    "time", "start", "start",
)  # fmt: skip
_WAKES = frozenset(("subscribe", "unsubscribe", "resume", "arrive"))
_STATUSES = (*ConcurrentStatus, *OrderlyStatus)
_RESULTS = (None, *_STATUSES, 17, "SUCCESS")
_STOP_MS = 30_000
_NS_OF_MS = 1_000_000


# ---- threads ---------------------------------------------------------------------------------------------------------


class _Waits(BaseException):
    """End the turn of a thread that waits."""


class _Lock:
    """A lock. No thread takes a turn while another one holds it."""

    def __init__(self) -> None:
        self.is_held = False

    def __enter__(self) -> None:
        if self.is_held:
            raise GuaranteeBroken(16, "a thread waits forever for a lock that it holds")
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False


class _Thread:
    """A thread. Its target begins again in each turn, and goes on as if it had waited there."""

    def __init__(self, turns: "_Turns", *, target: Callable[[], object], name: str = "", daemon: bool = False) -> None:
        self.target, self.name, self.daemon = target, name, daemon
        self.is_over = False
        self._turns = turns
        turns.threads.append(self)

    def start(self) -> None:
        """Have a first turn."""
        self._turns.ready.append(self)

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended.

        Raises RuntimeError, as a real thread that waits for itself does.
        """
        if self is self._turns.current():
            raise RuntimeError("cannot join current thread")
        if timeout:
            raise GuaranteeBroken(16, "a stop waits for a listener past its time-out", "0 s", f"{timeout} s")
        if timeout is None:
            self._turns.run()
            if not self.is_over:
                raise GuaranteeBroken(16, "a stop waits forever for a thread that runs a listener")


class _Condition:
    """A condition of a lock."""

    def __init__(self, turns: "_Turns", lock: _Lock) -> None:
        self._turns, self._lock = turns, lock
        self._waiting: list[_Thread] = []
        self._is_notified = False

    def _require_lock(self) -> None:
        if not self._lock.is_held:
            raise RuntimeError("the lock of the condition is not held")

    def notify(self) -> None:
        """Let a waiting thread have a turn."""
        self._require_lock()
        self._is_notified = True
        if self._waiting:
            self._turns.ready.append(self._waiting.pop(self._turns.rng.randrange(len(self._waiting))))

    def notify_all(self) -> None:
        """Let all waiting threads have a turn."""
        self._require_lock()
        self._is_notified = True
        self._turns.ready += self._waiting
        self._waiting.clear()

    def wait(self) -> None:
        """End the turn of this thread."""
        self._require_lock()
        current = self._turns.current()
        assert current is not None
        self._waiting.append(current)
        raise _Waits

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Let the other threads run until nothing is left to do, and then the time-out pass."""
        self._require_lock()
        self._turns.waits_s.append(timeout)
        if predicate():
            return True
        self._is_notified = self._lock.is_held = False
        self._turns.settle()
        self._lock.is_held = True
        if predicate() and not self._is_notified:
            raise GuaranteeBroken(16, "a stop is not notified of the end that it waits for")
        return predicate()


class _Turns:
    """The threads of a run.

    `ready` have a turn next. `waits_s` are the time-outs of waits in seconds.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.settle: Callable[[], None] = self.run
        self.threads: list[_Thread] = []
        self.ready: list[_Thread] = []
        self.locks: list[_Lock] = []
        self.waits_s: list[float] = []
        self._stack: list[_Thread] = []

    def current(self) -> _Thread | None:
        """Return the thread that has its turn, None outside of all."""
        return self._stack[-1] if self._stack else None

    @property
    def depth(self) -> int:
        """The number of threads that are in a turn. All but the last one run a listener."""
        return len(self._stack)

    def run(self) -> None:
        """Let ready threads have turns until all wait or have ended."""
        while self.ready:
            thread = self.ready.pop(self.rng.randrange(len(self.ready)))
            self._stack.append(thread)
            try:
                thread.target()
            except _Waits:
                pass
            except GuaranteeBroken:
                raise
            except BaseException as error:
                found = f"{type(error).__name__}: {error}"
                raise GuaranteeBroken(16, "a thread of a member ends with an error", found=found) from error
            else:
                thread.is_over = True
            finally:
                self._stack.pop()

    def _lock(self) -> _Lock:
        self.locks.append(_Lock())
        return self.locks[-1]

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Context in which members have these threads."""
        stand_in = SimpleNamespace(
            Lock=self._lock, Condition=partial(_Condition, self), Thread=partial(_Thread, self),
            current_thread=self.current,
        )  # fmt: skip
        log = logging.getLogger("tornpage.consumer")
        with patch.object(running, "threading", stand_in), patch.object(log, "disabled", True):
            yield


# ---- what surrounds a member -----------------------------------------------------------------------------------------


class _Broker(ConsumerBroker):
    """A broker of this process, which notes the clients that watch and those that disconnect."""

    def __init__(self) -> None:
        self.wakes: dict[str, Callable[[], None]] = {}
        self.ended: list[str] = []

    def watch(self, client_id: str, wake: Callable[[], None]) -> None:
        self.wakes[client_id] = wake

    def disconnect(self, client_id: str) -> None:
        self.ended.append(client_id)


class _Connection:
    """A connection to another broker."""

    def __init__(self) -> None:
        self.wakes: dict[str, Callable[[], None]] = {}
        self.ended: list[str] = []

    def watch(self, wake: Callable[[], None]) -> None:
        """Note the wake-up."""
        self.wakes["c"] = wake

    def close(self) -> None:
        """Note the end."""
        self.ended.append("c")


class _Consumer:
    """Stand in for a push consumer.

    `calls` are those that it got, `due_ms` is what its steps return.
    """

    def __init__(self, turns: _Turns, settings: ConsumerSettings) -> None:
        self.settings = settings
        self.is_closed = self.hangs = False
        self.due_ms = NEVER
        self.calls: list[tuple[Any, ...]] = []
        self.arrived: list[Batch] = []
        self.ready: list[Batch] = []
        self.running: list[Batch] = []
        self.findings = ("a finding",)
        self.queues, self.lags = [_QUEUE], {_QUEUE: object()}
        self._turns = turns
        self._leaves = False

    def _called(self, *call: Any) -> None:
        if not any(lock.is_held for lock in self._turns.locks):
            raise GuaranteeBroken(17, f"a consumer is called without a lock: {call[0]}")
        self.calls.append(call)

    def subscribe(self, topic: str, expression: str = "*", *, kind: str = "TAG") -> None:
        self._called("subscribe", topic, expression, kind)

    def unsubscribe(self, topic: str) -> None:
        self._called("unsubscribe", topic)

    def suspend(self) -> None:
        self._called("suspend")

    def resume(self) -> None:
        self._called("resume")

    def assigned(self) -> object:
        self._called("assigned")
        return self.queues

    def lag(self) -> object:
        self._called("lag")
        return self.lags

    def shutdown(self, now_ms: int) -> None:
        self._called("shutdown", now_ms)
        self._leaves = True

    def step(self, now_ms: int) -> int:
        self._called("step", now_ms)
        self.ready, self.arrived = self.ready + self.arrived, []
        self.is_closed = self._leaves and not self.running and not self.hangs
        return NEVER if self.is_closed else self.due_ms

    def take(self, now_ms: int) -> Batch | None:
        self._called("take", now_ms)
        if self._leaves or not self.ready:
            return None
        self.running.append(self.ready.pop(0))
        return self.running[-1]

    def finish(self, batch: Batch, status: object, now_ms: int, **named: object) -> None:
        self._called("finish", batch, status, now_ms, named)
        self.running.remove(batch)

    def add_finding(self, sentence: str) -> None:
        self._called("add_finding", sentence)


# ---- runs ------------------------------------------------------------------------------------------------------------


class _Run:
    """One member with its threads, from its creation to its end."""

    def __init__(self, turns: _Turns, parts: Parts) -> None:
        self.turns, self.rng = turns, turns.rng
        self.now_ms, rng = 1_000, turns.rng
        turns.settle = self.settle
        self.is_orderly = rng.random() < 0.5
        self.settings = ConsumerSettings(
            consumer_group="g", client_id="c", consume_thread_max=rng.randrange(1, 4), orderly=self.is_orderly
        )
        self.brokers: dict[str, _Broker | _Connection] = {"broker-a": _Broker(), "broker-b": _Connection()}
        self.given: dict[str, Any] = {"files": object(), "directory": "/local", "strategy": object()}
        self.made: list[tuple[Any, ...]] = []
        self.parts = parts.replacing({PushConsumer: self._consumer, ThreadRunner: self._runner})
        self.begun: list[int] = []
        self.expected: list[tuple[Any, ...]] = []
        self.wrong: list[tuple[str, str]] = []
        self.batches = 0
        self.is_started = self.is_stopped = False
        self.stops_inside = False
        self.clean: bool | None = None
        self.broken: GuaranteeBroken | None = None
        self.member = self.parts.of(RunningConsumer)(
            self.settings, cast("Any", self.brokers), self._listen, parts=self.parts, **self.given
        )
        differs(16, "the arguments of a consumer", self._arguments(), self.made)

    def _consumer(self, settings: ConsumerSettings, connections: dict[str, Connection], **named: Any) -> _Consumer:
        direct = type(connections["broker-a"]).__name__
        self.made.append((settings, direct, connections["broker-b"], named))
        self.consumer = _Consumer(self.turns, settings)
        return self.consumer

    def _arguments(self) -> list[tuple[Any, ...]]:
        return [
            (self.settings, "DirectConnection", self.brokers["broker-b"], {**self.given, "parts": self.parts}),
        ]

    def _runner(self, service: Service) -> HandDriven:
        differs(16, "the names of threads", "consumer", service.name)
        self.runner = HandDriven(service, lambda: self.now_ms)
        return self.runner

    def settle(self) -> None:
        """Let the threads run until nothing is left to do now."""
        for _ in range(_ROUNDS_MAX):
            if self.broken is not None:
                raise self.broken
            if not self.turns.ready and (self.runner.is_stopped or not self.runner.will_step(self.now_ms)):
                return
            if not self.runner.is_stopped and self.runner.will_step(self.now_ms):
                self.runner.step()
                due_ms = self.runner.due_ms
                differs(16, "the times of the next step", self._due_ms(), due_ms)
            self.turns.run()
        raise GuaranteeBroken(16, "a member with nothing to do is stepped again and again")

    def _due_ms(self) -> int | None:
        return None if self.consumer.is_closed or self.consumer.due_ms >= NEVER else self.consumer.due_ms

    # ---- the listener ------------------------------------------------------------------------------------------------

    def _listen(self, messages: Sequence[Any], context: ConsumeContext) -> Any:
        """Take a batch, and keep a broken rule: the member takes every exception of a listener."""
        try:
            return self._result(messages, context)
        except GuaranteeBroken as broken:
            self.broken = self.broken or broken
            raise

    def _result(self, messages: Sequence[Any], context: ConsumeContext) -> Any:
        """Set drawn values, and return or raise a drawn result."""
        rng, consumer = self.rng, self.consumer
        batch = next((each for each in consumer.running if each.messages is messages), None)
        if batch is None or batch.number in self.begun:
            raise GuaranteeBroken(19, "a listener gets messages that no consumer gave", found=str(messages))
        self.begun.append(batch.number)
        first = (context.queue, context.ack_index, context.delay_level, context.suspend_ms, context.auto_commit)
        differs(8, "the values of a context", (batch.queue, None, 0, None, True), first)
        if rng.random() < 0.4:
            self._run_others()
        for name, values in (
            ("ack_index", (None, 0, 3)), ("delay_level", (0, -1, 2)), ("suspend_ms", (None, 7)),
            ("auto_commit", (True, False)),
        ):  # fmt: skip
            setattr(context, name, rng.choice(values))
        if self.stops_inside and not self.is_stopped:
            self._stop(inside=True)
        raised, result = rng.random() < 0.2, rng.choice(_RESULTS)
        own: type[ConcurrentStatus] | type[OrderlyStatus] = OrderlyStatus if self.is_orderly else ConcurrentStatus
        status = result if isinstance(result, own) else None
        if result is None:
            status = OrderlyStatus.SUCCESS if self.is_orderly else ConcurrentStatus.CONSUME_SUCCESS
        elif status is None and not raised:
            self.wrong.append((repr(result), own.__name__))
        named = {
            "ack_index": context.ack_index, "delay_level": context.delay_level, "suspend_ms": context.suspend_ms,
            "auto_commit": context.auto_commit,
        }  # fmt: skip
        self.expected.append((batch, None if raised else status, self.now_ms, named))
        if raised:
            raise rng.choice((ValueError, SystemExit))("drawn")
        return result

    def _run_others(self) -> None:
        """Let the other threads run while this listener does. Each batch has to get a free one."""
        self.settle()
        free = self.settings.consume_thread_max - self.turns.depth
        if self.consumer.ready and free > 0 and not self.is_stopped:
            raise GuaranteeBroken(16, "a batch waits while a thread is free", "no batch", str(len(self.consumer.ready)))

    # ---- calls -------------------------------------------------------------------------------------------------------

    def step(self, verb: str) -> None:
        """Carry out one call of a user or of a connection, and judge what the consumer gets."""
        rng, consumer, member = self.rng, self.consumer, self.member
        consumer.calls.clear()
        self.now_ms += rng.choice((1, 499, 500)) if verb == "time" else 0
        consumer.due_ms = rng.choice((NEVER, self.now_ms + 1, self.now_ms + 500))
        asked: list[tuple[Any, ...]] = []
        is_stepped = verb in _WAKES
        match verb:
            case "subscribe":
                topic, expression, kind = rng.choice("TU"), rng.choice("*A"), rng.choice(("TAG", "SQL92"))
                observed(verb, partial(member.subscribe, topic, expression, kind=kind))
                asked = [("subscribe", topic, expression, kind)]
            case "unsubscribe":
                observed(verb, partial(member.unsubscribe, "T"))
                asked = [("unsubscribe", "T")]
            case "suspend" | "resume":
                observed(verb, member.suspend if verb == "suspend" else member.resume)
                asked = [(verb,)]
            case "assigned" | "lag":
                found = observed(verb, member.assigned if verb == "assigned" else member.lag)
                differs(16, "the answers of a member", consumer.queues if verb == "assigned" else consumer.lags, found)
                asked = [(verb,)]
            case "findings":
                differs(16, "the findings of a member", consumer.findings, member.findings)
            case "arrive":
                is_stepped = self._arrive()
            case "time":
                is_stepped = not self.runner.is_stopped and self.runner.will_step(self.now_ms)
            case "start":
                is_stepped = not self.is_started
                self._start()
        self.settle()
        self._judge(asked, is_stepped=is_stepped)

    def _arrive(self) -> bool:
        """Let batches arrive; return whether a connection could wake the member."""
        for _ in range(self.rng.randrange(1, 4)):
            self.batches += 1
            self.consumer.arrived.append(Batch(self.batches, _QUEUE, (cast("Any", self.batches),), self.now_ms))
        wakes = [wake for broker in self.brokers.values() for wake in broker.wakes.values()]
        if wakes:
            observed("wake", self.rng.choice(wakes))
        return bool(wakes)

    def _start(self) -> None:
        observed("start", self.member.__enter__ if self.rng.random() < 0.5 else self.member.start)
        self.is_started = True
        for broker in self.brokers.values():
            differs(16, "the clients that are woken", ["c"], list(broker.wakes))
        made = [(thread.daemon, thread.name != "") for thread in self.turns.threads]
        differs(16, "the threads of a member", [(True, True)] * self.settings.consume_thread_max, made)

    def _judge(self, asked: list[tuple[Any, ...]], *, is_stepped: bool) -> None:
        """Compare the calls of a consumer since the last judgement."""
        calls = self.consumer.calls
        own = [call for call in calls if call[0] not in ("step", "take", "finish", "add_finding")]
        differs(16, "the calls of a consumer", asked, own)
        names = [call[0] for call in calls]
        differs(16, "the steps of a consumer", is_stepped, "step" in names[len(asked) and names.index(asked[0][0]) :])
        if any(call[-1] != self.now_ms for call in calls if call[0] in ("step", "take")):
            raise GuaranteeBroken(16, "a consumer is stepped with another time", str(self.now_ms), str(calls))
        differs(19, "the results of listeners", self.expected, [call[1:] for call in calls if call[0] == "finish"])
        self.expected.clear()
        found = [call[1] for call in calls if call[0] == "add_finding"]
        if len(found) != len(self.wrong) or any(
            word not in text for words, text in zip(self.wrong, found, strict=True) for word in words
        ):
            raise GuaranteeBroken(19, "the findings about results are wrong", str(self.wrong), str(found))
        self.wrong.clear()
        if "finish" in names and not self.runner.is_stopped and "step" not in names[_last(names, "finish") :]:
            raise GuaranteeBroken(16, "no step follows the result of a listener")
        if self.consumer.running:
            raise GuaranteeBroken(16, "a batch that was taken has no result", "none", str(self.consumer.running))
        if self.is_started and self.consumer.ready and not self.is_stopped:
            raise GuaranteeBroken(16, "a batch waits for a listener", "none", str(self.consumer.ready))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def _stop(self, *, inside: bool = False) -> None:
        """Stop the member, and judge its end.

        A listener that stops it keeps it from leaving in time.
        """
        rng, turns = self.rng, self.turns
        self.is_stopped = True
        turns.waits_s.clear()
        timeout_ms = rng.choice((None, 500, 12_000))
        if timeout_ms is None and rng.random() < 0.5:
            observed("exit", partial(self.member.__exit__, None, None, None))
            differs(16, "the waits of an exit", int(self.is_started), len(turns.waits_s))
            clean = observed("stop", self.member.stop)
        else:
            stop = self.member.stop if timeout_ms is None else partial(self.member.stop, timeout_ms)
            clean = observed("stop", stop)
        can_leave = not inside and not self.consumer.hangs
        differs(16, "the results of a stop", can_leave or not self.is_started, clean)
        waits = [(timeout_ms or _STOP_MS) / 1_000] if self.is_started else []
        differs(16, "the times that a stop waits", waits, turns.waits_s)
        self.clean = clean

    def end(self) -> None:
        """Stop the member in a drawn way, and judge what is left."""
        rng, consumer = self.rng, self.consumer
        consumer.calls.clear()
        consumer.hangs = rng.random() < 0.3
        self.stops_inside = self.is_started and rng.random() < 0.5
        if self.stops_inside:
            self._arrive()
            self.settle()
        else:
            self._stop()
        if consumer.is_closed or not self.is_started:
            differs(16, "the threads after a stop", [True] * len(self.turns.threads), self._are_over())
        self.settle()
        differs(16, "the threads after a stop", [True] * len(self.turns.threads), self._are_over())
        self._judge_end()
        for _ in range(2):
            differs(16, "the results of a second stop", self.clean, observed("stop", self.member.stop))
            observed("exit", partial(self.member.__exit__, None, None, None))
            observed("start", self.member.start)
            self.settle()
            self._judge_end()
        differs(16, "the threads after a second start", [True] * len(self.turns.threads), self._are_over())

    def _are_over(self) -> list[bool]:
        return [thread.is_over for thread in self.turns.threads]

    def _judge_end(self) -> None:
        consumer = self.consumer
        shutdowns = [call for call in consumer.calls if call[0] == "shutdown"]
        differs(16, "the shutdowns of a consumer", [("shutdown", self.now_ms)], shutdowns)
        differs(16, "the ends of connections", [["c"]] * 2, [broker.ended for broker in self.brokers.values()])
        if not self.runner.is_stopped:
            raise GuaranteeBroken(16, "a member that was stopped is stepped on")
        finished = [call[1:] for call in consumer.calls if call[0] == "finish"]
        differs(19, "the results of listeners", self.expected, finished)


def _last(names: Sequence[str], name: str) -> int:
    return max(place for place, each in enumerate(names) if each == name)


def use_running(seed: int, parts: Parts) -> None:
    """Use a member with threads. Raises GuaranteeBroken."""
    least = time.monotonic_ns() // _NS_OF_MS
    found = observed("monotonic_ms", monotonic_ms)
    if not least <= found <= time.monotonic_ns() // _NS_OF_MS:
        raise GuaranteeBroken(16, "the time of a member is not that of the machine in ms", str(least), str(found))
    turns = _Turns(Random(seed))
    with turns.taken():
        run = _Run(turns, parts)
        for _ in range(turns.rng.randrange(1, _STEPS)):
            run.step(turns.rng.choice(_VERBS))
        run.end()
