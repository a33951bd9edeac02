"""A slave that joined was expected to be refused.

Symptom: `explore cluster` said "node 0 has no generation in common with its master, and is not refused" of a slave that
has joined and is equal.
Cause: several states of the model explained what was seen. A node counted as one without a common generation if it has
none in one of these states.
Fix: it counts as one if it has none in all of them, or if its master refuses it.
"""

from tornpage.model.replication.operations import ChangeRoles, CrashNode, PutOn, RunAll
from tornpage.properties.cluster.replay import replay_cluster
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings


def test_a_slave_that_has_joined_need_not_be_refused() -> None:
    events = (RunAll(), ChangeRoles(), PutOn(node=1), RunAll(), PutOn(node=1), CrashNode(node=1, kill=True, back=1))
    with choose_tracker("auto") as tracker:
        assert replay_cluster(ClusterCase(ClusterSettings(), events), tracker=tracker) is None
