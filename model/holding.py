"""Specify long polling: which pulls are held, when they end, and with which answer.

Contracts 16 and 17.

1. A pull that may wait is held when it finds nothing and could find something later: at the maximum of the queue, at a
   record that is not readable, or at number 0 of a queue without a message. Any other pull is answered at once.
2. A held pull ends when its tags want a unit at its offset or after it, before the first unit that is not readable. The
   number of units that one pull may look at does not matter, nor do the units between.
3. It ends when its queue no longer has its offset because the queue was deleted. If only unwanted messages have
   expired, it may end or wait on.
4. Otherwise it ends at its deadline, whatever unwanted messages arrive before.
5. Its answer is that of a pull at the moment when it ends.
6. No held pull ends before a step of the service. After a step no pull is left that had to end.

Source: docs/statuses.md, "pull and wait" (`PullRequestHoldService`).
"""

from dataclasses import dataclass
from typing import Literal

from tornpage.model.commitlog import GetStatus
from tornpage.model.queues import Queue, bounds_of, java_hash, queue_of
from tornpage.model.reading import Pulled
from tornpage.model.state import CommitLog, Layout

__all__ = ["Fate", "Holding", "fate", "is_held"]

Fate = Literal["ends", "may end", "stays"]

_AT_THE_END = (GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.OFFSET_FOUND_NULL)
_NO_MESSAGE = (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE)


@dataclass(frozen=True, slots=True)
class Holding:
    """A pull that waits until `deadline_ms`; `tags` of None takes any message."""

    queue: Queue
    offset: int
    max_msg_nums: int
    tags: tuple[str, ...] | None
    deadline_ms: int


def is_held(pulled: Pulled, offset: int) -> bool:
    """Return whether a pull from an offset that may wait is held after such an answer."""
    return pulled.status in _AT_THE_END or (pulled.status in _NO_MESSAGE and offset == 0)


def fate(log: CommitLog, layout: Layout, holding: Holding, *, now_ms: int) -> Fate:
    """Return what a step of the service must do with a held pull."""
    if now_ms >= holding.deadline_ms or _is_wanted(log, layout, holding):
        return "ends"
    least, most = bounds_of(log, layout, holding.queue) or (0, 0)
    if holding.offset > most:
        return "ends"
    return "may end" if holding.offset < least else "stays"


def _is_wanted(log: CommitLog, layout: Layout, holding: Holding) -> bool:
    """Return whether the tags want a readable unit at the offset or after it."""
    hashes = None if holding.tags is None else {java_hash(tag) % 2**32 for tag in holding.tags}
    for queue_offset, record, tags_code in queue_of(log, layout, holding.queue):
        if queue_offset >= holding.offset:
            if record.end_offset > log.readable_end:
                return False
            if hashes is None or tags_code % 2**32 in hashes:
                return True
    return False
