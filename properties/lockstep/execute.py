"""Call the store, one function for each kind of call.

An exception that the caller does not expect breaks contract 8.
"""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from tornpage.impl.message.message import Message as StoreMessage
from tornpage.impl.message.message import MessageBatch, PutResult, PutStatus
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.model.answers import PutAnswer
from tornpage.model.holding import Holding
from tornpage.model.message import Batch, Message
from tornpage.model.operations import Put, PutBatch
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.translation import store_batch, store_message

__all__ = [
    "answered_puts",
    "call_pull",
    "call_put",
    "call_put_async",
    "must_wait",
    "put_answer",
    "put_status",
    "service_named",
]

Result = TypeVar("Result")


def call_put(pair: Pair, put: Put | PutBatch, given: Message | Batch) -> PutResult:
    """Put into the store and return its answer."""
    message = _for_store(put, given)
    if isinstance(message, MessageBatch):
        return observed("put_batch", lambda: pair.store.put_batch(message))
    return observed("put", lambda: pair.store.put(message))


def call_put_async(pair: Pair, put: Put | PutBatch, given: Message | Batch) -> Future[PutResult]:
    """Put into the store with `put_async`; return the future."""
    message = _for_store(put, given)
    return _future("put_async", observed("put_async", lambda: pair.store.put_async(message)))


def _future(verb: str, answer: Future[Result]) -> Future[Result]:
    """Return the answer of an asynchronous call of the store.

    Raises GuaranteeBroken (8) if it is no future.
    """
    if not isinstance(answer, Future):
        raise GuaranteeBroken(8, f"{verb} returns no future", "a future", type(answer).__name__)
    return answer


def must_wait(verb: str, answer: Future[Any]) -> None:
    """Ask a future for an answer that is not there yet.

    Raises GuaranteeBroken (8) unless the time runs out.
    """
    for name, ask in (("result", answer.result), ("exception", answer.exception)):
        try:
            found = repr(ask(timeout=0))
        except TimeoutError:
            continue
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        raise GuaranteeBroken(8, f"a future of {verb} that waits has another {name}", "TimeoutError", found)


def _for_store(put: Put | PutBatch, given: Message | Batch) -> StoreMessage | MessageBatch:
    """Return the message for the store.

    It has all fields of the model's message, but maybe a born time left to the store's clock.
    """
    message = store_batch(given) if isinstance(given, Batch) else store_message(given)
    return replace(message, born_timestamp=None) if put.born_now else message


def put_status(result: PutResult) -> str:
    """Return the name of a put's status. Raises GuaranteeBroken (8) if it has none."""
    if not isinstance(result.status, PutStatus):
        raise GuaranteeBroken(8, "a put is answered without a status", "a PutStatus", repr(result))
    return result.status.value


def put_answer(result: PutResult) -> PutAnswer:
    """Return the answer of a put in the form of the model."""
    return PutAnswer(
        put_status(result),
        result.offset,
        result.size_bytes,
        result.queue_offset,
        result.store_timestamp,
        result.message_count,
        result.message_id,
    )


def answered_puts(pair: Pair) -> tuple[tuple[int, PutAnswer], ...]:
    """Return number and answer of each asynchronous put that is answered."""
    done = ((number, answer) for number, answer in pair.clients.puts.items() if answer.done())
    return tuple((number, put_answer(observed("put_async", answer.result))) for number, answer in done)


def call_pull(pair: Pair, asked: Holding, hold_ms: int) -> Future[GetMessageResult]:
    """Pull and wait for `hold_ms` at most; return the future.

    Raises what the store raises: it may refuse a pull because too many wait.
    """
    message_filter = None if asked.tags is None else TagFilter("||".join(asked.tags))
    answer = pair.store.pull_async(
        "group",
        asked.queue[0],
        queue_id=asked.queue[1],
        offset=asked.offset,
        hold_ms=hold_ms,
        max_msg_nums=asked.max_msg_nums,
        message_filter=message_filter,
    )
    return _future("pull_async", answer)


def service_named(pair: Pair, name: str) -> HandDriven:
    """Return a service of the open store.

    Raises GuaranteeBroken (16) if it has none of that name.
    """
    service = pair.environment.service(name)
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", name, "none of that name")
    return service
