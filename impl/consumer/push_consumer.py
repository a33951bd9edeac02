"""A push consumer: one member of a group.

`PushConsumer` owns the parts of a member and steps them in a fixed order. The parts are `Heartbeats`, `Rebalance`,
`Leases`, `FirstOffsets`, one `PullLoop` for each queue, `HandOver`, `Concurrent` or `Orderly`, and an offset store.
Source: `DefaultMQPushConsumerImpl`, `MQClientInstance`.
"""

import os
from collections.abc import Iterable, Mapping

from tornpage.impl.consumer.allocation import STRATEGIES, Strategy
from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.concurrent import Concurrent
from tornpage.impl.consumer.connection import Connection
from tornpage.impl.consumer.first_offset import FirstOffsets
from tornpage.impl.consumer.flow_control import flow_control_of
from tornpage.impl.consumer.hand_over import HandOver
from tornpage.impl.consumer.heartbeats import Heartbeats
from tornpage.impl.consumer.holding import Holding, HoldingState, is_over
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.offset_store import LocalOffsets, OffsetStore, RemoteOffsets
from tornpage.impl.consumer.orderly import Orderly
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.pull_loop import PullLoop
from tornpage.impl.consumer.queues import MessageQueue, retry_topic
from tornpage.impl.consumer.rebalance import Rebalance
from tornpage.impl.consumer.requests import Subscription
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import Files
from tornpage.impl.parts import Parts
from tornpage.impl.read.filters import PropertyFilter

__all__ = ["PushConsumer", "subscriptions_of"]

_FIRST_PERSIST_MS = 10_000
_OVERDUE_SCAN_MS = 60_000
_HANDING_OVER = frozenset((HoldingState.DRAINING, HoldingState.STORING, HoldingState.UNLOCKING))


def subscriptions_of(settings: ConsumerSettings, subscribed: Iterable[Subscription]) -> tuple[Subscription, ...]:
    """Return all subscriptions of a member.

    In clustering mode the retry topic of the group is added to those of the user.
    """
    retries = () if settings.is_broadcasting else (Subscription(retry_topic(settings.consumer_group)),)
    return tuple(sorted((*subscribed, *retries), key=lambda each: each.topic))


class PushConsumer:
    """One member of a consumer group.

    The caller steps it and runs the listener: `step` sends requests and takes answers, `take` returns a batch to
    consume, and `finish` gives the result. No method blocks. Calls are serialised by the caller.
    `impl.consumer.running.RunningConsumer` does all of this with threads.

    `connections` has one connection for each broker name. Broadcasting needs `files` and `directory`, where the
    progress is stored. `strategy` replaces the one that the settings name. `incarnation` is unique for each process;
    None draws a random one. All times are milliseconds of one monotonic clock. Raises BadConfig, and with broadcasting
    OSError if the progress cannot be read.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        connections: Mapping[str, Connection],
        *,
        files: Files | None = None,
        directory: str = "",
        strategy: Strategy | None = None,
        incarnation: str | None = None,
        parts: Parts | None = None,
    ) -> None:
        parts = parts or Parts()
        self.settings = settings
        self._client = client = Client(
            settings, dict(connections), incarnation=incarnation or os.urandom(8).hex(), parts=parts
        )
        self._holdings: dict[MessageQueue, Holding] = {}
        self._pulls: dict[MessageQueue, PullLoop] = {}
        self._offsets = _offsets_of(client, files, directory)
        self._heartbeats = parts.of(Heartbeats)(client)
        self._rebalance = parts.of(Rebalance)(client, _strategy_of(settings, strategy, parts), self._heartbeats)
        self._leases = parts.of(Leases)(client, self._holdings)
        self._first = parts.of(FirstOffsets)(client, self._offsets)
        self._hand_over = parts.of(HandOver)(client, self._offsets)
        kind: type[Concurrent] | type[Orderly] = parts.of(Orderly) if settings.orderly else parts.of(Concurrent)
        self._consumption = kind(client, self._holdings, offsets=self._offsets, leases=self._leases)
        self._subscriptions_of = parts.of(subscriptions_of)
        self._is_over = parts.of(is_over)
        self._subscribed: dict[str, Subscription] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._shares: dict[str, list[MessageQueue]] = {}
        self._running: dict[int, Batch] = {}
        self._persist_ms: int | None = None
        self._overdue_ms = 0
        self._is_paused = False
        self._is_leaving = False
        self._has_left = False
        self._is_closed = False

    # ---- subscriptions -------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, expression: str = "*", *, kind: str = "TAG") -> None:
        """Consume the messages of a topic that an expression selects.

        `kind` is TAG, with tags separated by `||`, or SQL92. Raises BadConfig, and BadFilter for an invalid expression.
        """
        if not topic:
            raise BadConfig("topic", topic, "use a name")
        if kind not in ("TAG", "SQL92"):
            raise BadConfig("kind", kind, "use TAG or SQL92")
        if kind == "SQL92":
            PropertyFilter(expression)
        self._subscribed[topic] = Subscription(topic, expression, kind)
        self._subscriptions_changed()

    def unsubscribe(self, topic: str) -> None:
        """Hand over the queues of a topic, and consume it no longer."""
        self._subscribed.pop(topic, None)
        self._shares.pop(topic, None)
        self._subscriptions_changed()

    def _subscriptions_changed(self) -> None:
        all_of = self._subscriptions_of(self.settings, self._subscribed.values()) if self._subscribed else ()
        self._subscriptions = {each.topic: each for each in all_of}
        self._heartbeats.wake()
        self._rebalance.wake_routes()

    # ---- steps ---------------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Do one round of all parts; return when the next one is due."""
        if self._is_closed:
            return NEVER
        self._take_notices()
        subscriptions = self._subscriptions
        due_ms = NEVER if self._has_left else self._heartbeats.step(tuple(subscriptions.values()), now_ms)
        if not self._is_leaving:
            due_ms = min(due_ms, self._step_rebalance(subscriptions, now_ms))
        due_ms = min(due_ms, self._leases.step(now_ms))
        for holding in tuple(self._holdings.values()):
            due_ms = min(due_ms, self._step_holding(holding, now_ms))
        due_ms = min(due_ms, self._first.step(now_ms), self._consumption.step(now_ms), self._persist(now_ms))
        self._report_overdue(now_ms)
        if self._forget_over():
            due_ms = now_ms
        return min(due_ms, self._step_leaving(now_ms))

    def _take_notices(self) -> None:
        for connection in self._client.connections.values():
            if any(notice.group == self._client.group for notice in connection.notices()):
                self._rebalance.wake()
                self._leases.wake()

    def _step_rebalance(self, subscriptions: Mapping[str, Subscription], now_ms: int) -> int:
        shares, due_ms = self._rebalance.step(subscriptions, now_ms)
        for topic in subscriptions:
            self._first.want(self._rebalance.queues_of(topic))
        self._shares.update(shares)
        for holding in self._holdings.values():
            if holding.queue.topic not in subscriptions:
                self._hand_over.begin(holding, now_ms)
        for topic, share in shares.items():
            self._apply(subscriptions[topic], share, now_ms)
        return due_ms

    def _apply(self, subscription: Subscription, share: list[MessageQueue], now_ms: int) -> None:
        """Begin and end holdings, so that they are the share of this client in one topic."""
        for queue, holding in self._holdings.items():
            if queue.topic != subscription.topic:
                continue
            holding.subscription = subscription
            if queue not in share:
                self._hand_over.begin(holding, now_ms)
            elif holding.state is HoldingState.DRAINING:
                self._hand_over.resume(holding, now_ms)
            elif holding.state is HoldingState.ACTIVE and self._is_pull_expired(holding, now_ms):
                self._client.findings.add(f"{queue.java_text()}: the pull was idle, the queue is claimed again")
                self._hand_over.begin(holding, now_ms)
        for queue in share:
            if queue not in self._holdings:
                self._hold(queue, subscription, now_ms)
        flow_control = flow_control_of(self.settings, len(self._holdings))
        for pull in self._pulls.values():
            pull.flow_control = flow_control

    def _is_pull_expired(self, holding: Holding, now_ms: int) -> bool:
        return holding.process_queue.is_pull_expired(now_ms, self.settings.pull_max_idle_time)

    def _hold(self, queue: MessageQueue, subscription: Subscription, now_ms: int) -> None:
        state = HoldingState.STARTING if self.settings.is_broadcasting else HoldingState.CLAIMING
        process_queue = self._client.parts.of(ProcessQueue)(now_ms)
        holding = Holding(queue, self._client.next_token(), subscription, process_queue, state, since_ms=now_ms)
        self._holdings[queue] = holding
        self._pulls[queue] = self._client.parts.of(PullLoop)(
            self._client,
            holding,
            offsets=self._offsets,
            leases=self._leases,
            consumption=self._consumption,
            flow_control=flow_control_of(self.settings, len(self._holdings)),
        )

    def _step_holding(self, holding: Holding, now_ms: int) -> int:
        if holding.state is HoldingState.STARTING:
            return self._start(holding, now_ms)
        if holding.state is HoldingState.ACTIVE:
            due_ms = self._pulls[holding.queue].step(now_ms, is_paused=self._is_paused)
            if holding.wants_restart:
                self._offsets.restart(holding.queue)
                self._first.decide_again(holding.queue)
                self._hand_over.abandon(holding, now_ms)
                return now_ms
            return due_ms
        if holding.state in _HANDING_OVER:
            return self._hand_over.step(holding, now_ms)
        return NEVER

    def _start(self, holding: Holding, now_ms: int) -> int:
        """Begin to pull at the stored progress, after it is known."""
        offset = self._first.start_of(holding, now_ms)
        if offset is None:
            if holding.call is not None:
                return due_of(holding.call, now_ms)
            return holding.retry_ms if holding.retry_ms > now_ms else NEVER
        self._offsets.update(holding.queue, offset, increase_only=False)
        holding.next_offset = holding.taken_end = offset
        holding.process_queue.last_pull_timestamp = now_ms
        holding.enter(HoldingState.ACTIVE, now_ms)
        return now_ms

    def _forget_over(self) -> bool:
        """Forget queues that were handed over or lost; return whether there were any."""
        over = [each for each in self._holdings.values() if self._is_over(each, orderly=self.settings.orderly)]
        for holding in over:
            del self._holdings[holding.queue], self._pulls[holding.queue]
            self._offsets.forget(holding.queue)
            if holding.queue in self._shares.get(holding.queue.topic, ()):
                self._rebalance.wake()
        return bool(over)

    def _persist(self, now_ms: int) -> int:
        if self._persist_ms is None:
            self._persist_ms = now_ms + _FIRST_PERSIST_MS
        if now_ms >= self._persist_ms:
            self._persist_ms = now_ms + self.settings.persist_consumer_offset_interval
            self._persist_now(now_ms)
        return self._persist_ms

    def _persist_now(self, now_ms: int) -> None:
        try:
            self._offsets.persist_all(self._holdings.values(), now_ms)
        except OSError as error:
            self._client.findings.add(f"the progress was not saved: {error}")

    def _report_overdue(self, now_ms: int) -> None:
        if now_ms < self._overdue_ms:
            return
        self._overdue_ms = now_ms + _OVERDUE_SCAN_MS
        for batch in self._running.values():
            if now_ms - batch.began_ms > self.settings.consume_timeout * 60_000:
                self._client.findings.add(f"{batch.queue.java_text()}: batch {batch.number} runs for too long")

    # ---- consumption ---------------------------------------------------------------------------------------------

    def take(self, now_ms: int) -> Batch | None:
        """Return the next batch for the listener, None if no message waits."""
        if self._is_paused:
            return None
        batch = self._consumption.take(now_ms)
        if batch is not None:
            self._running[batch.number] = batch
        return batch

    def finish(
        self,
        batch: Batch,
        status: ConcurrentStatus | OrderlyStatus | None,
        now_ms: int,
        *,
        ack_index: int | None = None,
        delay_level: int = 0,
        suspend_ms: int | None = None,
        auto_commit: bool = True,
    ) -> None:
        """Take the result of a listener for a batch of `take`. None is a failure.

        Concurrent: messages up to `ack_index` have succeeded, all if it is None; the others are sent back with
        `delay_level`. Orderly: after a failure the queue pauses for `suspend_ms`. Without `auto_commit`, messages stay
        unfinished until COMMIT. Raises ValueError for a batch that does not run.
        """
        if self._running.pop(batch.number, None) is not batch:
            raise ValueError(f"batch {batch.number} does not run")
        if isinstance(self._consumption, Orderly):
            self._consumption.finish(batch, status, now_ms, suspend_ms=suspend_ms, auto_commit=auto_commit)
        else:
            self._consumption.finish(batch, status, now_ms, ack_index=ack_index, delay_level=delay_level)

    def suspend(self) -> None:
        """Pause: pull and take nothing more."""
        self._is_paused = True

    def resume(self) -> None:
        """End a pause."""
        self._is_paused = False

    # ---- the end -------------------------------------------------------------------------------------------------

    def shutdown(self, now_ms: int) -> None:
        """Begin to leave the group. The caller steps and finishes on until `is_closed`.

        Each queue is handed over after the results of its running batches.
        """
        if not self._is_leaving:
            self._is_leaving = True
            for holding in self._holdings.values():
                self._hand_over.begin(holding, now_ms)

    def _step_leaving(self, now_ms: int) -> int:
        if not self._is_leaving or self._holdings:
            return NEVER
        if not self._has_left:
            self._has_left = True
            self._persist_now(now_ms)
        due_ms = self._heartbeats.leave(now_ms)
        self._is_closed = due_ms is None
        return now_ms if due_ms is None else due_ms

    @property
    def is_closed(self) -> bool:
        """Whether a shutdown is complete."""
        return self._is_closed

    # ---- state ---------------------------------------------------------------------------------------------------

    def assigned(self) -> list[MessageQueue]:
        """Return the queues that this member consumes, sorted."""
        return sorted(queue for queue, each in self._holdings.items() if each.state is HoldingState.ACTIVE)

    def holdings(self) -> dict[MessageQueue, Holding]:
        """Return the state of each queue from its claim to its hand-over, for tests and operators."""
        return dict(self._holdings)

    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """Return the cache of each queue that is held, for tests and operators."""
        return {queue: each.process_queue for queue, each in self._holdings.items()}

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return how far this member is, for each assigned queue, as of the last pull."""
        return {queue: self._lag_of(self._holdings[queue]) for queue in self.assigned()}

    def _lag_of(self, holding: Holding) -> QueueLag:
        progress = self._offsets.get(holding.queue)
        return QueueLag(
            max(holding.max_offset, holding.next_offset),
            holding.next_offset if progress is None else progress,
            cached=holding.process_queue.msg_count,
        )

    def add_finding(self, sentence: str) -> None:
        """Add a sentence about the listener to the findings."""
        self._client.findings.add(sentence)

    @property
    def findings(self) -> tuple[str, ...]:
        """Sentences about corrected offsets, lost queues and refusals, the newest last."""
        return self._client.findings.all


def _offsets_of(client: Client, files: Files | None, directory: str) -> OffsetStore:
    if not client.settings.is_broadcasting:
        return client.parts.of(RemoteOffsets)(client)
    if files is None or not directory:
        raise BadConfig("directory", directory, "name a directory for the progress of a broadcasting consumer")
    return client.parts.of(LocalOffsets)(client, files, directory)


def _strategy_of(settings: ConsumerSettings, strategy: Strategy | None, parts: Parts) -> Strategy:
    if strategy is not None:
        return strategy
    name = settings.allocate_message_queue_strategy
    chosen = STRATEGIES.get(name)
    if chosen is None:
        remedy = f"use {', '.join(STRATEGIES)}, or pass a strategy"
        raise BadConfig("allocate_message_queue_strategy", name, remedy)
    return parts.of(chosen)
