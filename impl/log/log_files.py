"""A log file comes to be, or goes: durable in size and name before anything is written to it."""

import contextlib
import errno
import logging
from collections.abc import Callable

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_directories import LogDirectories, directory_of

__all__ = ["LogFileMaker", "MappedFileFactory", "file_name"]

_LOG = logging.getLogger("tornpage.store")

MappedFileFactory = Callable[..., MappedFile]


def file_name(base_offset: int) -> str:
    """Return the name of the file that begins at a physical offset: 20 digits. Source: `UtilAll.offset2FileName`."""
    return f"{base_offset:020d}"


class LogFileMaker:
    """Makes files of one size, each in the directory chosen for it, and warms them as the policy says."""

    def __init__(
        self,
        files: Files,
        directories: LogDirectories,
        *,
        file_bytes: int,
        mapped_file: MappedFileFactory,
        policy: AllocationPolicy,
        flush_disk_type: FlushDiskType,
    ) -> None:
        self._files = files
        self._mapped_file = mapped_file
        self._policy = policy
        self._flush_disk_type = flush_disk_type
        self.directories = directories
        self.file_bytes = file_bytes

    def path_of(self, base_offset: int) -> str:
        """Return where the file that begins at an offset would be made now."""
        return f"{self.directories.choose(base_offset)}/{file_name(base_offset)}"

    def make(self, base_offset: int) -> MappedFile:
        """Create, reserve, sync and map a file. Raises OSError when the disk refuses; all is as before then."""
        path = self.path_of(base_offset)
        self._require_room(path)
        file = self._files.create(path)
        try:
            self._files.allocate(file, self.file_bytes)
            self._make_durable(file)
            mapped = self._mapped(file, base_offset)
        except BaseException:
            self._files.close(file)
            self._unname(path)
            raise
        try:
            mapped.warm_up(self._policy, self._flush_disk_type)
        except BaseException:
            mapped.close()
            self._unname(path)
            raise
        return mapped

    def _mapped(self, file: OpenFile, base_offset: int) -> MappedFile:
        """Map a file, which belongs to the mapped file from then on."""
        return self._mapped_file(self._files, file, base_offset=base_offset, written_position=0)

    def _unname(self, path: str) -> None:
        with contextlib.suppress(OSError):  # a name that stays is an empty newest file; the next open removes it
            self._files.unlink(path)

    def _require_room(self, path: str) -> None:
        """Refuse before anything is created; what others take in between is found when blocks are reserved.

        A disk that does not say is found out then too.
        """
        usage = disk_usage_of(self._files, directory_of(path))
        if usage is not None and usage.free_bytes < self.file_bytes:
            _LOG.warning(
                "no_space path=%r needed_bytes=%d free_bytes=%d remedy='free space or delete expired files'",
                path,
                self.file_bytes,
                usage.free_bytes,
            )
            raise OSError(errno.ENOSPC, "no room for another log file", path)

    # planted: size-not-synced, directory-not-synced, gap-accepted
    def _make_durable(self, file: OpenFile) -> None:
        self._files.sync(file)
        self._files.sync_directory(directory_of(file.path))

    def open(self, path: str, *, writable: bool) -> MappedFile:
        """Map a file that was found at load; until recovery says better it counts as full, as in RocketMQ."""
        file = self._files.open(path, writable=writable)
        try:
            mapped = self._mapped(file, int(path.rpartition("/")[2]))
        except BaseException:
            self._files.close(file)
            raise
        mapped.written_position = mapped.size_bytes
        return mapped

    def remove(self, mapped: MappedFile) -> None:
        """Remove a file durably. Raises OSError; a second attempt is content with a name that is gone already."""
        mapped.close()
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(mapped.path)
        self._files.sync_directory(directory_of(mapped.path))
