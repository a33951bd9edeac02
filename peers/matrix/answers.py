"""All reads of a store in one form, and their comparison.

Reads of our store and of a release give the same form. A queue that never had a message is left out: delivery of
RocketMQ creates the queues of all delay levels, empty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Self

from tornpage.impl.message.message import GetStatus, StoredMessage
from tornpage.impl.store import MessageStore
from tornpage.peers.rocketmq.store import PeerStore

__all__ = ["Answers", "Difference", "Key", "answers_of_ours", "answers_of_peer", "compared", "keys_in"]

Key = tuple[str, str]
"""A topic and a key."""

_KEYS_MAX = 300
_FOUND_MAX = 64
_PULL = 32
_CHECKSUM_NAME = "__CRC32#"
"""The property of the checksum trailer. Our store does not show it."""


@dataclass(slots=True)
class Answers:
    """The answers of one store.

    `queues` has begin, end, the served records by place, and the places without one, by "topic/queue id". A record has
    its physical offset, size and SHA-256. `fields` has the decoded fields by physical offset, `found` the physical
    offsets by "topic key".
    """

    begin: int = 0
    end: int = 0
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    fields: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    found: dict[str, list[list[Any]]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the answers as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the answers in a document."""
        return cls(**document)


@dataclass(frozen=True, slots=True)
class Difference:
    """One item that two stores answer differently.

    `kind` is log, queue, message, fields or query; `about` names the item.
    """

    kind: str
    about: str
    expected: Any
    found: Any

    def sentence(self) -> str:
        """Return the difference as one line."""
        return f"{self.kind} {self.about}: {str(self.expected)[:160]} became {str(self.found)[:160]}"


def keys_in(answers: Answers) -> list[Key]:
    """Return topics and keys of the decoded records in order, evenly chosen, 300 at most."""
    keys: set[Key] = set()
    for fields in answers.fields.values():
        if fields is not None:
            named = fields["properties"]
            words = [named.get("UNIQ_KEY", ""), *named.get("KEYS", "").split(" ")]
            keys |= {(fields["topic"], word) for word in words if word}
    ordered = sorted(keys)
    return ordered[:: max(1, -(-len(ordered) // _KEYS_MAX))]


def answers_of_peer(store: PeerStore, keys: Sequence[Key] | None = None) -> Answers:
    """Read everything through the driver.

    Without `keys` those of the served records are asked for.
    """
    read = store.everything([])
    queues: dict[str, dict[str, Any]] = {}
    offsets: set[int] = set()
    for queue, messages, gaps in read.queues:
        if queue.end == 0 and not messages:
            continue
        queues[f"{queue.topic}/{queue.queue_id}"] = {
            "begin": queue.begin,
            "end": queue.end,
            "messages": {str(each.place): [each.offset, each.size_bytes, each.record_sha256] for each in messages},
            "gaps": [[place, status] for place, status in gaps],
        }
        offsets.update(each.offset for each in messages)
    ordered = sorted(offsets)
    fields = dict(zip(map(str, ordered), map(_shown, store.fields(ordered)), strict=True))
    answers = Answers(read.log.begin, read.log.end, queues, fields)
    asked = keys_in(answers) if keys is None else keys
    found = store.query(asked, count=_FOUND_MAX)
    for (topic, key), rows in zip(asked, found, strict=True):
        answers.found[f"{topic} {key}"] = [[offset, sha] for offset, _, sha in rows]
    return answers


def _shown(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if fields is None:
        return None
    properties = {name: value for name, value in fields["properties"].items() if name != _CHECKSUM_NAME}
    return {**fields, "properties": properties}


def answers_of_ours(store: MessageStore, keys: Sequence[Key] | None = None) -> Answers:
    """Read everything from our store.

    Without `keys` those of the served records are asked for.
    """
    answers = Answers(store.min_offset, store.max_offset)
    for topic, queue_id in store.queues():
        begin, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        if end == 0:
            continue
        messages: dict[str, list[Any]] = {}
        gaps: list[list[Any]] = []
        place = begin
        while place < end:
            with store.get_message(topic, queue_id, place, max_msg_nums=_PULL) as pulled:
                if pulled.status is GetStatus.FOUND:
                    for buffer in pulled.messages:
                        record = bytes(buffer.view)
                        messages[str(buffer.queue_offset)] = [buffer.offset, len(record), sha256(record).hexdigest()]
                        answers.fields[str(buffer.offset)] = _fields_of(buffer.message())
                else:
                    gaps.append([place, pulled.status.name])
                place = max(place + 1, pulled.next_begin_offset)
        answers.queues[f"{topic}/{queue_id}"] = {"begin": begin, "end": end, "messages": messages, "gaps": gaps}
    for topic, key in keys_in(answers) if keys is None else keys:
        with store.query_message(topic, key, max_num=_FOUND_MAX) as found:
            rows = [[buffer.offset, sha256(bytes(buffer.view)).hexdigest()] for buffer in found.messages]
        answers.found[f"{topic} {key}"] = rows
    return answers


def _fields_of(message: StoredMessage) -> dict[str, Any]:
    return {
        "topic": message.topic,
        "queue": message.queue_id,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "born": message.born_timestamp,
        "stored": message.store_timestamp,
        "crc": message.body_crc,
        "reconsumed": message.reconsume_times,
        "prepared": message.prepared_transaction_offset,
        "properties": dict(sorted(message.properties.items())),
    }


def compared(expected: Answers, found: Answers) -> tuple[int, list[Difference]]:
    """Return how many items were compared, and those that differ."""
    count, differences = 0, []
    for kind, about, left, right in _pairs(expected, found):
        count += 1
        if left != right:
            differences.append(Difference(kind, about, left, right))
    return count, differences


def _pairs(expected: Answers, found: Answers) -> Iterator[tuple[str, str, Any, Any]]:
    yield "log", "begin", expected.begin, found.begin
    yield "log", "end", expected.end, found.end
    for name in sorted({*expected.queues, *found.queues}):
        left, right = expected.queues.get(name), found.queues.get(name)
        if left is None or right is None:
            yield "queue", name, left and left["end"], right and right["end"]
            continue
        for bound in ("begin", "end", "gaps"):
            yield "queue", f"{name} {bound}", left[bound], right[bound]
        for place in sorted({*left["messages"], *right["messages"]}, key=int):
            yield "message", f"{name} {place}", left["messages"].get(place), right["messages"].get(place)
    for offset in sorted({*expected.fields, *found.fields}, key=int):
        yield "fields", offset, expected.fields.get(offset), found.fields.get(offset)
    for key, rows in expected.found.items():
        yield "query", key, rows, found.found.get(key)
