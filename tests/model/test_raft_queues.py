"""Test the model of queues on a Raft log: rows, numbers, answers."""

import pytest

from tornpage.model.raft.queues import Appended, answer_of, number_of, rows
from tornpage.model.raft.state import NO_OPERATION, Entry, Member

LOG = tuple(Entry(1, payload) for payload in (NO_OPERATION, 1, 2, 3, 5))
LEADER = Member(term=1, log=LOG, synced=4, role="leader", commit=3)


def test_a_queue_lists_its_messages_in_the_order_of_the_log() -> None:
    assert rows(LOG) == ((2,), (1, 3, 5))
    assert rows(LOG[:1]) == ((), ())


def test_a_message_is_numbered_after_those_of_its_queue() -> None:
    assert number_of(LOG, 4) == 1
    assert number_of(LOG, 7) == 3
    assert number_of(LOG[:2], 7) == 1


@pytest.mark.parametrize(
    ("place", "member", "is_late", "answer"),
    [
        (2, LEADER, False, "ok"),
        (2, LEADER, True, "ok"),
        (3, LEADER, False, ""),
        (3, LEADER, True, "unknown"),
        (3, LEADER._replace(commit=5), False, "ok"),
        (4, LEADER._replace(commit=5), False, ""),  # committed, and not durable at the leader
        (2, LEADER._replace(role="follower"), False, "unknown"),
        (2, LEADER._replace(term=3), False, "unknown"),
    ],
)
def test_the_answer_of_a_put(place: int, member: Member, is_late: bool, answer: str) -> None:
    assert answer_of(Appended(1, place, 1), member, is_late=is_late) == answer
