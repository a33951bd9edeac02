"""A request put to a store, and its answer in words that are not the store's."""

from typing import Any

from tornpage.impl.errors import BufferReleased, StoreClosed
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.impl.store import MessageStore
from tornpage.model.message import Batch
from tornpage.properties.contract import HarnessError
from tornpage.properties.judge.answers import Answer, found_answer
from tornpage.properties.judge.linearizability.calls import Call, Recorder
from tornpage.properties.judge.linearizability.requests import (
    CLOSED,
    Closing,
    CommitOffset,
    Flushed,
    FlushRequest,
    GetRequest,
    Got,
    KeyRequest,
    Pulled,
    PullRequest,
    PutRequest,
    QueryOffset,
    QueueMaximum,
    QueueMinimum,
    ReadRecord,
    TopicDeletion,
)
from tornpage.properties.program.translation import store_batch, store_message

__all__ = ["asked"]


def asked(store: MessageStore, history: Recorder, task: int, request: Any) -> Call:
    """Ask, record when, and return the call. A close takes the buffers of its readers back: that is its answer too."""
    call = history.begin(task, request)
    try:
        answer = _answer(store, request)
    except (StoreClosed, BufferReleased):
        answer = CLOSED
    history.end(call, answer)
    return call


def _answer(store: MessageStore, request: Any) -> Any:
    match request:
        case PutRequest(given):
            return _put(store, given)
        case GetRequest(offset):
            return _got(store, offset)
        case PullRequest():
            return _pulled(store, request)
        case KeyRequest(topic, key, max_num):
            with store.query_message(topic, key, max_num=max_num) as found:
                return tuple(_seen(buffer) for buffer in found.messages)
        case QueueMaximum(topic, queue_id):
            return store.max_offset_in_queue(topic, queue_id)
        case QueueMinimum(topic, queue_id):
            return store.min_offset_in_queue(topic, queue_id)
        case CommitOffset(group, topic, queue_id, offset):
            return store.commit_offset(group, topic, queue_id, offset)
        case QueryOffset(group, topic, queue_id):
            return store.query_offset(group, topic, queue_id)
        case FlushRequest():
            result = store.flush()
            return Flushed(result.durable, result.flushed_offset)
        case TopicDeletion(in_use):
            return store.clean_unused_topics(in_use)
        case Closing():
            return store.close()
        case _:
            raise HarnessError(f"no store is asked {request!r}")


def _put(store: MessageStore, given: Any) -> Answer:
    if isinstance(given, Batch):
        return found_answer(store.put_batch(store_batch(given)))
    return found_answer(store.put(store_message(given)))


def _got(store: MessageStore, offset: int) -> Got:
    result = store.get(offset)
    message = result.message
    record = None if message is None else ReadRecord(message.offset, message.queue_offset, message.body)
    return Got(result.status.value, record)


def _pulled(store: MessageStore, request: PullRequest) -> Pulled:
    topic, queue_id, offset, count = request.topic, request.queue_id, request.offset, request.max_msg_nums
    with store.get_message(topic, queue_id, offset, max_msg_nums=count) as result:
        records = tuple(_seen(buffer) for buffer in result.messages)
    return Pulled(result.status.value, result.next_begin_offset, result.min_offset, result.max_offset, records)


def _seen(buffer: RecordBuffer) -> ReadRecord:
    message = buffer.message()
    return ReadRecord(message.offset, buffer.queue_offset, message.body)
