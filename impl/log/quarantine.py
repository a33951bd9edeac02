"""A copy of bytes that recovery is about to cut from a log that is not ours to judge.

Without a durable floor (a store written by RocketMQ) nobody can tell a tear from damage, so valid records behind the
cut are kept aside first, in `<root>/quarantine/<cut offset>.<number>` (contract 7).
"""

from tornpage.impl.io.files import Files
from tornpage.impl.io.store_lock import make_directories
from tornpage.impl.log.log_files import file_name
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import RecordChecker, islands

__all__ = ["quarantine"]


def quarantine(files: Files, root: str, log: MappedFileQueue, *, cut: int, check: RecordChecker) -> list[str]:
    """Copy the bytes from `cut` on, if they hold a valid record; return the paths written, each durable.

    A copy made before is never replaced: after a crash in the middle of erasing, the second copy holds less than the
    first.
    """
    behind = [(file, max(0, cut - file.base_offset)) for file in log.mapped if file.end_offset > cut]
    if not any(True for file, at in behind for _ in islands(file, at, check, file_bytes=log.file_bytes)):
        return []
    directory = f"{root}/quarantine"
    make_directories(files, directory)
    return [
        _copy(files, directory, bytes(file.view[position:]), file.base_offset + position)
        for file, position in behind
        if file.first_nonzero(position) is not None
    ]


def _copy(files: Files, directory: str, data: bytes, offset: int) -> str:
    taken = set(files.list_directory(directory))
    number = next(n for n in range(len(taken) + 1) if f"{file_name(offset)}.{n}" not in taken)
    target = f"{directory}/{file_name(offset)}.{number}"
    unfinished = f"{directory}/unfinished"
    if "unfinished" in taken:
        files.unlink(unfinished)
    file = files.create(unfinished)
    try:
        files.pwrite(file, data, 0)
        files.sync(file)
    finally:
        files.close(file)
    files.rename(unfinished, target)
    files.sync_directory(directory)
    return target
