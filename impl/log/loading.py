"""Examining the directories of the commit log before any of their bytes is trusted.

Recovery needs contiguous files of the configured size, ordered by offset, in whatever directories they lie. RocketMQ
orders them by path (RMQ-B10). Everything else gets a finding:

* a stray file is ignored;
* an empty newest file, created and never written, is removed;
* so are files made ahead of the writes that a crash left with an empty file among them or a file missing before them;
* a file of another size is refused, a short or missing file is damage;
* two files of one offset are damage unless all but one hold only zeros.

Source: `MappedFileQueue.load`, which refuses to start in three of these cases (G1, G2, H4), and
`MultiPathMappedFileQueue.load`, which loads both of two files of one offset (H12).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

from tornpage.impl.errors import WrongFileSize
from tornpage.impl.io.files import Files
from tornpage.impl.io.zeros import first_nonzero
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.log_directories import LogDirectories, directory_of
from tornpage.impl.log.log_files import file_name

__all__ = ["NO_OFFSET", "Finding", "FoundLog", "examine_log"]

NO_OFFSET = -1
"""The `offset` of a finding that concerns no place in a file."""

_LAST_BASE = 1 << 62
_CHUNK_BYTES = 1 << 20
_SIZE_STEP_BYTES = 512


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a store.

    `damage` keeps it read-only, a `tear` was cut off, a `note` concerns no record. `file` is the path of a file or
    directory, `offset` a physical offset or a position in bytes, or NO_OFFSET. `message` is a sentence for an operator.
    """

    severity: Literal["damage", "tear", "note"]
    code: str
    file: str
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The files to map, the files to remove, and the findings.

    `paths` are ascending by offset. `leftovers` hold no record.
    """

    paths: tuple[str, ...]
    leftovers: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _LogFile:
    base: int
    path: str
    size: int


def examine_log(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Examine the log directories without a change.

    `file_bytes` is the configured size of a log file, `floor` the durable floor or None. Raises OSError. Raises
    WrongFileSize if the files have another size than configured.
    """
    entries, findings = _entries(files, directories.paths)
    _refuse_other_size(entries, file_bytes=file_bytes, floor=floor)
    placed = [entry for entry in entries if entry.base % file_bytes == 0 and entry.base <= _LAST_BASE]
    for entry in entries:
        if entry not in placed:
            message = f"{entry.path} does not begin at a multiple of {file_bytes} bytes: not read"
            findings.append(Finding("damage", "misplaced_file", entry.path, entry.base, message))
    found, twins = [], []
    for _, same in groupby(placed, key=attrgetter("base")):
        entry, useless = _choose_file(files, list(same), file_bytes=file_bytes, findings=findings)
        found.append(entry)
        twins += useless
    # a read-only directory is not changed: no new file is created in it, so a leftover blocks no name
    leftovers = [twin.path for twin in twins if directory_of(twin.path) in directories.writable]
    if found and found[-1].size == 0 and (floor is None or floor.offset <= found[-1].base):
        leftovers.append(found.pop().path)
    kept = _end_of_use(files, found, file_bytes=file_bytes, floor=floor)
    leftovers += [entry.path for entry in found[kept:] if directory_of(entry.path) in directories.writable]
    del found[kept:]
    findings += _damages(directories, found, file_bytes=file_bytes, floor=floor)
    return FoundLog(tuple(entry.path for entry in found if entry.size), tuple(leftovers), tuple(findings))


def _entries(files: Files, paths: Sequence[str]) -> tuple[list[_LogFile], list[Finding]]:
    """Return all log files by offset, then path, and a note for every other directory entry."""
    found, strays = [], []
    for directory in paths:
        for name in files.list_directory(directory) if files.stat(directory) else []:
            path = f"{directory}/{name}"
            stat = files.stat(path)
            if stat is None:
                continue
            if stat.kind != "file" or len(name) != 20 or not (name.isascii() and name.isdigit()):
                strays.append(
                    Finding("note", "stray_file", path, NO_OFFSET, f"{path} is not a commit log file: ignored")
                )
            else:
                found.append(_LogFile(int(name), path, stat.size_bytes))
    return sorted(found, key=attrgetter("base")), strays


def _refuse_other_size(found: Sequence[_LogFile], *, file_bytes: int, floor: Floor | None) -> None:
    sizes = {entry.size for entry in found if entry.size}
    if floor is None and len(sizes) == 1 and next(iter(sizes)) % _SIZE_STEP_BYTES:
        return  # a file that was cut, or grew: no configuration has such a size
    written_with = floor.file_bytes if floor is not None else (sizes.pop() if len(sizes) == 1 else file_bytes)
    if found and written_with != file_bytes:
        raise WrongFileSize(found[0].path, found_bytes=written_with, configured_bytes=file_bytes)


def _choose_file(
    files: Files, same: list[_LogFile], *, file_bytes: int, findings: list[Finding]
) -> tuple[_LogFile, list[_LogFile]]:
    """Choose the log's file among those of one offset.

    Return it and the others that hold only zeros. Several files with content add a finding of damage. A file of zeros
    is left over from a failed attempt to create it, after which another directory was used.
    """
    if len(same) == 1:
        return same[0], []
    written = [entry for entry in same if not _is_zeros(files, entry.path)]
    one = max(written or same, key=lambda entry: entry.size == file_bytes)
    useless = [entry for entry in same if entry != one and entry not in written]
    for twin in useless:
        message = f"{twin.path} has the name of {one.path} and holds only zeros: not used"
        findings.append(Finding("note", "twin_file", twin.path, twin.base, message))
    for twin in written:
        if twin != one:
            message = f"{twin.path} has the name of {one.path} and both hold data: move one of them away"
            findings.append(Finding("damage", "twin_file", twin.path, twin.base, message))
    return one, useless


def _is_zeros(files: Files, path: str) -> bool:
    """Return whether a file holds only zeros. Reads the whole file.

    Raises OSError if a block cannot be read.
    """
    file = files.open(path, writable=False)
    try:
        position = 0
        while data := files.read(file, position, _CHUNK_BYTES):
            if first_nonzero(memoryview(data), 0) is not None:
                return False
            position += len(data)
    finally:
        files.close(file)
    return True


def _end_of_use(files: Files, found: Sequence[_LogFile], *, file_bytes: int, floor: Floor | None) -> int:
    """Return how many of the files are in use.

    They are all files, or those before incomplete files made ahead.

    RocketMQ makes two files ahead of the writes. A crash may leave the first of them empty or without its name while
    the second one has its name, with its size or without. These files hold only zeros, and nothing was durable in
    them. Raises OSError.
    """
    for number in range(1, len(found)):
        end = found[number - 1].base + file_bytes
        if found[number].size and found[number].base == end:
            continue
        is_durable = floor is not None and floor.offset > end
        rest = found[number:]
        is_unused = all(not each.size or (each.size == file_bytes and _is_zeros(files, each.path)) for each in rest)
        return len(found) if is_durable or not is_unused else number
    return len(found)


def _damages(
    directories: LogDirectories, found: Sequence[_LogFile], *, file_bytes: int, floor: Floor | None
) -> list[Finding]:
    damages = []
    expected = found[0].base if found else 0
    for entry in found:
        if entry.base != expected:
            damages.append(_missing(directories, expected, f"before {entry.path}"))
        if entry.size != file_bytes:
            message = f"{entry.path} has {entry.size} bytes instead of {file_bytes}"
            damages.append(Finding("damage", "short_file", entry.path, entry.base + entry.size, message))
        expected = entry.base + file_bytes
    if floor is not None and floor.offset > expected:
        damages.append(_missing(directories, expected, f"although the log was durable up to {floor.offset}"))
    return damages


def _missing(directories: LogDirectories, base: int, where: str) -> Finding:
    """Return the finding for a file that is in none of the directories."""
    alone = len(directories.paths) == 1
    file = f"{directories.names}/{file_name(base)}" if alone else file_name(base)
    place = file if alone else f"{file} of {directories.names}"
    message = f"{place} is missing {where}; store_path_commit_log has to name all directories of the log"
    return Finding("damage", "missing_file", file, base, message)
