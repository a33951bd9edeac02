"""A replica whose log begins at a later offset than 0 makes its log durable.

Symptom: such a replica never synced its log before its next opening. A power loss took messages that a put with
`acknowledge="durable"` waited for, and each such put was answered FLUSH_SLAVE_TIMEOUT.
Cause: a flush begins with the file of the flushed offset. This offset was 0, and no file has it.
Fix: the first file of a log sets the flushed offset to its begin (impl/log/mapped_file_queue.py).
Found by: `tornpage explore cluster`, after it was given a put at the end of each run that has to be confirmed.
"""

import pytest

from tornpage.model.replication.operations import (
    CleanNode,
    CloseNode,
    CrashNode,
    FlushNode,
    PutOn,
    RestartNode,
    RunAll,
    StepNode,
)
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.cluster_case import ClusterSettings


@pytest.mark.parametrize("slave_syncs", [False, True])
def test_replica_that_joins_after_retention_is_durable(slave_syncs: bool) -> None:
    put = PutOn(body_bytes=2500)
    settings = ClusterSettings(acknowledge="durable", slave_syncs=slave_syncs)
    with choose_tracker("auto") as tracker:
        trial = ClusterTrial(settings, tracker=tracker)
        for operation in (CloseNode(1), put, put, FlushNode(0), StepNode(0), CleanNode(0), RestartNode(1), RunAll(6)):
            trial.run(operation)
        replica = trial.nodes[1]
        assert (replica.begin, replica.end) == (4096, 6708)
        trial.run(FlushNode(1))
        assert replica.store.flushed_offset == 6708
        trial.run(CrashNode(1))
        trial.run(RestartNode(1))
        assert (replica.begin, replica.end) == (4096, 6708)
        trial.finish()
