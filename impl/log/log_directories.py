"""The directories of the log, and the choice of one for a new file.

Source: `MultiPathMappedFileQueue`. The log is one sequence of files, in whatever directories they lie. A file gets its
directory when it is created, and stays there. RocketMQ chooses again when it turns to a prepared file. If a disk filled
up meanwhile, it creates a second file of the same name in another directory (hole H12).
"""

import errno
from collections.abc import Collection, Sequence

from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import DiskUsage, Files
from tornpage.impl.io.store_lock import make_directories

__all__ = ["LogDirectories", "directory_of"]


def directory_of(path: str) -> str:
    """Return the directory of a path."""
    return path.rpartition("/")[0]


class LogDirectories:
    """Absolute paths in lexical order.

    `paths` are all directories, `writable` those for new files. No file is created in a read-only directory; existing
    files there are written and removed like others. With one directory there is no choice, and no disk usage is read.
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
        """All paths, for messages."""
        return ", ".join(self.paths)

    def choose(self, base_offset: int) -> str:
        """Return the directory for the file that begins at an offset.

        Directories that are not full take turns. A directory is full above the ratio. If all are full, RocketMQ uses
        all of them again. Here those without room for a file, and disks whose usage cannot be read, are left out even
        then, unless there is no other.
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
        """Return the free bytes of the writable directory with most room. It need not exist yet.

        Raises OSError if no disk usage can be read.
        """
        usages = [disk_usage_of(self._files, self._existing(path)) for path in self.writable]
        free_bytes = max((usage.free_bytes for usage in usages if usage is not None), default=None)
        if free_bytes is None:
            raise OSError(errno.EIO, "the free space of no disk can be read", self.names)
        return free_bytes

    def _existing(self, path: str) -> str:
        while self._files.stat(path) is None:
            path = directory_of(path) or "/"
        return path

    def prepare(self) -> None:
        """Create missing writable directories; make all names durable, those of files too.

        An earlier open may have been killed between removing a file and syncing the directory. Such a file must not
        reappear after later removals. Raises OSError.
        """
        for path in self.writable:
            make_directories(self._files, path)
        for path in self.paths:
            if self._files.stat(path) is not None:
                self._files.sync_directory(path)
