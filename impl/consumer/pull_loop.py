"""The pull loop of one queue: at most one request is alive, and it has a deadline.

Each step checks in this order: the answer to the request, the state of the queue, the pause of the consumer, the flow
control, the lease. Then it sends the next request, which carries the progress.

| Result | Action |
|---|---|
| messages | cache those that the subscription accepts and that fit; pull on after `pull_interval` |
| none | if nothing is cached, the progress is the next offset; pull on at once |
| offset outside the queue | ask for the bounds of the queue, and correct the offset by them |
| fenced | the queue is lost |
| refused, or no answer | pull again after a second |

An answer without a message that comes at once is followed by a growing pause, up to a second. RocketMQ pulls on without
a pause then. After an offset outside the queue it rests for 10 seconds and sets the progress to the offset that the
broker names. Source: `DefaultMQPushConsumerImpl.pullMessage`.
"""

from functools import lru_cache

from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.concurrent import Concurrent
from tornpage.impl.consumer.connection import Call, CallError
from tornpage.impl.consumer.flow_control import FlowControl
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.messages import ConsumerMessage
from tornpage.impl.consumer.offset_store import OffsetStore, note_progress
from tornpage.impl.consumer.orderly import Orderly
from tornpage.impl.consumer.queues import retry_topic
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Pull,
    Pulled,
    PullStatus,
    QueryBounds,
    Refusal,
    Refused,
    Subscription,
)
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.message_filter import TagFilter

__all__ = ["PullLoop", "corrected_offset", "is_subscribed", "message_of"]

_FRUITLESS_MS = 50
_FRUITLESS_MS_MAX = 1_000


def corrected_offset(offset: int, bounds: Bounds) -> int | None:
    """Return where to pull, after the broker has called an offset illegal.

    Below the minimum, the messages in between have expired. Past the maximum, the numbers of the queue have restarted,
    and None means to begin again at the stored progress. An offset within the bounds is right.
    """
    if offset > bounds.max_offset:
        return None
    return max(offset, bounds.min_offset)


def is_subscribed(subscription: Subscription, message: StoredMessage) -> bool:
    """Return whether a message is wanted; the broker has compared hashes of tags only."""
    if subscription.kind != "TAG":
        return _property_filter(subscription.expression).matches(message.properties)
    tags = _tags(subscription.expression)
    return not tags or message.properties.get("TAGS") in tags


@lru_cache(maxsize=64)
def _property_filter(expression: str) -> PropertyFilter:
    return PropertyFilter(expression)


@lru_cache(maxsize=64)
def _tags(expression: str) -> frozenset[str]:
    """Return the tags of an expression; none for all messages."""
    return frozenset(TagFilter(expression).tags)


def message_of(stored: StoredMessage, holding: Holding, group: str, max_offset: int) -> ConsumerMessage:
    """Return a pulled message as the listener gets it: with its original topic."""
    topic = holding.queue.topic
    if topic == retry_topic(group):
        topic = stored.properties.get("RETRY_TOPIC", topic)
    return ConsumerMessage(stored, holding.queue, topic, max_offset, stored.reconsume_times)


class PullLoop:
    """Pulls one queue.

    `flow_control` holds its limits; the consumer sets it after each change of its queues.
    """

    def __init__(
        self,
        client: Client,
        holding: Holding,
        *,
        offsets: OffsetStore,
        leases: Leases,
        consumption: Concurrent | Orderly,
        flow_control: FlowControl,
    ) -> None:
        self.flow_control = flow_control
        self._client = client
        self._holding = holding
        self._offsets = offsets
        self._leases = leases
        self._consumption = consumption
        self._corrected = client.parts.of(corrected_offset)
        self._is_subscribed = client.parts.of(is_subscribed)
        self._note_progress = client.parts.of(note_progress)
        self._call: Call | None = None
        self._sent_ms = 0
        self._due_ms = 0
        self._fruitless = 0
        self._full_count: int | None = None
        """The number of cached messages at which a pulled message did not fit."""

    def step(self, now_ms: int, *, is_paused: bool) -> int:
        """Take the answer and send the next request; return when the next step is due."""
        holding = self._holding
        if holding.state is not HoldingState.ACTIVE:
            self._call = None
            return NEVER
        if self._call is not None:
            outcome = self._call.outcome(now_ms)
            if outcome is None:
                return self._call.deadline_ms
            request, self._call = self._call.request, None
            if not isinstance(request, Pull) or request.offset == holding.next_offset:
                self._take(outcome, now_ms)
            else:
                self._due_ms = now_ms  # a hand-over that was called off has moved the offset meanwhile
        if holding.state is not HoldingState.ACTIVE or holding.wants_restart:
            return now_ms
        if self._call is None:
            if now_ms < self._due_ms:
                return self._due_ms
            self._pull(now_ms, is_paused=is_paused)
        return self._due_ms if self._call is None else due_of(self._call, now_ms)

    def _pull(self, now_ms: int, *, is_paused: bool) -> None:
        """Send a request, or note when to try again."""
        holding, settings = self._holding, self._client.settings
        holding.process_queue.last_pull_timestamp = now_ms
        room = self.flow_control.room(holding.process_queue, holding.next_offset)
        if self._full_count is not None and holding.process_queue.msg_count >= self._full_count:
            room = 0
        if is_paused:
            self._due_ms = now_ms + settings.pull_time_delay_mills_when_suspend
        elif not room:
            self._due_ms = now_ms + settings.pull_time_delay_mills_when_flow_control
        elif not self._leases.is_usable(holding, now_ms):
            self._due_ms = now_ms + settings.pull_time_delay_mills_when_exception
        else:
            self._send(min(room, settings.pull_batch_size), now_ms)

    def _send(self, count: int, now_ms: int) -> None:
        holding, settings = self._holding, self._client.settings
        progress = None if settings.is_broadcasting else self._offsets.get(holding.queue)
        request = Pull(
            self._client.group,
            holding.queue,
            holding.next_offset,
            holding.subscription,
            count=count,
            suspend_ms=settings.broker_suspend_max_time_millis,
            commit_offset=progress or None,
            lease=holding.lease,
        )
        self._sent_ms = now_ms
        timeout_ms = settings.consumer_timeout_millis_when_suspend
        self._call = self._client.call(holding.queue.broker_name, request, now_ms, timeout_ms=timeout_ms)

    # ---- answers -------------------------------------------------------------------------------------------------

    def _take(self, outcome: Answer | CallError, now_ms: int) -> None:
        match outcome:
            case Pulled(status=PullStatus.OFFSET_ILLEGAL):
                ask = QueryBounds(self._holding.queue)
                self._call = self._client.call(self._holding.queue.broker_name, ask, now_ms)
            case Pulled():
                self._found(outcome, now_ms)
            case Bounds():
                self._correct(outcome, now_ms)
            case Refused(reason=Refusal.FENCED):
                self._client.findings.add(f"{self._holding.queue.java_text()}: the lease is void")
                self._holding.lose(now_ms)
            case _:
                if isinstance(outcome, Refused):
                    self._client.findings.add(f"{self._holding.queue.java_text()}: {outcome.sentence}")
                self._due_ms = now_ms + self._client.settings.pull_time_delay_mills_when_exception

    def _found(self, answer: Pulled, now_ms: int) -> None:
        holding, queue = self._holding, self._holding.process_queue
        asked = holding.next_offset
        wanted = [
            message_of(each, holding, self._client.group, answer.max_offset)
            for each in answer.messages
            if each.queue_offset >= asked and self._is_subscribed(holding.subscription, each)
        ]
        holding.max_offset = answer.max_offset
        accepted = wanted[: self.flow_control.accepted(queue, wanted)]
        is_whole = len(accepted) == len(wanted)
        self._full_count = None if is_whole else queue.msg_count + len(accepted)
        holding.next_offset = max(asked, answer.next_offset) if is_whole else wanted[len(accepted)].queue_offset
        if accepted:
            queue.put_message(accepted)
            self._consumption.submit(holding, accepted)
        elif not queue.msg_count:
            self._note_progress(self._offsets, holding, holding.next_offset, increase_only=True)
        self._due_ms = now_ms + self._pause_ms(bool(accepted), holding.next_offset > asked, now_ms)

    def _pause_ms(self, has_messages: bool, has_moved: bool, now_ms: int) -> int:
        if has_messages:
            self._fruitless = 0
            return self._client.settings.pull_interval
        if has_moved or now_ms - self._sent_ms >= _FRUITLESS_MS:
            self._fruitless = 0
            return 0
        self._fruitless += 1
        return int(min(_FRUITLESS_MS << min(self._fruitless - 1, 10), _FRUITLESS_MS_MAX))

    def _correct(self, bounds: Bounds, now_ms: int) -> None:
        holding = self._holding
        asked, corrected = holding.next_offset, self._corrected(holding.next_offset, bounds)
        place = f"{holding.queue.java_text()}: offset {asked}, the queue has {bounds.min_offset} to {bounds.max_offset}"
        if corrected is None:
            self._client.findings.add(f"{place}: begins again at the stored progress")
            holding.wants_restart = True
            return
        if corrected == asked:
            self._due_ms = now_ms + self._client.settings.pull_time_delay_mills_when_exception
            return
        self._client.findings.add(f"{place}: goes on at {corrected}")
        holding.next_offset = corrected
        if not holding.process_queue.msg_count:
            self._note_progress(self._offsets, holding, corrected, increase_only=True)
