"""Cutting the log of a closed store: its tail belongs to no log of the master.

The cut is safe at each moment. First the durable floor is lowered and the abort marker is created, both durably. From
then on the next open takes a partly cut tail for a tear, and recovery completes the cut. Then the files past the cut
are removed, last first and each durably, and the rest of the file with the cut is zeroed and synced. Queues, index and
consumer offsets follow when the store is opened.

If nothing of the log stays, the files of queues and index are removed before the log. An empty queue keeps the number
of its next message, which belongs to the log that is cut. The next log may begin with another number.
"""

from collections.abc import Sequence

from tornpage.impl.config.log_paths import resolved_log_paths
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Files
from tornpage.impl.io.store_lock import StoreLock
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.recovery.opening import AbortMarker

__all__ = ["cut_log"]

_DERIVED = ("consumequeue", "consumequeue_ext", "index")


def cut_log(files: Files, directory: str, config: MessageStoreConfig, *, offset: int) -> None:
    """Cut the log of a closed store at a physical offset, durably.

    Raises StoreInUse if the store is open, and OSError.
    """
    file_bytes = config.mapped_file_size_commit_log
    lock = StoreLock(files, directory)
    lock.acquire()
    try:
        paths, _ = resolved_log_paths(directory, config.store_path_commit_log, config.read_only_commit_log_store_paths)
        logs, is_emptied = _log_files(files, paths), False
        if logs and offset <= logs[0][0]:
            offset = 0  # nothing is left, and an empty log has the floor 0
            is_emptied = True
        floor = DurableFloor(files, f"{directory}/config/durableFloor", file_bytes=file_bytes)
        found = floor.load()
        try:
            floor.start(offset if found is None else min(offset, found.offset))
        finally:
            floor.close()
        AbortMarker(files, directory).create()
        if is_emptied:
            for name in _DERIVED:
                _remove_files(files, f"{directory}/{name}")
        for path in paths:
            files.sync_directory(path)  # an earlier cut may have removed files and failed before its sync
        for base, path in reversed(logs):
            if base >= offset:
                files.unlink(path)
                files.sync_directory(directory_of(path))
            elif base + file_bytes > offset:
                _zero(files, path, offset - base, file_bytes)
    finally:
        lock.release()


def _remove_files(files: Files, path: str) -> None:
    """Remove all files below a directory, durably; the directories stay."""
    found = files.stat(path)
    if found is None or found.kind != "directory":
        return
    for name in files.list_directory(path):
        stat = files.stat(f"{path}/{name}")
        if stat is not None and stat.kind == "file":
            files.unlink(f"{path}/{name}")
        else:
            _remove_files(files, f"{path}/{name}")
    files.sync_directory(path)  # also if an earlier cut has removed the files and failed before its sync


def _log_files(files: Files, paths: Sequence[str]) -> list[tuple[int, str]]:
    """Return begin and path of each log file, in order."""
    found = [(name, f"{path}/{name}") for path in paths for name in files.list_directory(path)]
    return sorted((int(name), path) for name, path in found if len(name) == 20 and name.isascii() and name.isdigit())


def _zero(files: Files, path: str, position: int, file_bytes: int) -> None:
    file = files.open(path, writable=True)
    try:
        files.zero(file, position, file_bytes - position)
        files.sync(file)
    finally:
        files.close(file)
