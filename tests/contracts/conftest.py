"""Fixtures of the contract tests."""

from pathlib import Path

import pytest

from tests.contracts.disks import Disk, last_disk, recording_files
from tests.contracts.fake_os import faked_files
from tornpage.impl.io.os_files import OsFiles

FAKED_WRONG = {
    "test_create_refuses_a_taken_name_and_leaves_it_alone[faked-directory]": "pyfakefs answers EISDIR, Linux EEXIST",
    "test_a_file_is_no_directory[faked]": "pyfakefs answers ENOENT to an open below a file, Linux ENOTDIR",
    "test_rename_of_a_name_below_a_file_is_refused[faked]": "pyfakefs answers ENOENT, Linux ENOTDIR",
}
"""Differences between pyfakefs 6.3.2 and Linux.

A test that passes on a later version has to leave this table.
"""


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """Use directories on a disk: holes, sizes and errors are those of its file system."""
    return disk_path


@pytest.fixture(params=["real", "recorded", "last", "faked"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    root = str(tmp_path)
    if request.node.name in FAKED_WRONG:
        request.applymarker(pytest.mark.xfail(reason=FAKED_WRONG[request.node.name]))
    match request.param:
        case "real":
            return Disk(OsFiles(), root)
        case "recorded":
            return Disk(recording_files(root), root)
        case "last":
            return Disk(last_disk(root), root)
    return Disk(faked_files(root, monkeypatch), root)
