"""A copy of bytes that recovery is about to cut from a log that is not ours to judge.

Without a durable floor (a store written by RocketMQ) nobody can tell a tear from damage, so valid records behind the
cut are kept aside first, in `<root>/quarantine/<cut offset>.<number>` (contract 7).
"""

from collections.abc import Sequence

from impl.files import Files
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import file_name
from impl.scan import RecordChecker, first_nonzero, islands
from impl.store_lock import make_directories

__all__ = ["quarantine"]


def quarantine(files: Files, root: str, mapped: Sequence[MappedFile], *, cut: int, check: RecordChecker) -> list[str]:
    """Copy the bytes from `cut` on, if they hold a valid record; return the paths written, each durable.

    `mapped` begins with the file that holds `cut`. A copy made before is never replaced: after a crash in the middle
    of erasing, the second copy holds less than the first.
    """
    positions = [max(0, cut - file.base_offset) for file in mapped]
    if not any(True for file, at in zip(mapped, positions, strict=True) for _ in islands(file, at, check)):
        return []
    directory = f"{root}/quarantine"
    make_directories(files, directory)
    copied = []
    for file, position in zip(mapped, positions, strict=True):
        if first_nonzero(file.view, position) is not None:
            copied.append(_copy(files, directory, bytes(file.view[position:]), file.base_offset + position))
    return copied


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
