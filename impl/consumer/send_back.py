"""Messages that a group has to consume again.

They are copied to the retry topic, and after too many failures to the dead letters. The copy is put with the durability
of the store's mode, so that a consumer that counts the original as finished cannot lose the message. RocketMQ puts it
with WAIT=false. A request that is repeated with its key stores no second copy, while the broker remembers the key. A
group whose `retry_queue_nums` is 0 is refused; RocketMQ answers success then and stores nothing.

A request names the identity of its message. After a crash that cut the log, another record may be at the physical
offset. The request is refused then, and the client sends its own copy. RocketMQ copies the other message.

Source: `SendMessageProcessor.asyncConsumerSendMsgBack`, `handleRetryAndDLQ`.
"""

from collections import OrderedDict
from collections.abc import Mapping

from tornpage.impl.consumer.messages import identity_of
from tornpage.impl.consumer.queues import dead_letter_topic, retry_topic
from tornpage.impl.consumer.requests import Answer, Refusal, Refused, SendBack, SendBackStatus, SendToRetry, SentBack
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig
from tornpage.impl.message.message import Message, PutStatus, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

__all__ = ["RETRY_DELAY_LEVEL", "SendBacks", "copy_properties", "is_dead", "is_same_record", "retry_delay_level"]

RETRY_DELAY_LEVEL = 3
"""The delay level of the first retry; each further one has the next level."""
_RETRY_TOPIC, _ORIGIN_ID, _DELAY, _WAIT = "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DELAY", "WAIT"


def is_same_record(request: SendBack, stored: StoredMessage) -> bool:
    """Return whether the record at the physical offset of a request is its message."""
    return request.identity == identity_of(stored)


def is_dead(reconsume_times: int, times_max: int, delay_level: int) -> bool:
    """Return whether a message goes to the dead letters, and is not delivered again."""
    return reconsume_times >= times_max or delay_level < 0


def retry_delay_level(reconsume_times: int, delay_level: int) -> int:
    """Return the delay level of a copy; `delay_level` 0 leaves the choice to the broker."""
    return delay_level or RETRY_DELAY_LEVEL + reconsume_times


def copy_properties(properties: Mapping[str, str], *, topic: str, message_id: str, delay_level: int) -> dict[str, str]:
    """Return the properties of a copy.

    `topic` and `message_id` are those of the original message. A copy without a delay has level 0. WAIT is left out:
    the copy is as durable as the mode of the store promises.
    """
    copied = {name: value for name, value in properties.items() if name not in (_DELAY, _WAIT)}
    copied.setdefault(_RETRY_TOPIC, topic)
    copied.setdefault(_ORIGIN_ID, message_id)
    if delay_level > 0:
        copied[_DELAY] = str(delay_level)
    return copied


class SendBacks:
    """Puts the copies.

    The put may wait for a flush. The caller serialises requests with equal keys.
    """

    def __init__(self, store: MessageStore, *, keys_max: int, parts: Parts) -> None:
        self._store = store
        self._keys_max = keys_max
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._is_same_record = parts.of(is_same_record)
        self._is_dead = parts.of(is_dead)
        self._delay_level = parts.of(retry_delay_level)
        self._properties = parts.of(copy_properties)

    def send_back(self, request: SendBack, group: SubscriptionGroupConfig) -> Answer:
        """Put a copy of a stored message."""
        stored = self._store.get(request.commit_log_offset).message
        if stored is None:
            return Refused(Refusal.SYSTEM_ERROR, f"no message is at physical offset {request.commit_log_offset}")
        if not self._is_same_record(request, stored):
            return Refused(Refusal.SYSTEM_ERROR, f"another message is at physical offset {request.commit_log_offset}")
        copy = SendToRetry(
            request.group,
            stored.topic,
            stored.body,
            stored.properties,
            stored.flag,
            stored.born_timestamp,
            stored.born_host,
            _id_of(stored),
            stored.reconsume_times,
            request.max_reconsume_times,
            request.key,
            request.delay_level,
        )
        return self.send_to_retry(copy, group)

    def send_to_retry(self, request: SendToRetry, group: SubscriptionGroupConfig) -> Answer:
        """Put a copy that the request describes."""
        if group.retry_queue_nums <= 0:
            return Refused(Refusal.NO_PERMISSION, f"group {request.group} has no retry queue")
        if request.key in self._keys:
            return SentBack(SendBackStatus.REPEATED)
        times_max = request.max_reconsume_times if request.max_reconsume_times >= 0 else group.retry_max_times
        dead = self._is_dead(request.reconsume_times, times_max, request.delay_level)
        level = 0 if dead else self._delay_level(request.reconsume_times, request.delay_level)
        copy = Message(
            dead_letter_topic(request.group) if dead else retry_topic(request.group),
            request.body,
            properties=self._properties(
                request.properties, topic=request.topic, message_id=request.message_id, delay_level=level
            ),
            flag=request.flag,
            born_timestamp=request.born_timestamp,
            born_host=request.born_host,
            reconsume_times=request.reconsume_times + 1,
        )
        result = self._store.put(copy)
        if result.status is not PutStatus.PUT_OK:
            return Refused(Refusal.SYSTEM_ERROR, f"the copy is not stored as promised: {result.status.name}")
        self._remember(request.key)
        return SentBack(SendBackStatus.DEAD_LETTER if dead else SendBackStatus.RETRY)

    def _remember(self, key: str) -> None:
        self._keys[key] = None
        while len(self._keys) > self._keys_max:
            self._keys.popitem(last=False)


def _id_of(stored: StoredMessage) -> str:
    return stored.properties.get(_ORIGIN_ID, stored.message_id)
