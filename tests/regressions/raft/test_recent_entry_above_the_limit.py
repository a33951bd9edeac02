"""A batch of recent entries keeps its limit after a long entry.

Symptom: a leader sent all entries that it had in memory in one message. A message above the longest frame ends its
link, so a follower with less than these entries never got them.
Cause: if the oldest entry in memory was longer than the limit, nothing could be forgotten, and the sum of the forgotten
entries was set to that of all entries.
Fix: the sum changes only if an entry is forgotten (impl/raft/recent.py, `RecentEntries.append`).
Found by: `tornpage explore raft`, after copies of the directory of a member were opened and used.
"""

from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.recent import RecentEntries
from tornpage.properties.raft.memory import MemoryLog


def test_batches_keep_their_limit() -> None:
    recent = RecentEntries(MemoryLog([], 0, 9), 300)
    entries = [Carried(1, bytes(size)) for size in (30, 0, 700, 10, 10)]
    for each in entries:
        recent.append([each])
    assert [recent.entries(place, 100) for place in (2, 3, 4)] == [(entries[2],), (entries[3],), (entries[4],)]
    assert recent.entries(3, 200) == tuple(entries[3:])
