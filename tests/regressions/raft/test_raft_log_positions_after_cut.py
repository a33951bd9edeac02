"""The positions of a log follow from its entries alone, also after a cut.

Symptom: after a cut at the begin of a data file, a short entry went into that file. The same entries without the cut,
or after a restart, have it at the end of the file before. Members of a group then had different files, and DLedger
takes an entry at another position for another entry.
Cause: the log ended at the position of the removed entry, after the blank of the file before.
Fix: the log ends where its last entry ends, and the blank is erased with the removed entries.
Found by: `tornpage peer raft --entries 1000 --seed 3`.
"""

from tests.support.impl.dledger_files import DIRECTORY
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

FILE_BYTES = 512
LONG, SHORT = Carried(1, bytes(100)), Carried(2, b"s")


def opened(files: RecordingFiles) -> RaftLog:
    return RaftLog(files, DIRECTORY, data_file_bytes=FILE_BYTES, index_file_bytes=FILE_BYTES)


def content(files: RecordingFiles) -> dict[str, bytes]:
    found = {}
    for name in files.list_directory(f"{DIRECTORY}/data"):
        file = files.open(f"{DIRECTORY}/data/{name}", writable=False)
        found[name] = files.read(file, 0, FILE_BYTES)
        files.close(file)
    return found


def test_a_cut_log_has_the_files_of_one_without_the_cut() -> None:
    with choose_tracker("auto") as tracker:
        cut, plain = (RecordingFiles(EMPTY_DISK, tracker=tracker) for _ in range(2))
        log = opened(cut)
        log.append([LONG] * 5)
        log.sync()
        log.cut(3)
        log.append([SHORT])
        log.sync()
        assert log.position_at(3) == 3 * 148
        log.close()
        log = opened(plain)
        log.append([LONG, LONG, LONG, SHORT])
        log.sync()
        log.close()
        assert content(cut) == content(plain)
