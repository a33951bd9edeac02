"""Specify one member of a Raft group as a function.

1. A member votes once in a term, and only for a candidate whose log is at least as new as its own.
2. A leader begins its term with an entry of its own. It counts an entry as committed once a majority has it durable and
   it, or a later such entry, is of the leader's term.
3. A follower takes entries after a place at which both logs have the same entry. It cuts its log only where an entry
   differs from one that its leader sent.
4. A follower confirms entries once they are durable. A leader counts its own entries once they are durable.
5. A term or a vote is durable before any message that depends on it is sent.
6. A larger term in a message ends a role.
7. A read of a leader is answered once a majority has answered a message that was sent after the read began, an entry of
   the leader's term is committed, and the leader has all committed entries durable. It sees what is committed then.
8. Entries after the end that the leader committed, or that are not durable, are not visible.

9. A leader sends the next entries as soon as a member confirms the ones before, with the commit end after that.

Each function takes a member and returns it after one input, and the messages that it sends, each with its receiver.
"""

from typing import NamedTuple

from tornpage.model.raft.state import (
    NO_OPERATION,
    Append,
    AppendReply,
    Entry,
    Member,
    Message,
    TransferNow,
    Vote,
    VoteReply,
)

__all__ = ["Place", "Result", "beat", "crashed", "elect", "propose", "read", "receive", "synced", "transfer"]


class Place(NamedTuple):
    """Which member this is of how many, and how many entries one message carries."""

    me: int
    members: int
    batch: int


class Result(NamedTuple):
    """A member after an input, what it sends, and the ends that answered reads see."""

    member: Member
    sent: tuple[tuple[int, Message], ...] = ()
    answered: tuple[int, ...] = ()


def crashed(member: Member, kept: int) -> Member:
    """Return a member that restarts with its first `kept` entries."""
    if not member.synced <= kept <= member.end:
        raise ValueError(f"{kept} entries cannot be left of {member.end} with {member.synced} durable")
    return Member(member.term, member.vote, member.log[:kept], kept)


def elect(place: Place, member: Member) -> Result:
    """Begin an election. A leader does nothing."""
    if member.role == "leader":
        return Result(member)
    following = _with_term(member, member.term + 1)._replace(
        vote=place.me, role="candidate", votes=frozenset((place.me,))
    )
    if _is_majority(1, place):
        return _lead(place, following)
    asked = Vote(following.term, following.last_term, following.end)
    return Result(following, tuple((each, asked) for each in _others(place)))


def beat(place: Place, member: Member) -> Result:
    """Send the entries that each member lacks, or none, as a heartbeat. It ends a transfer."""
    if member.role != "leader":
        return Result(member)
    return Result(member._replace(transferee=None), _appends(place, member))


def propose(place: Place, member: Member, payload: int) -> Result:
    """Append an entry of a client.

    A member that is not leader, or gives its role away, does nothing.
    """
    if member.role != "leader" or member.transferee is not None:
        return Result(member)
    return _extended(place, member, payload)


def synced(place: Place, member: Member) -> Result:
    """Take notice that the whole log is durable."""
    member = member._replace(synced=member.end)
    if member.role == "leader":
        return _counted(place, member)
    if not member.owes or member.leader is None:
        return Result(member)
    return Result(member._replace(owes=False), ((member.leader, _confirmation(member)),))


def read(place: Place, member: Member) -> Result:
    """Begin a read. A member that is not leader does nothing."""
    if member.role != "leader":
        return Result(member)
    begun = member.round + 1
    member = member._replace(round=begun, reads=(*member.reads, begun))
    return _answer_reads(place, Result(member, _appends(place, member)))


def transfer(place: Place, member: Member, to: int) -> Result:
    """Give the role of the leader to a member that has the whole log."""
    if member.role != "leader" or to == place.me or member.matched[to] != member.end:
        return Result(member)
    return Result(member._replace(transferee=to), ((to, TransferNow(member.term)),))


def receive(place: Place, member: Member, source: int, message: Message) -> Result:
    """Take a message."""
    if message.term > member.term:
        member = _with_term(member, message.term)
    match message:
        case Vote():
            return _asked(member, source, message)
        case VoteReply():
            return _voted(place, member, source, message)
        case Append():
            return _sent_entries(member, source, message)
        case AppendReply():
            return _confirmed(place, member, source, message)
        case TransferNow():
            return elect(place, member) if message.term == member.term else Result(member)


# ---- elections -------------------------------------------------------------------------------------------------------


def _with_term(member: Member, term: int) -> Member:
    """Return a follower in a new term."""
    return Member(term, None, member.log, member.synced, commit=member.commit)


def _asked(member: Member, source: int, vote: Vote) -> Result:
    is_new_enough = (vote.last_term, vote.end) >= (member.last_term, member.end)
    granted = vote.term == member.term and member.vote in (None, source) and is_new_enough
    if granted:
        member = member._replace(vote=source)
    return Result(member, ((source, VoteReply(member.term, granted)),))


def _voted(place: Place, member: Member, source: int, reply: VoteReply) -> Result:
    if member.role != "candidate" or reply.term != member.term or not reply.granted:
        return Result(member)
    member = member._replace(votes=member.votes | {source})
    return _lead(place, member) if _is_majority(len(member.votes), place) else Result(member)


def _lead(place: Place, member: Member) -> Result:
    leading = member._replace(
        role="leader", leader=place.me, votes=frozenset(),
        next_begins=(member.end,) * place.members, matched=(0,) * place.members, rounds=(0,) * place.members,
    )  # fmt: skip
    return _extended(place, leading, NO_OPERATION)


# ---- entries ---------------------------------------------------------------------------------------------------------


def _extended(place: Place, member: Member, payload: int) -> Result:
    member = member._replace(log=(*member.log, Entry(member.term, payload)))
    return Result(member, _appends(place, member))


def _appends(place: Place, member: Member) -> tuple[tuple[int, Message], ...]:
    """Return what a leader sends to each other member."""
    return tuple((each, _append_to(place, member, each)) for each in _others(place))


def _append_to(place: Place, member: Member, receiver: int) -> Append:
    begin = member.next_begins[receiver]
    previous = member.log[begin - 1].term if begin else 0
    entries = member.log[begin : begin + place.batch]
    return Append(member.term, begin, previous, entries, member.commit, member.round)


def _sent_entries(member: Member, source: int, append: Append) -> Result:
    if append.term < member.term:
        return Result(member, ((source, AppendReply(member.term, False, 0, 0)),))
    member = member._replace(role="follower", leader=source, votes=frozenset(), round=max(member.round, append.round))
    begin, log = append.begin, member.log
    if begin > len(log):
        return Result(member, ((source, AppendReply(member.term, False, len(log), member.round)),))
    if begin and log[begin - 1].term != append.previous_term:
        return Result(member, ((source, AppendReply(member.term, False, begin - 1, member.round)),))
    end = begin + len(append.entries)
    equal = next((at for at, entry in enumerate(append.entries, begin) if at >= len(log) or log[at] != entry), end)
    if equal < end:
        log = (*log[:equal], *append.entries[equal - begin :])
        member = member._replace(log=log, synced=min(member.synced, equal))
    verified = max(member.verified, end)
    commit = max(member.commit, min(append.commit, verified))
    member = member._replace(verified=verified, commit=commit, owes=member.synced < verified)
    return Result(member, () if member.owes else ((source, _confirmation(member)),))


def _confirmation(member: Member) -> AppendReply:
    return AppendReply(member.term, True, member.verified, member.round)


def _confirmed(place: Place, member: Member, source: int, reply: AppendReply) -> Result:
    if member.role != "leader" or reply.term != member.term:
        return Result(member)
    member = member._replace(rounds=_replaced(member.rounds, source, max(member.rounds[source], reply.round)))
    if not reply.matches:
        back = max(member.matched[source], min(reply.end, member.next_begins[source] - 1))
        member = member._replace(next_begins=_replaced(member.next_begins, source, max(0, back)))
        return _answer_reads(place, Result(member, ((source, _append_to(place, member, source)),)))
    matched = max(member.matched[source], reply.end)
    member = member._replace(
        matched=_replaced(member.matched, source, matched),
        next_begins=_replaced(member.next_begins, source, max(member.next_begins[source], matched)),
    )
    result = _counted(place, member)
    if result.member.next_begins[source] == result.member.end:
        return result
    return result._replace(sent=((source, _append_to(place, result.member, source)),))


def _counted(place: Place, member: Member) -> Result:
    """Commit what a majority has durable, if its last entry is of the leader's own term."""
    ends = sorted((*(member.matched[each] for each in _others(place)), member.synced), reverse=True)
    end = ends[place.members // 2]
    if end > member.commit and member.log[end - 1].term == member.term:
        member = member._replace(commit=end)
    return _answer_reads(place, Result(member))


def _answer_reads(place: Place, result: Result) -> Result:
    member = result.member
    confirmed = sorted((*(member.rounds[each] for each in _others(place)), member.round), reverse=True)
    is_known = member.commit and member.log[member.commit - 1].term == member.term
    if not is_known or member.synced < member.commit:
        return result
    waiting = tuple(each for each in member.reads if each > confirmed[place.members // 2])
    answered = (member.visible,) * (len(member.reads) - len(waiting))
    return result._replace(member=member._replace(reads=waiting), answered=answered)


def _replaced(row: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*row[:place], value, *row[place + 1 :])


def _is_majority(count: int, place: Place) -> bool:
    return count > place.members // 2


def _others(place: Place) -> tuple[int, ...]:
    return tuple(each for each in range(place.members) if each != place.me)
