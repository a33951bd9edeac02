"""A cut of several files leaves a log that DLedger opens.

Symptom: DLedger 0.2.3 ended with exit code 255 when it opened a log of tornpage that had been cut by more than a file.
Cause: a cut erased the entries and left the empty data files. DLedger ends if its log ends more than one file before
its last data file.
Fix: a cut and an opening remove the data files after the one in which the log ends, after their content was erased.
Found by: `tornpage peer raft --entries 200 --seed 2`.
"""

from tests.support.impl.dledger_files import DIRECTORY
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

FILE_BYTES = 512
ENTRIES = [Carried(1, bytes([at]) * 100) for at in range(1, 12)]


def data_files(files: RecordingFiles) -> list[int]:
    return [int(name) for name in files.list_directory(f"{DIRECTORY}/data")]


def opened(files: RecordingFiles) -> RaftLog:
    return RaftLog(files, DIRECTORY, data_file_bytes=FILE_BYTES, index_file_bytes=FILE_BYTES)


def test_a_cut_removes_the_files_after_the_end() -> None:
    with choose_tracker("auto") as tracker:
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        log = opened(files)
        log.append(ENTRIES)
        log.sync()
        assert data_files(files) == [0, 512, 1024, 1536]
        log.cut(4)
        assert data_files(files) == [0, 512]
        log.append(ENTRIES[4:])
        log.sync()
        assert [log.body_at(place) for place in range(log.end)] == [entry.body for entry in ENTRIES]
        log.cut(3)  # the first entry of a file
        assert data_files(files) == [0]
        log.close()


def test_an_opening_removes_files_that_are_not_reached() -> None:
    with choose_tracker("auto") as tracker:
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        log = opened(files)
        log.append(ENTRIES)
        log.close()
        file = files.open(f"{DIRECTORY}/data/{0:020d}", writable=True)
        files.zero(file, 148, 48)  # a power loss left the later pages only
        files.close(file)
        again = opened(files)
        assert (again.end, data_files(files)) == (1, [0])
