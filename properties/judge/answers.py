"""Answers to puts as a store gives them; the model says the same by `model.answers.PutAnswer`."""

from dataclasses import dataclass

from impl.message import PutResult

__all__ = ["Answer", "found_answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a put was answered; numbers are -1, the rest is empty, when nothing was written."""

    status: str
    offset: int = -1
    size_bytes: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1
    message_count: int = 0
    message_ids: str = ""


def found_answer(result: PutResult) -> Answer:
    """Return what the store answered."""
    return Answer(
        result.status.value,
        result.offset,
        result.size_bytes,
        result.queue_offset,
        result.store_timestamp,
        result.message_count,
        result.message_id,
    )
