"""A put works on a disk that does not report its room.

Symptom: puts that needed a new file were refused on a disk with room, because reading its usage failed.
Cause: the check of the free space before making a file took its own error for a full disk.
Fix: the file is tried then, and reserving its blocks decides (impl/log/log_files.py, `_require_room`).
Found by: the test of the disk watch, which reads the same usage.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, open_store
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner


@pytest.mark.parametrize("has_room", [True, False])
def test_reserving_tells(has_room: bool, tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files, parts=Parts({ThreadRunner: HandRunner()})) as store:
        files.fail("disk_usage")
        if not has_room:
            refuse = files.faults["disk_usage"]
            files.faults["allocate"] = refuse
        assert store.put(MESSAGE).status is (PutStatus.PUT_OK if has_room else PutStatus.CREATE_MAPEDFILE_FAILED)
