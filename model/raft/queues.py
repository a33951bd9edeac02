"""Specify the queues of a store on a Raft log, and the answers of its puts.

1. A put appends one entry. The entry has the number of messages that its queue has in the log of the leader before it.
2. A queue lists the messages of the visible entries, in the order of the log. Their numbers have no gap, since two
   logs with the same entry are equal up to it.
3. A put is answered with success while its leader leads the same term, once its entry is visible there. Otherwise its
   outcome is unknown: its entry may be committed once, or never.

A payload stands for one message. It decides the queue of the message.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tornpage.model.raft.state import Entry, Member

__all__ = ["QUEUES", "Appended", "answer_of", "number_of", "queue_of", "rows"]

QUEUES = 2
"""Messages take turns between so many queues."""


class Appended(NamedTuple):
    """A put: its payload, and the place of its entry in the log of the leader of a term."""

    payload: int
    place: int
    term: int


def queue_of(payload: int) -> int:
    """Return the queue of a message."""
    return payload % QUEUES


def rows(entries: Sequence[Entry]) -> tuple[tuple[int, ...], ...]:
    """Return the messages of each queue, in order."""
    payloads = [each.payload for each in entries if each.payload]
    return tuple(tuple(each for each in payloads if queue_of(each) == queue) for queue in range(QUEUES))


def number_of(log: Sequence[Entry], payload: int) -> int:
    """Return the number that a message gets in its queue when it is appended to a log."""
    return len(rows(log)[queue_of(payload)])


def answer_of(put: Appended, member: Member, *, is_late: bool) -> Literal["", "ok", "unknown"]:
    """Return the answer of a waiting put after an event of its member.

    "" means that it still waits.
    """
    if member.role != "leader" or member.term != put.term:
        return "unknown"
    if member.visible > put.place:
        return "ok"
    return "unknown" if is_late else ""
