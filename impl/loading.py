"""What lies in the commit log directory, before a byte of it is believed.

Recovery needs contiguous files of the configured size. Whatever else is found is named: a stray file is ignored, an
empty newest file (created, never written) goes, files of another size are refused, a short or missing file is damage.
Source: `MappedFileQueue.load`, whose three ways to refuse a start (G1, G2, H4) this replaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from impl.durable_floor import Floor
from impl.errors import WrongFileSize
from impl.files import Files
from impl.mapped_file_queue import file_name

__all__ = ["Finding", "LogDirectory", "examine_log_directory"]

_LAST_BASE = 1 << 62


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth saying about a store: `damage` keeps it read-only, a `tear` was cut, a `note` changed nothing."""

    severity: Literal["damage", "tear", "note"]
    code: str
    file: str
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """The files to map (base offsets, ascending), an empty newest file to remove, and what was found."""

    base_offsets: tuple[int, ...]
    empty_newest: str | None
    findings: tuple[Finding, ...]


def examine_log_directory(files: Files, directory: str, *, file_bytes: int, floor: Floor | None) -> LogDirectory:
    """Look at the directory without changing it. Raises WrongFileSize when the store was written with another size."""
    found: list[tuple[int, int]] = []
    misplaced: list[Finding] = []
    findings: list[Finding] = []
    for name in files.list_directory(directory) if files.stat(directory) else []:
        path = f"{directory}/{name}"
        stat = files.stat(path)
        if stat is None:
            continue
        if stat.kind != "file" or len(name) != 20 or not (name.isascii() and name.isdigit()):
            findings.append(Finding("note", "stray_file", path, -1, f"{path} is no commit log file: ignored"))
        else:
            found.append((int(name), stat.size_bytes))
    _refuse_other_size(directory, found, file_bytes=file_bytes, floor=floor)
    for base, _ in [entry for entry in found if entry[0] % file_bytes or entry[0] > _LAST_BASE]:
        path = f"{directory}/{file_name(base)}"
        message = f"{path} begins where no file of {file_bytes} bytes can begin: not read"
        misplaced.append(Finding("damage", "misplaced_file", path, base, message))
    found = [entry for entry in found if entry[0] % file_bytes == 0 and entry[0] <= _LAST_BASE]
    empty_newest = None
    if found and found[-1][1] == 0 and (floor is None or floor.offset <= found[-1][0]):
        empty_newest = f"{directory}/{file_name(found.pop()[0])}"
    findings += misplaced + _damages(directory, found, file_bytes=file_bytes, floor=floor)
    return LogDirectory(tuple(base for base, size in found if size), empty_newest, tuple(findings))


def _refuse_other_size(
    directory: str, found: Sequence[tuple[int, int]], *, file_bytes: int, floor: Floor | None
) -> None:
    sizes = {size for _, size in found if size}
    written_with = floor.file_bytes if floor is not None else (sizes.pop() if len(sizes) == 1 else file_bytes)
    if found and written_with != file_bytes:
        path = f"{directory}/{file_name(found[0][0])}"
        raise WrongFileSize(path, found_bytes=written_with, configured_bytes=file_bytes)


def _damages(
    directory: str, found: Sequence[tuple[int, int]], *, file_bytes: int, floor: Floor | None
) -> list[Finding]:
    damages = []
    expected = found[0][0] if found else 0
    for base, size in found:
        path = f"{directory}/{file_name(base)}"
        if base != expected:
            missing = f"{directory}/{file_name(expected)}"
            damages.append(Finding("damage", "missing_file", missing, expected, f"{missing} is missing before {path}"))
        if size != file_bytes:
            message = f"{path} has {size} bytes instead of {file_bytes}"
            damages.append(Finding("damage", "short_file", path, base + size, message))
        expected = base + file_bytes
    if floor is not None and floor.offset > expected:
        missing = f"{directory}/{file_name(expected)}"
        message = f"{missing} is missing: the log was durable up to {floor.offset}"
        damages.append(Finding("damage", "missing_file", missing, expected, message))
    return damages
