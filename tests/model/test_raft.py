"""Test the model of a Raft member and the promises of a group by hand-made states."""

import pytest

from tornpage.model.raft import member as model
from tornpage.model.raft.promises import Seen, look, read_is_fresh, vote
from tornpage.model.raft.state import Append, AppendReply, Entry, Member, Vote, VoteReply

PLACE = model.Place(0, 3, 10)
ONE = (Entry(1, 0),)
TWO = (Entry(1, 0), Entry(1, 1))


def test_a_candidate_with_a_majority_leads_and_appends_an_entry() -> None:
    candidate = model.elect(PLACE, Member()).member
    leader, sent, _ = model.receive(PLACE, candidate, 1, VoteReply(1, True))
    assert (leader.role, leader.log) == ("leader", ONE)
    assert sent == ((1, Append(1, 0, 0, ONE, 0, 0)), (2, Append(1, 0, 0, ONE, 0, 0)))


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(Vote(2, 1, 2), True), (Vote(2, 2, 1), True), (Vote(2, 1, 1), False), (Vote(2, 0, 9), False)],
)
def test_a_vote_goes_to_a_log_that_is_as_new(asked: Vote, granted: bool) -> None:
    member = Member(term=1, log=TWO, synced=2)
    after, sent, _ = model.receive(PLACE, member, 1, asked)
    assert sent == ((1, VoteReply(2, granted)),)
    assert (after.term, after.vote) == (2, 1 if granted else None)


def test_an_entry_of_an_earlier_term_is_not_committed_alone() -> None:
    leader = Member(
        term=3, vote=0, log=ONE, synced=1, role="leader", leader=0,
        next_begins=(1, 1, 1), matched=(0, 0, 0), rounds=(0, 0, 0),
    )  # fmt: skip
    assert model.receive(PLACE, leader, 1, AppendReply(3, True, 1, 0)).member.commit == 0
    with_own = leader._replace(log=(*ONE, Entry(3, 0)), synced=2)
    assert model.receive(PLACE, with_own, 1, AppendReply(3, True, 2, 0)).member.commit == 2


def test_a_follower_confirms_after_its_sync_only() -> None:
    after, sent, _ = model.receive(PLACE, Member(term=1), 1, Append(1, 0, 0, ONE, 0, 0))
    assert (after.owes, sent) == (True, ())
    assert model.synced(PLACE, after).sent == ((1, AppendReply(1, True, 1, 0)),)


def test_a_crash_keeps_what_was_durable() -> None:
    member = Member(term=2, vote=1, log=TWO, synced=1, role="leader", commit=2)
    assert model.crashed(member, 1) == Member(2, 1, ONE, 1)
    with pytest.raises(ValueError, match="cannot be left"):
        model.crashed(member, 0)


# ---- promises --------------------------------------------------------------------------------------------------------

GROUP = (Member(term=1, log=ONE, synced=1), Member(term=1, log=ONE, synced=1), Member(term=1))
UP = (True, True, True)


NOTHING_SEEN = Seen()


def found(before: tuple[Member, ...], after: tuple[Member, ...], seen: Seen = NOTHING_SEEN) -> list[str]:
    return look(seen, before, after, UP)[1]


def changed(number: int, **fields: object) -> tuple[Member, ...]:
    return tuple(each._replace(**fields) if at == number else each for at, each in enumerate(GROUP))  # type: ignore[arg-type]


def test_a_committed_entry_at_a_majority_holds() -> None:
    seen, broken = look(Seen(), GROUP, changed(0, commit=1), UP)
    assert (broken, seen.committed, seen.committed_in) == ([], ONE, (1,))


@pytest.mark.parametrize(
    ("after", "seen", "sentence"),
    [
        (changed(0, term=0), Seen(), "falls from 1 to 0"),
        (changed(0, commit=2), Seen(), "commits 2 entries and has 1"),
        (changed(1, synced=0, commit=1), Seen(), "1 of 3 members have all committed entries durable"),
        (changed(2, log=(Entry(1, 7),), synced=1), Seen(), "differ below entries of one term"),
        (changed(0, role="leader"), Seen(leaders=frozenset({(1, 2)})), "term 1 has the leaders 2 and 0"),
        (changed(2, term=2, role="leader"), Seen(committed=ONE, committed_in=(1,)), "lacks committed entries"),
        (
            changed(2, log=(Entry(1, 0), Entry(2, 9)), commit=2, term=2),
            Seen(committed=TWO, committed_in=(1, 1)),
            "shows another entry",
        ),
    ],
)
def test_a_broken_promise_of_a_group_is_named(after: tuple[Member, ...], seen: Seen, sentence: str) -> None:
    assert sentence in " ".join(found(GROUP, after, seen))


def test_a_leader_of_an_earlier_term_may_lack_what_was_committed_later() -> None:
    seen = Seen(committed=ONE, committed_in=(2,))
    before = (Member(term=2, log=ONE, synced=1), Member(term=2, log=ONE, synced=1), Member(term=1))
    late = (*before[:2], before[2]._replace(role="leader"))
    assert found(before, late, seen) == []


def test_a_second_vote_in_a_term_is_named() -> None:
    seen, broken = vote(Seen(), 0, 1, 2)
    assert not broken
    assert vote(seen, 0, 1, 2)[1] == []
    assert vote(seen, 0, 1, 1)[1] == ["member 0 votes for 1 in term 1, and voted for 2 before"]


def test_a_read_sees_what_was_acknowledged() -> None:
    assert read_is_fresh(2, 2) == []
    assert read_is_fresh(3, 2) == ["a read sees 2 entries, 3 were acknowledged before"]
