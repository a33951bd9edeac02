"""A Raft log of many small files keeps few of them open.

Symptom: a log with more data files than the process may have descriptors did not open: "Too many open files".
Cause: each file stayed open from its first use to the close of the log.
Fix: files that are not in use and whose bytes are durable are closed above a limit (impl/raft/open_files.py).
Found by: reading the code.
"""

import os
from pathlib import Path

from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.open_files import FILES_MAX
from tornpage.impl.raft.raft_log import RaftLog

FILES = 60
BODY = bytes(3_000)


def opened(directory: Path) -> RaftLog:
    return RaftLog(OsFiles(), str(directory), data_file_bytes=4_096, index_file_bytes=4_096)


def open_files_below(directory: Path) -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(str(directory)) for link in links if os.path.islink(link))


def test_few_files_stay_open(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for _ in range(FILES):
        log.append([Carried(1, BODY)])
        log.sync()
    assert open_files_below(tmp_path) <= FILES_MAX
    assert {log.body_at(place) for place in range(FILES)} == {BODY}
    assert open_files_below(tmp_path) <= FILES_MAX
    log.close()
    again = opened(tmp_path)
    assert (again.end, again.synced) == (FILES, FILES)
    assert open_files_below(tmp_path) <= FILES_MAX
    again.cut(1)
    assert again.body_at(0) == BODY
    again.close()
    assert open_files_below(tmp_path) == 0


def test_files_with_bytes_that_are_not_durable_stay_open(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([Carried(1, BODY)] * FILES)
    assert open_files_below(tmp_path) == FILES
    log.sync()
    assert open_files_below(tmp_path) <= FILES_MAX
    log.close()
