"""A node whose last event fails closes its links and answers its clients.

Symptom: `close` of a node raised OSError if its store had failed since the last step. Its links stayed open, requests
without an answer stayed so, and the process that served the member ended with a traceback.
Cause: `close` asks another member to lead, which is an event of the member, and did not expect its failure.
Fix: a failed event in `close` ends the member as one in a step does (impl/raft/node.py).
Found by: reading the code.
"""

import pytest

from tests.support.impl.raft_groups import Group
from tornpage.impl.raft.answers import RaftStatus
from tornpage.impl.raft.entries import RaftEntries


def test_close_after_failed_event_ends_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    leader = group.elect()

    def fails(_: RaftEntries, to: int) -> None:
        raise OSError(f"this member takes no events: member {to} was not asked")

    monkeypatch.setattr(RaftEntries, "transfer", fails)
    waiting = group.append(leader, b"a")
    group.node(leader).close(group.now_ms)
    assert waiting.result(timeout=0).status is RaftStatus.STOPPED
    assert "takes no events" in group.node(leader).failure
    group.members[leader].node = None
    assert group.elect() != leader
