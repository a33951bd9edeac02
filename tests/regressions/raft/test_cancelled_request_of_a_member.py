"""A client that cancels its request does not end the member.

Symptom: after `append(...).cancel()` the node of the member ended with InvalidStateError, and no client was served.
Cause: the thread of the node set the result of a cancelled future. Any exception in a step ends the member.
Fix: the answer to a cancelled request is dropped (impl/raft/answers.py, impl/raft/raft_store.py).
Found by: reading the code.
"""

from tests.support.impl.raft_groups import Group
from tornpage.impl.raft.answers import RaftStatus


def test_cancelled_append_and_read_leave_the_member_running() -> None:
    group = Group(1)
    leader = group.elect()
    append, read, transfer = group.append(leader, b"a"), group.read(leader), group.node(leader).transfer(leader)
    assert [each.cancel() for each in (append, read, transfer)] == [True] * 3
    group.step(5)
    assert group.node(leader).failure == ""
    assert group.appended(leader, b"b").status is RaftStatus.OK
    assert group.bodies(leader) == [b"a", b"b"]
