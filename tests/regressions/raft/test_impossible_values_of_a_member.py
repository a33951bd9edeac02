"""A member with right frames and impossible values does not end another member.

Symptom: an answer that confirmed more entries than the leader has ended the leader: "IndexError: array index out of
range". So did a vote request of term 2^63 - 1, whose successor no frame can carry, and an entry that no data file can
take. A leader of a later term could remove committed entries.
Cause: frames were checked one by one, and their values were not compared with the log, the term and the role.
Fix: such a message ends its own link, with a reason that the sender gets (impl/raft/objections.py, impl/raft/wire.py).
Found by: reading the code.
"""

import pytest

from tests.support.impl.raft_groups import Group, address_of
from tornpage.impl.raft.answers import RaftStatus
from tornpage.impl.raft.messages import (
    AppendAnswer,
    AppendEntries,
    Carried,
    LeadNow,
    Message,
    RequestVote,
    VoteAnswer,
)
from tornpage.impl.raft.wire import Hello, encoded, hello_frame

LARGEST = (1 << 63) - 1


def impossible(term: int, end: int) -> dict[str, tuple[Message, str]]:
    """Return messages to the leader of a term whose log has so many entries, and the reasons."""
    return {
        "vote of the last term": (RequestVote(LARGEST, 0, 0), "which no group reaches"),
        "answer of the last term": (VoteAnswer(LARGEST, False), "which no group reaches"),
        "lead in the last term": (LeadNow(LARGEST), "which no group reaches"),
        "entries of the last term": (AppendEntries(LARGEST, 0, 0, (), 0, 0), "which no group reaches"),
        "place": (AppendEntries(term + 1, LARGEST, 0, (), 0, 0), "which no group reaches"),
        "more entries": (AppendAnswer(term, True, end + 1, 0), f"{end + 1} entries are confirmed, and the leader has"),
        "a later read": (AppendAnswer(term, True, 0, 1_000), "read 1000 is confirmed"),
        "a second leader": (AppendEntries(term, 0, 0, (), 0, 0), f"as the leader of term {term}, which"),
        "a candidate of its own last term": (RequestVote(term + 1, term + 1, 9), "has 9 entries, the last one of term"),
        "a last term without entries": (RequestVote(term + 1, 1, 0), "has 0 entries, the last one of term"),
        "a long entry": (AppendEntries(term + 1, 0, 0, (Carried(1, bytes(5_000)),), 0, 0), "and a data file takes"),
        "a committed entry": (AppendEntries(term + 1, 0, 0, (Carried(term + 1, b"x"),), 0, 0), "is committed with"),
        "before a committed entry": (AppendEntries(term + 1, end, term + 1, (), 0, 0), "is committed with"),
    }  # fmt: skip


@pytest.mark.parametrize("what", impossible(1, 1))
def test_impossible_message_ends_its_link_only(what: str) -> None:
    group = Group(data_file_bytes=4_096)
    leader = group.elect()
    group.appended(leader, b"a")
    group.step(50)
    before, other = group.status(leader), (leader + 1) % 3
    message, reason = impossible(before["term"], before["end"])[what]
    end = group.network.connect(other, address_of(leader))
    assert end is not None
    end.send(hello_frame(Hello(other, leader, group.settings.group, "")) + encoded(message))
    group.step(3)
    assert end.is_over
    assert reason in group.status(leader)["findings"][-1]
    after = group.status(leader)
    assert {name: after[name] for name in ("term", "role", "end", "failure")} == {
        "term": before["term"], "role": "leader", "end": before["end"], "failure": "",
    }  # fmt: skip
    assert group.appended(leader, b"b").status is RaftStatus.OK
    group.until(lambda: all(group.bodies(me) == [b"a", b"b"] for me in range(3)))
