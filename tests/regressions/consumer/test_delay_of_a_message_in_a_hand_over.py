"""A hand-over sends a message back with the delay that its listener asked for.

Symptom: a listener asked for a dead letter, and the broker refused both requests to send the message back. When the
member then left, the message was sent back with the usual delay, and was delivered again.
Cause: the message waits 5 seconds for its next try. A hand-over sends it back at once, and that request had delay level
0 whatever the listener had asked for.
Fix: the delay level of the failed return stays with the message (impl/consumer/concurrent.py).
Found by: `tornpage explore consumers --seconds 60 --seed 4101`.
"""

import pytest

from tornpage.model.consumers.operations import FailRequests, Join, Leave, Produce, RunGroup, Verdict
from tornpage.properties.consumers.replay import replay_group
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.group_case import GroupCase, GroupSettings


@pytest.mark.parametrize("result", ["dead", "soon", "later"])
def test_hand_over_keeps_the_delay(result: Verdict) -> None:
    fails = FailRequests("send_back"), FailRequests("send_to_retry")
    case = GroupCase(GroupSettings(), (Produce(), *fails, Join(1), RunGroup(result=result), Leave(1)))
    with choose_tracker("auto") as tracker:
        assert replay_group(case, tracker=tracker) is None
