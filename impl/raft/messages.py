"""Define the messages between the members of a group, and the entries of their logs.

Ends and begins count entries from 0. The terms are those of Raft.
"""

from typing import NamedTuple

__all__ = [
    "AppendAnswer",
    "AppendEntries",
    "Carried",
    "Envelope",
    "LeadNow",
    "Message",
    "RequestVote",
    "VoteAnswer",
]


class Carried(NamedTuple):
    """An entry on its way, or in a log in memory.

    An empty body is the entry with which a leader begins its term.
    """

    term: int
    body: bytes


class RequestVote(NamedTuple):
    """Ask for a vote.

    The log of the candidate ends at `end`, with an entry of `last_term` (0 for an empty log).
    """

    term: int
    last_term: int
    end: int


class VoteAnswer(NamedTuple):
    """Answer a candidate."""

    term: int
    granted: bool


class AppendEntries(NamedTuple):
    """Send entries from `begin` on, or none as a heartbeat.

    The entry before `begin` has `previous_term`.

    `commit` is the commit end of the leader, `round` the number of its newest read.
    """

    term: int
    begin: int
    previous_term: int
    entries: tuple[Carried, ...]
    commit: int
    round: int


class AppendAnswer(NamedTuple):
    """Answer a leader.

    With `matches` the first `end` entries are equal to those of the leader and durable. Else the leader has to send
    from `end` on, or from an earlier place.
    """

    term: int
    matches: bool
    end: int
    round: int


class LeadNow(NamedTuple):
    """Ask a member to become a candidate at once, because the leader gives up its role."""

    term: int


Message = RequestVote | VoteAnswer | AppendEntries | AppendAnswer | LeadNow


class Envelope(NamedTuple):
    """A message and the member that it is sent to."""

    to: int
    message: Message
