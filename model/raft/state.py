"""Define the state of a member of a Raft group, and its messages.

1. A log is a row of entries. An entry has the term of the leader that appended it. Places count entries from 0, and
   an end is the number of entries before it.
2. The term, the vote and the first `synced` entries of the log survive a power loss. The other entries may.
3. A committed entry is in the log of every later leader.

Source: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", 2014, figure 2.
"""

from typing import Literal, NamedTuple

__all__ = [
    "NO_OPERATION",
    "Append",
    "AppendReply",
    "Entry",
    "Member",
    "Message",
    "Role",
    "TransferNow",
    "Vote",
    "VoteReply",
]

Role = Literal["follower", "candidate", "leader"]

NO_OPERATION = 0
"""The payload of the entry with which a leader begins its term. Payloads of clients are larger."""


class Entry(NamedTuple):
    """One entry of a log."""

    term: int
    payload: int


class Vote(NamedTuple):
    """A candidate asks for a vote.

    Its log ends at `end` with an entry of `last_term` (0 for an empty log).
    """

    term: int
    last_term: int
    end: int
    kind: Literal["vote"] = "vote"


class VoteReply(NamedTuple):
    """The answer to a candidate."""

    term: int
    granted: bool
    kind: Literal["vote_reply"] = "vote_reply"


class Append(NamedTuple):
    """A leader sends the entries from `begin` on.

    The entry before them has `previous_term` (0 for none).
    """

    term: int
    begin: int
    previous_term: int
    entries: tuple[Entry, ...]
    commit: int
    round: int
    kind: Literal["append"] = "append"


class AppendReply(NamedTuple):
    """The answer to a leader.

    With `matches` the first `end` entries are those of the leader and durable. Otherwise the leader has to go back to
    `end` or further. `round` is that of the newest message of this leader that the member has taken.
    """

    term: int
    matches: bool
    end: int
    round: int
    kind: Literal["append_reply"] = "append_reply"


class TransferNow(NamedTuple):
    """A leader asks a member with the whole log to become a candidate at once."""

    term: int
    kind: Literal["transfer_now"] = "transfer_now"


Message = Vote | VoteReply | Append | AppendReply | TransferNow


class Member(NamedTuple):
    """One member that runs.

    `next_begins` and `matched` are the leader's knowledge of each member, `votes` the members that voted for it.
    `verified` is how many of the first entries a follower knows to be those of its leader. `owes` is whether the leader
    still waits for the answer to `verified`. `round` counts the confirmed reads of a leader; `rounds` are the newest
    ones that each member has answered. `reads` are the rounds of reads that wait.
    `transferee` is the member that a leader gives its role to.
    """

    term: int = 0
    vote: int | None = None
    log: tuple[Entry, ...] = ()
    synced: int = 0
    role: Role = "follower"
    leader: int | None = None
    commit: int = 0
    verified: int = 0
    owes: bool = False
    round: int = 0
    votes: frozenset[int] = frozenset()
    next_begins: tuple[int, ...] = ()
    matched: tuple[int, ...] = ()
    rounds: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    transferee: int | None = None

    @property
    def end(self) -> int:
        """The number of entries in the log."""
        return len(self.log)

    @property
    def last_term(self) -> int:
        """The term of the last entry, 0 without one."""
        return self.log[-1].term if self.log else 0

    @property
    def visible(self) -> int:
        """The end of the entries that readers of this member may see."""
        return min(self.commit, self.synced)
