"""Judge which messages a member takes for impossible, once in a process (contract 15).

All small states of a member meet all small messages. The rules are those of docs/replication/raft.md, written a second
time. A message is possible in these cases, and any other message is always possible:

* A request for a vote: the last entry has a term below that of the candidate, or there is no entry and the term is 0.
* Entries of an older term: always, since the answer tells the sender.
* Other entries: no other leader of the same term is known, each body fits into a data file, and each committed entry
  has the stated term here.
* An answer to a leader of the same term: it confirms entries and reads that the leader has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Carried, LeadNow, Message, RequestVote, VoteAnswer
from tornpage.impl.raft.objections import objection
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["impossible_messages_hold"]

_FILE_BYTES, _REST_BYTES = 1_000, 56
_FITS, _TOO_LONG = bytes(_FILE_BYTES - _REST_BYTES), bytes(_FILE_BYTES - _REST_BYTES + 1)


@dataclass(frozen=True)
class _Log:
    terms: tuple[int, ...]

    @property
    def end(self) -> int:
        return len(self.terms)

    def term_at(self, place: int) -> int:
        return self.terms[place]


@dataclass(frozen=True)
class _Member:
    """The part of a member that decides."""

    role: str
    term: int
    leader: int | None
    commit: int
    round: int
    log: _Log


def _members() -> Iterator[_Member]:
    for terms, extra in product(((), (1,), (1, 2), (1, 2, 2)), (0, 1)):
        term = (terms[-1] if terms else 1) + extra
        for commit in range(len(terms) + 1):
            yield _Member("leader", term, 0, commit, 4, _Log(terms))
            for leader in (None, 1, 2):
                yield _Member("follower", term, leader, commit, 4, _Log(terms))


def _messages(member: _Member) -> Iterator[Message]:
    terms = range(max(0, member.term - 1), member.term + 2)
    for term in terms:
        yield from (RequestVote(term, last_term, end) for last_term, end in product(range(4), range(3)))
        yield from (
            AppendAnswer(term, matches, end, number)
            for matches, end, number in product((False, True), range(member.log.end + 2), (0, 4, 5))
        )
        yield VoteAnswer(term, granted=True)
        yield LeadNow(term)
        for begin, previous in product(range(member.log.end + 2), range(min(term, 3) + 1)):
            yield AppendEntries(term, begin, previous, (), 0, 0)
            for body in (b"", _FITS, _TOO_LONG):
                yield AppendEntries(term, begin, previous, (Carried(min(term, 2), body),), 0, 0)
            for first, second in ((1, 1), (1, 2), (2, 2)):
                yield AppendEntries(term, begin, previous, (Carried(first, b"x"), Carried(second, _FITS)), 0, 0)


def _is_possible(member: _Member, source: int, message: Message) -> bool:
    match message:
        case RequestVote(term, last_term, end):
            return last_term < term and (end > 0 or last_term == 0)
        case AppendAnswer(term, matches, end, number):
            if member.role != "leader" or term != member.term:
                return True
            return number <= member.round and (not matches or end <= member.log.end)
        case AppendEntries():
            return message.term < member.term or _are_possible(member, source, message)
    return True


def _are_possible(member: _Member, source: int, message: AppendEntries) -> bool:
    stated = {message.begin - 1: message.previous_term}
    stated |= {message.begin + at: each.term for at, each in enumerate(message.entries)}
    is_second = message.term == member.term and member.leader is not None and member.leader != source
    fit = all(len(each.body) + _REST_BYTES <= _FILE_BYTES for each in message.entries)
    committed = {place: member.log.terms[place] for place in range(member.commit)}
    return not is_second and fit and all(stated.get(place, term) == term for place, term in committed.items())


def impossible_messages_hold() -> None:
    """Judge all small states and messages. Raises GuaranteeBroken."""
    for member in _members():
        for message in _messages(member):
            try:
                found = objection(cast(Any, member), 1, message, data_file_bytes=_FILE_BYTES)
            except (TypeError, ValueError, AttributeError, LookupError) as error:
                raise GuaranteeBroken(8, f"a look at a message raises {type(error).__name__}: {error}") from error
            if (not found) is not _is_possible(member, 1, message):
                what = f"a {member.role} of term {member.term} with {member.log.terms} takes {message!r:.80}"
                raise GuaranteeBroken(15, f"{what} for {'impossible' if found else 'possible'}", found=found)
