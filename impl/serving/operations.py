"""What clients can ask of a served node, as JSON objects.

| op | fields | answer |
|---|---|---|
| put | topic, body or body64, queue, tags, keys, properties | status, offset, queue_offset, message_id |
| get | topic, queue, offset, max | status, min, max, next, messages |
| query | topic, key, max | messages |
| queues | | queues: topic, queue, min, max of each |
| commit | group, topic, queue, offset | |
| progress | group, topic, queue | offset: the next message of the group, null if nothing is known |
| flush | | durable, flushed_offset |
| status | | the status of the node and of its store |
| drain | | left: bytes that no replica has yet |
| become | role, master | the status afterwards |
| follow | master | the status afterwards |

`queue` and `offset` are 0 and `max` is 32 if a request leaves them out. `body` is text, and `body64` bytes in base64.
Messages have both if the bytes are UTF-8, else `body64` only. The answer to a put comes when the store keeps its
promise: after the flush and the confirmation of the replicas, if the configuration asks for them.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import StoreError
from tornpage.impl.message.message import Message, PutResult, StoredMessage
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.serving.fields import (
    Answer,
    BadRequest,
    Fields,
    address_of,
    body_of,
    bytes_document,
    failed,
    number_of,
    refusal,
    text_of,
)
from tornpage.impl.store import MessageStore

__all__ = ["Operations", "StoreOperations", "put_answer", "store_status"]

_MESSAGES_MAX = 1_000


class StoreOperations:
    """The operations of a store. `store_of` is called for each request."""

    _answered_later: tuple[str, ...] = ("put",)

    def __init__(self, store_of: Callable[[], MessageStore]) -> None:
        self._store_of = store_of
        self._known: dict[str, Callable[[Fields], Answer]] = {
            "get": self._get,
            "query": self._query,
            "queues": self._queues,
            "commit": self._commit,
            "progress": self._progress,
            "flush": self._flush,
        }

    def answer_of(self, _: Fields, result: Any) -> Answer:
        """Return the answer to a put whose future is done."""
        return put_answer(result)

    def answer(self, request: Fields) -> "Answer | Future[Any]":
        """Return the answer to a request, or a future for a put."""
        operation = request.get("op")
        try:
            if operation == "put":
                return self._store_of().put_async(_message(request))
            if not isinstance(operation, str) or operation not in self._known:
                names = ", ".join((*self._answered_later, *self._known))
                return refusal(f"no operation is named {operation!r}; the names are {names}")
            return {"ok": True, **self._known[operation](request)}
        except (BadRequest, StoreError) as error:
            return refusal(str(error))
        except OSError as error:
            return failed(error)

    # ---- messages ------------------------------------------------------------------------------------------------

    def _get(self, fields: Fields) -> Answer:
        count = number_of(fields, "max", 32, 1, _MESSAGES_MAX)
        found = self._store_of().get_message(
            text_of(fields, "topic"), number_of(fields, "queue", 0), number_of(fields, "offset", 0), max_msg_nums=count
        )
        with found:
            messages = [_document(buffer.message()) for buffer in found.messages]
        return {
            "status": found.status.name,
            "min": found.min_offset,
            "max": found.max_offset,
            "next": found.next_begin_offset,
            "messages": messages,
        }

    def _query(self, fields: Fields) -> Answer:
        count = number_of(fields, "max", 32, 1, _MESSAGES_MAX)
        with self._store_of().query_message(text_of(fields, "topic"), text_of(fields, "key"), max_num=count) as found:
            return {"messages": [_document(buffer.message()) for buffer in found.messages]}

    def _queues(self, _: Fields) -> Answer:
        store = self._store_of()
        rows = [
            {
                "topic": topic,
                "queue": queue_id,
                "min": store.min_offset_in_queue(topic, queue_id),
                "max": store.max_offset_in_queue(topic, queue_id),
            }
            for topic, queue_id in store.queues()
        ]
        return {"queues": rows}

    # ---- progress of groups --------------------------------------------------------------------------------------

    def _commit(self, fields: Fields) -> Answer:
        group, topic = text_of(fields, "group"), text_of(fields, "topic")
        self._store_of().commit_offset(group, topic, number_of(fields, "queue", 0), number_of(fields, "offset"))
        return {}

    def _progress(self, fields: Fields) -> Answer:
        group, topic = text_of(fields, "group"), text_of(fields, "topic")
        return {"offset": self._store_of().query_offset(group, topic, number_of(fields, "queue", 0))}

    def _flush(self, _: Fields) -> Answer:
        flushed = self._store_of().flush()
        return {"durable": flushed.durable, "flushed_offset": flushed.flushed_offset}


class Operations(StoreOperations):
    """The operations of one node.

    `answer` returns at once. Only a change of roles takes as long as an open of the store.
    """

    def __init__(self, node: ReplicatedStore) -> None:
        super().__init__(lambda: node.store)
        self._node = node
        self._known |= {
            "status": self._status,
            "drain": self._drain,
            "become": self._become,
            "follow": self._follow,
        }

    # ---- the node ------------------------------------------------------------------------------------------------

    def _status(self, _: Fields) -> Answer:
        return self.status()

    def status(self) -> Answer:
        """Return the status of the node and of its store."""
        return {**self._node.status(), **store_status(self._node.store)}

    def _drain(self, _: Fields) -> Answer:
        return {"left": self._node.drain()}

    def _become(self, fields: Fields) -> Answer:
        name = text_of(fields, "role")
        if name not in BrokerRole.__members__:
            raise BadRequest(f"no role is named {name!r}; the roles are {', '.join(BrokerRole.__members__)}")
        master = address_of(fields, "master") if name == "SLAVE" else ""
        self._node.become(BrokerRole[name], master=master)
        return self.status()

    def _follow(self, fields: Fields) -> Answer:
        self._node.follow(address_of(fields, "master"))
        return self.status()


def store_status(store: MessageStore) -> Answer:
    """Return the status of a store."""
    return {
        "store": store.directory,
        "read_only_reason": store.read_only_reason,
        "dispatch_behind_bytes": store.dispatch_behind_bytes,
        "dispatch_error": store.dispatch_error,
        "findings_of_store": [f"{each.severity} {each.code}: {each.message}" for each in store.findings],
    }


def put_answer(result: PutResult) -> Answer:
    """Return the answer to a put.

    `ok` is true for PUT_OK only: the message is stored as the configuration promises.
    """
    return {
        "ok": result.status.name == "PUT_OK",
        "status": result.status.name,
        "offset": result.offset,
        "queue_offset": result.queue_offset,
        "message_id": result.message_id,
    }


def _message(fields: Fields) -> Message:
    given = fields.get("properties", {})
    if not isinstance(given, dict):
        raise BadRequest("`properties` is no object")
    properties = dict(given)
    if not all(isinstance(value, str) for value in properties.values()):
        raise BadRequest("`properties` has a value that is no text")
    for name, key in (("TAGS", "tags"), ("KEYS", "keys")):
        if key in fields:
            properties[name] = text_of(fields, key)
    return Message(
        text_of(fields, "topic"), body_of(fields), number_of(fields, "queue", 0, 0, (1 << 31) - 1), properties
    )


def _document(message: StoredMessage | None) -> Answer:
    assert message is not None
    return {
        "offset": message.offset,
        "queue_offset": message.queue_offset,
        "topic": message.topic,
        "queue": message.queue_id,
        "store_timestamp": message.store_timestamp,
        "message_id": message.message_id,
        "properties": dict(message.properties),
        **bytes_document(message.body),
    }
