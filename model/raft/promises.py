"""Specify what a Raft group promises, over the states that its members were seen in.

| promise | in words |
|---|---|
| election safety | a term has at most one leader |
| leader append-only | a leader only appends to its log |
| log matching | two logs with equal terms at a place are equal up to it |
| leader completeness | a new leader's log has all entries that leaders of earlier terms committed |
| state machine safety | two members never show different entries at one place |
| quorum floor | a majority has every committed entry durable |
| monotonic | a member's term never falls; its commit end does not fall in one life |
| one vote | a member votes for one candidate in a term, over all its lives |
| fresh reads | a read sees every entry that was acknowledged before it began |

`Seen` is what was seen so far. Each function returns the next `Seen` and the promises that do not hold, as sentences.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tornpage.model.raft.state import Entry, Member

__all__ = ["Seen", "look", "read_is_fresh", "vote"]


class Seen(NamedTuple):
    """What was seen: the leader of each term, the votes, and the committed entries.

    `leaders` has pairs of term and member, `votes` triples of member, term and candidate. `committed_in` has the term
    in which each committed entry was committed.
    """

    leaders: frozenset[tuple[int, int]] = frozenset()
    votes: frozenset[tuple[int, int, int]] = frozenset()
    committed: tuple[Entry, ...] = ()
    committed_in: tuple[int, ...] = ()


def vote(seen: Seen, member: int, term: int, candidate: int) -> tuple[Seen, list[str]]:
    """Take notice that a vote was sent."""
    broken = [
        f"member {member} votes for {candidate} in term {term}, and voted for {other} before"
        for voter, earlier, other in sorted(seen.votes)
        if (voter, earlier) == (member, term) and other != candidate
    ]
    return seen._replace(votes=seen.votes | {(member, term, candidate)}), broken


def look(
    seen: Seen, before: Sequence[Member], after: Sequence[Member], is_up: Sequence[bool]
) -> tuple[Seen, list[str]]:
    """Look at all members after an event, those that are down as their disks have them.

    Only members that changed can break a promise, and each is compared with all others. A member that has just
    restarted has `before` as its disk had it.
    """
    broken: list[str] = []
    changed = [each for each, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]
    for each in changed:
        old, new = before[each], after[each]
        broken += _moved_on(each, old, new, stays_up=is_up[each])
        if is_up[each] and new.role == "leader" and not (old.role == "leader" and old.term == new.term):
            seen, found = _elected(seen, each, new)
            broken += found
    for each in changed:
        if is_up[each]:
            seen, found = _shows(seen, each, after[each])
            broken += found
    broken += _matching(changed, after)
    broken += _floor(seen, after)
    return seen, broken


def read_is_fresh(acknowledged: int, end: int) -> list[str]:
    """Judge a read that sees `end` entries. `acknowledged` were acknowledged before it began."""
    return [f"a read sees {end} entries, {acknowledged} were acknowledged before"] if end < acknowledged else []


def _moved_on(each: int, old: Member, new: Member, *, stays_up: bool) -> list[str]:
    broken = []
    if new.term < old.term:
        broken.append(f"the term of member {each} falls from {old.term} to {new.term}")
    if not stays_up:
        return broken
    if new.commit < old.commit:
        broken.append(f"the commit end of member {each} falls from {old.commit} to {new.commit}")
    if old.role == new.role == "leader" and old.term == new.term and new.log[: len(old.log)] != old.log:
        broken.append(f"leader {each} changes its log in term {new.term}")
    return broken


def _elected(seen: Seen, each: int, member: Member) -> tuple[Seen, list[str]]:
    broken = [
        f"term {member.term} has the leaders {other} and {each}"
        for term, other in sorted(seen.leaders)
        if term == member.term and other != each
    ]
    end = sum(term < member.term for term in seen.committed_in)
    if member.log[:end] != seen.committed[:end]:
        broken.append(f"leader {each} of term {member.term} lacks committed entries")
    return seen._replace(leaders=seen.leaders | {(member.term, each)}), broken


def _shows(seen: Seen, each: int, member: Member) -> tuple[Seen, list[str]]:
    """Compare what a member holds for committed with what is."""
    shown = member.log[: member.commit]
    if member.commit > len(member.log):
        return seen, [f"member {each} commits {member.commit} entries and has {len(member.log)}"]
    common = min(len(shown), len(seen.committed))
    if shown[:common] != seen.committed[:common]:
        return seen, [f"member {each} shows another entry than a member before it"]
    if len(shown) == common:
        return seen, []
    terms = (*seen.committed_in, *(member.term for _ in shown[common:]))
    return seen._replace(committed=shown, committed_in=terms), []


def _matching(changed: Sequence[int], members: Sequence[Member]) -> list[str]:
    broken = []
    for each in changed:
        log = members[each].log
        for other, member in enumerate(members):
            if other == each:
                continue
            end = min(len(log), len(member.log))
            last = next((at for at in range(end - 1, -1, -1) if log[at].term == member.log[at].term), -1)
            if log[: last + 1] != member.log[: last + 1]:
                broken.append(f"the logs of members {each} and {other} differ below entries of one term")
    return broken


def _floor(seen: Seen, members: Sequence[Member]) -> list[str]:
    end = len(seen.committed)
    if not end:
        return []
    holders = sum(member.synced >= end and member.log[:end] == seen.committed for member in members)
    if holders > len(members) // 2:
        return []
    return [f"{holders} of {len(members)} members have all committed entries durable"]
