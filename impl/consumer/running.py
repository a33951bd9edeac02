"""A push consumer with threads: one steps it, and some run the listener.

    def listener(messages, context):
        for message in messages:
            print(message.topic, message.body)

    broker = ConsumerBroker(store, BrokerSettings(owners_survive=False), now_ms=monotonic_ms())
    settings = ConsumerSettings(consumer_group="g", client_id="a")
    with RunningConsumer(settings, {"broker-a": broker}, listener) as consumer:
        consumer.subscribe("orders")
        ...

A listener that returns None has consumed the messages. An exception, RECONSUME_LATER or SUSPEND is a failure. A value
that is no status of the kind of consumption is a failure with a finding. In RocketMQ a listener that returns null has
failed. Source: `ConsumeMessageConcurrentlyService`, `ConsumeMessageOrderlyService`.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tornpage.impl.consumer.allocation import Strategy
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.client import NEVER
from tornpage.impl.consumer.connection import Connection, DirectConnection
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.io.files import Files
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner

__all__ = ["ConsumeContext", "Listener", "RunningConsumer", "monotonic_ms"]

_LOG = logging.getLogger("tornpage.consumer")

_STOP_MS = 30_000


def monotonic_ms() -> int:
    """Return the time of consumers and brokers with threads: that of `ThreadRunner`."""
    return time.monotonic_ns() // 1_000_000


@dataclass(slots=True)
class ConsumeContext:
    """What a listener may set for the batch, and the queue of the batch.

    The fields are the arguments of `PushConsumer.finish`.
    """

    queue: MessageQueue
    ack_index: int | None = None
    delay_level: int = 0
    suspend_ms: int | None = None
    auto_commit: bool = True


Listener = Callable[[Sequence[ConsumerMessage], ConsumeContext], ConcurrentStatus | OrderlyStatus | None]
"""Consumes a batch. It runs in several threads at a time, with orderly consumption in one for each queue."""


class RunningConsumer:
    """A member of a group with threads. Every method may be called from every thread.

    A broker of this process is given as it is, others by their connections. Subscribe before or after `start`. The
    context manager starts and stops it. Raises what `PushConsumer` raises.
    """

    name = "consumer"

    def __init__(
        self,
        settings: ConsumerSettings,
        brokers: Mapping[str, ConsumerBroker | Connection],
        listener: Listener,
        *,
        files: Files | None = None,
        directory: str = "",
        strategy: Strategy | None = None,
        parts: Parts | None = None,
    ) -> None:
        parts = parts or Parts()
        self._connections = {
            name: DirectConnection(each, settings.client_id) if isinstance(each, ConsumerBroker) else each
            for name, each in brokers.items()
        }
        self._consumer = parts.of(PushConsumer)(
            settings, self._connections, files=files, directory=directory, strategy=strategy, parts=parts
        )
        self._listener = listener
        self._guard = threading.Lock()
        self._work = threading.Condition(self._guard)
        self._closed = threading.Condition(self._guard)
        self._runner = parts.of(ThreadRunner)(self)
        self._threads: list[threading.Thread] = []
        self._is_ended = False
        self._is_clean = True

    # ---- for users -----------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, expression: str = "*", *, kind: str = "TAG") -> None:
        """Consume the messages of a topic that an expression selects.

        Raises BadConfig and BadFilter.
        """
        with self._guard:
            self._consumer.subscribe(topic, expression, kind=kind)
        self._wake()

    def unsubscribe(self, topic: str) -> None:
        """Hand over the queues of a topic, and consume it no longer."""
        with self._guard:
            self._consumer.unsubscribe(topic)
        self._wake()

    def start(self) -> None:
        """Join the group and begin to consume. Idempotent."""
        if self._threads or self._is_ended:
            return
        for connection in self._connections.values():
            connection.watch(self._wake)
        for number in range(self._consumer.settings.consume_thread_max):
            thread = threading.Thread(target=self._consume, name=f"tornpage-consume-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._runner.start(after_ms=0)

    def stop(self, timeout_ms: int = _STOP_MS) -> bool:
        """Leave the group after the results of all running listeners.

        Return whether that was possible in time. After the time-out the queues stay locked until their leases
        expire. A second call does nothing and returns the same.
        """
        if not self._is_ended:
            with self._guard:
                self._consumer.shutdown(self._runner.now_ms())
            if self._threads:
                self._wake()
                with self._guard:
                    self._is_clean = self._closed.wait_for(lambda: self._consumer.is_closed, timeout_ms / 1_000)
            self._end()
        return self._is_clean

    def _end(self) -> None:
        self._runner.stop()
        with self._guard:
            self._is_ended = True
            self._work.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                with suppress(RuntimeError):  # interrupted before it was started
                    thread.join(timeout=0 if not self._consumer.is_closed else None)
        for connection in self._connections.values():
            connection.close()

    def suspend(self) -> None:
        """Pause consumption."""
        with self._guard:
            self._consumer.suspend()

    def resume(self) -> None:
        """End a pause."""
        with self._guard:
            self._consumer.resume()
        self._wake()

    def assigned(self) -> list[MessageQueue]:
        """Return the queues that this member consumes, sorted."""
        with self._guard:
            return self._consumer.assigned()

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return how far this member is, for each assigned queue."""
        with self._guard:
            return self._consumer.lag()

    @property
    def findings(self) -> tuple[str, ...]:
        """Sentences for operators, the newest last."""
        return self._consumer.findings

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ---- threads -------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Step soon. Threads of the store and of other members call it."""
        self._runner.wake()

    def step(self, now_ms: int) -> int | None:
        """Step the consumer, and wake a thread of the listener.

        That one wakes the next if it finds work.
        """
        with self._guard:
            due_ms = self._consumer.step(now_ms)
            self._work.notify()
            if self._consumer.is_closed:
                self._closed.notify_all()
        return None if due_ms >= NEVER else due_ms

    def _consume(self) -> None:
        while (batch := self._next_batch()) is not None:
            context = ConsumeContext(batch.queue)
            status = self._run_listener(batch, context)
            with self._guard:
                self._consumer.finish(
                    batch,
                    status,
                    self._runner.now_ms(),
                    ack_index=context.ack_index,
                    delay_level=context.delay_level,
                    suspend_ms=context.suspend_ms,
                    auto_commit=context.auto_commit,
                )
            self._wake()

    def _next_batch(self) -> Batch | None:
        """Wait for a batch; None after the end."""
        with self._guard:
            while not self._is_ended:
                batch = self._consumer.take(self._runner.now_ms())
                if batch is not None:
                    self._work.notify()
                    return batch
                self._work.wait()
            return None

    def _run_listener(self, batch: Batch, context: ConsumeContext) -> ConcurrentStatus | OrderlyStatus | None:
        try:
            status = self._listener(batch.messages, context)
        except BaseException:  # SystemExit too: the batch must end, and the thread goes on
            _LOG.exception("listener_failed queue=%s", batch.queue)
            return None
        is_orderly = self._consumer.settings.orderly
        if status is None:
            return OrderlyStatus.SUCCESS if is_orderly else ConcurrentStatus.CONSUME_SUCCESS
        kind = OrderlyStatus if is_orderly else ConcurrentStatus
        if isinstance(status, kind):
            return status
        with self._guard:
            self._consumer.add_finding(f"the listener returned {status!r:.100}, which is no status of {kind.__name__}")
        return None
