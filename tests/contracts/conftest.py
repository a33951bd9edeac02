"""Fixtures of the contract tests."""

from pathlib import Path

import pytest

from impl.os_files import OsFiles
from tests.contracts.disks import Disk, recording_files


@pytest.fixture(params=["real", "recorded"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    root = str(tmp_path)
    return Disk(OsFiles() if request.param == "real" else recording_files(root), root)
