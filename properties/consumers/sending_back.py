"""Send messages back to the broker's part, over a list of records (19, 21 and 23).

1. A copy has the body, properties, flag and birth of its message. It counts one try more, and names the topic and the
   id of the first record of its message. It is as durable as the mode of the store: its properties leave out WAIT, and
   the delay of the message too.
2. It goes to the retry topic with the delay level of the request, or with level 3 and one more for each earlier try.
   After the last try, or with a level below 0, it goes to the dead letters without a delay. The number of tries is that
   of the request, or that of the group if the request has a number below 0.
3. A key that the broker knows stores nothing. It knows the newest keys of stored copies, as many as its settings say.
4. A request is refused if the group has no retry queue, if no record or another record is at its place, and if the put
   has another status than PUT_OK. Nothing is remembered then.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from tornpage.impl.consumer.messages import identity_of
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Refusal, Refused, SendBack, SendToRetry, SentBack
from tornpage.impl.consumer.send_back import SendBacks
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig
from tornpage.impl.message.message import Message, PutStatus, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.properties.consumers.caching import message_at
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["use_send_backs"]

_STEPS = 40
_GROUP, _QUEUE = "g", MessageQueue("T", "b", 1)
_FIRST_LEVEL = 3
_KEYS = ("k0", "k1", "k2", "k3", "k4")
_PROPERTIES: tuple[dict[str, str], ...] = (
    {}, {"TAGS": "A"}, {"WAIT": "false", "KEYS": "1"}, {"WAIT": "true"}, {"DELAY": "7", "TAGS": "B"},
    {"RETRY_TOPIC": "first", "ORIGIN_MESSAGE_ID": "id of the first"}, {"ORIGIN_MESSAGE_ID": "id of the first"},
)  # fmt: skip
_OTHERS: tuple[dict[str, Any], ...] = (
    {"message_id": "another"}, {"topic": "U"}, {"queue_id": 2}, {"queue_offset": 77}, {"store_timestamp": 9},
    {"flag": 9}, {"born_timestamp": 9}, {"born_host": ("10.0.0.9", 9)}, {"reconsume_times": 9},
    {"properties": {"other": "1"}}, {"body": b"another"},
)  # fmt: skip
"""What tells another record at the same place from a message."""


def use_send_backs(seed: int, parts: Parts) -> None:
    """Send drawn messages back, and compare each copy. Raises GuaranteeBroken."""
    rng = Random(seed)
    store = _Store(rng)
    keys_max = rng.choice((0, 1, 2, 4))
    broker = parts.of(SendBacks)(cast(Any, store), keys_max=keys_max, parts=parts)
    known: list[str] = []
    for number in range(_STEPS):
        group = SubscriptionGroupConfig(_GROUP, retry_queue_nums=rng.choice((1, 1, 1, 2, 0, -1)),
                                        retry_max_times=rng.choice((0, 1, 2, 16)))  # fmt: skip
        times = rng.choice((-1, -1, 0, 1, 2, 3))
        most = group.retry_max_times if times < 0 else times
        record = _record(rng, number, max(0, most + rng.choice((-2, -1, -1, 0, 0, 1))))
        level, key = rng.choice((0, 0, 0, -1, 1, 5)), rng.choice(_KEYS)
        store.puts.clear()
        store.status = PutStatus.PUT_OK if rng.random() < 0.8 else rng.choice(list(PutStatus))
        by_place = rng.random() < 0.5
        is_there = True
        if by_place:
            found, is_there = _found(rng, record)
            store.records = {} if found is None else {record.offset: found}
            request: Any = SendBack(_GROUP, record.offset, identity_of(record), level, times, key)
            answer = observed("send_back", partial(broker.send_back, request, group))
        else:
            request = SendToRetry(
                _GROUP, record.topic, record.body, record.properties, record.flag, record.born_timestamp,
                record.born_host, record.message_id, record.reconsume_times, times, key, level,
            )  # fmt: skip
            answer = observed("send_to_retry", partial(broker.send_to_retry, request, group))
        dead = record.reconsume_times >= most or level < 0
        expected, is_put = _answer(is_there, group, key in known, store.status, dead=dead)
        _is(23, f"the answer to {request}", expected, _told(answer))
        _is(21, f"the number of copies of {request}", int(is_put), len(store.puts))
        if is_put:
            _copy_is(store.puts[0], record, dead=dead, level=level)
        if is_put and store.status is PutStatus.PUT_OK:
            known = [*known, key][max(0, len(known) + 1 - keys_max) :]


def _answer(is_there: bool, group: SubscriptionGroupConfig, is_known: bool, status: PutStatus, *, dead: bool) -> Any:
    """Return the answer to a request, and whether a copy is put."""
    if not is_there:
        return Refusal.SYSTEM_ERROR, False
    if group.retry_queue_nums <= 0:
        return Refusal.NO_PERMISSION, False
    if is_known:
        return "REPEATED", False
    stored = "DEAD_LETTER" if dead else "RETRY"
    return (stored if status is PutStatus.PUT_OK else Refusal.SYSTEM_ERROR), True


def _told(answer: object) -> object:
    match answer:
        case Refused():
            return answer.reason
        case SentBack():
            return answer.status.value
    return answer


def _copy_is(copy: Message, record: StoredMessage, *, dead: bool, level: int) -> None:
    """Compare a copy with rules 1 and 2."""
    properties = {name: value for name, value in record.properties.items() if name not in ("WAIT", "DELAY")}
    properties = {"RETRY_TOPIC": record.topic, "ORIGIN_MESSAGE_ID": record.message_id, **properties}
    if not dead:
        properties["DELAY"] = str(level or _FIRST_LEVEL + record.reconsume_times)
    found = dict(cast(Mapping[str, str], copy.properties))
    _is(19, "the durability that a copy asks for", None, found.get("WAIT"))
    _is(23, "the delay of a copy", properties.get("DELAY"), found.get("DELAY"))
    _is(23, "the topic of a copy", f"%DLQ%{_GROUP}" if dead else f"%RETRY%{_GROUP}", copy.topic)
    _is(23, "the tries of a copy", record.reconsume_times + 1, copy.reconsume_times)
    _is(19, "the properties of a copy", properties, found)
    _is(19, "the content of a copy", (record.body, record.flag, record.born_timestamp, record.born_host),
        (copy.body, copy.flag, copy.born_timestamp, copy.born_host))  # fmt: skip


def _record(rng: Random, number: int, times: int) -> StoredMessage:
    """Return a record of a message that was consumed again some times."""
    return replace(
        message_at(_QUEUE, number).stored, body=b"body %d" % number, properties=rng.choice(_PROPERTIES),
        flag=rng.randrange(3), born_timestamp=rng.randrange(1, 5), born_host=("10.0.0.1", rng.randrange(9)),
        reconsume_times=times, message_id=f"id {number}",
    )  # fmt: skip


def _found(rng: Random, record: StoredMessage) -> tuple[StoredMessage | None, bool]:
    """Return what is at the place of a record, and whether it is the record."""
    draw = rng.random()
    if draw < 0.1:
        return None, False
    if draw < 0.4:
        return replace(record, **rng.choice(_OTHERS)), False
    return replace(record), True


class _Store:
    """A list of records that answers puts with a status."""

    def __init__(self, rng: Random) -> None:
        self.records: dict[int, StoredMessage] = {}
        self.puts: list[Message] = []
        self.status = PutStatus.PUT_OK
        self._rng = rng

    def get(self, offset: int) -> Any:
        """Return the record at a physical offset, if there is one."""
        return SimpleNamespace(message=self.records.get(offset))

    def put(self, message: Message) -> Any:
        """Note a put."""
        self.puts.append(message)
        return SimpleNamespace(status=self.status)


def _is(contract: int, what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(contract, f"{what} is another one", str(expected), str(found))
