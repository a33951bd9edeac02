"""Test that a recorded disk refuses a closed file, as the kernel does."""

import errno
from collections.abc import Callable

import pytest

from tornpage.impl.io.files import Files, OpenFile
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

CALLS: dict[str, Callable[[Files, OpenFile], object]] = {
    "read": lambda disk, file: disk.read(file, 0, 1),
    "pwrite": lambda disk, file: disk.pwrite(file, b"x", 0),
    "allocate": lambda disk, file: disk.allocate(file, 8),
    "map": lambda disk, file: disk.map(file),
    "sync": lambda disk, file: disk.sync(file),
    "close": lambda disk, file: disk.close(file),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_closed_file_is_refused(name: str, is_last: bool, tracker: DirtyTracker) -> None:
    disk = LastDisk(EMPTY_DISK, disk="posix-strict") if is_last else RecordingFiles(EMPTY_DISK, tracker=tracker)
    disk.make_directory("/store")
    file = disk.create("/store/file")
    disk.allocate(file, 8)
    other = disk.open("/store/file", writable=True)
    disk.close(file)
    with pytest.raises(OSError, match="/store/file") as raised:
        CALLS[name](disk, file)
    assert raised.value.errno == errno.EBADF
    CALLS[name](disk, other)
