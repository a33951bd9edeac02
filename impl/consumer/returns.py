"""Messages on their way back to the broker.

A message is sent back to the broker that has it. If that is refused or has no answer, a copy is sent to the retry topic
of the next broker, with the same key. The message stays cached, and pins the progress, until a copy is stored.

Both requests store the same copy: its number of tries is that of the pulled record and one more. Tries of this client
after a return that failed are not counted, because they have no growing delays. RocketMQ counts them only in the second
request. An orderly client counts its tries itself, and sends a message back after the last one. Source:
`DefaultMQPushConsumerImpl.sendMessageBack`.
"""

from dataclasses import dataclass

from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.holding import Holding
from tornpage.impl.consumer.messages import ConsumerMessage, identity_of
from tornpage.impl.consumer.requests import SendBack, SendBackStatus, SendToRetry, SentBack

__all__ = ["Return", "Returns"]


@dataclass(slots=True, eq=False)
class Return:
    """One message on its way.

    `is_stored` is None until the outcome is known. `times` are the tries of the message so far.
    """

    holding: Holding
    message: ConsumerMessage
    times: int
    delay_level: int
    call: Call
    is_copy: bool
    is_stored: bool | None = None


class Returns:
    """Sends messages back. `finished` returns those whose outcome is known."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._returns: list[Return] = []

    def add(
        self, holding: Holding, message: ConsumerMessage, now_ms: int, *, delay_level: int = 0, as_copy: bool = False
    ) -> None:
        """Begin to send a message back; `as_copy` begins with the copy."""
        broker_name = holding.queue.broker_name
        times = message.reconsume_times if as_copy else message.stored.reconsume_times
        if as_copy:
            call = self._copied(message, times, now_ms, delay_level, broker_name)
        else:
            request = SendBack(
                self._client.group,
                message.commit_log_offset,
                identity_of(message.stored),
                delay_level,
                self._client.settings.reconsume_times_max,
                self._key(message),
            )
            call = self._client.call(broker_name, request, now_ms)
        self._returns.append(Return(holding, message, times, delay_level, call, as_copy))
        holding.returning += 1

    def finished(self, now_ms: int) -> tuple[list[Return], int]:
        """Take answers; return the finished messages, and when the next step is due."""
        due_ms = NEVER
        for each in self._returns:
            self._step(each, now_ms)
            if each.is_stored is None:
                due_ms = min(due_ms, due_of(each.call, now_ms))
        finished = [each for each in self._returns if each.is_stored is not None]
        if finished:
            self._returns = [each for each in self._returns if each.is_stored is None]
        for each in finished:
            each.holding.returning -= 1
        return finished, due_ms

    def _step(self, each: Return, now_ms: int) -> None:
        outcome = each.call.outcome(now_ms)
        if outcome is None:
            return
        if isinstance(outcome, SentBack):
            each.is_stored = True
            if outcome.status is SendBackStatus.DEAD_LETTER:
                self._client.findings.add(f"{each.message.message_id}: sent to the dead letters")
        elif each.is_copy:
            self._client.findings.add(f"{each.message.message_id}: not sent back: {outcome}")
            each.is_stored = False
        else:
            each.is_copy = True
            broker_name = self._client.broker_after(each.holding.queue.broker_name)
            each.call = self._copied(each.message, each.times, now_ms, each.delay_level, broker_name)

    def _copied(self, message: ConsumerMessage, times: int, now_ms: int, delay_level: int, broker_name: str) -> Call:
        stored = message.stored
        request = SendToRetry(
            self._client.group,
            message.topic,
            stored.body,
            stored.properties,
            stored.flag,
            stored.born_timestamp,
            stored.born_host,
            stored.properties.get("ORIGIN_MESSAGE_ID", stored.message_id),
            times,
            self._client.settings.reconsume_times_max,
            self._key(message),
            delay_level,
        )
        return self._client.call(broker_name, request, now_ms)

    def _key(self, message: ConsumerMessage) -> str:
        """Return the key of a message and of its number of deliveries.

        It has the identity of the message: after a crash another one may have its place.
        """
        queue = message.queue
        place = f"{queue.broker_name}/{queue.topic}/{queue.queue_id}/{message.queue_offset}"
        return f"{self._client.group}/{place}/{message.commit_log_offset}/{identity_of(message.stored)}"
