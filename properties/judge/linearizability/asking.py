"""Run an operation of a client on a store and return its answer in terms of the model."""

from tornpage.impl.errors import BufferReleased, StoreClosed
from tornpage.impl.message.message import PutResult
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.impl.store import MessageStore
from tornpage.model.answers import Answer, Got, PutAnswer, QueueRead, RecordRead
from tornpage.model.message import Batch
from tornpage.model.operations import (
    AnyOperation,
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetAt,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
)
from tornpage.model.payloads import given_of
from tornpage.model.step_reads import GROUP
from tornpage.properties.contract import HarnessError
from tornpage.properties.judge.linearizability.calls import CLOSED, Call, Recorder
from tornpage.properties.program.translation import store_batch, store_message

__all__ = ["ask"]


def ask(store: MessageStore, history: Recorder, task: int, operation: AnyOperation) -> Call:
    """Run an operation, record its times, and return the call.

    A close takes buffers back from its readers; such a read is answered with CLOSED too.
    """
    call = history.begin(task, operation)
    try:
        answer = _answer(store, operation)
    except (StoreClosed, BufferReleased):
        answer = CLOSED
    history.end(call, answer)
    return call


def _answer(store: MessageStore, operation: AnyOperation) -> Answer:
    match operation:
        case Put() | PutBatch():
            return Answer(put=_put(store, operation))
        case GetAt(offset):
            return Answer(got=_got(store, offset))
        case Pull():
            return Answer(client=_pulled(store, operation))
        case Query(topic, key, max_num):
            with store.query_message(topic, key, max_num=max_num) as found:
                return Answer(client=tuple(_seen(buffer) for buffer in found.messages))
        case AskMaximum(topic, queue_id):
            return Answer(client=store.max_offset_in_queue(topic, queue_id))
        case AskMinimum(topic, queue_id):
            return Answer(client=store.min_offset_in_queue(topic, queue_id))
        case Commit(topic, queue_id, offset):
            return Answer(committed=store.commit_offset(GROUP, topic, queue_id, offset))
        case QueryProgress(topic, queue_id):
            wanted = store.query_offset(GROUP, topic, queue_id)
            return Answer(client="unknown" if wanted is None else wanted)
        case Flush():
            result = store.flush()
            return Answer(durable=result.durable, client=result.flushed_offset)
        case DeleteTopics(in_use):
            return Answer(names=tuple(store.clean_unused_topics(in_use)))
        case Close():
            store.close()
            return Answer()
        case _:
            raise HarnessError(f"a store has no operation for {operation!r}")


def _put(store: MessageStore, operation: Put | PutBatch) -> PutAnswer:
    given = given_of(operation)
    result: PutResult = (
        store.put_batch(store_batch(given)) if isinstance(given, Batch) else store.put(store_message(given))
    )
    return PutAnswer(
        result.status.value,
        result.offset,
        result.size_bytes,
        result.queue_offset,
        result.store_timestamp,
        result.message_count,
        result.message_id,
    )


def _got(store: MessageStore, offset: int) -> Got:
    result = store.get(offset)
    message = result.message
    if message is None:
        return Got(result.status.value)
    return Got(
        result.status.value,
        message.topic,
        message.body,
        message.queue_id,
        message.queue_offset,
        message.store_timestamp,
    )


def _pulled(store: MessageStore, pull: Pull) -> QueueRead:
    with store.get_message(pull.topic, pull.queue_id, pull.offset, max_msg_nums=pull.max_msg_nums) as result:
        records = tuple(_seen(buffer) for buffer in result.messages)
    return QueueRead(result.status.value, result.next_begin_offset, result.min_offset, result.max_offset, records)


def _seen(buffer: RecordBuffer) -> RecordRead:
    message = buffer.message()
    return RecordRead(message.offset, buffer.queue_offset, message.body)
