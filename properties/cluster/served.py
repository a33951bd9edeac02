"""Ask a node in the protocol of clients, and judge the answers (contract 8).

A request and its answer are lines of bytes, as between processes. An answer has to say what the store says, and a wrong
request has to be refused.
"""

import base64
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from tornpage.impl.message.message import PutResult, StoredMessage
from tornpage.impl.serving.lines import LineReader, line_of
from tornpage.impl.serving.operations import Operations
from tornpage.model.replication.operations import AskNode, PutOn
from tornpage.properties.cluster.nodes import TOPIC, Node, message_of
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.program.log_places import ROOT

__all__ = ["WRONG", "ask_node", "put_served"]

_GROUP = "g"
_HERE: dict[str, Any] = {"topic": TOPIC}
WRONG: tuple[dict[str, Any], ...] = (
    {"op": "no such name"}, {"op": 7}, {"op": "get"}, {"op": "get", **_HERE, "queue": -1},
    {"op": "get", **_HERE, "queue": True}, {"op": "get", **_HERE, "queue": "0"}, {"op": "get", **_HERE, "max": 0},
    {"op": "get", **_HERE, "max": 1_001}, {"op": "get", "topic": 7}, {"op": "query", **_HERE},
    {"op": "query", "key": "k"}, {"op": "commit", **_HERE, "group": _GROUP},
    {"op": "progress", **_HERE}, {"op": "put", **_HERE},
    {"op": "put", **_HERE, "body64": "*"}, {"op": "put", **_HERE, "body64": 7}, {"op": "put", "body": "x"},
    {"op": "put", **_HERE, "body": "x", "properties": ["a"]},
    {"op": "put", **_HERE, "body": "x", "properties": {"a": 1}},
    {"op": "put", **_HERE, "body": "x", "queue": 1 << 31}, {"op": "put", **_HERE, "body": "x", "keys": 7},
    {"op": "become", "role": "KING"}, {"op": "become", "role": "SLAVE"}, {"op": "follow"},
)  # fmt: skip
"""Requests that a node has to refuse in every role."""


def put_served(node: Node, put: PutOn) -> "Future[PutResult]":
    """Put by a request; return the future of the store.

    Raises GuaranteeBroken if the put has no future.
    """
    message = message_of(put)
    body = message.body or b""
    request = {"op": "put", **_HERE, "queue": put.queue_id, "body64": base64.b64encode(body).decode()}
    answer = observed("put", partial(_asked, node, {**request, **({"keys": put.key} if put.key else {})}))
    if not isinstance(answer, Future):
        raise GuaranteeBroken(8, "a node refuses a put in the protocol of clients", "a future", str(answer))
    return answer


def _asked(node: Node, request: dict[str, Any]) -> "dict[str, Any] | Future[PutResult]":
    """Send a request in two pieces, and return its answer as a client reads it."""
    assert node.replicated is not None
    data, reader = line_of(request), LineReader()
    half = len(data) // 2
    (arrived,) = (*reader.feed(data[:half]), *reader.feed(data[half:]))
    answer = Operations(node.replicated).answer(arrived)
    if isinstance(answer, Future):
        return answer
    (read,) = LineReader().feed(line_of(answer))
    return read


def ask_node(node: Node, asked: AskNode) -> None:
    """Ask for everything, and compare each answer with what the store says."""
    store, queue, topic = node.store, asked.queue_id, TOPIC
    place = {**_HERE, "queue": queue}
    found = store.get_message(topic, queue, asked.offset, max_msg_nums=asked.count)
    with found:
        messages = [_document(buffer.message()) for buffer in found.messages]
    _answers(
        node, {"op": "get", **place, "offset": asked.offset, "max": asked.count},
        status=found.status.name, min=found.min_offset, max=found.max_offset, next=found.next_begin_offset,
        messages=messages,
    )  # fmt: skip
    with store.query_message(topic, "k", max_num=asked.count) as keyed:
        messages = [_document(buffer.message()) for buffer in keyed.messages]
    _answers(node, {"op": "query", **_HERE, "key": "k", "max": asked.count}, messages=messages)
    rows = [
        {"topic": name, "queue": number, "min": store.min_offset_in_queue(name, number),
         "max": store.max_offset_in_queue(name, number)}
        for name, number in store.queues()
    ]  # fmt: skip
    _answers(node, {"op": "queues"}, queues=rows)
    _answers(node, {"op": "commit", **place, "group": _GROUP, "offset": asked.offset})
    wanted = min(asked.offset, store.max_offset_in_queue(topic, queue))
    _answers(node, {"op": "progress", **place, "group": _GROUP}, offset=wanted)
    status = _answers(node, {"op": "status"}, store=ROOT, read_only_reason=store.read_only_reason)
    if status["dispatch_behind_bytes"] != store.dispatch_behind_bytes:
        raise GuaranteeBroken(8, "a status has another backlog than the store")
    for request in WRONG:
        _is_refused(node, request)


def _answers(node: Node, request: dict[str, Any], **expected: object) -> dict[str, Any]:
    """Contract 8: the answer has these fields. Return it."""
    answer = observed("a request", partial(_asked, node, request))
    assert isinstance(answer, dict)
    wanted = {"ok": True, **expected}
    found = {name: answer.get(name) for name in wanted}
    if found != wanted:
        raise GuaranteeBroken(8, f"the answer to {request['op']} is not that of the store", str(wanted), str(answer))
    return answer


def _is_refused(node: Node, request: dict[str, Any]) -> None:
    """Contract 8: a wrong request has a sentence as its answer, and changes nothing."""
    end, answer = node.end, observed("a request", partial(_asked, node, request))
    if not isinstance(answer, dict) or answer.get("ok") is not False or not answer.get("error") or node.end != end:
        raise GuaranteeBroken(8, f"the wrong request {request} is not refused", "a sentence", str(answer))


def _document(message: StoredMessage | None) -> dict[str, Any]:
    """Return a message as the protocol has to write it."""
    assert message is not None
    document: dict[str, Any] = {
        "offset": message.offset, "queue_offset": message.queue_offset, "topic": message.topic,
        "queue": message.queue_id, "store_timestamp": message.store_timestamp, "message_id": message.message_id,
        "properties": dict(message.properties), "body64": base64.b64encode(message.body).decode(),
    }  # fmt: skip
    with suppress(UnicodeDecodeError):
        document["body"] = message.body.decode()
    return document
