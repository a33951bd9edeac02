"""Look at a store directory without changes: log files, checkpoint, marker, lock, floor.

Guarantees: nothing is created, written, locked or mapped. Files are opened read-only and read in pieces of some MiB. A
missing, foreign, short, empty or damaged file is a finding and not an exception. On a live store, or if a file changed
while it was read, a bad tail is "moving" and leaves the verdict open.

Usage: `view = look(directory)`, then feed `iter_items(view)` into a `LogJudge(view)`, whose `finish()` gives the
findings.

Source: docs/format.md, sections 1, 2 and 6 to 8.
"""

from __future__ import annotations

import re
import stat
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tornpage.properties.decode.durable_floor import FLOOR_BYTES, Floor, parse_durable_floor
from tornpage.properties.decode.files import PIECE_BYTES, FileSource, is_locked_elsewhere, read_small
from tornpage.properties.decode.findings import Code, Finding, Severity
from tornpage.properties.decode.seek import items_from
from tornpage.properties.decode.walk import Item

__all__ = [
    "RECORD_BYTES_MAX",
    "Checkpoint",
    "Floor",
    "LocatedItem",
    "LogFile",
    "StoreView",
    "iter_items",
    "look",
    "read_checkpoint",
    "read_floor",
]

RECORD_BYTES_MAX = 64 * 1024 * 1024
"""The longest record that is loaded. RocketMQ's default limit (`maxMessageSize`) is 4 MiB."""

_SIZE_STEP_BYTES = 512
"""No configured size of a log file is expected to be another than a multiple of this."""

_LOG_NAME = re.compile(r"[0-9]{20}")
_CHECKPOINT = struct.Struct(">qqq")
_CHECKPOINT_BYTES = 4096
_I64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """One commit log file as listed.

    `base_offset` is the offset in its name and `size_bytes` its size in the file system.
    """

    name: str
    path: Path
    base_offset: int
    size_bytes: int
    mtime_ns: int

    @property
    def label(self) -> str:
        """Path relative to the store directory."""
        return f"commitlog/{self.name}"


@dataclass(frozen=True, slots=True)
class LocatedItem:
    """An item of the log, and its file relative to the store directory."""

    file: str
    item: Item


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Store times (ms) up to which log, queues and index were flushed.

    Source: docs/format.md, section 6 (RocketMQ's `StoreCheckpoint`).
    """

    physic_timestamp: int
    logics_timestamp: int
    index_timestamp: int


@dataclass(frozen=True, slots=True)
class StoreView:
    """A store directory before its log is read.

    `file_bytes` is the size that most log files have.
    """

    store_dir: Path
    files: tuple[LogFile, ...]
    file_bytes: int
    is_unclean: bool
    live: bool
    checkpoint: Checkpoint | None
    floor: int | None
    findings: tuple[Finding, ...]


def look(store_dir: Path, *, file_bytes: int | None = None) -> StoreView:
    """List a store directory and read its small files.

    `file_bytes` is the configured size of a log file. Without it the size in the durable floor is used, or else the
    commonest size (the first file's on a tie). Raises OSError only if `store_dir` or its `commitlog` cannot be listed.
    """
    findings: list[Finding] = []
    is_unclean = (store_dir / "abort").exists()
    live = _is_live(store_dir, findings)
    files = _list_log(store_dir, findings)
    floor = read_floor(store_dir, findings)
    size = file_bytes or (floor.file_bytes if floor is not None and floor.file_bytes > 0 else _usual_size(files))
    if file_bytes is None and floor is None:
        _judge_only_size(files, size, findings)
    _judge_files(files, size, is_unclean or live, 0 if floor is None else floor.offset, findings)
    if not files:
        _judge_missing_log(store_dir, findings)
    return StoreView(
        store_dir=store_dir,
        files=files,
        file_bytes=size,
        is_unclean=is_unclean,
        live=live,
        checkpoint=read_checkpoint(store_dir, findings),
        floor=None if floor is None else floor.offset,
        findings=tuple(findings),
    )


def iter_items(
    view: StoreView,
    *,
    from_offset: int = 0,
    piece_bytes: int = PIECE_BYTES,
    record_bytes_max: int = RECORD_BYTES_MAX,
    on_file: Callable[[LogFile, bool, OSError | None], None] | None = None,
    reached: Callable[[int], None] = lambda offset: None,
) -> Iterator[LocatedItem]:
    """Yield the items of all log files in order; the first one covers `from_offset`.

    After each file `on_file(file, has_changed, error)` is called: whether the file changed while it was read, and the
    error that ended it early. `reached` is called every few MiB with the physical offset up to which bytes were loaded.
    Cost: one pass from `from_offset` on; inside a record, some MiB before it too (see `items_from`).
    """
    for file in view.files:
        file_end = file.base_offset + max(view.file_bytes, file.size_bytes)
        if file.size_bytes == 0 or file_end <= from_offset:
            continue
        has_changed, failure = False, None
        try:
            with FileSource(
                file.path, size_bytes_max=view.file_bytes, piece_bytes=piece_bytes,
                reached=lambda position, base=file.base_offset: reached(base + position),  # type: ignore[misc]
            ) as source:  # fmt: skip
                position = max(0, from_offset - file.base_offset)
                for item in items_from(source, position, file.base_offset, view.file_bytes, record_bytes_max):
                    yield LocatedItem(file.label, item)
                has_changed = source.has_changed()
        except OSError as error:
            failure = error
        if on_file is not None:
            on_file(file, has_changed, failure)


def read_checkpoint(store_dir: Path, findings: list[Finding] | None = None) -> Checkpoint | None:
    """Read the three times of the checkpoint.

    Another size than that of a checkpoint is a finding. Returns None, with a finding, without the three times.
    """
    found: list[Finding] = [] if findings is None else findings
    remedy = "none needed: the store rebuilds it, with a longer recovery"
    try:
        stored = read_small(store_dir / "checkpoint", _CHECKPOINT_BYTES + 1)
    except OSError as error:
        found.append(_no_access("checkpoint", error))
        return None
    if stored is None:
        found.append(Finding("CP_MISSING", "note", "checkpoint", None, "there is no checkpoint file", remedy))
        return None
    if len(stored) != _CHECKPOINT_BYTES:
        size = f"more than {_CHECKPOINT_BYTES}" if len(stored) > _CHECKPOINT_BYTES else str(len(stored))
        message = f"the checkpoint has {size} bytes instead of {_CHECKPOINT_BYTES}"
        found.append(Finding("CP_BAD_SIZE", "note", "checkpoint", None, message, remedy))
        if len(stored) < _CHECKPOINT.size:
            return None
    checkpoint = Checkpoint(*_CHECKPOINT.unpack_from(stored))
    if min(checkpoint.physic_timestamp, checkpoint.logics_timestamp, checkpoint.index_timestamp) < 0:
        found.append(Finding("CP_NEGATIVE_TIME", "note", "checkpoint", None, "a time is negative", remedy))
    return checkpoint


def read_floor(store_dir: Path, findings: list[Finding] | None = None) -> Floor | None:
    """Read the durable floor; None if there is none.

    A file with wrong size, magic or checksum gives None and the finding FLOOR_UNREADABLE.

    Source: docs/format.md, section 8.
    """
    name = "config/durableFloor"
    try:
        stored = read_small(store_dir / name, FLOOR_BYTES + 1)
    except OSError as error:
        if findings is not None:
            findings.append(_no_access(name, error))
        return None
    if stored is None:
        return None
    floor = parse_durable_floor(stored)
    if floor is None and findings is not None:
        message = "size, magic or checksum of the durable floor is wrong, so it cannot separate tears from damage"
        remedy = "none needed: the next flush of the store rewrites it"
        findings.append(Finding("FLOOR_UNREADABLE", "note", name, None, message, remedy))
    return floor


def _list_log(store_dir: Path, findings: list[Finding]) -> tuple[LogFile, ...]:
    directory = store_dir / "commitlog"
    if not directory.is_dir():
        return ()
    files: list[LogFile] = []
    for path in sorted(directory.iterdir(), key=lambda path: path.name):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            findings.append(_no_access(f"commitlog/{path.name}", error))
            continue
        is_log = _LOG_NAME.fullmatch(path.name) and stat.S_ISREG(status.st_mode) and int(path.name) <= _I64_MAX
        if is_log:
            files.append(LogFile(path.name, path, int(path.name), status.st_size, status.st_mtime_ns))
        else:
            message = "not a log file: the name is not an offset of 20 digits, or it is not a regular file"
            remedy = "move it out of commitlog (RocketMQ 4.9.3 refuses to start with it)"
            findings.append(Finding("CL_STRAY_FILE", "note", f"commitlog/{path.name}", None, message, remedy))
    return tuple(files)


def _usual_size(files: tuple[LogFile, ...]) -> int:
    sizes = Counter(file.size_bytes for file in files if file.size_bytes)  # on a tie the first one seen is taken
    return sizes.most_common(1)[0][0] if sizes else 0


def _judge_only_size(files: tuple[LogFile, ...], size: int, findings: list[Finding]) -> None:
    """Judge the size that all log files have.

    Nothing else states the configured size.
    """
    sizes = {file.size_bytes for file in files if file.size_bytes}
    if len(sizes) == 1 and size % _SIZE_STEP_BYTES:
        file = next(file for file in files if file.size_bytes)
        message = f"{size} bytes, which is no multiple of {_SIZE_STEP_BYTES}: the file was cut or extended"
        remedy = "restore the file from a copy or a replica, or give the configured size with --file-bytes"
        findings.append(Finding("CL_SHORT_FILE", "damage", file.label, file.base_offset, message, remedy))


def _judge_files(files: tuple[LogFile, ...], size: int, may_be_torn: bool, floor: int, findings: list[Finding]) -> None:
    """Judge names and sizes of log files.

    Empty files before the newest, short files and gaps are damage, except among files made ahead of the writes.
    """

    def add(code: Code, severity: Severity, file: LogFile, message: str, remedy: str) -> None:
        findings.append(Finding(code, severity, file.label, file.base_offset, message, remedy))

    restore = "restore the file from a copy or a replica, or cut a copy of the log before it"
    torn: Severity = "tear" if may_be_torn else "note"
    unused = _first_unused(files, size, floor)
    for index, file in enumerate(files):
        if file.size_bytes == 0:
            if index >= unused or file is files[-1]:
                which = "the newest file" if file is files[-1] else "a file made ahead"
                add("CL_ZERO_LENGTH", torn, file, f"{which} has no bytes yet", "the store removes it")
            else:
                add("CL_ZERO_LENGTH", "damage", file, "a file between others has no bytes", restore)
        elif file.size_bytes < size:
            add("CL_SHORT_FILE", "damage", file, f"{file.size_bytes} bytes instead of {size}", restore)
        elif file.size_bytes > size:
            message = f"{file.size_bytes} bytes, others have {size}"
            add("CL_MIXED_SIZES", "damage", file, message, "find out which size was configured; restore the others")
        if index and index >= unused:
            expected = files[index - 1].base_offset + size
            if file.base_offset != expected:
                message = f"begins at {file.base_offset}, the one before ends at {expected}, and all of it is zeros"
                add("CL_GAP", torn, file, message, "the store removes it")
        elif index and files[index - 1].base_offset + size != file.base_offset:
            expected = files[index - 1].base_offset + size
            add("CL_GAP", "damage", file, f"begins at {file.base_offset}, the one before ends at {expected}", restore)
        elif size and file.base_offset % size:
            add("CL_MISALIGNED", "damage", file, f"the name is not a multiple of the file size {size}", restore)


def _first_unused(files: tuple[LogFile, ...], size: int, floor: int) -> int:
    """Return the index of the first file made ahead that a crash left incomplete.

    RocketMQ makes two files ahead. A crash may leave the first of them empty or without its name. These files hold
    only zeros. Without such files the result is the number of files.
    """
    if not size or any(file.base_offset % size for file in files):
        return len(files)
    for index in range(1, len(files)):
        end = files[index - 1].base_offset + size
        if files[index].size_bytes and files[index].base_offset == end:
            continue
        rest = files[index:]
        is_unused = floor <= end and all(file.size_bytes in (0, size) and _is_zeros(file) for file in rest)
        return index if is_unused else len(files)
    return len(files)


def _is_zeros(file: LogFile) -> bool:
    """Return whether a file has only zeros; a file that cannot be read has not."""
    try:
        with open(file.path, "rb") as opened:
            return not any(any(piece) for piece in iter(lambda: opened.read(1 << 20), b""))
    except OSError:
        return False


def _judge_missing_log(store_dir: Path, findings: list[Finding]) -> None:
    has_queues = any((store_dir / "consumequeue").glob("*/*/*"))
    message = "there are consume queues but no commit log files" if has_queues else "there are no commit log files"
    remedy = "if storePathCommitLog points elsewhere, link that directory here as commitlog; else restore the files"
    findings.append(Finding("CL_MISSING", "damage" if has_queues else "note", "commitlog", None, message, remedy))


def _is_live(store_dir: Path, findings: list[Finding]) -> bool:
    try:
        return is_locked_elsewhere(store_dir / "lock")
    except OSError as error:
        message = f"whether the directory is open in a store is unknown: {error.strerror}"
        remedy = "look again with permission to read the lock file"
        findings.append(Finding("LOCK_UNKNOWN", "note", "lock", None, message, remedy))
        return False


def _no_access(name: str, error: OSError) -> Finding:
    remedy = "look again with permission to read it"
    return Finding("CL_NO_ACCESS", "note", name, None, f"cannot be read: {error.strerror}", remedy)
