"""The reserve of a file system counts neither as used nor as free.

Symptom: a disk with a reserve looked used by that part, and a clean-up deleted files for it.
"""

import os
from types import SimpleNamespace

import pytest

from tornpage.impl.io.files import DiskUsage
from tornpage.impl.io.os_files import OsFiles


def test_a_reserve_is_neither_in_use_nor_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 blocks 100 are in use and 300 are available: a quarter in df(1) and RocketMQ."""
    disk = SimpleNamespace(f_frsize=4096, f_blocks=1_000, f_bfree=900, f_bavail=300)
    monkeypatch.setattr(os, "statvfs", lambda _path: disk)
    found = OsFiles().disk_usage("/")
    assert found == DiskUsage(400 * 4096, 300 * 4096)
    assert found.used_ratio == 0.25
