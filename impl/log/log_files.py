"""Creating and removing log files: durable in size and name before the first write."""

import contextlib
import errno
import logging
import time
from collections.abc import Callable

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.log_directories import LogDirectories, directory_of

__all__ = ["LogFileMaker", "MappedFileFactory", "file_name"]

_LOG = logging.getLogger("tornpage.store")

_SLOW_MS = 500
"""As for a slow put."""

MappedFileFactory = Callable[..., MappedFile]


def file_name(base_offset: int) -> str:
    """Return the name of the file that begins at a physical offset: 20 digits.

    Source: `UtilAll.offset2FileName`.
    """
    return f"{base_offset:020d}"


class LogFileMaker:
    """Creates files of one size in their directories, and warms them by the policy."""

    def __init__(
        self,
        files: Files,
        directories: LogDirectories,
        *,
        file_bytes: int,
        mapped_file: MappedFileFactory,
        policy: AllocationPolicy,
        flush_disk_type: FlushDiskType,
        whole_files: WholeFiles | None = None,
    ) -> None:
        self._files = files
        self._whole_files = WholeFiles(files) if whole_files is None else whole_files
        self._mapped_file = mapped_file
        self._policy = policy
        self._flush_disk_type = flush_disk_type
        self.directories = directories
        self.file_bytes = file_bytes

    def path_of(self, base_offset: int) -> str:
        """Return the path at which the file for an offset would be created now."""
        return f"{self.directories.choose(base_offset)}/{file_name(base_offset)}"

    def make(self, base_offset: int) -> MappedFile:
        """Create, allocate, sync and map a file. Raises OSError if that fails; nothing stays then."""
        path, began_ms = self.path_of(base_offset), _now_ms()
        self._require_room(path)
        file = self._whole_files.make(path, top=directory_of(path), fill=self._allocate)
        filled_ms = _now_ms()
        try:
            self._sync_name(path)
            _warn_if_slow(path, self.file_bytes, began_ms, filled_ms, _now_ms())
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

    def _allocate(self, file: OpenFile) -> None:
        self._files.allocate(file, self.file_bytes)

    def _mapped(self, file: OpenFile, base_offset: int) -> MappedFile:
        """Map a file; the mapped file owns it from then on."""
        return self._mapped_file(self._files, file, base_offset=base_offset, written_position=0)

    def _unname(self, path: str) -> None:
        with contextlib.suppress(OSError):  # the next open removes an unused newest file
            self._files.unlink(path)

    def _require_room(self, path: str) -> None:
        """Raise OSError if the disk has no room, before anything is created.

        Space taken by other processes meanwhile, and a disk whose usage cannot be read, fail when the blocks are
        allocated.
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

    # planted: directory-not-synced, gap-accepted
    def _sync_name(self, path: str) -> None:
        self._files.sync_directory(directory_of(path))

    def open(self, path: str, *, writable: bool) -> MappedFile:
        """Map a file found at load. Until recovery decides it counts as full, as in RocketMQ.

        Raises OSError.
        """
        file = self._files.open(path, writable=writable)
        try:
            mapped = self._mapped(file, int(path.rpartition("/")[2]))
        except BaseException:
            self._files.close(file)
            raise
        mapped.written_position = mapped.size_bytes
        return mapped

    def remove(self, mapped: MappedFile) -> None:
        """Remove a file durably. Raises OSError; a repeated call accepts a missing name."""
        mapped.close()
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(mapped.path)
        self._files.sync_directory(directory_of(mapped.path))


def _now_ms() -> int:
    """Return the monotonic time in milliseconds; it only goes into the log of the program."""
    return time.monotonic_ns() // 1_000_000


def _warn_if_slow(path: str, file_bytes: int, began_ms: int, filled_ms: int, named_ms: int) -> None:
    """Log what the creation of a log file has waited for, since a put may have waited for it."""
    if named_ms - began_ms > _SLOW_MS:
        _LOG.warning(
            "slow_log_file elapsed_ms=%d path=%r file_bytes=%d allocation_ms=%d name_sync_ms=%d "
            "remedy='first_file_at_open, mapped_files_ahead, or smaller files'",
            named_ms - began_ms,
            path,
            file_bytes,
            filled_ms - began_ms,
            named_ms - filled_ms,
        )
