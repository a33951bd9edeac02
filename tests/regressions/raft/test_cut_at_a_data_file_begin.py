"""Members have an entry at one position, also after a cut at the begin of a data file.

Symptom: a member dispatches nothing after a cut: "dispatch stopped at offset 1072: bad_position" (contract 4).
Cause: a cut of the first entry of a data file left the blank before it. The next entry, which fitted into the file
before, began the new file. The record in it has the position that the entry has at the leader.
Fix: a cut ends the log after the last entry that stays, and erases the blank (impl/raft/raft_log.py, `RaftLog.cut`).
Found by: `tornpage explore raft` with stores and data files of 1,024 bytes.
"""

from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles


def test_an_entry_after_a_cut_is_where_it_is_without_the_cut_one() -> None:
    with choose_tracker("auto") as tracker:
        log, plain = (
            RaftLog(RecordingFiles(EMPTY_DISK, tracker=tracker), "/log", data_file_bytes=512, index_file_bytes=512)
            for _ in range(2)
        )
        for each in (log, plain):
            each.append([Carried(1, bytes(300))])
        log.append([Carried(1, bytes(300))])
        log.sync()
        log.cut(1)
        for each in (log, plain):
            each.append([Carried(2, b"small")])
            each.sync()
        assert log.position_at(1) == plain.position_at(1) == 348
        assert log.body_at(1) == b"small"


def test_a_log_opens_after_such_a_cut() -> None:
    with choose_tracker("auto") as tracker:
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        log = RaftLog(files, "/log", data_file_bytes=512, index_file_bytes=512)
        log.append([Carried(1, bytes(300)), Carried(1, bytes(300))])
        log.sync()
        log.cut(1)
        log.append([Carried(2, b"small"), Carried(2, bytes(300))])
        log.sync()
        again = RaftLog(files, "/log", data_file_bytes=512, index_file_bytes=512)
        assert [again.position_at(place) for place in range(again.end)] == [0, 348, 512]
