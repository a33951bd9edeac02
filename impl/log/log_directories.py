"""The directories a log is spread over, and which of them gets a new file. Source: `MultiPathMappedFileQueue`.

The log is one row of files, whatever directories they lie in. A file is given its directory when it is made, and stays
there: RocketMQ asks again when it turns to a file that was prepared, and if a disk got full meanwhile makes a second
one of the same name elsewhere (hole H12).
"""

import errno
from collections.abc import Collection, Sequence

from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import DiskUsage, Files
from tornpage.impl.io.store_lock import make_directories

__all__ = ["LogDirectories", "directory_of"]


def directory_of(path: str) -> str:
    """Return the directory that a log file lies in."""
    return path.rpartition("/")[0]


class LogDirectories:
    """Absolute paths in the order of their text: all of them, and those that may get new files.

    A read-only directory gets none; the files that it has belong to the log like others, and are written and removed
    like others. With one directory there is no choice, and no disk is asked.
    """

    def __init__(
        self,
        files: Files,
        paths: Collection[str],
        *,
        read_only: Collection[str],
        file_bytes: int,
        clean_forcibly_ratio: float,
    ) -> None:
        self._files = files
        self._file_bytes = file_bytes
        self._clean_forcibly_ratio = clean_forcibly_ratio
        self.paths = tuple(sorted(paths))
        self.writable = tuple(path for path in self.paths if path not in read_only)

    @property
    def names(self) -> str:
        """All paths, for people."""
        return ", ".join(self.paths)

    def choose(self, base_offset: int) -> str:
        """Return the directory for the file that begins at an offset: each in turn, but for those that are full.

        Full is above the ratio; if all are, RocketMQ writes to all of them again. Here those without room for a file,
        and disks that do not say, are left out even then, unless there is no other.
        """
        candidates: Sequence[str] = self.writable
        if len(candidates) > 1:
            usages = {path: disk_usage_of(self._files, path) for path in candidates}
            roomy = [path for path, usage in usages.items() if usage and usage.free_bytes >= self._file_bytes]
            candidates = [path for path in roomy if not self._is_full(usages[path])] or roomy or candidates
        return candidates[base_offset // self._file_bytes % len(candidates)]

    def _is_full(self, usage: DiskUsage | None) -> bool:
        return usage is not None and usage.used_ratio > self._clean_forcibly_ratio

    def free_bytes(self) -> int:
        """Return the room of the writable directory that has most, be it there or still to be made.

        Raises OSError when no disk says.
        """
        usages = [disk_usage_of(self._files, self._existing(path)) for path in self.writable]
        free_bytes = max((usage.free_bytes for usage in usages if usage is not None), default=None)
        if free_bytes is None:
            raise OSError(errno.EIO, "no disk says how much room it has", self.names)
        return free_bytes

    def _existing(self, path: str) -> str:
        while self._files.stat(path) is None:
            path = directory_of(path) or "/"
        return path

    def prepare(self) -> None:
        """Make the writable directories that are missing, and all names durable, those of the files included.

        An opener before us may have been killed between removing a file and syncing that, and a file that comes back
        must not do so behind our own removals.
        """
        for path in self.writable:
            make_directories(self._files, path)
        for path in self.paths:
            if self._files.stat(path) is not None:
                self._files.sync_directory(path)
