"""Provide a disk of a few MiB to fill up: a memory file system, or an ext4 on memory."""

import contextlib
import errno
import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.real_faults.loop import Medium
from tornpage.properties.explore.real_faults.mounts import mounted

__all__ = ["Kind", "SmallDisk", "small_disk"]

Kind = Literal["tmpfs", "ext4"]

DISK_BYTES = 4 << 20
BALLAST_BYTES = 3 << 18
BALLASTS = 2
"""One ballast for each time that space is freed. Each is more than the space that a store with a disk watch keeps free.
"""
FILLS = 100
"""Number of attempts to fill the disk. A thread of the store that is refused a file frees some blocks again, fewer each
time."""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """Represent a mounted file system with a store, and files that only take space."""

    directory: str

    @property
    def store(self) -> str:
        """Return the directory of the store."""
        return f"{self.directory}/store"

    def load(self) -> None:
        """Create the ballast files, and a file that makes a larger disk small."""
        found = os.statvfs(self.directory)
        too_many_bytes = found.f_bavail * found.f_frsize - DISK_BYTES
        if too_many_bytes > 0:
            self._take("cargo", too_many_bytes)
        for number in range(BALLASTS):
            self._take(f"ballast{number}", BALLAST_BYTES)

    def _take(self, name: str, size_bytes: int) -> None:
        with open(f"{self.directory}/{name}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)

    def unload(self) -> None:
        """Free the space of one ballast file and of what `fill` took."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/rest")
        os.unlink(min(glob.glob(f"{glob.escape(self.directory)}/ballast*")))

    def fill(self) -> None:
        """Take every remaining block, also those that others held for a moment.

        Raises HarnessError.
        """
        for _ in range(FILLS):
            self._take_until_refused()
            if not os.statvfs(self.directory).f_bavail:
                return
        raise HarnessError(f"the disk is not full after it refused a write, {FILLS} times")

    def _take_until_refused(self) -> None:
        with open(f"{self.directory}/rest", "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


@contextlib.contextmanager
def small_disk(directory: str, name: str, *, kind: Kind = "tmpfs") -> Iterator[SmallDisk]:
    """Mount a small disk with its ballast files below a directory. Raises Unavailable."""
    with contextlib.ExitStack() as stack:
        if kind == "ext4":
            medium = stack.enter_context(contextlib.closing(Medium.formatted()))
            where = stack.enter_context(medium.mounted(f"{directory}/{name}"))
        else:
            where = stack.enter_context(mounted("tmpfs", f"{directory}/{name}", "tmpfs", f"size={DISK_BYTES}"))
        disk = SmallDisk(where)
        disk.load()
        yield disk
