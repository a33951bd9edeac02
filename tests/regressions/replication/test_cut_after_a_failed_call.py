"""A cut of a slave's log that failed is repeated, and leaves no removed file on the disk.

Symptom: a slave whose disk failed while its log was cut kept a file open for each attempt, one attempt each second. And
the removal of a log file or of a queue file whose directory was not synced stayed without a sync when the cut was
repeated, so that a power loss brought the file back.
Cause: the file of the durable floor was closed after success only. A repeated cut synced the directories in which it
removed a file itself.
Fix: the floor is closed in any case, and a cut syncs the directories of the log, and of removed queues and index.
Found by: `properties/cluster/cuts_alone.py`, which runs each cut with each call that may fail.
"""

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.replication.cutting import cut_log
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.parts.part_disk import PartDisk

LOG, QUEUE = "/part/commitlog", "/part/consumequeue/T/0"
FILES = {
    f"{LOG}/{0:020d}": b"a" * 256, f"{LOG}/{256:020d}": b"b" * 256, f"{QUEUE}/{0:020d}": b"c" * 20,
}  # fmt: skip
DIRECTORIES = frozenset(("/", "/part", "/part/config", LOG, "/part/consumequeue", "/part/consumequeue/T", QUEUE))
CONFIG = MessageStoreConfig(mapped_file_size_commit_log=256)


def cut_with_failures(offset: int, failing_in: int) -> PartDisk:
    disk = PartDisk(Image(DIRECTORIES, FILES))
    disk.failing_in = failing_in
    with pytest.raises(OSError, match="chosen to fail"):
        cut_log(disk, "/part", CONFIG, offset=offset)
    disk.failing_in = 0
    return disk


@pytest.mark.parametrize("failing_in", range(1, 8))
def test_a_failed_cut_keeps_no_file_open(failing_in: int) -> None:
    assert cut_with_failures(0, failing_in).held == (0, 0)


@pytest.mark.parametrize("offset", [0, 256])
def test_removals_of_a_repeated_cut_are_durable(offset: int) -> None:
    for failing_in in range(8, 30):
        try:
            disk = cut_with_failures(offset, failing_in)
        except pytest.fail.Exception:
            break  # fewer calls than that
        cut_log(disk, "/part", CONFIG, offset=offset)
        left = [path for path in disk.durable.files if path.startswith((LOG, QUEUE))]
        assert left == [path for path in FILES if offset and not path.endswith("256")]
    assert failing_in > 9
