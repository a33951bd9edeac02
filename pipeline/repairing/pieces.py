"""Find the bytes of a log: misnamed files, and records in `quarantine/`.

Every record states its own physical offset. A log file whose first valid record states another place than the name of
the file says has a wrong name. The salvage reads such a file at the place that its records state.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.pipeline.audit.stores import StorePlan
from tornpage.pipeline.rows.outline import LogPartition
from tornpage.properties.decode.misnamed import stated_base
from tornpage.properties.decode.record import END_RESERVE_BYTES
from tornpage.properties.decode.store import LogFile

__all__ = ["Misnamed", "QuarantineFile", "quarantine_files", "quarantine_part", "renamed"]

_QUARANTINE_NAME = re.compile(r"([0-9]{20})\.[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Misnamed:
    """A file of the log and the physical offset at which its records were written."""

    file: str
    base_offset: int


@dataclass(frozen=True, slots=True)
class QuarantineFile:
    """Bytes of a log that were set aside: `offset` is the physical offset of the first one."""

    path: Path
    offset: int
    size_bytes: int


def renamed(store: StorePlan) -> tuple[StorePlan, tuple[Misnamed, ...]]:
    """Return the plan with each log file at its stated offset, and the misnamed files.

    A file whose records state the place of a file with the right name keeps its own. Files of `commitlog` that have
    no name of a log file are taken where a log file is missing.
    """
    view = store.view
    if not view.file_bytes:
        return store, ()
    stated: dict[Path, int | None] = {}
    for file in view.files:
        stated[file.path] = _stated(file, view.file_bytes) if file.size_bytes else None
    right = {file.base_offset for file in view.files if stated[file.path] in (None, file.base_offset)}
    right -= {file.base_offset for file in view.files if stated[file.path] is None and not file.size_bytes}
    files: dict[int, LogFile] = {}
    wrong: list[Misnamed] = []
    strays = [file for file in _strays(view.store_dir) if 0 < file.size_bytes <= view.file_bytes]
    for file in (*view.files, *strays):
        base = stated.get(file.path) if file not in strays else _stated(file, view.file_bytes)
        if base is None or (base == file.base_offset and file not in strays):
            if file not in strays:
                files.setdefault(file.base_offset, file)
            continue
        if base in right or any(each.base_offset == base for each in wrong):
            continue  # another file holds this place; the bytes stay in the store
        taken = files.get(base)
        if taken is not None and stated.get(taken.path) == base:
            continue
        wrong.append(Misnamed(file.label, base))
        files[base] = LogFile(f"{base:020}", file.path, base, file.size_bytes, file.mtime_ns)
    if not wrong:
        return store, ()
    ordered = tuple(files[base] for base in sorted(files))
    settled = {part.path: part for part in store.log_parts}
    any_part = next(iter(store.log_parts), None)
    parts = []
    for file in ordered:
        part = settled.get(file.path, any_part)
        if part is None or not file.size_bytes:
            continue
        parts.append(
            LogPartition(
                part.store,
                file.path,
                file.label,
                file.base_offset,
                view.file_bytes,
                part.settled_ms,
                part.light_queues,
                part.deleted,
                part.flushed_ms,
                part.drops_joined,
            )
        )
    return replace(store, view=replace(view, files=ordered), log_parts=tuple(parts)), tuple(wrong)


def quarantine_files(store_dir: Path) -> list[QuarantineFile]:
    """Return the files of `quarantine/` by offset, and of one offset by number."""
    directory = store_dir / "quarantine"
    found = []
    if directory.is_dir():
        for path in sorted(directory.iterdir(), key=_by_number):
            match = _QUARANTINE_NAME.fullmatch(path.name)
            if match and path.is_file() and not path.is_symlink():
                found.append(QuarantineFile(path, int(match[1]), path.stat().st_size))
    return found


def quarantine_part(file: QuarantineFile, like: LogPartition) -> LogPartition:
    """Return the partition that reads a quarantine file; records may end with the file."""
    return replace(
        like,
        path=file.path,
        label=f"quarantine/{file.path.name}",
        base_offset=file.offset,
        size_bytes=file.size_bytes + END_RESERVE_BYTES,
    )


def _by_number(path: Path) -> tuple[str, int, str]:
    stem, _, number = path.name.partition(".")
    return stem, int(number) if number.isdecimal() else 0, path.name


def _stated(file: LogFile, file_bytes: int) -> int | None:
    try:
        return stated_base(file.path, size_bytes=file.size_bytes, file_bytes=file_bytes, named=file.base_offset)
    except OSError:
        return None


def _strays(store_dir: Path) -> Iterator[LogFile]:
    """Yield the files of `commitlog` without a name of a log file, with offset 0."""
    directory = store_dir / "commitlog"
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.name.isdecimal() and len(path.name) == 20:
            continue
        try:
            status = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and not path.is_symlink():
            yield LogFile(path.name, path, 0, status.st_size, status.st_mtime_ns)
