"""Symptom: a store with a negative time in its checkpoint opened, and left the time there.

Cause: times were taken as they stood, and only one that is too late was set back.
Fix: a negative time reads as 0, and an open for writing makes the checkpoint whole.
"""

import struct
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import bodies, config, filled
from tests.support.impl.stores import open_store


@pytest.mark.parametrize("times", [(-1, 0, 0), (0, -(1 << 63), 0), (5, 5, -1), (-1, -1, -1)])
def test_no_time_is_negative(times: tuple[int, int, int], tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "checkpoint"
    path.write_bytes(struct.pack(">qqq", *times).ljust(4096, b"\0"))
    with open_store(tmp_path, config=config()) as store:
        assert min(struct.unpack_from(">qqq", path.read_bytes())) >= 0
        assert len(bodies(store)) == 9
