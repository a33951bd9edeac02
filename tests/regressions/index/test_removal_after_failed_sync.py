"""Symptom: a power loss after a flush brought a removed index file back.

Cause: the sync of the directory after the removal failed. The file had left the list, so no later clean-up removed it
again, and a flush syncs the directory only after a file was made.
Fix: a failed sync leaves the directory to the next flush.
Found by: programs of one index against a plain list of entries (properties/lockstep/parts/index.py).
"""

from pathlib import Path

import pytest

from tests.support.impl.index_support import filled, proven, service_of
from tests.support.impl.stores import FaultyFiles

ROW = [(number, number * 10, 1_700_000_000_000) for number in range(7)]


def test_next_flush_syncs_the_removal(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files), *ROW)
    service.flush()
    files.fail("sync_directory", times=1)
    with pytest.raises(OSError, match="Input/output error"):
        service.drop_expired(50)
    files.calls.clear()
    service.flush()
    assert ("sync_directory", f"{tmp_path}/index") in files.calls
    service.close()
