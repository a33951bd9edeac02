"""An entry that begins a data file survives a power loss once it is durable.

Symptom: a member restarts with fewer entries than it had confirmed (contract 15). A committed entry is lost after power
losses of a majority.
Cause: a sync began with the file of the first entry that was not durable. The blank in the file before it was not
synced. Without the blank, the opening of the log ends there.
Fix: a sync begins at the end of the durable entries (impl/raft/raft_log.py, `RaftLog.sync`).
Found by: `tornpage explore raft` with stores and data files of 1,024 bytes. Shrunk to 12 events.
"""

import pytest

from tornpage.model.raft.operations import CrashMember, Elect, Propose, RaftOperation, RestartMember, SyncLog
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.replay import replay_raft


@pytest.mark.parametrize("store", [False, True])
def test_a_power_loss_keeps_the_first_entry_of_a_data_file(store: bool) -> None:
    puts: list[RaftOperation] = []
    for _ in range(12):
        puts += [Propose(0), SyncLog(0)]
    unsynced = {"page /member/data/00000000000000000000 0": 0, "page /member/dledger-n0/data/00000000000000000000 0": 0}
    events = (Elect(0), SyncLog(0), *puts, CrashMember(0, survived=unsynced, others="kept"), RestartMember(0))
    case = RaftCase(RaftSettings(members=1, data_file_bytes=1024, store=store), events)
    with choose_tracker("auto") as tracker:
        assert replay_raft(case, tracker=tracker) is None
