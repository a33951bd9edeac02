"""The disks that run the contract tests, and the errors of their calls."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tornpage.impl.io.files import Files
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import Image, parent_of
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.disk.recording_files import RecordingFiles

__all__ = ["Disk", "error_of", "last_disk", "recording_files"]


@dataclass(frozen=True)
class Disk:
    """A disk under test, and an empty directory on it."""

    files: Files
    root: str

    def path(self, name: str) -> str:
        """Return the path of a name in the directory."""
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> str:
        """Make a closed file with a content."""
        file = self.files.create(self.path(name))
        self.files.pwrite(file, data, 0)
        self.files.close(file)
        return self.path(name)

    def content(self, name: str) -> bytes:
        """Return the content of a file."""
        file = self.files.open(self.path(name), writable=False)
        try:
            return self.files.read(file, 0, 1 << 20)
        finally:
            self.files.close(file)


def recording_files(root: str, *, budget_bytes: int = 1 << 40) -> RecordingFiles:
    """Return a recorded disk that has the directory `root` and its parents."""
    directories = {root}
    while root != "/":
        root = parent_of(root)
        directories.add(root)
    return RecordingFiles(Image(frozenset(directories), {}), tracker=CompareTracker(), budget_bytes=budget_bytes)


def last_disk(root: str, *, budget_bytes: int = 1 << 40) -> LastDisk:
    """Return the same disk for a store that is judged and discarded."""
    return LastDisk(recording_files(root).base, disk="posix-strict", budget_bytes=budget_bytes)


def error_of(call: Callable[[], object]) -> int | None:
    """Return the errno of the OSError that a call must raise."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is compared by the caller
        call()
    return caught.value.errno
