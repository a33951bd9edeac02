"""Calls as they happened: task, request, answer, and the logical times of begin and end.

A logical time is a number from one counter that all tasks share. A call that ended before another one began came first.
The order of two overlapping calls is not known. Threads of the operating system may share a recorder, because taking
the next number and appending to a list are each one step of the interpreter.
"""

import itertools
from dataclasses import dataclass, field

from tornpage.model.answers import Answer, PutAnswer, QueueRead, RecordRead
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
    Step,
)
from tornpage.model.payloads import given_of

__all__ = ["CLOSED", "Call", "Recorder", "answer_text", "request_text"]

CLOSED = Answer(client="closed")
"""The answer to a call after a close."""


@dataclass(slots=True)
class Call:
    """One call of one task.

    `ended` is None without an answer; the call may then have had an effect or not.
    """

    task: int
    request: AnyOperation
    began: int
    answer: Answer | None = None
    ended: int | None = None

    def overlaps(self, other: "Call") -> bool:
        """Whether two calls overlap in time."""
        return (other.ended is None or self.began < other.ended) and (self.ended is None or other.began < self.ended)

    def __str__(self) -> str:
        answered = "no answer" if self.ended is None else answer_text(self.answer)
        times = f"[{self.began}, {'…' if self.ended is None else self.ended}]"
        return f"task {self.task} {times} {request_text(self.request)}: {answered}"


@dataclass(slots=True)
class Recorder:
    """The history of one run, in the order in which its calls began."""

    calls: list[Call] = field(default_factory=list)
    _times: "itertools.count[int]" = field(default_factory=itertools.count)

    def begin(self, task: int, request: AnyOperation) -> Call:
        """Record that a task begins a call."""
        call = Call(task, request, next(self._times))
        self.calls.append(call)
        return call

    def end(self, call: Call, answer: Answer) -> None:
        """Record the answer to a call."""
        call.answer = answer
        call.ended = next(self._times)


def request_text(request: AnyOperation) -> str:
    """Return a short text of a client's operation."""
    match request:
        case Put() | PutBatch():
            given = given_of(request)
            return f"put({given.topic}/{given.queue_id}, {len(given.body or b'')} bytes)"
        case GetAt(offset):
            return f"get({offset})"
        case Pull(topic, queue_id, offset):
            return f"get_message({topic}/{queue_id}, from {offset})"
        case Query(topic, key, max_num):
            return f"query_message({topic}, {key!r}, {max_num} at most)"
        case AskMinimum(topic, queue_id):
            return f"min_offset_in_queue({topic}/{queue_id})"
        case AskMaximum(topic, queue_id):
            return f"max_offset_in_queue({topic}/{queue_id})"
        case Commit(topic, queue_id, offset):
            return f"commit_offset({topic}/{queue_id}, {offset})"
        case QueryProgress(topic, queue_id):
            return f"query_offset({topic}/{queue_id})"
        case DeleteTopics(in_use):
            return f"clean_unused_topics(in use: {', '.join(in_use) or 'none'})"
        case Step(service):
            return f"step of {service}"
        case Flush() | Close():
            return f"{request.op}()"
        case _:
            return f"{request}"


def answer_text(answer: Answer | None) -> str:
    """Return a short text of an answer; for a put, its offset and queue offset."""
    if answer is None:
        return "done"
    if isinstance(answer.put, PutAnswer):
        put = answer.put
        return put.status if put.offset < 0 else f"{put.status} #{put.queue_offset} at {put.offset}"
    if answer.got is not None:
        return answer.got.status if answer.got.body is None else f"{answer.got.status} #{answer.got.queue_offset}"
    if answer.durable is not None:
        return f"{'durable' if answer.durable else 'not durable'} up to {answer.client}"
    if answer.names is not None:
        return f"[{', '.join(answer.names)}]"
    if answer.committed is not None:
        return f"{answer.committed}"
    match answer.client:
        case QueueRead(status, following, least, most, records):
            return f"{status} {_records_text(records)}, next {following}, queue {least} to {most}"
        case None:
            return "done"
        case int() | str():
            return f"{answer.client}"
        case _:
            return _records_text(answer.client)


def _records_text(records: tuple[RecordRead, ...]) -> str:
    return f"[{', '.join(f'#{each.queue_offset} at {each.offset}' for each in records)}]"
