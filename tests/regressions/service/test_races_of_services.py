"""Services meet a call of another thread between two steps of theirs.

Symptom: a step of the requests for replicas ended with TypeError during a close. A put that needed a log file reported
"not ready after 5000 ms" at once, in place of the failed creation. A sync of a queue's directory returned before the
name of the directory was durable, and raised no error if the sync of that name failed. Two threads that used one answer
of a pull got two buffers for one record, so that its release counted twice. A put that a replica had confirmed failed
if the replica left at this moment. A flush of a queue reported as flushed what was appended at its end. A question for
the address of a node, or its drain, ended with AttributeError during a close or a change of roles. A second close of a
Raft member ended with AttributeError, and a read that began during a close got no answer. Records that a slave received
during its close were appended to a new file, which stayed open.
Cause: the step read its next deadline twice, and a close removed it between the reads. The service that creates log
files noted a failure first and answered later. A put that began to wait between these two cleared the failure. A sync
took all new names of a directory out of the table before it made them durable, so that a second sync found none. The
table of buffers was read before the lock, and an iteration replaced it meanwhile. A flush that found all files flushed
read the end of the queue afterwards. A confirmation was noted first, and looked for its requests later. Address and
drain of a node read its server twice. Two closes of a member both closed its log, and a closing member took events. An
append of received records did not look whether the log was stopped.
Fix: the deadline is read once (impl/replication/requests.py, `step`), and a confirmation takes its requests
under the lock in which it is noted (`note`, `request`). Failure and answer change under one lock
(impl/log/allocation.py, `_answer`). Names stay in the table until they are durable (impl/queue/directory_tree.py). The
table of buffers is read under the lock (impl/read/read_buffer.py, `_buffers`, `release`). The end of a queue is read
before its files (impl/queue/queue_files.py, `flush`). The server of a node is read once (impl/replication/node.py). One
close of a member does the work, and from then on the member takes no events (impl/raft/raft_store.py, `close`). A
stopped log refuses received records (impl/log/commit_log.py, `append_received`).
Found by: `tornpage explore interleavings`, with a preemption before any bytecode that may touch shared state.
"""

from contextlib import suppress

import pytest

from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.interleavings.part_searches import PartTally, first_search
from tornpage.properties.explore.interleavings.programs.bench import call, program
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Scenario

PROGRAMS = {
    "a step beside a close": program("replicas", [call("step", 10)], [call("close")], before=[call("request", 5)]),
    "a confirmation beside a replica that leaves": program(
        "replicas", [call("note", 2, 9)], [call("forget", 2)], before=[call("request", 6)]
    ),
    "a put after a failed creation": program(
        "allocation", [call("take_next")], [call("fail", 2)], [call("serve", 2)], before=[call("take_next")]
    ),
    "an iteration beside a look at one record": program("window", [call("iterate")], [call("get", 1)]),
    "an iteration beside a release": program("window", [call("iterate")], [call("release")]),
    # the state of this bench once counted files that `leaked` had found closed, and the store was right
    "a look at closed files beside a close": program(
        "buffers", [call("shut")], [call("leaked")], before=[call("lease", 2, 1), call("lease", 1, 0)]
    ),
    "a first append beside a flush": program("queue files", [call("append", 1)], [call("flush")]),
    "a look at a node beside a change of roles": program("node", [call("look"), call("look")], [call("become", 2)]),
    "two closes of a Raft member": program("raft store", [call("close")], [call("close")]),
    "a read of a Raft member beside a close": program("raft store", [call("close")], [call("read")]),
    "received records beside a close": program("receiving", [call("receive", 2)], [call("close")]),
    "two syncs below one directory": program(
        "tree", [call("sync", 0, 0)], [call("sync", 1, 0)], before=[call("make", 0, 0), call("make", 1, 0)]
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_single_preemption_breaks_the_program(name: str) -> None:
    scenario: Scenario = PROGRAMS[name]
    search, runs = first_search(scenario, PartTally()), 0
    ran: Ran | None = None
    with choose_tracker("auto") as tracker, suppress(StopIteration):
        while True:
            interleaving = next(search) if ran is None else search.send(ran)
            ran = run_interleaving(interleaving, tracker=tracker)
            assert ran.broken is None, ran.broken
            runs += 1
    assert runs > 40
