"""What lies in the directories of the commit log, before a byte of it is believed.

Recovery needs contiguous files of the configured size, in the order of their offsets, whatever directories they lie in
(RMQ-B10 is the order of their paths). Whatever else is found is named: a stray file is ignored, an empty newest file
(created, never written) goes, files of another size are refused, a short or missing file is damage, and so are two
files of one offset unless all but one are zeros. Source: `MappedFileQueue.load`, whose three ways to refuse a start
(G1, G2, H4) this replaces, and `MultiPathMappedFileQueue.load`, which takes both of two twins (H12).
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

__all__ = ["Finding", "FoundLog", "examine_log"]

_LAST_BASE = 1 << 62
_CHUNK_BYTES = 1 << 20
_SIZE_STEP_BYTES = 512


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth saying about a store: `damage` keeps it read-only, a `tear` was cut, a `note` took no record."""

    severity: Literal["damage", "tear", "note"]
    code: str
    file: str
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The files to map (paths, ascending by offset), files without a record to remove, and what was found."""

    paths: tuple[str, ...]
    leftovers: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _LogFile:
    base: int
    path: str
    size: int


def examine_log(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Look at the directories without changing them. Raises WrongFileSize when they were written with another size."""
    entries, findings = _entries(files, directories.paths)
    _refuse_other_size(entries, file_bytes=file_bytes, floor=floor)
    placed = [entry for entry in entries if entry.base % file_bytes == 0 and entry.base <= _LAST_BASE]
    for entry in entries:
        if entry not in placed:
            message = f"{entry.path} begins where no file of {file_bytes} bytes can begin: not read"
            findings.append(Finding("damage", "misplaced_file", entry.path, entry.base, message))
    found, twins = [], []
    for _, same in groupby(placed, key=attrgetter("base")):
        entry, useless = _the_one(files, list(same), file_bytes=file_bytes, findings=findings)
        found.append(entry)
        twins += useless
    # a read-only directory is left as it is: it gets no file that could be refused for a name that is taken
    leftovers = [twin.path for twin in twins if directory_of(twin.path) in directories.writable]
    if found and found[-1].size == 0 and (floor is None or floor.offset <= found[-1].base):
        leftovers.append(found.pop().path)
    findings += _damages(directories, found, file_bytes=file_bytes, floor=floor)
    return FoundLog(tuple(entry.path for entry in found if entry.size), tuple(leftovers), tuple(findings))


def _entries(files: Files, paths: Sequence[str]) -> tuple[list[_LogFile], list[Finding]]:
    """Return the log files of all directories by offset, then path, and a note for each thing that is none."""
    found, strays = [], []
    for directory in paths:
        for name in files.list_directory(directory) if files.stat(directory) else []:
            path = f"{directory}/{name}"
            stat = files.stat(path)
            if stat is None:
                continue
            if stat.kind != "file" or len(name) != 20 or not (name.isascii() and name.isdigit()):
                strays.append(Finding("note", "stray_file", path, -1, f"{path} is no commit log file: ignored"))
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


def _the_one(
    files: Files, same: list[_LogFile], *, file_bytes: int, findings: list[Finding]
) -> tuple[_LogFile, list[_LogFile]]:
    """Return which of the files of one offset is the log's, and those of zeros; several that hold something are damage.

    A file of zeros is what is left of an attempt to make it, given up for another directory.
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
            message = f"{twin.path} has the name of {one.path} and both hold something: move one of them away"
            findings.append(Finding("damage", "twin_file", twin.path, twin.base, message))
    return one, useless


def _is_zeros(files: Files, path: str) -> bool:
    """Return whether a file holds no byte but zeros. Reads it: where the disk has lost a block that is an error."""
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
    """Return the finding for a file that none of the directories has."""
    alone = len(directories.paths) == 1
    file = f"{directories.names}/{file_name(base)}" if alone else file_name(base)
    place = file if alone else f"{file} of {directories.names}"
    message = f"{place} is missing {where}; store_path_commit_log has to name all directories of the log"
    return Finding("damage", "missing_file", file, base, message)
